"""The tools of `comparison` and `verdicts`: how peers and tinybench measure callables, in processes of their own.

Unless it is to be short, each peer gets about half a second to a second for each callable.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from scipy.stats import mannwhitneyu, ttest_ind

from tests.benchmarks.processes import child, in_child
from tests.benchmarks.subjects import CALLS, CHOICE, calls_of

HERE = Path(__file__).resolve().parent
Samples = dict[str, list[float]]
AGAIN, MORE = "A again", "A + more"


def written(*command: str) -> Any:
    """Return the JSON that a Python process writes to the file for which ``{file}`` stands."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "written.json"
        child(*(word.replace("{file}", str(file)) for word in command))
        return json.loads(file.read_text(encoding="utf-8"))


def with_timeit(short: bool) -> Samples:
    """Five repeats, as ``python -m timeit`` makes them."""
    return in_child(run_timeit, 0.001 if short else 0.06)  # type: ignore[no-any-return]


def run_timeit(seconds: float) -> Samples:
    calls = max(1, round(seconds / min(timeit.repeat(CALLS["A"], repeat=5, number=1))))
    return {name: [t / calls for t in timeit.repeat(call, repeat=5, number=calls)] for name, call in CALLS.items()}


def with_pyperf(short: bool) -> Samples:
    """Worker processes, one callable after the other."""
    effort = ("--processes=2", "--min-time=0.001") if short else ("--processes=4", "--min-time=0.01")
    options = ("--fast", *effort, "--quiet", f"--inherit-environ={CHOICE}", "--output", "{file}")
    suite = written(str(HERE / "subjects.py"), *options)
    found: Samples = {}
    for benchmark in suite["benchmarks"]:
        # pyperf keeps what all benchmarks share, a single one's name included, at the top
        name = (suite.get("metadata", {}) | benchmark.get("metadata", {})).get("name")
        found[name] = [value for run in benchmark["runs"] for value in run.get("values", [])]
    return found


def with_pytest_benchmark(short: bool) -> Samples:
    """Rounds of each callable, calibrated by the tool."""
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-c", os.devnull, "--benchmark-json={file}")
    limit = f"--benchmark-max-time={0.02 if short else 0.3}"
    found = written("-m", "pytest", str(HERE / "subjects.py"), *options, limit)
    return {benchmark["params"]["name"]: benchmark["stats"]["data"] for benchmark in found["benchmarks"]}


def with_asv(short: bool) -> Samples:
    """Rounds in fresh processes, all rounds of a callable in a row: asv's default."""
    found: Samples = {name: [] for name in CALLS}
    run = "import sys; from asv_runner.run import _run; _run(tuple(sys.argv[1:]))"
    rounds, seconds = (1, 0.001) if short else (2, 0.02)
    settings = json.dumps({"sample_time": seconds, "rounds": rounds})
    for index, name in enumerate(CALLS):
        for _ in range(rounds):
            subject = f"subjects.time_subject-{index}"
            found[name] += written("-c", run, str(HERE), subject, settings, "None", "{file}")["samples"]
    return found


def welch(a: list[float], b: list[float]) -> bool:
    return bool(ttest_ind(a, b, equal_var=False).pvalue < 0.05)


def asv_compare(a: list[float], b: list[float]) -> bool:
    return bool(mannwhitneyu(a, b).pvalue < 0.002)


def pyperf_compare(a: list[float], b: list[float]) -> bool:
    from pyperf._utils import is_significant

    return bool(is_significant(a, b)[0])


@dataclass(frozen=True)
class Peer:
    """A tool: how it measures, which number it reports, and when it (or its usual test) sees a difference."""

    measure: Callable[[bool], Samples]
    estimate: Callable[[list[float]], float]
    differ: Callable[[list[float], list[float]], bool]
    how: str


PEERS = {
    "timeit": Peer(with_timeit, min, welch, "best of 5; it has no test, so Welch's at 5 % on the repeats"),
    "pyperf": Peer(with_pyperf, fmean, pyperf_compare, "mean and its own t-test at 5 %"),
    "pytest-benchmark": Peer(
        with_pytest_benchmark, min, welch, "minimum; it has no test, so Welch's at 5 % on the rounds"
    ),
    "asv": Peer(with_asv, median, asv_compare, "median and the test of asv compare, Mann–Whitney at 0.2 %"),
}


def flagged(subject: str, verdict: str) -> bool:
    """Return whether a callable was called different from A, which it must not be, or longer, which it must be."""
    return verdict in ("slower", "higher", *(("faster", "lower") if subject == AGAIN else ()))


def run_peer(name: str, short: bool = False) -> list[dict[str, Any]]:
    """Return one record for each callable against A: the ratio found, and whether it was called different."""
    peer, records = PEERS[name], []
    samples = peer.measure(short)
    for subject in list(CALLS)[1:]:
        ratio = peer.estimate(samples[subject]) / peer.estimate(samples["A"])
        verdict = ("higher" if ratio > 1 else "lower") if peer.differ(samples[subject], samples["A"]) else "same"
        records.append({"subject": subject, "ratio": ratio, "flagged": flagged(subject, verdict)})
    return records


def run_tinybench(seconds: float) -> list[dict[str, Any]]:
    """Return the same records, with intervals, from interleaved rounds."""
    from tinybench import compare, measure_latencies

    records, results = [], measure_latencies(CALLS, 1, 20, 20_000, max_seconds=seconds)
    for subject in list(CALLS)[1:]:
        found = compare(results[subject], results["A"])
        about = {"subject": subject, "ratio": found.ratio, "interval": found.ratio_ci}
        records.append({**about, "flagged": flagged(subject, found.verdict)})
    return records


def run_live(trials: int, seconds: float) -> list[dict[str, Any]]:
    """Return one record for each anytime-valid race: A against itself several times, and against the slower ones."""
    records = []
    for subject in [AGAIN] * trials + list(CALLS)[2:]:
        limit = seconds if subject == AGAIN else 10 * seconds
        began = time.perf_counter()
        verdict = by_live(CALLS, subject, limit)
        took = time.perf_counter() - began
        records.append({"subject": subject, "flagged": flagged(subject, verdict), "seconds": took})
    return records


def by_compare(calls: dict[str, Any], other: str, seconds: float) -> str:
    from tinybench import compare, measure_latencies

    results = measure_latencies({name: calls[name] for name in (other, "A")}, 1, 5, 20_000, max_seconds=seconds)
    return compare(results[other], results["A"]).verdict


def by_live(calls: dict[str, Any], other: str, seconds: float) -> str:
    from tinybench import compare_live

    return compare_live({name: calls[name] for name in (other, "A")}, 1, max_seconds=seconds).verdict


def by_command(calls: dict[str, Any], other: str, seconds: float) -> str:
    import numpy as np

    from tinybench.shell.cli import main

    shown, models = io.StringIO(), sys.modules.setdefault("verdict_models", type(sys)("verdict_models"))
    for name, call in (("first", calls["A"]), ("second", calls[other])):
        setattr(models, name, lambda call=call: lambda _: call())
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(shown):
        np.save(f"{folder}/rows.npy", np.zeros((1, 1)))
        names = ("verdict_models:first", "verdict_models:second")
        assert main(["compare", *names, "--data", f"{folder}/rows.npy", f"--seconds={seconds}", "--format=csv"]) == 0
    return list(csv.DictReader(io.StringIO(shown.getvalue())))[1]["verdict"]


def by_magic(calls: dict[str, Any], other: str, seconds: float) -> str:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    if "bench" not in shell.magics_manager.magics["line"]:
        shell.run_line_magic("load_ext", "tinybench")
    shell.push({"first": calls["A"], "second": calls[other]})
    table = shell.run_line_magic("bench", f"-s {seconds} first() vs second()")
    return str(list(csv.DictReader(io.StringIO(table.csv())))[1]["verdict"])


WAYS: dict[str, Callable[[dict[str, Any], str, float], str]] = {
    "compare": by_compare,
    "compare_live": by_live,
    "tinybench compare": by_command,
    "%bench": by_magic,
}


def run_portion(way: str, length: str, other: str, trials: int, seconds: float) -> list[dict[str, Any]]:
    """Return one record for each trial; of a peer, which measures all at once, one for each callable."""
    if way in PEERS:
        return [{"subject": row["subject"], "flagged": row["flagged"]} for row in run_peer(way)]
    calls, records = calls_of(length), []
    for _ in range(trials):
        began = time.perf_counter()
        verdict = WAYS[way](calls, other, seconds)
        # the longer one is the first in the library's ways, the second in the table's: both call it slower
        about = {"subject": other, "flagged": flagged(other, verdict), "seconds": seconds}
        records.append({**about, "took": time.perf_counter() - began})
    return records

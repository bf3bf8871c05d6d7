"""The ways to a verdict that tinybench offers, as `verdicts` tries them."""

from __future__ import annotations

import csv
import io
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

from tests.benchmarks.peers import PEERS, flagged, run_peer
from tests.benchmarks.subjects import calls_of

AGAIN, MORE = "A again", "A + more"


def by_compare(calls: dict[str, Any], other: str, seconds: float) -> str:
    """Judge by the library: rounds for so many seconds, then `compare`."""
    from tinybench import compare, measure_latencies

    results = measure_latencies(
        {name: calls[name] for name in (other, "A")}, 1, measurement_runs=20_000, max_seconds=seconds
    )
    return compare(results[other], results["A"]).verdict


def by_live(calls: dict[str, Any], other: str, seconds: float) -> str:
    """Judge while measuring."""
    from tinybench import compare_live

    return compare_live({name: calls[name] for name in (other, "A")}, 1, max_seconds=seconds).verdict


def by_command(calls: dict[str, Any], other: str, seconds: float) -> str:
    """Judge by the command, run within this process."""
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
    """Judge by the magic of a notebook."""
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

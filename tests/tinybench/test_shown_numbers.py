"""What commands print, number by number, against the raw values: by NumPy and SciPy, not by the library."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import pytest
from scipy.stats import beta, binom
from scipy.stats import t as student
from threadpoolctl import threadpool_info

from tests.shown import check, is_shown, numbers, rows_of, template
from tests.tinybench.test_load_result import steady
from tests.tinybench.test_operator_work import KNOWN
from tests.tinybench.test_rollout_evidence import TRUTH, compared, wrong_by
from tests.tinybench.test_watching_rates import CASES, OBJECTIVE, Clock, by_own_reader, by_prometheus
from tinybench.result import BenchmarkResult
from tinybench.rollout import RolloutState
from tinybench.shell.cli import main
from tinybench.shell.load_summary import load_figures, print_summary
from tinybench.shell.rollout_command import _Printer
from tinybench.shell.timed_comparison import comparison_table, tail_table
from tinybench.shell.watch_command import told
from tinybench.support.profiling.stacks import Profile
from tinybench.tools.history.sqlite_store import History
from tinybench.tools.rollout.plan import Checkpoint, Report
from tinybench.tools.roofline.operator_bottlenecks import Placed, Unplaced, place
from tinybench.tools.roofline.operator_work import Counted

RNG = np.random.default_rng(5)
OLD, NEW = (size * RNG.lognormal(0, 0.02, 40) for size in (0.010, 0.012))
CALLS = 0.010 * RNG.lognormal(0, 0.1, 3000)


def timed(values: np.ndarray, **more: Any) -> BenchmarkResult:
    """Return times in seconds of common rounds as a result."""
    return BenchmarkResult("latency", values.tolist(), {"pairing": "x", **more}, unit="s")


def quantile_ends(values: np.ndarray, q: float) -> tuple[float, float]:
    """Return the narrowest values between which the q-th quantile lies with 95 %, by the binomial distribution."""
    n, ordered = len(values), np.sort(values)
    low, high = int(binom.ppf(0.025, n, q)), int(binom.ppf(0.975, n, q)) + 1
    return float(ordered[max(low, 1) - 1]), float(ordered[min(high, n) - 1])


def near(shown: Sequence[str], truths: Sequence[float]) -> None:
    """Raise AssertionError where a number is not a truth, as rounded as it is written."""
    assert len(shown) == len(truths)
    assert [(text, truth) for text, truth in zip(shown, truths, strict=True) if not is_shown(text, truth)] == []


def test_a_wrong_number_and_an_unexpected_one_are_noticed() -> None:
    text = "sent 100\np99 12.3 ms of 1,000\n"
    check(text, {"sent #": [100], "p99 # ms of #": [12.34, 1000]})
    for other in ({"sent #": [101], "p99 # ms of #": [12.3, 1000]}, {"sent #": [100]}):
        with pytest.raises(AssertionError):
            check(text, other)
    assert template("a  −3.5 % (p50 2e-3)") == "a # % (p50 #)"
    assert is_shown("18,100,000", 18_077_819)
    assert not is_shown("18,077,000", 18_077_819)
    assert is_shown("inf", math.inf)


def test_compare() -> None:
    lines = [*rows_of(str(comparison_table({"old": timed(OLD), "new": timed(NEW)})))]
    assert template(" ".join(lines[0])) == "latency per call, # shuffled rounds, # % intervals"
    near(lines[0][0].replace(",", "").split()[3:4], [40])
    (name, middle, ends, fold), (other, slower, its_ends, ratio, p, verdict) = lines[2:]
    assert (name, other, fold, verdict) == ("old", "new", "the baseline", "slower")
    for shown, interval, values in ((middle, ends, OLD), (slower, its_ends, NEW)):
        near(
            [shown, *interval.split(" to ")], [1e3 * np.median(values), *(1e3 * e for e in quantile_ends(values, 0.5))]
        )
    near([ratio.split()[0]], [float(np.median(NEW / OLD))])
    assert "times as long" in ratio
    low, high = map(float, ratio.split("(")[1].rstrip(")").split("–"))
    assert low <= float(ratio.split()[0]) <= high
    assert p == "< 0.001"


def test_measure() -> None:
    lines = [*rows_of(str(tail_table("it", timed(OLD, session_seconds=3.0), timed(CALLS))))]
    assert template(lines[0][0]) == "it: median of # rounds over # s, tail of # calls"
    for (name, value, ends), (q, values) in zip(
        lines[2:], [(0.5, OLD), (0.9, CALLS), (0.95, CALLS), (0.99, CALLS)], strict=True
    ):
        assert name == ("median" if q == 0.5 else f"p{100 * q:g}")
        assert float(value) == pytest.approx(1e3 * float(np.quantile(values, q)), rel=3e-3)
        shown, truth = [float(end) for end in ends.split(" to ")], [1e3 * end for end in quantile_ends(values, q)]
        assert shown == pytest.approx(truth, rel=6e-3)


def test_load(capsys: pytest.CaptureFixture[str]) -> None:
    run = steady(failed=5)
    system = {"system": {"cpu": "Some CPU", "cores": 2}}
    run.metadata |= {
        "url": "http://x",
        "rate": 100.0,
        "scenario": "poisson",
        "outcomes": {"200": 1995, "503": 5},
    } | system
    print_summary(run, load_figures(run, 0.015), "table")
    took = np.where(run.ok, run.finished - run.intended, np.inf)
    expected: dict[str, Any] = {
        "http://x: open loop, poisson, # s; Some CPU, # cores": [20, 2],
        "requests #": [len(run.ok)],
        "answered #": [np.count_nonzero(run.ok)],
        "failed # # × #": [5, 5, 503],
        "rate asked #/s": [100],
        "rate sent #/s": [2000 / 20],
        "throughput #/s answers that came while requests were sent": [np.sum(run.ok & (run.finished <= 20)) / 20],
        "within # ms #/s #% of them": [15, np.sum(took <= 0.015) / 20, 100 * np.mean(took <= 0.015)],
        "lateness p99 # ms of the generator itself": [0],
    }
    for q in (50, 90, 99):
        beyond, value = 1 - q / 100, np.sort(took)[math.ceil(q / 100 * 2000) - 1]
        shares = (took >= value).reshape(10, 200).mean(axis=1)  # batch means, on the logarithm of the share
        error = max(math.sqrt(beyond * (1 - beyond) / 2000), float(shares.std(ddof=1)) / math.sqrt(10))
        reach = student.ppf(0.975, 9) * error / beyond
        places = [2000 * (1 - min(1.0, beyond * math.exp(sign * reach))) for sign in (1, -1)]
        ends = [float(np.sort(took)[max(0, math.ceil(place - 1e-9) - 1)]) for place in places]
        expected[f"latency p{q} # ms # % interval # to # ms"] = [1e3 * value, 95, *(1e3 * end for end in ends)]
    check(capsys.readouterr().out, expected)


class Sampled(NamedTuple):
    """A sample of a profile."""

    start: float
    stack: tuple[str, ...]
    seconds: float


def test_profile_of_a_script() -> None:
    """The ± is 1.96 standard errors of a share, with two successes and two failures added (Agresti and Coull)."""
    samples = [Sampled(0, ("main", "f"), 0.3), Sampled(0.3, ("main", "g"), 0.1), Sampled(0.4, ("main",), 0.1)]

    def error(share: float) -> float:
        middle = (share * 3 + 2) / 7
        return 196 * math.sqrt(middle * (1 - middle) / 7)

    rows = {"f": (60, error(0.6), 60), "main": (20, error(0.2), 100), "g": (20, error(0.2), 20)}
    check(
        str(Profile(samples, "by the clock")),
        {"Where # s went: by the clock": [0.5], **{f"{name} # % # # %": row for name, row in rows.items()}},
    )


def test_profile_of_a_model() -> None:
    work = Counted("n", "MatMul", "float32", 2e9, 1e8, 2.0**25)
    tree = Counted("t", "TreeEnsemble", "float32", why="it depends on the data")
    placed = Placed([place(work, 0.025, KNOWN)], [Unplaced(tree, 0.075)], timed(np.full(8, 0.08)), 0.1)
    roof = KNOWN.peak("float32")
    check(
        str(placed),
        {
            "MatMul float32 # µs #% # # # # memory #% compute": [25e3, 25, 2e9, 1e8, 20, 80, 100 * 2e9 / roof / 0.025],
            "TreeEnsemble float32 # µs #% – – – – – – –": [75e3, 75],
            "compute: #% of the operators' time; arithmetic is the limit; try a smaller layer, a faster type, or "
            "more cores": [25],
            "without a place under the roofs, #% of the time: TreeEnsemble (it depends on the data); the table has their "
            "times": [75],
            "the operators' times in the trace add up to # of the model's time without a trace; a trace rounds to whole "
            "µs and adds overhead, so times of a few µs are too long": [0.1 / 0.08],
        },
    )


@pytest.mark.parametrize("looks", [by_prometheus, by_own_reader])
@pytest.mark.parametrize("kind", CASES)
def test_watch(kind: str, looks: Any) -> None:
    moments, (rate, failed, total, bad) = CASES[kind]
    *_, last = looks(Clock(moments))
    text, seconds, spent = told(last, OBJECTIVE), moments[-1][0] - moments[0][0], bad / (0.001 * total)
    line, _, burns = text.partition(" · burns ")
    good = last.total - last.bad if len(moments) == 2 else 240
    middle = 5 + 5 * 0.5 * good / good
    budget = (
        {"# % of the error budget for these # s is left": [100, seconds]}
        if not bad
        else {"error budget for these # s spent # times over": [seconds, spent]}
    )
    check(
        line.replace(" · ", "\n"),
        {
            "#/s, # failed": [rate, failed],
            "p50 # ms (#–#)": [middle, 5, 10],
            "p99 # ms (#–#)": [5 + 5 * 0.99, 5, 10],
            **budget,
        },
    )
    if looks is by_own_reader:
        near(burns.partition(" · ")[0].split(" / "), [spent, spent])


def history_of(file: Path, commits: int) -> dict[str, np.ndarray]:
    """Store a commit a minute, each in 20 rounds beside the baseline, and return the ratios of each."""
    rng, ratios = np.random.default_rng(2), {}
    with History(file) as kept:
        for number in range(commits):
            base = 0.01 * rng.lognormal(0, 0.001, 20)
            ratios[f"c{number:03}"] = ratio = (1.1 if number >= 30 else 1.0) * rng.lognormal(0, 0.002, 20)
            named = {"commit": f"c{number:03}", "committed": f"2026-01-01T00:{number:02}", "baseline": "base"}
            kept.add(timed(ratio * base), timed(base), benchmark="it", machine="here", **named)
    return ratios


def test_history_show_and_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ratios = history_of(file := tmp_path / "history.db", 50)
    assert main(["history", "show", "--file", str(file), "--format", "csv"]) == 0
    rows = [*csv.DictReader(io.StringIO(capsys.readouterr().out.strip()))]
    assert [row["commit"] for row in rows] == sorted(ratios, reverse=True)
    for row in rows:
        ratio = ratios[row["commit"]]
        near([row["to the baseline (%)"]], [100 * (np.median(ratio) - 1)])
        near(row["95 % interval"].lstrip("'").split(" to "), [100 * (end - 1) for end in quantile_ends(ratio, 0.5)])
        assert row["measured"] == "1"
        assert bool(row["change"]) == (row["commit"] == "c030")
    assert main(["history", "changes", "--file", str(file), "--json"]) == 1
    [change] = json.loads(capsys.readouterr().out)
    levels = [np.array([np.median(ratios[f"c{n:03}"]) for n in numbers]) for numbers in (range(30), range(30, 50))]
    size = float(np.exp(np.median(np.subtract.outer(*map(np.log, levels[::-1])))))
    assert change["factor"] == pytest.approx(size)
    assert main(["history", "changes", "--file", str(file)]) == 1
    said = capsys.readouterr().out.splitlines()[0]
    assert said.startswith("it, 50 commits: +")
    near([said.partition(": ")[2].split(" %")[0]], [100 * (size - 1)])


def test_rollout(capsys: pytest.CaptureFixture[str]) -> None:
    old, new = wrong_by((0.05, 0.2), 0)
    tally, state = compared(old, new, TRUTH), RolloutState(0, "rolled back", 0, "labels")
    evidence = tally.evidence
    look = Checkpoint(2.5, 0.05, state, True, "", evidence.e_values(), evidence.seen(0), 400, 400, (0.0031, 0.0042))
    _Printer()(look)
    differs, worse = int(np.sum(old != new)), int(np.sum((old == TRUTH) & (new != TRUTH)))
    decided = worse + int(np.sum((old != TRUTH) & (new == TRUTH)))
    # the mean of the likelihood ratios of all shares from a half to one, by the beta distribution; a quarter of the
    # capital was bet in this stage
    log = math.log(2) + math.lgamma(worse + 1) + math.lgamma(decided - worse + 1) - math.lgamma(decided + 2)
    e = math.exp(log + decided * math.log(2)) * beta.sf(0.5, worse + 1, decided - worse + 1)
    check(
        capsys.readouterr().out,
        {
            "# % of the users": [5],
            "# s # users # pairs old # ms, new # ms labels # of # differs # of # most evidence # (labels)": [
                2.5, 400, 400, 3.1, 4.2, worse, decided, differs, 400, e / 4 + 3 / 4,
            ],
        },
    )  # fmt: skip
    report = Report(state, [look], 800, 400, len(tally.harmed), len(tally.differing), seconds=2.5, labelled=True)
    check(
        report.sentence,
        {
            "rolled back at # % of the users by labels after # s; # of # users (# %) got a failed, late or newly wrong "
            "answer from the new version; # got one that differs from the old version's; # used the new version": [
                5, 2.5, worse, 800, 100 * worse / 800, differs, 400,
            ]
        },
    )  # fmt: skip


def test_machine(capsys: pytest.CaptureFixture[str]) -> None:
    main(["machine", "--json"])
    found = {each["name"]: each["seen"] for each in json.loads(capsys.readouterr().out)["findings"]}
    assert found["cores"].split()[0] == str(len(psutil.Process().cpu_affinity() or [0]))
    nodes = list(Path("/sys/devices/system/node").glob("node[0-9]*"))
    assert found["NUMA"] == f"{len(nodes)} node{'s' * (len(nodes) != 1)}" or not nodes
    memory = psutil.virtual_memory()
    left = int(numbers(found["memory"])[-1])
    assert left == pytest.approx(100 * memory.available / memory.total, abs=3), "other programs take some meanwhile"
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert found["threads"].startswith(f"up to {max(pool['num_threads'] for pool in pools)} in linear algebra")
    for pool in pools:
        assert f"{pool['architecture']} ({pool['internal_api']} {pool['version']}" in found["kernel"]

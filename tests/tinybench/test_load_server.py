"""Module 14's statistics against known truth: the rate that keeps a bound, intervals of percentiles, early stopping."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

from tinybench.course.lessons.m14_servers import coverage
from tinybench.load import LoadResult, arrivals, simulate_queue, tail_interval
from tinybench.scenarios import server
from tinybench.support.traffic.load_checks import Rate, early_stopping, evidence, keeps_bound

SERVICE = 0.01
SEARCHES = 40


def queue(kind: str, seconds: float, rng: np.random.Generator) -> Callable[[float], LoadResult]:
    """Return what runs an open loop at one simulated server."""

    def run(rate: float) -> LoadResult:
        times = arrivals(rate, seconds, seed=int(rng.integers(2**31)))
        work = rng.exponential(SERVICE, len(times)) if kind == "mm1" else np.full(len(times), SERVICE)
        done = times + simulate_queue(times, work) + work
        return LoadResult(times, times, done, np.full(len(times), True), seconds, {"loop": "open"})

    return run


@cache
def border(kind: str, bound: float) -> float:
    """Return the rate at which p99 is the bound: of M/M/1 by its formula, of M/D/1 by two million requests."""
    if kind == "mm1":
        return 1 / SERVICE - math.log(100) / bound
    gaps = np.random.default_rng(0).exponential(1, 2_000_000).cumsum()
    work = np.full(len(gaps), SERVICE)
    return float(
        brentq(lambda rate: np.quantile(simulate_queue(gaps / rate, work), 0.99) + SERVICE - bound, 20, 99, xtol=0.1)
    )


@pytest.mark.parametrize(
    ("kind", "bound"),
    [
        ("mm1", 0.1),
        *(pytest.param(*case, marks=pytest.mark.audit) for case in (("mm1", 0.3), ("md1", 0.03), ("md1", 0.1))),
    ],
)
def test_the_highest_rate_lies_in_its_interval_and_is_found_again(kind: str, bound: float) -> None:
    truth, rng = border(kind, bound), np.random.default_rng(14)
    found = [server(queue(kind, 60, rng), bound, 0.31 * truth, min(2.9 * truth, 400)) for _ in range(SEARCHES)]
    held = [rate.kept <= truth <= rate.broken for rate in found]
    again = [a.kept <= b.best <= a.broken for a in found for b in found if a is not b]
    assert np.mean(held) >= 0.9
    assert np.mean(again) >= 0.9
    assert np.median([rate.broken / rate.kept for rate in found]) < 1.6


def test_an_undecided_run_is_repeated_and_a_clear_one_is_not() -> None:
    asked: list[float] = []
    run = queue("mm1", 60, np.random.default_rng(3))

    def counted(rate: float) -> LoadResult:
        asked.append(rate)
        return run(rate)

    found = server(counted, 0.1, 10, 300)
    assert isinstance(found, Rate)
    assert asked.count(300) == 1  # far beyond what it can serve
    assert max(asked.count(rate) for rate in asked) == 4


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (90, 300, "surely keeps the bound of 0.1 s"),
        (5, 20, "surely breaks"),
        (50, 40, "high is the larger one"),
        (0, 9, "low is 0"),
    ],
)
def test_a_search_that_cannot_end_well_is_refused(low: float, high: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        server(queue("mm1", 60, np.random.default_rng(1)), 0.1, low, high)


def made_up(latencies: np.ndarray, rate: float = 100.0) -> LoadResult:
    times = np.arange(len(latencies)) / rate
    return LoadResult(times, times, times + latencies, np.full(len(times), True), len(times) / rate, {"loop": "open"})


def test_a_short_run_without_slow_requests_proves_little_if_they_come_in_jams() -> None:
    calm = np.full(2000, 0.01)
    assert keeps_bound(made_up(calm), 0.1) is True
    jam = calm.copy()
    jam[700:725] += np.linspace(0.01, 0.08, 25)  # all below the bound, and from one jam
    assert keeps_bound(made_up(jam), 0.1) is None
    assert keeps_bound(made_up(calm + 0.2), 0.1) is False
    growing = made_up(np.arange(2000) / 100.0)
    assert evidence([growing], 30.0) == -math.inf
    assert keeps_bound(growing, 30.0) is False


def test_more_runs_are_surer() -> None:
    fine = made_up(np.where(np.arange(2000) % 80 == 0, 0.2, 0.01))
    sure = [evidence([fine] * repeats, 0.1) for repeats in (1, 4)]
    assert -1 < sure[0] < 0
    assert sure[1] < -1


@pytest.mark.parametrize(("load", "number", "most"), [(0.5, 20_000, 0.98), (0.8, 100_000, 0.98)])
def test_intervals_for_p99_hold_the_truth_under_load(load: float, number: int, most: float) -> None:
    def as_if_independent(values: np.ndarray, q: float) -> tuple[float, float]:
        error = 1.96 * math.sqrt(q / 100 * (1 - q / 100) / len(values))
        low, high = np.quantile(values, [q / 100 - error, min(1.0, q / 100 + error)])
        return float(low), float(high)

    (held, answered), (naive, _) = coverage([tail_interval, as_if_independent], load, 100, number)
    assert answered >= 95
    assert 0.85 <= held <= 1
    assert naive < 0.7


def test_runs_that_are_too_short_for_an_interval_are_refused() -> None:
    [(_, answered)] = coverage([tail_interval], 0.8, 100, 4000)
    assert answered <= 5
    with pytest.raises(ValueError, match="measure longer"):
        tail_interval(np.arange(1000.0), 99)
    with pytest.raises(ValueError, match="a percentile lies between 0 and 100"):
        tail_interval(np.arange(1000.0), 100)


@pytest.mark.parametrize(("q", "least"), [(90, 64), (99, 662)])
def test_early_stopping_needs_what_loadgen_says(q: float, least: int) -> None:
    latencies = np.random.default_rng(2).exponential(1, least)
    assert early_stopping(latencies, q) == latencies.max()  # one step before, no request would be safe
    with pytest.raises(ValueError, match=f"at least {least} queries, got {least - 1}"):
        early_stopping(latencies[1:], q)


@pytest.mark.parametrize("q", [90, 99])
def test_early_stopping_is_safe(q: float) -> None:
    rng, truth = np.random.default_rng(4), -math.log(1 - q / 100)
    below = [early_stopping(rng.exponential(1, int(rng.integers(700, 5000))), q) < truth for _ in range(2000)]
    assert np.mean(below) <= 0.015


LOADGEN = """
import sys
import mlperf_loadgen as lg

count, percentile = int(sys.argv[1]), float(sys.argv[2])
sut = lg.ConstructSUT(
    lambda samples: lg.QuerySamplesComplete([lg.QuerySampleResponse(sample.id, 0, 0) for sample in samples]), lambda: None
)
qsl = lg.ConstructQSL(4, 4, lambda samples: None, lambda samples: None)
settings = lg.TestSettings()
settings.scenario, settings.mode = lg.TestScenario.SingleStream, lg.TestMode.PerformanceOnly
settings.min_query_count = settings.max_query_count = count
settings.min_duration_ms, settings.single_stream_expected_latency_ns = 0, 1000
settings.single_stream_target_latency_percentile = percentile
lg.StartTest(sut, qsl, settings)
lg.DestroyQSL(qsl)
lg.DestroySUT(sut)
"""


@pytest.mark.parametrize(("q", "counts"), [(90, (63, 64, 65, 700, 5000)), (99, (661, 662, 1500, 9000))])
def test_early_stopping_drops_as_many_as_mlperf_s_loadgen(q: int, counts: tuple[int, ...], tmp_path: Path) -> None:
    pytest.importorskip("mlperf_loadgen")
    for count in counts:
        subprocess.run([sys.executable, "-c", LOADGEN, str(count), str(q / 100)], cwd=tmp_path, check=True, timeout=60)
        told = (tmp_path / "mlperf_log_summary.txt").read_text()
        if needed := re.search(r"Need to process at least (\d+) queries", told):
            with pytest.raises(ValueError, match=f"at least {needed[1]} queries"):
                early_stopping(np.arange(float(count)), q)
        else:
            [dropped] = re.findall(r"Would discard (\d+) highest latency queries", told)
            assert early_stopping(np.arange(float(count)), q) == count - 1 - int(dropped)

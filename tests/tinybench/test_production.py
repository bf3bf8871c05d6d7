"""`tinybench.production`: its functions against independent truths and for any values."""

from __future__ import annotations

import bisect
import math
import random
import re
import subprocess
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from scipy import stats

from tinybench import production
from tinybench.production import (
    DriftAlarm,
    burn_rate,
    burning,
    conformal_p,
    error_budget,
    histogram_quantile,
    increase,
    ks,
    permutation_p,
    psi,
    watched,
)
from tinybench.support.basics.buckets import quantile_bounds
from tinybench.tools.drifting import Capital

few = settings(max_examples=30, deadline=None)
counts = st.lists(st.integers(0, 50), min_size=2, max_size=8)
numbers = st.lists(st.integers(-9, 9).map(float), min_size=2, max_size=30)


# ---- objectives


@few
@given(st.integers(1, 9999), st.integers(0, 10**6), st.integers(1, 10**6))
def test_burning_at_1_uses_the_budget_up(objective: int, bad: int, total: int) -> None:
    exact = Fraction(objective, 10_000)
    budget = (1 - exact) * total
    assert error_budget(objective / 10_000, total) == pytest.approx(float(budget))
    assert burn_rate(bad, total, objective / 10_000) == pytest.approx(float(bad / budget))
    assert burn_rate(float(budget), total, objective / 10_000) == pytest.approx(1)


def test_no_requests_burn_nothing() -> None:
    assert burn_rate(0, 0, 0.999) == 0


@few
@given(st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=5))
def test_increase_over_restarts(lives: list[list[int]]) -> None:
    # a life of a process: it begins with 0, which is read before the counts that follow it
    readings = [reading for life in lives for reading in accumulate([0, *life])]
    assert increase(readings) == sum(map(sum, lives))
    assert increase(readings[:1]) == increase([]) == 0


@few
@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(1, 25), st.integers(1, 25), st.floats(0.1, 20))
def test_burning_needs_both_windows(bad: list[int], long: int, short: int, factor: float) -> None:
    total = [20 * n for n in range(len(bad) + 1)]
    rates = [sum(bad[-window:]) / (20 * min(window, len(bad)) * 0.1) for window in (long, short)]
    if all(abs(rate - factor) > 1e-9 for rate in rates):
        assert burning([0, *accumulate(bad)], total, 0.9, factor, long, short) == all(rate >= factor for rate in rates)


# ---- histograms and metrics


@few
@given(counts.filter(any), st.floats(0, 1))
def test_the_quantile_lies_in_its_bucket(each: list[int], q: float) -> None:
    below = list(accumulate(each))
    bounds = [*map(float, range(1, len(each))), math.inf]
    low, high = quantile_bounds(q, bounds, below)
    values = [float(place) + 0.5 for place, n in enumerate(each) for _ in range(n)]
    assert low < values[max(0, math.ceil(q * len(values)) - 1)] < high
    assert low <= histogram_quantile(q, bounds, below) <= high


@pytest.mark.needs("prometheus")
def test_prometheus_gives_the_same_quantile(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    bounds = ["0.001", "0.0025", "0.01", "0.05", "1", "+Inf"]
    cases = [(np.cumsum(rng.integers(0, 5, 6)) + (np.arange(6) == 5), float(q)) for q in rng.uniform(0, 1, 60)]
    cases += [(np.array([3, 3, 3, 7, 7, 7]), q) for q in (0.0, 0.2, 3 / 7, 0.5, 1.0)]
    series, asked = [], []
    for i, (below, q) in enumerate(cases):
        for bound, count in zip(bounds, below, strict=True):
            series.append(f"      - {{series: 'x{{le=\"{bound}\", i=\"{i}\"}}', values: '{count}'}}")
        asked.append(f"      - {{expr: 'histogram_quantile({q!r}, x{{i=\"{i}\"}})', eval_time: 0, ")
        asked[-1] += "exp_samples: [{labels: '{}', value: -1}]}"
    file = tmp_path / "quantiles.yml"
    head = ["rule_files: []", "tests:", "  - interval: 1m", "    input_series:"]
    file.write_text("\n".join([*head, *series, "    promql_expr_test:", *asked]), encoding="utf-8")
    # -1 is never right, so that promtool tells what it got
    run = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)
    got = dict(re.findall(r'got: \{i="(\d+)"\} (\S+?),?\n', run.stderr + run.stdout + "\n"))
    assert len(got) == len(cases), run.stderr
    for i, (below, q) in enumerate(cases):
        ours = histogram_quantile(q, [*map(float, bounds[:-1]), math.inf], list(map(float, below)))
        assert ours == pytest.approx(float(got[str(i)]), nan_ok=True), (below, q)


def test_an_empty_histogram_has_no_quantile() -> None:
    assert math.isnan(histogram_quantile(0.5, [1.0, math.inf], [0, 0]))


@few
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=8))
def test_every_call_is_counted_once(calls: list[tuple[bool, int]]) -> None:
    registry = CollectorRegistry()
    now = 0.0

    def call(rows: list[int]) -> int:
        nonlocal now
        now += 0.003
        assert registry.get_sample_value("model_in_flight") == 1
        if not rows[0]:
            raise KeyError("an error of the model")
        return len(rows)

    observed = watched(call, production.ServedMetrics(registry), clock=lambda: now)
    for ok, rows in calls:
        if ok:
            assert observed([1] * rows) == rows
        else:
            with pytest.raises(KeyError, match="of the model"):
                observed([0] * rows)
    fine, failed = [rows for ok, rows in calls if ok], [rows for ok, rows in calls if not ok]
    told = registry.get_sample_value
    assert (told("model_requests_total", {"outcome": "ok"}) or 0) == len(fine)
    assert (told("model_requests_total", {"outcome": "error"}) or 0) == len(failed)
    assert (told("model_seconds_count"), told("model_rows_sum")) == (len(fine), sum(fine + failed))
    assert told("model_seconds_sum") == pytest.approx(0.003 * len(fine))
    assert told("model_in_flight") == 0


# ---- drift


@few
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=8).map(lambda bins: [(1, 2), *bins]))
def test_psi_is_the_sum_of_both_divergences(bins: list[tuple[int, int]]) -> None:
    a, b = (np.array(each) + 0.5 for each in zip(*bins, strict=True))
    expected = stats.entropy(a, b) + stats.entropy(b, a)
    first, second = ([pair[i] for pair in bins] for i in (0, 1))
    assert psi(first, second) == pytest.approx(expected) == pytest.approx(psi(second, first))
    assert psi(first, first) == 0


@few
@given(numbers, numbers)
def test_ks_is_scipys(a: list[float], b: list[float]) -> None:
    assert ks(a, b) == pytest.approx(stats.ks_2samp(a, b, method="asymp").statistic)


def test_permutations_come_near_the_exact_test() -> None:
    a, b = [1.0, 2.0, 4.0, 7.0], [3.0, 8.0, 9.0, 10.0]

    def apart(x: np.ndarray, y: np.ndarray) -> float:
        return abs(float(np.mean(x) - np.mean(y)))

    exact = stats.permutation_test((a, b), apart, permutation_type="independent", alternative="greater").pvalue
    assert permutation_p(apart, a, b, 4999) == pytest.approx(exact, abs=0.025)
    assert permutation_p(apart, a, b, 99, 3) == permutation_p(apart, a, b, 99, 3)
    assert permutation_p(apart, [0.0] * 20, [1.0] * 20, 99) == 0.01
    assert permutation_p(apart, [1.0] * 3, [1.0] * 3, 99) == 1


class Coin(random.Random):
    """Always shows the same."""

    def __init__(self, shows: float) -> None:
        super().__init__()
        self.shows = shows

    def random(self) -> float:
        return self.shows


@few
@given(numbers, st.floats(-9, 9) | st.integers(-9, 9).map(float), st.floats(0, 0.999))
def test_conformal_p_counts_the_larger_and_a_part_of_the_ties(seen: list[float], value: float, coin: float) -> None:
    larger, ties = sum(each > value for each in seen), 1 + sum(each == value for each in seen)
    assert conformal_p(sorted(seen), value, Coin(coin)) == pytest.approx((larger + coin * ties) / (len(seen) + 1))


@pytest.mark.parametrize("tied", [False, True])
def test_conformal_p_is_uniform(tied: bool) -> None:
    rng, coin, seen, told = np.random.default_rng(1), random.Random(1), [0.0], []
    for value in rng.integers(0, 4, 3000) if tied else rng.normal(size=3000):
        told.append(conformal_p(seen, float(value), coin))
        bisect.insort(seen, float(value))
    assert stats.kstest(told, "uniform").pvalue > 1e-3  # of a fixed seed


@few
@given(st.lists(st.lists(st.floats(0, 2), min_size=4, max_size=4), max_size=8))
def test_capital_is_what_a_mixture_of_beginnings_earns(rounds: list[list[float]]) -> None:
    alarm = DriftAlarm([1.0], spacing=1)
    for factors in rounds:
        alarm.n += 1
        alarm.update(factors)
    # of the first capital, 1 / (1 + ln m) − 1 / (1 + ln(m + 1)) is staked at round m, a quarter for each bet
    n, kept = len(rounds), [1 / (1 + math.log(m)) for m in range(1, len(rounds) + 2)]
    earned = sum(
        (kept[m] - kept[m + 1]) / 4 * math.prod(each[bet] for each in rounds[m:]) for m in range(n) for bet in range(4)
    )
    assert alarm.kept == pytest.approx(kept[-1])
    assert alarm.evidence == pytest.approx(kept[-1] + earned)


@few
@given(st.lists(st.lists(st.floats(0.01, 2), min_size=4, max_size=4), min_size=1, max_size=40))
def test_the_alarm_and_the_capital_of_the_server_have_one_schedule(rounds: list[list[float]]) -> None:
    alarm, capital = DriftAlarm([1.0], spacing=1), Capital(1, 4)
    for factors in rounds:
        alarm.n += 1
        alarm.update(factors)
        assert capital.add(np.array([[factors]]))[0, 0] == pytest.approx(alarm.evidence)


def test_alarms_without_a_change_are_rare_and_a_change_is_found() -> None:
    rng = np.random.default_rng(2)
    alarms = 0
    for seed in range(200):
        alarm = DriftAlarm(rng.normal(size=50).tolist(), level=0.1, seed=seed, spacing=1)
        alarms += any(alarm.add(value) for value in rng.normal(size=150))
    assert alarms <= stats.binom.isf(1e-6, 200, 0.1)
    alarm = DriftAlarm(rng.normal(size=200).tolist(), spacing=1)
    assert not any(alarm.add(value) for value in rng.normal(size=100))
    assert any(alarm.add(value) for value in rng.normal(1.5, 1, 60))

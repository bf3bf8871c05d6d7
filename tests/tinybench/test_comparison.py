"""tinybench.comparison against SciPy, statsmodels, simulated coverage and hand-made conditions."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from tinybench import comparison
from tinybench.comparison import compare, compare_live, median_ratio, regression_gate, sign_test
from tinybench.latency import measure_latencies
from tinybench.result import BenchmarkResult
from tinybench.support.comparisons.two_samples import check_comparable, welch

INPUT = np.zeros((1, 4))
positive = st.floats(1e-6, 1e3, allow_subnormal=False)
rounds = st.lists(st.tuples(positive, positive), min_size=6, max_size=60).map(
    lambda pairs: list(zip(*pairs, strict=True))
)


def latency(values: Any, **metadata: Any) -> BenchmarkResult:
    return BenchmarkResult("latency", [float(v) for v in values], unit="s", metadata=metadata)


class Clock:
    """Time that only the models spend."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def model(self, durations: Any) -> Any:
        def call(_: Any) -> None:
            self.now += float(next(durations))

        return call


# paired rounds
@given(rounds)
def test_interval_and_sign_test_agree(samples: list[tuple[float, ...]]) -> None:
    a, b = samples
    ratio, low, high = median_ratio(a, b)
    assert low <= ratio * (1 + 1e-12)
    assert ratio <= high * (1 + 1e-12)
    if not any(0 < abs(math.log(x / y)) < 1e-12 for x, y in zip(a, b, strict=True)):
        assert (sign_test(a, b) <= 0.05) == (low > 1 or high < 1)


@given(rounds)
def test_swapping_inverts_the_ratio(samples: list[tuple[float, ...]]) -> None:
    a, b = samples
    there, back = median_ratio(a, b), median_ratio(b, a)
    assert there[0] == pytest.approx(1 / back[0])
    assert there[1:] == pytest.approx((1 / back[2], 1 / back[1]))
    assert sign_test(a, b) == sign_test(b, a)


@pytest.mark.parametrize(("n", "confidence"), [(6, 0.95), (15, 0.95), (40, 0.95), (200, 0.95), (40, 0.8)])
def test_the_paired_interval_covers(n: int, confidence: float) -> None:
    rng, trials = np.random.default_rng(n), 1500
    held = 0
    for row in np.exp(rng.laplace(math.log(1.02), 0.05, (trials, n))):
        _, low, high = median_ratio(list(row), [1.0] * n, confidence)
        held += low <= 1.02 <= high
    tail = (1 - confidence) / 2
    rank = max(r for r in range(1, n + 1) if stats.binom.cdf(r - 1, n, 0.5) <= tail)
    exact = 1 - 2 * stats.binom.cdf(rank - 1, n, 0.5)
    assert exact >= confidence
    assert abs(held / trials - exact) < 4 * math.sqrt(exact * (1 - exact) / trials)


def test_drift_cancels_in_pairs() -> None:
    rng = np.random.default_rng(0)
    drift = np.exp(np.cumsum(rng.normal(0, 0.1, 400)))
    found = compare(drift * 1.02 * np.exp(rng.normal(0, 0.01, 400)), drift, paired=True)
    assert found.ratio == pytest.approx(1.02, abs=0.003)
    assert found.verdict == "higher"


@pytest.mark.parametrize(("wins", "n"), [(5, 6), (60, 100), (600, 1000), (0, 20)])
def test_sign_test_is_binomial(wins: int, n: int) -> None:
    a = [2.0] * wins + [0.5] * (n - wins)
    assert sign_test(a, [1.0] * n) == pytest.approx(stats.binomtest(wins, n).pvalue)


# independent samples
@given(st.integers(2, 30), st.integers(2, 30), st.floats(0.1, 10), st.integers(0, 10**6))
def test_welch_is_scipys_and_statsmodels(n: int, m: int, scale: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(10, 1, n), rng.normal(11, scale, m)
    p, ends = welch(a, b)
    assert p == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)
    assert ends == pytest.approx(CompareMeans(DescrStatsW(a), DescrStatsW(b)).tconfint_diff(usevar="unequal"))


def test_the_blogs_numbers() -> None:
    base = stats.norm.ppf((np.arange(10) + 0.5) / 10)
    base = (base - base.mean()) / base.std(ddof=1)
    before, after = 12.5 + 1.2 * base, 11.8 + 1.5 * base
    assert welch(before, after)[0] == pytest.approx(0.264, abs=0.001)
    found = compare(before, after)
    assert found.verdict.startswith("undecided")
    assert found.p_value == pytest.approx(stats.ttest_ind(np.log(before), np.log(after), equal_var=False).pvalue, 1e-12)


DRAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(1, 0.1, n),
    "lognormal": lambda rng, n: rng.lognormal(0, 1, n),
    "heavy tails": lambda rng, n: np.exp(0.05 * rng.standard_t(2, n)),
    "spikes": lambda rng, n: rng.normal(1, 0.02, n) * np.where(rng.random(n) < 0.05, rng.pareto(1.5, n) + 2, 1),
}


@pytest.mark.audit
@pytest.mark.parametrize("kind", DRAWS)
def test_the_ratio_of_independent_samples_covers(kind: str) -> None:
    rng, held, trials = np.random.default_rng(1), 0, 600
    for _ in range(trials):
        a, b = 1.05 * DRAWS[kind](rng, 10), DRAWS[kind](rng, 18)
        low, high = compare(a, b).ratio_ci
        assert 0 < low < high < math.inf
        held += low <= 1.05 <= high
    assert held / trials > 0.92  # heavy tails cover a little more than 95 %


positive_lists = st.lists(st.floats(1e-9, 1e9), min_size=2, max_size=25)


@given(positive_lists, positive_lists, st.booleans(), st.sampled_from([("latency", "s"), ("memory", "B"), ("m", "")]))
@example([10, 10.1, 9.9, 10.05], [0.01, 2, 0.02, 0.01], False, ("latency", "s"))
@example([0.01, 2, 0.02, 0.01], [10, 10.1, 9.9, 10.05], False, ("m", ""))
@example([1e-9, 1e9], [1e9, 1e-9], False, ("memory", "B"))
@example([1e9] * 3, [1e-9] * 3, True, ("latency", "s"))
@example([0.1] * 3, [0.1] * 7, False, ("m", ""))
def test_no_sentence_contradicts_itself(x: list[float], y: list[float], paired: bool, metric: tuple[str, str]) -> None:
    if paired:
        x, y = x[: len(y)], y[: len(x)]
    a, b = (BenchmarkResult(metric[0], values, unit=metric[1]) for values in (x, y))
    found = compare(a, b, paired=paired)
    low, high = found.ratio_ci
    assert 0 <= low <= found.ratio * (1 + 1e-12)
    assert found.ratio <= high * (1 + 1e-12)
    if not paired and high < math.inf:  # few equal values have no interval
        assert low > 0
    said = f"{found} {found._repr_mimebundle_()['text/html']}"
    assert not re.search(r"\b(inf|nan)\b|\b1\d\d+(\.\d+)? % (lower|less)", said), said
    if any(abs(math.log(end)) < 1e-9 for end in (low or 0.5, min(high, 2.0), found.ratio)):
        return  # so close to 1 that rounding decides
    sure, decided = low > 1 or high < 1, found.verdict in ("faster", "slower", "lower", "higher")
    assert sure == (found.p_value <= 0.05)
    assert decided <= sure
    assert found.difference_ci[0] <= found.difference <= found.difference_ci[1]
    if decided:
        assert (found.verdict in ("faster", "lower")) == (high < 1) == (found.ratio < 1)
        assert (found.difference_ci[1] < 0) == (high < 1)
    else:
        assert found.verdict.startswith("undecided")
        assert not sure or "clock is too coarse" in found.verdict


def test_constant_samples() -> None:
    assert compare([2.0] * 5, [2.0] * 5, paired=False).verdict.startswith("undecided")
    assert compare([2.0] * 5, [3.0] * 5, paired=False).p_value == pytest.approx(2 / math.comb(10, 5))
    assert compare([2.0] * 3, [3.0] * 3, paired=False).verdict.startswith("undecided")
    assert compare([2.0] * 8, [2.0] * 8, paired=True, margin=0.01).verdict == "equivalent"


def test_that_many_runs_decide_four_times_in_five() -> None:
    rng, n = np.random.default_rng(6), 100
    needed = comparison.runs_to_decide(n, 1.96 * 0.1 / math.sqrt(n), 0.01)
    means = rng.normal(0.01, 0.1, (2000, needed)).mean(axis=1)
    found = np.mean(means - 1.96 * 0.1 / math.sqrt(needed) > 0)
    assert 0.77 < found < 0.83


def test_more_is_better_for_throughput() -> None:
    fast, slow = (BenchmarkResult("throughput", list(np.linspace(v, v + 1, 20)), unit="Hz") for v in (100.0, 50.0))
    assert compare(fast, slow).verdict == "faster"
    assert regression_gate(slow, fast, 0.0).verdict == "passes"
    assert regression_gate(fast, slow, 0.05).verdict == "fails"
    small, large = (BenchmarkResult("memory", list(np.linspace(v, v + 1, 20)), unit="B") for v in (10.0, 50.0))
    assert "lower than" in str(compare(small, large))


def test_gate_needs_more_runs_near_its_limit() -> None:
    rng = np.random.default_rng(7)
    base, noise = rng.normal(1, 0.02, 40), rng.normal(0, 0.02, 40)
    sizes = (1.045, 1.2, 1.049)
    near, far, on_it = (regression_gate(latency(base), latency(base * size + noise), 0.05) for size in sizes)
    assert far.verdict == "fails"
    assert on_it.verdict == "cannot tell: the slowdown is too close to the limit", "nobody would make so many runs"
    assert near.verdict == f"cannot tell: needs {near.needs} runs"
    assert "limit 5 %" in str(near)


def test_few_rounds_are_undecided_not_an_error() -> None:
    found = compare([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], paired=True)
    assert found.verdict == "undecided: needs about 3 more rounds"
    assert "no finite interval" in str(found)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["ratio_ci"] == [0.0, None]


def test_values_without_a_ratio() -> None:
    a, b = (BenchmarkResult("growth", v, unit="B") for v in ([0.0, -1e6, 1e6, 0, 0, 0, 0], [5e6] * 7))
    found = compare(a, b, paired=True)
    assert math.isnan(found.ratio)
    assert str(found).startswith("a is 5.0 MB lower than b (95 % CI 4.0–6.0 MB")
    assert found.to_dict()["ratio"] is None


def test_display_is_accessible_and_escaped() -> None:
    found = compare([1.0, 1.1, 1.2], [2.0, 2.1, 2.3], names=("<b>", "b"))
    shown = found._repr_mimebundle_()
    assert "&lt;b&gt;" in shown["text/html"]
    assert "<b>" not in shown["text/html"]
    assert '<th scope="row"' in shown["text/html"]
    assert shown["text/plain"] == str(found)


# what must not be compared
@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("unit", BenchmarkResult("latency", [1.0], unit="J")),
        ("metric", BenchmarkResult("energy", [1.0], unit="s")),
        ("shape", latency([1.0], input_shape=[2, 4])),
        ("machine", latency([1.0], system={"cpu_model": "other"})),
        ("measured", latency([1.0], measured=False)),
    ],
)
def test_unlike_results_are_refused(name: str, other: BenchmarkResult) -> None:
    one = latency([1.0], input_shape=[1, 4], system={"cpu_model": "this", "time": "now"})
    with pytest.raises(ValueError, match=name):
        compare(one, other)
    check_comparable(one, other, allow=[name])
    with pytest.raises(ValueError, match="allow names"):
        check_comparable(one, other, allow=["color"])


ONES, TWO = [1.0] * 8, latency([1, 2])


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: compare(ONES, [2.0] * 7, paired=True), "8 and 7 values do not pair"),
        (lambda: compare(ONES, ONES, margin=5), "margin is 5"),
        (lambda: compare(ONES, ONES, confidence=95), "confidence is 95"),
        (lambda: compare([1.0, math.nan], [1.0, 2.0]), r"values\[1\]"),
        (lambda: compare([0.0] * 8, ONES, margin=0.1), "margin is relative"),
        (lambda: compare(dict, ONES), "a is the class dict; it must be .* measure it first: measure_latencies"),
        (lambda: regression_gate(TWO, TWO, -0.1), "max_slowdown"),
        (lambda: regression_gate(TWO, TWO, 5), "max_slowdown"),
        (lambda: regression_gate(TWO, TWO, math.nan), "max_slowdown"),
        (lambda: compare_live(dict.fromkeys("abc", len), INPUT), "3 models"),
        (lambda: compare_live(dict.fromkeys("ab", len), INPUT, stop_at=0.05), "stop_at"),
        (lambda: compare_live(dict.fromkeys("ab", len), INPUT, max_seconds=0), "max_seconds"),
        (lambda: compare_live(dict.fromkeys("ab", len), INPUT, margin=2), "margin"),
    ],
)
def test_bad_arguments(use: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        use()


def test_results_of_the_same_rounds_pair() -> None:
    clock = Clock()
    models = {"a": clock.model(itertools.repeat(1e-3)), "b": clock.model(itertools.repeat(2e-3))}
    results, again = (measure_latencies(models, INPUT, measurement_runs=10, clock=clock) for _ in range(2))
    found = compare(results["a"], results["b"])
    assert found.paired
    assert str(found).startswith("a takes 50 % less time than b")
    assert not compare(results["a"], again["b"]).paired


# looking all the time
@pytest.mark.parametrize("n", [1, 7, 30])
def test_the_bet_is_fair(n: int) -> None:
    fortune = sum(stats.binom.pmf(k, n, 0.5) * comparison.sign_e_value(k, n) for k in range(n + 1))
    assert fortune == pytest.approx(1)


def test_peeking_costs_nothing() -> None:
    counts = np.cumsum(np.random.default_rng(8).random((1000, 500)) < 0.5, axis=1)
    flagged = sum(any(comparison.sign_e_value(int(k), i + 1) >= 20 for i, k in enumerate(row)) for row in counts)
    assert flagged / 1000 <= 0.05


@pytest.mark.audit
def test_the_anytime_interval_holds_at_all_times() -> None:
    rng, missed = np.random.default_rng(9), 0
    for _ in range(200):
        values = rng.normal(0.3, 1, 300)
        ends = [comparison.anytime_interval(list(values[:n])) for n in range(5, 301, 5)]
        missed += any(not low <= 0.3 <= high for low, high in ends)
    assert missed / 200 <= 0.08


def test_live_decides_and_reports() -> None:
    clock, rng = Clock(), np.random.default_rng(10)
    fast, slow = (iter(size * 1e-3 * np.exp(rng.normal(0, 0.02, 10**5))) for size in (1.0, 1.05))
    found = compare_live({"fast": clock.model(fast), "slow": clock.model(slow)}, INPUT, seed=1, clock=clock)
    assert isinstance(found, comparison.Comparison)
    assert found.verdict == "faster"
    assert found.checks["e_value"] >= 20
    assert found.p_value <= 0.05
    assert found.ratio_ci[1] < 1
    assert found.counts[0] < 100


def test_live_of_ties_is_undecided_or_equivalent() -> None:
    for margin, verdict in ((0.0, "undecided"), (0.01, "equivalent")):
        clock = Clock()
        models = {name: clock.model(itertools.repeat(0.01)) for name in "ab"}
        found = compare_live(models, INPUT, max_seconds=1, margin=margin, warmup_runs=0, clock=clock)
        assert found.verdict.startswith(verdict)


def test_live_lets_a_models_error_surface() -> None:
    def broken(_: Any) -> None:
        raise RuntimeError("no weights")

    with pytest.raises(RuntimeError, match="no weights"):
        compare_live({"a": broken, "b": len}, INPUT)

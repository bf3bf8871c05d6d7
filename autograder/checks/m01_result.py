"""Hidden checks for module 01.

Expected values come from exact fractions, SciPy, binomial sums and exact distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from autograder.checks import judges
from autograder.checks.check_helpers import *
from autograder.checks.plain_answers import array
from tinybench.result import percentile_interval
from tinybench.support.basics.dependence import batch_medians

NAN, INF = float("nan"), float("inf")


def answer_first(student: Any) -> None:
    """Check that the answer counts the calls below the mean: all but the slowest one."""
    same(student.calls_below_the_mean(), 9, "calls below the mean", "only the call of 25 ms is above 13.2 ms")


@judges("check_values")
def values_are_guarded(student: Any) -> None:
    """Check that `check_values` returns numbers as floats in order, and refuses any other value, giving its index."""
    rng = draw()
    whole, drawn = rng.integers(-50, 50, 2), rng.normal(0, 1e3, 2)
    kept = items(student.check_values(iter([int(whole[0]), float(drawn[0]), drawn[1], whole[1]])), "check_values")
    same(kept, [whole[0], drawn[0], drawn[1], whole[1]], "check_values of ints, floats and NumPy numbers")
    expect(all(isinstance(value, float) for value in kept), "check_values should return plain floats")
    size = int(rng.integers(40, 60))
    for bad in (NAN, INF, -INF, "1.0", None, True, [1.0], 1j):
        # two digits, so that a message does not contain an index by accident
        for index in (0, int(rng.integers(10, size - 1)), size - 1):
            values = [1.0] * index + [bad] + [1.0] * (size - 1 - index)
            refuses(student.check_values, values, mentions=str(index), what=f"{bad!r} at index {index}")
    refuses(student.check_values, [])


@judges("mean_and_std")
def moments_are_exact(student: Any) -> None:
    """Check that the mean and the standard deviation from `mean_and_std` agree with exact rational arithmetic.

    Some of the values are so close together that careless formulas lose most digits by cancellation.
    """
    rng = draw()
    hard, shifted = [1e7 + 0.2] + [1e7 + 0.1, 1e7 + 0.3] * 500, rng.normal(1e9, 1e-3, 50).tolist()
    for values in (hard, shifted, rng.lognormal(0, 1, 31).tolist(), [5.0, 5.0]):
        exact, variance = _exact_moments(values)
        got_mean, got_std = numbers(student.mean_and_std(values), "mean_and_std", 2)
        same(got_mean, exact, "the mean", rel=1e-14)
        cause = "divide by n − 1; subtract the mean before squaring"
        same(got_std, math.sqrt(variance), "the deviation", cause, rel=1e-7)  # the error from rounding the mean
    mean, std = numbers(quiet(student.mean_and_std, [7.5]), "mean_and_std([7.5])", 2, finite=False)
    same(mean, 7.5, "the mean of one value")
    expect(std == 0 or math.isnan(std), f"one value has no deviation: expected 0 or NaN, got {std:g}")


def _exact_moments(values: list[float]) -> tuple[Fraction, Fraction]:
    """Return the mean and the variance, computed with whole multiples of the smallest fraction in the values."""
    ratios = [value.as_integer_ratio() for value in values]
    unit, n = max(below for _, below in ratios), len(values)
    whole = [above * (unit // below) for above, below in ratios]
    squares = n * sum(number * number for number in whole) - sum(whole) ** 2
    return Fraction(sum(whole), unit * n), Fraction(squares, unit**2 * n * (n - 1))


@judges("t_interval")
def t_interval_is_student_t(student: Any) -> None:
    """Check that `t_interval` equals SciPy's interval for several sample sizes and confidence levels."""
    rng = draw()
    samples = [rng.normal(5, 2, n).tolist() for n in (2, 3, 10, 40)]

    def by_scipy(values: list[float], confidence: float) -> Any:
        return stats.t.interval(confidence, len(values) - 1, np.mean(values), stats.sem(values))

    cause = "half-width is t(n − 1) · s / √n, with the quantile at 0.5 + confidence / 2"
    cases = [(values, confidence) for values in samples for confidence in (0.8, 0.95, 0.99)]
    agrees(student.t_interval, by_scipy, cases, cause, rel=1e-7)
    ends = numbers(quiet(student.t_interval, [4.0]), "t_interval([4.0])", 2, finite=False)
    unknown = ends == [4.0, 4.0] or all(map(math.isnan, ends))
    expect(unknown, f"one value has no interval: expected it twice, or NaN twice, got {shown(ends)}")


def _smallest(std: float, half: float, confidence: float = 0.95) -> int:
    """Return the smallest number of runs at which the half-width of the t interval is at most `half`."""
    by_z = int((stats.norm.ppf(0.5 + confidence / 2) * std / half) ** 2)  # too few, because t is wider
    sizes = np.arange(max(2, by_z), by_z + 50)
    return int(sizes[np.flatnonzero(stats.t.ppf(0.5 + confidence / 2, sizes - 1) * std / np.sqrt(sizes) <= half)[0]])


@judges("required_runs")
def runs_reach_the_half_width(student: Any) -> None:
    """Check that `required_runs` returns the smallest number of runs that reaches the requested half-width."""
    rng = draw()
    columns = rng.uniform(0.1, 4, 6), [0.4, *rng.uniform(1, 15, 5)], rng.uniform(0.7, 0.99, 6)
    cases = [(float(std), float(std / over), round(float(c), 2)) for std, over, c in zip(*columns, strict=True)]
    cases += [(2.0, 0.5, 0.95), (1.0, 1.0, 0.99), (0.3, 0.1, 0.9), (1.5, 0.1, 0.95), (1, 5, 0.95)]
    agrees(student.required_runs, _smallest, cases, "use t, not z, and the smallest n that suffices")
    refuses(student.required_runs, (1.0, 0.0), (-1.0, 0.5), (1.0, 0.5, 1.5))


def answer_runs(student: Any) -> None:
    """Check that the answers give the runs for ± 0.1 ms, and the growth in runs when the half-width is halved."""
    same(student.runs_for_tenth_of_a_millisecond(), _smallest(1.5, 0.1), "runs for ± 0.1 ms", "required_runs(1.5, 0.1)")
    same(student.growth_when_half_width_halves(), 4, "the growth", "n grows with the square of 1 / half-width")


@judges("runs_for_percentile")
def percentiles_need_enough_runs(student: Any) -> None:
    """Check that `runs_for_percentile` returns the smallest n at which a percentile has an interval.

    The interval from the smallest to the largest value must miss the percentile on either side with a probability of at
    most (1 − confidence) / 2.
    """
    rng = draw()
    cases = [(50, 0.95), (90, 0.95), (99, 0.95), (99.9, 0.95), (5, 0.95), (75, 0.9), (95, 0.99)]
    for low, high in ((1.1, 20), (20, 80), (80, 99.5)):
        drawn = zip(rng.uniform(low, high, 3).tolist(), rng.uniform(0.7, 0.99, 3).tolist(), strict=True)
        cases += [(round(q, 1), round(confidence, 2)) for q, confidence in drawn]

    def counted(q: float, confidence: float) -> int:
        p, n = max(q, 100 - q) / 100, 1
        while p**n > (1 - confidence) / 2:
            n += 1
        return n

    agrees(student.runs_for_percentile, counted, cases, "both sides must miss by at most (1 − confidence) / 2")
    refuses(student.runs_for_percentile, 0, 100, -5)
    refuses(student.runs_for_percentile, 0.95, 0.5, what="a fraction, p95 is 95")


@judges("percentile_interval")
def percentile_interval_counts(student: Any) -> None:
    """Check that `percentile_interval` returns the order statistics given by binomial sums, on skewed data."""
    rng = draw()
    for n, q, confidence in ((6, 50, 0.95), (30, 50, 0.95), (80, 90, 0.95), (400, 99, 0.95), (60, 25, 0.8)):
        values = rng.lognormal(0, 1, n).tolist()
        below, tail, ordered = np.arange(n), (1 - confidence) / 2, sorted(values)
        lower = 1 + int(np.flatnonzero(stats.binom.cdf(below, n, q / 100) <= tail)[-1])
        upper = 1 + int(np.flatnonzero(stats.binom.sf(below, n, q / 100) <= tail)[0])
        cause = f"ranks {lower} and {upper} of {n} expected, each side missing at most {tail:g}"
        truth = ordered[lower - 1], ordered[upper - 1]
        agrees(student.percentile_interval, truth, [(values, q, confidence)], cause)
    refuses(student.percentile_interval, ([1.0] * 35, 90), mentions="36", what="35 values for p90")


@judges("bootstrap_interval")
def bootstrap_resamples(student: Any) -> None:
    """Check that `bootstrap_interval` draws with replacement from all values, each equally often and at full size.

    The ends of the interval must agree with the exact distribution of a statistic, and with the quantiles of the
    statistic over all resamples.
    """
    rng, bootstrap_interval = draw(), student.bootstrap_interval
    values, n, resamples = rng.lognormal(0, 0.7, 60), 60, 1500
    low, high, many = float(rng.uniform(1, 2)), float(rng.uniform(5, 9)), int(rng.integers(12, 40))
    two = rng.permutation([high] * many + [low] * (n - many))
    one_of_two = low + (high - low) / n * np.arange(n + 1), stats.binom.cdf(np.arange(n + 1), n, many / n)
    largest = np.sort(values), (np.arange(1, n + 1) / n) ** n  # chance that all n drawn are among the i smallest
    statistic: Callable[..., Any]
    for statistic, data, (reached, chances), confidence in (
        (np.mean, two, one_of_two, 0.95),
        (np.max, values, largest, round(float(rng.uniform(0.6, 0.85)), 2)),
    ):
        got = bootstrap_interval(data.tolist(), statistic, confidence, seed=11, resamples=resamples)
        ends, tail = numbers(got, "the interval", 2), (1 - confidence) / 2
        for end, mine, at in zip(("lower", "upper"), ends, (tail, 1 - tail), strict=True):
            below = at * resamples  # expected replicas below the end; `limits` bounds their true proportion
            limits = stats.beta.ppf((1e-7, 1 - 1e-7), (below, below + 1), (resamples - below + 1, resamples - below))
            least, most = (reached[min(int(at), len(reached) - 1)] for at in np.searchsorted(chances, limits))
            expect(
                least - 1e-9 <= mine <= most + 1e-9,
                f"the {end} end for {statistic.__name__} at {confidence}: expected {least:.6g} to {most:.6g}, got "
                f"{mine:.6g}; resample with replacement at the full size and take the middle of the replicas",
            )
    interval = partial(bootstrap_interval, values.tolist(), np.mean, resamples=50)
    first, again, other = (numbers(interval(seed=s), "the interval", 2) for s in (1, 1, 2))
    same(again, first, "the interval of the same seed")
    expect(other != first, "another seed should give slightly another interval: pass it to default_rng")

    samples, confidence = list[np.ndarray](), round(float(rng.uniform(0.5, 0.8)), 2)

    def mean(sample: Any) -> float:
        samples.append(array(sample, "what the statistic gets"))
        return float(np.mean(samples[-1]))

    got = bootstrap_interval(values.tolist(), mean, confidence, seed=int(rng.integers(99)), resamples=70)
    sizes = [sample.size for sample in samples]
    of_all = sizes.count(n)
    expect(of_all >= 70, f"expected 70 resamples of 60 values, got {of_all} and {len(sizes) - of_all} of other sizes")
    full = np.array([sample.ravel() for sample in samples if sample.size == n])
    expect(
        bool(np.isin(full, values).all()),
        "a resample holds a number that is not among the values: draw from the values only",
    )
    repeated = sum(len(np.unique(sample)) < n for sample in full)
    expect(repeated >= 70, "draw with replacement: among 60 draws of 60 values some come twice")
    _, counts = np.unique(full, return_counts=True)
    expect(len(counts) == n and stats.chisquare(counts).pvalue > 1e-9, "every value should be drawn equally often")
    replicas, ends = np.sort([np.mean(sample) for sample in full]), numbers(got, "the interval", 2)
    for end, mine, at in zip(("lower", "upper"), ends, ((1 - confidence) / 2, (1 + confidence) / 2), strict=True):
        found = int(np.searchsorted(replicas, mine))
        due = at * len(replicas)
        told = f"the {end} end at {confidence} should have about {due:.1f} of the {len(replicas)} replicas below it"
        expect(abs(found - due) <= 2.5, f"{told}, and has {found}: take the quantiles of the replicas")


@judges("tukey_outliers")
def outliers_are_tukeys(student: Any) -> None:
    """Check that `tukey_outliers` returns the values beyond 1.5 interquartile ranges from the quartiles, in order."""
    rng = draw()

    def outside(values: list[float]) -> list[float]:
        first, third = np.percentile(values, [25, 75])
        return [v for v in values if v < first - 1.5 * (third - first) or v > third + 1.5 * (third - first)]

    samples = rng.standard_t(1.5, (12, 40)).tolist()
    agrees(student.tukey_outliers, outside, samples, "fences lie 1.5 IQR beyond the quartiles")


@judges("BenchmarkResult.cv", "BenchmarkResult.percentile", "BenchmarkResult.median_ci")
def methods_use_their_functions(student: Any) -> None:
    """Check `cv`, `percentile` and `median_ci`, which take the values and the confidence of the result."""
    values = shuffled(draw().lognormal(0, 1, 60)).tolist()
    result = student.BenchmarkResult("latency", values, confidence=0.8)
    same(result.cv, np.std(values, ddof=1) / np.mean(values), "cv")
    negative, zero = (student.BenchmarkResult("gain", pair).cv for pair in ([-2.0, -4.0], [0.0, 0.0]))
    same(negative, math.sqrt(2) / 3, "cv of negative values", "divide by |mean|")
    same(zero, NAN, "cv when the mean is 0")
    agrees(result.percentile, partial(np.percentile, values), (0, 1, 12.5, 95, 100))
    refuses(result.percentile, -1, 101)
    refuses(result.percentile, 0.95, 0.5, what="a fraction, p95 is 95")
    same(result.median_ci(), percentile_interval(values, 50, 0.8), "median_ci", "use the result's confidence")
    slow = np.cumsum(draw().normal(0, 1, 90)).tolist()
    truth = percentile_interval(batch_medians(slow), 50)
    got = student.BenchmarkResult("latency", slow).median_ci()
    same(got, truth, "median_ci of values that depend on one another", "use self.independent_values")


def answer_understanding(student: Any) -> None:
    """Check that the two answers, on intervals that miss and on 50 measurements, are right.

    5 % of 200 intervals miss. 50 measurements are enough for an interval of p90, but not of p99.
    """
    same(student.misses_in_two_hundred(), 10, "question 1", "5 % of 200 miss")
    same(student.intervals_from_fifty(), [True, False], "question 2", "p90 takes 36 measurements, p99 takes 368")

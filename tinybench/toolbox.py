# Written by "autograder export" from modules/07_toolbox/07_toolbox.ipynb: edit the notebook, not this file.

"""Further tests (Welch, permutation, ranks), effect sizes, and comparisons of many models (Friedman, Holm)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from tinybench.comparison import compare
from tinybench.result import BenchmarkResult, mean_and_std
from tinybench.support.basics.arguments import check_least, check_numbers, check_pairs
from tinybench.support.basics.numbers import number_of
from tinybench.support.comparisons.ratio_words import words_for
from tinybench.support.comparisons.two_samples import as_result, bounded_exp, check_comparable, scatters
from tinybench.support.comparisons.verdict import Comparison


def welch_test(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
    """Return ``(t, df, p)`` of Welch's two-sided test of the means of two independent samples.

    All three are NaN if all values of a sample are equal, since its scatter is unknown. Raises ValueError if a sample
    has fewer than 2 values, or a value that is not finite.
    """
    from scipy import stats

    check_numbers(2, a=a, b=b)
    if not (scatters(a) and scatters(b)):
        return math.nan, math.nan, math.nan
    found = stats.ttest_ind(a, b, equal_var=False)
    return float(found.statistic), float(found.df), float(found.pvalue)


def welch_intervals(
    a: Sequence[float], b: Sequence[float], confidence: float = 0.95
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return Welch's interval of the difference a − b of two means, and of the ratio a/b of two geometric means.

    The interval of the ratio comes from the difference of logarithms. It is (NaN, NaN) if a value is not positive. Both
    intervals are (NaN, NaN) if all values of a sample are equal. Raises ValueError as `welch_test` does.
    """
    from scipy import stats

    check_numbers(2, a=a, b=b)
    if not (scatters(a) and scatters(b)):
        return (math.nan, math.nan), (math.nan, math.nan)
    low, high = stats.ttest_ind(a, b, equal_var=False).confidence_interval(confidence)
    if min(*a, *b) <= 0:
        return (float(low), float(high)), (math.nan, math.nan)
    logs = stats.ttest_ind(np.log(a), np.log(b), equal_var=False).confidence_interval(confidence)
    return (float(low), float(high)), (bounded_exp(float(logs.low)), bounded_exp(float(logs.high)))


def permutation_test(
    a: Sequence[float], b: Sequence[float], paired: bool = False, resamples: int = 2000, seed: int | None = 0
) -> float:
    """Return the two-sided p value of a permutation test for the difference between two means.

    If `paired`, the test flips the signs of the differences within rounds instead of shuffling all values. If there are
    at most `resamples` arrangements, all are counted. Otherwise `resamples` of them are drawn at random, with `seed`.
    Raises ValueError if a sample has fewer than 2 values or a value that is not finite, or if paired samples differ in
    length.
    """
    from scipy import stats

    check_least(1, resamples=resamples)
    (check_pairs if paired else check_numbers)(2, a=a, b=b)

    def size(x: np.ndarray, y: np.ndarray, axis: int) -> Any:
        return np.abs(np.mean(x, axis=axis) - np.mean(y, axis=axis))

    shared: Any = {"vectorized": True, "batch": max(1, 10**6 // (len(a) + len(b)))}  # limits the memory used at once
    kind, rng = "samples" if paired else "independent", np.random.default_rng(seed)
    found = stats.permutation_test(
        (a, b), size, permutation_type=kind, n_resamples=resamples, alternative="greater", random_state=rng, **shared
    )
    return float(found.pvalue)


def wilcoxon_test(differences: Sequence[float]) -> float:
    """Return the two-sided p value of Wilcoxon's signed-rank test, or 1.0 if all differences are 0.

    The p value is computed by the normal approximation. Raises ValueError if there are no differences, or if a
    difference is not finite.
    """
    from scipy import stats

    check_numbers(differences=differences)
    n = int(np.count_nonzero(differences))
    if n == 0:
        return 1.0
    least = 2.0 ** (1 - n)  # all signs alike, by chance
    return max(least, float(stats.wilcoxon(differences, method="asymptotic").pvalue))


def in_deviations(difference: float, std: float) -> float:
    """Return a difference in units of a standard deviation, or NaN without scatter (one value, or equal values)."""
    return difference / std if std > 0 else math.nan


def cohens_d(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Cohen's d, the difference of the means in units of the pooled standard deviation.

    Without scatter, the result is NaN; see `in_deviations`.
    """
    check_numbers(a=a, b=b)
    (mean_a, std_a), (mean_b, std_b) = mean_and_std(list(a)), mean_and_std(list(b))
    freedom = len(a) + len(b) - 2
    pooled = math.sqrt(((len(a) - 1) * std_a**2 + (len(b) - 1) * std_b**2) / max(1, freedom))
    return in_deviations(mean_a - mean_b, pooled)


def cohens_d_paired(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Cohen's d_z, the mean difference within rounds in units of the standard deviation of these differences."""
    check_pairs(a=a, b=b)
    return in_deviations(*mean_and_std([float(d) for d in np.subtract(a, b)]))


def vargha_delaney_a12(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the probability that a random value of `a` exceeds a random value of `b`. Ties count half."""
    check_numbers(a=a, b=b)
    from scipy.stats import rankdata

    ranks = rankdata([*a, *b])
    return float((ranks[: len(a)].sum() / len(a) - (len(a) + 1) / 2) / len(b))


def friedman(results: Mapping[str, BenchmarkResult] | Sequence[BenchmarkResult | Sequence[float]]) -> dict[str, float]:
    """Test whether three or more results of the same rounds differ, by Friedman's rank test.

    Returns a dictionary with ``chi2``, ``p_value``, ``df``, and ``w``, which is Kendall's coefficient of agreement
    between the rounds, from 0 to 1. Raises ValueError if there are fewer than three results, or if the results have
    fewer than two rounds, different numbers of rounds, or are not comparable.
    """
    from scipy import stats

    groups = [as_result(each) for each in (results.values() if isinstance(results, Mapping) else results)]
    if len(groups) < 3 or len({group.count for group in groups}) > 1:
        counts = " and ".join(number_of(group.count, "round") for group in groups)
        raise ValueError(f"Friedman's test takes three or more results of the same rounds; got {counts or 'no result'}")
    check_numbers(2, results=groups[0].values)
    for group in groups[1:]:
        check_comparable(groups[0], group)
    k, n, times = len(groups), groups[0].count, [group.values for group in groups]
    if all(len(set(of_round)) == 1 for of_round in zip(*times, strict=True)):  # ranks cannot distinguish equal values
        return {"chi2": 0.0, "p_value": 1.0, "df": k - 1, "w": 0.0}
    found = stats.friedmanchisquare(*times)
    chi2 = float(found.statistic)
    least = math.factorial(k) ** (1 - n)  # the probability that n rounds agree by chance
    return {"chi2": chi2, "p_value": max(float(found.pvalue), least), "df": k - 1, "w": chi2 / (n * (k - 1))}


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values adjusted by Holm's method, in the same order.

    With these, the probability of one or more false alarms does not exceed the significance level.

    Raises ValueError if a p value is not between 0 and 1.
    """
    for index, p in enumerate(p_values):
        if not 0 <= p <= 1:
            raise ValueError(f"p_values[{index}] is {p}; a p value lies between 0 and 1")
    m, adjusted, largest = len(p_values), [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (m - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def compare_all(
    results: Mapping[str, BenchmarkResult],
    paired: bool | None = None,
    margin: float = 0.0,
    confidence: float = 0.95,
    *,
    allow: Collection[str] = (),
) -> list[Comparison]:
    """Compare all pairs of several results, with p values corrected by Holm's method.

    Parameters
    ----------
    results
        Results by name, as `measure_latencies` returns them.
    paired, margin, confidence, allow
        See `compare`, also for the exceptions. The coverage `confidence` applies to each interval by itself, not to all
        of them together.

    Returns
    -------
    list of Comparison
        One comparison for each pair, in the order of `results`. If a difference is not significant after correction,
        the verdict is undecided.
    """
    if len(results) < 2:
        raise ValueError(f"{number_of(len(results), 'result')}; a comparison takes at least two")
    found = [
        compare(results[x], results[y], paired, margin, confidence, names=(x, y), allow=allow)
        for x, y in combinations(results, 2)
    ]
    corrected = []
    for comparison, p in zip(found, holm([c.p_value for c in found]), strict=True):
        verdict = comparison.verdict
        if p > 1 - confidence and verdict in words_for(comparison.metric, comparison.unit):
            verdict = "undecided: not significant after correction"
        corrected.append(replace(comparison, p_value=p, verdict=verdict, corrected_for=len(found)))
    return corrected

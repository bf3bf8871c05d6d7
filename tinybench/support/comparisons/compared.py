"""The whole comparison of two results, around the functions that a student of module 07 writes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from tinybench.result import BenchmarkResult
from tinybench.support.basics.type_checks import check_kinds
from tinybench.support.comparisons.cautions import independent_values, judged
from tinybench.support.comparisons.two_samples import (
    as_result,
    check_comparable,
    check_margin,
    compare_apart,
    compare_batches,
    few_batches,
    pair_names,
    same_rounds,
    second_opinions,
    smallest_p,
)
from tinybench.support.comparisons.verdict import Comparison


def comparison_of(
    a: BenchmarkResult | Sequence[float],
    b: BenchmarkResult | Sequence[float],
    compare_rounds: Callable[[Sequence[float], Sequence[float], float], dict[str, Any]],
    decide: Callable[..., str],
    *,
    paired: bool | None,
    margin: float,
    confidence: float,
    names: tuple[str, str] | None,
    allow: Collection[str],
) -> Comparison:
    """Compare two results, in pairs by `compare_rounds`, and decide by `decide`.

    Rounds that depend on each other are compared in batches, and independent samples by Welch's test. Raise TypeError
    if `a` or `b` is neither a result nor a list of numbers, and ValueError as `tinybench.comparison.compare` does.
    """
    check_kinds(dict.fromkeys("ab", "BenchmarkResult | Sequence[float]"), {"a": a, "b": b})
    a, b = as_result(a), as_result(b)
    check_comparable(a, b, allow)
    check_margin(margin, confidence)
    positive = min(*a.values, *b.values) > 0
    if margin and not positive:
        raise ValueError("a margin is relative, and a value at or below 0 has no ratio; use margin=0")
    paired = same_rounds(a, b) if paired is None else paired
    x, y, dependence = independent_values(a.values, b.values, paired)
    n = min(a.count, b.count)
    in_batches = paired and few_batches(x, y, n)
    test = compare_apart if not paired else compare_batches if in_batches else compare_rounds
    found = dict(test(x, y, confidence))
    (ratio, (low, high)), difference = (found["ratio"], found["ratio_ci"]), found["difference"]
    if positive:
        verdict = decide(ratio - 1, (low - 1, high - 1), n, margin, confidence)
    else:
        verdict = decide(difference, found["difference_ci"], n, 0.0, confidence)
    again = partial(decide, n=n, confidence=confidence)
    verdict, caution = judged(verdict, a, b, paired, margin, difference, ratio, (low, high), again)
    effect, checks = second_opinions(x, y, paired)
    if in_batches:
        checks.pop("wilcoxon_p", None)  # over so few batches this p-value also has a floor
    checks |= dependence | (smallest_p(found["p_value"], len(x)) if paired and not in_batches else {})
    about: Any = {"metric": a.metric_name, "unit": a.unit, "checks": checks, "caution": caution}
    about |= {"measured": a.measured and b.measured, "confidence": confidence, "margin": margin, **found}
    method = _method(paired, in_batches, positive)
    if min(len(x), len(y)) < n:
        method += f", of medians of {len(x)} batches" if paired else ", of means of batches"
    first, second = pair_names(a, b, names)
    return Comparison(first, second, (a.count, b.count), paired, method, effect_size=effect, verdict=verdict, **about)


def _method(paired: bool, in_batches: bool, positive: bool) -> str:
    """Return the name of the method that gives the interval and the p-value."""
    if not paired:
        return "ratio of geometric means, Welch's test of logarithms" if positive else "Welch's test of means"
    if in_batches:
        return "mean of paired log ratios, Student's t test" if positive else "Student's t test of paired differences"
    return "median of paired ratios with order-statistic interval, sign test"

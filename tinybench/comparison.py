# Written by "autograder export" from modules/07_comparison/07_comparison.ipynb: edit the notebook, not this file.

"""Is A faster than B? Ratios with intervals, tests, effect sizes, verdicts, and a gate against regressions."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from tinybench.cautions import check_live, independent_values, judged, last_start
from tinybench.gate import HIGHER_IS_BETTER, Gate, allowed_changes, gate_answer, gate_samples
from tinybench.latency import ready
from tinybench.result import BenchmarkResult, mean_and_std
from tinybench.rounds import Record
from tinybench.samples import (
    as_result,
    average_ranks,
    bounded_exp,
    check_margin,
    difference_within,
    in_deviations,
    measurement_conditions,
    median_interval,
    pair_names,
    same_rounds,
)
from tinybench.wording import as_fields, in_percent, in_times, mimebundle, p_and_n, short_number, span, words_for


def check_comparable(a: BenchmarkResult, b: BenchmarkResult, allow: Collection[str] = ()) -> None:
    """Raise ValueError if two results were not measured under the same conditions, as far as both state them.

    `allow` names those of `measurement_conditions` that may differ; another name is a ValueError too.
    """
    first, second = measurement_conditions(a), measurement_conditions(b)
    if unknown := set(allow) - set(first):
        raise ValueError(f"allow names {sorted(unknown)}; there are {', '.join(first)}")
    for name, value in first.items():
        other = second[name]
        if name not in allow and value is not None and other is not None and value != other:
            raise ValueError(
                f"{name} differs: {value!r} and {other!r}; such results do not compare. Measure both alike, "
                f"or pass allow=[{name!r}] if the difference is meant"
            )


def median_ratio(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the median of the paired ratios a/b with its order-statistic interval: ``(ratio, lower, upper)``.

    The interval is 0 to infinity where there are too few rounds for one (at 95 %: fewer than 6). Raises ValueError if
    the lengths differ or a value is not positive.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} values do not pair; measure both in the same rounds, or paired=False")
    if min(*a, *b) <= 0:
        raise ValueError("a ratio takes positive values; compare by the difference instead")
    logs = [math.log(x / y) for x, y in zip(a, b, strict=True)]
    low, high = median_interval(logs, confidence)
    return math.exp(float(np.median(logs))), math.exp(low), math.exp(high)


def sign_test(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the exact two-sided p value, at most 1, of "in half of the rounds a exceeds b"; ties count for neither."""
    from scipy.special import bdtrc

    differences = np.subtract(a, b)
    more = max(int(np.sum(differences > 0)), int(np.sum(differences < 0)))
    return min(1.0, 2 * float(bdtrc(more - 1, len(differences), 0.5)))


def wilcoxon_test(differences: Sequence[float]) -> float:
    """Return the two-sided p value of the signed-rank test, normal approximation; 1.0 if all differences are zero."""
    kept = np.asarray([d for d in differences if d != 0])
    n = len(kept)
    if n == 0:
        return 1.0
    ranks, ties = average_ranks(np.abs(kept))
    variance = n * (n + 1) * (2 * n + 1) / 24 - float(np.sum(ties**3.0 - ties)) / 48
    z = (float(ranks[kept > 0].sum()) - n * (n + 1) / 4) / math.sqrt(variance)
    return math.erfc(abs(z) / math.sqrt(2))


def welch_test(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
    """Return ``(t, df, p)`` of Welch's two-sided test of the means of two independent samples.

    Without any scatter p is 1 for equal means and 0 otherwise. Raises ValueError if a sample has fewer than 2 values.
    Welch, Biometrika 34 (1947).
    """
    from scipy.special import stdtr

    if min(len(a), len(b)) < 2:
        raise ValueError(f"{len(a)} and {len(b)} values; scatter shows from 2 values a sample on")
    (mean_a, std_a), (mean_b, std_b) = mean_and_std(list(a)), mean_and_std(list(b))
    v_a, v_b = std_a**2 / len(a), std_b**2 / len(b)
    if v_a + v_b == 0:
        same = mean_a == mean_b
        return (0.0 if same else math.copysign(math.inf, mean_a - mean_b)), len(a) + len(b) - 2.0, float(same)
    t = (mean_a - mean_b) / math.sqrt(v_a + v_b)
    df = (v_a + v_b) ** 2 / (v_a**2 / (len(a) - 1) + v_b**2 / (len(b) - 1))
    return t, df, 2 * float(stdtr(df, -abs(t)))


def welch_intervals(
    a: Sequence[float], b: Sequence[float], confidence: float = 0.95
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return Welch's interval of the difference a − b of two means, and of the ratio a/b of two geometric means.

    The ratio's is that of the logarithms' difference: it leaves out 1 exactly when Welch's p value of the logarithms is
    below 1 − `confidence`, and ends between 0 and infinity. It is NaN where a value is not positive.
    """

    def interval(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
        from scipy.special import stdtrit

        _, df, _ = welch_test(x, y)
        (mean_x, std_x), (mean_y, std_y) = mean_and_std(list(x)), mean_and_std(list(y))
        half = float(stdtrit(df, 0.5 + confidence / 2)) * math.sqrt(std_x**2 / len(x) + std_y**2 / len(y))
        return mean_x - mean_y - half, mean_x - mean_y + half

    difference = interval(a, b)
    if min(*a, *b) <= 0:
        return difference, (math.nan, math.nan)
    low, high = interval([math.log(x) for x in a], [math.log(y) for y in b])
    return difference, (bounded_exp(low), bounded_exp(high))


def permutation_test(
    a: Sequence[float], b: Sequence[float], paired: bool = False, resamples: int = 2000, seed: int | None = 0
) -> float:
    """Return the two-sided p value of a permutation test of the difference of means, at least 1 / (resamples + 1).

    If `paired` it flips the signs of the rounds' differences instead of shuffling all values. Phipson, Smyth (2010).
    """
    rng = np.random.default_rng(seed)
    if paired:
        differences = np.subtract(a, b)
        size = abs(float(differences.mean()))
        shuffled = [float(np.mean(differences * rng.choice([-1.0, 1.0], len(differences)))) for _ in range(resamples)]
    else:
        pool, n = np.concatenate([a, b]), len(a)
        size = abs(float(np.mean(a) - np.mean(b)))
        orders = (rng.permutation(pool) for _ in range(resamples))
        shuffled = [float(order[:n].mean() - order[n:].mean()) for order in orders]
    # rounding must not turn a tie into a smaller difference
    as_large = sum(abs(difference) >= size * (1 - 1e-9) for difference in shuffled)
    return (1 + as_large) / (1 + resamples)


def cohens_d(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the difference of means in pooled standard deviations: 0 for none, else infinite without scatter."""
    (mean_a, std_a), (mean_b, std_b) = mean_and_std(list(a)), mean_and_std(list(b))
    freedom = len(a) + len(b) - 2
    pooled = math.sqrt(((len(a) - 1) * std_a**2 + (len(b) - 1) * std_b**2) / max(1, freedom))
    return in_deviations(mean_a - mean_b, pooled)


def cohens_d_paired(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the mean difference of the rounds in standard deviations of that difference (Cohen's d_z)."""
    return in_deviations(*mean_and_std([float(d) for d in np.subtract(a, b)]))


def vargha_delaney_a12(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the probability that a value of a exceeds one of b, ties counting half (Vargha, Delaney 2000)."""
    ranks, _ = average_ranks([*a, *b])
    return float((ranks[: len(a)].sum() / len(a) - (len(a) + 1) / 2) / len(b))


def friedman(results: Mapping[str, BenchmarkResult] | Sequence[BenchmarkResult]) -> dict[str, float]:
    """Return Friedman's rank test of two or more results of the same rounds: is any model faster than another?

    Gives ``chi2``, ``p_value``, ``df`` and ``w``, Kendall's agreement of the rounds from 0 to 1. Raises ValueError if
    there are fewer than two results, their numbers of rounds differ, or they do not compare. Friedman, JASA 32 (1937).
    """
    groups = list(results.values()) if isinstance(results, Mapping) else list(results)
    if len(groups) < 2 or len({group.count for group in groups}) > 1:
        counts = ", ".join(str(group.count) for group in groups)
        raise ValueError(f"Friedman's test takes two or more results of the same rounds, not {counts or 'no'} values")
    for group in groups[1:]:
        check_comparable(groups[0], group)
    from scipy.special import chdtrc

    k, n, tied = len(groups), groups[0].count, 0
    sums = np.zeros(k)
    for times in zip(*(group.values for group in groups), strict=True):
        ranks, sizes = average_ranks(times)
        sums += ranks
        tied += int(np.sum(sizes**3 - sizes))
    untied = 1 - tied / (n * (k**3 - k))
    if untied == 0:
        return {"chi2": 0.0, "p_value": 1.0, "df": k - 1, "w": 0.0}
    chi2 = 12 / (n * k * (k + 1)) * float(np.sum((sums - n * (k + 1) / 2) ** 2)) / untied
    return {"chi2": chi2, "p_value": float(chdtrc(k - 1, chi2)), "df": k - 1, "w": chi2 / (n * (k - 1))}


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values in the same order: the chance of any false alarm among all stays at the level.

    Raises ValueError if a p value is not between 0 and 1. Holm, Scandinavian Journal of Statistics 6 (1979).
    """
    for index, p in enumerate(p_values):
        if not 0 <= p <= 1:
            raise ValueError(f"p_values[{index}] is {p}; a p value lies between 0 and 1")
    m, adjusted, largest = len(p_values), [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (m - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def runs_to_decide(n: int, half_width: float, distance: float, confidence: float = 0.95, power: float = 0.8) -> int:
    """Return how many runs in all make an interval exclude a limit, given its half-width after `n` runs.

    An infinite half-width is no interval yet; `distance` is that of the estimate from the limit, `power` the
    probability with which so many suffice if the estimate is right. At least 6 and at most 10⁹.
    """
    from scipy.special import ndtri

    if not math.isfinite(half_width):
        return 6
    many = 10**9
    widening = 1 + float(ndtri(power)) / float(ndtri(0.5 + confidence / 2))
    if distance <= 0 or half_width / distance * widening > math.sqrt(many / n):
        return many
    return max(6, math.ceil(n * (half_width / distance * widening) ** 2))


def decide(change: float, interval: tuple[float, float], n: int, margin: float = 0.0, confidence: float = 0.95) -> str:
    """Return the verdict on a change with its interval: ``"equivalent"``, ``"faster"``, ``"slower"``, or undecided.

    `change` is negative for less (faster), `n` the number of rounds behind it; a change from −margin to margin is
    ``"equivalent"``, which is checked first. ``"undecided: needs about 120 more rounds"`` has the number for the
    nearest way out: excluding 0, or fitting inside the margin.
    """
    low, high = interval
    if margin > 0 and -margin <= low and high <= margin:
        return "equivalent"
    if high < 0:
        return "faster"
    if low > 0:
        return "slower"
    distance = max(abs(change), margin - abs(change))
    more = max(1, runs_to_decide(n, (high - low) / 2, distance, confidence) - n)
    return f"undecided: needs {'about ' + format(more, ',') if more <= 10**6 else 'over 1,000,000'} more rounds"


@dataclass(frozen=True)
class Comparison:
    """What two results say about each other; ``str`` gives it as a sentence.

    Attributes
    ----------
    name_a, name_b
        The models.
    counts, paired, method
        Measurements of a and of b, whether round by round, and how interval and p value came about.
    ratio, ratio_ci, difference, difference_ci
        a / b, NaN where values are not all positive, and a − b in `unit`, with their intervals.
    p_value, corrected_for
        Two-sided; corrected for so many comparisons.
    effect_size
        Cohen's d, of the rounds' differences if `paired`.
    verdict
        About a, seen from b: ``"faster"`` or ``"slower"`` (``"lower"`` or ``"higher"`` if not about time),
        ``"equivalent"`` or ``"undecided: needs about n more rounds"``.
    confidence, margin, metric, unit, measured
        Of the intervals; the relative change that does not matter; of the results (an estimate is not `measured`).
    checks
        Second opinions: p values of other tests, A12; where rounds depend on one another, how much.
    caution
        What to keep in mind, such as a clock too coarse; "" for nothing.
    """

    name_a: str
    name_b: str
    counts: tuple[int, int]
    paired: bool
    method: str
    ratio: float
    ratio_ci: tuple[float, float]
    difference: float
    difference_ci: tuple[float, float]
    p_value: float
    effect_size: float
    verdict: str
    confidence: float = 0.95
    margin: float = 0.0
    metric: str = "measurement"
    unit: str = ""
    corrected_for: int = 1
    checks: dict[str, float] = field(default_factory=dict)
    measured: bool = True
    caution: str = ""

    def __str__(self) -> str:
        """Return ``int8 is 41 % faster than fp32 (95 % CI 38–44 %, p < 0.001, n = 30)``.

        41 % faster means 41 % less time; from twice the time on it says ``a takes 3.4 times as long as b``, and below a
        tenth ``a is 12 times as fast as b``. Others are
        ``a and b are equivalent within ± 2 % (change 0.3 %, 95 % CI −0.5 to 1.1 %, p = 0.4, n = 30)`` and ``a against b
        is undecided: needs about 80 more rounds (change −50 %, no finite interval, p = 0.25, n = 3)``.
        """
        change, ends, unit = in_percent(self)
        p, n = p_and_n(self)
        if told := in_times(self, f"{100 * self.confidence:.3g} % CI", f"{p}, {n}"):
            return told
        decided = self.verdict != "equivalent" and not self.verdict.startswith("undecided")
        if decided and change < 0:  # "41 % faster" is said with a positive number
            change, ends = -change, (-ends[1], -ends[0])
        amount = f"{short_number(change, ends)} {unit}".rstrip()
        interval = "no finite interval"
        if math.isfinite(ends[1] - ends[0]):
            interval = f"{100 * self.confidence:.3g} % CI {span(ends, unit)}"
        if decided:
            return f"{self.name_a} is {amount} {self.verdict} than {self.name_b} ({interval}, {p}, {n})"
        details = f"(change {amount}, {interval}, {p}, {n})"
        if self.verdict == "equivalent":
            return f"{self.name_a} and {self.name_b} are equivalent within ± {100 * self.margin:.3g} % {details}"
        return f"{self.name_a} against {self.name_b} is {self.verdict} {details}"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and the sentence as plain data for ``json.dumps``; what is not finite becomes None."""
        return as_fields(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the comparison as an accessible HTML table and as a sentence."""
        return mimebundle(self)


def compare(
    a: BenchmarkResult | Sequence[float],
    b: BenchmarkResult | Sequence[float],
    paired: bool | None = None,
    margin: float = 0.0,
    confidence: float = 0.95,
    *,
    names: tuple[str, str] | None = None,
    allow: Collection[str] = (),
) -> Comparison:
    """Compare a with b: by how much does a differ, how sure is that, and does it matter?

    Parameters
    ----------
    a, b
        Results, or plain measurements.
    paired
        Compare round by round; by default if both come from the same rounds of `measure_latencies`.
    margin, confidence
        Relative change that does not matter (0.02 for ± 2 %), coverage of the intervals (the level is 1 − confidence).
    names, allow
        What to call them, and conditions that may differ; see `pair_names` and `check_comparable`.

    Returns
    -------
    Comparison
        For pairs the median ratio with its order-statistic interval and the sign test, otherwise the ratio of geometric
        means and Welch's test, both of logarithms. Interval and p value always agree. Where values depend on those
        before them, medians of batches take their place.

    Raises
    ------
    ValueError
        If the results do not compare, do not pair, or are too few; if `margin` or `confidence` makes no sense.
    """
    a, b = as_result(a), as_result(b)
    check_comparable(a, b, allow)
    check_margin(margin, confidence)
    positive = min(*a.values, *b.values) > 0
    if margin and not positive:
        raise ValueError("a margin is relative, and a value at or below 0 has no ratio; use margin=0")
    paired = same_rounds(a, b) if paired is None else paired
    x, y, dependence = independent_values(a.values, b.values, paired)
    n = min(a.count, b.count)
    ratio, ratio_ci = math.nan, (math.nan, math.nan)
    if paired:
        differences = [float(d) for d in np.subtract(x, y)]
        difference, difference_ci = float(np.median(differences)), median_interval(differences, confidence)
        if positive:
            ratio, *ends = median_ratio(x, y, confidence)
            ratio_ci = (ends[0], ends[1])
        p, effect = sign_test(x, y), cohens_d_paired(x, y)
        logs = [float(d) for d in np.log(x) - np.log(y)] if positive else differences
        checks = {"wilcoxon_p": wilcoxon_test(logs), "a12": vargha_delaney_a12(x, y)}
        method = "median of paired ratios with order-statistic interval, sign test"
    else:
        u, v = ([math.log(d) for d in x], [math.log(d) for d in y]) if positive else (x, y)
        p, effect = welch_test(u, v)[2], cohens_d(x, y)
        difference = float(np.mean(x) - np.mean(y))
        difference_ci, logs_ci = welch_intervals(x, y, confidence)
        if positive:
            ratio, ratio_ci = math.exp(float(np.mean(u) - np.mean(v))), logs_ci
            difference, difference_ci = difference_within(x, y, ratio_ci)
        checks = {"permutation_p": permutation_test(u, v), "a12": vargha_delaney_a12(x, y)}
        method = "ratio of geometric means, Welch's test of logarithms" if positive else "Welch's test of means"
    if positive:
        verdict = decide(ratio - 1, (ratio_ci[0] - 1, ratio_ci[1] - 1), n, margin, confidence)
    else:
        verdict = decide(difference, difference_ci, n, 0.0, confidence)
    again = partial(decide, n=n, confidence=confidence)
    verdict, caution = judged(verdict, a, b, paired, margin, difference, ratio, ratio_ci, again)
    found = ratio, ratio_ci, difference, difference_ci, p, effect, verdict
    about: Any = {"metric": a.metric_name, "unit": a.unit, "checks": {**checks, **dependence}, "caution": caution}
    method += ", of medians of batches" if min(len(x), len(y)) < n else ""
    about |= {"measured": a.measured and b.measured, "confidence": confidence, "margin": margin}
    first, second = pair_names(a, b, names)
    return Comparison(first, second, (a.count, b.count), paired, method, *found, **about)


def compare_all(
    results: Mapping[str, BenchmarkResult],
    paired: bool | None = None,
    margin: float = 0.0,
    confidence: float = 0.95,
    *,
    allow: Collection[str] = (),
) -> list[Comparison]:
    """Compare all pairs of several results, with p values corrected by Holm.

    Parameters
    ----------
    results
        Results by name, as `measure_latencies` returns them.
    paired, margin, confidence, allow
        See `compare`, also for what is raised. Each interval has this coverage by itself.

    Returns
    -------
    list of Comparison
        One per pair, in the order of `results`. Without significance after correction the verdict is undecided.
    """
    if len(results) < 2:
        raise ValueError(f"{len(results)} results; a comparison takes at least two")
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


def regression_gate(
    baseline: BenchmarkResult,
    candidate: BenchmarkResult,
    max_slowdown: float = 0.05,
    *,
    paired: bool | None = None,
    confidence: float = 0.95,
    allow: Collection[str] = (),
) -> Gate:
    """Judge whether a candidate is too much slower (or larger, or less accurate) than a baseline.

    Parameters
    ----------
    baseline, candidate
        Results of one metric, with positive values.
    max_slowdown
        Relative worsening that is still accepted: 0.05 for 5 %.
    paired, confidence, allow
        See `compare`, also for what is raised; `allow` may name each condition that the answer says to differ, too.

    Returns
    -------
    Gate
        ``passes`` if the whole interval of the slowdown is at most `max_slowdown`, ``fails`` if all of it is above,
        else ``cannot tell: needs n runs``. Every condition that differs is listed; with another governor, clock, dtype,
        mode or number of threads it cannot tell. Results of the same rounds compare round by round, others by the
        medians of their sessions (see `by_session`). Kalibera, Jones, ISMM (2013).
    """
    if max_slowdown < 0:
        raise ValueError(f"max_slowdown is {max_slowdown}; give the slowdown you accept as a fraction, such as 0.05")
    changes, blocking, allow = allowed_changes(baseline, candidate, allow)
    new, old, paired, values = gate_samples(candidate, baseline, paired)
    comparison = compare(new, old, paired, confidence=confidence, allow=allow)
    worse, better = (old, new) if candidate.metric_name in HIGHER_IS_BETTER else (new, old)
    slower = compare(worse, better, paired, confidence=confidence, allow=allow)
    if math.isnan(slower.ratio):
        raise ValueError("a gate takes positive values: a slowdown is a ratio")
    slowdown, interval = slower.ratio - 1, (slower.ratio_ci[0] - 1, slower.ratio_ci[1] - 1)
    needs = None
    if interval[1] <= max_slowdown:
        verdict = "passes"
    elif interval[0] > max_slowdown:
        verdict = "fails"
    else:
        half_width, distance = (interval[1] - interval[0]) / 2, abs(slowdown - max_slowdown)
        needs = max(min(slower.counts) + 1, runs_to_decide(min(slower.counts), half_width, distance, confidence))
        verdict = f"cannot tell: needs {needs} runs"
    return gate_answer(Gate(verdict, slowdown, interval, max_slowdown, needs, comparison), changes, blocking, values)


def sign_e_value(more: int, rounds: int) -> float:
    """Return the evidence against "in half of the rounds a exceeds b", valid however often one looks.

    `more` counts the rounds in which a exceeded b. The e value is 1 before the first round, and capped near 1e304.
    Robbins (1970); Ramdas, Grünwald, Vovk, Shafer, Statistical Science 38 (2023).
    """
    from scipy.special import betaln

    return math.exp(min(700.0, rounds * math.log(2) + float(betaln(more + 1, rounds - more + 1))))


def anytime_interval(values: Sequence[float], stop_at: float = 20.0) -> tuple[float, float]:
    """Return an interval of the median that holds at all sample sizes at once: two of the values, or −∞ to ∞.

    It keeps every median against which the e value is below `stop_at`, 1 / α. Howard, Ramdas, Bernoulli 28 (2022).
    """
    ordered, n = sorted(values), len(values)
    below = 0  # how many of the smallest values are refused as the median
    while below < n // 2 and sign_e_value(below, n) >= stop_at:
        below += 1
    return (ordered[below - 1], ordered[n - below]) if below else (-math.inf, math.inf)


def _live_summary(results: dict[str, BenchmarkResult], highest: float, stop_at: float, margin: float) -> Comparison:
    """Return the comparison of the rounds so far, with the anytime-valid interval and p value."""
    a, b = results.values()
    x, y = (np.maximum(result.values, 1e-12) for result in (a, b))  # a coarse clock may see no time pass
    logs, differences = np.log(x / y).tolist(), (x - y).tolist()
    ends, difference = anytime_interval(logs, stop_at), float(np.median(differences))
    ratio, ratio_ci = math.exp(float(np.median(logs))), (math.exp(ends[0]), math.exp(ends[1]))
    effect, confidence = cohens_d_paired(a.values, b.values) if a.count > 1 else 0.0, 1 - 1 / stop_at
    verdict = decide(ratio - 1, (ratio_ci[0] - 1, ratio_ci[1] - 1), a.count, margin, confidence)
    again = partial(decide, n=a.count, confidence=confidence)
    verdict, caution = judged(verdict, a, b, True, margin, difference, ratio, ratio_ci, again)
    checks = {"e_value": highest, **independent_values(a.values, b.values, True)[2]}
    found = ratio, ratio_ci, difference, anytime_interval(differences, stop_at), min(1.0, 1 / highest), effect, verdict
    about: Any = {"metric": "latency", "unit": "s", "checks": checks, "caution": caution}
    method = f"anytime-valid sign test, stops at e ≥ {stop_at:g}"
    first, second = pair_names(a, b, None)
    return Comparison(first, second, (a.count, b.count), True, method, *found, confidence, margin, **about)


def compare_live(
    models: Mapping[str, Any],
    inputs: Any,
    stop_at: float = 20.0,
    max_seconds: float = 10.0,
    *,
    margin: float = 0.0,
    warmup_runs: int = 5,
    seed: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
    setup: Callable[[Any], Any] | None = None,
    sync: Callable[[], Any] | None = None,
) -> Comparison:
    """Time two models in rounds until it is decided which is faster; looking after every round costs nothing.

    Parameters
    ----------
    models, inputs
        Two models by name, and one input for both or for each name; see `measure_latencies`.
    stop_at, max_seconds
        Evidence at which to stop, 1 / α (20 for 5 % false alarms), and time for warm-up and rounds, at least one.
    margin
        Stop as well once the ratio is known to lie within 1 ± margin.
    warmup_runs, seed, clock, setup, sync
        As in `measure_latencies`; the seed is that of the coin that orders each round.

    Returns
    -------
    Comparison
        Of the first model with the second; interval and p value hold whenever one stops. A ratio on which one stopped
        early is biased a little away from 1: to publish a number, measure again with a fixed number of rounds.

    Raises
    ------
    ValueError
        If an argument makes no sense. Exceptions and Ctrl-C among rounds carry the complete ones as ``error.results``.
    """
    check_live(models, stop_at, max_seconds, margin)
    subjects = ready(models, inputs, warmup_runs, clock, setup=setup, sync=sync, max_seconds=max_seconds)
    names, rng, stop = list(models), random.Random(seed), last_start(subjects)
    with Record(subjects, {"order": "a coin in each round", "seed": seed}) as record:
        times = [record.values[name] for name in names]
        more = less = above = below = 0
        highest = 1.0
        while True:
            for name in rng.sample(names, 2):
                record.add(name, subjects[name].measure())
            a, b, n = times[0][-1], times[1][-1], len(times[0])
            more, less = more + (a > b), less + (a < b)
            if 2 * max(more, less) > n:
                highest = max(highest, sign_e_value(max(more, less), n))
            above, below = above + (a > (1 - margin) * b), below + (a < (1 + margin) * b)
            inside = 2 * min(above, below) > n and sign_e_value(min(above, below), n) >= stop_at
            if inside or highest >= stop_at or clock() >= stop:
                break
    return _live_summary(record.results(), highest, stop_at, margin)

# Written by "autograder export" from modules/07_comparison/07_comparison.ipynb: edit the notebook, not this file.

"""Is A faster than B? Ratios with intervals, tests, effect sizes, verdicts, and a gate against regressions."""

from __future__ import annotations

import html
import math
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from tinybench.latency import inputs_by_model, prepare, timed_calls
from tinybench.result import BenchmarkResult, mean_and_std, percentile_interval, scale_unit

_HARDWARE = ("cpu_model", "cpu", "cores", "machine", "hostname")


def measurement_conditions(result: BenchmarkResult) -> dict[str, Any]:
    """Return what two results must share to be compared; None where a result does not say.

    Returns
    -------
    dict
        ``metric``, ``unit``, ``shape`` (of the input), ``machine`` (from ``metadata["machine"]``, else the hardware in
        ``metadata["system"]``) and ``measured`` (False for an estimate).
    """
    system = result.metadata.get("system")
    hardware = {key: system[key] for key in _HARDWARE if key in system} if isinstance(system, Mapping) else None
    return {
        "metric": result.metric_name,
        "unit": result.unit,
        "shape": result.metadata.get("input_shape"),
        "machine": result.metadata.get("machine", hardware or None),
        "measured": result.measured,
    }


def check_comparable(a: BenchmarkResult, b: BenchmarkResult, allow: Collection[str] = ()) -> None:
    """Refuse two results that were not measured under the same conditions.

    Parameters
    ----------
    a, b
        The results.
    allow
        Conditions that may differ: ``"metric"``, ``"unit"``, ``"shape"``, ``"machine"``, ``"measured"``.

    Raises
    ------
    ValueError
        If a condition that both results state differs and is not in `allow`, or `allow` names an unknown one.
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
    """Return the median of the paired ratios a/b with its order-statistic interval.

    Parameters
    ----------
    a, b
        Positive measurements of the same rounds, equally many.
    confidence
        Coverage of the interval.

    Returns
    -------
    tuple of float
        ``(ratio, lower, upper)``, taken on the log-ratios; ``lower`` is 0 and ``upper`` infinite where there are too
        few rounds for an interval (at 95 %: fewer than 6).

    Raises
    ------
    ValueError
        If the lengths differ or a value is not positive.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} values do not pair; measure both in the same rounds, or paired=False")
    if min(*a, *b) <= 0:
        raise ValueError("a ratio takes positive values; compare by the difference instead")
    logs = [math.log(x / y) for x, y in zip(a, b, strict=True)]
    low, high = median_interval(logs, confidence)
    return math.exp(float(np.median(logs))), math.exp(low), math.exp(high)


def median_interval(values: list[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return the order-statistic interval of the median, −∞ to ∞ where there are too few values for one."""
    try:
        return percentile_interval(values, 50, confidence)
    except ValueError:
        return -math.inf, math.inf


def average_ranks(values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks from 1, equal values sharing the mean of theirs, and the sizes of the groups of equal values."""
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse], counts


def sign_test(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the two-sided p value of "in half of the rounds a exceeds b".

    Parameters
    ----------
    a, b
        Measurements of the same rounds.

    Returns
    -------
    float
        Exact binomial p value, at most 1; ties count for neither side, so that it agrees with `median_ratio`.

    References
    ----------
    Arbuthnot, "An argument for divine providence", Philosophical Transactions 27 (1710): the first significance test.
    """
    from scipy.special import bdtrc

    differences = np.subtract(a, b)
    more = max(int(np.sum(differences > 0)), int(np.sum(differences < 0)))
    return min(1.0, 2 * float(bdtrc(more - 1, len(differences), 0.5)))


def wilcoxon_test(differences: Sequence[float]) -> float:
    """Return the two-sided p value of the signed-rank test, by the normal approximation.

    Parameters
    ----------
    differences
        Differences (or log-ratios) of the rounds; zeros are left out.

    Returns
    -------
    float
        The p value; 1.0 if all differences are zero.

    References
    ----------
    Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1 (1945).
    """
    kept = np.asarray([d for d in differences if d != 0])
    n = len(kept)
    if n == 0:
        return 1.0
    ranks, ties = average_ranks(np.abs(kept))
    variance = n * (n + 1) * (2 * n + 1) / 24 - float(np.sum(ties**3.0 - ties)) / 48
    z = (float(ranks[kept > 0].sum()) - n * (n + 1) / 4) / math.sqrt(variance)
    return math.erfc(abs(z) / math.sqrt(2))


def welch_test(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
    """Return t, degrees of freedom and two-sided p value of Welch's test of two means.

    Parameters
    ----------
    a, b
        Independent measurements, at least 2 each.

    Returns
    -------
    tuple of float
        ``(t, df, p)``; without any scatter, p is 1 for equal means and 0 otherwise.

    Raises
    ------
    ValueError
        If a sample has fewer than 2 values.

    References
    ----------
    Welch, "The generalization of 'Student's' problem when several different population variances are involved",
    Biometrika 34 (1947).
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
    """Return the intervals of the difference a − b and of the ratio a/b of two means.

    Parameters
    ----------
    a, b
        Independent measurements, at least 2 each.
    confidence
        Coverage of each interval.

    Returns
    -------
    tuple of tuple of float
        Welch's interval of the difference and Fieller's of the ratio, both with Welch's degrees of freedom: each leaves
        out "no difference" exactly when Welch's p value is below 1 − confidence. The ratio's is 0 to infinity where the
        mean of b is not distinguishable from 0.

    References
    ----------
    Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society B 16 (1954).
    """
    from scipy.special import stdtrit

    _, df, _ = welch_test(a, b)
    (mean_a, std_a), (mean_b, std_b) = mean_and_std(list(a)), mean_and_std(list(b))
    v_a, v_b = std_a**2 / len(a), std_b**2 / len(b)
    t = float(stdtrit(df, 0.5 + confidence / 2))
    half = t * math.sqrt(v_a + v_b)
    difference = (mean_a - mean_b - half, mean_a - mean_b + half)
    square = mean_b**2 - t**2 * v_b
    if square <= 0:
        return difference, (0.0, math.inf)
    root = t * math.sqrt(v_a * mean_b**2 + v_b * mean_a**2 - t**2 * v_a * v_b)
    return difference, ((mean_a * mean_b - root) / square, (mean_a * mean_b + root) / square)


def permutation_test(
    a: Sequence[float], b: Sequence[float], paired: bool = False, resamples: int = 2000, seed: int | None = 0
) -> float:
    """Return the two-sided p value of a permutation test of the difference of means.

    Parameters
    ----------
    a, b
        Measurements; of the same rounds if `paired`.
    paired
        Flip the signs of the rounds' differences instead of shuffling all values.
    resamples
        Number of shuffles.
    seed
        Seed of the shuffles.

    Returns
    -------
    float
        At least 1 / (resamples + 1).

    References
    ----------
    Phipson, Smyth, "Permutation p-values should never be zero", Statistical Applications in Genetics and Molecular
    Biology 9 (2010).
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
    """Return the difference of means in pooled standard deviations: about 0.2 is small, 0.8 large.

    Zero if there is neither a difference nor scatter, infinite if there is a difference without scatter.

    References
    ----------
    Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd ed. (1988), section 2.2.
    """
    (mean_a, std_a), (mean_b, std_b) = mean_and_std(list(a)), mean_and_std(list(b))
    freedom = len(a) + len(b) - 2
    pooled = math.sqrt(((len(a) - 1) * std_a**2 + (len(b) - 1) * std_b**2) / max(1, freedom))
    return _in_deviations(mean_a - mean_b, pooled)


def cohens_d_paired(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the mean difference of the rounds in standard deviations of that difference (Cohen's d_z)."""
    return _in_deviations(*mean_and_std([float(d) for d in np.subtract(a, b)]))


def vargha_delaney_a12(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the probability that a value of a exceeds one of b, ties counting half.

    References
    ----------
    Vargha, Delaney, "A critique and improvement of the CL common language effect size statistics of McGraw and Wong",
    Journal of Educational and Behavioral Statistics 25 (2000).
    """
    ranks, _ = average_ranks([*a, *b])
    return float((ranks[: len(a)].sum() / len(a) - (len(a) + 1) / 2) / len(b))


def _in_deviations(difference: float, std: float) -> float:
    """Return a difference in standard deviations, also where there is no scatter."""
    if std == 0:
        return 0.0 if difference == 0 else math.copysign(math.inf, difference)
    return difference / std


def anova(results: Mapping[str, BenchmarkResult] | Sequence[BenchmarkResult]) -> dict[str, float]:
    """Return the one-way analysis of variance: does any of several results differ in its mean?

    Parameters
    ----------
    results
        Two or more results of at least 2 values each, as `measure_latencies` returns them or as a list.

    Returns
    -------
    dict of str to float
        ``f``, ``p_value``, ``df_between``, ``df_within`` and ``eta_squared``, the share of variance the models explain.

    Raises
    ------
    ValueError
        If there are fewer than two results, a result has fewer than 2 values, or they do not compare.

    References
    ----------
    Fisher, "Statistical Methods for Research Workers" (1925), chapter 7.
    """
    groups = list(results.values()) if isinstance(results, Mapping) else list(results)
    if len(groups) < 2 or min(group.count for group in groups) < 2:
        raise ValueError("an analysis of variance takes two or more results of at least 2 values each")
    for group in groups[1:]:
        check_comparable(groups[0], group)
    from scipy.special import fdtrc

    total = sum(group.count for group in groups)
    grand = math.fsum(value for group in groups for value in group.values) / total
    between = math.fsum(group.count * (group.mean - grand) ** 2 for group in groups)
    within = math.fsum((group.count - 1) * group.std**2 for group in groups)
    df_between, df_within = len(groups) - 1, total - len(groups)
    f = _in_deviations(between / df_between, within / df_within)
    p = 0.0 if math.isinf(f) else float(fdtrc(df_between, df_within, f))
    share = between / (between + within) if between + within else 0.0
    return {"f": f, "p_value": p, "df_between": df_between, "df_within": df_within, "eta_squared": share}


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values: with these, the chance of any false alarm among all stays at the level.

    Parameters
    ----------
    p_values
        p values in any order.

    Returns
    -------
    list of float
        Adjusted p values in the same order.

    Raises
    ------
    ValueError
        If a p value is not between 0 and 1.

    References
    ----------
    Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).
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
    """Return how many runs in all make an interval exclude a limit, given its half-width now.

    Parameters
    ----------
    n
        Runs so far.
    half_width
        Half-width of the interval now; infinite if there is none yet.
    distance
        Distance of the estimate from the limit, in the same unit.
    confidence
        Coverage of the interval.
    power
        Probability with which that many runs suffice, if the estimate is right.

    Returns
    -------
    int
        At least 6, where intervals of the median begin (at 95 %); at most a thousand million.
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
    """Return the verdict on a change and its interval.

    Parameters
    ----------
    change
        Estimate: negative is less (faster).
    interval
        Its ends.
    n
        Number of rounds behind it.
    margin
        A change between −margin and margin does not matter.
    confidence
        Coverage of the interval.

    Returns
    -------
    str
        ``"equivalent"`` (checked first), ``"faster"``, ``"slower"`` or ``"undecided: needs about 120 more rounds"``.
        The number is for the nearest way out: excluding 0, or fitting inside the margin.
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


def _words(metric: str, unit: str) -> tuple[str, str]:
    """Return what to call less and more of a metric."""
    if metric == "throughput":
        return "slower", "faster"
    return ("faster", "slower") if unit == "s" else ("lower", "higher")


def _in_percent(comparison: Comparison) -> tuple[float, tuple[float, float], str]:
    """Return change, its interval and ``"%"``; the difference in a readable unit where there is no ratio."""
    if math.isnan(comparison.ratio):
        factor, unit = scale_unit(comparison.difference, comparison.unit)
        low, high = comparison.difference_ci
        return comparison.difference / factor, (low / factor, high / factor), unit
    low, high = comparison.ratio_ci
    return 100 * (comparison.ratio - 1), (100 * (low - 1), 100 * (high - 1)), "%"


def _number(value: float, ends: tuple[float, float]) -> str:
    """Return a number with the digits that an interval of this width deserves: 41 for 38–44, 2.3 for 1.1–3.2."""
    width = ends[1] - ends[0]
    places = min(3, max(0, -math.floor(math.log10(width / 5)))) if 0 < width < 5 else 0
    return f"{round(value, places) + 0.0:.{places}f}".replace("-", "−")  # + 0.0 turns −0 into 0


def _span(ends: tuple[float, float], unit: str) -> str:
    """Return ``38–44 %``, or ``−1.2 to 3.4 %`` where a sign is in the way."""
    low, high = (_number(end, ends) for end in ends)
    return f"{low}{'–' if ends[0] >= 0 else ' to '}{high} {unit}".rstrip()


@dataclass(frozen=True)
class Comparison:
    """What two results say about each other; ``str`` gives it as a sentence.

    Parameters
    ----------
    name_a, name_b
        The models.
    counts
        Measurements of a and of b; equal if `paired`.
    paired
        Whether rounds were compared one by one.
    method
        How the interval and the p value came about.
    ratio, ratio_ci
        a / b with its interval; NaN where values are not all positive.
    difference, difference_ci
        a − b with its interval, in `unit`.
    p_value
        Two-sided; corrected if `corrected_for` is above 1.
    effect_size
        Cohen's d, of the rounds' differences if `paired`.
    verdict
        About a, seen from b: ``"faster"`` or ``"slower"`` (``"lower"`` or ``"higher"`` if not about time),
        ``"equivalent"`` or ``"undecided: needs about n more rounds"``.
    confidence, margin
        Coverage of the intervals, and the relative change that does not matter.
    metric, unit
        What was measured.
    corrected_for
        Number of comparisons the p value is corrected for.
    checks
        Second opinions: p values of other tests, A12, and what else the method has to say.
    measured
        False if one of the results is an estimate.
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

    def __str__(self) -> str:
        """Return ``int8 is 41 % faster than fp32 (95 % CI 38–44 %, p < 0.001, n = 30)``.

        41 % faster means 41 % less time; from twice the time on it says ``a takes 3.4 times as long as b``. Others are
        ``a and b are equivalent within ± 2 % (change 0.3 %, 95 % CI −0.5 to 1.1 %, p = 0.4, n = 30)`` and
        ``a against b is undecided: needs about 80 more rounds (change …)``. An infinite interval is not written as one:
        ``(change −50 %, no finite interval, p = 0.25, n = 3)``.
        """
        change, ends, unit = _in_percent(self)
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"
        n = f"n = {self.counts[0]}" if self.paired else f"n = {self.counts[0]} + {self.counts[1]}"
        if self.corrected_for > 1:
            p += f" after Holm over {self.corrected_for}"
        if not self.measured:
            n += ", partly an estimate"
        if self.verdict in ("slower", "higher") and self.ratio >= 2:  # 1204 % slower says nobody
            times, kind = _span(self.ratio_ci, ""), "takes {} times as long as" if self.unit == "s" else "is {} times"
            level = f"{100 * self.confidence:.3g} % CI {times}"
            return f"{self.name_a} {kind.format(_number(self.ratio, self.ratio_ci))} {self.name_b} ({level}, {p}, {n})"
        decided = self.verdict != "equivalent" and not self.verdict.startswith("undecided")
        if decided and change < 0:  # "41 % faster" is said with a positive number
            change, ends = -change, (-ends[1], -ends[0])
        amount = f"{_number(change, ends)} {unit}".rstrip()
        interval = "no finite interval"
        if math.isfinite(ends[1] - ends[0]):
            interval = f"{100 * self.confidence:.3g} % CI {_span(ends, unit)}"
        if decided:
            return f"{self.name_a} is {amount} {self.verdict} than {self.name_b} ({interval}, {p}, {n})"
        details = f"(change {amount}, {interval}, {p}, {n})"
        if self.verdict == "equivalent":
            return f"{self.name_a} and {self.name_b} are equivalent within ± {100 * self.margin:.3g} % {details}"
        return f"{self.name_a} against {self.name_b} is {self.verdict} {details}"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and the sentence as plain data for ``json.dumps``; what is not finite becomes None."""

        def plain(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: plain(item) for key, item in value.items()}
            if isinstance(value, tuple):
                return [plain(item) for item in value]
            return None if isinstance(value, float) and not math.isfinite(value) else value

        return {**{name: plain(value) for name, value in asdict(self).items()}, "sentence": str(self)}

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the comparison as an accessible HTML table and as a sentence."""
        factor, scaled = scale_unit(self.difference, self.unit)
        low, high = (end / factor for end in self.difference_ci)
        level = f"{100 * self.confidence:.3g} %"
        ratio_low, ratio_high = self.ratio_ci
        rows = {
            "verdict": self.verdict,
            f"{self.name_a} / {self.name_b}": f"{self.ratio:.4g} ({level} CI {ratio_low:.4g} to {ratio_high:.4g})",
            "difference": f"{self.difference / factor:.3g} {scaled} ({level} CI {low:.3g} to {high:.3g} {scaled})",
            "p value": f"{self.p_value:.2g}",
            "effect size (Cohen's d)": f"{self.effect_size:.2f}",
            **{name.replace("_", " "): f"{value:.3g}" for name, value in self.checks.items()},
            "measurements": f"{self.counts[0]} rounds" if self.paired else f"{self.counts[0]} and {self.counts[1]}",
            "method": self.method,
        }
        body = "".join(
            f'<tr><th scope="row" style="text-align:left">{html.escape(k)}</th><td>{html.escape(v)}</td></tr>'
            for k, v in rows.items()
        )
        table = f"<table><caption>{html.escape(str(self))}</caption><tbody>{body}</tbody></table>"
        return {"text/plain": str(self), "text/html": table}


def _as_result(values: BenchmarkResult | Sequence[float]) -> BenchmarkResult:
    """Return plain measurements as a result."""
    return values if isinstance(values, BenchmarkResult) else BenchmarkResult("measurement", list(values))


def _same_rounds(a: BenchmarkResult, b: BenchmarkResult) -> bool:
    """Whether both results come from the same rounds of one `measure_latencies`."""
    mark = a.metadata.get("pairing")
    return mark is not None and mark == b.metadata.get("pairing") and a.count == b.count


def _names(a: BenchmarkResult, b: BenchmarkResult, names: tuple[str, str] | None) -> tuple[str, str]:
    """Return what to call the two."""
    if names is not None:
        return names
    first, second = str(a.metadata.get("model", "a")), str(b.metadata.get("model", "b"))
    return (first, second) if first != second else (f"{first} (first)", f"{second} (second)")


def _in_words(verdict: str, metric: str, unit: str) -> str:
    """Return a verdict on less or more in the words of its metric."""
    return dict(zip(("faster", "slower"), _words(metric, unit), strict=True)).get(verdict, verdict)


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
        Compare round by round. By default, if both come from the same interleaved session of `measure_latencies`.
    margin
        Relative change that does not matter: 0.02 for ± 2 %.
    confidence
        Coverage of the intervals; the verdict's level is 1 − confidence.
    names
        What to call them; by default the models of their metadata.
    allow
        Conditions that may differ; see `check_comparable`.

    Returns
    -------
    Comparison
        For pairs the median ratio with its order-statistic interval and the sign test, otherwise the ratio of means
        with Fieller's interval and Welch's test. Interval and p value always agree.

    Raises
    ------
    ValueError
        If the results do not compare, do not pair, or are too few; if `margin` or `confidence` makes no sense.
    """
    a, b = _as_result(a), _as_result(b)
    check_comparable(a, b, allow)
    if not 0 <= margin < 1:
        raise ValueError(f"margin is {margin}; it is a fraction from 0 up to 1, such as 0.02 for ± 2 %")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must lie between 0 and 1, such as 0.95")
    x, y = a.values, b.values
    positive = min(*x, *y) > 0
    if margin and not positive:
        raise ValueError("a margin is relative, and a value at or below 0 has no ratio; use margin=0")
    paired = _same_rounds(a, b) if paired is None else paired
    if paired and len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y)} values do not pair; measure both in the same rounds, or paired=False")
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
        p, effect = welch_test(x, y)[2], cohens_d(x, y)
        difference = a.mean - b.mean
        difference_ci, fieller = welch_intervals(x, y, confidence)
        if positive:
            ratio, ratio_ci = a.mean / b.mean, fieller
        checks = {"permutation_p": permutation_test(x, y), "a12": vargha_delaney_a12(x, y)}
        method = "ratio of means with Fieller's interval, Welch's test"
    n = min(len(x), len(y))
    if positive and (paired or math.isfinite(ratio_ci[1])):
        verdict = decide(ratio - 1, (ratio_ci[0] - 1, ratio_ci[1] - 1), n, margin, confidence)
    else:
        verdict = decide(difference, difference_ci, n, 0.0, confidence)
    return Comparison(
        *_names(a, b, names),
        counts=(len(x), len(y)),
        paired=paired,
        method=method,
        ratio=ratio,
        ratio_ci=ratio_ci,
        difference=difference,
        difference_ci=difference_ci,
        p_value=p,
        effect_size=effect,
        verdict=_in_words(verdict, a.metric_name, a.unit),
        confidence=confidence,
        margin=margin,
        metric=a.metric_name,
        unit=a.unit,
        checks=checks,
        measured=a.measured and b.measured,
    )


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
        See `compare`. Each interval has this coverage by itself.

    Returns
    -------
    list of Comparison
        One per pair, in the order of `results`. Without significance after correction the verdict is undecided.

    Raises
    ------
    ValueError
        If there are fewer than two results, or two do not compare.
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
        if p > 1 - confidence and verdict in _words(comparison.metric, comparison.unit):
            verdict = "undecided: not significant after correction"
        corrected.append(replace(comparison, p_value=p, verdict=verdict, corrected_for=len(found)))
    return corrected


_HIGHER_IS_BETTER = ("accuracy", "balanced_accuracy", "recall", "throughput")


@dataclass(frozen=True)
class Gate:
    """The answer of `regression_gate`; ``str`` gives it as a sentence.

    Parameters
    ----------
    verdict
        ``"passes"``, ``"fails"`` or ``"cannot tell: needs 120 runs"``.
    slowdown, interval
        Relative slowdown of the candidate, and its interval.
    max_slowdown
        The limit.
    needs
        Runs in all that would probably decide; None once decided.
    comparison
        The comparison of the candidate with the baseline.
    """

    verdict: str
    slowdown: float
    interval: tuple[float, float]
    max_slowdown: float
    needs: int | None
    comparison: Comparison

    def __str__(self) -> str:
        """Return the verdict with limit and comparison."""
        return f"{self.verdict} (limit {100 * self.max_slowdown:.3g} % slowdown): {self.comparison}"


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
        Results of one metric.
    max_slowdown
        Relative worsening that is still accepted: 0.05 for 5 %.
    paired, confidence, allow
        See `compare`.

    Returns
    -------
    Gate
        ``passes`` if the whole interval of the slowdown is at most `max_slowdown`, ``fails`` if all of it is above,
        else ``cannot tell: needs n runs``.

    Raises
    ------
    ValueError
        If the results do not compare, a value is not positive, or `max_slowdown` is negative.
    """
    if max_slowdown < 0:
        raise ValueError(f"max_slowdown is {max_slowdown}; give the slowdown you accept as a fraction, such as 0.05")
    worse, better = (baseline, candidate) if candidate.metric_name in _HIGHER_IS_BETTER else (candidate, baseline)
    comparison = compare(candidate, baseline, paired, confidence=confidence, allow=allow)
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
    return Gate(verdict, slowdown, interval, max_slowdown, needs, comparison)


def sign_e_value(more: int, rounds: int) -> float:
    """Return the evidence against "in half of the rounds a exceeds b", valid however often one looks.

    Parameters
    ----------
    more
        Rounds in which a exceeded b.
    rounds
        All rounds.

    Returns
    -------
    float
        The e value, 1 before the first round; capped near 1e304.

    References
    ----------
    Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of Mathematical Statistics 41
    (1970). Ramdas, Grünwald, Vovk, Shafer, "Game-theoretic statistics and safe anytime-valid inference", Statistical
    Science 38 (2023).
    """
    from scipy.special import betaln

    return math.exp(min(700.0, rounds * math.log(2) + float(betaln(more + 1, rounds - more + 1))))


def anytime_interval(values: Sequence[float], stop_at: float = 20.0) -> tuple[float, float]:
    """Return an interval of the median that holds at all sample sizes at once.

    Parameters
    ----------
    values
        Independent values, such as log-ratios of rounds.
    stop_at
        1 / α: the interval keeps every median against which the e value is below.

    Returns
    -------
    tuple of float
        Two of the values, or −∞ and ∞ while there are too few.

    References
    ----------
    Howard, Ramdas, "Sequential estimation of quantiles with applications to A/B testing and best-arm identification",
    Bernoulli 28 (2022).
    """
    ordered, n = sorted(values), len(values)
    below = 0  # how many of the smallest values are refused as the median
    while below < n // 2 and sign_e_value(below, n) >= stop_at:
        below += 1
    return (ordered[below - 1], ordered[n - below]) if below else (-math.inf, math.inf)


def _live_summary(
    names: Sequence[str], times: Sequence[list[float]], highest: float, stop_at: float, margin: float
) -> Comparison:
    """Return the comparison of the rounds so far, with the anytime-valid interval and p value."""
    a, b = times
    logs = [math.log(x / y) for x, y in zip(a, b, strict=True)]
    differences = [x - y for x, y in zip(a, b, strict=True)]
    ends = anytime_interval(logs, stop_at)
    ratio, ratio_ci = math.exp(float(np.median(logs))), (math.exp(ends[0]), math.exp(ends[1]))
    confidence = 1 - 1 / stop_at
    return Comparison(
        names[0],
        names[1],
        counts=(len(a), len(b)),
        paired=True,
        method=f"anytime-valid sign test, stops at e ≥ {stop_at:g}",
        ratio=ratio,
        ratio_ci=ratio_ci,
        difference=float(np.median(differences)),
        difference_ci=anytime_interval(differences, stop_at),
        p_value=min(1.0, 1 / highest),
        effect_size=cohens_d_paired(a, b) if len(a) > 1 else 0.0,
        verdict=decide(ratio - 1, (ratio_ci[0] - 1, ratio_ci[1] - 1), len(a), margin, confidence),
        confidence=confidence,
        margin=margin,
        metric="latency",
        unit="s",
        checks={"e_value": highest},
    )


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
) -> Comparison:
    """Time two models in rounds until it is decided which is faster; looking after every round costs nothing.

    Parameters
    ----------
    models
        Two models by name, see `tinybench.latency.as_callable`.
    inputs
        One input for both, or a dictionary with one for each name.
    stop_at
        Evidence at which to stop: 1 / α, so 20 for 5 % false alarms.
    max_seconds
        Stop undecided after this time (the warm-up comes on top).
    margin
        Stop as well once the ratio is known to lie within 1 ± margin.
    warmup_runs
        At least so many untimed calls of each model.
    seed
        Seed of the coin that orders each round.
    clock
        Returns seconds.

    Returns
    -------
    Comparison
        Of the first model with the second; its interval and p value hold whenever one stops. A ratio on which one
        stopped early is biased a little away from 1: to publish a number, measure again with a fixed number of rounds.

    Raises
    ------
    ValueError
        If there are not two models, `stop_at` is not above 1, `max_seconds` not positive or `margin` not from 0 to 1.
    """
    if len(models) != 2:
        raise ValueError(f"{len(models)} models; compare_live takes two, measure_latencies and compare_all take more")
    if not stop_at > 1:
        raise ValueError(f"stop_at is {stop_at}; evidence starts at 1 and 20 stands for 5 % false alarms")
    if not max_seconds > 0:
        raise ValueError(f"max_seconds is {max_seconds}; it must be positive")
    if not 0 <= margin < 1:
        raise ValueError(f"margin is {margin}; it is a fraction from 0 up to 1, such as 0.02 for ± 2 %")
    arrays = inputs_by_model(models, inputs)
    names = list(models)
    ready = [prepare(models[name], arrays[name], warmup_runs, clock) for name in names]
    rng = random.Random(seed)
    times: tuple[list[float], list[float]] = ([], [])
    more = less = above = below = 0
    highest, began = 1.0, clock()
    while True:
        for index in rng.sample((0, 1), 2):
            call, loops, _ = ready[index]
            times[index].extend(timed_calls(call, arrays[names[index]], 1, clock, loops))
        a, b, n = times[0][-1], times[1][-1], len(times[0])
        more, less = more + (a > b), less + (a < b)
        if 2 * max(more, less) > n:
            highest = max(highest, sign_e_value(max(more, less), n))
        above, below = above + (a > (1 - margin) * b), below + (a < (1 + margin) * b)
        inside = 2 * min(above, below) > n and sign_e_value(min(above, below), n) >= stop_at
        if inside or highest >= stop_at or clock() - began >= max_seconds:
            break
    return _live_summary(names, times, highest, stop_at, margin)

"""Statistics of two samples: checks that they are comparable or paired, and tests of independent or batched samples."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult, mean_and_std, percentile_interval, t_interval
from tinybench.support.basics.arguments import check_confidence, check_pairs, check_positive, check_share
from tinybench.support.comparisons.optional_toolbox import from_toolbox

FEW_BATCHES = 12  # with this many batches or more, the sign test can give p-values below 0.001
_HARDWARE = ("cpu_model", "cpu", "cores", "machine", "hostname")


def measurement_conditions(result: BenchmarkResult) -> dict[str, Any]:
    """Return the conditions that must be equal in comparable results: metric, unit, shape, machine and `measured`.

    None means unknown.
    """
    system, named = result.metadata.get("system"), result.metadata.get("machine")
    hardware = {key: system[key] for key in _HARDWARE if key in system} if isinstance(system, Mapping) else None
    return {
        "metric": result.metric_name,
        "unit": result.unit,
        "shape": result.metadata.get("input_shape"),
        "machine": hardware or None if named is None or isinstance(named, Mapping) else named,  # a mapping is a verdict
        "measured": result.measured,
    }


def check_comparable(a: BenchmarkResult, b: BenchmarkResult, allow: Collection[str] = ()) -> None:
    """Raise ValueError if two results state different values of a measurement condition, or name groups of rows.

    `allow` names the `measurement_conditions` that may differ. If `allow` contains an unknown name, raise ValueError.
    """
    if "groups" in a.metadata or "groups" in b.metadata:
        raise ValueError(
            "accuracies of grouped rows are compared by groups, which their values do not show; use "
            "compare_models('accuracy') of a Benchmark, or mcnemar(y, pred_a, pred_b, groups)"
        )
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


def check_ratios(a: Sequence[float], b: Sequence[float]) -> None:
    """Raise ValueError unless `a` and `b` pair and all their values are finite and positive."""
    check_pairs(a=a, b=b)
    if min(*a, *b) <= 0:
        raise ValueError("a ratio takes positive values; compare by the difference instead")


def check_plan(n: int, distance: float, confidence: float, power: float) -> None:
    """Raise ValueError unless these arguments of `tinybench.comparison.runs_to_decide` are in range."""
    check_positive(n=n)
    check_share(power=power)
    check_confidence(confidence)
    if math.isnan(distance):
        raise ValueError("distance is nan; give that of the estimate from the limit")


def check_wins(more: int, rounds: int) -> None:
    """Raise ValueError unless `more` is a count from 0 to `rounds`."""
    if not 0 <= more <= rounds < math.inf:
        raise ValueError(f"more is {more} and rounds is {rounds}; give two counts, more no larger than rounds")


def median_interval(values: list[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return the order-statistic interval of the median, or −∞ to ∞ if there are too few values.

    Raise ValueError unless 0 < `confidence` ≤ 1. With confidence 1, the interval is unbounded.
    """
    check_confidence(confidence)
    try:
        return percentile_interval(values, 50, confidence)
    except ValueError:
        return -math.inf, math.inf


def bounded_exp(x: float) -> float:
    """Return exp(x). For finite x, keep the result between 1e-304 and 1e304, so no interval ends at 0 or infinity."""
    return math.exp(max(-700.0, min(700.0, x)) if math.isfinite(x) else x)


def scatters(values: Sequence[float]) -> bool:
    """Return whether values differ by more than rounding errors, so that their standard deviation is meaningful."""
    return float(np.ptp(values)) > 1e-14 * float(np.max(np.abs(values)))


def difference_within(
    a: Sequence[float], b: Sequence[float], ratio_ci: tuple[float, float], paired: bool = False
) -> tuple[float, tuple[float, float]]:
    """Return the difference of two geometric means, and its interval.

    The width of `ratio_ci`, the interval of the ratio, determines a confidence ellipse for the two means. The interval
    of the difference covers the differences of all pairs of means in this ellipse. Thus it excludes 0 exactly when
    `ratio_ci` excludes 1. If `paired`, the ellipse takes the covariance of both samples into account.
    """
    u, v = np.log(a), np.log(b)
    (error_u, error_v), shared = (math.sqrt(float(np.var(w)) / max(1, len(w) - 1)) for w in (u, v)), 0.0
    if paired and error_u:
        shared = float(np.mean((u - u.mean()) * (v - v.mean()))) / max(1, len(u) - 1) / error_u
        error_v = math.sqrt(max(0.0, error_v**2 - shared**2))  # Cholesky: the part of b that is uncorrelated with a
    reach = (math.log(ratio_ci[1]) - math.log(ratio_ci[0])) / 2 / (math.hypot(error_u - shared, error_v) or 1.0)
    angles = math.atan2(-error_v, error_u - shared) + np.linspace(0, 2 * math.pi, 7201)  # includes the extreme ratios
    means_a = np.clip(u.mean() + reach * error_u * np.cos(angles), -700, 700)
    means_b = np.clip(v.mean() + reach * (shared * np.cos(angles) + error_v * np.sin(angles)), -700, 700)
    differences = np.exp(means_a) - np.exp(means_b)
    middle = bounded_exp(float(u.mean())) - bounded_exp(float(v.mean()))
    return middle, (min(middle, float(differences.min())), max(middle, float(differences.max())))


def check_margin(margin: float, confidence: float = 0.95) -> None:
    """Raise ValueError unless 0 ≤ `margin` < 1 and 0 < `confidence` < 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must lie between 0 and 1, such as 0.95")
    if not 0 <= margin < 1:
        raise ValueError(f"margin is {margin}; it is a fraction from 0 up to 1, such as 0.02 for ± 2 %")


def as_result(values: BenchmarkResult | Sequence[float]) -> BenchmarkResult:
    """Return plain measurements as a BenchmarkResult. Return a BenchmarkResult unchanged."""
    return values if isinstance(values, BenchmarkResult) else BenchmarkResult("measurement", list(values))


def same_rounds(a: BenchmarkResult, b: BenchmarkResult) -> bool:
    """Return whether both results come from the same rounds of one call of `measure_latencies`."""
    mark = a.metadata.get("pairing")
    return mark is not None and mark == b.metadata.get("pairing") and a.count == b.count


def pair_names(a: BenchmarkResult, b: BenchmarkResult, names: tuple[str, str] | None) -> tuple[str, str]:
    """Return `names` or, if it is None, the names of the two models. Equal names get the suffix (first) or (second)."""
    if names is not None:
        return names
    first, second = str(a.metadata.get("model", "a")), str(b.metadata.get("model", "b"))
    return (first, second) if first != second else (f"{first} (first)", f"{second} (second)")


def by_ranks(x: Sequence[float], y: Sequence[float], confidence: float = 0.95) -> tuple[float, tuple[float, float]]:
    """Return a two-sided p-value and an interval of the difference, if the scatter within a sample cannot be estimated.

    If all values of one sample lie above all values of the other, the p-value is the smallest that a rank test can
    give, 2 / C(n + m, n). Otherwise the p-value is 1. The interval contains all differences between a value of x and a
    value of y. With too few values, the interval is −∞ to ∞. If a sample has a single value, nothing is known about the
    scatter, so the p-value is 1 and the interval is −∞ to ∞.
    """
    if min(len(x), len(y)) < 2:
        return 1.0, (-math.inf, math.inf)
    least = max(2 / math.comb(len(x) + len(y), len(x)), 1e-300)
    low, high = min(x) - max(y), max(x) - min(y)
    ends = (low, high) if least <= 1 - confidence else (-math.inf, math.inf)
    return least if low > 0 or high < 0 else 1.0, ends


def welch(x: Sequence[float], y: Sequence[float], confidence: float = 0.95) -> tuple[float, tuple[float, float]]:
    """Return Welch's two-sided p-value and the interval of the difference of two means.

    If all values of a sample are equal, its scatter is unknown, and the result is that of `by_ranks`. See Welch,
    Biometrika 34 (1947).
    """
    from scipy.special import stdtr, stdtrit

    n, m = len(x), len(y)
    if not (scatters(x) and scatters(y)):
        return by_ranks(x, y, confidence)
    (mean_x, std_x), (mean_y, std_y) = mean_and_std(list(x)), mean_and_std(list(y))
    v, w, difference = std_x**2 / n, std_y**2 / m, mean_x - mean_y
    df = (v + w) ** 2 / (v**2 / (n - 1) + w**2 / (m - 1))
    half = float(stdtrit(df, 0.5 + confidence / 2)) * math.sqrt(v + w)
    return 2 * float(stdtr(df, -abs(difference) / math.sqrt(v + w))), (difference - half, difference + half)


def compare_apart(x: Sequence[float], y: Sequence[float], confidence: float = 0.95) -> dict[str, Any]:
    """Compare independent samples x and y. Return a result with the keys of `tinybench.comparison.compare_rounds`.

    The ratio is the ratio of the geometric means. The p-value and the interval come from Welch's test of logarithms.
    The interval of the ratio excludes 1 exactly when p is below 1 − `confidence`, and its bounds are positive and
    finite. In contrast, Fieller's interval of the ratio of arithmetic means covers 88 to 99 % instead of 95 % for
    widely scattered latencies, and may reach below 0.
    """
    if min(*x, *y) <= 0:
        p, ends = welch(x, y, confidence)
        found = {"ratio": math.nan, "ratio_ci": (math.nan, math.nan), "p_value": p}
        return found | {"difference": float(np.mean(x) - np.mean(y)), "difference_ci": ends}
    u, v = [math.log(d) for d in x], [math.log(d) for d in y]
    p, (low, high) = welch(u, v, confidence)
    ratio_ci = bounded_exp(low), bounded_exp(high)
    if scatters(u) and scatters(v):
        difference, ends = difference_within(x, y, ratio_ci)
    else:
        difference, ends = (
            bounded_exp(float(np.mean(u))) - bounded_exp(float(np.mean(v))),
            by_ranks(x, y, confidence)[1],
        )
    found = {"ratio": math.exp(float(np.mean(u) - np.mean(v))), "ratio_ci": ratio_ci, "p_value": p}
    return found | {"difference": difference, "difference_ci": ends}


def few_batches(x: Sequence[float], y: Sequence[float], rounds: int) -> bool:
    """Return whether the paired values are batches of rounds, but too few batches for a sign test.

    With so few values, a sign test cannot give p below 0.001. If all differences are equal, return False.
    """
    return len(x) < min(rounds, FEW_BATCHES) and len(np.unique(np.subtract(x, y))) > 1


def compare_batches(x: Sequence[float], y: Sequence[float], confidence: float = 0.95) -> dict[str, Any]:
    """Compare x with y over a few batches of common rounds. Return a result with the keys of `compare_rounds`.

    The ratio is the geometric mean of the batches' ratios. The p-value and the interval come from Student's t test of
    their logarithms. Unlike in a sign test, few batches do not limit how small the p-value can be. The test is valid
    for as few as 4 batches, even if their variances differ. See Ibragimov, Müller, Journal of Business & Economic
    Statistics 28 (2010).
    """
    if min(*x, *y) <= 0:
        p, difference, ends = _t_test([float(gap) for gap in np.subtract(x, y)], confidence)
        found = {"ratio": math.nan, "ratio_ci": (math.nan, math.nan), "p_value": p}
        return found | {"difference": difference, "difference_ci": ends}
    p, middle, (low, high) = _t_test([math.log(a / b) for a, b in zip(x, y, strict=True)], confidence)
    ratio_ci = bounded_exp(low), bounded_exp(high)
    difference, ends = difference_within(x, y, ratio_ci, paired=True)
    found = {"ratio": bounded_exp(middle), "ratio_ci": ratio_ci, "p_value": p}
    return found | {"difference": difference, "difference_ci": ends}


def _t_test(values: list[float], confidence: float) -> tuple[float, float, tuple[float, float]]:
    """Return the two-sided p-value of Student's test that the mean is 0, the mean, and the interval of the mean."""
    from scipy.special import stdtr

    mean, std = mean_and_std(values)
    t = abs(mean) * math.sqrt(len(values)) / std if std else math.inf
    return 2 * float(stdtr(len(values) - 1, -t)), mean, t_interval(values, confidence)


def smallest_p(p: float, rounds: int) -> dict[str, float]:
    """Return ``{"smallest_p": p}`` if `p` is the smallest p-value of a sign test over `rounds` rounds, else ``{}``.

    With 11 or more rounds, the smallest p-value is below 0.001, so this entry is not needed.
    """
    least = 2.0 ** (1 - rounds)
    return {"smallest_p": least} if 0.001 <= least < 1 and math.isclose(p, least) else {}


def second_opinions(x: Sequence[float], y: Sequence[float], paired: bool) -> tuple[float, dict[str, float]]:
    """Return Cohen's d, and a dictionary with Vargha and Delaney's A12 and the p-value of another test.

    The other test is the Wilcoxon test for `paired` values, and a permutation test for independent values.

    If a sample has a single value, or if the toolbox is not built, return NaN and {}.
    """
    if from_toolbox("cohens_d") is None or min(len(x), len(y)) < 2:
        return math.nan, {}
    u, v = (np.log(x), np.log(y)) if min(*x, *y) > 0 else (np.asarray(x), np.asarray(y))
    if paired:
        effect, other = from_toolbox("cohens_d_paired")(x, y), {"wilcoxon_p": from_toolbox("wilcoxon_test")(u - v)}
    else:
        effect, other = from_toolbox("cohens_d")(x, y), {"permutation_p": from_toolbox("permutation_test")(u, v)}
    return effect, other | {"a12": from_toolbox("vargha_delaney_a12")(x, y)}

# Written by "autograder export" from modules/07_comparison/07_comparison.ipynb: edit the notebook, not this file.

"""Two samples: whether they may be compared and pair, what to call them, ranks and scatter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult, percentile_interval

_HARDWARE = ("cpu_model", "cpu", "cores", "machine", "hostname")


def measurement_conditions(result: BenchmarkResult) -> dict[str, Any]:
    """Return what compared results share: metric, unit, shape, machine, measured; None where a result does not say."""
    system = result.metadata.get("system")
    hardware = {key: system[key] for key in _HARDWARE if key in system} if isinstance(system, Mapping) else None
    return {
        "metric": result.metric_name,
        "unit": result.unit,
        "shape": result.metadata.get("input_shape"),
        "machine": result.metadata.get("machine", hardware or None),
        "measured": result.measured,
    }


def median_interval(values: list[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return the order-statistic interval of the median, −∞ to ∞ where there are too few values for one."""
    try:
        return percentile_interval(values, 50, confidence)
    except ValueError:
        return -math.inf, math.inf


def bounded_exp(x: float) -> float:
    """Return exp(x), kept between 1e-304 and 1e304: an end of a ratio is neither 0 nor infinite."""
    return math.exp(max(-700.0, min(700.0, x)))


def difference_within(
    a: Sequence[float], b: Sequence[float], ratio_ci: tuple[float, float]
) -> tuple[float, tuple[float, float]]:
    """Return the difference of two geometric means, and its interval: both ends of it over all pairs of means within
    the ellipse that gave the interval of their ratio, so that one leaves out 0 exactly when the other leaves out 1.
    """
    u, v = np.log(a), np.log(b)
    error_u, error_v = (math.sqrt(float(np.var(w)) / max(1, len(w) - 1)) for w in (u, v))
    reach = (math.log(ratio_ci[1]) - math.log(ratio_ci[0])) / 2 / (math.hypot(error_u, error_v) or 1.0)
    angles = math.atan2(-error_v, error_u) + np.linspace(0, 2 * math.pi, 7201)  # the farthest ratios are among them
    means_a = np.clip(u.mean() + reach * error_u * np.cos(angles), -700, 700)
    means_b = np.clip(v.mean() + reach * error_v * np.sin(angles), -700, 700)
    differences = np.exp(means_a) - np.exp(means_b)
    middle = bounded_exp(float(u.mean())) - bounded_exp(float(v.mean()))
    return middle, (min(middle, float(differences.min())), max(middle, float(differences.max())))


def average_ranks(values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks from 1, equal values sharing the mean of theirs, and the sizes of the groups of equal values."""
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse], counts


def in_deviations(difference: float, std: float) -> float:
    """Return a difference in standard deviations, also where there is no scatter."""
    if std == 0:
        return 0.0 if difference == 0 else math.copysign(math.inf, difference)
    return difference / std


def check_margin(margin: float, confidence: float = 0.95) -> None:
    """Raise ValueError unless a margin and a confidence are fractions."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must lie between 0 and 1, such as 0.95")
    if not 0 <= margin < 1:
        raise ValueError(f"margin is {margin}; it is a fraction from 0 up to 1, such as 0.02 for ± 2 %")


def as_result(values: BenchmarkResult | Sequence[float]) -> BenchmarkResult:
    """Return plain measurements as a result."""
    return values if isinstance(values, BenchmarkResult) else BenchmarkResult("measurement", list(values))


def same_rounds(a: BenchmarkResult, b: BenchmarkResult) -> bool:
    """Whether both results come from the same rounds of one `measure_latencies`."""
    mark = a.metadata.get("pairing")
    return mark is not None and mark == b.metadata.get("pairing") and a.count == b.count


def pair_names(a: BenchmarkResult, b: BenchmarkResult, names: tuple[str, str] | None) -> tuple[str, str]:
    """Return what to call the two."""
    if names is not None:
        return names
    first, second = str(a.metadata.get("model", "a")), str(b.metadata.get("model", "b"))
    return (first, second) if first != second else (f"{first} (first)", f"{second} (second)")

"""Decide from intervals whether a model meets its requirements and may be shipped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from tinybench.load import tail_interval
from tinybench.pareto import Requirements
from tinybench.result import BenchmarkResult, percentile_interval
from tinybench.support.basics.dependence import is_dependent
from tinybench.support.choices.ranked_values import counted_interval
from tinybench.support.choices.weighted_sums import UNITS, check_units
from tinybench.support.metric_tests import is_detected

__all__ = ["Decision", "interval_of", "may_ship"]

_UNKNOWN = (-math.inf, math.inf)


class Decision(NamedTuple):
    """A verdict, and the finding for each requirement.

    The verdict is ``"ship"``, ``"do not ship"`` or ``"cannot tell"``. A finding is ``"met"``, ``"missed"`` or
    ``"cannot tell"``.
    """

    verdict: str
    findings: dict[str, str]


def interval_of(name: str, result: BenchmarkResult) -> tuple[float, float]:
    """Return the interval of a result, in the unit of a requirement, or −∞ to ∞ if the interval is unknown.

    Parameters
    ----------
    name
        Name of a field of `Requirements`: ``"latency_p95_ms"`` uses the 95th percentile, ``"accuracy_min"`` the
        fraction of correct rows, ``"memory_max_mb"`` the largest of two or more values (both ends are that value),
        ``"throughput_min_qps"`` the median, and ``"energy_budget_mj"`` the mean.
    result
        A result in SI units. The interval is unknown if there are too few values, if a mean is used and all values are
        equal, or if the result is an estimate. If the result is below its meter's detection limit, only the upper end
        may be known.

    Raises
    ------
    ValueError
        If there is no such requirement, or the result has another unit.
    """
    metric = name.partition("_")[0]
    if metric not in _LOOKS:
        raise ValueError(f"there is no requirement {name!r}; `Requirements` has latency, accuracy, memory, ...")
    check_units(metric, [{metric: result, "model": "the model"}])
    if not result.measured:
        return _UNKNOWN
    _, size = UNITS.get(metric, ("", 1.0))
    if not is_detected(result):
        return -math.inf, result.metadata.get("at_most", math.inf) / size
    try:
        low, high = _LOOKS[metric](result)
    except ValueError:  # too few values, or equal ones
        return _UNKNOWN
    return low / size, high / size


def _percentile(result: BenchmarkResult) -> tuple[float, float]:
    if is_dependent(result.values):
        return tail_interval(result.values, 95, result.confidence)
    return percentile_interval(result.values, 95, result.confidence)


def _share(result: BenchmarkResult) -> tuple[float, float]:
    return counted_interval(result) or result.mean_ci()


_LOOKS = {
    "latency": _percentile,
    "accuracy": _share,
    "memory": lambda result: (result.max_val, result.max_val) if result.count > 1 else _UNKNOWN,
    "throughput": BenchmarkResult.median_ci,
    "energy": BenchmarkResult.mean_ci,
}


def may_ship(results: Mapping[str, BenchmarkResult], requirements: Requirements) -> Decision:
    """Decide from intervals whether a model may be shipped. It must meet every requirement.

    If one requirement is missed, or if it is unknown whether it is met, the model may not be shipped.

    Parameters
    ----------
    results
        Results by the name of the requirement, such as ``"latency_p95_ms"``. Without a result, the finding is
        ``"cannot tell"``.
    requirements
        Its ``limits()``, a dictionary of limits by name, are upper limits, or lower limits if ``_min`` is in the name.
        The interval of a result, in the unit of the requirement, is ``interval_of(name, result)``.
    """
    findings: dict[str, str] = {}
    for name, limit in requirements.limits().items():
        low, high = interval_of(name, results[name]) if name in results else _UNKNOWN
        met, missed = (low >= limit, high < limit) if "_min" in name else (high <= limit, low > limit)
        findings[name] = "met" if met else "missed" if missed else "cannot tell"
    for verdict, found in (("do not ship", "missed"), ("cannot tell", "cannot tell")):
        if found in findings.values():
            return Decision(verdict, findings)
    return Decision("ship", findings)

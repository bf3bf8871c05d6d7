"""What a requirement of `Requirements` looks at in a result: its interval, in the requirement's unit."""

from __future__ import annotations

import math

from tinybench.pareto import check_units
from tinybench.result import BenchmarkResult, percentile_interval
from tinybench.support.basics.dependence import is_dependent
from tinybench.support.pair_tests import is_detected

_UNKNOWN = (-math.inf, math.inf)
_SIZES = {"latency": 1e-3, "memory": 1e6, "energy": 1e-3}  # of a ms, an MB and an mJ in SI units


def interval_of(name: str, result: BenchmarkResult) -> tuple[float, float]:
    """Return the interval of a result for a requirement, in its unit; −∞ to ∞ where the result cannot tell.

    Parameters
    ----------
    name
        Of a field of `Requirements`: ``"latency_p95_ms"`` asks for the 95th percentile, ``"accuracy_min"`` for the
        share, ``"memory_max_mb"`` for the largest of two or more values (both ends are that value),
        ``"throughput_min_qps"`` for the median and ``"energy_budget_mj"`` for the mean.
    result
        A result in SI units. The interval is unknown if there are too few values, if a mean is of equal values, or if
        the result is an estimate or below its meter's detection limit.

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
    size = _SIZES.get(metric, 1.0)
    if not is_detected(result):
        return -math.inf, result.metadata.get("at_most", math.inf) / size
    try:
        low, high = _LOOKS[metric](result)
    except ValueError:  # too few values, or equal ones
        return _UNKNOWN
    return low / size, high / size


def _percentile(result: BenchmarkResult) -> tuple[float, float]:
    if is_dependent(result.values):
        from tinybench.load import tail_interval  # here, because it is not there yet for a student of module 09

        return tail_interval(result.values, 95, result.confidence)
    return percentile_interval(result.values, 95, result.confidence)


def _share(result: BenchmarkResult) -> tuple[float, float]:
    from tinybench.accuracy import wilson_interval

    if {"correct", "total"} <= result.metadata.keys():
        return wilson_interval(result.metadata["correct"], result.metadata["total"], result.confidence)
    return result.mean_ci()


_LOOKS = {
    "latency": _percentile,
    "accuracy": _share,
    "memory": lambda result: (result.max_val, result.max_val) if result.count > 1 else _UNKNOWN,
    "throughput": BenchmarkResult.median_ci,
    "energy": BenchmarkResult.mean_ci,
}

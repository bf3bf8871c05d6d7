"""The popular composite score, which depends on the units, and the checks of its weights and units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult
from tinybench.support.choices.ranked_values import nearest, row_name

DEFAULT_WEIGHTS = MappingProxyType({"accuracy": 0.4, "latency": 0.2, "memory": 0.2, "energy": 0.2})
UNITS = MappingProxyType({"latency": ("s", 1e-3), "memory": ("B", 1e6), "energy": ("J", 1e-3)})


def check_units(metric: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError if a result of a metric is not in the SI unit of that metric."""
    unit = UNITS.get(metric, (None, 1))[0]
    for index, row in enumerate(rows):
        value = row.get(metric)
        if unit and isinstance(value, BenchmarkResult) and value.unit != unit:
            raise ValueError(f"{metric} of {row_name(row, index)} is in {value.unit!r}, not in {unit!r}")


def check_weights(weights: Mapping[str, float], known: Iterable[str]) -> None:
    """Raise ValueError if a metric is unknown, a weight is negative or not finite, or the weights do not sum to 1.

    For an unknown metric, the message suggests the nearest name in `known`.
    """
    for metric, weight in weights.items():
        if metric not in known:
            raise ValueError(f"there is no metric {metric!r} to weight; did you mean {nearest(metric, known)!r}?")
        if not (math.isfinite(weight) and weight >= 0):
            raise ValueError(f"the weight of {metric!r} is {weight}; a weight is a number ≥ 0")
    if not math.isclose(total := math.fsum(weights.values()), 1.0, abs_tol=1e-9):
        raise ValueError(f"the weights sum to {total:g}, not to 1")


def unit_scores(values: np.ndarray, weights: Mapping[str, float]) -> list[float]:
    """Return, for each row of values in SI units, the weighted sum of accuracy and of 1 / (1 + cost).

    The costs are the latency in ms, the memory in MB and the energy in mJ. `values` has one column for each weight.
    """
    scores = np.zeros(len(values))
    for column, (metric, weight) in zip(values.T, weights.items(), strict=True):
        scores += weight * (column if metric == "accuracy" else 1 / (1 + column / UNITS[metric][1]))
    return [float(score) for score in scores]

"""The numbers by which models are ranked: the value of a result, its interval, and rows of results as a matrix."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from tinybench.accuracy import wilson_interval
from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.result_text import is_interval
from tinybench.support.basics.type_checks import describe
from tinybench.support.metric_tests import is_detected

LATENCY_ACCURACY = MappingProxyType({"latency": "min", "accuracy": "max"})
DIRECTIONS = MappingProxyType(
    {"latency": "min", "accuracy": "max", "memory": "min", "energy": "min", "throughput": "max"}
)


def central(value: Any) -> float:
    """Return the number by which a result is ranked. A plain number is returned unchanged.

    For a result, the number is ``correct / total`` if the metadata holds these two counts, else the median. If the
    quantity was too small to be detected, such as the memory of a small model, the result is NaN: it has no rank.
    """
    if not isinstance(value, BenchmarkResult):
        return float(value)
    if {"correct", "total"} <= value.metadata.keys():
        return float(value.metadata["correct"] / value.metadata["total"])
    return value.median if is_detected(value) else math.nan


def interval(value: Any) -> tuple[float, float]:
    """Return an interval around the `central` number of a result. For a plain number, both ends are that number.

    For a result, the interval is Wilson's if the metadata holds counts (by groups, if rows have groups), the
    interval of the median if there are 6 or more values, and otherwise the range of the values.

    If the result was not detected, the lower end is NaN, and the upper end is ``at_most``, or NaN if that is unknown.
    Both ends are NaN if there is only one value, or if they would be equal.
    """
    if not isinstance(value, BenchmarkResult):
        return float(value), float(value)
    if not is_detected(value):
        most = value.metadata.get("at_most")
        return math.nan, math.nan if most is None else float(most)
    counted = counted_interval(value)
    if counted is not None:
        return counted
    try:
        low, high = value.median_ci()
    except ValueError:  # too few values for an interval
        low, high = value.min_val, value.max_val
    return (low, high) if is_interval(low, high) else (math.nan, math.nan)


def counted_interval(result: BenchmarkResult) -> tuple[float, float] | None:
    """Return the interval of a share of right rows, by groups if rows have groups, or None if rows were not counted."""
    if not {"correct", "total"} <= result.metadata.keys():
        return None
    if "groups" in result.metadata:
        low, high = result.metadata["wilson_interval"]
        return low, high
    return wilson_interval(result.metadata["correct"], result.metadata["total"], result.confidence)


def visible(results: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the results by metric and model, but leave out those that were not detected.

    Otherwise, a model with an undetected memory of 0 bytes would rank first.
    """
    left = {
        m: {name: result for name, result in by_model.items() if is_detected(result)} for m, by_model in results.items()
    }
    return {metric: by_model for metric, by_model in left.items() if by_model}


def as_rows(results: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Turn ``{metric: {model: result}}`` into rows ``{"model": …, metric: result, …}``, one for each model."""
    models = dict.fromkeys(model for by_model in results.values() for model in by_model)
    return [
        {"model": model, **{metric: by_model[model] for metric, by_model in results.items() if model in by_model}}
        for model in models
    ]


def row_name(point: Any, index: int) -> str:
    """Return the name of a point for messages and figures.

    It is the point's value for ``"model"``, or, without this key, the word ``point`` with the `index`.
    """
    return str(point["model"]) if isinstance(point, Mapping) and "model" in point else f"point {index}"


def nearest(word: str, words: Iterable[str]) -> str:
    """Return the word among `words` that is spelt most similarly to `word`."""
    return max(words, key=lambda known: difflib.SequenceMatcher(None, word.lower(), known.lower()).ratio())


def refuse_mixing(metric: str, values: Mapping[str, Any]) -> None:
    """Raise ValueError if some values of a metric are measured and others are estimated, or if their units differ.

    `values` are by model. The message names the metric, and one model of each kind. Plain numbers do not state how they
    were obtained, and so are accepted.
    """
    results = {name: value for name, value in values.items() if isinstance(value, BenchmarkResult)}
    for name, result in results.items():
        first, other = next(iter(results.items()))
        if result.measured != other.measured:
            guess, fact = (first, name) if result.measured else (name, first)
            raise ValueError(
                f"{metric} of {guess!r} is an estimate, of {fact!r} a measurement; an estimate never ranks against "
                "a measurement: measure all, or estimate all the same way"
            )
        if result.unit != other.unit:
            raise ValueError(
                f"{metric} of {first!r} is in {other.unit!r}, of {name!r} in {result.unit!r}; give one unit"
            )


def objective_values(points: Iterable[Any], objectives: Mapping[str, str] = LATENCY_ACCURACY) -> np.ndarray:
    """Check points. Return the values of their objectives as a matrix of shape (points, objectives).

    Points are rows with the objectives as keys, or sequences of numbers in the order of the objectives. The value of a
    result is its `central` number. The direction of an objective is ``"min"`` or ``"max"``. Raises ValueError if there
    are no points or objectives, a direction is neither ``"min"`` nor ``"max"``, a point lacks an objective, a value is
    NaN or not a number, or results must not be mixed (see `refuse_mixing`).
    """
    points = list(points)
    if not points or not objectives:
        raise ValueError(f"there are no {'points' if not points else 'objectives'}; a frontier needs at least one")
    for metric, direction in objectives.items():
        if direction not in ("min", "max"):
            raise ValueError(f"objectives[{metric!r}] is {direction!r}; it is 'min' or 'max'")
    matrix = np.array([_coordinates(point, index, objectives) for index, point in enumerate(points)], dtype=float)
    if np.isnan(matrix).any():
        row, column = np.argwhere(np.isnan(matrix))[0]
        metric = list(objectives)[column]
        known = not isinstance(points[row], Mapping) or is_detected(points[row][metric])
        what = "is NaN" if known else "was not seen, it is below what its meter resolves"
        raise ValueError(f"{metric} of {row_name(points[row], row)} {what}; measure it or drop the row")
    for metric in objectives:
        values = {row_name(p, i): p[metric] for i, p in enumerate(points) if isinstance(p, Mapping)}
        refuse_mixing(metric, values)
    return matrix


def _coordinates(point: Any, index: int, objectives: Mapping[str, str]) -> list[float]:
    """Return the values of one point's objectives as numbers."""
    if isinstance(point, Mapping):
        for metric in objectives:
            if metric not in point:
                raise ValueError(f"{row_name(point, index)} has no {metric!r}; it has {', '.join(map(repr, point))}")
        values = [point[metric] for metric in objectives]
    else:
        if not isinstance(point, Iterable):
            raise TypeError(
                f"point {index} is {describe(point)}; it must be a row such as {dict.fromkeys(objectives, 1.0)}"
            )
        values = list(point)
        if len(values) != len(objectives):
            raise ValueError(
                f"point {index} has {number_of(len(values), 'number')} for {number_of(len(objectives), 'objective')}"
            )
    try:
        return [central(value) for value in values]
    except (TypeError, ValueError):
        raise ValueError(f"{row_name(point, index)} holds something that is no number: {values}") from None

# Written by "autograder export" from modules/09_pareto/09_pareto.ipynb: edit the notebook, not this file.

"""Choosing a model: dominance, Pareto frontiers, scores, requirements, and how sure all that is."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.accuracy import wilson_interval
from tinybench.result import BenchmarkResult, scale_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LATENCY_ACCURACY = MappingProxyType({"latency": "min", "accuracy": "max"})


def dominates(a: Sequence[float], b: Sequence[float], maximize: bool | Sequence[bool] = False) -> bool:
    """Return whether `a` is at least as good as `b` in everything and better in something.

    Parameters
    ----------
    a, b
        Values of the same objectives.
    maximize
        Whether larger is better: one answer for all objectives, or one for each.

    Raises
    ------
    ValueError
        If the lengths differ, or a value is NaN.
    """
    directions = [maximize] * len(a) if isinstance(maximize, bool) else list(maximize)
    if not len(a) == len(b) == len(directions):
        raise ValueError(f"a has {len(a)} objectives, b {len(b)}, maximize {len(directions)}; they must match")
    if any(math.isnan(value) for value in (*a, *b)):
        raise ValueError(f"NaN cannot be compared: {tuple(a)} against {tuple(b)}")
    gains = [x - y if larger else y - x for x, y, larger in zip(a, b, directions, strict=True) if x != y]
    return bool(gains) and all(gain > 0 for gain in gains)


def central(value: Any) -> float:
    """Return the number by which a value ranks.

    Parameters
    ----------
    value
        A number; or a `BenchmarkResult`, of which the median counts, or ``correct / total`` if it holds these.
    """
    if not isinstance(value, BenchmarkResult):
        return float(value)
    if {"correct", "total"} <= value.metadata.keys():
        return float(value.metadata["correct"] / value.metadata["total"])
    return value.median


def as_rows(results: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Turn ``{metric: {model: result}}`` into rows ``{"model": …, metric: result, …}``, one for each model."""
    models = dict.fromkeys(model for by_model in results.values() for model in by_model)
    return [
        {"model": model, **{metric: by_model[model] for metric, by_model in results.items() if model in by_model}}
        for model in models
    ]


def row_name(point: Any, index: int) -> str:
    """Return what to call a point in messages and figures: its ``"model"``, else its number."""
    return str(point["model"]) if isinstance(point, Mapping) and "model" in point else f"point {index}"


def nearest(word: str, words: Iterable[str]) -> str:
    """Return the one of some words that is spelled most like another."""
    return max(words, key=lambda known: difflib.SequenceMatcher(None, word.lower(), known.lower()).ratio())


def refuse_mixing(metric: str, values: Mapping[str, Any]) -> None:
    """Raise unless the results of one metric can be ranked against each other.

    Parameters
    ----------
    metric
        Its name, for the message.
    values
        The value of each model; plain numbers carry no label and pass.

    Raises
    ------
    ValueError
        If some results are measured and others estimated, or their units differ; the message names one of each kind.
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
    """Return the objectives of points as a matrix, checked.

    Parameters
    ----------
    points
        Rows with the objectives as keys, or sequences of numbers in the order of the objectives.
    objectives
        ``"min"`` or ``"max"`` for each name.

    Returns
    -------
    numpy.ndarray
        Shape (points, objectives), as `central` sees them.

    Raises
    ------
    ValueError
        If there are no points or objectives; a direction is neither ``"min"`` nor ``"max"``; a point lacks an
        objective, is NaN or no number; or results are mixed that do not rank, see `refuse_mixing`.
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
        raise ValueError(
            f"{list(objectives)[column]} of {row_name(points[row], row)} is NaN; measure it or drop the row"
        )
    for metric in objectives:
        values = {row_name(p, i): p[metric] for i, p in enumerate(points) if isinstance(p, Mapping)}
        refuse_mixing(metric, values)
    return matrix


def _coordinates(point: Any, index: int, objectives: Mapping[str, str]) -> list[float]:
    """Return the numbers of one point."""
    if isinstance(point, Mapping):
        for metric in objectives:
            if metric not in point:
                raise ValueError(f"{row_name(point, index)} has no {metric!r}; it has {', '.join(map(repr, point))}")
        values = [point[metric] for metric in objectives]
    else:
        values = list(point)
        if len(values) != len(objectives):
            raise ValueError(f"point {index} has {len(values)} numbers for {len(objectives)} objectives")
    try:
        return [central(value) for value in values]
    except (TypeError, ValueError):
        raise ValueError(f"{row_name(point, index)} holds something that is no number: {values}") from None


def frontier_2d(costs: np.ndarray) -> np.ndarray:
    """Return which points of a plane no other one dominates, in O(n log n).

    Parameters
    ----------
    costs
        Shape (n, 2); smaller is better in both columns.

    Returns
    -------
    numpy.ndarray of bool
        Shape (n,); points with the same numbers are all kept or all not.

    References
    ----------
    Kung, Luccio, Preparata, "On finding the maxima of a set of vectors", Journal of the ACM 22 (1975).
    """
    unique, where = np.unique(costs, axis=0, return_inverse=True)  # sorted by the first column, then the second
    best_before = np.minimum.accumulate(unique[:, 1])
    kept = np.append(True, unique[1:, 1] < best_before[:-1])
    return np.asarray(kept[where.reshape(-1)])


def frontier_nd(costs: np.ndarray) -> np.ndarray:
    """Return which points no other one dominates, in any number of dimensions, in O(n · size of the frontier).

    Parameters
    ----------
    costs
        Shape (n, d); smaller is better in every column.

    Returns
    -------
    numpy.ndarray of bool
        Shape (n,); points with the same numbers are all kept or all not.
    """
    unique, where = np.unique(costs, axis=0, return_inverse=True)
    front, kept, size = np.empty_like(unique), np.zeros(len(unique), dtype=bool), 0
    for index, cost in enumerate(unique):  # only what sorts before a point can dominate it
        if not np.all(front[:size] <= cost, axis=1).any():
            front[size], kept[index], size = cost, True, size + 1
    return np.asarray(kept[where.reshape(-1)])


def pareto_frontier(points: Iterable[Any], objectives: Mapping[str, str] = LATENCY_ACCURACY) -> list[Any]:
    """Return the points that no other point dominates, in their order; duplicates stay.

    Parameters
    ----------
    points
        Rows with the objectives as keys (numbers or results), or sequences of numbers in the order of the objectives.
    objectives
        ``"min"`` or ``"max"`` for each name; any number of them.

    Returns
    -------
    list
        Those of the points, themselves and not copies.

    Raises
    ------
    ValueError
        See `objective_values`: no points, NaN, a missing objective, estimates mixed with measurements.
    """
    points = list(points)
    values = objective_values(points, objectives)
    signs = [1 if direction == "min" else -1 for direction in objectives.values()]
    kept = (frontier_2d if len(objectives) == 2 else frontier_nd)(values * signs)
    return [point for point, keep in zip(points, kept, strict=True) if keep]


def staircase(points: Iterable[Any], objectives: Mapping[str, str] = LATENCY_ACCURACY) -> list[tuple[float, float]]:
    """Return the corners of the border between what the frontier dominates and what it does not.

    Parameters
    ----------
    points
        As for `pareto_frontier`; those it dominates are dropped.
    objectives
        Two of them: x and y.

    Returns
    -------
    list of tuple
        Frontier points from the best x to the worst, and between two of them the corner (x of the next, y of this).

    Raises
    ------
    ValueError
        If there are not two objectives; else see `pareto_frontier`.
    """
    if len(objectives) != 2:
        raise ValueError(f"a staircase has 2 objectives, not {len(objectives)}")
    along = next(iter(objectives.values()))
    values = objective_values(pareto_frontier(points, objectives), objectives)
    ordered = sorted({(float(x), float(y)) for x, y in values}, reverse=along == "max")
    corners = [ordered[0]]
    for x, y in ordered[1:]:
        corners += [(x, corners[-1][1]), (x, y)]
    return corners


def hypervolume_2d(
    points: Iterable[Any],
    reference: Sequence[float] | Mapping[str, Any],
    objectives: Mapping[str, str] = LATENCY_ACCURACY,
) -> float:
    """Return the area that a frontier dominates, up to a reference point.

    Parameters
    ----------
    points
        As for `pareto_frontier`. A point that is not better than the reference in both objectives adds nothing.
    reference
        A bad point: a row, or two numbers in the order of the objectives.
    objectives
        Two of them.

    Returns
    -------
    float
        The area, in the product of the two units.

    Raises
    ------
    ValueError
        If there are not two objectives; else see `pareto_frontier`.

    References
    ----------
    Zitzler, Thiele, "Multiobjective evolutionary algorithms: a comparative case study and the strength Pareto
    approach", IEEE Transactions on Evolutionary Computation 3 (1999).
    """
    if len(objectives) != 2:
        raise ValueError(f"hypervolume_2d takes 2 objectives, not {len(objectives)}")
    signs = np.array([1 if direction == "min" else -1 for direction in objectives.values()])
    worst = objective_values([reference], objectives)[0] * signs
    costs = objective_values(points, objectives) * signs
    area, level = 0.0, worst[1]
    for x, y in sorted(map(tuple, costs[(costs < worst).all(axis=1)])):
        if y < level:  # each frontier point adds the strip below the one before, as wide as its lead over the reference
            area, level = area + (worst[0] - x) * (level - y), y
    return float(area)


DIRECTIONS = MappingProxyType(
    {"latency": "min", "accuracy": "max", "memory": "min", "energy": "min", "throughput": "max"}
)
DEFAULT_WEIGHTS = MappingProxyType({"accuracy": 0.4, "latency": 0.2, "memory": 0.2, "energy": 0.2})
_SCORE_UNITS = MappingProxyType({"latency": ("s", 1e-3), "memory": ("B", 1e6), "energy": ("J", 1e-3)})


def check_units(metric: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError if a result of this metric is not in the SI unit that the name stands for."""
    unit = _SCORE_UNITS.get(metric, (None, 1))[0]
    for index, row in enumerate(rows):
        value = row.get(metric)
        if unit and isinstance(value, BenchmarkResult) and value.unit != unit:
            raise ValueError(f"{metric} of {row_name(row, index)} is in {value.unit!r}, not in {unit!r}")


def check_weights(weights: Mapping[str, float], known: Iterable[str]) -> None:
    """Raise unless weights can make a score.

    Parameters
    ----------
    weights
        A share for each metric.
    known
        The metrics there are.

    Raises
    ------
    ValueError
        If a metric is unknown (the nearest known one is named), a weight is negative or not finite, or they do not
        sum to 1.
    """
    for metric, weight in weights.items():
        if metric not in known:
            raise ValueError(f"there is no metric {metric!r} to weight; did you mean {nearest(metric, known)!r}?")
        if not (math.isfinite(weight) and weight >= 0):
            raise ValueError(f"the weight of {metric!r} is {weight}; a weight is a number ≥ 0")
    if not math.isclose(total := math.fsum(weights.values()), 1.0, abs_tol=1e-9):
        raise ValueError(f"the weights sum to {total:g}, not to 1")


def composite_score(
    rows: Sequence[Mapping[str, Any]], weights: Mapping[str, float] = DEFAULT_WEIGHTS, scale_free: bool = False
) -> list[float]:
    """Return a weighted score for each row; larger is better.

    The default, ``w accuracy + w / (1 + latency in ms) + w / (1 + memory in MB) + w / (1 + energy in mJ)``, ranks by
    the units as much as by the models. The scale-free variant is the weighted geometric mean of each value's ratio
    to the best one; its ranks depend on neither units nor the other rows.

    Parameters
    ----------
    rows
        Values in SI units (s, B, J), or results.
    weights
        Shares that sum to 1. Metrics: accuracy, latency, memory, energy; scale-free also throughput.
    scale_free
        Which of the two.

    Returns
    -------
    list of float
        In the order of the rows.

    Raises
    ------
    ValueError
        If `check_weights` or `objective_values` refuses, a result is in another unit, or, scale-free, a value is not
        positive.

    References
    ----------
    Fleming, Wallace, "How not to lie with statistics: the correct way to summarize benchmark results",
    Communications of the ACM 29 (1986).
    """
    check_weights(weights, DIRECTIONS if scale_free else DEFAULT_WEIGHTS)
    weights = {metric: weight for metric, weight in weights.items() if weight > 0}
    values = objective_values(rows, {metric: DIRECTIONS[metric] for metric in weights})
    for metric in weights:
        check_units(metric, rows)
    scores = np.zeros(len(values))
    for column, (metric, weight) in zip(values.T, weights.items(), strict=True):
        if scale_free:
            if not (column > 0).all():
                raise ValueError(f"a {metric} is {column.min():g}; ratios need positive values")
            ratio = column.min() / column if DIRECTIONS[metric] == "min" else column / column.max()
            scores += weight * np.log(ratio)
        elif metric == "accuracy":
            scores += weight * column
        else:
            scores += weight / (1 + column / _SCORE_UNITS[metric][1])
    return [float(score) for score in (np.exp(scores) if scale_free else scores)]


@dataclass(frozen=True)
class Requirements:
    """What a model must fulfil; None demands nothing.

    Parameters
    ----------
    latency_p95_ms
        Largest 95th percentile of the latency, in ms.
    accuracy_min
        Smallest accuracy, a fraction.
    memory_max_mb
        Largest memory of all measurements, in MB.
    throughput_min_qps
        Smallest throughput, in inferences per second.
    energy_budget_mj
        Largest mean energy of one inference, in mJ.

    Raises
    ------
    ValueError
        If a limit is not a finite number ≥ 0, or an accuracy above 1.
    """

    latency_p95_ms: float | None = None
    accuracy_min: float | None = None
    memory_max_mb: float | None = None
    throughput_min_qps: float | None = None
    energy_budget_mj: float | None = None

    def __post_init__(self) -> None:
        for name, limit in self.limits().items():
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit < math.inf:
                raise ValueError(f"{name} is {limit!r}; give a number ≥ 0 without a unit, the name holds it")
        if self.accuracy_min is not None and self.accuracy_min > 1:
            raise ValueError(
                f"accuracy_min is {self.accuracy_min}; give a fraction, such as {self.accuracy_min / 100:g}"
            )

    def limits(self) -> dict[str, float]:
        """Return the limits that are set."""
        given = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        return {name: limit for name, limit in given.items() if limit is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Requirements:
        """Return the requirements of a mapping.

        Raises
        ------
        ValueError
            If a name is unknown; the message names the nearest valid one.
        """
        valid = [spec.name for spec in fields(cls)]
        for name in data:
            if name not in valid:
                raise ValueError(f"there is no requirement {str(name)!r}; did you mean {nearest(str(name), valid)!r}?")
        return cls(**data)

    @classmethod
    def from_yaml(cls, source: str | Path) -> Requirements:
        """Return the requirements of a YAML file, given by its path or as its text.

        Raises
        ------
        ValueError
            If it holds something else than names with limits, or see `from_dict`.
        """
        import yaml

        is_path = isinstance(source, Path) or not re.search(r":\s|\n", source)
        text = Path(source).read_text(encoding="utf-8") if is_path else str(source)
        data = yaml.safe_load(text)
        if not isinstance(data, dict):
            raise ValueError(f"requirements are lines such as 'accuracy_min: 0.95', not {text.strip()!r}")
        return cls.from_dict(data)

    def violations(self, row: Mapping[str, Any]) -> list[str]:
        """Return a sentence for each limit that a row breaks; none if it meets them all.

        Raises
        ------
        ValueError
            If a limited metric is missing; see `observed`.
        """
        broken = []
        for name, limit in self.limits().items():
            got = observed(row, name, row_name(row, 0))
            least = "_min" in name
            if (got < limit) if least else (got > limit):
                broken.append(f"{name} is {limit:g}, the model has {got:.4g}")
        return broken

    def filter(self, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the rows that meet every limit, in their order.

        Raises
        ------
        ValueError
            If a limited metric is missing, or measured for some rows and estimated for others.
        """
        rows = list(rows)
        for metric in {name.partition("_")[0] for name in self.limits()}:
            refuse_mixing(metric, {row_name(row, index): row.get(metric) for index, row in enumerate(rows)})
        return [row for row in rows if not self.violations(row)]

    def rank(self, rows: Iterable[Mapping[str, Any]], by: str = "latency") -> list[Mapping[str, Any]]:
        """Return the rows that meet every limit, the best first.

        Parameters
        ----------
        rows
            Candidates.
        by
            The metric to rank by: latency, accuracy, memory, energy or throughput.

        Raises
        ------
        ValueError
            If `by` is unknown (the nearest is named) or missing in a row; else see `filter`.
        """
        if by not in DIRECTIONS:
            raise ValueError(f"there is no metric {by!r} to rank by; did you mean {nearest(by, DIRECTIONS)!r}?")
        left = self.filter(rows)
        if not left:
            return []
        values = objective_values(left, {by: DIRECTIONS[by]})[:, 0]
        order = np.argsort(values if DIRECTIONS[by] == "min" else -values, kind="stable")
        return [left[index] for index in order]


def observed(row: Mapping[str, Any], requirement: str, name: str = "the row") -> float:
    """Return what a row has to show for a requirement, in the requirement's unit.

    Parameters
    ----------
    row
        Results, or numbers in SI units; the 95th percentile may be given as ``"latency_p95"``.
    requirement
        A field of `Requirements`.
    name
        What to call the row in a message.

    Raises
    ------
    ValueError
        If the metric is missing, or a percentile is asked of a single number.
    """
    metric = requirement.partition("_")[0]
    value = row.get("latency_p95", row.get("latency")) if metric == "latency" else row.get(metric)
    if value is None:
        raise ValueError(f"{name} has no {metric!r}, which {requirement} limits; measure it")
    check_units(metric, [row])
    if metric == "latency" and not isinstance(value, BenchmarkResult) and "latency_p95" not in row:
        raise ValueError(f"{name}: one number has no 95th percentile; give all latencies as a result, or 'latency_p95'")
    if isinstance(value, BenchmarkResult):
        of_result = {"latency": value.percentile(95), "memory": value.max_val, "energy": value.mean}
        value = of_result.get(metric, central(value))
    return float(value) / _SCORE_UNITS.get(metric, ("", 1.0))[1]


def replicate(value: Any, resamples: int, seed: Sequence[int]) -> np.ndarray:
    """Return values that a repeated measurement could have given, as `central` sees them.

    Parameters
    ----------
    value
        A number, which stays; a result with ``correct`` of ``total`` in its metadata, whose share is drawn from the
        Jeffreys posterior; or any other result, whose measurements are resampled.
    resamples
        How many.
    seed
        Seed of the generator. Results of equal length and seed resample the same rounds.

    Returns
    -------
    numpy.ndarray
        Shape (resamples,).

    References
    ----------
    Brown, Cai, DasGupta, "Interval estimation for a binomial proportion", Statistical Science 16 (2001).
    """
    rng = np.random.default_rng(seed)
    if not isinstance(value, BenchmarkResult):
        return np.full(resamples, float(value))
    if {"correct", "total"} <= value.metadata.keys():
        correct, total = value.metadata["correct"], value.metadata["total"]
        return rng.beta(correct + 0.5, total - correct + 0.5, resamples)
    rounds = rng.integers(value.count, size=(resamples, value.count))
    return np.asarray(np.median(np.array(value.values)[rounds], axis=1))


def membership_probability(
    points: Sequence[Mapping[str, Any]],
    objectives: Mapping[str, str] = LATENCY_ACCURACY,
    resamples: int = 1000,
    seed: int = 0,
    paired: bool = False,
) -> list[float]:
    """Return for each row how probable it is that it lies on the frontier, given the scatter of its measurements.

    Parameters
    ----------
    points
        Rows of results; plain numbers are taken as exact.
    objectives
        ``"min"`` or ``"max"`` for each name.
    resamples
        How many frontiers to draw.
    seed
        The same seed, the same answer.
    paired
        Whether the values of a metric come from common rounds, as `measure_latencies` yields them.

    Returns
    -------
    list of float
        Shares between 0 and 1, in the order of the rows. A result with a single value and no counts counts as exact.

    Raises
    ------
    ValueError
        See `objective_values`.
    """
    points = list(points)
    objective_values(points, objectives)
    costs = np.empty((resamples, len(points), len(objectives)))
    for column, (metric, direction) in enumerate(objectives.items()):
        for row, point in enumerate(points):
            drawn = replicate(point[metric], resamples, [seed, column, 0 if paired else row])
            costs[:, row, column] = drawn if direction == "min" else -drawn
    on_frontier = [frontier_nd(sample) for sample in costs]
    return [float(share) for share in np.mean(on_frontier, axis=0)]


def interval(value: Any) -> tuple[float, float]:
    """Return an interval around what `central` returns.

    Wilson's for counts, the order-statistic interval of the median from 6 values on, the range below, and no width
    for a plain number.
    """
    if not isinstance(value, BenchmarkResult):
        return float(value), float(value)
    if {"correct", "total"} <= value.metadata.keys():
        return wilson_interval(value.metadata["correct"], value.metadata["total"], value.confidence)
    try:
        return value.median_ci()
    except ValueError:  # too few values for an interval
        return value.min_val, value.max_val


def plot_pareto_frontier(
    points: Sequence[Any],
    objectives: Mapping[str, str] = LATENCY_ACCURACY,
    labels: Sequence[str] | None = None,
    probabilities: Sequence[float] | None = None,
    title: str = "",
) -> Figure:
    """Draw points with their intervals, the frontier as a staircase, and labels that do not overlap.

    Parameters
    ----------
    points
        As for `pareto_frontier`; results bring their intervals and units.
    objectives
        Two of them: x and y.
    labels
        A name for each point; by default its ``"model"``. A label that finds no free place is left out, those of the
        frontier last.
    probabilities
        Membership probabilities to write behind the names.
    title
        Title of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        Not known to pyplot: a notebook shows it, ``savefig`` writes it.

    Raises
    ------
    ValueError
        If there are not two objectives, or labels or probabilities are not one for each point; else see
        `objective_values`.
    """
    from matplotlib.figure import Figure

    points = list(points)
    corners = np.array(staircase(points, objectives))
    values = objective_values(points, objectives)
    names = [row_name(point, index) for index, point in enumerate(points)] if labels is None else list(labels)
    if len(names) != len(points) or (probabilities is not None and len(probabilities) != len(points)):
        raise ValueError(f"there are {len(points)} points; give as many labels and probabilities")
    if probabilities is not None:
        names = [f"{name} ({share:.0%})" for name, share in zip(names, probabilities, strict=True)]
    on_frontier = np.array([tuple(value) in set(map(tuple, corners)) for value in values])

    figure = Figure(figsize=(5.8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    raw = [[p[m] if isinstance(p, Mapping) else p[k] for p in points] for k, m in enumerate(objectives)]
    scales = []
    for axis, metric, column in zip((axes.xaxis, axes.yaxis), objectives, raw, strict=True):
        scale, text = _axis_label(metric, column)
        scales.append(scale)
        axis.set_label_text(f"{text}, {'lower' if objectives[metric] == 'min' else 'higher'} is better", fontsize=11)
    values, corners = values / scales, corners / scales
    ends = np.array([[interval(value) for value in column] for column in raw]) / np.array(scales)[:, None, None]
    errors = np.abs(ends - values.T[:, :, None]).transpose(0, 2, 1)

    styles = (  # Okabe-Ito blue and vermilion; shape and filling tell them apart without colour
        (on_frontier, "o", "#0072B2", "#0072B2", "on the frontier"),
        (~on_frontier, "s", "white", "#D55E00", "dominated"),
    )
    handles: list[Any] = []
    for chosen, marker, face, edge, name in styles:
        if chosen.any():
            x, y = values[chosen].T
            drawn = axes.errorbar(
                x, y, xerr=errors[0][:, chosen], yerr=errors[1][:, chosen], fmt=marker, markersize=8,
                markerfacecolor=face, markeredgecolor=edge, markeredgewidth=1.6, ecolor="0.45", elinewidth=1.1,
                capsize=3, label=name, zorder=3,
            )  # fmt: skip
            handles.append(drawn)
    for k, name in enumerate("xy"):
        if (ends[k] > 0).all() and ends[k].max() > 8 * ends[k].min():
            _readable_log_axis(axes, name)
    axes.margins(0.14)
    axes.tick_params(labelsize=10)
    axes.grid(alpha=0.3)
    axes.set_title(title, fontsize=12)
    axes.autoscale_view()
    limits = axes.get_xlim(), axes.get_ylim()
    worst = [limits[k][0 if direction == "max" else 1] for k, direction in enumerate(objectives.values())]
    border = [(corners[0][0], worst[1]), *map(tuple, corners), (worst[0], corners[-1][1])]
    handles += axes.plot(*zip(*border, strict=True), "--", color="black", linewidth=1.3, label="border", zorder=2)
    axes.set(xlim=limits[0], ylim=limits[1])
    figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=10, frameon=False)
    order = [*np.flatnonzero(on_frontier), *np.flatnonzero(~on_frontier)]
    _place_labels(figure, axes, values, ends, border, [(int(i), names[i]) for i in order])
    return figure


def _axis_label(metric: str, column: Sequence[Any]) -> tuple[float, str]:
    """Return by what to divide and what to write, such as (0.001, "latency (ms)")."""
    results = [value for value in column if isinstance(value, BenchmarkResult)]
    text = metric.replace("_", " ")
    if not results:
        return 1.0, text
    factor, unit = scale_unit(float(np.median([abs(central(value)) for value in column])), results[0].unit)
    if metric == "accuracy" and not unit:
        factor, unit = 0.01, "%"
    kind = "" if results[0].measured else ", estimate"
    return factor, f"{text} ({unit}{kind})" if unit or kind else text


def _readable_log_axis(axes: Axes, axis: str) -> None:
    """Make an axis logarithmic with ticks written out, at 1, 2 and 5 as long as there are few decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    getattr(axes, f"set_{axis}scale")("log")
    low, high = getattr(axes, f"get_{axis}lim")()
    ticks = getattr(axes, f"{axis}axis")
    ticks.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 150 * low else (1,), numticks=12))
    ticks.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ticks.set_minor_formatter(NullFormatter())


def _place_labels(
    figure: Figure,
    axes: Axes,
    values: np.ndarray,
    ends: np.ndarray,
    border: Sequence[tuple[float, float]],
    labels: Sequence[tuple[int, str]],
) -> None:
    """Write each label at the nearest place where it covers no marker, no other label, and few lines."""
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # what is placed now must not move any more
    frame, pixels = axes.get_window_extent(), axes.transData.transform
    dots = pixels(values)
    taken = [Bbox.from_extents(x - 7, y - 7, x + 7, y + 7) for x, y in dots]
    corners = pixels(np.array(border))
    lines = [Bbox([a, b]) for a, b in pairwise(corners)]
    for k in (0, 1):  # error bars
        low, high = values.copy(), values.copy()
        low[:, k], high[:, k] = ends[k].T
        lines += [Bbox([a, b]) for a, b in zip(pixels(low), pixels(high), strict=True)]
    turns = np.deg2rad([35, 145, -35, -145, 90, -90, 0, 180, 62, 118, -62, -118])
    for index, name in labels:
        text = axes.annotate(
            name, values[index], (0, 0), textcoords="offset points", fontsize=10, ha="center", va="center", zorder=4,
            arrowprops={"arrowstyle": "-", "color": "0.4", "linewidth": 0.8, "shrinkA": 0, "shrinkB": 5},
        )  # fmt: skip
        text.set_in_layout(False)
        box = Text.get_window_extent(text)  # of the words, without the leading line
        best: tuple[float, float, float] | None = None
        for gap in (5, 10, 18, 28, 40, 55, 75, 100):
            for turn in turns:
                dx = np.cos(turn) * (gap + 7 + box.width / 2)
                dy = np.sin(turn) * (gap + 7 + box.height / 2)
                x, y = dots[index] + (dx, dy)
                place = Bbox.from_bounds(x - box.width / 2 - 1, y - box.height / 2, box.width + 2, box.height)
                inside = frame.x0 <= place.x0 and place.x1 <= frame.x1 and frame.y0 <= place.y0 and place.y1 <= frame.y1
                if inside and not any(place.overlaps(other) for other in taken):
                    cost = gap + 25 * sum(place.overlaps(line) for line in lines)
                    best = min(best or (math.inf, 0, 0), (cost, dx, dy))
        if best is None:
            text.remove()
            continue
        text.set_position((best[1] * 72 / figure.dpi, best[2] * 72 / figure.dpi))
        if math.hypot(*best[1:]) < 24 + box.width / 2 and text.arrow_patch is not None:
            text.arrow_patch.set_visible(False)
        x, y = dots[index] + best[1:]
        taken.append(Bbox.from_bounds(x - box.width / 2, y - box.height / 2, box.width, box.height))

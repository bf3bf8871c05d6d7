# Written by "autograder export" from modules/09_pareto/09_pareto.ipynb: edit the notebook, not this file.

"""The choice of a model: dominance, Pareto frontiers, scores, requirements, and the certainty of the choice."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import number_of
from tinybench.support.choices.ranked_values import (
    DIRECTIONS,
    LATENCY_ACCURACY,
    nearest,
    objective_values,
    refuse_mixing,
    row_name,
)
from tinybench.support.choices.requirement_files import ModelLimits, observed
from tinybench.support.choices.resampling import draw_rounds, draw_rows, rows_unknown, shared
from tinybench.support.choices.weighted_sums import DEFAULT_WEIGHTS, check_units, check_weights, unit_scores


def dominates(a: Sequence[float], b: Sequence[float], maximize: bool | Sequence[bool] = False) -> bool:
    """Return whether `a` is at least as good as `b` in every objective, and better in at least one.

    Both hold values of the same objectives. `maximize` states whether larger values are better, once for all objectives
    or separately for each one. Raises ValueError if the lengths differ, or a value is NaN.
    """
    directions = [maximize] * len(a) if isinstance(maximize, bool) else list(maximize)
    if not len(a) == len(b) == len(directions):
        raise ValueError(
            f"a has {number_of(len(a), 'objective')}, b {len(b)}, maximize {len(directions)}; they must match"
        )
    if any(math.isnan(value) for value in (*a, *b)):
        raise ValueError(f"NaN cannot be compared: {tuple(a)} against {tuple(b)}")
    gains = [x - y if larger else y - x for x, y, larger in zip(a, b, directions, strict=True) if x != y]
    return bool(gains) and all(gain > 0 for gain in gains)


def frontier_2d(costs: np.ndarray) -> np.ndarray:
    """Return a mask of the points that no other point dominates, in O(n log n). Smaller is better.

    `costs` has the shape (n, 2). Points with the same numbers are all kept or all dropped.

    Kung, Luccio, Preparata, Journal of the ACM 22 (1975).
    """
    unique, where = np.unique(costs, axis=0, return_inverse=True)  # sorted by the first column, then the second
    best_before = np.minimum.accumulate(unique[:, 1])
    kept = np.append(True, unique[1:, 1] < best_before[:-1])
    return np.asarray(kept[where.reshape(-1)])


def frontier_nd(costs: np.ndarray) -> np.ndarray:
    """Return a mask of the points that no other point dominates. Smaller is better.

    `costs` has the shape (n, d). The time is O(n · size of the frontier). Points with the same numbers are all kept or
    all dropped.
    """
    unique, where = np.unique(costs, axis=0, return_inverse=True)
    front, kept, size = np.empty_like(unique), np.zeros(len(unique), dtype=bool), 0
    for index, cost in enumerate(unique):  # only what sorts before a point can dominate it
        if not np.all(front[:size] <= cost, axis=1).any():
            front[size], kept[index], size = cost, True, size + 1
    return np.asarray(kept[where.reshape(-1)])


def pareto_frontier(points: Iterable[Any], objectives: Mapping[str, str] = LATENCY_ACCURACY) -> list[Any]:
    """Return the points that no other point dominates, in their original order. Duplicates are kept.

    Parameters
    ----------
    points
        Rows with the objectives as keys (numbers or results), or sequences of numbers in the order of the objectives.
    objectives
        ``"min"`` or ``"max"`` for the name of each objective. There may be any number of objectives.

    Returns
    -------
    list
        The points themselves, not copies.

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


def hypervolume_2d(
    points: Iterable[Any],
    reference: Sequence[float] | Mapping[str, Any],
    objectives: Mapping[str, str] = LATENCY_ACCURACY,
) -> float:
    """Return the area that a frontier dominates, up to a reference point, in the product of the two units.

    `reference` is a bad point, at which the area ends: a row, or two numbers in the order of the objectives. A point
    that is not better than the reference in both objectives adds nothing. Raises ValueError unless there are two
    objectives, and as `pareto_frontier` does. Zitzler, Thiele, IEEE Transactions on Evolutionary Computation 3 (1999).
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


def composite_score(
    rows: Sequence[Mapping[str, Any]], weights: Mapping[str, float] = DEFAULT_WEIGHTS, scale_free: bool = False
) -> list[float]:
    """Return a weighted score for each row of results, or of values in SI units (s, B, J); larger is better.

    The default is ``w accuracy + w / (1 + latency in ms) + w / (1 + memory in MB) + w / (1 + energy in mJ)``, so that
    the ranking depends on the units. The scale-free score is the weighted geometric mean of the ratios of the values to
    the best values.

    Raises ValueError as `check_weights` and `objective_values` do, if a result is not in the SI unit, or, for the
    scale-free score, if a value is not positive. Fleming, Wallace, Communications of the ACM 29 (1986).
    """
    check_weights(weights, DIRECTIONS if scale_free else DEFAULT_WEIGHTS)
    weights = {metric: weight for metric, weight in weights.items() if weight > 0}
    values = objective_values(rows, {metric: DIRECTIONS[metric] for metric in weights})
    for metric in weights:
        check_units(metric, rows)
    if not scale_free:
        return unit_scores(values, weights)
    scores = np.ones(len(values))
    for column, (metric, weight) in zip(values.T, weights.items(), strict=True):
        if not (column > 0).all():
            raise ValueError(f"a {metric} is {column.min():g}; ratios need positive values")
        ratio = column.min() / column if DIRECTIONS[metric] == "min" else column / column.max()
        scores *= ratio**weight
    return [float(score) for score in scores]


@dataclass(frozen=True)
class Requirements(ModelLimits):
    """The requirements on a model. A limit that is None is not checked.

    Parameters
    ----------
    latency_p95_ms
        Largest acceptable 95th percentile of the latency, in ms.
    accuracy_min
        Smallest acceptable accuracy, as a fraction.
    memory_max_mb
        Largest acceptable value among all measurements of memory, in MB.
    throughput_min_qps
        Smallest acceptable throughput, in inferences per second.
    energy_budget_mj
        Largest acceptable mean energy of one inference, in mJ.

    Raises
    ------
    ValueError
        If a limit is not a finite number ≥ 0, or an accuracy is above 1.
    """

    def violations(self, row: Mapping[str, Any]) -> list[str]:
        """Return a sentence for each limit that a row breaks.

        Raises ValueError if a metric with a limit is missing; see `observed`.
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

        Raises ValueError if a metric with a limit is missing, or is measured for some rows and estimated for others.
        """
        rows = list(rows)
        for metric in {name.partition("_")[0] for name in self.limits()}:
            refuse_mixing(metric, {row_name(row, index): row.get(metric) for index, row in enumerate(rows)})
        return [row for row in rows if not self.violations(row)]

    def rank(self, rows: Iterable[Mapping[str, Any]], by: str = "latency") -> list[Mapping[str, Any]]:
        """Return the rows that meet every limit, sorted by one metric. The best row comes first.

        The metric `by` is latency, accuracy, memory, energy or throughput. Raises ValueError if `by` is unknown (the
        message suggests the nearest metric) or missing in a row, and as `filter` does.
        """
        if by not in DIRECTIONS:
            raise ValueError(f"there is no metric {by!r} to rank by; did you mean {nearest(by, DIRECTIONS)!r}?")
        left = self.filter(rows)
        if not left:
            return []
        values = objective_values(left, {by: DIRECTIONS[by]})[:, 0]
        order = np.argsort(values if DIRECTIONS[by] == "min" else -values, kind="stable")
        return [left[index] for index in order]


def replicate(values: Sequence[Any], resamples: int, seed: Sequence[int]) -> np.ndarray:
    """Return simulated repetitions of the values of some models, shape (resamples, models).

    The values are one of the groups that `shared` returns. Plain numbers are repeated unchanged. Results on the same
    rows are drawn by `draw_rows`. A single result with the counts ``correct`` and ``total`` is drawn from the Jeffreys
    posterior. For results of the same rounds, medians are taken over the rounds that `draw_rounds` selects. Brown, Cai,
    DasGupta, "Interval estimation for a binomial proportion", Statistical Science 16 (2001).
    """
    rng = np.random.default_rng(seed)
    if not isinstance(values[0], BenchmarkResult):
        return np.tile(np.asarray(values, dtype=float), (resamples, 1))
    if "right" in values[0].metadata:
        return draw_rows(values, resamples, rng)
    if "total" in values[0].metadata:
        correct, total = values[0].metadata["correct"], values[0].metadata["total"]
        return rng.beta(correct + 0.5, total - correct + 0.5, (resamples, 1))
    rounds = draw_rounds(values, resamples, rng)
    return np.stack([np.median(np.array(value.values)[rounds], axis=1) for value in values], axis=1)


def membership_probability(
    points: Sequence[Mapping[str, Any]],
    objectives: Mapping[str, str] = LATENCY_ACCURACY,
    resamples: int = 1000,
    seed: int = 0,
) -> list[float]:
    """Return, for each point, the fraction of bootstrap samples in which the point lies on the frontier.

    Results on the same test rows, or of the same rounds, are resampled together. Plain numbers do not vary. The same
    seed gives the same answer. If there are several points, a UserWarning names those whose accuracy does not list the
    correct test rows, or whose result is based on a single value or test row. Raises ValueError as `objective_values`
    does.
    """
    points = list(points)
    objective_values(points, objectives)
    if told := rows_unknown(points, objectives):
        warnings.warn(told, stacklevel=2)
    costs = np.empty((resamples, len(points), len(objectives)))  # to be filled
    for column, (metric, direction) in enumerate(objectives.items()):
        values = [point[metric] for point in points]
        for number, places in enumerate(shared(values)):
            drawn = replicate([values[place] for place in places], resamples, [seed, column, number])
            costs[:, places, column] = drawn if direction == "min" else -drawn
    on_frontier = [frontier_nd(sample) for sample in costs]
    return [float(share) for share in np.mean(on_frontier, axis=0)]

# Written by "autograder export" from modules/09_pareto/09_pareto.ipynb: edit the notebook, not this file.

"""The choice of a model: dominance, Pareto frontiers, scores, requirements, and the certainty of the choice."""

from __future__ import annotations

import difflib
import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tinybench.accuracy import rows_right, wilson_interval
from tinybench.result import BenchmarkResult
from tinybench.support.basics.dependence import batch_length
from tinybench.support.basics.grouped_rows import check_same_groups
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.result_text import is_interval
from tinybench.support.basics.type_checks import describe
from tinybench.support.metric_tests import is_detected

LATENCY_ACCURACY = MappingProxyType({"latency": "min", "accuracy": "max"})


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


def frontier_2d(costs: np.ndarray) -> np.ndarray:
    """Return a mask of the points that no other point dominates, in O(n log n). Smaller is better.

    `costs` has the shape (n, 2).

    Points with the same numbers are all kept or all dropped. Kung, Luccio, Preparata, Journal of the ACM 22 (1975).
    """
    unique, where = np.unique(costs, axis=0, return_inverse=True)  # sorted by the first column, then the second
    best_before = np.minimum.accumulate(unique[:, 1])
    kept = np.append(True, unique[1:, 1] < best_before[:-1])
    return np.asarray(kept[where.reshape(-1)])


def frontier_nd(costs: np.ndarray) -> np.ndarray:
    """Return a mask of the points that no other point dominates. Smaller is better.

    `costs` has the shape (n, d).

    The time is O(n · size of the frontier). Points with the same numbers are all kept or all dropped.
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


def staircase(points: Iterable[Any], objectives: Mapping[str, str] = LATENCY_ACCURACY) -> list[tuple[float, float]]:
    """Return the corners of the boundary of the region that the frontier dominates.

    The corners are the frontier points, from the best x to the worst, and one more corner between each point and the
    next one: (x of the next point, y of this point). Raises ValueError unless there are two objectives, and as
    `pareto_frontier` does.
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


DIRECTIONS = MappingProxyType(
    {"latency": "min", "accuracy": "max", "memory": "min", "energy": "min", "throughput": "max"}
)
DEFAULT_WEIGHTS = MappingProxyType({"accuracy": 0.4, "latency": 0.2, "memory": 0.2, "energy": 0.2})
_SCORE_UNITS = MappingProxyType({"latency": ("s", 1e-3), "memory": ("B", 1e6), "energy": ("J", 1e-3)})


def check_units(metric: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError if a result of a metric is not in the SI unit of that metric."""
    unit = _SCORE_UNITS.get(metric, (None, 1))[0]
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
        """Return the requirements that a mapping of names to limits describes.

        Raise ValueError for a name without a limit, or an unknown name. For an unknown name, the message suggests the
        nearest known name.
        """
        if empty := [name for name, limit in data.items() if limit is None]:
            raise ValueError(f"{empty[0]} has no limit; write a number behind it, or leave the line out")
        valid = [spec.name for spec in fields(cls)]
        for name in data:
            if name not in valid:
                raise ValueError(f"there is no requirement {str(name)!r}; did you mean {nearest(str(name), valid)!r}?")
        return cls(**data)

    @classmethod
    def from_yaml(cls, source: str | Path) -> Requirements:
        """Return the requirements in a YAML file. `source` is the path of the file, or its text.

        Raises ValueError if the text holds anything but names with limits, and as `from_dict` does.
        """
        import yaml

        is_path = isinstance(source, Path) or not re.search(r"\n|:\s|:$|^\w+:[\d.]|^\s*$", source)
        text = Path(source).read_text(encoding="utf-8") if is_path else str(source)
        data = yaml.safe_load(text)
        if not isinstance(data, dict):
            raise ValueError(f"requirements are lines such as 'accuracy_min: 0.95', not {text.strip()!r}")
        return cls.from_dict(data)

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


def observed(row: Mapping[str, Any], requirement: str, name: str = "the row") -> float:
    """Return the value in a row that a field of `Requirements` limits, in the unit of that field.

    A row holds results, or numbers in SI units. The 95th percentile of the latency may be given as ``"latency_p95"``.
    Raises ValueError, with `name` in the message, if the metric is missing, if a single number stands where a
    percentile is needed, or if a result was not detected and has no ``at_most``.
    """
    metric = requirement.partition("_")[0]
    value = row.get("latency_p95", row.get("latency")) if metric == "latency" else row.get(metric)
    if value is None:
        raise ValueError(f"{name} has no {metric!r}, which {requirement} limits; measure it")
    check_units(metric, [row])
    if metric == "latency" and not isinstance(value, BenchmarkResult) and "latency_p95" not in row:
        raise ValueError(f"{name}: one number has no 95th percentile; give all latencies as a result, or 'latency_p95'")
    if not is_detected(value):
        value = value.metadata.get("at_most")
        if value is None:
            raise ValueError(
                f"{name}: {metric} was not seen, it is below what its meter resolves; {requirement} is open"
            )
    if isinstance(value, BenchmarkResult):
        of_result = {"latency": value.percentile(95), "memory": value.max_val, "energy": value.mean}
        value = of_result.get(metric, central(value))
    return float(value) / _SCORE_UNITS.get(metric, ("", 1.0))[1]


def shared(values: Sequence[Any]) -> list[list[int]]:
    """Return groups of the indices of values that must be resampled together.

    A group consists of plain numbers, of results on the same rows, or of results from the same rounds. Any other value
    forms a group of its own. Raises ValueError if results on equally many rows name different groups of rows.
    """
    check_same_groups([value.metadata for value in values if isinstance(value, BenchmarkResult)])
    groups: dict[Any, list[int]] = {}
    for place, value in enumerate(values):
        key: Any = place  # resampled alone
        if not isinstance(value, BenchmarkResult):
            key = "numbers"
        elif "total" in value.metadata:
            key = ("rows", value.metadata["total"]) if "right" in value.metadata else place
        elif "pairing" in value.metadata:
            key = (value.metadata["pairing"], value.count)
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def draw_rows(values: Sequence[BenchmarkResult], resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Return accuracies on rows that are drawn with replacement, each time the same rows for all models.

    Rows of one group are drawn together. The shape is (resamples, models).
    """
    right = np.array([rows_right(value.metadata) for value in values]).T
    numbers = np.asarray(values[0].metadata.get("group_of", range(len(right))))
    sums = np.zeros((numbers.max() + 1, len(values) + 1), int)  # of each group: right rows by model, and all rows
    np.add.at(sums, numbers, np.column_stack([right, np.ones(len(right), int)]))
    patterns, counts = np.unique(sums, axis=0, return_counts=True)  # groups on which models are right alike are equal
    drawn = rng.multinomial(len(sums), counts / len(sums), size=resamples) @ patterns
    return np.asarray(drawn[:, :-1] / drawn[:, -1:])


def draw_rounds(values: Sequence[BenchmarkResult], resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Return indices of rounds that are drawn with replacement, each time the same rounds for all models.

    The shape is (resamples, rounds). Autocorrelated rounds are drawn in blocks. Politis, Romano, "A circular
    block-resampling procedure for stationary data", in Exploring the Limits of Bootstrap (1992).
    """
    rounds, length = values[0].count, max(batch_length(value.values) for value in values)
    starts = rng.integers(rounds, size=(resamples, -(-rounds // length), 1))
    return np.asarray((starts + np.arange(length)) % rounds).reshape(resamples, -1)[:, :rounds]


def percent(share: float) -> str:
    """Return a fraction as text in whole percent. Only exactly 0 and 1 give 0% and 100%; NaN gives "–"."""
    if math.isnan(share):
        return "–"
    return ">99%" if 0.995 <= share < 1 else "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def rows_unknown(points: Sequence[Mapping[str, Any]], objectives: Iterable[str]) -> str:
    """Return a caution if some results show no scatter, or do not list which rows are correct.

    Otherwise return an empty string.
    """
    results = [(row_name(p, i), p[m]) for m in objectives for i, p in enumerate(points) if hasattr(p[m], "metadata")]
    names = dict.fromkeys(name for name, v in results if "total" in v.metadata and "right" not in v.metadata)
    alone = dict.fromkeys(name for name, v in results if v.metadata.get("total", v.count) == 1)
    told = []
    if len(points) > 1 and names:
        told.append(
            f"which rows {', '.join(names)} got right is not known: their accuracies are resampled separately, which "
            "leaves too many models in doubt; measure them with measure_accuracy on the same rows"
        )
    if len(points) > 1 and alone:
        told.append(f"{', '.join(alone)}: a single value or row does not show any scatter; measure more of them")
    return "; ".join(told)


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
    costs = np.empty((resamples, len(points), len(objectives)))
    for column, (metric, direction) in enumerate(objectives.items()):
        values = [point[metric] for point in points]
        for number, places in enumerate(shared(values)):
            drawn = replicate([values[place] for place in places], resamples, [seed, column, number])
            costs[:, places, column] = drawn if direction == "min" else -drawn
    on_frontier = [frontier_nd(sample) for sample in costs]
    return [float(share) for share in np.mean(on_frontier, axis=0)]


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
    if {"correct", "total"} <= value.metadata.keys():
        counted = wilson_interval(value.metadata["correct"], value.metadata["total"], value.confidence)
        low, high = value.metadata["wilson_interval"] if "groups" in value.metadata else counted
        return low, high
    try:
        low, high = value.median_ci()
    except ValueError:  # too few values for an interval
        low, high = value.min_val, value.max_val
    return (low, high) if is_interval(low, high) else (math.nan, math.nan)

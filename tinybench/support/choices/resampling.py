"""Resampling of results: which values are drawn together, and how their rows and rounds are drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tinybench.accuracy import rows_right
from tinybench.result import BenchmarkResult
from tinybench.support.basics.dependence import batch_length
from tinybench.support.basics.grouped_rows import check_same_groups
from tinybench.support.choices.ranked_values import row_name


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

"""The change of accuracy between two training recipes, from networks of several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinybench.accuracy import mcnemar
from tinybench.support.basics.numbers import number_of, with_ends
from tinybench.support.basics.short_reprs import short_repr


def seed_verdict(intervals: Sequence[tuple[float, float]], margin: float = 0.0) -> str:
    """Return the verdict on a difference between two networks, from the intervals of all training seeds together.

    The verdict is ``"equivalent"``, ``"higher"``, ``"lower"``, or ``"undecided: not established over 2 seeds"`` with
    the number of seeds.

    Parameters
    ----------
    intervals
        One ``(lower, upper)`` for each seed. Raises ValueError if there are fewer than two intervals, or if one
        contains NaN.
    margin
        A difference between −margin and margin does not matter. With 0, every difference matters.
    """
    ends = np.asarray(intervals, float).reshape(-1, 2)
    if len(ends) < 2 or np.isnan(ends).any():
        had = number_of(len(ends), "interval")
        raise ValueError(f"{had}, or some are NaN; one seed says nothing about scatter: train with two or more")
    lows, highs = ends[:, 0], ends[:, 1]
    if margin > 0 and lows.min() >= -margin and highs.max() <= margin:
        return "equivalent"
    if lows.min() > 0:
        return "higher"
    if highs.max() < 0:
        return "lower"
    return f"undecided: not established over {number_of(len(ends), 'seed')}"


@dataclass(frozen=True)
class AccuracyChange:
    """The differences in accuracy between two training recipes, a and b: one for each seed, with 95 % intervals.

    ``str`` gives a sentence.
    """

    name_a: str
    name_b: str
    differences: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...]
    margin: float = 0.0

    __repr__ = short_repr

    @property
    def verdict(self) -> str:
        """The verdict from all seeds together."""
        return seed_verdict(self.intervals, self.margin)

    def __str__(self) -> str:
        """Return the names, the change of each seed in points, and the verdict."""
        each = [
            f"{'+' if d > 0 else ''}{with_ends(100 * d, (100 * low, 100 * high))}"
            for d, (low, high) in zip(self.differences, self.intervals, strict=True)
        ]
        return f"{self.name_a} against {self.name_b}: accuracy {', '.join(each)} points; {self.verdict}"


def accuracy_change(
    y: Any,
    labels_a: Sequence[Any],
    labels_b: Sequence[Any],
    names: tuple[str, str],
    margin: float = 0.0,
    groups: Any = None,
) -> AccuracyChange:
    """Compare two training recipes by the labels that their networks predict for the same rows.

    Each recipe has one network, and so one sequence of labels, for each seed. `groups` names the group of each row if
    rows depend on each other; the intervals are then by groups.
    """
    if len(labels_a) != len(labels_b) or len(labels_a) < 2:
        raise ValueError(f"{len(labels_a)} and {len(labels_b)} seeds; train each recipe with the same two or more")
    found = [mcnemar(y, a, b, groups) for a, b in zip(labels_a, labels_b, strict=True)]
    intervals = tuple(each.difference_ci for each in found)
    return AccuracyChange(*names, tuple(each.difference for each in found), intervals, margin)

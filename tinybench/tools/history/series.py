"""A history as a series: one point by commit, all in the unit of one baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tinybench.tools.history.entry import Measurement


class Point(NamedTuple):
    """What a commit took, as a multiple of the baseline; with its 95 % interval."""

    commit: str
    committed: str
    value: float
    low: float
    high: float
    entries: tuple[Measurement, ...]


class Series(NamedTuple):
    """One benchmark on one machine, by commit.

    Attributes
    ----------
    baseline
        What all values are multiples of; empty if they are medians in `unit`.
    points
        In the order of the commits.
    left_out
        How many entries have another baseline, whose own ratio to this one was never measured.
    """

    benchmark: str
    machine: str
    baseline: str
    unit: str
    points: list[Point]
    left_out: int

    @property
    def values(self) -> list[float]:
        """The value of every commit."""
        return [point.value for point in self.points]

    @property
    def commits(self) -> list[str]:
        """The commits."""
        return [point.commit for point in self.points]


def series_of(entries: Sequence[Measurement]) -> Series:
    """Return entries of one benchmark on one machine, in order, as a series.

    A commit that was measured several times has the geometric mean. Where the baseline was changed for a later commit
    that is in the history itself, ratios go on from the ratio of that commit.
    """
    scales: dict[str, dict[str, Point]] = {}  # by what the values are multiples of, the commits in it
    for entry in entries:
        root, scale = _scale(entry.baseline, scales)
        points = scales.setdefault(root, {})
        before = points.get(entry.commit)
        known = () if before is None else before.entries
        points[entry.commit] = _joined(entry, scale, before, (*known, entry))
    if not entries:
        raise ValueError("a series takes at least one entry")
    last, _ = _scale(entries[-1].baseline, scales)
    found = list(scales[last].values())
    left_out = len(entries) - sum(len(point.entries) for point in found)
    first = found[0].entries[0]
    return Series(first.benchmark, first.machine, last, first.unit, found, left_out)


def _scale(baseline: str, scales: dict[str, dict[str, Point]]) -> tuple[str, Point | None]:
    """Return which series a baseline belongs to, and its own point there; None if it is the unit itself."""
    if baseline in scales or not baseline:
        return baseline, None
    return next(
        ((root, points[baseline]) for root, points in scales.items() if root and baseline in points), (baseline, None)
    )


def _joined(entry: Measurement, scale: Point | None, before: Point | None, entries: tuple[Measurement, ...]) -> Point:
    """Return the point of a commit with one more measurement; errors of measurements are independent."""
    log, errors = _log(entry.value), [_errors(entry.value, entry.low, entry.high)]
    if scale is not None:
        log += _log(scale.value)
        errors.append(_errors(scale.value, scale.low, scale.high))
    below, above = (math.hypot(*sides) for sides in zip(*errors, strict=True))
    if before is not None:
        n = len(entries)
        others = _errors(before.value, before.low, before.high)
        log = ((n - 1) * _log(before.value) + log) / n
        below, above = (math.hypot((n - 1) * a, b) / n for a, b in zip(others, (below, above), strict=True))
    ends = math.exp(log - below), math.exp(log + above)
    return Point(entry.commit, entry.committed, math.exp(log), *ends, entries)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _errors(value: float, low: float, high: float) -> tuple[float, float]:
    """Return by how much an interval reaches below and above, in logarithms."""
    return _log(value) - _log(low), _log(high) - _log(value)

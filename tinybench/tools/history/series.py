"""A history as a series: one point per commit, all relative to the same baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tinybench.tools.history.entry import Measurement


class Point(NamedTuple):
    """The value of a commit, with its 95 % interval.

    The value is a ratio to the baseline of the series or, without a baseline, a median in the unit of the series.
    """

    commit: str
    committed: str
    value: float
    low: float
    high: float
    entries: tuple[Measurement, ...]


class Series(NamedTuple):
    """The history of one benchmark on one machine, by commit.

    Attributes
    ----------
    baseline
        The name of the baseline. All values are ratios to this baseline. Empty if the values are medians in `unit`.
    points
        One point per commit, in the order of the commits.
    left_out
        The number of entries that were left out because their own baseline was never measured against `baseline`.
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
        """The name of every commit."""
        return [point.commit for point in self.points]


def series_of(entries: Sequence[Measurement]) -> Series:
    """Return the series of one benchmark on one machine. Its entries must be sorted by commit time.

    The value of a commit with several measurements is their geometric mean. If later entries have a new baseline
    that is itself a commit of the series, their ratios are multiplied by the ratio of that commit to the old baseline.
    So all values of the series are ratios to the old baseline.
    """
    scales: dict[str, dict[str, Point]] = {}  # scales[baseline][commit]: a commit's point as a ratio to the baseline
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
    """Return the baseline to which ratios to `baseline` are converted, and the point with the conversion factor.

    If `baseline` was itself measured as a commit, its ratio to an older baseline is the conversion factor. Otherwise,
    no conversion is needed: return `baseline` and None.
    """
    if baseline in scales or not baseline:
        return baseline, None
    return next(
        ((root, points[baseline]) for root, points in scales.items() if root and baseline in points), (baseline, None)
    )


def _joined(entry: Measurement, scale: Point | None, before: Point | None, entries: tuple[Measurement, ...]) -> Point:
    """Return the point of a commit after one more measurement, `entry`, multiplied by `scale` if given.

    `before` is the point of the commit's earlier measurements, if there are any. Measurement errors are taken to be
    independent.
    """
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
    """Return the distances, in logarithms, from a value to the lower and the upper bound of its interval."""
    return _log(value) - _log(low), _log(high) - _log(value)

"""The Pareto chart: every entry's latency against its accuracy, as the geometry of an SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from autograder.leaderboard.ranking import Entry, on_frontier
from tinybench.support.reports.frontier_border import staircase

WIDTH, HEIGHT = 640, 440
LEFT, RIGHT, TOP, BOTTOM = 84, 24, 36, 72


class Tick(NamedTuple):
    """A labelled tick of an axis. `at` is a coordinate of the drawing."""

    at: float
    label: str


class Point(NamedTuple):
    """An entry's position in the drawing, and whether the entry is on the Pareto frontier."""

    x: float
    y: float
    best: bool
    entry: Entry


@dataclass(frozen=True)
class Chart:
    """The geometry that the template draws."""

    points: list[Point]
    stairs: str
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    baseline_x: float
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def lay_out(entries: Sequence[Entry]) -> Chart | None:
    """Return the chart of the measured entries, or None if there are no entries.

    The points of the Pareto frontier come last, so that they are drawn on top.
    """
    if not entries:
        return None
    latencies, accuracies = [entry.latency.value for entry in entries], [entry.public.value for entry in entries]
    low, high = min(*latencies, 1.0) / 1.3, max(*latencies, 1.0) * 1.3
    floor = min(0.9, math.floor(min(accuracies) * 20) / 20)

    def across(ratio: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * math.log(ratio / low) / math.log(high / low), 1)

    def up(accuracy: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (accuracy - floor) / (1 - floor), 1)

    best = on_frontier(entries)
    points = [Point(across(e.latency.value), up(e.public.value), e.id in best, e) for e in entries]
    corners = staircase([entry.point() for entry in entries if entry.id in best])
    stairs = " ".join(f"{across(x)},{up(y)}" for x, y in [*corners, (high, corners[-1][1])])
    step = next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2) if (1 - floor) / step <= 8)
    heights = [1 - step * number for number in range(int((1 - floor) / step + 1e-9) + 1)]
    return Chart(
        points=sorted(points, key=lambda point: point.best),
        stairs=stairs,
        x_ticks=[Tick(across(ratio), f"{ratio:g} ×") for ratio in _ratios(low, high)],
        y_ticks=[Tick(up(height), f"{100 * height:.0f} %") for height in heights],
        baseline_x=across(1.0),
    )


def _ratios(low: float, high: float) -> list[float]:
    """Return ratios between `low` and `high` for ticks, such as 0.1, 0.2, 0.5, 1, 2.

    Use the finest of three series that has at most eight ratios in this range, or else the coarsest.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        ratios = [digit * 10.0**power for power in powers for digit in digits if low <= digit * 10.0**power <= high]
        if len(ratios) <= 8:
            break
    return ratios

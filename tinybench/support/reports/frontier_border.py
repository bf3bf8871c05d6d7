"""The border of the region that a Pareto frontier dominates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tinybench.pareto import pareto_frontier
from tinybench.support.choices.ranked_values import LATENCY_ACCURACY, objective_values


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

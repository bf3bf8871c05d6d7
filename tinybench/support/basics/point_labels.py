"""Names written at the points of a figure, so that none collides and each can be told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["label_points"]

_GAPS = np.array([3, 8, 14, 22, 32, 44, 60, 80, 105, 135, 170, 210])  # in pixels at 100 dots an inch, as all here
_TURNS = np.deg2rad([35, 145, -35, -145, 90, -90, 0, 180, 60, 120, -60, -120, 15, 165, -15, -165])
_MARKER = 7  # half the side of what a marker covers
_NEAR = 14  # a name farther away than this gets a line that leads to it
_COVERS, _CROSSES, _TOUCHES, _MISLEADS = 1000.0, 70.0, 25.0, 20.0  # costs, in pixels of distance


def label_points(
    axes: Axes, points: Any, names: Sequence[str], *, lines: Any = (), first: Sequence[int] = (), fontsize: float = 10
) -> None:
    """Write a name at each point so that no two collide; a thin line leads to each point whose name stands apart.

    Call it last: nothing may move afterwards, so the layout engine of the figure is switched off.

    Parameters
    ----------
    axes
        Where the points are drawn.
    points
        Their places in the units of the axes, shape (n, 2).
    names
        One for each; a name that finds no free place is left out.
    lines
        What names rather do not cover, such as error bars: shape (m, 2, 2), two ends each.
    first
        The points that choose their places first, by number.
    fontsize
        Of the names, in points.
    """
    from matplotlib.text import Text

    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    pixel = figure.dpi / 100
    places = np.asarray(points, dtype=float).reshape(-1, 2)
    dots = axes.transData.transform(places) / pixel
    drawn = axes.transData.transform(np.reshape(lines, (-1, 2)).astype(float)).reshape(-1, 2, 2) / pixel
    texts = [
        axes.annotate(
            name, tuple(place), (0, 0), textcoords="offset points", fontsize=fontsize, ha="center", va="center",
            bbox={"boxstyle": "square,pad=0", "facecolor": "white", "alpha": 0.8, "linewidth": 0}, zorder=6,
        )
        for name, place in zip(names, places, strict=True)
    ]  # fmt: skip
    for text in texts:
        text.set_in_layout(False)
    windows = [Text.get_window_extent(text) for text in texts]  # of the words alone
    sizes = np.array([[window.width, window.height] for window in windows]).reshape(-1, 2) / pixel
    order = [*first, *(index for index in range(len(dots)) if index not in set(first))]
    found = _free_places(dots, sizes, np.array(axes.bbox.extents) / pixel, drawn, order)
    for index, text in enumerate(texts):
        if index not in found:
            text.remove()
            continue
        text.set_position(tuple(found[index] * 0.72))
        for edge in _leader(dots, index, found[index], sizes[index]):  # beneath all words
            ends = axes.transData.inverted().transform(np.array([dots[index], edge]) * pixel)
            axes.plot(*ends.T, "-", color="black", linewidth=0.7, zorder=2.5, scalex=False, scaley=False)


def _free_places(
    dots: np.ndarray, sizes: np.ndarray, frame: np.ndarray, lines: np.ndarray, order: Sequence[int]
) -> dict[int, np.ndarray]:
    """Return the step from each dot to the middle of its name; those without a free place are left out."""
    steps: dict[int, np.ndarray] = {}
    leaders: dict[int, list[Any]] = {}
    marks = np.hstack([dots - _MARKER, dots + _MARKER])
    for _ in range(4):  # the first to choose reconsider when the last are there
        before = dict(steps)
        for index in order:
            steps.pop(index, None)
            leaders.pop(index, None)
            names = np.array([_box(dots[i] + step, sizes[i]) for i, step in steps.items()]).reshape(-1, 4)
            led = np.reshape([line for of_one in leaders.values() for line in of_one], (-1, 2, 2))
            step = steps[index] = _best(dots, index, sizes[index], frame, (marks, names, lines, led))
            leaders[index] = [(dots[index], edge) for edge in _leader(dots, index, step, sizes[index])]
        if before and all(np.array_equal(steps[i], before[i]) for i in order):
            break
    kept: dict[int, np.ndarray] = {}
    for index in order:
        box = _box(dots[index] + steps[index], sizes[index])
        taken = np.array([*marks, *(_box(dots[i] + step, sizes[i]) for i, step in kept.items())])
        inside = (box[:2] >= frame[:2]).all() and (box[2:] <= frame[2:]).all()
        if inside and not _overlap(box[None], taken).any():
            kept[index] = steps[index]
    return kept


def _best(dots: np.ndarray, index: int, size: np.ndarray, frame: np.ndarray, others: tuple[np.ndarray, ...]) -> Any:
    """Return the step to the cheapest place for one name: near, alone, and nearer to its own dot than to others."""
    marks, names, lines, led = others
    gaps, turns = (grid.ravel() for grid in np.meshgrid(_GAPS, _TURNS, indexing="ij"))
    steps = np.stack([np.cos(turns), np.sin(turns)], axis=1) * (gaps[:, None] + _MARKER + size / 2)
    boxes = _box(dots[index] + steps, size)
    edges = dots[index] + _edge(steps, size)
    leaders = np.stack([np.broadcast_to(dots[index], edges.shape), edges], axis=1)
    apart = [i for i in range(len(dots)) if np.abs(dots[i] - dots[index]).max() > _MARKER]  # dots in one place share it
    cost = gaps + _COVERS * _overlap(boxes, np.vstack([marks, names])).sum(axis=1)
    cost += 10 * _COVERS * ((boxes[:, :2] < frame[:2]) | (boxes[:, 2:] > frame[2:])).any(axis=1)
    cost += _TOUCHES * _through(boxes, lines).sum(axis=1) + _CROSSES * _through(boxes, led).sum(axis=1)
    cost += _CROSSES * _through(np.vstack([names, marks[apart]]), leaders).sum(axis=0)
    cost += _CROSSES * _crossing(leaders, led).sum(axis=1)
    cost += _MISLEADS * np.array([_misleads(dots, index, box) for box in boxes])
    return steps[cost.argmin()]


def _leader(dots: np.ndarray, index: int, step: np.ndarray, size: np.ndarray) -> list[np.ndarray]:
    """Return where the line to a name ends, if it needs one: it is far from its dot, or nearer to another."""
    edge = _edge(step, size)
    far = np.hypot(*edge) > _MARKER + _NEAR
    return [dots[index] + edge] if far or _misleads(dots, index, _box(dots[index] + step, size)) else []


def _misleads(dots: np.ndarray, index: int, box: np.ndarray) -> bool:
    """Whether a name is not clearly nearer to its own dot than to any other."""
    distances = np.hypot(*np.maximum(np.maximum(box[:2] - dots, dots - box[2:]), 0).T)
    return bool((np.delete(distances, index) < 1.4 * distances[index]).any())


def _edge(step: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return the place of a name that is nearest to its dot, from a step to its middle or many."""
    return np.asarray(np.sign(step) * np.maximum(np.abs(step) - size / 2, 0))


def _box(middle: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return (left, bottom, right, top), for one or many."""
    return np.concatenate([middle - size / 2 - (1, 0), middle + size / 2 + (1, 0)], axis=-1)


def _overlap(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which boxes overlap which others, shape (boxes, others)."""
    return np.asarray(((boxes[:, None, :2] < others[:, 2:]) & (boxes[:, None, 2:] > others[:, :2])).all(axis=2))


def _through(boxes: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Return through which boxes which lines pass, shape (boxes, lines)."""
    along = lines[:, 1] - lines[:, 0]
    along = np.where(along == 0, 1e-9, along)
    ends = np.stack([(boxes[:, None, side] - lines[:, 0]) / along for side in ([0, 1], [2, 3])])
    enters, leaves = ends.min(axis=0).max(axis=2), ends.max(axis=0).min(axis=2)
    return np.asarray((enters <= leaves) & (leaves >= 0) & (enters <= 1))


def _crossing(lines: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which lines cross which others, shape (lines, others)."""

    def side(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.asarray((b - a)[..., 0] * (c - a)[..., 1] - (b - a)[..., 1] * (c - a)[..., 0])

    (a, b), (c, d) = (lines[:, None, k] for k in (0, 1)), (others[None, :, k] for k in (0, 1))
    return np.asarray((side(a, b, c) * side(a, b, d) < 0) & (side(c, d, a) * side(c, d, b) < 0))

"""Labels at the points of a figure. They are placed so that no two overlap and each clearly belongs to its point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["label_points"]

# all lengths here are in pixels at 100 dots per inch
_GAPS = np.array([3, 8, 14, 22, 32, 44, 60, 80, 105, 135, 170, 210])  # candidate distances of a name from its marker
_TURNS = np.deg2rad([35, 145, -35, -145, 90, -90, 0, 180, 60, 120, -60, -120, 15, 165, -15, -165])
_MARKER = 7  # half the side of the square that a marker covers
_NEAR = 14  # a name farther away than this gets a line that connects it with its point
_COVERS, _CROSSES, _TOUCHES, _MISLEADS = 1000.0, 70.0, 25.0, 20.0  # costs, in pixels of distance


def label_points(
    axes: Axes, points: Any, names: Sequence[str], *, lines: Any = (), first: Sequence[int] = (), fontsize: float = 10
) -> None:
    """Write a name at each point so that no two overlap. A thin line connects a distant name with its point.

    Call this function last. It switches off the layout engine of the figure, because nothing may move afterwards.

    Parameters
    ----------
    axes
        The axes in which the points are drawn.
    points
        The coordinates of the points in the units of the axes, shape (n, 2).
    names
        One name for each point. A name for which there is no free place is left out.
    lines
        Lines that names should not cover, such as error bars: shape (m, 2, 2), two ends each.
    first
        The indices of the points whose names are placed first.
    fontsize
        The font size of the names, in points.
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
    windows = [Text.get_window_extent(text) for text in texts]  # the text only, without an arrow
    sizes = np.array([[window.width, window.height] for window in windows]).reshape(-1, 2) / pixel
    order = [*first, *(index for index in range(len(dots)) if index not in set(first))]
    found = _free_places(dots, sizes, np.array(axes.bbox.extents) / pixel, drawn, order)
    for index, text in enumerate(texts):
        if index not in found:
            text.remove()
            continue
        text.set_position(tuple(found[index] * 0.72))
        for edge in _leader(dots, index, found[index], sizes[index]):  # below all names
            ends = axes.transData.inverted().transform(np.array([dots[index], edge]) * pixel)
            axes.plot(*ends.T, "-", color="black", linewidth=0.7, zorder=2.5, scalex=False, scaley=False)


def _free_places(
    dots: np.ndarray, sizes: np.ndarray, frame: np.ndarray, lines: np.ndarray, order: Sequence[int]
) -> dict[int, np.ndarray]:
    """Return, by index, the offset from a dot to the centre of its name. Names without a free place are left out."""
    steps: dict[int, np.ndarray] = {}
    leaders: dict[int, list[Any]] = {}
    marks = np.hstack([dots - _MARKER, dots + _MARKER])
    for _ in range(4):  # names that were placed early are placed again after the later names
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
    """Return the offset with the lowest cost for one name: near its dot, without overlap, and far from other dots."""
    marks, names, lines, led = others
    gaps, turns = (grid.ravel() for grid in np.meshgrid(_GAPS, _TURNS, indexing="ij"))
    steps = np.stack([np.cos(turns), np.sin(turns)], axis=1) * (gaps[:, None] + _MARKER + size / 2)
    boxes = _box(dots[index] + steps, size)
    edges = dots[index] + _edge(steps, size)
    leaders = np.stack([np.broadcast_to(dots[index], edges.shape), edges], axis=1)
    apart = [i for i in range(len(dots)) if np.abs(dots[i] - dots[index]).max() > _MARKER]  # dots at other places
    cost = gaps + _COVERS * _overlap(boxes, np.vstack([marks, names])).sum(axis=1)
    cost += 10 * _COVERS * ((boxes[:, :2] < frame[:2]) | (boxes[:, 2:] > frame[2:])).any(axis=1)
    cost += _TOUCHES * _through(boxes, lines).sum(axis=1) + _CROSSES * _through(boxes, led).sum(axis=1)
    cost += _CROSSES * _through(np.vstack([names, marks[apart]]), leaders).sum(axis=0)
    cost += _CROSSES * _crossing(leaders, led).sum(axis=1)
    cost += _MISLEADS * np.array([_misleads(dots, index, box) for box in boxes])
    return steps[cost.argmin()]


def _leader(dots: np.ndarray, index: int, step: np.ndarray, size: np.ndarray) -> list[np.ndarray]:
    """Return a list with the end point of the line to a name. If the name is clearly near its dot, return []."""
    edge = _edge(step, size)
    far = np.hypot(*edge) > _MARKER + _NEAR
    return [dots[index] + edge] if far or _misleads(dots, index, _box(dots[index] + step, size)) else []


def _misleads(dots: np.ndarray, index: int, box: np.ndarray) -> bool:
    """Return whether a name could seem to belong to another dot, because it is not clearly nearer to its own."""
    distances = np.hypot(*np.maximum(np.maximum(box[:2] - dots, dots - box[2:]), 0).T)
    return bool((np.delete(distances, index) < 1.4 * distances[index]).any())


def _edge(step: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return the offset from a dot to the nearest point of its name. `step` is the offset to the centre of the name."""
    return np.asarray(np.sign(step) * np.maximum(np.abs(step) - size / 2, 0))


def _box(middle: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return the edges (left, bottom, right, top) of a box of this size, one pixel wider on the left and the right."""
    return np.concatenate([middle - size / 2 - (1, 0), middle + size / 2 + (1, 0)], axis=-1)


def _overlap(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return a boolean array of shape (boxes, others): whether a box overlaps another box."""
    return np.asarray(((boxes[:, None, :2] < others[:, 2:]) & (boxes[:, None, 2:] > others[:, :2])).all(axis=2))


def _through(boxes: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Return a boolean array of shape (boxes, lines): whether a line passes through a box."""
    along = lines[:, 1] - lines[:, 0]
    along = np.where(along == 0, 1e-9, along)
    ends = np.stack([(boxes[:, None, side] - lines[:, 0]) / along for side in ([0, 1], [2, 3])])
    enters, leaves = ends.min(axis=0).max(axis=2), ends.max(axis=0).min(axis=2)
    return np.asarray((enters <= leaves) & (leaves >= 0) & (enters <= 1))


def _crossing(lines: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return a boolean array of shape (lines, others): whether two lines cross."""

    def side(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.asarray((b - a)[..., 0] * (c - a)[..., 1] - (b - a)[..., 1] * (c - a)[..., 0])

    (a, b), (c, d) = (lines[:, None, k] for k in (0, 1)), (others[None, :, k] for k in (0, 1))
    return np.asarray((side(a, b, c) * side(a, b, d) < 0) & (side(c, d, a) * side(c, d, b) < 0))

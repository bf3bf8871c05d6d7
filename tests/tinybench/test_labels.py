"""Names at the points of a figure: none collides, each can be told."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from tinybench.support.basics.point_labels import label_points


def labelled(points: Any, names: list[str], **options: Any) -> Any:
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(*np.transpose(points), "o")
    axes.margins(0.15)
    label_points(axes, points, names, **options)
    figure.draw_without_rendering()
    return axes


def boxes(axes: Any) -> dict[str, Any]:
    return {text.get_text(): Text.get_window_extent(text) for text in axes.texts}


def leads(axes: Any, point: Any) -> bool:
    """Whether a thin line starts at a point."""
    leading = [line for line in axes.get_lines() if line.get_marker() == "None"]
    return any(np.allclose(line.get_xydata()[0], point) for line in leading)


@pytest.mark.parametrize("seed", range(4))
def test_fourteen_crowded_points_can_all_be_told(seed: int) -> None:
    points = np.random.default_rng(seed).normal(0, [1, 0.3], (14, 2)) + np.repeat([[0, 0], [3, 1]], 7, axis=0)
    names = [f"model {i}, INT8" for i in range(14)]
    axes = labelled(points, names)
    found, dots = boxes(axes), axes.transData.transform(points)
    assert list(found) == names
    assert not any(a.overlaps(b) for a, b in itertools.combinations(found.values(), 2))
    for (x0, y0, x1, y1), dot, point in zip((box.extents for box in found.values()), dots, points, strict=True):
        inside = (dots[:, 0] > x0) & (dots[:, 0] < x1) & (dots[:, 1] > y0) & (dots[:, 1] < y1)
        assert not inside.any(), "a name covers a point"
        apart = np.hypot(*(np.clip(dots, (x0, y0), (x1, y1)) - dots).T)
        own = np.flatnonzero((dots == dot).all(axis=1))[0]
        assert apart.argmin() == own or leads(axes, point), "a name next to another point needs a line to its own"


def test_what_is_alone_is_named_right_there() -> None:
    axes = labelled([(0, 0), (1, 1)], ["a", "b"])
    assert not any(leads(axes, point) for point in [(0, 0), (1, 1)])


def test_a_name_avoids_a_line() -> None:
    low, high = np.array([[0.5, 0.5], [1, 0.5]]), np.array([[0.5, 0.5], [0, 0.5]])
    axes = labelled([(0, 0), (0.5, 0.5), (1, 1)], ["a", "middle", "c"], lines=[low, high])
    box = boxes(axes)["middle"]
    level = axes.transData.transform((0.5, 0.5))[1]
    assert not box.y0 < level < box.y1


def test_what_finds_no_place_is_left_out_last_comes_last() -> None:
    axes = labelled([(0, 0)] * 90, [f"a long name for the point {i}" for i in range(90)], first=[89])
    found = boxes(axes)
    assert "a long name for the point 89" in found
    assert len(found) < 90
    assert not any(a.overlaps(b) for a, b in itertools.combinations(found.values(), 2))


def test_limits_stay() -> None:
    points = [(0, 0), (1e-3, 1e-3), (5, 1)]
    figure = Figure()
    axes = figure.add_subplot(xlim=(-1, 6), ylim=(-1, 2))
    axes.plot(*np.transpose(points), "o")
    label_points(axes, points, ["first", "second", "third"])
    assert (axes.get_xlim(), axes.get_ylim()) == ((-1, 6), (-1, 2))

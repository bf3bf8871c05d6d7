"""A figure of the roofline: the maximum rate at each intensity, and the operators and batch sizes below it.

The intensity is the number of operations per byte moved. The wall of an operator is what limits its speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.support.basics.described_figure import Drawn
from tinybench.support.basics.point_labels import label_points
from tinybench.support.choices.ranked_values import interval
from tinybench.tools.roofline.operator_bottlenecks import Placed
from tinybench.tools.roofline.roofs import Roofs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tinybench.tools.roofline.batch_sizes import BatchPoint

MARKERS = {"compute": "s", "memory": "o", "overhead": "^"}
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
_DASHES = ("-", "--", ":", "-.")
_FONT = 13  # in points; at a width of 400 pixels it is still 7


def roof_picture(
    roofs: Roofs,
    placed: Mapping[str, Placed] | None = None,
    walks: Mapping[str, Sequence[BatchPoint]] | None = None,
    dtypes: Sequence[str] = ("float32", "uint8 × int8"),
) -> Drawn:
    """Draw the roofs of each type and memory level on logarithmic axes, with operators and batch sizes below them.

    Parameters
    ----------
    roofs
        See `tinybench.tools.roofline.roofs.measure_roofs`.
    placed
        The placed operators of each model, by the name of the model. Each model has a colour, and each wall has a
        marker.
    walks
        The result of `batch_sizes.batch_walk`. Each model is drawn as a line from its smallest to its largest batch.
    dtypes
        The types whose roofs to draw, if they were measured.
    """
    from matplotlib.figure import Figure

    placed, walks = placed or {}, walks or {}
    drawn = [dtype for dtype in dtypes if dtype in roofs.peaks] or list(roofs.peaks)[:1]
    figure = Figure(figsize=(6.4, 6.0), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log")
    points = [
        (place.work.intensity, place.rate) for each in placed.values() for place in each.places if place.work.flop
    ]
    points += [(step.intensity, 1e9 * step.rate.median) for walk in walks.values() for step in walk]
    ridges = [roofs.peak(dtype) / (1e9 * level.median) for dtype in drawn for level in roofs.levels.values()]
    xs = [x for x, _ in points] + ridges
    left, right = min(xs) / 3, max(xs) * 4
    lines = _draw_roofs(axes, roofs, drawn, left, right)
    colours = dict(zip([*placed, *(name for name in walks if name not in placed)], _COLOURS * 3, strict=False))
    names, places = _draw_operators(axes, placed, colours)
    more, ends = _draw_walks(axes, walks, colours)
    top = max([roofs.peak(dtype) for dtype in drawn] + [y for _, y in points])
    bottom = min([y for _, y in points] or [min(map(roofs.peak, drawn)) / 20])
    axes.set(xlim=(left, right), ylim=(bottom / 3, top * 4))
    axes.set_xlabel("operations for each byte moved", fontsize=_FONT)
    axes.set_ylabel("operations in a second", fontsize=_FONT)
    axes.tick_params(labelsize=_FONT - 1)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside upper center", ncols=2, fontsize=_FONT - 2, frameon=False)
    if places + ends:
        label_points(axes, np.array(places + ends), names + more, lines=lines, fontsize=_FONT - 2)
    return Drawn(figure, _alt(roofs, drawn, placed, walks), _caption(placed, walks), _data(roofs, placed, walks))


def _draw_roofs(axes: Axes, roofs: Roofs, dtypes: Sequence[str], left: float, right: float) -> Any:
    """Draw a slope for each memory level up to the highest roof, and a horizontal line for each type.

    Return all lines.
    """
    highest = max(roofs.peak(dtype) for dtype in dtypes)
    lines = []
    for number, (level, result) in enumerate(roofs.levels.items()):
        speed = 1e9 * result.median
        ends = np.array([[left, left * speed], [highest / speed, highest]])
        label = f"{level}: {result.median:.3g} GB/s"
        axes.plot(*ends.T, color="0.45", linewidth=1.3, linestyle=_DASHES[number % 4], label=label, zorder=1)
        lines.append(ends)
    fastest = max(1e9 * result.median for result in roofs.levels.values())
    for number, dtype in enumerate(dtypes):
        peak, (low, high) = roofs.peak(dtype), interval(roofs.peaks[dtype])
        ends = np.array([[peak / fastest, peak], [right, peak]])
        label = f"{dtype}: {peak / 1e9:,.0f}·10⁹/s"
        axes.plot(*ends.T, color="black", linewidth=2.2, linestyle=_DASHES[number % 4], label=label, zorder=1)
        axes.fill_between(ends[:, 0], 1e9 * low, 1e9 * high, color="0.8", linewidth=0, zorder=0)
        lines.append(ends)
    return np.array(lines)


def _draw_operators(
    axes: Axes, placed: Mapping[str, Placed], colours: Mapping[str, str]
) -> tuple[list[str], list[tuple[float, float]]]:
    """Draw a marker for each operator. Return the names and positions of the operators to label.

    In each model, the slowest operator of each kind is labelled if it takes at least 5 % of the time.
    """
    names, places = [], []
    for number, (model, each) in enumerate(placed.items()):
        total = sum(place.seconds for place in each.places)
        for wall, marker in MARKERS.items():
            these = [place for place in each.places if place.wall == wall and place.work.flop]
            if these:
                axes.plot(
                    [place.work.intensity for place in these], [place.rate for place in these], marker, markersize=9,
                    color=colours[model], markerfacecolor="white" if number % 2 else colours[model],
                    markeredgewidth=2, label=f"{model}, {wall}", zorder=3,
                )  # fmt: skip
        longest = {place.work.op: place for place in sorted(each.places, key=lambda place: place.seconds)}
        for op, place in longest.items():
            if place.seconds >= 0.05 * total and place.work.flop:
                names.append(op)
                places.append((place.work.intensity, place.rate))
    return names, places


def _draw_walks(
    axes: Axes, walks: Mapping[str, Sequence[BatchPoint]], colours: Mapping[str, str]
) -> tuple[list[str], list[tuple[float, float]]]:
    """Draw a line for each model, with a point and an interval for each batch size.

    Return the labels and positions of the first and the last point of each line.
    """
    names, places = [], []
    for number, (model, walk) in enumerate(walks.items()):
        x, y = [step.intensity for step in walk], np.array([1e9 * step.rate.median for step in walk])
        ends = 1e9 * np.array([interval(step.rate) for step in walk]).T
        axes.errorbar(
            x, y, yerr=np.maximum(0, [y - ends[0], ends[1] - y]), fmt="o-" if number % 2 == 0 else "s--", markersize=7,
            color=colours[model], markerfacecolor="white" if number % 2 else colours[model], markeredgewidth=1.8,
            capsize=3, label=model, zorder=2,
        )  # fmt: skip
        for place in (0, len(walk) - 1):
            names.append(f"batch {walk[place].batch}")
            places.append((x[place], float(y[place])))
    return names, places


def _alt(
    roofs: Roofs, dtypes: Sequence[str], placed: Mapping[str, Placed], walks: Mapping[str, Sequence[BatchPoint]]
) -> str:
    levels = ", ".join(f"{level} {result.median:.3g}" for level, result in roofs.levels.items())
    peaks = ", ".join(f"{dtype} {roofs.peak(dtype) / 1e9:,.0f}" for dtype in dtypes)
    told = [
        "Operations in a second against operations for each byte, both logarithmic. "
        f"Slopes by memory level in GB/s: {levels}. Level roofs in 10⁹ operations/s: {peaks}."
    ]
    for model, each in placed.items():
        walls = [f"{sum(p.wall == wall for p in each.places)} at the wall {wall}" for wall in MARKERS]
        told.append(f"Operators of {model}: {', '.join(walls)}.")
    for model, walk in walks.items():
        ends = [f"{step.rate.median:.3g} at batch {step.batch}" for step in (walk[0], walk[-1])]
        told.append(f"{model} goes from {' to '.join(ends)}.")
    return " ".join(told)


def _caption(placed: Mapping[str, Placed], walks: Mapping[str, Sequence[BatchPoint]]) -> str:
    told = [f"{model}: {each.sentences[0]}." for model, each in placed.items()]
    for model, walk in walks.items():
        gain = walk[-1].rate.median / walk[0].rate.median
        told.append(
            f"{model}: batch {walk[-1].batch} does {gain:.3g} times the operations per second of batch {walk[0].batch}."
        )
    return " ".join(told) or "An operator stands below the lower of the two lines at its intensity."


def _data(
    roofs: Roofs, placed: Mapping[str, Placed], walks: Mapping[str, Sequence[BatchPoint]]
) -> dict[str, list[Any]]:
    rows = [(f"roof of {dtype}", "", roofs.peak(dtype), "") for dtype in roofs.peaks]
    rows += [(f"{level}, GB/s", "", result.median, "") for level, result in roofs.levels.items()]
    rows += [
        (f"{model}: {place.work.op}", f"{place.work.intensity:.3g}", place.rate, place.wall)
        for model, each in placed.items()
        for place in each.places
    ]
    rows += [
        (f"{model}, batch {step.batch}", f"{step.intensity:.3g}", 1e9 * step.rate.median, "")
        for model, walk in walks.items()
        for step in walk
    ]
    names = ("what", "operations per byte", "operations/s", "wall")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}

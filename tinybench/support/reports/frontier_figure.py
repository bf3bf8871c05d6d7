"""The figure of a Pareto frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.result import BenchmarkResult
from tinybench.support.basics.point_labels import label_points
from tinybench.support.basics.result_text import scale_unit
from tinybench.support.choices.ranked_values import LATENCY_ACCURACY, central, interval, objective_values, row_name
from tinybench.support.choices.resampling import percent
from tinybench.support.reports.frontier_border import staircase

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_pareto_frontier(
    points: Sequence[Any],
    objectives: Mapping[str, str] = LATENCY_ACCURACY,
    labels: Sequence[str] | None = None,
    probabilities: Sequence[float] | None = None,
    title: str = "",
) -> Figure:
    """Draw points with their intervals, the frontier as a staircase, and labels that do not overlap.

    Parameters
    ----------
    points
        The points, as for `pareto_frontier`. Values that are results are drawn with their intervals and units.
    objectives
        The two objectives. The first is drawn along the x axis, the second along the y axis.
    labels
        A name for each point; by default its ``"model"``. A label without a free place is left out. Labels of points on
        the frontier are placed first.
    probabilities
        For each point, the probability that it is on the frontier. It is written after the name.
    title
        The title of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. It is not registered with pyplot; a notebook shows it, and ``savefig`` writes it.

    Raises
    ------
    ValueError
        If there are not exactly two objectives, or not one label or probability for each point. For further reasons,
        see `objective_values`.
    """
    from matplotlib.figure import Figure

    points = list(points)
    corners = np.array(staircase(points, objectives))
    values = objective_values(points, objectives)
    names = [row_name(point, index) for index, point in enumerate(points)] if labels is None else list(labels)
    if len(names) != len(points) or (probabilities is not None and len(probabilities) != len(points)):
        raise ValueError(f"labels and probabilities need one value for each point: lists of length {len(points)}")
    if probabilities is not None:
        names = [f"{name} ({percent(share)})" for name, share in zip(names, probabilities, strict=True)]
    on_frontier = np.array([tuple(value) in set(map(tuple, corners)) for value in values])

    figure = Figure(figsize=(5.8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    raw = [[p[m] if isinstance(p, Mapping) else p[k] for p in points] for k, m in enumerate(objectives)]
    scales = []
    for axis, metric, column in zip((axes.xaxis, axes.yaxis), objectives, raw, strict=True):
        scale, text = _axis_label(metric, column)
        scales.append(scale)
        axis.set_label_text(f"{text}, {'lower' if objectives[metric] == 'min' else 'higher'} is better", fontsize=11)
    values, corners = values / scales, corners / scales
    ends = np.array([[interval(value) for value in column] for column in raw]) / np.array(scales)[:, None, None]
    errors = np.abs(ends - values.T[:, :, None]).transpose(0, 2, 1)  # for NaN, no error bar is drawn
    ends = np.where(np.isfinite(ends), ends, values.T[:, :, None])

    styles = (  # Okabe-Ito blue and vermilion; shape and filling also differ, for readers who do not see the colours
        (on_frontier, "o", "#0072B2", "#0072B2", "on the frontier"),
        (~on_frontier, "s", "white", "#D55E00", "dominated"),
    )
    handles: list[Any] = []
    for chosen, marker, face, edge, name in styles:
        if chosen.any():
            x, y = values[chosen].T
            drawn = axes.errorbar(
                x, y, xerr=errors[0][:, chosen], yerr=errors[1][:, chosen], fmt=marker, markersize=8,
                markerfacecolor=face, markeredgecolor=edge, markeredgewidth=1.6, ecolor="0.6", elinewidth=1,
                capsize=3, label=name, zorder=4 if marker == "o" else 3,  # frontier on top
            )  # fmt: skip
            handles.append(drawn)
    for k, name in enumerate("xy"):
        known = ends[k][np.isfinite(ends[k])]
        if known.size and known.min() > 0 and known.max() > 8 * known.min():
            _readable_log_axis(axes, name)
    axes.margins(0.14)
    axes.tick_params(labelsize=10)
    axes.grid(alpha=0.3)
    axes.set_title(title, fontsize=12)
    axes.autoscale_view()
    limits = axes.get_xlim(), axes.get_ylim()
    worst = [limits[k][0 if direction == "max" else 1] for k, direction in enumerate(objectives.values())]
    border = [(corners[0][0], worst[1]), *map(tuple, corners), (worst[0], corners[-1][1])]
    handles += axes.plot(*zip(*border, strict=True), "--", color="black", linewidth=1.3, label="border", zorder=2)
    axes.set(xlim=limits[0], ylim=limits[1])
    figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=10, frameon=False)
    bars = [
        np.stack([np.where(np.arange(2) == k, ends[k][:, [side]], values) for side in (0, 1)], axis=1) for k in (0, 1)
    ]
    lines = np.vstack([*bars, list(pairwise(border))])
    label_points(axes, values, names, lines=lines, first=[int(i) for i in np.flatnonzero(on_frontier)])
    return figure


def _axis_label(metric: str, column: Sequence[Any]) -> tuple[float, str]:
    """Return the divisor for the values of an axis, and the axis label, such as (0.001, "latency (ms)")."""
    results = [value for value in column if isinstance(value, BenchmarkResult)]
    text = metric.replace("_", " ")
    if not results:
        return 1.0, text
    factor, unit = scale_unit(float(np.median([abs(central(value)) for value in column])), results[0].unit)
    if metric == "accuracy" and not unit:
        factor, unit = 0.01, "%"
    kind = "" if results[0].measured else ", estimate"
    return factor, f"{text} ({unit}{kind})" if unit or kind else text


def _readable_log_axis(axes: Axes, axis: str) -> None:
    """Make an axis logarithmic with plain tick labels, at 1, 2 and 5 if it spans only a few decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    getattr(axes, f"set_{axis}scale")("log")
    low, high = getattr(axes, f"get_{axis}lim")()
    ticks = getattr(axes, f"{axis}axis")
    ticks.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 150 * low else (1,), numticks=12))
    ticks.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ticks.set_minor_formatter(NullFormatter())

"""Matplotlib figures of the dashboard's panels, drawn from direct polls of the servers, without Grafana."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.support.basics.described_figure import Drawn
from tinybench.support.basics.numbers import number_of
from tinybench.tools.watching.budget_burn import Look
from tinybench.tools.watching.prometheus_server import Point
from tinybench.tools.watching.queries import Objective, Panel, panels_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Curves", "panel_picture", "panels_from_looks"]

Curves = list[tuple[Panel, dict[str, list[Point]]]]
COLOURS = {  # from the palette of Okabe and Ito; the darker set is for a white background
    False: ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#7A6A00"),
    True: ("#56B4E9", "#E69F00", "#2DC79A", "#E29CC4", "#F0E442"),
}
INKS = {False: ("#1a1a1a", "white", "#c8c8c8"), True: ("#e8e8e8", "#16181b", "#4a4d52")}  # ink, paper, grid
DASHES, MARKERS = ("-", "--", ":", "-."), "os^Dv"
FONT, MOST = 14, 8  # font size in points (7 if shrunk to a width of 400 pixels); maximum number of curves in a panel
UNITS = {"s": 1e3, "share": 100.0}


def panels_from_looks(looks: Sequence[Look], objective: Objective, long: str, short: str) -> Curves:
    """Return the curves of each panel from direct polls. `long` and `short` are the names of the windows in legends."""
    found: dict[str, dict[str, list[Point]]] = {}
    end, budget = max((look.at for look in looks), default=0.0), "Budget left of this watch"

    def put(title: str, name: str, look: Look, value: float) -> None:
        if math.isfinite(value):
            found.setdefault(title, {}).setdefault(name, []).append((look.at - end, value))

    servers = [*dict.fromkeys(look.server for look in looks)]
    versions = [server.partition(" ")[0] for server in servers]
    for name, version in zip(servers, versions, strict=True):
        mine = [look for look in looks if look.server == name]
        server = version if versions.count(version) == 1 else name
        for look in mine:
            put("Servers", server, look, float(look.read))
        for before, look in pairwise(mine):
            if look.problem:
                continue
            total, bad = look.total - before.total, look.bad - before.bad
            put("Requests", server, look, look.rate)
            put("Answered in time", server, look, 1 - bad / total if total else math.nan)
            put("Failed", server, look, look.failed / total if total else math.nan)
            put("Burn rate", f"{server}, {long}", look, look.long)
            put("Burn rate", f"{server}, {short}", look, look.short)
            put(budget, server, look, look.left(objective))
            for q, value in (("p50", look.p50), ("p99", look.p99)):
                put("Latency", f"{server}, {q}", look, value.estimate if value else math.nan)
            put("Under way", f"{server}, open", look, look.open)
            for what, evidence in look.drift.items():
                put("Evidence of drift", f"{server}, {what}", look, evidence)
    panels = [
        panel._replace(title=budget) if panel.title.startswith("Budget left") else panel
        for panel in panels_for(objective)
    ]
    return [(panel, found.get(panel.title, {})) for panel in panels]


def panel_picture(curves: Curves, *, columns: int = 2, dark: bool = False) -> Drawn:
    """Draw the panels that have data. The caption lists the panels without data.

    Parameters
    ----------
    curves
        Panels, each with its curves by name. A curve is a list of points (seconds relative to the end, value).
    columns
        Number of panels side by side: 2 for a page, 1 for a narrow page.
    dark
        Whether to draw in light colours on a dark background.
    """
    from matplotlib.figure import Figure

    drawn = [(panel, series) for panel, series in curves if series]
    if not drawn:
        raise ValueError(
            "there is nothing to draw: no panel has data; were the servers asked anything, and read twice?"
        )
    rows = math.ceil(len(drawn) / columns)
    ink, paper, grid = INKS[dark]
    figure = Figure(figsize=(4.0 * columns, 2.9 * rows), layout="constrained", facecolor=paper)
    every = figure.subplots(rows, columns, squeeze=False).ravel()
    names = sorted({_version(name) for _, series in drawn for name in series}, key=_order)
    colours = {version: COLOURS[dark][i % len(COLOURS[dark])] for i, version in enumerate(names)}
    for axes, (panel, series) in zip(every, drawn, strict=False):
        _draw(axes, panel, series, colours, (ink, paper, grid))
    for axes in every[len(drawn) :]:
        axes.set_visible(False)
    if len(names) > 1:
        keys = [_key(colour, MARKERS[i % len(MARKERS)], "-") for i, colour in enumerate(colours.values())]
        how: dict[str, Any] = {"ncols": min(len(keys), columns + 1), "frameon": False, "labelcolor": ink}
        figure.legend(keys, names, fontsize=FONT, loc="outside upper center", **how)
    return Drawn(figure, _alt(drawn), _caption(drawn, curves), _data(drawn))


def _version(name: str) -> str:
    return name.partition(",")[0]


def _order(version: str) -> tuple[int, str]:
    usual = ("stable", "canary")
    return next((place for place, word in enumerate(usual) if version.startswith(word)), len(usual)), version


def _draw(
    axes: Axes, panel: Panel, series: Mapping[str, list[Point]], colours: Mapping[str, str], inks: tuple[str, str, str]
) -> None:
    ink, paper, grid = inks
    factor, (span, unit) = UNITS.get(panel.unit, 1.0), _span(series)
    kinds = dict.fromkeys(name.partition(", ")[2] for name in series)
    for name, points in list(series.items())[:MOST]:
        kind = list(kinds).index(name.partition(", ")[2])
        at, value = _with_gaps(points)
        marks: dict[str, Any] = {
            "marker": MARKERS[list(colours).index(_version(name)) % len(MARKERS)],
            "markevery": max(1, len(at) // 6),
        }
        style: dict[str, Any] = {
            "color": colours[_version(name)],
            "linestyle": DASHES[kind % 4],
            "linewidth": 2,
            "markersize": 5,
        }
        axes.plot(at / span, factor * value, **marks, **style)
    low = min(value for points in series.values() for _, value in points)
    if panel.log and low > 0:
        axes.set_yscale("log")
    if panel.line is not None:
        axes.axhline(factor * panel.line[0], color=ink, linewidth=1, linestyle=(0, (4, 3)))
    _scale(axes, panel, [factor * value for points in series.values() for _, value in points])
    if panel.line is not None:
        height = axes.transLimits.transform(axes.transScale.transform((0, factor * panel.line[0])))[1]
        above = {"xytext": (0, 2), "va": "bottom"} if height < 0.85 else {"xytext": (0, -3), "va": "top"}
        where: Any = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points", **above}
        axes.annotate(panel.line[1], (0.02, factor * panel.line[0]), color=ink, fontsize=FONT - 4, **where)
    axes.set_facecolor(paper)
    axes.set_title(f"{panel.title}{_in_unit(panel.unit)}", fontsize=FONT, color=ink, loc="left")
    axes.set_xlabel(f"{unit} before the end", fontsize=FONT - 2, color=ink)
    axes.tick_params(labelsize=FONT - 2, colors=ink)
    axes.grid(color=grid, linewidth=0.6)
    for spine in axes.spines.values():
        spine.set_color(grid)
    if any(kinds):
        keys = [_key(ink, "", DASHES[i % 4]) for i in range(len(kinds))]
        how: dict[str, Any] = {
            "facecolor": paper,
            "edgecolor": grid,
            "framealpha": 0.8,
            "ncols": 2,
            "handlelength": 1.6,
        }
        axes.legend(keys, list(kinds), fontsize=FONT - 3, labelcolor=ink, loc="best", **how)


def _key(colour: str, marker: str, dashes: Any) -> Any:
    """Return a sample line for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, marker=marker, linestyle=dashes, linewidth=2, markersize=5)


def _scale(axes: Axes, panel: Panel, values: Sequence[float]) -> None:
    """Start the y axis at 0 unless this would hide differences, and label the ticks with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{abs(x):g}"))
    if axes.get_yscale() == "log":
        bottom, top = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if top < 100 * bottom else (1,), numticks=6))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.margins(y=0.15)
    else:
        if min(values) >= 0 and panel.title != "Answered in time":
            axes.set_ylim(bottom=0, top=None if max(values) > 0 or panel.line else 1)
        counts = panel.unit == "" and all(value == round(value) for value in values)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=counts))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.6g}"))


def _in_unit(unit: str) -> str:
    return {"s": ", ms", "share": ", %", "per second": ", /s"}.get(unit, "")


def _span(series: Mapping[str, list[Point]]) -> tuple[float, str]:
    longest = -min(at for points in series.values() for at, _ in points)
    return next(((size, name) for size, name in ((3600.0, "h"), (60.0, "min")) if longest > 3 * size), (1.0, "s"))


def _with_gaps(points: Sequence[Point]) -> tuple[np.ndarray, np.ndarray]:
    """Return times and values, with a NaN inserted in each gap, so that no line is drawn across the gap."""
    at, value = np.array(points).T
    usual = np.median(np.diff(at)) if len(at) > 1 else 1.0
    holes = np.flatnonzero(np.diff(at) > 2.5 * usual) + 1
    return np.insert(at, holes, at[holes - 1] + usual), np.insert(value, holes, math.nan)


def _alt(drawn: Curves) -> str:
    told = []
    for panel, series in drawn:
        factor, unit = UNITS.get(panel.unit, 1.0), _in_unit(panel.unit).removeprefix(", ").replace("/s", "per second")
        ends = "; ".join(f"{name} {factor * points[-1][1]:.3g} {unit}".rstrip() for name, points in series.items())
        told.append(f"{panel.title}: {ends}")
    return f"{number_of(len(drawn), 'plot')} over time. At the end of each: {'. '.join(told)}."


def _caption(drawn: Curves, curves: Curves) -> str:
    shown = {panel.title for panel, _ in drawn}
    empty = [panel.title for panel, _ in curves if panel.title not in shown]
    return f"No data for: {', '.join(empty)}." if empty else "Every panel of the dashboard has data."


def _data(drawn: Curves) -> dict[str, list[Any]]:
    rows = [
        (panel.title, name, points[0][1], points[-1][1], min(v for _, v in points), max(v for _, v in points))
        for panel, series in drawn
        for name, points in series.items()
    ]
    names = ("panel", "curve", "first", "last", "smallest", "largest")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}

"""A figure of a history of results: each commit with its interval, the changes, and the level between changes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.pages import Picture
from tinybench.support.basics.result_text import scale_unit
from tinybench.tools.history.changes import Change
from tinybench.tools.history.series import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS, LEVEL, MARK = "#0072B2", "#000000", "#D55E00"  # dots, lines, dashes: also distinguishable without colours


def scaled(series: Series) -> tuple[list[tuple[float, float, float]], str]:
    """Return the value and the interval of each point as plotted, and their unit.

    With a baseline, the unit is percent above or below the baseline. Otherwise it is the series' unit with a suitable
    prefix, such as ms for s.
    """
    rows = [(point.value, point.low, point.high) for point in series.points]
    if series.baseline:
        return [tuple(100 * (end - 1) for end in row) for row in rows], "%"  # type: ignore[misc]
    factor, unit = scale_unit(float(np.median([row[0] for row in rows])), series.unit)
    return [tuple(end / factor for end in row) for row in rows], unit  # type: ignore[misc]


def levels(values: Sequence[float], changes: Sequence[Change]) -> list[tuple[int, int, float]]:
    """Return the first index, the last index and the median of each segment between two changes."""
    ends = [0, *(change.place for change in changes), len(values)]
    return [(a, b - 1, float(np.median(values[a:b]))) for a, b in pairwise(ends) if b > a]


def draw(series: Series, changes: Sequence[Change]) -> Figure:
    """Draw a series. Intervals that are infinite or far wider than the range of the values are cut off."""
    from matplotlib.figure import Figure

    rows, unit = scaled(series)
    values = np.array([row[0] for row in rows])
    x = np.arange(len(values))
    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    reach = max(float(np.ptp(values)), 1e-12)
    floor, ceiling = float(values.min()) - reach, float(values.max()) + reach
    low, high = (np.clip([row[end] for row in rows], floor, ceiling) for end in (1, 2))
    axes.vlines(x, low, high, color=POINTS, alpha=0.35, linewidth=1.2)
    axes.plot(x, values, "o", color=POINTS, markersize=3.5 if len(x) > 60 else 5)
    for first, last, level in levels(list(values), changes):
        axes.plot([first - 0.4, last + 0.4], [level, level], color=LEVEL, linewidth=2)
    for number, change in enumerate(changes):
        late = change.place > 0.8 * len(x)
        axes.axvspan(change.earliest - 0.5, change.latest - 0.5, color=MARK, alpha=0.18, linewidth=0)
        axes.axvline(change.place - 0.5, color=MARK, linestyle="--", linewidth=1.5)
        axes.annotate(
            change.in_percent()[0],
            (change.place - 0.5, 1 - 0.1 * (number % 3)),
            (-4 if late else 4, -4),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            va="top",
            ha="right" if late else "left",
            bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"},
            fontsize=13,
        )
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top + (0.4 if changes else 0.05) * (top - bottom))  # the labels of changes go above the dots
    ticks = np.unique(np.linspace(0, len(x) - 1, 4).astype(int))
    axes.set_xticks(ticks, [series.commits[tick][:7] for tick in ticks])
    axes.tick_params(labelsize=13)
    axes.set_xlabel("commit, oldest first", fontsize=14)
    metric = series.points[0].entries[0].result["metric_name"]
    axes.set_ylabel(f"{metric} against the baseline (%)" if series.baseline else f"{metric} ({unit})", fontsize=14)
    axes.grid(axis="y", alpha=0.4)
    return figure


def picture(series: Series, changes: Sequence[Change], told: Sequence[str]) -> Picture:
    """Return the figure of a series, with a caption and a description in words."""
    rows, unit = scaled(series)
    values = [row[0] for row in rows]
    spread = f"from {min(values):.3g} to {max(values):.3g} {unit}".replace("-", "−")
    alt = f"{series.benchmark}, {number_of(len(values), 'commit')}, values {spread}. {' '.join(told)}"
    caption = (
        "Each dot is a commit, with its 95 % interval; lines are the medians between changes; dashes are where the "
        "level changed, in the shaded range by its interval."
    )
    return Picture(draw(series, changes), alt, caption)

"""The figures of a study, and their descriptions in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.pareto import dominates, frontier_nd, membership_probability, pareto_frontier
from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import number_of, with_digits
from tinybench.support.basics.pages import Picture
from tinybench.support.basics.result_text import is_interval, scale_unit
from tinybench.support.choices.ranked_values import DIRECTIONS, as_rows, central, interval, objective_values, visible
from tinybench.support.metric_tests import is_detected
from tinybench.support.reports.frontier_figure import plot_pareto_frontier as draw_points

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Results = dict[str, dict[str, BenchmarkResult]]  # by metric and model


def plot_metric(metric: str, by_model: Mapping[str, BenchmarkResult]) -> Figure:
    """Draw all measurements of one metric, and each model's central value with its interval."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    white = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    results = list(by_model.values())
    factor, unit = scale_unit(float(np.median([abs(result.median) for result in results])), results[0].unit)
    if metric == "accuracy":
        factor, unit = 0.01, "%"
    figure = Figure(figsize=(7, 0.6 * len(results) + 1.5), layout="constrained")
    axes = figure.subplots()
    for row, result in enumerate(results):
        if result.count > 1:
            height = row + np.linspace(-0.24, 0.24, result.count)
            axes.plot(np.array(result.values) / factor, height, ".", color="#0072B2", alpha=0.35, zorder=1)
        if is_detected(result):
            lower, value, upper = (
                number / factor for number in (interval(result)[0], central(result), interval(result)[1])
            )
            known = math.isfinite(upper - lower)  # a single value, or equal values, have no error bar
            error = [[max(0.0, value - lower)], [max(0.0, upper - value)]] if known else None
            axes.errorbar(
                value, row, xerr=error, fmt="D", color="#D55E00", ecolor="black", markersize=7, capsize=7, zorder=2
            )
            text = with_digits(value, upper - lower if known else 0.0)
        else:
            value, text = result.median / factor, "not seen"
        axes.annotate(
            text, (value, row), (0, 15), textcoords="offset points", ha="center", va="center", fontsize=9, bbox=white
        )
    values = [value for result in results for value in result.values]
    if min(values) > 0 and max(values) > 20 * min(values):
        axes.set_xscale("log")
        few_decades = max(values) < 300 * min(values)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few_decades else (1,), numticks=12))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.12g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    better = "lower is better" if DIRECTIONS[metric] == "min" else "higher is better"
    axes.set_xlabel(f"{metric_label(metric, results[0])}{f' ({unit})' if unit else ''}, {better}")
    axes.set_yticks(range(len(results)), list(by_model))
    axes.set_ylim(len(results) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.4)
    return figure


def draw_frontier(points: Sequence[dict[str, Any]], objectives: Mapping[str, str]) -> Figure:
    """Draw the rows of `BenchmarkSuite.generate_pareto_frontier`.

    Probabilities of being on the frontier are only shown if at least one of them lies between 1 and 99 %.
    """
    shares = [point["probability"] for point in points]
    doubtful = any(0.01 < share < 0.99 for share in shares)
    return draw_points(points, objectives, probabilities=shares if doubtful else None)


def beaten_by(points: Sequence[dict[str, Any]], objectives: Mapping[str, str]) -> list[list[str]]:
    """Return, for each row, the names of the frontier models that dominate it.

    A note is added to a name if that model and the row's model predict exactly the same samples correctly.
    """
    costs = objective_values(points, objectives) * [1 if way == "min" else -1 for way in objectives.values()]
    kept, found = frontier_nd(costs), []
    for point, cost in zip(points, costs, strict=True):
        better = [other for other, each, on in zip(points, costs, kept, strict=True) if on and dominates(each, cost)]
        found.append([f"{other['model']}{', right on the same rows' * _same_rows(point, other)}" for other in better])
    return found


def _same_rows(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    rights = [point["accuracy"].metadata.get("right") for point in (a, b) if "accuracy" in point]
    return len(rights) == 2 and rights[0] is not None and rights[0] == rights[1]


def tradeoff(results: Results, x_metric: str, y_metric: str) -> list[dict[str, Any]]:
    """Return the rows of `BenchmarkSuite.generate_pareto_frontier` for two metrics."""
    objectives = {metric: DIRECTIONS[metric] for metric in (x_metric, y_metric)}
    points = as_rows({metric: visible(results).get(metric, {}) for metric in objectives})
    points = [point for point in points if objectives.keys() <= point.keys()]
    if not points:
        raise ValueError(f"{x_metric} and {y_metric} were not both seen for any model; the meter resolves too little")
    frontier = {row["model"] for row in pareto_frontier(points, objectives)}
    shares = membership_probability(points, objectives)
    return [
        {**point, "on_frontier": point["model"] in frontier, "probability": share, "beaten_by": better}
        for point, share, better in zip(points, shares, beaten_by(points, objectives), strict=True)
    ]


def metric_label(metric: str, result: BenchmarkResult) -> str:
    """Return the name of a metric for readers. For energy, state whether it was estimated or replaced by CPU time."""
    if metric != "energy":
        return metric
    if result.unit == "s":
        return "CPU time, in place of energy"
    return "energy" if result.measured else "energy, estimated"


def for_people(metric: str, value: float, unit: str, ends: tuple[float, float] = (-math.inf, math.inf)) -> str:
    """Return a value with its unit as a text with three digits, or fewer if its interval supports fewer."""
    if metric == "accuracy":
        width = 100 * (ends[1] - ends[0]) if is_interval(*ends) else 0.0
        return f"{with_digits(100 * value, width) if width > 5 else f'{100 * value:.1f}'} %"
    if math.isnan(value):
        return "not seen"  # the value is below the resolution of the meter, which does not mean 0
    factor, name = scale_unit(value, unit)
    number = value / factor
    width = (ends[1] - ends[0]) / factor if is_interval(*ends) else 0.0
    if width > 0.05 * abs(number) or number >= 1000:
        return f"{with_digits(number, width)} {name}".rstrip()
    return f"{number:.3g} {name}".rstrip()


def value_text(metric: str, result: BenchmarkResult) -> str:
    """Return the central value of a result as a readable text with its unit."""
    return for_people(metric, central(result), result.unit, interval(result))


def picture_of(name: str, figure: Figure, results: Results) -> Picture:
    """Return a figure of the benchmark suite together with a description in words."""
    metric = name.removeprefix("benchmark_").removesuffix(".png")
    if metric in results:
        by_model = results[metric]
        values = "; ".join(f"{model} {value_text(metric, r)}" for model, r in by_model.items())
        label = metric_label(metric, next(iter(by_model.values())))
        return Picture(figure, f"{label[0].upper() + label[1:]}, of each model: {values}.")
    points = tradeoff(results, "latency", "accuracy")
    on = "; ".join(point["model"] for point in points if point["on_frontier"])
    off = "; ".join(f"{point['model']} by {', '.join(point['beaten_by'])}" for point in points if point["beaten_by"])
    return Picture(
        figure,
        f"Accuracy against latency of {number_of(len(points), 'model')}, with intervals. "
        f"On the frontier, a staircase: {on}."
        f"{f' Beaten: {off}.' if off else ''}",
        "Filled circles: no other model is at least as fast and as accurate. A percentage behind a name is the share "
        "of frontiers, of rows and rounds drawn again, that the model is on.",
    )

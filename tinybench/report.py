# Written by "autograder export" from modules/10_suite/10_suite.ipynb: edit the notebook, not this file.

"""Reports and figures of a study: they read its results and never measure."""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tinybench.benchmark import system_info
from tinybench.dependence import caution
from tinybench.optional import from_toolbox
from tinybench.pairs import compare_pair
from tinybench.pareto import (
    DIRECTIONS,
    Requirements,
    as_rows,
    central,
    dominates,
    frontier_nd,
    interval,
    membership_probability,
    objective_values,
    pareto_frontier,
    seen,
    visible,
)
from tinybench.plots import plot_pareto_frontier as draw_points
from tinybench.result import BenchmarkResult, scale_unit
from tinybench.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tinybench.suite import Results


def plot_metric(metric: str, by_model: Mapping[str, BenchmarkResult]) -> Figure:
    """Draw every measurement of one metric, and each model's value with its interval."""
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
        if seen(result):
            lower, value, upper = (
                number / factor for number in (interval(result)[0], central(result), interval(result)[1])
            )
            error = [[max(0.0, value - lower)], [max(0.0, upper - value)]]
            axes.errorbar(
                value, row, xerr=error, fmt="D", color="#D55E00", ecolor="black", markersize=7, capsize=7, zorder=2
            )
            text = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
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
    estimate = "" if all(result.measured for result in results) else ", estimated"
    better = "lower is better" if DIRECTIONS[metric] == "min" else "higher is better"
    axes.set_xlabel(f"{metric}{estimate}{f' ({unit})' if unit else ''}, {better}")
    axes.set_yticks(range(len(results)), list(by_model))
    axes.set_ylim(len(results) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.4)
    return figure


def draw_frontier(points: Sequence[dict[str, Any]], objectives: Mapping[str, str]) -> Figure:
    """Draw rows of `BenchmarkSuite.generate_pareto_frontier`; probabilities are written where one is in doubt."""
    shares = [point["probability"] for point in points]
    doubtful = any(0.01 < share < 0.99 for share in shares)
    return draw_points(points, objectives, probabilities=shares if doubtful else None)


def beaten_by(points: Sequence[dict[str, Any]], objectives: Mapping[str, str]) -> list[list[str]]:
    """Return for each row which models of the frontier beat it, and where they are right on the same rows."""
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
    """Return the rows of `BenchmarkSuite.generate_pareto_frontier`."""
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


class Section(NamedTuple):
    """One part of a report: heading, what to know to read the table, its rows of text, and figures that follow."""

    title: str
    text: str
    rows: list[dict[str, str]]
    pictures: list[str]


def metric_section(label: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Return what was measured of one metric, from its rows of the summary."""
    metric = rows[0]["metric"]
    table = [
        {
            "model": row["model"],
            "value": _shown(metric, row["value"], row["unit"]),
            "interval": _shown_interval(row),
            "measurements": str(row["count"]),
        }
        for row in rows
    ]
    kinds = {
        "median": "medians with their 95 % order-statistic intervals",
        "Wilson": "shares of all rows with Wilson's 95 % intervals",
        "range": "medians with the range, as fewer than 6 values have no interval",
    }
    shown = "; ".join(kinds[kind] for kind in dict.fromkeys(row["interval"] for row in rows))
    better = "Lower is better" if DIRECTIONS[metric] == "min" else "Higher is better"
    text = (
        f"{better}. Shown are {shown}{'; in the figure each dot is one measurement' if rows[0]['count'] > 1 else ''}."
    )
    return Section(label[0].upper() + label[1:], text, table, [f"benchmark_{metric}.png"])


def _shown_interval(row: Mapping[str, Any]) -> str:
    ends = [_shown(row["metric"], row[end], row["unit"]) for end in ("lower", "upper")]
    if math.isnan(row["lower"]):
        return "–" if math.isnan(row["upper"]) else f"at most {ends[1]}"
    return " to ".join(ends)


def metric_label(metric: str, result: BenchmarkResult) -> str:
    """Return what a metric is called; CPU time, which stands in for energy, by its own name."""
    if metric != "energy":
        return metric
    return f"{result.metric_name.replace('_', ' ')}{'' if result.measured else ' (estimate)'}"


def shortcomings(row: Mapping[str, Any], requirements: Requirements) -> tuple[str, list[str]]:
    """Return whether a row meets requirements ("yes", "no", "cannot tell"), and what speaks against it."""
    try:
        broken = requirements.violations(row)
    except ValueError as error:
        return "cannot tell", [str(error)]
    return ("no" if broken else "yes"), broken


def requirements_section(rows: Sequence[Mapping[str, Any]], requirements: Requirements) -> Section:
    """Return which models meet the user's requirements, and why others do not."""
    limits = ", ".join(f"{name} {limit:g}" for name, limit in requirements.limits().items())
    found = {str(row["model"]): shortcomings(row, requirements) for row in rows}
    table = [
        {"model": name, "meets them": verdict, "why not": "; ".join(against) or "–"}
        for name, (verdict, against) in found.items()
    ]
    meeting = [name for name, (verdict, _) in found.items() if verdict == "yes"]
    text = f"Required: {limits or 'nothing'}. Met by {'; '.join(meeting) or 'no model'}."
    return Section("Requirements", text, table, [])


def decision_sentence(results: Results, best: Mapping[str, Mapping[str, Any]], of: int) -> str:
    """Return which of the models in the results to take, from who is best in each dimension (see `best_by_dimension`).

    `of` is how many models there were before those that miss the requirements were left out.
    """
    names = list(dict.fromkeys(name for by_model in results.values() for name in by_model))
    if not names:
        return f"Take no model: of {of}, none is known to meet the requirements."
    meet = "it alone meets" if len(names) == 1 else f"{len(names)} meet"
    among = "" if len(names) == of else f" Of {of} models {meet} the requirements."
    if len(names) == 1:
        return f"Take {names[0]}.{among}"
    if not {"latency", "accuracy"} <= best.keys():
        metric, row = next(iter(best.items()))
        value = _shown(metric, row["value"], row["unit"])
        return f"Take {row['model']} if {metric} decides ({value}): the rest is not measured yet.{among}"
    fast, good = best["latency"]["model"], best["accuracy"]["model"]
    told = {
        name: ", ".join(_shown(m, central(results[m][name]), results[m][name].unit) for m in ("latency", "accuracy"))
        for name in (fast, good)
    }
    quick, right = f"{fast} ({told[fast]})", f"{good} ({told[good]})"
    if central(results["accuracy"][fast]) == central(results["accuracy"][good]):
        return f"Take {quick}: none was measured to be faster or more accurate.{among}"
    if fast in best["accuracy"]["tied"]:
        gain = f"by up to {100 * most_gained(results['accuracy'][good], results['accuracy'][fast]):.1f} points"
        first = "the fastest here, though not proven" if best["latency"]["tied"] else "the fastest"
        return f"Take {quick}: {first}; {right} may be more accurate {gain}, these rows do not show it.{among}"
    if good in best["latency"]["tied"]:
        return f"Take {right}: the most accurate; these rounds do not show that {quick} is faster.{among}"
    return f"Take {right} if accuracy decides, {quick} if latency does: no model is best in both.{among}"


def most_gained(a: BenchmarkResult, b: BenchmarkResult) -> float:
    """Return by how much one accuracy exceeds another at most: by rows where they are known, else by both intervals."""
    row = compare_pair("accuracy", ("a", "b"), a, b)
    return float(row["difference_upper"]) if row else interval(a)[1] - interval(b)[0]


def models_section(results: Results, points: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> Section:
    """Return every model with all its metrics, and what the points of the frontier say of it."""
    text = "Medians; the accuracy is the share of all rows."
    on = {str(point["model"]): point for point in points}
    if points:
        text += f" On the frontier of latency and accuracy: {'; '.join(n for n, p in on.items() if p['on_frontier'])}."
    if doubted := [f"{name} ({p['probability']:.0%})" for name, p in on.items() if 0.01 < p["probability"] < 0.99]:
        text += (
            f" In doubt, with the share of repetitions (rows and rounds drawn again, the same for all models) in which "
            f"they are on it: {'; '.join(doubted)}."
        )
    table = []
    for row in as_rows(results):
        name = str(row["model"])
        cells = {"model": name}
        if point := on.get(name):
            cells["frontier"] = "yes" if point["on_frontier"] else f"beaten by {'; '.join(point['beaten_by'])}"
        elif points:
            cells["frontier"] = "–"
        for metric in results:
            result = row.get(metric)
            cells[labels[metric]] = "–" if result is None else _shown(metric, central(result), result.unit)
            if metric == "latency":
                cells["95th percentile"] = "–" if result is None else _shown(metric, result.percentile(95), result.unit)
        size = row["memory"].metadata.get("model_bytes") if "memory" in row else None
        table.append(cells | {"size on disk": "–" if size is None else _shown("memory", size, "B")})
    return Section("The models", text, table, [])


def study_warnings(results: Results, pairs: Sequence[Mapping[str, Any]], wanted: Sequence[str]) -> list[str]:
    """Return what to keep in mind before acting: a busy machine, unsteady rounds, what is missing or was not seen."""
    told = []
    missing = [metric for metric in wanted if metric not in results]
    if missing:
        told.append(f"The study is not complete: {', '.join(missing)} is not measured yet; resume=True goes on.")
    told += busy_warnings([result for by_model in results.values() for result in by_model.values()])
    told += unsteady(results.get("latency", {}))
    for metric, by_model in results.items():
        unseen = [name for name, result in by_model.items() if not seen(result)]
        if unseen:
            told.append(
                f"The {metric} of {'; '.join(unseen)} was not seen: it is below what the meter resolves, not 0, and "
                "it is not ranked."
            )
    for row in pairs:
        a, b = (results[row["metric"]][row[model]] for model in ("model_a", "model_b"))
        if (
            row["metric"] == "latency"
            and row["verdict"] != "undecided"
            and (central(a) < central(b)) != (row["verdict"] == "faster")
        ):
            told.append(
                f"{row['model_a']} is {row['verdict']} than {row['model_b']} in the same rounds, but the medians of "
                "all rounds say the opposite: the machine was not the same all the time. Trust the comparison."
            )
    return told


def busy_warnings(results: Sequence[BenchmarkResult]) -> list[str]:
    """Return a sentence if the machine had more to do than cores while some of the results were measured."""
    systems = [result.metadata["system"] for result in results if "system" in result.metadata]
    loads = [(system["load_average"][0], system["cores"]) for system in systems if system.get("load_average")]
    if not loads or max(load / cores for load, cores in loads) <= 1:
        return []
    load, cores = max(loads, key=lambda pair: pair[0] / pair[1])
    return [
        f"The machine was busy: a load of {load:.1f} on {cores} cores. Comparisons in the same rounds hold; the times "
        "themselves may be shorter on an idle machine."
    ]


def unsteady(latency: Mapping[str, BenchmarkResult]) -> list[str]:
    """Return sentences on rounds that vary a lot, or depend on one another."""
    told, wide = [], []
    for name, result in latency.items():
        low, high = result.percentile(25), result.percentile(75)
        if high - low > 0.3 * result.median:
            wide.append(f"{name} {_shown('latency', low, result.unit)} to {_shown('latency', high, result.unit)}")
    if wide:
        told.append(f"Rounds vary a lot; the middle half of them took: {'; '.join(wide)}.")
    said = {name: caution(result.values) for name, result in latency.items()}
    return told + [
        f"Latency of {'; '.join(name for name in said if said[name] == text)}: {text}."
        for text in dict.fromkeys(filter(None, said.values()))
    ]


def best_section(best: Mapping[str, Mapping[str, Any]], results: Results, labels: Mapping[str, str]) -> Section:
    """Return the best model by metric, and who is tied with it or may be better, since it was not seen."""
    table = []
    for metric, row in best.items():
        unseen = [f"{name} (not seen)" for name, result in results[metric].items() if not seen(result)]
        table.append(
            {
                "dimension": labels[metric],
                "best": row["model"],
                "value": _shown(metric, row["value"], row["unit"]),
                "cannot be told apart from it": "; ".join([*row["tied"], *unseen]) or "–",
            }
        )
    told = "A model that cannot be told apart from the best may be as good or better: these data do not decide."
    return Section("Best in each dimension", told, table, [])


def pairs_section(pairs: Sequence[Mapping[str, Any]], results: Results, labels: Mapping[str, str]) -> Section:
    """Return the comparisons of all pairs; before them one test of all latencies, where they share their rounds."""
    told = "95 % intervals; p values are corrected by Holm. At 0.05 and above a pair is undecided."
    latency = results.get("latency", {})
    rounds = {result.metadata.get("pairing") for result in latency.values()}
    friedman = from_toolbox("friedman")
    if friedman and len(latency) > 2 and len(rounds) == 1 and None not in rounds:
        p_value = friedman(latency)["p_value"]
        found = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
        told = (
            f"Latencies of all {len(latency)} models in the same rounds: {found} (Friedman), if all were alike. {told}"
        )
    return Section("Comparisons", told, [_pair_row(row, labels[row["metric"]]) for row in pairs], [])


def _pair_row(row: Mapping[str, Any], label: str) -> dict[str, str]:
    if row["ratio"] is None or math.isnan(row["ratio"]):
        factor, unit = scale_unit(abs(row["difference"]), row["unit"])
        factor, unit = (0.01, "points") if row["metric"] == "accuracy" else (factor, unit)
        low, value, high = (row[f"difference{end}"] / factor for end in ("_lower", "", "_upper"))
        amount = f"{value:+.3g} ({low:+.3g} to {high:+.3g}) {unit}"
    else:
        amount = f"× {row['ratio']:.3g} ({row['ratio_lower']:.3g} to {row['ratio_upper']:.3g})"
    return {
        "pair": f"{row['model_a']} against {row['model_b']}",
        "metric": label,
        "ratio or difference": amount,
        "p after Holm": "< 0.001" if row["p_holm"] < 0.001 else f"{row['p_holm']:.3f}",
        "the first is": row["verdict"],
        "test": row["test"],
    }


def conditions_section(results: Results) -> Section:
    """Return under which conditions the numbers hold."""
    first = next(iter(next(iter(results.values())).values()))
    system: dict[str, Any] = first.metadata.get("system") or system_info()
    pools = ", ".join(map(str, system["threads"].get("pools", []))) or "threads unknown"
    facts = {
        "processor": f"{system['cpu']} ({', '.join(system['cpu_flags']) or 'no vector extensions of note'})",
        "cores this process may use": system["cores"],
        "governor": system["governor"] or "unknown",
        "system": system["platform"],
        "Python": system["python"],
        "libraries": ", ".join(f"{name} {number}" for name, number in system["libraries"].items()),
        "linear algebra and its threads": f"{system['blas']}; {pools}",
        "input": f"{first.metadata.get('input_shape')} {first.metadata.get('input_dtype', '')}",
        "measured from": system["time"],
        "load average then": ", ".join(f"{load:.1f}" for load in system["load_average"] or []) or "unknown",
    }
    rows = [{"condition": name, "value": str(value)} for name, value in facts.items()]
    return Section("Conditions", "The numbers hold under these, and may turn round under others.", rows, [])


def _shown(metric: str, value: float, unit: str) -> str:
    """Return a value for people."""
    if metric == "accuracy":
        return f"{100 * value:.1f} %"
    if math.isnan(value):
        return "not seen"  # it lies below what its meter resolves, which is not the same as needing nothing
    factor, name = scale_unit(value, unit)
    number = value / factor
    return f"{number:{',.0f' if number >= 1000 else '.3g'}} {name}".rstrip()


def picture_of(name: str, figure: Figure, results: Results) -> Picture:
    """Return a figure of the suite with what it shows in words."""
    metric = name.removeprefix("benchmark_").removesuffix(".png")
    if metric in results:
        by_model = results[metric]
        values = "; ".join(f"{model} {_shown(metric, central(r), r.unit)}" for model, r in by_model.items())
        return Picture(figure, f"{metric} of each model: {values}.")
    points = tradeoff(results, "latency", "accuracy")
    on = "; ".join(point["model"] for point in points if point["on_frontier"])
    off = "; ".join(f"{point['model']} by {', '.join(point['beaten_by'])}" for point in points if point["beaten_by"])
    return Picture(
        figure,
        f"Accuracy against latency of {len(points)} models, with intervals. On the frontier, a staircase: {on}."
        f"{f' Beaten: {off}.' if off else ''}",
        "Filled circles: no other model is at least as fast and as accurate. A percentage behind a name is the share "
        "of repetitions, with rows and rounds drawn again, in which the model is one of them.",
    )


_STYLE = """
:root { color-scheme: light dark; --line: #767676; --soft: #f2f2f2; --page: #fff; --ink: #1a1a1a; --act: #0b5394; }
@media (prefers-color-scheme: dark) {
  :root { --soft: #26282c; --page: #16181b; --ink: #e8e8e8; --act: #8fc1f5; }
}
body { background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 0; }
main { margin: 0 auto; max-width: 62rem; padding: 1rem; }
h1 { font-size: 1.5rem; margin: .5rem 0; }
h2 { font-size: 1.2rem; margin: 2rem 0 .3rem; }
p, li { max-width: 46rem; overflow-wrap: anywhere; }
.act { border-left: .35rem solid var(--act); font-size: 1.2rem; margin: 1rem 0; padding-left: .8rem; }
.warnings { background: var(--soft); border: 1px solid var(--line); margin: 1rem 0; padding: .1rem 1rem; }
.warnings h2 { margin-top: .6rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem 1rem .3rem 0; text-align: left; vertical-align: top; }
thead th { background: var(--soft); }
tbody th { font-weight: 600; }
figure { margin: 1rem 0 1.5rem; }
figcaption { font-size: .9rem; max-width: 46rem; }
img { background: #fff; height: auto; max-width: 100%; width: 720px; }
@media print {
  :root { color-scheme: light; --soft: #f2f2f2; --page: #fff; --ink: #000; --act: #0b5394; }
  body { font-size: 10pt; }
  main { max-width: none; padding: 0; }
  .scroll { overflow: visible; }
  th, td { padding-right: .5rem; }
  figure, tr, .act, .warnings { break-inside: avoid; }
  h2 { break-after: avoid; }
  details::details-content { content-visibility: visible; height: auto; }
}
"""


class Picture(NamedTuple):
    """A figure of a report, with what it shows in words, for those who do not see it."""

    figure: Figure
    alt: str
    caption: str = ""


def page(
    title: str,
    sentence: str,
    pictures: Mapping[str, Picture],
    sections: Sequence[Section],
    warnings: Sequence[str] = (),
) -> str:
    """Return a report as one HTML page that needs no other file: to act on, to hand on, to print.

    Parameters
    ----------
    title, sentence
        Its heading, and the one sentence to act on.
    pictures
        By the names by which `sections` call for them; one that no section calls for stands at the top.
    sections
        The rest, in order; a table of more than 30 rows is folded.
    warnings
        What to keep in mind before acting, a sentence each; these stand before everything that was measured.
    """
    placed = {name for section in sections for name in section.pictures}
    parts = [f"<h1>{html.escape(title)}</h1>", f'<p class="act"><strong>{html.escape(sentence)}</strong></p>']
    if warnings:
        items = "".join(f"<li>{html.escape(warning)}</li>" for warning in warnings)
        parts.append(
            f'<section class="warnings" aria-label="Warnings"><h2>Read with care</h2><ul>{items}</ul></section>'
        )
    parts += [_html_picture(picture) for name, picture in pictures.items() if name not in placed]
    for section in sections:
        heading = html.escape(section.title)
        parts.append(f"<h2>{heading}</h2>\n<p>{html.escape(section.text)}</p>")
        if section.rows:
            table = Table(section.rows).html()
            table = f'<div class="scroll" tabindex="0" role="region" aria-label="{heading}">{table}</div>'
            long = len(section.rows) > 30
            parts.append(f"<details><summary>{len(section.rows)} rows</summary>{table}</details>" if long else table)
        parts += [_html_picture(pictures[name]) for name in section.pictures]
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><main>\n{chr(10).join(parts)}\n</main></body>\n</html>\n"
    )


def _html_picture(picture: Picture) -> str:
    stream = io.BytesIO()
    picture.figure.savefig(stream, format="png", dpi=130)
    source = f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"
    caption = f"<figcaption>{html.escape(picture.caption)}</figcaption>" if picture.caption else ""
    return f'<figure><img alt="{html.escape(picture.alt)}" src="{source}">{caption}</figure>'


def markdown_page(
    title: str,
    sentence: str,
    pictures: Mapping[str, Picture],
    sections: Sequence[Section],
    warnings: Sequence[str] = (),
) -> str:
    """Return what `page` returns as Markdown, with the pictures in files of their names next to it."""
    placed = {name for section in sections for name in section.pictures}
    parts = [f"# {title}", f"**{sentence}**"]
    if warnings:
        parts += ["## Read with care", "\n".join(f"- {warning}" for warning in warnings)]
    parts += [f"![{picture.alt}]({name})" for name, picture in pictures.items() if name not in placed]
    for section in sections:
        parts += [f"## {section.title}", section.text, *([Table(section.rows).markdown()] if section.rows else [])]
        parts += [f"![{pictures[name].alt}]({name})" for name in section.pictures]
    return "\n\n".join(parts) + "\n"

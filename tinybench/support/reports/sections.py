"""The sections of a study's report. They are built from existing results, without new measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tinybench.benchmark import system_info
from tinybench.pareto import Requirements
from tinybench.result import BenchmarkResult
from tinybench.support.basics.dependence import caution
from tinybench.support.basics.numbers import number_of, p_text, with_ends
from tinybench.support.basics.pages import Section
from tinybench.support.basics.result_text import scale_unit
from tinybench.support.choices.ranked_values import DIRECTIONS, as_rows, central, interval
from tinybench.support.comparisons.optional_toolbox import from_toolbox
from tinybench.support.comparisons.stored_results import library_changes
from tinybench.support.metric_tests import compare_pair, is_detected
from tinybench.support.reports.study_figures import Results, for_people, value_text
from tinybench.support.rounds.machine_state import machine_warnings, verdict_of


def metric_section(label: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Return the section on one metric. `rows` are the rows of the summary table that belong to this metric."""
    metric = rows[0]["metric"]
    table = [
        {
            "model": row["model"],
            "value": for_people(metric, row["value"], row["unit"], (row["lower"], row["upper"])),
            "interval": _shown_interval(row),
            "measurements": str(row["count"]),
        }
        for row in rows
    ]
    kinds = {
        "median": "medians with their 95 % order-statistic intervals",
        "Wilson": "shares of all rows with Wilson's 95 % intervals",
        "range": "medians with the range, as fewer than 6 values have no interval",
        "none": "numbers without an interval, as one value, or equal ones, say nothing about scatter",
    }
    shown = "; ".join(kinds[kind] for kind in dict.fromkeys(row["interval"] for row in rows))
    better = "Lower is better" if DIRECTIONS[metric] == "min" else "Higher is better"
    text = (
        f"{better}. Shown are {shown}{'; in the figure each dot is one measurement' if rows[0]['count'] > 1 else ''}."
    )
    return Section(label[0].upper() + label[1:], text, table, [f"benchmark_{metric}.png"])


def _shown_interval(row: Mapping[str, Any]) -> str:
    both = row["lower"], row["upper"]
    ends = [for_people(row["metric"], end, row["unit"], both) for end in both]
    if math.isnan(row["lower"]):
        return "–" if math.isnan(row["upper"]) else f"at most {ends[1]}"
    return " to ".join(ends)


def shortcomings(row: Mapping[str, Any], requirements: Requirements) -> tuple[str, list[str]]:
    """Return whether a row meets the requirements ("yes", "no" or "cannot tell"), and the reasons unless it does."""
    try:
        broken = requirements.violations(row)
    except ValueError as error:
        return "cannot tell", [str(error)]
    return ("no" if broken else "yes"), broken


def requirements_section(rows: Sequence[Mapping[str, Any]], requirements: Requirements) -> Section:
    """Return the section on the models that meet the user's requirements, and the reasons why other models do not."""
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
    """Return a sentence that recommends a model. `best` holds the best model for each metric (`best_by_dimension`).

    `of` is the number of all models. `results` holds only the models that meet the requirements.
    """
    names = list(dict.fromkeys(name for by_model in results.values() for name in by_model))
    if not names:
        return f"Take no model: of {of}, none is known to meet the requirements."
    meet = "it alone meets" if len(names) == 1 else f"{len(names)} meet"
    among = "" if len(names) == of else f" Of {number_of(of, 'model')} {meet} the requirements."
    if len(names) == 1:
        return f"Take {names[0]}.{among}"
    if not best:
        return f"No model can be recommended yet: the measured values are below the resolution of the meters.{among}"
    if not {"latency", "accuracy"} <= best.keys():
        metric, row = next(iter(best.items()))
        value = value_text(metric, results[metric][row["model"]])
        return f"Take {row['model']} if {metric} decides ({value}): the rest is not measured yet.{among}"
    fast, good = best["latency"]["model"], best["accuracy"]["model"]
    told = {n: ", ".join(value_text(m, results[m][n]) for m in ("latency", "accuracy")) for n in (fast, good)}
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
    """Return an upper bound of accuracy a minus accuracy b, from a test on common rows or else from both intervals."""
    row = compare_pair("accuracy", ("a", "b"), a, b)
    return float(row["difference_upper"]) if row else min(1.0, interval(a)[1] - interval(b)[0])  # 1.0 where NaN


def models_section(results: Results, points: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> Section:
    """Return the section with all metrics of all models. It also states which models are on the frontier."""
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
            cells[labels[metric]] = "–" if result is None else value_text(metric, result)
            if metric == "latency":
                unknown = result is None or result.count == 1
                cells["95th percentile"] = (
                    "–" if unknown else for_people(metric, row[metric].percentile(95), row[metric].unit)
                )
        notes = row["memory"].metadata if "memory" in row else {}
        size = notes.get("model_bytes")
        if "model_bytes_note" in notes:
            text += f" {name} has no size on disk: {notes['model_bytes_note']}."
        table.append(cells | {"size on disk": "–" if size is None else for_people("memory", size, "B")})
    return Section("The models", text, table, [])


def study_warnings(results: Results, pairs: Sequence[Mapping[str, Any]], wanted: Sequence[str]) -> list[str]:
    """Return the warnings of a report: a busy machine, unsteady rounds, missing metrics, or undetected values."""
    told = []
    missing = [metric for metric in wanted if metric not in results]
    if missing:
        told.append(f"The study is not complete: {', '.join(missing)} is not measured yet; resume=True goes on.")
    measured = [result for by_model in results.values() for result in by_model.values()]
    told += [*busy_warnings(measured), *mixed_conditions(measured)]
    told += unsteady(results.get("latency", {}))
    for metric, by_model in results.items():
        unseen = [name for name, result in by_model.items() if not is_detected(result)]
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
    """Return a warning if the machine check found a problem, or if the load exceeded the number of cores."""
    if told := machine_warnings(*results):
        return [f"The machine: {'; '.join(told)}. Comparisons in the same rounds hold; the times themselves may not."]
    systems = [result.metadata["system"] for result in results if "system" in result.metadata]
    loads = [(system["load_average"][0], system["cores"]) for system in systems if system.get("load_average")]
    if not loads or max(load / cores for load, cores in loads) <= 1:
        return []
    load, cores = max(loads, key=lambda pair: pair[0] / pair[1])
    return [
        f"The machine was busy: a load of {load:.1f} on {number_of(cores, 'core')}. Comparisons in the same "
        "rounds hold; the times themselves may be shorter on an idle machine."
    ]


def mixed_conditions(results: Sequence[BenchmarkResult]) -> list[str]:
    """Return a warning if kernels, threads or environment variables differ between results, such as of resumed runs."""
    changes = dict.fromkeys(change for other in results[1:] for change in library_changes(results[0], other))
    return [f"Not measured under the same conditions: {'; '.join(changes)}. Measure all again."] if changes else []


def unsteady(latency: Mapping[str, BenchmarkResult]) -> list[str]:
    """Return warnings about rounds whose times vary a lot or are autocorrelated."""
    told, wide = [], []
    for name, result in latency.items():
        low, high = result.percentile(25), result.percentile(75)
        if high - low > 0.3 * result.median:
            wide.append(
                f"{name} {for_people('latency', low, result.unit)} to {for_people('latency', high, result.unit)}"
            )
    if wide:
        told.append(f"Rounds vary a lot; the middle half of them took: {'; '.join(wide)}.")
    said = {name: caution(result.values) for name, result in latency.items()}
    return told + [
        f"Latency of {'; '.join(name for name in said if said[name] == text)}: {text}."
        for text in dict.fromkeys(filter(None, said.values()))
    ]


def best_section(best: Mapping[str, Mapping[str, Any]], results: Results, labels: Mapping[str, str]) -> Section:
    """Return the section on the best model for each metric, with the models that are tied with it or not detected."""
    table = []
    for metric, row in best.items():
        unseen = [f"{name} (not seen)" for name, result in results[metric].items() if not is_detected(result)]
        table.append(
            {
                "dimension": labels[metric],
                "best": row["model"],
                "value": value_text(metric, results[metric][row["model"]]),
                "cannot be told apart from it": "; ".join([*row["tied"], *unseen]) or "–",
            }
        )
    told = "A model that cannot be told apart from the best may be as good or better: these data do not decide."
    return Section("Best in each dimension", told, table, [])


def pairs_section(pairs: Sequence[Mapping[str, Any]], results: Results, labels: Mapping[str, str]) -> Section:
    """Return the section on all pairs of models. If all share their rounds, it opens with a joint test of latencies."""
    told = "95 % intervals; p values are corrected for the number of pairs. At 0.05 and above a pair is undecided."
    latency = results.get("latency", {})
    rounds = {result.metadata.get("pairing") for result in latency.values()}
    friedman = from_toolbox("friedman")
    if friedman and len(latency) > 2 and len(rounds) == 1 and None not in rounds:
        found = p_text(friedman(latency)["p_value"])
        told = (
            f"Latencies of all {len(latency)} models in the same rounds: {found} (Friedman), if all were alike. {told}"
        )
    return Section("Comparisons", told, [_pair_row(row, labels[row["metric"]]) for row in pairs], [])


def _pair_row(row: Mapping[str, Any], label: str) -> dict[str, str]:
    if row["ratio"] is None or math.isnan(row["ratio"]):
        factor, unit = (0.01, "points") if row["metric"] == "accuracy" else scale_unit(row["difference"], row["unit"])
        low, high = (row[f"difference{end}"] for end in ("_lower", "_upper"))
        ends = None if low is None else (low / factor, high / factor)
        amount = f"{'+' if row['difference'] > 0 else ''}{with_ends(row['difference'] / factor, ends)} {unit}"
    else:
        low, high = row["ratio_lower"], row["ratio_upper"]
        amount = f"× {with_ends(row['ratio'], None if low is None else (low, high))}"
    return {
        "pair": f"{row['model_a']} against {row['model_b']}",
        "metric": label,
        "ratio or difference": amount,
        "p, corrected": "< 0.001" if row["p_corrected"] < 0.001 else f"{row['p_corrected']:.3f}",
        "the first is": row["verdict"],
        "test": row["test"],
    }


def conditions_section(results: Results) -> Section:
    """Return the section on measurement conditions: the machine, libraries, environment variables and input."""
    first = next(iter(next(iter(results.values())).values()))
    system: dict[str, Any] = first.metadata.get("system") or system_info()
    pools = ", ".join(map(str, system["threads"].get("pools", []))) or "threads unknown"
    stated, settings = system.get("conditions") or {}, system.get("settings") or {}
    unset = "none" if "settings" in system else "unknown"
    facts = {
        "processor": f"{system['cpu']} ({', '.join(system['cpu_flags']) or 'no vector extensions of note'})",
        "cores this process may use": system["cores"],
        "governor": system["governor"] or "unknown",
        "system": system["platform"],
        "Python": system["python"],
        "libraries": ", ".join(f"{name} {number}" for name, number in system["libraries"].items()),
        "linear algebra and its threads": f"{system['blas']}; {pools}",
        "kernels": ", ".join(f"{name} {value}" for name, value in stated.items() if name.startswith("BLAS kernel"))
        or "unknown",
        "variables that change speed": ", ".join(f"{name}={value}" for name, value in settings.items()) or unset,
        "input": f"{first.metadata.get('input_shape')} {first.metadata.get('input_dtype', '')}",
        "measured from": system["time"],
        "machine check": verdict_of(first) or "unknown",
        "load average then": ", ".join(f"{load:.1f}" for load in system["load_average"] or []) or "unknown",
    }
    rows = [{"condition": name, "value": str(value)} for name, value in facts.items()]
    return Section("Conditions", "The numbers hold under these, and may turn round under others.", rows, [])

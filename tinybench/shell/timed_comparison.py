"""Functions for the shell command and the Jupyter magic: measure for a given time, and tabulate the results."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from tinybench.comparison import compare
from tinybench.latency import latency_summary, measure_latencies, measure_session_latency
from tinybench.result import BenchmarkResult
from tinybench.shell.progress_bar import Progress
from tinybench.support.basics.numbers import number_of, p_text, with_digits
from tinybench.support.basics.result_text import is_interval, scale_unit
from tinybench.support.basics.table import Table
from tinybench.support.comparisons.optional_toolbox import corrected
from tinybench.support.comparisons.verdict import Comparison, least_of
from tinybench.support.rounds.machine_state import disturbed, machine_warnings

__all__ = ["comparison_table", "measure_for", "measure_one", "tail_table"]

MOST_ROUNDS = 20_000  # more only fill memory: the machine's disturbances are already far wider than the interval
SHORTEST = 10e-6  # s; no measurement takes less


def measure_for(
    models: Mapping[str, Any], inputs: Any, seconds: float, *, mode: str = "as_served", seed: int | None = None
) -> dict[str, BenchmarkResult]:
    """Return the seconds per call of each model, measured in shuffled rounds until `seconds` have passed.

    The time includes warm-up and calibration. There is at least one round. If the measurement takes longer than 2 s,
    its progress is shown. For the other arguments see `tinybench.latency.measure_latencies`.
    """
    if not 0 < seconds < math.inf:
        raise ValueError(f"seconds is {seconds}; it must be positive, such as 4")
    fit = math.ceil(seconds / (SHORTEST * max(1, len(models))))
    with Progress(seconds, "warming up") as progress:
        return measure_latencies(
            models,
            inputs,
            measurement_runs=min(MOST_ROUNDS, fit),
            mode=mode,
            seed=seed,
            progress=progress,
            max_seconds=seconds,
        )


def measure_one(
    name: str, model: Any, inputs: Any, seconds: float, *, mode: str = "as_served", seed: int | None = None
) -> tuple[BenchmarkResult, BenchmarkResult]:
    """Measure a model for `seconds`. Return two results: the rounds of a session, and single calls.

    If the model is so slow that 10 rounds of three calls do not fit into the time, no rounds are measured, and both
    results hold single calls. If an exception ends the measurement, its attribute ``results`` holds the measurements so
    far.
    """
    began = time.perf_counter()
    calls = measure_for({name: model}, inputs, seconds / 3, mode=mode, seed=seed)[name]
    try:
        left = seconds - (time.perf_counter() - began)
        if left < 33 * calls.median:
            return _more_calls(calls, model, inputs, left, seed), calls
        with Progress(left, "measuring"):
            session = measure_session_latency(model, inputs, rounds=30, seconds=left, seed=seed, max_seconds=left)
    except BaseException as error:
        found = getattr(error, "results", None) or {"": calls}
        vars(error)["results"] = {name: next(iter(found.values()))}
        raise
    return session, calls


def _more_calls(calls: BenchmarkResult, model: Any, inputs: Any, seconds: float, seed: int | None) -> BenchmarkResult:
    """Return `calls` followed by as many further calls as fit into `seconds`. The model is already warm."""
    values = list(calls.values)
    if seconds > calls.median:
        models, most = {"": model}, math.ceil(seconds / calls.median)
        with Progress(seconds, "measuring") as progress:
            more = measure_latencies(models, inputs, 0, most, seed=seed, progress=progress, max_seconds=seconds)
        values += more[""].values
    return BenchmarkResult("latency", values, calls.metadata, unit="s")


def comparison_table(results: Mapping[str, BenchmarkResult], margin: float = 0.0, what: str = "model") -> Table:
    """Return a table that compares each model with the first: median, speed, p-value (Holm-corrected), verdict.

    The results must come from common rounds. A relative change up to `margin` counts as negligible.
    """
    (baseline_name, baseline), *others = results.items()
    factor, unit = scale_unit(min(result.median for result in results.values()), "s")
    found = [compare(result, baseline, margin=margin, names=(name, baseline_name)) for name, result in others]
    p_values = corrected([comparison.p_value for comparison in found])
    rows = [_row(baseline, factor, unit, None, 1.0)]
    rows += [_row(result, factor, unit, c, p) for (_, result), c, p in zip(others, found, p_values, strict=True)]
    named = [{what: name, **row} for name, row in zip(results, rows, strict=True)]
    told = _cautions(next((result for result in results.values() if result.metadata.get("cold")), baseline))
    return Table(named, f"latency per call, {number_of(baseline.count, 'shuffled round')}, 95 % intervals{told}")


def _cautions(result: BenchmarkResult) -> str:
    """Return warnings about the rounds of a result as text, such as an interruption or a suspended machine."""
    notes, words = result.metadata, []
    if "interrupted" in notes:
        words.append(f"interrupted by {notes['interrupted']}")
    if notes.get("cold"):
        words.append("first calls, without warm-up: there was no time for more")
    words += [
        f"round {pause['round']} took {pause['seconds']:.3g} s: was the machine suspended? (medians hold)"
        for pause in notes.get("pauses", [])[:3]
    ]
    if step := notes.get("clock_step"):
        words.append(
            f"the clock moves in steps of {step * 1e3:.3g} ms, {number_of(notes['loops'], 'call')} a measurement"
        )
    words.append(disturbed(machine_warnings(result)))
    return "".join(f"; {word}" for word in words if word)


def tail_table(name: str, session: BenchmarkResult, calls: BenchmarkResult) -> Table:
    """Return a table of the median of a session's rounds and the tail percentiles of single calls."""
    summary = latency_summary(calls)
    factor, unit = scale_unit(session.median, "s")

    def row(statistic: str, value: float, interval: tuple[float, float] | None, reason: str) -> dict[str, str]:
        shown = _interval(interval, factor) if interval else reason
        width = (interval[1] - interval[0]) / factor if interval else 0.0
        latency = with_digits(value / factor, width)
        return {"statistic": statistic, f"latency ({unit})": latency, "95 % interval": shown}

    tail = (
        row(name, summary[name], summary["intervals"].get(name), summary["reasons"].get(name, ""))
        for name in ("p90", "p95", "p99")
    )
    length = session.metadata.get("session_seconds")  # None if single calls replace the rounds
    rounds = f"{number_of(session.count, 'round')} over {length:.3g} s" if length else number_of(session.count, "call")
    caption = f"{name}: median of {rounds}, tail of {number_of(calls.count, 'call')}{_cautions(session)}"
    try:
        middle = row("median", session.median, session.median_ci(), "")
    except ValueError as too_few:
        middle = row("median", session.median, None, str(too_few))
    return Table([middle, *tail], caption)


def _interval(interval: tuple[float, float], factor: float) -> str:
    if not is_interval(*interval):
        return "all equal: the clock is too coarse"
    low, high = (end / factor for end in interval)
    return f"{with_digits(low, high - low)} to {with_digits(high, high - low)}"


def _row(result: BenchmarkResult, factor: float, unit: str, comparison: Comparison | None, p: float) -> dict[str, str]:
    try:
        ends = result.median_ci()
        interval, width = _interval(ends, factor), (ends[1] - ends[0]) / factor
    except ValueError:
        interval, width = "too few rounds", 0.0
    row = {f"median ({unit})": with_digits(result.median / factor, width), "interval": interval}
    if comparison is None:
        return row | {"speed": "the baseline", "p (Holm)": "", "verdict": ""}
    established = comparison.verdict.startswith(("undecided", "equivalent")) or p < 1 - comparison.confidence
    verdict = comparison.verdict if established else "undecided: not significant after correction"
    told = p_text(p, least_of(comparison)).removeprefix("p ").removeprefix("= ")
    return row | {"speed": speed_text(comparison), "p (Holm)": told, "verdict": verdict}


def speed_text(comparison: Comparison) -> str:
    """Return the speed relative to the baseline: ``2.06 times as fast (2.03–2.09)``, or ``1.65 times as long (…)``."""
    (low, high), slower = comparison.ratio_ci, comparison.ratio > 1
    value, ends = (
        (comparison.ratio, (low, high)) if slower else (1 / comparison.ratio, (1 / high, 1 / max(low, 1e-300)))
    )
    kind = "as long" if slower else "as fast"
    if not (low > 0 and is_interval(low, high)):
        return f"{with_digits(value, 0)} times {kind}"
    lower, upper = (with_digits(end, ends[1] - ends[0]) for end in ends)
    return f"{with_digits(value, ends[1] - ends[0])} times {kind} ({lower}–{upper})"

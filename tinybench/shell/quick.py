"""What the shell command and the Jupyter magic share: measure for a given time, and show results as one table."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from tinybench.comparison import Comparison, compare
from tinybench.conditions.notes import disturbed, machine_warnings
from tinybench.latency import latency_summary, measure_latencies, measure_session_latency
from tinybench.optional import corrected
from tinybench.result import BenchmarkResult, is_interval, scale_unit
from tinybench.shell.progress import Progress
from tinybench.table import Table

__all__ = ["comparison_table", "measure_for", "measure_one", "tail_table"]

MOST_ROUNDS = 20_000  # more would only fill memory: the interval is far narrower than what the machine does to it
SHORTEST = 10e-6  # s; no measurement is shorter


def measure_for(
    models: Mapping[str, Any], inputs: Any, seconds: float, *, mode: str = "as_served", seed: int | None = None
) -> dict[str, BenchmarkResult]:
    """Return the seconds per call of models, measured in shuffled rounds until so many seconds are over.

    Warm-up and calibration are within the time; there is at least one round. Shows how far it is where that takes
    longer than 2 s. For the other arguments see `tinybench.latency.measure_latencies`.
    """
    if not 0 < seconds < math.inf:
        raise ValueError(f"seconds is {seconds}; it must be positive, such as 4")
    fit = math.ceil(seconds / (SHORTEST * max(1, len(models))))
    with Progress(seconds) as progress:
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
    """Return the rounds of a session and the single calls of a model, measured within so many seconds.

    A model so slow that no 10 rounds of three calls fit in gets single calls only: they stand for the rounds, too. An
    error on the way carries what there is as its ``results``.
    """
    began = time.perf_counter()
    calls = measure_for({name: model}, inputs, seconds / 3, mode=mode, seed=seed)[name]
    try:
        left = seconds - (time.perf_counter() - began)
        if left < 33 * calls.median:
            return _more_calls(calls, model, inputs, left, seed), calls
        with Progress(left):
            session = measure_session_latency(model, inputs, rounds=30, seconds=left, seed=seed, max_seconds=left)
    except BaseException as error:
        found = getattr(error, "results", None) or {"": calls}
        vars(error)["results"] = {name: next(iter(found.values()))}
        raise
    return session, calls


def _more_calls(calls: BenchmarkResult, model: Any, inputs: Any, seconds: float, seed: int | None) -> BenchmarkResult:
    """Return the calls and those that still fit in; the model is warm."""
    values = list(calls.values)
    if seconds > calls.median:
        models, most = {"": model}, math.ceil(seconds / calls.median)
        with Progress(seconds) as progress:
            more = measure_latencies(models, inputs, 0, most, seed=seed, progress=progress, max_seconds=seconds)
        values += more[""].values
    return BenchmarkResult("latency", values, calls.metadata, unit="s")


def comparison_table(results: Mapping[str, BenchmarkResult], margin: float = 0.0, what: str = "model") -> Table:
    """Return one row for each model, compared with the first: median, times as fast, p value (Holm) and verdict.

    The results are of common rounds; a relative change up to the margin does not matter.
    """
    (baseline_name, baseline), *others = results.items()
    factor, unit = scale_unit(min(result.median for result in results.values()), "s")
    found = [compare(result, baseline, margin=margin, names=(name, baseline_name)) for name, result in others]
    p_values = corrected([comparison.p_value for comparison in found])
    rows = [_row(baseline, factor, unit, None, 1.0)]
    rows += [_row(result, factor, unit, c, p) for (_, result), c, p in zip(others, found, p_values, strict=True)]
    named = [{what: name, **row} for name, row in zip(results, rows, strict=True)]
    told = _cautions(next((result for result in results.values() if result.metadata.get("cold")), baseline))
    return Table(named, f"latency per call, {baseline.count} shuffled rounds, 95 % intervals{told}")


def _cautions(result: BenchmarkResult) -> str:
    """Return what a reader of these rounds must know."""
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
        words.append(f"the clock moves in steps of {step * 1e3:.3g} ms, {notes['loops']} calls a measurement")
    words.append(disturbed(machine_warnings(result)))
    return "".join(f"; {word}" for word in words if word)


def tail_table(name: str, session: BenchmarkResult, calls: BenchmarkResult) -> Table:
    """Return the median of a session's rounds, and the tail of single calls."""
    summary = latency_summary(calls)
    factor, unit = scale_unit(session.median, "s")

    def row(statistic: str, value: float, interval: tuple[float, float] | None, reason: str) -> dict[str, str]:
        shown = _interval(interval, factor) if interval else reason
        return {"statistic": statistic, f"latency ({unit})": f"{value / factor:.4g}", "95 % interval": shown}

    tail = (
        row(name, summary[name], summary["intervals"].get(name), summary["reasons"].get(name, ""))
        for name in ("p90", "p95", "p99")
    )
    length = session.metadata.get("session_seconds")  # None where single calls stand for the rounds
    rounds = f"{session.count} rounds over {length:.3g} s" if length else f"{session.count} calls"
    caption = f"{name}: median of {rounds}, tail of {calls.count} calls{_cautions(session)}"
    try:
        middle = row("median", session.median, session.median_ci(), "")
    except ValueError as too_few:
        middle = row("median", session.median, None, str(too_few))
    return Table([middle, *tail], caption)


def _interval(interval: tuple[float, float], factor: float) -> str:
    if not is_interval(*interval):
        return "all equal: the clock is too coarse"
    return f"{interval[0] / factor:.4g} to {interval[1] / factor:.4g}"


def _row(result: BenchmarkResult, factor: float, unit: str, comparison: Comparison | None, p: float) -> dict[str, str]:
    try:
        interval = _interval(result.median_ci(), factor)
    except ValueError:
        interval = "too few rounds"
    row = {f"median ({unit})": f"{result.median / factor:.4g}", "interval": interval}
    if comparison is None:
        return row | {"times as fast": "1 (baseline)", "p (Holm)": "", "verdict": ""}
    low, high = comparison.ratio_ci
    fast = f"{1 / comparison.ratio:.3f}"
    if low > 0 and is_interval(low, high):
        fast += f" ({1 / high:.3f} to {1 / low:.3f})"
    established = comparison.verdict.startswith(("undecided", "equivalent")) or p < 1 - comparison.confidence
    verdict = comparison.verdict if established else "undecided: not significant after correction"
    return row | {"times as fast": fast, "p (Holm)": "< 0.001" if p < 0.001 else f"{p:.3f}", "verdict": verdict}

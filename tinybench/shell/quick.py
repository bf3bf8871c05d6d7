"""What the shell command and the Jupyter magic share: measure for a given time, and show results as one table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tinybench.comparison import Comparison, compare, holm
from tinybench.latency import latency_summary, measure_latencies
from tinybench.result import BenchmarkResult, scale_unit
from tinybench.table import Table

__all__ = ["comparison_table", "measure_for", "tail_table"]

LEAST_ROUNDS, MOST_ROUNDS = 10, 20_000


def measure_for(
    models: Mapping[str, Any], inputs: Any, seconds: float, *, mode: str = "as_served", seed: int | None = None
) -> dict[str, BenchmarkResult]:
    """Return the seconds per call of models, measured in shuffled rounds for about so many seconds, at least 10 rounds.

    The warm-up comes on top. For the other arguments see `tinybench.latency.measure_latencies`.
    """
    if not 0 < seconds < math.inf:
        raise ValueError(f"seconds is {seconds}; it must be positive, such as 4")
    pilot = measure_latencies(models, inputs, measurement_runs=5, mode=mode, seed=seed)
    block = 5e-3 if mode == "hot" else 0.0
    round_seconds = sum(max(block, r.median * r.metadata["loops"]) for r in pilot.values())
    rounds = max(LEAST_ROUNDS, min(MOST_ROUNDS, int(seconds / max(round_seconds, 1e-9))))
    return measure_latencies(models, inputs, measurement_runs=rounds, mode=mode, seed=seed)


def comparison_table(results: Mapping[str, BenchmarkResult], margin: float = 0.0, what: str = "model") -> Table:
    """Return one row for each model, compared with the first: median, times as fast, p value (Holm) and verdict.

    The results are of common rounds; a relative change up to the margin does not matter.
    """
    (baseline_name, baseline), *others = results.items()
    factor, unit = scale_unit(min(result.median for result in results.values()), "s")
    found = [compare(result, baseline, margin=margin, names=(name, baseline_name)) for name, result in others]
    corrected = holm([comparison.p_value for comparison in found]) if found else []
    rows = [_row(baseline, factor, unit, None, 1.0)]
    rows += [_row(result, factor, unit, c, p) for (_, result), c, p in zip(others, found, corrected, strict=True)]
    named = [{what: name, **row} for name, row in zip(results, rows, strict=True)]
    return Table(named, f"latency per call, {baseline.count} shuffled rounds, 95 % intervals")


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
    length = session.metadata["session_seconds"]  # where the rounds take longer, more than was asked for
    caption = f"{name}: median of {session.count} rounds over {length:.3g} s, tail of {calls.count} calls"
    return Table([row("median", session.median, session.median_ci(), ""), *tail], caption)


def _interval(interval: tuple[float, float], factor: float) -> str:
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
    fast = f"{1 / comparison.ratio:.3f} ({1 / high:.3f} to {1 / low:.3f})" if low > 0 else f"{1 / comparison.ratio:.3f}"
    established = comparison.verdict.startswith(("undecided", "equivalent")) or p < 1 - comparison.confidence
    verdict = comparison.verdict if established else "undecided: not significant after correction"
    return row | {"times as fast": fast, "p (Holm)": "< 0.001" if p < 0.001 else f"{p:.3f}", "verdict": verdict}

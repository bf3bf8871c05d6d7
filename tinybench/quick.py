"""What the shell command and the Jupyter magic share: measure for a given time, and show results as one table."""

from __future__ import annotations

import csv
import html
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tinybench.comparison import Comparison, compare, holm
from tinybench.latency import measure_latencies
from tinybench.result import BenchmarkResult, scale_unit

__all__ = ["Table", "comparison_table", "measure_for"]

LEAST_ROUNDS, MOST_ROUNDS = 10, 20_000


def measure_for(
    models: Mapping[str, Any], inputs: Any, seconds: float, *, mode: str = "as_served", seed: int | None = None
) -> dict[str, BenchmarkResult]:
    """Measure models in shuffled rounds for about so many seconds.

    Parameters
    ----------
    models, inputs, mode, seed
        See `tinybench.latency.measure_latencies`.
    seconds
        Time for all rounds; the warm-up comes on top. At least 10 rounds are measured, however long they take.

    Returns
    -------
    dict of str to BenchmarkResult
        Seconds per call.

    Raises
    ------
    ValueError
        If `seconds` is not positive; else see `measure_latencies`.
    """
    if not 0 < seconds < math.inf:
        raise ValueError(f"seconds is {seconds}; it must be positive, such as 4")
    pilot = measure_latencies(models, inputs, measurement_runs=5, mode=mode, seed=seed)
    block = 5e-3 if mode == "hot" else 0.0
    round_seconds = sum(max(block, r.median * r.metadata["loops"]) for r in pilot.values())
    rounds = max(LEAST_ROUNDS, min(MOST_ROUNDS, int(seconds / max(round_seconds, 1e-9))))
    return measure_latencies(models, inputs, measurement_runs=rounds, mode=mode, seed=seed)


class Table:
    """Rows of text under one header, in every form a reader may want.

    Parameters
    ----------
    rows
        Dictionaries with the same keys; the first column names the row.
    caption
        What the table shows.
    """

    def __init__(self, rows: Sequence[Mapping[str, str]], caption: str) -> None:
        self.rows, self.caption = list(rows), caption

    def __str__(self) -> str:
        """Return aligned columns."""
        header = list(self.rows[0])
        lines = [header, *(list(row.values()) for row in self.rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([self.caption, "", *text])

    def markdown(self) -> str:
        """Return a Markdown table."""
        lines = [list(self.rows[0]), ["---"] * len(self.rows[0]), *(list(row.values()) for row in self.rows)]
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)

    def csv(self) -> str:
        """Return CSV with a header."""
        stream = io.StringIO()
        writer = csv.DictWriter(stream, list(self.rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return stream.getvalue().rstrip("\n")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in self.rows[0])
        body = []
        for row in self.rows:
            first, *rest = (html.escape(cell) for cell in row.values())
            cells = "".join(f"<td>{cell}</td>" for cell in rest)
            body.append(f'<tr><th scope="row" style="text-align:left">{first}</th>{cells}</tr>')
        caption = f"<caption>{html.escape(self.caption)}</caption>"
        table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        return {"text/plain": str(self), "text/html": table, "text/markdown": f"{self.caption}\n\n{self.markdown()}"}


def comparison_table(results: Mapping[str, BenchmarkResult], margin: float = 0.0, what: str = "model") -> Table:
    """Return one row for each model, each compared with the first.

    Parameters
    ----------
    results
        Latencies of common rounds by model name, each of at least two measurements.
    margin
        Relative change that does not matter.
    what
        What is compared: the head of the first column.

    Returns
    -------
    Table
        Median with its interval, how many times as fast as the first model with its interval, p value (Holm) and
        verdict.
    """
    (baseline_name, baseline), *others = results.items()
    factor, unit = scale_unit(min(result.median for result in results.values()), "s")
    found = [compare(result, baseline, margin=margin, names=(name, baseline_name)) for name, result in others]
    corrected = holm([comparison.p_value for comparison in found]) if found else []
    rows = [_row(baseline, factor, unit, None, 1.0)]
    rows += [_row(result, factor, unit, c, p) for (_, result), c, p in zip(others, found, corrected, strict=True)]
    named = [{what: name, **row} for name, row in zip(results, rows, strict=True)]
    return Table(named, f"latency per call, {baseline.count} shuffled rounds, 95 % intervals")


def _row(result: BenchmarkResult, factor: float, unit: str, comparison: Comparison | None, p: float) -> dict[str, str]:
    try:
        low, high = result.median_ci()
        interval = f"{low / factor:.4g} to {high / factor:.4g}"
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

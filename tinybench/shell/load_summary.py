"""The summary of a `tinybench load` run: its statistics, with a reason for each one that is withheld."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.support.basics.numbers import finite, number_of, with_digits
from tinybench.support.basics.result_text import scale_unit
from tinybench.support.basics.table import FORMATS, Table
from tinybench.support.rounds.machine_state import machine_warnings
from tinybench.support.traffic.load_checks import objections

if TYPE_CHECKING:
    from tinybench.load import LoadResult

PERCENTILES = (50, 90, 99, 99.9)


def load_figures(result: LoadResult, bound: float) -> dict[str, Any]:
    """Return the statistics of a load test as data for ``json.dumps``, with a reason for each one that is withheld."""
    sent, answered = len(result.ok), int(result.ok.sum())
    closed = result.metadata["loop"] == "closed"
    failed = {word: count for word, count in sorted(result.metadata["outcomes"].items()) if word != "200"}
    found: dict[str, Any] = {"sent": sent, "answered": answered, "failed": failed, "seconds": result.seconds}
    found["rate_sent"] = sent / max(result.seconds, float(np.nanmax(result.started)))
    found["throughput"] = result.throughput
    found["goodput"] = {
        "bound": bound,
        "rate": result.goodput(bound),
        "share": result.goodput(bound) * result.seconds / sent,
    }
    found["latency"] = {f"p{q:g}": _percentile(result, q) for q in PERCENTILES}
    found["lateness"] = {f"p{q:g}": float(np.nanquantile(result.lateness, q / 100)) for q in PERCENTILES}
    found["warnings"] = [f"before the run: {told}" for told in machine_warnings(result)]
    if closed:
        found["warnings"].append(
            "a closed loop: while a user waits nothing is sent, so a stall counts once for each user, whatever the "
            "number of requests that would have come; without --closed they come"
        )
    late = not closed and any("generator" in problem for problem in objections(result, 99))
    if count := result.metadata.get("waited_for_a_connection"):
        found["warnings"].append(
            f"{count} of {number_of(sent, 'request')} waited for one of the connections, "
            "all busy: give more --connections"
        )
    return finite(found | {"late": late})  # type: ignore[no-any-return]


def _percentile(result: LoadResult, q: float) -> dict[str, Any]:
    try:
        value = result.percentile(q)
    except ValueError as error:
        return {"value": None, "interval": None, "why": str(error)}
    try:
        return {"value": value, "interval": result.percentile_ci(q), "why": ""}
    except ValueError as error:
        return {"value": value, "interval": None, "why": str(error)}


def failures(outcomes: Mapping[str, int]) -> str:
    """Return the outcomes of the failed requests with their counts, as text."""
    return ", ".join(f"{count} × {word}" for word, count in outcomes.items() if word != "200")


def print_summary(result: LoadResult, found: dict[str, Any], form: str) -> None:
    """Print the statistics as a table (text, Markdown or CSV), or, with the metadata, as JSON."""
    if form == "json":
        print(json.dumps(found | {"metadata": result.metadata}))
        return
    about, sent, goodput = result.metadata, found["sent"], found["goodput"]
    if about["loop"] == "closed":
        loop, asked = f"{number_of(about['users'], 'user')} in a closed loop, {1e3 * about['think']:g} ms between", None
    else:
        loop, asked = f"open loop, {about['scenario']}", f"{about['rate']:g}/s"
    factor, unit = scale_unit(next((tail["value"] for tail in found["latency"].values() if tail["value"]), 1e-3), "s")
    cells = [
        ("requests", f"{sent}", ""),
        ("answered", f"{found['answered']}", ""),
        ("failed", f"{sent - found['answered']}", failures(found["failed"])),
        ("rate asked", asked, ""),
        ("rate sent", f"{found['rate_sent']:.4g}/s", ""),
        ("throughput", f"{found['throughput']:.4g}/s", "answers that came while requests were sent"),
        (f"within {1e3 * goodput['bound']:g} ms", f"{goodput['rate']:.4g}/s", f"{goodput['share']:.2%} of them"),
    ]
    for name, tail in found["latency"].items():
        value, ends = tail["value"], tail["interval"]
        width = (ends[1] - ends[0]) / factor if ends else 0.0
        reach = " to ".join(with_digits(end / factor, width) for end in ends or ())
        note = f"95 % interval {reach} {unit}" if ends else "no interval"
        shown = (f"{with_digits(value / factor, width)} {unit}", note) if value is not None else ("–", "refused")
        cells.append((f"latency {name}", *shown))
    if asked:
        cells.append(("lateness p99", f"{1e3 * found['lateness']['p99']:.3g} ms", "of the generator itself"))
    where = f"{about['system']['cpu']}, {number_of(about['system']['cores'], 'core')}"
    rows = [{"what": what, "value": value, "note": note} for what, value, note in cells if value]
    table = Table(rows, f"{about['url']}: {loop}, {result.seconds:.3g} s; {where}")
    print(FORMATS[form](table))
    for name, tail in found["latency"].items():
        if tail["why"]:
            print(f"tinybench: {name}: {tail['why']}", file=sys.stderr)

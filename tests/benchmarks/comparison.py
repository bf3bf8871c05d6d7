"""Which tool tells A from A + 2 %, and A from itself?

Quiet and with a busy process on every core, the tools of `peers` measure four callables: A, A again, A + 2 %, A + 5 %,
real work in exactly these proportions.
"""

from __future__ import annotations

import math
import os
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from tests.benchmarks.formats import bullets, grouped, lines, share
from tests.benchmarks.harness import NO_BLAS, Benchmark, Case, Part, Records, Trial
from tests.benchmarks.peers import PEERS, run_live, run_peer, run_tinybench
from tests.benchmarks.processes import in_child
from tests.benchmarks.subjects import ITERATIONS
from tinybench.accuracy import wilson_interval

RATIOS = {name: steps / ITERATIONS["A"] for name, steps in ITERATIONS.items() if name != "A"}
LIVE = "tinybench live"


def tools(short: bool) -> dict[str, Callable[[], Records]]:
    found: dict[str, Callable[[], Records]] = {name: partial(run_peer, name, short) for name in PEERS}
    for seconds in (0.2,) if short else (1.0, 4.0):
        found[f"tinybench, {seconds:g} s"] = partial(in_child, run_tinybench, seconds)
    races, limit = (1, 0.05) if short else (7, 0.2)
    return {**found, LIVE: partial(in_child, run_live, races, limit)}


def cases(options: Namespace) -> list[Case]:
    return [(tool,) for tool in tools(options.short) if tool.startswith(options.tool)]


def measured(trial: Trial) -> Records:
    """Return the records of a tool: one for each callable, or for each race."""
    [tool], start = trial.case, time.perf_counter()
    found = tools(trial.short)[tool]()
    wall = time.perf_counter() - start
    return [{"tool": tool, "wall": wall, **record} for record in found]


def rows(found: Records) -> Records:
    """Return a row for each condition and tool: what it called different, its error, its time and a note."""
    made = []
    for (condition, tool), mine in grouped(found, "condition", "tool").items():
        by_subject = {subject: records for (subject,), records in grouped(mine, "subject").items()}
        flagged = {s: (sum(r["flagged"] for r in records), len(records)) for s, records in by_subject.items()}
        row = {"condition": condition, "tool": tool, "rms": None, "wall": "until decided", "note": "", **flagged}
        held = [r["interval"][0] <= RATIOS[r["subject"]] <= r["interval"][1] for r in mine if "interval" in r]
        if tool == LIVE:
            late = ", ".join(f"{s} in {median(r['seconds'] for r in by_subject[s]):.2f} s" for s in list(RATIOS)[1:])
            row["note"] = f" (a look after every round, {flagged['A again'][1]} races of A against itself): {late}."
        else:
            row["rms"] = math.sqrt(fmean(math.log(r["ratio"] / RATIOS[r["subject"]]) ** 2 for r in mine))
            row["wall"] = f"{median(r['wall'] for r in mine):.1f} s"
        if held:
            row["note"] = f": {share(sum(held), len(held))} of {len(held)} intervals hold the true ratio."
        made.append(row)
    return made


def page(found: Records) -> list[str]:
    pieces = [
        "Four callables of about 0.2 ms do real work in the proportions 1 : 1 : 1.02 : 1.05. "
        f"{rows(found)[0]['A + 5 %'][1]} repetitions, the order of the tools shuffled. Rates with their 95 % Wilson "
        "intervals."
    ]
    for (condition,), here in grouped(rows(found), "condition").items():
        shares = [row | {subject: share(*row[subject]) for subject in RATIOS} for row in here]
        head = "tool | wall time | rms error of the ratio | A/A flagged | 2 % found | 5 % found"
        told = lines(shares, head, "{tool} | {wall} | {rms:100×.2f} % | {A again} | {A + 2 %} | {A + 5 %}")
        notes = bullets(row["tool"] + row["note"] for row in here if row["note"])
        pieces += [f"## {condition.capitalize()}", told, notes]
    judged = [f"{name}: {peer.how}." for name, peer in PEERS.items()] + [
        "tinybench: rounds in shuffled order, median of paired ratios with its order-statistic interval.",
        "tinybench live: `compare_live`, stops at e ≥ 20.",
    ]
    return [*pieces, "Wall time includes starting the processes. How each tool judges:", bullets(judged)]


def figure(found: Mapping[str, Any], file: Path) -> None:
    """Draw errors and rates of all tools, one line of panels for each condition."""
    from matplotlib.figure import Figure

    conditions = grouped(sorted(rows(found["tools"]), key=itemgetter("tool"), reverse=True), "condition")
    drawn = Figure((8, 3.6 * len(conditions) + 0.6), layout="constrained")
    panels = drawn.subplots(len(conditions), 2, sharex="col", sharey="row", squeeze=False)
    styles = [
        ("A against itself (5 % at most)", "X", "#D55E00"),
        ("A + 2 %", "o", "#0072B2"),
        ("A + 5 %", "s", "#009E73"),
    ]
    for (left, right), ((condition,), here) in zip(panels, conditions.items(), strict=True):
        places, errors = np.arange(len(here)), [100 * (row["rms"] or math.nan) for row in here]
        left.scatter(errors, places, c=["#0072B2" if "tinybench" in row["tool"] else "#777777" for row in here])
        left.set(title=f"{condition}: error of the ratio", xscale="log", xlabel="rms error (%)")
        left.set_yticks(places, [row["tool"] for row in here])
        for subject, (label, mark, color), offset in zip(RATIOS, styles, (0.22, 0, -0.22), strict=True):
            ends = [(count / of, *wilson_interval(count, of)) for count, of in (row[subject] for row in here)]
            middle, low, high = 100 * np.transpose(ends)
            bars = np.maximum(0, [middle - low, high - middle])
            right.errorbar(middle, places + offset, xerr=bars, label=label, fmt=mark, color=color, capsize=2)
        right.axvline(5, color="black", linewidth=0.8, linestyle="--")
        right.set(title=f"{condition}: called different", xlabel="of the runs (%), with 95 % interval")
        for axes in (left, right):
            axes.grid(axis="x", alpha=0.4)
    drawn.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    drawn.savefig(file, dpi=150, metadata={"Date": None})


BENCHMARK = Benchmark(
    "Which tool tells A from A + 2 %, and A from itself?",
    {"tools": Part("", measured, page, cases=cases)},
    algebra=NO_BLAS,
    rounds=30,
    options={
        "--busy": {"type": int, "default": os.cpu_count(), "help": "busy processes under load; 0 for quiet only"},
        "--tool": {"default": "", "help": "only tools whose name begins so, such as 'tinybench, 1 s'"},
    },
    conditions=lambda options: {"quiet": 0} | ({"under load": options.busy} if options.busy else {}),
    figure=figure,
)

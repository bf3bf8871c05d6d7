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

    made = rows(found["tools"])
    conditions = grouped(made, "condition")
    names = sorted({row["tool"] for row in made}, reverse=True)
    drawn = Figure((8, (0.42 * len(names) + 0.7) * len(conditions) + 0.6))
    panels = drawn.subplots(len(conditions), 2, sharex="col", sharey=True, squeeze=False)
    styles = {"A again": (0.22, "X", "#D55E00"), "A + 2 %": (0, "o", "#0072B2"), "A + 5 %": (-0.22, "s", "#009E73")}
    for (left, right), ((condition,), here) in zip(panels, conditions.items(), strict=True):
        places = np.array([names.index(row["tool"]) for row in here])
        for row, y in zip(here, places, strict=True):
            if row["rms"]:
                left.plot(100 * row["rms"], y, "o", color="#0072B2" if "tinybench" in row["tool"] else "#777777")
                left.text(130 * row["rms"], y, f"{100 * row['rms']:.2g} %", va="center", fontsize=9)
        for subject, (offset, mark, color) in styles.items():
            middle, low, high = (
                100 * np.array([(n / of, *wilson_interval(n, of)) for n, of in (r[subject] for r in here)]).T
            )
            bars = np.maximum(0, [middle - low, high - middle])
            look: dict[str, Any] = {"fmt": mark, "color": color, "markersize": 6, "capsize": 2}
            right.errorbar(middle, places + offset, xerr=bars, label=subject, **look)
        left.set(title=f"{condition}: error of the ratio", xscale="log", yticks=range(len(names)), yticklabels=names)
        left.margins(x=0.3)
        right.set(xlim=(-3, 103), title=f"{condition}: called different")
        right.axvline(5, color="black", linewidth=0.8, linestyle="--")
        for axes in (left, right):
            axes.grid(axis="x", alpha=0.4)
    panels[-1][0].set_xlabel("rms error (%)")
    panels[-1][1].set_xlabel("of the runs (%), with 95 % interval")
    handles, _ = panels[0][1].get_legend_handles_labels()
    labels = ("A against itself (5 % at most)", *list(styles)[1:])
    drawn.legend(handles, labels, loc="lower center", ncols=3, frameon=False)
    drawn.tight_layout(rect=(0, 0.05, 1, 1))
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

"""Which tool tells A from A + 2 %, and A from itself?

Quiet and with a busy process on every core, the tools of `peers` measure four callables: A, A again, A + 2 %, A + 5 %,
real work in exactly these proportions.
"""

from __future__ import annotations

import math
import os
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from tests.benchmarks.formats import bullets, grouped, lines, share
from tests.benchmarks.harness import NO_BLAS, Benchmark, Case, Part, Trial
from tests.benchmarks.peers import PEERS, run_live, run_peer, run_tinybench
from tests.benchmarks.processes import in_child
from tests.benchmarks.subjects import ITERATIONS
from tinybench.accuracy import wilson_interval

RATIOS = {name: steps / ITERATIONS["A"] for name, steps in ITERATIONS.items() if name != "A"}
LIVE = "tinybench live"
Record = dict[str, Any]


def tools(short: bool) -> dict[str, Callable[[], list[Record]]]:
    """Return what to call for the records of each tool."""
    found: dict[str, Callable[[], list[Record]]] = {name: partial(run_peer, name, short) for name in PEERS}
    for seconds in (0.2,) if short else (1.0, 4.0):
        found[f"tinybench, {seconds:g} s"] = partial(in_child, run_tinybench, seconds)
    races, limit = (1, 0.05) if short else (7, 0.2)
    return {**found, LIVE: partial(in_child, run_live, races, limit)}


def cases(options: Namespace) -> list[Case]:
    return [(tool,) for tool in tools(options.short) if tool.startswith(options.tool)]


def measured(trial: Trial) -> list[Record]:
    """Return the records of a tool: one for each callable, or for each race."""
    [tool], start = trial.case, time.perf_counter()
    found = tools(trial.short)[tool]()
    wall = time.perf_counter() - start
    return [{"tool": tool, "wall": wall, **record} for record in found]


def rows(found: Sequence[Record]) -> list[Record]:
    """Return a row for each condition and tool: what it called different, its errors and its times."""
    made = []
    for (condition, tool), mine in grouped(found, "condition", "tool").items():
        by_subject = {subject: [r for r in mine if r["subject"] == subject] for subject in RATIOS}
        row: Record = {"condition": condition, "tool": tool, "rms": None, "wall": "until decided"}
        row["flagged"] = {s: (sum(r["flagged"] for r in records), len(records)) for s, records in by_subject.items()}
        if tool == LIVE:
            row["seconds"] = {s: median(r["seconds"] for r in records) for s, records in by_subject.items()}
        else:
            row["rms"] = math.sqrt(fmean(math.log(r["ratio"] / RATIOS[r["subject"]]) ** 2 for r in mine))
            row["wall"] = f"{median(r['wall'] for r in mine):.1f} s"
        row["held"] = [
            low <= RATIOS[r["subject"]] <= high for r in mine if "interval" in r for low, high in [r["interval"]]
        ]
        made.append(row)
    return made


def notes(row: Record) -> list[str]:
    """Return how often the intervals of a tool hold, or how soon races end."""
    if row["held"]:
        held, n = sum(row["held"]), len(row["held"])
        return [f"{row['tool']}: {share(held, n)} of {n} intervals hold the true ratio."]
    if row["tool"] != LIVE:
        return []
    sure = ", ".join(f"{s} in {row['seconds'][s]:.2f} s" for s in list(RATIOS)[1:])
    races = row["flagged"]["A again"][1]
    return [f"{LIVE} (a look after every round, {races} races of A against itself): {sure}."]


def page(found: Sequence[Record]) -> list[str]:
    """Return a table for each condition, and how each tool judges."""
    many = max(row["flagged"]["A + 5 %"][1] for row in rows(found))
    pieces = [
        f"Four callables of about 0.2 ms do real work in the proportions 1 : 1 : 1.02 : 1.05. {many} repetitions, the "
        "order of the tools shuffled. Rates with their 95 % Wilson intervals."
    ]
    for (condition,), here in grouped(rows(found), "condition").items():
        shares = [row | {subject: share(*counts) for subject, counts in row["flagged"].items()} for row in here]
        head = "tool | wall time | rms error of the ratio | A/A flagged | 2 % found | 5 % found"
        told = lines(shares, head, "{tool} | {wall} | {rms:100×.2f} % | {A again} | {A + 2 %} | {A + 5 %}")
        pieces += [f"## {condition.capitalize()}", told, bullets(note for row in here for note in notes(row))]
    judged = [f"{name}: {peer.how}." for name, peer in PEERS.items()] + [
        "tinybench: rounds in shuffled order, median of paired ratios with its order-statistic interval.",
        "tinybench live: `compare_live`, stops at e ≥ 20.",
    ]
    return [*pieces, "Wall time includes starting the processes. How each tool judges:", bullets(judged)]


def figure(found: Mapping[str, Any], file: Path) -> None:
    """Draw errors and rates of all tools, one line of panels for each condition."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    made = rows(found["tools"])
    conditions = grouped(made, "condition")
    errors = [row["rms"] for row in made if row["rms"]]
    names = list(dict.fromkeys(row["tool"] for row in made))[::-1]
    height = (0.42 * len(names) + 0.7) * len(conditions) + 0.6
    drawn, panels = plt.subplots(len(conditions), 2, figsize=(8, height), sharex="col", sharey=True, squeeze=False)
    panels[0][0].set(xscale="log", xlim=(50 * min(errors), 500 * max(errors)))
    panels[0][0].set(yticks=range(len(names)), yticklabels=names, ylim=(-0.6, len(names) - 0.4))
    styles = [
        ("A against itself (5 % at most)", 0.22, "X", "#D55E00"),
        ("A + 2 %", 0, "o", "#0072B2"),
        ("A + 5 %", -0.22, "s", "#009E73"),
    ]
    for (left, right), ((condition,), here) in zip(panels, conditions.items(), strict=True):
        places = np.array([names.index(row["tool"]) for row in here])
        for row, y in zip(here, places, strict=True):
            if row["rms"]:
                left.plot(100 * row["rms"], y, "o", color="#0072B2" if "tinybench" in row["tool"] else "#777777")
                left.text(100 * row["rms"] * 1.3, y, f"{100 * row['rms']:.2g} %", va="center", fontsize=9)
        for subject, (label, offset, mark, color) in zip(RATIOS, styles, strict=True):
            counts = [row["flagged"][subject] for row in here]
            middle = 100 * np.array([count / of for count, of in counts])
            low, high = 100 * np.array([wilson_interval(*each) for each in counts]).T
            bars = np.maximum(0, [middle - low, high - middle])
            look: dict[str, Any] = {"fmt": mark, "color": color, "markersize": 6, "capsize": 2}
            right.errorbar(middle, places + offset, xerr=bars, label=label, **look)
        left.set(title=f"{condition}: error of the ratio")
        right.set(xlim=(-3, 103), title=f"{condition}: called different")
        right.axvline(5, color="black", linewidth=0.8, linestyle="--")
        for axes in (left, right):
            axes.grid(axis="x", alpha=0.4)
    panels[-1][0].set_xlabel("rms error (%)")
    panels[-1][1].set_xlabel("of the runs (%), with 95 % interval")
    drawn.legend(*panels[0][1].get_legend_handles_labels(), loc="lower center", ncols=3, frameon=False)
    drawn.tight_layout(rect=(0, 0.05, 1, 1))
    drawn.savefig(file, dpi=150, metadata={"Date": None})
    plt.close(drawn)


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

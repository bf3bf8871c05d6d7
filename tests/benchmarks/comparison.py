"""Which tool tells A from A + 2 %, and A from itself?  ``python -m tests.benchmarks.comparison`` (``make bench``).

In one run on this machine, quiet and with a busy process on every core, five tools measure four callables: A, A again,
A + 2 %, A + 5 %, real work in exactly these proportions. The order of the tools is shuffled in each repetition.
Writes a table, a figure and all records into ``bench/``.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from tqdm import trange

from tests.benchmarks.peers import EFFORTS, PEERS, Effort, run_live, run_peer, run_tinybench, true_ratio
from tests.benchmarks.processes import busy_cores, in_child
from tests.benchmarks.report import NO_BLAS, RESULTS, ROOT, command_line, on_this_machine, write_json
from tests.benchmarks.subjects import CALLS
from tinybench.accuracy import wilson_interval
from tinybench.table import Table

SUBJECTS = list(CALLS)[1:]
FOUND = ("A/A flagged", "2 % found", "5 % found")
LIVE = "tinybench live"
Record = dict[str, Any]


def tools(effort: Effort, only: str = "") -> dict[str, Callable[[], list[Record]]]:
    """Return what to call for the records of each tool whose name begins with `only`."""
    found: dict[str, Callable[[], list[Record]]] = {name: partial(run_peer, name, effort) for name in PEERS}
    for seconds in effort.tinybench_seconds:
        found[f"tinybench, {seconds:g} s"] = partial(in_child, run_tinybench, seconds)
    found[LIVE] = partial(in_child, run_live, effort.live_trials, effort.live_seconds)
    return {name: run for name, run in found.items() if name.startswith(only)}


def measure(
    effort: Effort,
    repetitions: int,
    conditions: dict[str, int],
    seed: int | None,
    only: str = "",
    keep: Callable[[list[Record]], None] = lambda records: None,
) -> list[Record]:
    """Return the records of all tools, repetitions and conditions (name → number of busy processes)."""
    rng, records = random.Random(seed), []
    for repetition in trange(repetitions, desc="repetitions"):
        for condition, busy in conditions.items():
            order = list(tools(effort, only).items())
            rng.shuffle(order)
            with busy_cores(busy):
                for tool, run in order:
                    start = time.perf_counter()
                    found = run()
                    wall = time.perf_counter() - start
                    shared = {"tool": tool, "condition": condition, "repetition": repetition, "wall": wall}
                    records += [{**shared, **record} for record in found]
        keep(records)
    return records


def rate(flags: Sequence[bool]) -> Record:
    """Return a share with its Wilson interval."""
    low, high = wilson_interval(sum(flags), len(flags))
    return {"count": sum(flags), "of": len(flags), "share": sum(flags) / len(flags), "interval": [low, high]}


def summarise(records: Sequence[Record]) -> list[Record]:
    """Return one row for each condition and tool."""
    rows = []
    for condition in dict.fromkeys(r["condition"] for r in records):
        here = [r for r in records if r["condition"] == condition]
        for tool in sorted({r["tool"] for r in here}, key=lambda name: (name.startswith("tinybench"), name)):
            mine = [r for r in here if r["tool"] == tool]
            row: Record = {"condition": condition, "tool": tool}
            row["flagged"] = {s: rate([r["flagged"] for r in mine if r["subject"] == s]) for s in SUBJECTS}
            if tool == LIVE:
                row["seconds"] = {s: median(r["seconds"] for r in mine if r["subject"] == s) for s in SUBJECTS}
            else:
                errors = [math.log(r["ratio"] / true_ratio(r["subject"])) for r in mine]
                row["rms"] = math.sqrt(fmean(error**2 for error in errors))
                row["wall"] = median(r["wall"] for r in mine)
            if covered := [
                r["interval"][0] <= true_ratio(r["subject"]) <= r["interval"][1] for r in mine if "interval" in r
            ]:
                row["coverage"] = rate(covered)
            rows.append(row)
    return rows


def percent(share: Record) -> str:
    """Return ``3 % (1–9 %)``."""
    low, high = (100 * end for end in share["interval"])
    return f"{100 * share['share']:.0f} % ({low:.0f}–{high:.0f})"


def markdown(rows: Sequence[Record], machine: str, command: str) -> str:
    """Return the tables as Markdown, with what they mean."""
    many = max(row["flagged"]["A + 5 %"]["of"] for row in rows)
    parts = [
        "# Which tool tells A from A + 2 %, and A from itself?",
        f"Four callables of about 0.2 ms do real work in the proportions 1 : 1 : 1.02 : 1.05. {many} repetitions, the order\n"
        f"of the tools shuffled, {machine}. Rates with their 95 % Wilson intervals.",
    ]
    for condition in dict.fromkeys(row["condition"] for row in rows):
        here = [row for row in rows if row["condition"] == condition]
        table = Table(
            {
                "tool": row["tool"],
                "wall time": f"{row['wall']:.1f} s" if "wall" in row else "until decided",
                "rms error of the ratio": f"{100 * row['rms']:.2f} %" if "rms" in row else "–",
                **{head: percent(row["flagged"][s]) for s, head in zip(SUBJECTS, FOUND, strict=True)},
            }
            for row in here
        )
        notes = []
        for row in here:
            if "coverage" in row:
                cover, tool = row["coverage"], row["tool"]
                notes.append(f"- {tool}: {percent(cover)} of {cover['of']} intervals hold the true ratio.")
            if "seconds" in row:
                sure = ", ".join(f"{s} in {row['seconds'][s]:.2f} s" for s in SUBJECTS[1:])
                races = row["flagged"]["A again"]["of"]
                notes.append(f"- {row['tool']} (a look after every round, {races} races of A against itself): {sure}.")
        parts += [f"## {condition.capitalize()}", table.markdown(), "\n".join(notes)]
    judged = [f"- {name}: {peer.how}." for name, peer in PEERS.items()] + [
        "- tinybench: rounds in shuffled order, median of paired ratios with its order-statistic interval.",
        "- tinybench live: `compare_live`, stops at e ≥ 20.",
    ]
    parts += ["Wall time includes starting the processes. How each tool judges:", "\n".join(judged)]
    return "\n\n".join([*parts, f"Command: `{command}`\n"])


def draw(rows: Sequence[Record], files: Sequence[Path]) -> None:
    """Draw errors and rates of all tools, one line of panels for each condition."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    conditions = list(dict.fromkeys(row["condition"] for row in rows))
    errors = [row["rms"] for row in rows if "rms" in row]
    names = list(dict.fromkeys(row["tool"] for row in rows))[::-1]
    height = (0.42 * len(names) + 0.7) * len(conditions) + 0.6
    figure, panels = plt.subplots(len(conditions), 2, figsize=(8, height), sharex="col", sharey=True, squeeze=False)
    panels[0][0].set(xscale="log", xlim=(50 * min(errors), 500 * max(errors)))
    panels[0][0].set(yticks=range(len(names)), yticklabels=names, ylim=(-0.6, len(names) - 0.4))
    labels = ("A against itself (5 % at most)", "A + 2 %", "A + 5 %")
    styles = zip((0.22, 0, -0.22), ("X", "o", "s"), ("#D55E00", "#0072B2", "#009E73"), strict=True)
    series = list(zip(SUBJECTS, labels, styles, strict=True))
    for (left, right), condition in zip(panels, conditions, strict=True):
        here = [row for row in rows if row["condition"] == condition]
        places = np.array([names.index(row["tool"]) for row in here])
        for row, y in zip(here, places, strict=True):
            if "rms" in row:
                left.plot(100 * row["rms"], y, "o", color="#0072B2" if "tinybench" in row["tool"] else "#777777")
                left.text(100 * row["rms"] * 1.3, y, f"{100 * row['rms']:.2g} %", va="center", fontsize=9)
        for subject, label, (offset, mark, color) in series:
            shares = [row["flagged"][subject] for row in here]
            middle, low, high = 100 * np.array([(share["share"], *share["interval"]) for share in shares]).T
            bars = np.maximum(0, [middle - low, high - middle])
            look = {"fmt": mark, "color": color, "markersize": 6, "capsize": 2}
            right.errorbar(middle, places + offset, xerr=bars, label=label, **look)
        left.set(title=f"{condition}: error of the ratio")
        right.set(xlim=(-3, 103), title=f"{condition}: called different")
        right.axvline(5, color="black", linewidth=0.8, linestyle="--")
        for axes in (left, right):
            axes.grid(axis="x", alpha=0.4)
    panels[-1][0].set_xlabel("rms error (%)")
    panels[-1][1].set_xlabel("of the runs (%), with 95 % interval")
    handles, texts = panels[0][1].get_legend_handles_labels()
    figure.legend(handles, texts, loc="lower center", ncols=3, frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    for file in files:
        figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> Path:
    """Run the comparison, and return the folder that has the results."""
    parser = command_line("comparison", __doc__)
    parser.add_argument("--repetitions", type=int, help="runs of every tool (30; with --effort quick 2)")
    parser.add_argument(
        "--effort", choices=list(EFFORTS), default="full", help="thorough is pyperf --fast as it is, and slow"
    )
    parser.add_argument("--quick", action="store_true", help="the same as --effort quick: to see whether it works")
    parser.add_argument("--busy", type=int, default=os.cpu_count(), help="busy processes under load; 0 for quiet only")
    parser.add_argument("--only", default="", help="only tools whose name begins so, such as 'tinybench, 1 s'")
    parser.add_argument("--seed", type=int, help="seed of the order of the tools")
    parser.add_argument("--out", type=Path, default=ROOT / "bench", help="folder for the results (bench)")
    parser.add_argument("--publish", metavar="NAME", help="also write tests/benchmarks/results/NAME.md and .svg")
    options = parser.parse_args(arguments)
    effort = "quick" if options.quick else options.effort
    repetitions = options.repetitions or (2 if effort == "quick" else 30)
    conditions = {"quiet": 0, **({"under load": options.busy} if options.busy else {})}
    command = f"python -m tests.benchmarks.comparison --effort {effort} --repetitions {repetitions}"
    command += f' --only "{options.only}"' if options.only else ""
    command += "" if options.busy else " --busy 0"
    machine = on_this_machine(NO_BLAS)

    def keep(records: list[Record]) -> None:
        document = {"machine": machine, "command": command, "summary": summarise(records), "records": records}
        write_json(options.out / "comparison.json", document)

    records = measure(EFFORTS[effort], repetitions, conditions, options.seed, options.only, keep=keep)
    rows = summarise(records)
    table = markdown(rows, machine, command)
    files = [options.out / "comparison"] + ([RESULTS / options.publish] if options.publish else [])
    for file in files:
        file.with_suffix(".md").write_text(table, encoding="utf-8")
    draw(rows, [options.out / "comparison.png", *(file.with_suffix(".svg") for file in files)])
    print(table)
    return options.out  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()

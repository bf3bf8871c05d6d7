"""Which tool tells A from A + 2 %, and A from itself?  ``python -m tests.benchmarks.comparison`` (``make bench``).

In one run on this machine, quiet and with a busy process on every core, five tools measure four callables: A, A again,
A + 2 %, A + 5 %, real work in exactly these proportions. The order of the tools is shuffled in each repetition.
Writes a table, a figure and all records into ``bench/``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median
from typing import Any

from tests.benchmarks.peers import EFFORTS, PEERS, ROOT, Effort, run_live, run_peer, run_tinybench, true_ratio
from tests.benchmarks.subjects import CALLS

SUBJECTS = list(CALLS)[1:]
LIVE = "tinybench live"
Record = dict[str, Any]


@contextmanager
def busy_cores(number: int) -> Iterator[None]:
    """Keep so many processes busy for the time of the block."""
    command = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(command) for _ in range(number)]
    try:
        time.sleep(0.5 if number else 0)
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def tools(effort: Effort, only: str = "") -> dict[str, Callable[[], list[Record]]]:
    """Return what to call for the records of each tool whose name begins with `only`."""
    found: dict[str, Callable[[], list[Record]]] = {
        name: lambda name=name: run_peer(name, effort)  # type: ignore[misc]
        for name in PEERS
    }
    for seconds in effort.tinybench_seconds:
        found[f"tinybench, {seconds:g} s"] = lambda seconds=seconds: run_tinybench(seconds)  # type: ignore[misc]
    found[LIVE] = lambda: run_live(effort)
    return {name: run for name, run in found.items() if name.startswith(only)}


def measure(
    effort: Effort,
    repetitions: int,
    conditions: dict[str, int],
    seed: int | None,
    only: str = "",
    report: Callable[[str], None] = print,
    keep: Callable[[list[Record]], None] = lambda records: None,
) -> list[Record]:
    """Return the records of all tools, repetitions and conditions (name → number of busy processes)."""
    rng, records, began = random.Random(seed), [], time.perf_counter()
    for repetition in range(repetitions):
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
        minutes = (time.perf_counter() - began) / 60
        left = minutes / (repetition + 1) * (repetitions - repetition - 1)
        report(f"repetition {repetition + 1} of {repetitions}, {minutes:.1f} minutes, about {left:.1f} to go")
    return records


def rate(flags: Sequence[bool]) -> Record:
    """Return a share with its Wilson interval."""
    from tinybench.accuracy import wilson_interval

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


def machine() -> Record:
    """Return what a reader must know of the machine."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(encoding="utf-8").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    return {
        "cpu": name,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_average": list(os.getloadavg()),
    }


def on_this_machine() -> str:
    """Return which machine this is, and how busy, for the head of a page of results."""
    facts = machine()
    return f"on {facts['cores']} cores of {facts['cpu']} ({facts['system']}, Python {facts['python']}, load {facts['load_average'][0]:.1f})"


def percent(share: Record) -> str:
    """Return ``3 % (1–9 %)``."""
    low, high = (100 * end for end in share["interval"])
    return f"{100 * share['share']:.0f} % ({low:.0f}–{high:.0f})"


def markdown(rows: Sequence[Record], facts: Record, command: str) -> str:
    """Return the tables as Markdown, with what they mean."""
    many = max(row["flagged"]["A + 5 %"]["of"] for row in rows)
    lines = [
        "# Which tool tells A from A + 2 %, and A from itself?",
        "",
        f"Four callables of about 0.2 ms do real work in the proportions 1 : 1 : 1.02 : 1.05. {many} repetitions, the order",
        f"of the tools shuffled, on {facts['cores']} cores of {facts['cpu']} ({facts['system']}, Python {facts['python']},",
        f"{facts['time'][:10]}). Rates with their 95 % Wilson intervals.",
        "",
    ]
    for condition in dict.fromkeys(row["condition"] for row in rows):
        lines += [
            f"## {condition.capitalize()}",
            "",
            "| tool | wall time | rms error of the ratio | A/A flagged | 2 % found | 5 % found |",
            "|---|---|---|---|---|---|",
        ]
        here = [row for row in rows if row["condition"] == condition]
        for row in here:
            rates = " | ".join(percent(row["flagged"][subject]) for subject in SUBJECTS)
            wall = f"{row['wall']:.1f} s" if "wall" in row else "until decided"
            rms = f"{100 * row['rms']:.2f} %" if "rms" in row else "–"
            lines.append(f"| {row['tool']} | {wall} | {rms} | {rates} |")
        lines.append("")
        for row in here:
            if "coverage" in row:
                cover, tool = row["coverage"], row["tool"]
                lines.append(f"- {tool}: {percent(cover)} of {cover['of']} intervals hold the true ratio.")
            if "seconds" in row:
                sure = ", ".join(f"{s} in {row['seconds'][s]:.2f} s" for s in SUBJECTS[1:])
                races = row["flagged"]["A again"]["of"]
                lines.append(f"- {row['tool']} (a look after every round, {races} races of A against itself): {sure}.")
        lines.append("")
    lines += ["Wall time includes starting the processes. How each tool judges:", ""]
    lines += [f"- {name}: {peer.how}." for name, peer in PEERS.items()]
    lines += [
        "- tinybench: rounds in shuffled order, median of paired ratios with its order-statistic interval.",
        "- tinybench live: `compare_live`, stops at e ≥ 20.",
        "",
        f"Command: `{command}`",
        "",
    ]
    return "\n".join(lines)


def draw(rows: Sequence[Record], files: Sequence[Path]) -> None:
    """Draw errors and rates of all tools, one line of panels for each condition."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    conditions = list(dict.fromkeys(row["condition"] for row in rows))
    errors = [row["rms"] for row in rows if "rms" in row]
    names = list(dict.fromkeys(row["tool"] for row in rows))[::-1]
    height = (0.42 * len(names) + 0.7) * len(conditions) + 0.6
    figure, panels = plt.subplots(len(conditions), 2, figsize=(8, height), sharex="col", squeeze=False)
    marks = dict(zip(SUBJECTS, (("X", "#D55E00"), ("o", "#0072B2"), ("s", "#009E73")), strict=True))
    for (left, right), condition in zip(panels, conditions, strict=True):
        for row in (row for row in rows if row["condition"] == condition):
            y = names.index(row["tool"])
            if "rms" in row:
                left.plot(100 * row["rms"], y, "o", color="#0072B2" if "tinybench" in row["tool"] else "#777777")
                left.text(100 * row["rms"] * 1.3, y, f"{100 * row['rms']:.2g} %", va="center", fontsize=9)
            for offset, (subject, (mark, color)) in zip((0.22, 0, -0.22), marks.items(), strict=True):
                share = row["flagged"][subject]
                middle, ends = 100 * share["share"], [100 * end for end in share["interval"]]
                bars = [[max(0.0, middle - ends[0])], [max(0.0, ends[1] - middle)]]
                right.errorbar(middle, y + offset, xerr=bars, fmt=mark, color=color, markersize=6, capsize=2)
        left.set(xscale="log", yticks=range(len(names)), yticklabels=names, title=f"{condition}: error of the ratio")
        left.set_xlim(50 * min(errors), 500 * max(errors))
        right.set(yticks=range(len(names)), yticklabels=[], xlim=(-3, 103), title=f"{condition}: called different")
        right.axvline(5, color="black", linewidth=0.8, linestyle="--")
        for axes in (left, right):
            axes.set_ylim(-0.6, len(names) - 0.4)
            axes.grid(axis="x", alpha=0.4)
    panels[-1][0].set_xlabel("rms error (%)")
    panels[-1][1].set_xlabel("of the runs (%), with 95 % interval")
    labels = {"A again": "A against itself (5 % at most)", "A + 2 %": "A + 2 %", "A + 5 %": "A + 5 %"}
    handles = [
        plt.Line2D([], [], marker=mark, color=color, linestyle="", label=labels[subject])
        for subject, (mark, color) in marks.items()
    ]
    figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    for file in files:
        figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> Path:
    """Run the comparison, and return the folder that has the results."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.comparison", description=(__doc__ or "").split("\n")[0]
    )
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
    options.out.mkdir(parents=True, exist_ok=True)
    command = f"python -m tests.benchmarks.comparison --effort {effort} --repetitions {repetitions}"
    command += f' --only "{options.only}"' if options.only else ""
    command += "" if options.busy else " --busy 0"
    facts = machine()

    def keep(records: list[Record]) -> None:
        document = {"machine": facts, "command": command, "summary": summarise(records), "records": records}
        (options.out / "comparison.json").write_text(json.dumps(document, indent=1), encoding="utf-8")

    records = measure(EFFORTS[effort], repetitions, conditions, options.seed, options.only, keep=keep)
    rows = summarise(records)
    table = markdown(rows, facts, command)
    (options.out / "comparison.md").write_text(table, encoding="utf-8")
    figures = [options.out / "comparison.png", options.out / "comparison.svg"]
    if options.publish:
        docs = ROOT / "tests" / "benchmarks" / "results"
        docs.mkdir(parents=True, exist_ok=True)
        (docs / f"{options.publish}.md").write_text(table, encoding="utf-8")
        figures.append(docs / f"{options.publish}.svg")
    draw(rows, figures)
    print(table)
    return options.out  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()

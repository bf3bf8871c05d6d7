"""Who calls a function different from itself, and who finds 1 %, from 50 ns to 20 ms?

``python -m tests.benchmarks.verdicts`` takes an hour. In one run, quiet and with a busy process on every core, our four
ways to a verdict and the peers of `peers` judge A against A, the same object under two names, and A
against A + 1 % (A + 0.5 % at 0.2 ms). The trials of all ways, lengths and conditions come in shuffled portions, each in
a fresh process on a core of its own. A/A trials take ``--seconds``, the others a second, warm-up and calibration
included; the last column says how long they really took. Writes a table and all records into ``bench/``.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.comparison import busy_cores, percent, rate
from tests.benchmarks.peers import PEERS, child
from tests.benchmarks.report import NO_BLAS, RESULTS, ROOT, command_line, on_this_machine, write_json
from tests.benchmarks.subjects import CHOICE, LENGTHS
from tests.benchmarks.ways import AGAIN, MORE, WAYS
from tinybench.table import Table

Record = dict[str, Any]
CONDITIONS = ("quiet", "under load")
PORTION = 25  # trials in one process


def in_portions(what: tuple[str, ...], trials: int, seconds: float) -> list[tuple[Any, ...]]:
    """Return so many trials in portions."""
    return [(*what, min(PORTION, trials - begun), seconds) for begun in range(0, trials, PORTION)]


def portions(options: Any) -> list[tuple[Any, ...]]:
    """Return what there is to run under each condition, in portions of some trials."""
    found: list[tuple[Any, ...]] = []
    for length, (_, _, sizes) in LENGTHS.items():
        if options.only not in length:
            continue
        for way in WAYS:
            found += in_portions((way, length, AGAIN), options.trials, options.seconds)
            if len(sizes) > 1:
                found += in_portions((way, length, MORE), options.found, 1.0)
        found += [(peer, length, AGAIN, 1, 0.0) for peer in PEERS for _ in range(options.peers)]
    return found


def run_all(options: Any, condition: str, busy: int, keep: Callable[[list[Record]], None]) -> None:
    """Run all portions of a condition, as many at once as there are jobs, each on a core of its own."""
    tasks, cores = portions(options), list(os.sched_getaffinity(0))
    random.Random(options.seed).shuffle(tasks)
    free = cores[: options.jobs]

    def run(task: tuple[Any, ...]) -> None:
        core = free.pop()
        try:
            found = json.loads(child("-m", "tests.benchmarks.ways", json.dumps([core, *task]), **{CHOICE: task[1]}))
        finally:
            free.append(core)
        about = {"way": task[0], "length": task[1], "condition": condition}
        keep([{**about, **record} for record in found])

    with busy_cores(busy), ThreadPoolExecutor(options.jobs) as pool:
        for number, _ in enumerate(pool.map(run, tasks), 1):
            if number % 20 == 0:
                print(f"{condition}: {number} of {len(tasks)} portions", file=sys.stderr, flush=True)


def summarise(records: Sequence[Record]) -> list[Record]:
    """Return one row for each condition, length and way: how often called different, found, and how long it took."""
    rows = []
    order = [*WAYS, *PEERS]
    keys = {(r["condition"], r["length"], r["way"]): None for r in records}
    for condition, length, way in sorted(keys, key=lambda k: (k[0], list(LENGTHS).index(k[1]), order.index(k[2]))):
        mine = [r for r in records if (r["condition"], r["length"], r["way"]) == (condition, length, way)]
        row: Record = {"condition": condition, "length": length, "way": way}
        for subject, head in ((AGAIN, "flagged"), (MORE, "found")):
            if flags := [r["flagged"] for r in mine if r["subject"] == subject]:
                row[head] = rate(flags)
        if late := [r["took"] / r["seconds"] for r in mine if r.get("seconds")]:
            row["late"] = {"median": median(late), "longest": max(late)}
        rows.append(row)
    return rows


def markdown(runs: Sequence[Record]) -> str:
    """Return the tables of one run or several as Markdown, with what they mean."""
    parts = [
        "# Verdicts from 50 ns to 20 ms",
        "\n".join(f"- `{run['command']}`, {run['machine']}" for run in runs),
        "What is measured, and how, stands at the head of [verdicts.py](../verdicts.py). Rates with their 95 % Wilson\n"
        "intervals.",
    ]
    rows = summarise([record for run in runs for record in run["records"]])
    for condition in dict.fromkeys(row["condition"] for row in rows):
        table = Table(
            {
                "length": row["length"],
                "way": row["way"],
                "A/A called different": percent(row["flagged"]) if "flagged" in row else "–",
                "trials": str(row["flagged"]["of"]) if "flagged" in row else "–",
                "A + 1 % found": percent(row["found"]) if "found" in row else "–",
                "time taken / asked, median (longest)": "{median:.2f} ({longest:.2f})".format(**row["late"])
                if "late" in row
                else "–",
            }
            for row in rows
            if row["condition"] == condition
        )
        parts += [f"## {condition.capitalize()}", table.markdown()]
    parts.append(
        "At 0.2 ms the longer callable is A + 0.5 %, at 50 ns there is none. How the peers judge stands in "
        "[comparison.md](comparison.md)."
    )
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> Path:
    """Run the trials, and return the folder that has the results."""
    parser = command_line("verdicts", __doc__)
    parser.add_argument("--trials", type=int, default=200, help="A/A trials of each way and length (200)")
    parser.add_argument("--found", type=int, default=40, help="trials against A + 1 %% (40)")
    parser.add_argument("--peers", type=int, default=20, help="runs of each peer and length (20)")
    parser.add_argument("--seconds", type=float, default=0.3, help="for an A/A trial (0.3)")
    parser.add_argument("--busy", type=int, default=os.cpu_count(), help="busy processes under load (one a core)")
    parser.add_argument("--condition", choices=CONDITIONS, action="append", help="one of them only (both)")
    parser.add_argument("--add", action="store_true", help="to the records that are in the folder already")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="trials at a time, each on a core of its own")
    parser.add_argument("--only", default="", help="only lengths with this in their name")
    parser.add_argument("--seed", type=int, help="seed of the order")
    parser.add_argument("--out", type=Path, default=ROOT / "bench", help="folder for the results (bench)")
    parser.add_argument("--publish", metavar="NAME", help="also write tests/benchmarks/results/NAME.md")
    options = parser.parse_args(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    command, machine = shlex.join(["python", "-m", "tests.benchmarks.verdicts", *given]), on_this_machine(NO_BLAS)
    file, runs = options.out / "verdicts.json", []
    if options.add:
        runs = json.loads(file.read_text(encoding="utf-8"))["runs"]
    records: list[Record] = []
    runs.append({"machine": machine, "command": command, "records": records})

    def keep(more: list[Record]) -> None:
        records.extend(more)
        write_json(file, {"runs": runs})

    for condition in options.condition or CONDITIONS:
        run_all(options, condition, options.busy if condition == "under load" else 0, keep)
    table = markdown(runs)
    for file in [options.out / "verdicts.md"] + ([RESULTS / f"{options.publish}.md"] if options.publish else []):
        file.write_text(table, encoding="utf-8")
    print(table)
    return options.out  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()

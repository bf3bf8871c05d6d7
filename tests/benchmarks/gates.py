"""How often is a gate right?  ``python -m tests.benchmarks.gates`` (hours on one job; ``--trials`` and ``--only`` for less).

Each trial is one `tinybench gate` as a release would run it, with a limit of 5 % and 60 s: `--run` on functions of
about 0.2 ms and 5 ms and on a command, which do real work in exact proportion, and on stored files of ten sessions
each, measured one after the other. The order of all trials is shuffled. Counts what passes, fails and is not decided.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from tqdm import tqdm

from tests.benchmarks.report import NO_BLAS, RESULTS, ROOT, command_line, on_this_machine, write_json
from tinybench.accuracy import wilson_interval
from tinybench.table import Table

LIMIT = 5
SUBJECTS = "tests.benchmarks.gate_subjects"
WORDS = f'{sys.executable} -c "from tests.benchmarks.subjects import work; work(200_000)"'
RUN, FILES = "--run", "files of 10 sessions"
Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One row of the table: a gate, what it judges, by how many percent it is slower, and the trials."""

    gate: str
    subject: str
    percent: int
    trials: int

    @property
    def name(self) -> str:
        """What `--only` names."""
        return f"{self.gate} {self.subject} {self.percent} %"


CASES = [
    *(
        Case(RUN, length, percent, n)
        for length in ("short", "long")
        for percent, n in {0: 40, 2: 30, 6: 30, 10: 40}.items()
    ),
    Case(RUN, "command", 0, 40),
    *(Case(FILES, "short", percent, 20) for percent in (0, 2, 6, 10)),
]
NAMES = {"short": "function, 0.2 ms", "long": "function, 5 ms", "command": "command, 35 ms"}


def tinybench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    words = [sys.executable, "-m", "tinybench", *arguments]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def measured_file(folder: Path, name: str, percent: int, subject: str, seconds: float) -> str:
    """Measure a model in ten sessions and return the file."""
    file, rows = folder / f"{name}.json", folder / "rows.npy"
    np.save(rows, np.zeros((1, 1)))
    model = f"{SUBJECTS}:model_{subject}_{percent}"
    how = ("--data", str(rows), "--sessions", "10", "--seconds", str(seconds), "--save", str(file))
    done = tinybench("measure", model, *how)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return str(file)


def trial(case: Case, seconds: float) -> Record:
    """Run one gate and return its verdict, by exit code, and what it took."""
    start = time.perf_counter()
    limit = ("--max-slowdown", f"{LIMIT}%", "--format", "json")
    with tempfile.TemporaryDirectory() as folder:
        if case.gate == FILES:
            # a third of the time for both files
            old, new = (
                measured_file(Path(folder), name, p, case.subject, seconds / 6)
                for name, p in (("old", 0), ("new", case.percent))
            )
            done = tinybench("gate", old, new, *limit)
        else:
            new = WORDS if case.subject == "command" else f"{SUBJECTS}:{case.subject}_{case.percent}"
            old = WORDS if case.subject == "command" else f"{SUBJECTS}:{case.subject}_0"
            done = tinybench("gate", "--run", old, new, "--seconds", str(seconds), *limit)
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f"{case.name}: {done.stderr}")
    verdict = ("passes", "fails", "cannot tell")[done.returncode]
    wall = time.perf_counter() - start
    return {"case": case.name, "verdict": verdict, "wall": wall, "answer": json.loads(done.stdout.splitlines()[-1])}


def wrong_verdict(percent: int) -> str:
    """Return the verdict that is wrong for a true slowdown."""
    return "fails" if percent <= LIMIT else "passes"


def percent_of(count: int, total: int) -> str:
    """Return ``3 % (1–9)``."""
    low, high = wilson_interval(count, total)
    return f"{100 * count / total:.0f} % ({100 * low:.0f}–{100 * high:.0f})"


def summarise(records: Sequence[Record], cases: Sequence[Case] = tuple(CASES)) -> list[dict[str, str]]:
    """Return one row for each case that has been tried."""
    rows = []
    for case in cases:
        mine = [record for record in records if record["case"] == case.name]
        if not mine:
            continue
        counts, n = Counter(record["verdict"] for record in mine), len(mine)
        rows.append(
            {
                "gate": case.gate,
                "measured": NAMES[case.subject],
                "true slowdown": f"{case.percent} %",
                "trials": str(n),
                **{verdict: percent_of(counts[verdict], n) for verdict in ("passes", "fails", "cannot tell")},
                "wrong": str(counts[wrong_verdict(case.percent)]),
                "wall time, median (longest)": f"{median(r['wall'] for r in mine):.0f} s ({max(r['wall'] for r in mine):.0f} s)",
            }
        )
    return rows


def markdown(runs: Sequence[Record], cases: Sequence[Case] = tuple(CASES)) -> str:
    """Return the page on one or more runs: each with its machine, command and records."""
    records = [record for run in runs for record in run["records"]]
    rows = summarise(records, cases)
    parts = [
        "# How often is a gate right?",
        f"`tinybench gate` with a limit of {LIMIT} %, on a machine shared with other busy programs. Every trial is a fresh\n"
        "command on work in exactly this proportion; shares with their 95 % Wilson intervals. `--run` measures both sides\n"
        "in turn and stops once it knows; files are measured one after the other, and the machine changes in between.",
        Table(rows).markdown() if rows else "No trials.",
    ]
    for gate in (RUN, FILES):
        mine = [(case, r) for r in records for case in cases if case.name == r["case"] and case.gate == gate]
        if mine:
            wrong = sum(r["verdict"] == wrong_verdict(case.percent) for case, r in mine)
            parts.append(f"`{gate}`: {wrong} of {len(mine)} verdicts wrong, {percent_of(wrong, len(mine))}.")
    made = [f"Command: `{run['command']}`, {run['machine']}." for run in runs if run["records"]]
    return "\n\n".join([*parts, *made]) + "\n"


def run_all(
    cases: Sequence[Case], jobs: int, seconds: float, seed: int | None, keep: Callable[[list[Record]], None]
) -> None:
    """Run all trials, shuffled, so many at a time, and keep the records after each."""
    tasks = [case for case in cases for _ in range(case.trials)]
    random.Random(seed).shuffle(tasks)
    records: list[Record] = []
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for record in tqdm(pool.map(lambda case: trial(case, seconds), tasks), total=len(tasks), mininterval=30):
                records.append(record)
                keep(records)
        finally:
            pool.shutdown(cancel_futures=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the trials and write the page."""
    parser = command_line("gates", __doc__)
    parser.add_argument("--trials", type=int, help="of each row, instead of 20 to 40; 0 for a page on what --add has")
    parser.add_argument("--add", nargs="*", type=Path, default=[], metavar="FILE", help="gates.json of earlier runs")
    parser.add_argument("--only", default="", help="rows whose name holds this, such as 'short' or '10 %%'")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each gate")
    parser.add_argument("--jobs", type=int, default=1, help="trials at a time; two share the machine with each other")
    parser.add_argument("--seed", type=int, help="seed of the order of the trials")
    parser.add_argument("--out", type=Path, default=ROOT / "bench", help="folder for the results (bench)")
    parser.add_argument("--publish", action="store_true", help="also write tests/benchmarks/results/gates.md")
    options = parser.parse_args(arguments)
    cases = [
        Case(c.gate, c.subject, c.percent, c.trials if options.trials is None else options.trials)
        for c in CASES
        if options.only in c.name
    ]
    command = f"python -m tests.benchmarks.gates --jobs {options.jobs} --seconds {options.seconds:g}"
    command += f" --trials {options.trials}" if options.trials is not None else ""
    command += f' --only "{options.only}"' if options.only else ""
    run: Record = {"machine": on_this_machine(NO_BLAS), "command": command, "records": []}
    earlier = [json.loads(file.read_text(encoding="utf-8")) for file in options.add]

    def keep(records: list[Record]) -> None:
        run["records"] = records
        if records:
            write_json(options.out / "gates.json", run)
        page = markdown([*earlier, run])
        for file in [options.out / "gates.md", *([RESULTS / "gates.md"] if options.publish else [])]:
            file.write_text(page, encoding="utf-8")

    options.out.mkdir(parents=True, exist_ok=True)
    keep([])
    run_all(cases, options.jobs, options.seconds, options.seed, keep)
    print((options.out / "gates.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()

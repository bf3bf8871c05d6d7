"""The harness of all benchmarks: the command line, trials in shuffled rounds, their records, and the page.

A benchmark is a module that declares `BENCHMARK`; the first line of its docstring is its question. Each trial that ends
adds a line to ``bench/NAME.jsonl``. A run that was interrupted goes on where it stopped, if its command is the same. Any
other run replaces the records of the parts that it measures, or adds to them with ``--add``.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib import import_module
from itertools import cycle
from operator import itemgetter
from pathlib import Path
from typing import Any

from tests.benchmarks.formats import bullets, grouped
from tests.benchmarks.processes import ROOT, busy_cores
from tinybench.benchmark import system_info

RESULTS = ROOT / "tests" / "benchmarks" / "results"
NO_BLAS = "no BLAS kernel: nothing that is measured calls BLAS"
ONNX_RUNTIME = "no BLAS kernel: ONNX Runtime answers, with kernels of its own"
KEY = itemgetter("part", "condition", "round", "case")
LOAD = "The load is that when a part began; it counts whatever else ran on these cores."

Case = tuple[Any, ...]
Record = dict[str, Any]
Records = list[Record]


@dataclass(frozen=True)
class Trial:
    """One measurement: a case of a part, in a round, under a condition."""

    part: str
    condition: str
    round: int
    case: Case
    place: int  # of the case among all
    options: Namespace
    folder: Path  # for files that trials share; it is deleted when the run ends

    @property
    def short(self) -> bool:
        return bool(self.options.short)


@dataclass(frozen=True)
class Part:
    """One section of a page.

    `measured` takes a trial and returns its record, or a list of records. `page` and `goals` take the list of all
    records in the order of the cases, each with its condition, round and case, whose values are named by `fields`.
    Without `cases` there is one trial, and they take its record. `short` are the cases of the short form.
    `parallel` says how trials share the machine: not at all, in ``--jobs`` "threads" that wait for processes, in such
    threads on "cores" of their own, or in as many "processes" as there are cores, which suits simulations.
    """

    heading: str
    measured: Callable[[Trial], Any]
    page: Callable[[Any], list[str]]
    goals: Callable[[Any], dict[str, bool]] = lambda found: {}
    cases: Callable[[Namespace], Iterable[Case]] | Sequence[Case] | None = None
    parallel: str = ""
    short: Sequence[Case] | None = None
    fields: Sequence[str] = ()

    def cases_of(self, options: Namespace) -> Iterable[Case]:
        """Return the cases that a run measures."""
        if options.short and self.short is not None:
            return self.short
        return self.cases(options) if callable(self.cases) else self.cases or [()]


@dataclass(frozen=True)
class Benchmark:
    """A page and how it is measured. `short` holds the options of the short form, `options` the arguments of argparse."""

    title: str
    parts: Mapping[str, Part]
    intro: str = ""
    algebra: str = ""  # NO_BLAS or ONNX_RUNTIME, if BLAS has no part in the measurement
    rounds: int | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    short: Mapping[str, Any] = field(default_factory=dict)
    conditions: Callable[[Namespace], Mapping[str, int]] = lambda options: {"quiet": 0}  # numbers of busy processes
    figure: Callable[[Mapping[str, Any], Path], None] | None = None

    def found(self, lines: Records) -> dict[str, Any]:
        """Return the records of each part that has some."""
        found: dict[str, Any] = {}
        groups = grouped(sorted(lines, key=itemgetter("run", "place", "round")), "part")
        for name, part in self.parts.items():
            for line in groups.get((name,), []):
                about = {"condition": line["condition"], "round": line["round"], "case": tuple(line["case"])}
                about |= dict(zip(part.fields, line["case"], strict=False))
                records = line["found"] if isinstance(line["found"], list) else [line["found"]]
                if part.cases:
                    found.setdefault(name, []).extend(about | record for record in records)
                else:
                    found[name] = line["found"]
        return found

    def page(self, lines: Records) -> str:
        """Return the page in Markdown."""
        pieces = [f"# {self.title}", f"{self.intro} {LOAD}".strip()]
        for name, found in self.found(lines).items():
            part, runs = self.parts[name], dict[int, str]()
            file = f"{part.measured.__module__.rpartition('.')[2]}.py"
            for line in lines:
                if line["part"] == name:
                    runs.setdefault(line["run"], "`{command}`, {machine}.{note}".format_map(line))
            pieces += [
                f"## {part.heading}" if part.heading else "",
                bullets(runs.values()) if len(runs) > 1 else runs.popitem()[1],
                f"What is measured, and how, stands at the head of [{file}](../{file}).",
                *part.page(found),
                bullets(f"{'met' if met else 'MISSED'}: {goal}" for goal, met in part.goals(found).items()),
            ]
        return "\n\n".join(filter(None, pieces)) + "\n"

    def met(self, lines: Records) -> bool:
        """Return whether all goals were met."""
        return all(met for name, found in self.found(lines).items() for met in self.parts[name].goals(found).values())


def on_this_machine(algebra: str = "") -> str:
    """Return the machine, its load, and what computes linear algebra: BLAS, or else `algebra`."""
    facts = system_info()
    kernel = algebra or f"BLAS kernel {facts['conditions'].get('BLAS kernel', 'not reported')}"
    settings = [f"{name}={value}" for name, value in facts["settings"].items() if not name.startswith("PYTHON")]
    libraries = ", ".join([f"Python {facts['python']}", kernel, *settings])
    load = f"load {facts['load_average'][0]:.1f}"
    return (
        f"on {facts['cores']} cores of {facts['cpu']} ({facts['platform']}, {libraries}, {load}, {facts['time'][:10]})"
    )


def options_of(name: str, benchmark: Benchmark, question: str, arguments: Sequence[str]) -> Namespace:
    """Return the options of a command line. The short form has other defaults."""
    parser = ArgumentParser(prog=f"python -m tests.benchmarks {name}", description=question)
    only = "measure these parts only; none: only print the page again"
    parser.add_argument("--only", nargs="*", choices=list(benchmark.parts), metavar="PART", help=only)
    if benchmark.rounds:
        parser.add_argument("--rounds", type=int, default=benchmark.rounds, help="of all cases (%(default)s)")
    for option, how in benchmark.options.items():
        parser.add_argument(option, **how)
    parser.add_argument("--short", action="store_true", help="take some seconds: shows that it works, not what is true")
    parser.add_argument("--add", action="store_true", help="add to the records of earlier runs")
    parser.add_argument("--beside", default="", metavar="TEXT", help="say what else ran on the machine")
    parser.add_argument("--out", type=Path, default=ROOT / "bench", help="the folder of records and page (bench)")
    parser.add_argument("--publish", nargs="?", const=name, metavar="NAME", help="also write results/NAME.md")
    if parser.parse_args(arguments).short:
        parser.set_defaults(**({"rounds": 1} if benchmark.rounds else {}) | dict(benchmark.short))
    options = parser.parse_args(arguments)
    if options.short and options.publish:
        parser.error("--publish needs a run in full: the numbers of the short form are not true")
    options.only = list(benchmark.parts) if options.only is None else options.only
    return options


def read(file: Path) -> Records:
    """Return the lines of a file: one for each trial, and one for each run that ended."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def write(file: Path, lines: Records, how: str = "a") -> None:
    with file.open(how, encoding="utf-8") as opened:
        opened.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def begin(file: Path, command: str, parts: Sequence[str], add: bool) -> tuple[int, Counter[str]]:
    """Return the number of the run that goes on or begins, and its trials that are done. Drop the lines it replaces."""
    lines = read(file)
    if lines and "part" in lines[-1] and lines[-1]["command"] == command:
        run = lines[-1]["run"]
        return run, Counter(json.dumps(KEY(line)) for line in lines if line["run"] == run)
    write(file, [line for line in lines if add or line.get("part") not in parts], "w")
    return max((line["run"] for line in lines), default=0) + 1, Counter()


def trials_of(
    benchmark: Benchmark, part: str, options: Namespace, folder: Path, done: Counter[str]
) -> Iterator[tuple[int, list[Trial]]]:
    """Yield shuffled trials that are not done, a list for each round and condition, with its number of busy processes."""
    cases = benchmark.parts[part].cases_of
    for number in range(getattr(options, "rounds", 1) if benchmark.parts[part].cases else 1):
        for condition, busy in benchmark.conditions(options).items():
            left = []
            for place, case in enumerate(cases(options)):
                trial = Trial(part, condition, number, case, place, options, folder)
                key = json.dumps(KEY(vars(trial)))
                done[key] -= 1
                if done[key] < 0:
                    left.append(trial)
            random.Random(f"{part}, {number}, {condition}").shuffle(left)
            if left:
                yield busy, left


def results(part: Part, trials: Sequence[Trial]) -> Iterator[tuple[Trial, Any]]:
    """Yield each trial with its record, as it ends."""
    if not part.parallel:
        yield from ((trial, part.measured(trial)) for trial in trials)
        return
    cores = cycle(sorted(os.sched_getaffinity(0))) if part.parallel == "cores" else None

    def pin() -> None:
        if cores:
            os.sched_setaffinity(0, {next(cores)})  # of this thread, and of the processes that it starts

    jobs = getattr(trials[0].options, "jobs", os.cpu_count())
    processes = part.parallel == "processes"
    with ProcessPoolExecutor() if processes else ThreadPoolExecutor(jobs, initializer=pin) as pool:
        futures = {pool.submit(part.measured, trial): trial for trial in trials}
        try:
            yield from ((futures[each], each.result()) for each in as_completed(futures))
        finally:
            pool.shutdown(cancel_futures=True)


def measure(benchmark: Benchmark, options: Namespace, command: str, kept: Path) -> None:
    """Run all trials that are not done, and keep their records."""
    run, done = begin(kept, command, options.only, options.add)
    about = {"run": run, "command": command, "note": f" Beside it {options.beside}." if options.beside else ""}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Windows deletes no open file
        for part in options.only:
            about["machine"] = on_this_machine(benchmark.algebra)
            for busy, trials in trials_of(benchmark, part, options, Path(folder), done):
                with busy_cores(busy):
                    began = time.perf_counter()
                    for number, (trial, found) in enumerate(results(benchmark.parts[part], trials), 1):
                        which = {key: getattr(trial, key) for key in ("part", "condition", "round", "case", "place")}
                        write(kept, [about | which | {"found": found}])
                        of = f"{part} {number} of {len(trials)} of round {trial.round + 1}, {trial.condition}"
                        print(f"{of}: {trial.case}, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    write(kept, [{"run": run, "ended": True}])


def main(name: str, question: str, arguments: Sequence[str]) -> int:
    """Run a benchmark and print its page. Return 1 if a run in full missed a goal."""
    benchmark: Benchmark = import_module(f"tests.benchmarks.{name}").BENCHMARK
    options = options_of(name, benchmark, question, arguments)
    page = options.out / f"{name}{'-short' * options.short}.md"
    kept = page.with_suffix(".jsonl")
    options.out.mkdir(parents=True, exist_ok=True)
    if options.only:
        measure(benchmark, options, shlex.join(["python", "-m", "tests.benchmarks", name, *arguments]), kept)
    lines = [line for line in read(kept) if "part" in line]
    text = benchmark.page(lines)
    print(text)
    for file in [page, *([RESULTS / f"{options.publish}.md"] if options.publish else [])]:
        file.write_text(text, encoding="utf-8")
        if benchmark.figure:
            benchmark.figure(benchmark.found(lines), file.with_suffix(".svg"))
    return int(not options.short and not benchmark.met(lines))

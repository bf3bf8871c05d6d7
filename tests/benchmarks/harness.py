"""The harness of all benchmarks: the command line, trials in shuffled rounds, their records, and the page.

A benchmark is a module that declares `BENCHMARK`; the first line of its docstring is its question. Records are kept in
``bench/NAME.jsonl`` as trials end. A run that was interrupted goes on where it stopped, if its command is the same. Any
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
from pathlib import Path
from typing import Any

from tests.benchmarks.formats import bullets, goal_lines
from tests.benchmarks.processes import busy_cores
from tests.benchmarks.records import Run, begin, read
from tinybench.benchmark import system_info

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "tests" / "benchmarks" / "results"
NO_BLAS = "no BLAS kernel: nothing that is measured calls BLAS"
ONNX_RUNTIME = "no BLAS kernel: ONNX Runtime answers, with kernels of its own"
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
    options: Namespace = field(compare=False)
    folder: Path = field(compare=False)  # for files that trials share; it is deleted when the run ends

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

    @property
    def source(self) -> str:
        """A link to the file that describes the measurement."""
        file = f"{self.measured.__module__.rpartition('.')[2]}.py"
        return f"[{file}](../{file})"


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

    def found(self, runs: Sequence[Run]) -> dict[str, Any]:
        """Return the records of each part that has some."""
        found: dict[str, Any] = {}
        for name, part in self.parts.items():
            lines = [line for run in runs for line in sorted(run.records, key=in_order) if line["part"] == name]
            if lines and part.cases is None:
                found[name] = lines[-1]["found"]
            elif lines:
                found[name] = [
                    {key: line[key] for key in ("condition", "round")}
                    | {"case": tuple(line["case"]), **dict(zip(part.fields, line["case"], strict=False)), **record}
                    for line in lines
                    for record in (line["found"] if isinstance(line["found"], list) else [line["found"]])
                ]
        return found

    def page(self, runs: Sequence[Run]) -> str:
        """Return the page in Markdown."""
        pieces = [f"# {self.title}", f"{self.intro} {LOAD}".strip()]
        for name, found in self.found(runs).items():
            part = self.parts[name]
            commands = [f"`{run.command}`, {run.machines[name]}.{run.note}" for run in runs if name in run.machines]
            pieces += [f"## {part.heading}" if part.heading else ""]
            pieces += [
                commands[0] if len(commands) == 1 else bullets(commands),
                f"What is measured, and how, stands at the head of {part.source}.",
            ]
            pieces += [*part.page(found), goal_lines(part.goals(found))]
        return "\n\n".join(filter(None, pieces)) + "\n"

    def missed(self, runs: Sequence[Run]) -> list[str]:
        """Return the goals that were not met."""
        found = self.found(runs)
        return [goal for name in found for goal, met in self.parts[name].goals(found[name]).items() if not met]


def in_order(line: Record) -> tuple[int, int]:
    """Return a sort key: pages get the records by the order of the cases, not by that in which trials ran."""
    return line["place"], line["round"]


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


def parser_of(name: str, benchmark: Benchmark, question: str) -> ArgumentParser:
    """Return the parser of a benchmark's command line."""
    parser = ArgumentParser(prog=f"python -m tests.benchmarks {name}", description=question)
    if len(benchmark.parts) > 1:
        help_ = "measure these parts only; none: only print the page again"
        parser.add_argument("--only", nargs="*", choices=list(benchmark.parts), metavar="PART", help=help_)
    else:
        parser.add_argument("--page", dest="only", action="store_const", const=[], help="only print the page again")
    if benchmark.rounds:
        parser.add_argument("--rounds", type=int, default=benchmark.rounds, help="of all cases (%(default)s)")
    for option, how in benchmark.options.items():
        parser.add_argument(option, **how)
    parser.add_argument("--short", action="store_true", help="take some seconds: shows that it works, not what is true")
    parser.add_argument("--add", action="store_true", help="add to the records of earlier runs")
    parser.add_argument("--beside", default="", metavar="TEXT", help="say what else ran on the machine")
    parser.add_argument("--out", type=Path, default=ROOT / "bench", help="the folder of records and page (bench)")
    parser.add_argument("--publish", nargs="?", const=name, metavar="NAME", help="also write results/NAME.md")
    return parser


def options_of(parser: ArgumentParser, benchmark: Benchmark, arguments: Sequence[str]) -> Namespace:
    """Return the options of a command line. The short form has other defaults."""
    options = parser.parse_args(arguments)
    if options.short:
        parser.set_defaults(**({"rounds": 1} if benchmark.rounds else {}) | dict(benchmark.short))
        options = parser.parse_args(arguments)
    if options.short and options.publish:
        parser.error("--publish needs a run in full: the numbers of the short form are not true")
    options.only = list(benchmark.parts) if options.only is None else options.only
    return options


def command_of(name: str, arguments: Sequence[str]) -> str:
    """Return the command without the options that say where results go."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--publish", nargs="?")
    parser.add_argument("--out")
    _, measuring = parser.parse_known_args(arguments)
    return shlex.join(["python", "-m", "tests.benchmarks", name, *measuring])


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
                if done[key_of(trial)]:
                    done[key_of(trial)] -= 1
                else:
                    left.append(trial)
            random.Random(f"{part}, {number}, {condition}").shuffle(left)
            if left:
                yield busy, left


def key_of(trial: Trial) -> str:
    return json.dumps([trial.part, trial.condition, trial.round, trial.case])


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


def measure(benchmark: Benchmark, options: Namespace, run: Run, done: Counter[str]) -> None:
    """Run all trials that are not done, and keep their records in the run."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Windows deletes no open file
        for part in options.only:
            run.keep_machine(part, on_this_machine(benchmark.algebra))
            for busy, trials in trials_of(benchmark, part, options, Path(folder), done):
                with busy_cores(busy):
                    began = time.perf_counter()
                    for number, (trial, found) in enumerate(results(benchmark.parts[part], trials), 1):
                        about = {key: getattr(trial, key) for key in ("part", "condition", "round", "case", "place")}
                        run.keep({**about, "found": found})
                        of = f"{part} {number} of {len(trials)} of round {trial.round + 1}, {trial.condition}"
                        print(f"{of}: {trial.case}, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)


def main(name: str, question: str, arguments: Sequence[str]) -> int:
    """Run a benchmark and print its page. Return 1 if a run in full missed a goal."""
    benchmark: Benchmark = import_module(f"tests.benchmarks.{name}").BENCHMARK
    options = options_of(parser_of(name, benchmark, question), benchmark, arguments)
    page = options.out / f"{name}{'-short' * options.short}.md"
    kept = page.with_suffix(".jsonl")
    options.out.mkdir(parents=True, exist_ok=True)
    if options.only:
        note = f" Beside it {options.beside}." if options.beside else ""
        run = begin(kept, Run(command_of(name, arguments), note), options.only, options.add)
        keys = ("part", "condition", "round", "case")
        done = Counter(json.dumps([line[key] for key in keys]) for line in run.records)
        measure(benchmark, options, run, done)
        run.end()
    runs = read(kept)
    text = benchmark.page(runs)
    print(text)
    for file in [page, *([RESULTS / f"{options.publish}.md"] if options.publish else [])]:
        file.write_text(text, encoding="utf-8")
        if benchmark.figure:
            benchmark.figure(benchmark.found(runs), file.with_suffix(".svg"))
    return int(bool(benchmark.missed(runs)) and not options.short)

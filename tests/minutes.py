"""Where the seconds of grading and testing go: ``python -m tests.minutes`` (``--of`` chooses).

`submissions` times the reference of each module in its sandbox, `mutants` all wrong solutions in this
process, `notebooks` each module under nbval, and `tests` reads the slowest from what ``make test`` and ``make audit``
kept in `.venv`. "Waiting" is time in which neither the grader nor the sandbox computes: switches, and real clocks.
"""

from __future__ import annotations

import os

from tests.surroundings import tidy

tidy(os.environ)  # before anything imports numerical libraries

# ruff: noqa: E402
import argparse
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import nbformat
import psutil

from autograder.checks.check_helpers import SEED
from autograder.course.assignment import Assignment
from autograder.course.notebook import Cell, course_notebooks, read_notebook
from autograder.grading import submission_grader as grading
from autograder.grading.session import HiddenCheck, Session
from autograder.grading.submission_grader import Grader
from autograder.sandbox.rpc.endpoint import Endpoint
from autograder.sandbox.zygote_client import Zygote
from tests.mutants import mutants
from tests.mutants.playing import played, verdicts
from tests.notebooks.test_nbval import ALONE, nbval_command
from tests.took import took
from tinybench.support.basics.table import Table

ROOT = Path(__file__).resolve().parents[1]
TIMES = 5
SLOWEST = 50


class Stopwatch:
    """Wall time, processor time on both sides and messages, by what they went into."""

    def __init__(self, zygote: Zygote) -> None:
        self.inside, self.messages = psutil.Process(zygote.process.pid), 0
        self.wall, self.grader, self.sandbox, self.sent = (defaultdict[str, float](float) for _ in range(4))

    @contextmanager
    def into(self, *names: str) -> Iterator[None]:
        """Count what happens under these names."""
        inside, messages, grader, wall = self._inside(), self.messages, time.process_time(), time.perf_counter()
        try:
            yield
        finally:
            wall, grader = time.perf_counter() - wall, time.process_time() - grader
            inside, messages = self._inside() - inside, self.messages - messages
            for name in names:
                self.wall[name] += wall
                self.grader[name] += grader
                self.sandbox[name] += inside
                self.sent[name] += messages

    def _inside(self) -> float:
        """Return the processor seconds that the processes of the sandbox have used."""
        used = 0
        for process in self.inside.children(recursive=True):
            with suppress(OSError):  # it has just ended
                for thread in Path(f"/proc/{process.pid}/task").glob("*/schedstat"):
                    used += int(thread.read_text(encoding="utf-8").split()[0])
        return used / 1e9

    def waiting(self, name: str) -> float:
        """Return for how long neither side computed."""
        return max(0.0, self.wall[name] - self.grader[name] - self.sandbox[name])


def watched(watch: Stopwatch) -> type[Session]:
    """Return a session whose parts are timed."""

    class Watched(Session):
        def __init__(self, *args: Any) -> None:
            with watch.into("start"):
                super().__init__(*args)
                _ = self.guest.cell  # answered once the sandbox is up

        def run_cell(self, source: str) -> tuple[str, Any]:
            with watch.into("cells", f"cell {source.lstrip().splitlines()[0][:50] if source.strip() else ''}"):
                return super().run_cell(source)

        def run_visible(self, cell: Cell, checks: list[HiddenCheck]) -> tuple[str, Any]:
            with watch.into("visible checks", cell.id):
                return super().run_visible(cell, checks)

        def _judge(self, hidden: HiddenCheck) -> str:
            with watch.into("hidden checks", hidden.name):
                return super()._judge(hidden)

        def end(self) -> str:
            with watch.into("end"):
                return super().end()

    return Watched


def submission(path: Path) -> tuple[float, Stopwatch]:
    """Return the seconds from a module's first import to a ready zygote, and the watch of its fastest submission."""
    content, own = nbformat.writes(read_notebook(path)).encode(), (Session, Endpoint._send)
    started, fastest = time.perf_counter(), None
    with Grader(Assignment.read(path)) as grader:
        ready = time.perf_counter() - started
        for _ in range(TIMES):
            SEED.set(20)
            alone = grader.grade(content).seconds  # the watch itself takes time
            watch = Stopwatch(grader.zygote)

            def send(self: Endpoint, message: list[Any], watch: Stopwatch = watch) -> None:
                watch.messages += 2  # it is answered
                own[1](self, message)

            grading.Session, Endpoint._send = watched(watch), send  # type: ignore[attr-defined, method-assign]
            try:
                graded = grader.grade(content)
            finally:
                grading.Session, Endpoint._send = own  # type: ignore[attr-defined, method-assign]
            if wrong := {check: why for check, why in graded.verdicts.items() if why}:
                raise SystemExit(f"the reference of {path.stem} fails: {wrong}")
            watch.wall["all"] = alone
            fastest = watch if fastest is None or watch.wall["all"] < fastest.wall["all"] else fastest
    assert fastest is not None
    return ready, fastest


def submissions(paths: Sequence[Path], most: int) -> str:
    """Return a table of each module's reference in its sandbox, and one of the slowest parts."""
    rows, parts, named = [], [], ("start", "cells", "visible checks", "hidden checks", "end")
    for path in paths:
        ready, watch = submission(path)
        rest = watch.wall["all"] - sum(watch.wall[name] for name in named)
        rows.append(
            {
                "module": path.stem, "zygote": f"{ready:.1f}", "submission": f"{watch.wall['all']:.2f}",
                **{name: f"{watch.wall[name]:.3f}" for name in named}, "around it": f"{max(0.0, rest):.3f}",
                "messages": f"{watch.sent['visible checks'] + watch.sent['hidden checks']:.0f}",
            }
        )  # fmt: skip
        slow = [
            name for name in sorted(watch.wall, key=watch.wall.__getitem__, reverse=True) if name not in (*named, "all")
        ][:most]
        parts += [
            {
                "part": name if "." in name else f"{path.stem[:2]}: {name}", "s": f"{watch.wall[name]:.3f}",
                "grader": f"{watch.grader[name]:.3f}", "sandbox": f"{watch.sandbox[name]:.3f}",
                "waiting": f"{watch.waiting(name):.3f}", "messages": f"{watch.sent[name]:.0f}",
            }
            for name in slow
        ]  # fmt: skip
    told = f"Seconds of the reference in its sandbox, the fastest of {TIMES}; a zygote starts once in a worker:"
    return "\n\n".join([told, Table(rows).markdown(), f"The slowest {most} parts of each:", Table(parts).markdown()])


def wrong_solutions(paths: Sequence[Path]) -> str:
    """Return a table of the seconds that a wrong solution of each module takes in this process."""
    rows = []
    for path in paths:
        listed, parts = mutants(path.stem), defaultdict[str, float](float)
        os.chdir(path.parent)
        reference, seen = read_notebook(path), set[str]()
        for mutant in listed:
            started = time.perf_counter()
            check, notebook = played(reference, mutant, seen)
            parts["notebook"] += time.perf_counter() - started
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                verdicts(notebook, parts)
            parts[f"of {check}"] += time.perf_counter() - started
        slow = max((name for name in parts if name.startswith("of ")), key=parts.__getitem__, default="")
        rows.append(
            {
                "module": path.stem, "mutants": str(len(listed)),
                **{name: f"{parts[name]:.1f}" for name in ("notebook", "cells", "visible checks", "hidden checks")},
                "most for": slow.removeprefix("of "), "of which": f"{parts[slow]:.1f}",
            }
        )  # fmt: skip
        os.chdir(ROOT)
    return f"Seconds of all wrong solutions of a module, in one process:\n\n{Table(rows).markdown()}"


def notebooks(paths: Sequence[Path]) -> str:
    """Return a table of the seconds that each module takes under nbval."""
    rows = []
    for path in paths:
        started = time.perf_counter()
        run = subprocess.run([*nbval_command(path), "--durations=0", "--durations-min=0"], cwd=ROOT, env={**os.environ, **ALONE}, capture_output=True, text=True)  # fmt: skip
        wall = time.perf_counter() - started
        found = re.findall(r"([\d.]+)s (setup|call|teardown) +(.+)", run.stdout)
        cells = {name: float(seconds) for seconds, kind, name in found if kind == "call"}
        slow = max(cells, key=cells.__getitem__, default="")
        around = wall - sum(float(seconds) for seconds, _, _ in found)
        rows.append(
            {
                "module": path.stem, "all": f"{wall:.1f}", "interpreter, collection": f"{around:.1f}",
                "kernel": f"{sum(float(s) for s, kind, _ in found if kind != 'call'):.1f}",
                "cells": f"{sum(cells.values()):.1f}", "slowest": slow.rpartition("::")[2], "s": f"{cells.get(slow, 0.0):.1f}",
            }
        )  # fmt: skip
    return f"Seconds of each module under nbval:\n\n{Table(rows).markdown()}"


def tests() -> str:
    """Return the slowest tests of the last runs, and the folders and files they lie in."""
    known = took()
    if not known:
        return "Slowest tests: none are known; run `make test` and `make audit` first."
    columns = [f"{len(known)} tests, {sum(wall for wall, _ in known.values()):,.0f} s of their workers."]
    for what, group, most in (
        ("test", lambda test: test, SLOWEST),
        ("file", lambda test: test.partition("::")[0], 40),
        ("folder", lambda test: str(Path(test.partition("::")[0]).parent), 40),
    ):
        walls, used = defaultdict[str, float](float), defaultdict[str, float](float)
        for test, (wall, processor) in known.items():
            walls[group(test)] += wall
            used[group(test)] += processor
        slowest = sorted(walls, key=walls.__getitem__, reverse=True)[:most]
        rows = [{what: name, "s": f"{walls[name]:.1f}", "processor, s": f"{used[name]:.1f}"} for name in slowest]
        columns.append(Table(rows).markdown())
    return "\n\n".join(columns)


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "modules", nargs="*", metavar="NN_name", help="only modules whose names begin with one of these"
    )
    parser.add_argument("--of", nargs="+", choices=("submissions", "mutants", "notebooks", "tests"), help="only these")
    parser.add_argument("--parts", type=int, default=3, help="slowest parts of each submission to name (3)")
    options = parser.parse_args()
    paths = [path for path in course_notebooks(ROOT) if path.stem.startswith(tuple(options.modules) or "")]
    tables: dict[str, Callable[[], str]] = {
        "submissions": lambda: submissions(paths, options.parts), "mutants": lambda: wrong_solutions(paths),
        "notebooks": lambda: notebooks(paths), "tests": tests,
    }  # fmt: skip
    for name in options.of or tables:
        print(tables[name](), end="\n\n", flush=True)


if __name__ == "__main__":
    main()

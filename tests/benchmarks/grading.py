"""How many submissions a minute does `autograder grade` grade, beside stock nbgrader?

A class on each module, every second one with one wrong solution, each with a note of its own. The same
submissions go in turn to stock ``nbgrader autograde`` (one process for all, every cell run in one kernel a submission,
hidden checks beside the student's code) and to `autograder grade` (sandbox, checks judged from outside). Start-up is taken
off on both sides, by a run on as many students as there are workers. A stock run of a whole class takes an hour: it gets
the first few. Then the same class on a local Dask cluster of one and of two workers that have graded it once before, beside
what two processes of plain Python gain on this machine, and a simulation on the measured times: submissions to free
workers in order, each verdict then entered by the one writer of the gradebook.
"""

from __future__ import annotations

import heapq
import random
import shutil
import time
import timeit
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import nbformat

from autograder.course.nbgrader_settings import MODULES
from autograder.course.notebook import course_notebooks, read_notebook
from autograder.course.release import release_all
from autograder.demo import solve
from autograder.grading.grade import Outcome, grade_assignment
from tests.attacks.notebooks.stock import nbgrader
from tests.benchmarks.formats import lines
from tests.benchmarks.harness import ROOT, Benchmark, Part, Record, Records, Trial
from tests.benchmarks.scaling import counting
from tests.mutants import mutants
from tinybench.tools.scaling.measure import measure_scaling
from tinybench.tools.scaling.workers import processes

WORKERS = (1, 2, 8, 64)
OURS = 2  # local workers of `autograder grade`
FASTER, MOST, TWICE = 30, 0.5, 1.8
STOCK = """
from autograder.course.nbgrader_settings import configure
from pathlib import Path
c = get_config()
configure(c, Path(__file__).parent)
del c.Autograde.autograde_preprocessors
c.Execute.timeout = 300
"""


def make_course(root: Path, module: str, students: int) -> None:
    """Make a course of one released module, and a class that handed it in."""
    shutil.copytree(ROOT / MODULES / module, root / MODULES / module)
    shutil.copytree(ROOT / "tinybench", root / "tinybench", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "nbgrader_config.py").write_text(STOCK, encoding="utf-8")
    release_all(root, [module], verify=False)
    released = read_notebook(root / "course" / "release" / module / f"{module}.ipynb")
    source = read_notebook(root / MODULES / module / f"{module}.ipynb")
    rng = random.Random(0)
    for number in range(students):
        wrong = nbformat.from_dict(source)
        if number % 2:
            rng.choice(mutants(module)).apply(wrong)
        notebook = solve(released, wrong)
        notebook.cells.append(nbformat.v4.new_markdown_cell(f"Handed in as number {number}.", id="number"))
        folder = root / "course" / "submitted" / f"student_{number:02}" / module
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{module}.ipynb")


@contextmanager
def handed_in(root: Path, students: Sequence[str]) -> Iterator[None]:
    """Hide what the other students handed in."""
    submitted, hidden = root / "course" / "submitted", root / "not_yet"
    submitted.rename(hidden)
    for student in students:
        shutil.copytree(hidden / student, submitted / student)
    for verdicts in ("verdicts", "autograded"):
        shutil.rmtree(root / "course" / verdicts, ignore_errors=True)
    yield
    shutil.rmtree(submitted)
    hidden.rename(submitted)


def stock_seconds(root: Path, module: str, students: Sequence[str]) -> float:
    """Return the wall time of `nbgrader autograde` on these students."""
    book = root / "course" / "gradebook.db"
    shutil.copy(book, root / "before.db")
    with handed_in(root, students):
        started = time.perf_counter()
        done = nbgrader(root, "autograde", module, "--force", check=False)
        seconds = time.perf_counter() - started
    graded = len(list((root / "course" / "autograded").glob("*/*/*.ipynb")))
    shutil.move(root / "before.db", book)
    if graded != len(students):
        raise RuntimeError(f"nbgrader graded {graded} of {len(students)}:\n{done.stderr[-2000:]}")
    return seconds


def our_seconds(root: Path, module: str, students: Sequence[str], **options: Any) -> tuple[float, list[Outcome]]:
    """Return the wall time of `autograder grade` on these students, and the outcomes."""
    with handed_in(root, students):
        started = time.perf_counter()
        outcomes = grade_assignment(root, module, progress=False, **options)
        seconds = time.perf_counter() - started
    failed = [outcome for outcome in outcomes if outcome.note or outcome.evidence]
    if failed:
        raise RuntimeError(f"an honest submission was not graded: {failed[0]}")
    return seconds, outcomes


def dask_seconds(root: Path, module: str, students: Sequence[str], workers: int) -> float:
    """Return the wall time on a Dask cluster of this machine, whose workers have graded the class once before."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        return [our_seconds(root, module, students, scheduler=cluster.scheduler_address)[0] for _ in "12"][-1]


def ceiling() -> float:
    """Return how many times as fast as one process two processes of plain Python are, as cores may share a core."""
    found = measure_scaling({"Python": processes(counting, 2000)}, workers=[1, 2], rounds=8, seed=0)
    return float(found.rows()[-1]["speedup"])


def simulate(seconds: Sequence[float], write: float, submissions: int, workers: int, seed: int = 0) -> float:
    """Return the time of a class on so many workers: each takes the next submission, one writer enters the verdicts."""
    rng = random.Random(seed)
    free, done = [0.0] * workers, []
    for _ in range(submissions):
        ready = heapq.heappop(free) + rng.choice(seconds)
        heapq.heappush(free, ready)
        done.append(ready)
    writer = 0.0
    for ready in sorted(done):
        writer = max(writer, ready) + write
    return writer


def measured(trial: Trial) -> Record:
    """Measure one module, stock and ours in turn."""
    [module], students, stock = trial.case, trial.options.students, trial.options.stock
    root = trial.folder / module
    make_course(root, module, students)
    names = [f"student_{number:02}" for number in range(students)]
    alone = stock_seconds(root, module, names[:1])
    (few, _), (ours, _) = (our_seconds(root, module, some, workers=OURS) for some in (names[:OURS], names))
    theirs = stock_seconds(root, module, names[: stock + 1]) - alone
    again, outcomes = our_seconds(root, module, names, workers=OURS)
    kept = timeit.timeit(lambda: grade_assignment(root, module, progress=False), number=1)
    for mark in (root / "course" / "verdicts" / module).glob("*.entered"):
        mark.unlink()
    entered = timeit.timeit(lambda: grade_assignment(root, module, progress=False), number=1)
    return {
        "module": module,
        "students": students,
        "stock_students": stock,
        "stock": theirs / stock,
        "ours": ((ours + again) / 2 - few) / (students - OURS),
        "stock first": alone,
        "our first": few,
        "seconds": [outcome.seconds for outcome in outcomes],
        "write": max(0.0, (entered - kept) / students),
        **{f"dask {n}": dask_seconds(root, module, names, n) for n in (1, 2)},
        "ceiling": ceiling(),
    }


def minutes(row: Record, crowd: int) -> Record:
    """Return how many minutes a crowd takes, by workers."""
    return {f"on {n}": simulate(row["seconds"], row["write"], crowd, n) / 60 for n in WORKERS}


def speeds_of(found: Records) -> Records:
    """Return the rows with what follows from their times."""
    return [
        row
        | {"ratio": row["stock"] / row["ours"], "gain": row["dask 1"] / row["dask 2"], "each": median(row["seconds"])}
        for row in found
    ]


def goals(found: Records) -> dict[str, bool]:
    """Return whether each module is fast enough; what is not fast enough is named."""
    missed = {
        f"grading is at least {FASTER} times as fast as stock": lambda row: row["ratio"] < FASTER,
        f"a submission takes at most {MOST:g} s in its worker (median)": lambda row: row["each"] > MOST,
        "500 submissions take at most 3 minutes on two workers": lambda row: minutes(row, 500)["on 2"] > 3,
        f"two workers are at least {TWICE:g} times as fast as one": lambda row: row["gain"] < TWICE,
    }
    named = {goal: [row["module"] for row in speeds_of(found) if miss(row)] for goal, miss in missed.items()}
    return {f"{goal}{'; not in ' * bool(where)}{', '.join(where)}": not where for goal, where in named.items()}


def page(found: Records) -> list[str]:
    speeds = speeds_of(found)
    crowds = [{**row, "crowd": crowd, **minutes(row, crowd)} for row in found for crowd in (500, 10_000)]
    return [
        f"{found[0]['students']} submissions a module on {OURS} local workers; stock nbgrader on "
        f"{found[0]['stock_students']} of them, in its one process. Seconds a submission are without start-up on both "
        f"sides; the first verdict, of stock on one and of ours on {OURS} submissions, shows it.",
        lines(
            speeds,
            "module | stock, s | ours, s | ratio | s in its worker | first, stock | first, ours | entering, ms",
            "{module} | {stock:.1f} | {ours:.2f} | {ratio:.0f}× | {each:.2f} | {stock first:.1f} | {our first:.1f} | "
            "{write:1e3×.0f}",
        ),
        "Seconds for the class on a local Dask cluster, by workers, which had graded the class once before. Beside it what "
        "two processes of plain Python gain over one:",
        lines(
            speeds,
            "module | 1 | 2 | gain | plain Python",
            "{module} | {dask 1:.1f} | {dask 2:.1f} | {gain:.2f}× | {ceiling:.2f}×",
        ),
        "Simulated minutes on the measured times, by workers (one writer of the gradebook):",
        lines(
            crowds,
            f"module | submissions | {' | '.join(map(str, WORKERS))}",
            f"{{module}} | {{crowd:,}} | {' | '.join(f'{{on {n}:.1f}}' for n in WORKERS)}",
        ),
    ]


BENCHMARK = Benchmark(
    "Grading speed",
    {"modules": Part("", measured, page, goals, lambda options: [(module,) for module in options.modules])},
    options={
        "modules": {
            "nargs": "*",
            "default": [path.stem for path in course_notebooks(ROOT)],
            "help": "which ones (all)",
        },
        "--students": {"type": int, "default": 40, "help": "of a class (%(default)s)"},
        "--stock": {"type": int, "default": 1, "help": "students of whom stock nbgrader gets the work (%(default)s)"},
    },
    short={"modules": ["04_accuracy"], "students": 4, "stock": 1},
)

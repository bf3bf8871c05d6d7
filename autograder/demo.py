"""The `autograder demo` command: a small class from release to feedback, a benchmark, and a leaderboard (Olympics)."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import click
import nbformat
from nbformat import NotebookNode

from autograder.course.nbgrader_settings import MODULES, configure, with_root
from autograder.course.notebook import cells_of, read_notebook, without_solution_markers
from autograder.sandbox.bubblewrap import unavailable
from tinybench.support.basics.numbers import number_of

ASSIGNMENT = "01_result"

# Mistakes that students make, and an attack. In the named cell, the first text is replaced by the second.
WRONG = {
    "t_interval": ("float(stdtrit(n - 1, 0.5 + confidence / 2))", "1.96"),
    "mean_and_std": ("/ (n - 1))", "/ n)"),
    "tukey_outliers": ("1.5 *", "3 *"),
    "bootstrap_interval": ("rng.integers(len(data), size=len(data))", "rng.permutation(len(data))"),
}
CRASH = {"t_interval": ("def t_interval", "import os\n\nos._exit(1)\n\n\ndef t_interval")}


def solve(
    released: NotebookNode,
    source: NotebookNode,
    wanted: Callable[[str], bool] = lambda cell: True,
    changes: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> NotebookNode:
    """Return a released notebook in which the cells that are `wanted` contain their reference solutions.

    `changes` maps cells to pairs of texts. The second text replaces the first in the cell's solution.
    """
    solutions = {cell.id: without_solution_markers(cell.source) for cell in cells_of(source)}
    solved: NotebookNode = nbformat.from_dict(released)
    for cell in cells_of(solved):
        if cell.is_written and wanted(cell.id):
            cell.node.source = solutions[cell.id].replace(*changes.get(cell.id, ("", "")))
    return solved


def the_class(released: NotebookNode, source: NotebookNode) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the submitted notebook, as bytes, of each student in the demo."""
    order = [cell.id for cell in cells_of(source)]
    notebooks = {
        "ada_reference": solve(released, source),
        "ben_half_done": solve(released, source, set(order[: len(order) // 2]).__contains__),
        "cleo_untouched": released,
        "dan_four_errors": solve(released, source, changes=WRONG),
        "eva_crashes": solve(released, source, changes=CRASH),
    }
    for student, notebook in notebooks.items():
        yield student, nbformat.writes(notebook).encode()
    yield "finn_unreadable", b'{"cells": [ this was cut off'


@click.command("demo")
@click.option("--out", default="demo", metavar="FOLDER", help="Write the demo into this folder.", show_default=True)
@with_root
def show_course(root: Path, out: str) -> int:
    """Grade a small class and benchmark a model, without a browser.

    The demo takes about two minutes and writes all its files into one folder.
    """
    return run_demo(root, Path(out).resolve())


def run_demo(root: Path, out: Path) -> int:
    """Take a class of six students from release to feedback, benchmark a model, and enter models in the Olympics.

    The demo creates a separate course in `out`, and replaces an earlier demo there.
    """
    if out.exists() and not (out / "course").is_dir() and any(out.iterdir()):
        raise ValueError(f"{out} exists and is no earlier demo; name another folder with --out")
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(root / MODULES / ASSIGNMENT, out / MODULES / ASSIGNMENT)
    shutil.copytree(root / "tinybench", out / "tinybench", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "nbgrader_config.py", out)
    without = unavailable()
    grade_a_class(out, confined=not without)
    benchmark_a_model(out)
    if without:
        print(f"\nleft out: grading, feedback and the Olympics, which run strangers' code in a sandbox: {without}")
    else:
        hold_olympics(out)
    return 0


@contextmanager
def _step(text: str) -> Iterator[None]:
    print(f"\n── {text}", flush=True)
    started = time.monotonic()
    yield
    print(f"   {time.monotonic() - started:.1f} s", flush=True)


def grade_a_class(root: Path, *, confined: bool = True) -> None:
    """Release, submit and collect the demo's assignment at `root`. If `confined`, also grade and write feedback."""
    from nbgrader.apps.api import NbGraderAPI
    from traitlets.config import Config

    from autograder.course.release import release_all
    from autograder.course_command import fill_exchange
    from autograder.grading.grade import feedback, grade_assignment, print_grades

    course = root / "course"
    with _step("Release: student notebooks without solutions, proven to score 0 untouched"):
        release_all(root, [ASSIGNMENT])
        fill_exchange(root, [ASSIGNMENT])
    released = read_notebook(course / "release" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb")
    source = read_notebook(root / MODULES / ASSIGNMENT / f"{ASSIGNMENT}.ipynb")
    with _step("Submit: six students, through nbgrader's exchange"):
        for student, content in the_class(released, source):
            folder = course / "students" / student / ASSIGNMENT
            folder.mkdir(parents=True)
            (folder / f"{ASSIGNMENT}.ipynb").write_bytes(content)
            submit(root, student, folder.parent)
            print(f"   {student}")
    with _step("Collect"):
        config = configure(Config(), root)
        config.ExchangeCollect.check_owner = False  # in the demo, one system user submits for all students
        result = NbGraderAPI(config=config).collect(ASSIGNMENT)
        if not result["success"]:
            raise RuntimeError(result["log"])
    if not confined:
        return
    with _step("Grade: each submission in a sandbox, judged from outside"):
        outcomes = grade_assignment(root, ASSIGNMENT)
    with _step("Feedback"):
        pages = feedback(root, ASSIGNMENT)
        print(f"   {number_of(len(pages), 'page')}, such as {pages[0].relative_to(root.parent)}")
    print("\nThe gradebook (2 of the points are for a written answer, which a person grades):\n")
    print_grades(outcomes)


def submit(root: Path, student: str, folder: Path) -> None:
    """Hand in the assignment in a student's folder, as `nbgrader submit` does."""
    from nbgrader.auth import Authenticator
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.exchange.default.submit import ExchangeSubmit
    from traitlets.config import Config

    config = configure(Config(), root)
    config.CourseDirectory.assignment_id = ASSIGNMENT
    config.CourseDirectory.student_id = student
    config.Exchange.assignment_dir = str(folder)
    handing_in = ExchangeSubmit(
        coursedir=CourseDirectory(config=config), authenticator=Authenticator(config=config), config=config
    )
    handing_in.log.setLevel("ERROR")
    handing_in.start()


def benchmark_a_model(out: Path) -> None:
    """Measure the same digits classifier in scikit-learn and in ONNX Runtime, and plot the result."""
    import numpy as np
    from skl2onnx import to_onnx
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    from tinybench.latency import measure_latencies
    from tinybench.onnx import session_options
    from tinybench.shell.timed_comparison import comparison_table
    from tinybench.support.engines.sessions import new_session
    from tinybench.support.reports.study_figures import plot_metric

    with _step("tinybench at work: one digits network in scikit-learn and in ONNX Runtime"):
        digits = load_digits()
        images = (digits.data / 16).astype(np.float32)
        model = MLPClassifier((64,), max_iter=400, random_state=0).fit(images[:1200], digits.target[:1200])
        content = to_onnx(model, images[:1], options={"zipmap": False}).SerializeToString()
        models = {"scikit-learn": model, "ONNX Runtime": new_session(content, session_options())}
        results = measure_latencies(models, images[:1], measurement_runs=300, seed=0)
    print(f"\n{comparison_table(results)}")
    figure = out / "latency.png"
    plot_metric("latency", results).savefig(figure, dpi=120)
    print(f"\n  every measurement and both intervals: {figure}")


def hold_olympics(out: Path) -> None:
    """Start a separate leaderboard, enter four models in one event, and print the standings."""
    from autograder.leaderboard import client, digits
    from autograder.leaderboard.formatting import interval_of, percent, times
    from autograder.leaderboard.settings import Baseline, load
    from autograder.leaderboard.store.store import Store
    from autograder.leaderboard.web.local_server import database_of, running
    from tinybench.quantize import quantize_dynamic_int8

    rules = out / "events.toml"
    rules.write_text(brief_events(), encoding="utf-8")
    olympics = load(rules)
    store = Store(database_of(out))
    with _step("Olympics: a baseline, and models that should be faster"):
        baseline = store.setting("baseline", lambda: digits.train_baseline(olympics.baseline))
        narrow = digits.train_baseline(Baseline((32,), 12))
        float32 = out / "baseline.onnx"
        float32.write_bytes(baseline)
        entries = {
            ("ada", "the baseline itself"): baseline,
            ("ben", "in 8 bits"): quantize_dynamic_int8(float32).read_bytes(),
            ("cleo", "32 hidden units"): narrow,
            ("finn", "half a file"): narrow[: len(narrow) // 2],
        }
    with _step("Enter: each is measured in turns with the baseline, in the sandbox"), running(out, rules) as server:
        for (student, name), data in entries.items():
            token = store.add_token(student, days=1)
            entry = client.follow(server, client.enter(server, token, "latency", name, data), lambda step: None)
            unplaced = f"refused: {entry['reason']}" if entry["state"] == "refused" else entry["outcome"]
            verdict = "measured" if entry["place"] else unplaced
            print(f"   {student:<5} {name:<20} {verdict}", flush=True)
        places = client.standings(server, "latency")
    store.close()
    print(f"\nThe standings of the {olympics.event('latency').title}, latency as a multiple of the baseline's:\n")
    for place in places:
        score, accuracy = place["score"], place["measured"]["accuracy"]["value"]
        print(
            f"  {place['place']}  {place['student']:<5} {place['name']:<20} {times(score['value']):>7} "
            f"(95 % CI {interval_of(score, times)}), accuracy {percent(accuracy)}"
        )
    shown = f"autograder --root {out.name} leaderboard serve --events {out.name}/{rules.name}"
    print(f"\n  to look at it in a browser: {shown}")


def brief_events() -> str:
    """Return the text of events.toml with a small baseline, few rounds, lenient limits and a far-off deadline."""
    import autograder.leaderboard

    text = Path(str(autograder.leaderboard.__file__)).with_name("events.toml").read_text(encoding="utf-8")
    changes = {
        "deadline": "2999-01-01T00:00:00Z", "public_rows": 1080, "private_rows": 1080,
        "hidden": [256, 128], "iterations": 8, "processes": 3, "rounds": 10, "widest": 10, "accuracy_min": 0.8,
    }  # fmt: skip
    for key, value in changes.items():
        text, found = re.subn(rf"(?m)^{key} = [^#\n]*", f"{key} = {value} ", text)
        if not found:
            raise ValueError(f"events.toml has no line that begins with {key!r}; the demo changes it")
    return text

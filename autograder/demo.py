"""`autograder demo`: a small class from release to feedback, a benchmark, and the Olympics, in a folder of its own."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.course.config import MODULES, configure
from autograder.course.notebook import is_solution, label, read_notebook, without_solution_markers
from autograder.sandbox.bubblewrap import unavailable

ASSIGNMENT = "01_result"

WRONG = {  # what students do get wrong: cell, right, wrong
    "t_interval": ("float(stdtrit(n - 1, 0.5 + confidence / 2))", "1.96"),
    "mean_and_std": ("/ (n - 1))", "/ n)"),
    "tukey_outliers": ("1.5 *", "3 *"),
    "bootstrap_interval": ("rng.integers(len(data), size=len(data))", "rng.permutation(len(data))"),
}


def solve(
    released: NotebookNode, source: NotebookNode, wanted: Callable[[str], bool] = lambda cell: True
) -> NotebookNode:
    """Return a released notebook with the reference solutions of the wanted cells written in."""
    solutions = {label(cell, i): cell.source for i, cell in enumerate(source.cells) if cell.metadata.get("nbgrader")}
    solved: NotebookNode = nbformat.from_dict(released)
    for index, cell in enumerate(solved.cells):
        writable = is_solution(cell) or cell.metadata.get("nbgrader", {}).get("solution")
        if writable and wanted(label(cell, index)):
            cell.source = without_solution_markers(solutions[label(cell, index)])
    return solved


def the_class(released: NotebookNode, source: NotebookNode) -> Iterator[tuple[str, bytes]]:
    """Yield each student of the demo with the bytes of a real submission."""
    order = [label(cell, index) for index, cell in enumerate(source.cells)]
    half = set(order[: len(order) // 2])
    wrong, crashing = solve(released, source), solve(released, source)
    for index, cell in enumerate(wrong.cells):
        if label(cell, index) in WRONG:
            cell.source = cell.source.replace(*WRONG[label(cell, index)])
    for index, cell in enumerate(crashing.cells):
        if label(cell, index) == "t_interval":
            cell.source += "\n\nimport os\nos._exit(1)"
    notebooks = {
        "ada_reference": solve(released, source),
        "ben_half_done": solve(released, source, half.__contains__),
        "cleo_untouched": released,
        "dan_four_errors": wrong,
        "eva_crashes": crashing,
    }
    for student, notebook in notebooks.items():
        yield student, nbformat.writes(notebook).encode()
    yield "finn_unreadable", b'{"cells": [ this was cut off'


def demo(root: Path, out: Path) -> int:
    """Run the whole way of a student's work for a class of six, benchmark a model, and enter models to the Olympics.

    Parameters
    ----------
    root
        The course.
    out
        Folder of the demo's own course; an earlier demo there is replaced.

    Returns
    -------
    int
        Exit code.

    Raises
    ------
    ValueError
        If `out` exists and is not an earlier demo.
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
    """Release, submit and collect in the course at `root`; where code can be confined, grade and write feedback."""
    from nbgrader.apps.api import NbGraderAPI
    from traitlets.config import Config

    from autograder.course.release import release_all
    from autograder.grading.grade import feedback, grade, print_grades
    from autograder.serve import publish

    course = root / "course"
    with _step("Release: student notebooks without solutions, proven to score 0 untouched"):
        release_all(root, [ASSIGNMENT])
        publish(root, [ASSIGNMENT])
    released = read_notebook(course / "release" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb")
    source = read_notebook(root / MODULES / ASSIGNMENT / f"{ASSIGNMENT}.ipynb")
    with _step("Submit: six students, through nbgrader's exchange"):
        for student, content in the_class(released, source):
            folder = course / "desks" / student / ASSIGNMENT
            folder.mkdir(parents=True)
            (folder / f"{ASSIGNMENT}.ipynb").write_bytes(content)
            submit(root, student, folder.parent)
            print(f"   {student}")
    with _step("Collect"):
        config = configure(Config(), root)
        config.ExchangeCollect.check_owner = False  # here one user of the system plays all students
        result = NbGraderAPI(config=config).collect(ASSIGNMENT)
        if not result["success"]:
            raise RuntimeError(result["log"])
    if not confined:
        return
    with _step("Grade: each submission in a sandbox, judged from outside"):
        outcomes = grade(root, ASSIGNMENT)
    with _step("Feedback"):
        pages = feedback(root, ASSIGNMENT)
        print(f"   {len(pages)} pages, such as {pages[0].relative_to(root.parent)}")
    print("\nThe gradebook (2 of the points are for a written answer, which a person grades):\n")
    print_grades(outcomes)


def submit(root: Path, student: str, desk: Path) -> None:
    """Hand the assignment on a student's desk in, as `nbgrader submit` does."""
    from nbgrader.auth import Authenticator
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.exchange.default.submit import ExchangeSubmit
    from traitlets.config import Config

    config = configure(Config(), root)
    config.CourseDirectory.assignment_id = ASSIGNMENT
    config.CourseDirectory.student_id = student
    config.Exchange.assignment_dir = str(desk)
    config.Exchange.cache = str(root / "course" / "cache")
    handing_in = ExchangeSubmit(
        coursedir=CourseDirectory(config=config), authenticator=Authenticator(config=config), config=config
    )
    handing_in.log.setLevel("ERROR")
    handing_in.start()


def benchmark_a_model(out: Path) -> None:
    """Measure the same digits classifier in scikit-learn and in ONNX Runtime, and draw the result."""
    import matplotlib
    import numpy as np
    from matplotlib.figure import Figure
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    from tinybench.course import OKABE_ITO
    from tinybench.latency import latency_summary, measure_latencies
    from tinybench.result import scale_unit

    matplotlib.use("agg")
    with _step("tinybench at work: one digits network in scikit-learn and in ONNX Runtime"):
        digits = load_digits()
        images = (digits.data / 16).astype(np.float32)
        model = MLPClassifier((64,), max_iter=400, random_state=0).fit(images[:1200], digits.target[:1200])
        session = as_onnx_session(model, images[:1])
        results = measure_latencies(
            {"scikit-learn": model, "ONNX Runtime": session}, images[:1], measurement_runs=300, seed=0
        )
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    _, unit = scale_unit(min(result.median for result in results.values()), "s")
    factor = scale_unit(min(result.median for result in results.values()), "s")[0]
    print("\nLatency of one image:\n")
    for row, (name, result) in enumerate(results.items()):
        low, high = result.median_ci()
        tail = latency_summary(result)
        print(
            f"  {name:<13} median {result.median / factor:7.1f} {unit} "
            f"(95 % CI {low / factor:.1f}–{high / factor:.1f}), p95 {tail['p95'] / factor:.1f} {unit}"
        )
        values = np.array(result.values) / factor
        axes.plot(
            values,
            np.full(len(values), row) + np.linspace(-0.2, 0.2, len(values)),
            ".",
            alpha=0.3,
            color=OKABE_ITO[row],
        )
        median = result.median / factor
        error = [[median - low / factor], [high / factor - median]]
        axes.errorbar(
            median,
            row,
            xerr=error,
            fmt="Ds"[row],
            color="black",
            capsize=6,
            label="median, 95 % interval" if row == 0 else None,
        )
    axes.set(
        yticks=range(len(results)),
        yticklabels=list(results),
        xscale="log",
        xlabel=f"latency ({unit})",
        ylim=(-0.6, len(results) - 0.4),
    )
    axes.legend()
    picture = out / "latency.png"
    figure.savefig(picture, dpi=120)
    print(f"\n  every measurement and both intervals: {picture}")


def as_onnx_session(model: object, sample: object) -> object:
    """Return an ONNX Runtime session of a scikit-learn classifier, on one thread."""
    import onnxruntime
    from skl2onnx import to_onnx

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    content = to_onnx(model, sample, options={"zipmap": False}).SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def hold_olympics(out: Path) -> None:
    """Start a leaderboard of its own, enter four models to one event, and print its standings."""
    from autograder.leaderboard import client, digits
    from autograder.leaderboard.formatting import interval_of, percent, times
    from autograder.leaderboard.settings import Baseline, load
    from autograder.leaderboard.store.store import Store
    from autograder.leaderboard.web.local_server import database, running

    rules = out / "events.toml"
    rules.write_text(with_little_effort(), encoding="utf-8")
    olympics = load(rules)
    store = Store(database(out))
    with _step("Olympics: a baseline to measure beside, and models that are to be faster"):
        baseline = store.setting("baseline", lambda: digits.train_baseline(olympics.baseline))
        narrow = digits.train_baseline(Baseline((32,), 12))
        entries = {
            ("ada", "the baseline itself"): baseline,
            ("ben", "in 8 bits"): as_int8(baseline, out),
            ("cleo", "32 hidden units"): narrow,
            ("finn", "half a file"): narrow[: len(narrow) // 2],
        }
    with _step("Enter: each is measured beside the baseline, in the sandbox"), running(out, rules) as server:
        for (student, name), data in entries.items():
            token = store.add_token(student, days=1)
            entry = client.follow(server, client.enter(server, token, "latency", name, data), lambda step: None)
            verdict = f"refused: {entry['reason']}" if entry["state"] == "refused" else "measured"
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


def with_little_effort() -> str:
    """Return the file of the events, changed to a small baseline, brief measuring, low bars, no deadline."""
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


def as_int8(content: bytes, folder: Path) -> bytes:
    """Return a network with integer products, by way of a file in a folder."""
    from tinybench.quantize import quantize_dynamic_int8

    path = folder / "baseline.onnx"
    path.write_bytes(content)
    return quantize_dynamic_int8(path).read_bytes()

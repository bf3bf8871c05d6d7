"""Honest submissions get the scores that stock nbgrader gives them: ``python -m tests.grading.honest --number 200``."""

from __future__ import annotations

import argparse
import copy
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.utils import determine_grade
from traitlets.config import Config

from autograder import time_limits
from autograder.course.assignment import Assignment
from autograder.course.notebook import cells_of, course_notebooks, read_notebook
from autograder.grading.submission_grader import Grader
from tests.attacks.notebooks import ROOT
from tests.attacks.notebooks.stock import nbgrader, stock_course
from tests.attacks.page import write_part
from tests.grading.students import Submission, generate
from tests.mutants.seeds import SEED

MODULES = ("01_result", "03_latency", "04_accuracy", "05_memory", "11_onnx")


@dataclass
class Compared:
    """One submission by both: cells that differ, and those that differ by stock's rule on stderr alone."""

    submission: Submission
    stock: dict[str, float | None]
    ours: dict[str, float | None]
    by_stderr: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)

    @property
    def different(self) -> dict[str, tuple[float | None, float | None]]:
        """Cells whose scores are not equal: stock's and ours."""
        both = {name: (self.stock[name], self.ours.get(name)) for name in self.stock}
        return {name: pair for name, pair in both.items() if pair[0] != pair[1] and name not in self.by_stderr}


def compare(submission: Submission, path: Path, grader: Grader) -> Compared:
    """Grade a submission by the rules of stock nbgrader and by the sandboxed grader."""
    os.environ[SEED] = str(submission.seed)
    executed = run_as_stock(submission, path)
    graded = grader.grade(nbformat.writes(submission.notebook).encode())
    judged = nbformat.reads(graded.notebook.decode(), as_version=4)
    stock, ours = scores(executed), scores(judged)
    forgiven = scores(_without_stderr(executed))
    by_stderr = [name for name in stock if stock[name] != ours.get(name) and forgiven[name] == ours.get(name)]
    return Compared(submission, stock, ours, by_stderr, [f"{e.cell}: {e.what}" for e in graded.evidence])


def run_as_stock(submission: Submission, path: Path) -> NotebookNode:
    """Run a submission in a plain kernel as `nbgrader autograde` does, with the instructor's checks.

    Demonstrations that the student has not touched are left out; no check may need them.
    """
    checks = {cell.id: cell for cell in cells_of(read_notebook(path)) if cell.is_check}
    demonstrations = {cell.source for cell in cells_of(read_notebook(path)) if not cell.marks}
    notebook = nbformat.v4.new_notebook()
    for cell in copy.deepcopy(submission.notebook.cells):
        if cell.cell_type != "code" or (cell.source in demonstrations and not submission.demos_changed):
            continue
        if cell.id in checks:
            cell.source = checks[cell.id].source
        cell.metadata.pop("tags", None)
        cell.outputs, cell.execution_count = [], None
        notebook.cells.append(cell)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as sockets:
        NotebookClient(
            notebook, timeout=int(time_limits.wall(300)), startup_timeout=int(time_limits.wall(60)), kernel_name="python3", allow_errors=True, shutdown_kernel="immediate",
            resources={"metadata": {"path": folder}},
            config=Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}}),
        ).execute()  # fmt: skip
    return notebook


def scores(notebook: NotebookNode) -> dict[str, float | None]:
    """Return what nbgrader reads out of the outputs of each check."""
    return {cell.id: determine_grade(cell.node)[0] for cell in cells_of(notebook) if cell.is_check}


def _without_stderr(notebook: NotebookNode) -> NotebookNode:
    forgiven = copy.deepcopy(notebook)
    for cell in forgiven.cells:
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return forgiven


def by_the_real_command(compared: Sequence[Compared], path: Path) -> list[str]:
    """Return where `nbgrader autograde` itself, demonstrations included, gives another score than `run_as_stock`."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        stock_course(root, [(path.stem, read_notebook(path))])
        for each in compared:
            name = each.submission.name
            target = root / "submitted" / name / path.stem / path.name
            target.parent.mkdir(parents=True)
            nbformat.write(each.submission.notebook, target)
            os.environ[SEED] = str(each.submission.seed)
            nbgrader(root, "autograde", path.stem, "--student", name)
            with Gradebook(f"sqlite:///{root / 'gradebook.db'}", "stock") as book:
                grades = book.find_submission_notebook(path.stem, path.stem, name).grades
                real = {grade.name: grade.auto_score for grade in grades}
            wrong += [
                f"{name} {cell}: {real[cell]}, not {score}" for cell, score in each.stock.items() if real[cell] != score
            ]
    return wrong


def submissions(number: int, sample: int, modules: Sequence[str], report: Callable[[str], None]) -> str:
    """Compare generated submissions over some modules; return a paragraph on it, or raise where scores differ."""
    paths = [path for path in course_notebooks(ROOT) if path.stem in modules]
    count: Counter[str] = Counter()
    wrong: list[str] = []
    for position, path in enumerate(paths):
        share = number // len(paths) + (position < number % len(paths))
        some = sample // len(paths) + (position < sample % len(paths))
        started, done = time.monotonic(), list[Compared]()
        with Grader(Assignment.read(path)) as grader:
            for submission in generate(path, share):
                each = compare(submission, path, grader)
                done.append(each)
                if each.different or each.evidence:
                    wrong.append(f"{submission.name}: {each.different} {each.evidence}")
                    report(wrong[-1])
                count["cells"] += len(each.stock)
                count["stderr"] += len(each.by_stderr)
                count["full"] += sum(bool(score) for score in each.ours.values())
        report(f"{path.stem}: {share} compared in {time.monotonic() - started:.0f} s")
        whole = [each for each in done if not each.submission.has_twins()]
        count["twins"] += len(done) - len(whole)
        if some:
            wrong += by_the_real_command(whole[:some], path)
            report(f"{path.stem}: {some} by the real command; {time.monotonic() - started:.0f} s")
    if wrong:
        raise SystemExit("\n".join(wrong))
    return (
        f"{number} submissions of the modules {', '.join(path.stem for path in paths)}: {count['cells']} graded cells, "
        f"{count['full']} of them with points. Every score is equal, and no submission is flagged; {sample} of them were "
        f"also graded by `nbgrader autograde` itself, with the same scores; it would stop at the {count['twins']} in which a "
        f"cell was split or copied, as JupyterLab copies its marks too. In {count['stderr']} cells stock gives right "
        "code nothing because it warned on stderr while being checked; this grader gives such code its points, and they "
        "are left out of the comparison."
    )


def main() -> None:
    """Run the command of `tests/attacks/README.md`, and write its part of the page if all its modules took part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="NN_name", help="only these; the page is not written then")
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--sample", type=int, default=0, help="how many of them also by the real nbgrader autograde")
    options = parser.parse_args()
    result = submissions(
        options.number, options.sample, options.modules or MODULES, lambda line: print(line, flush=True)
    )
    print(result)
    if not options.modules:
        write_part("honest", f"By `--number {options.number} --sample {options.sample}`: {result}")


if __name__ == "__main__":
    main()

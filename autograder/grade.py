"""Grade a batch of submissions in one process, into nbgrader's gradebook."""

from __future__ import annotations

import copy
import shutil
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps.api import NbGraderAPI
from nbgrader.preprocessors import NbGraderPreprocessor
from sqlalchemy.exc import SAWarning
from tqdm import tqdm
from traitlets.config import Config

from autograder.config import configure
from autograder.execute import error_output, execute
from autograder.notebook import NotebookError, is_check, read_notebook

REFUSED, FAILURE = "tinybench_refused", "tinybench_failure"


@dataclass(frozen=True)
class Outcome:
    """What came of one submission; `note` says why it could not be graded as it was, or ended early."""

    student: str
    assignment: str
    score: float
    max_score: float
    seconds: float = 0.0
    note: str = ""


class ExecuteSubmission(NbGraderPreprocessor):
    """nbgrader's step that runs a notebook, handed to `autograder.execute`."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Run a submission in an empty folder of its own; a refused one is not run."""
        reason = nb.metadata.get(REFUSED)
        if reason:
            for cell in nb.cells:
                if is_check(cell):
                    cell.outputs = [error_output("NotGraded", reason)]
            return nb, resources
        with tempfile.TemporaryDirectory() as folder:
            done = execute(nb, folder=Path(folder))
        if done.failure:
            done.notebook.metadata[FAILURE] = done.failure
            done.notebook.cells.insert(0, _notice("Grading ended early", done.failure))
        return done.notebook, resources


def grade(root: Path, assignment: str, *, student: str | None = None, regrade: bool = False) -> list[Outcome]:
    """Grade the collected submissions of an assignment.

    Parameters
    ----------
    root
        The course.
    assignment
        Such as ``"03_latency"``.
    student
        Grade this one only.
    regrade
        Grade again what has been graded.

    Returns
    -------
    list of Outcome
        One for each submission, by student.

    Raises
    ------
    NotebookError
        If the assignment has not been released, or nothing was submitted.
    """
    course = root / "course"
    released = course / "release" / assignment / f"{assignment}.ipynb"
    if not released.is_file():
        raise NotebookError(assignment, None, f"not released yet; run `autograder release {assignment}`")
    folders = sorted((course / "submitted").glob(f"{student or '*'}/{assignment}"))
    if not folders:
        who = f"by {student} " if student else ""
        raise NotebookError(assignment, None, f"nothing submitted {who}in {course / 'submitted'}; collect first")
    config = configure(Config(), root)
    config.CourseDirectory.submitted_directory = "course/checked"
    api = NbGraderAPI(config=config)
    outcomes = []
    # nbgrader's models autoflush in an order SQLAlchemy 2 warns about, to no effect
    warnings.filterwarnings("ignore", category=SAWarning, module="nbgrader")
    for folder in tqdm(folders, desc=assignment, unit="submission"):
        name = folder.parent.name
        if regrade or not (course / "autograded" / name / assignment).is_dir():
            outcomes.append(_grade_one(api, course, folder, released))
        else:
            score, most = _score(config, name, assignment)
            outcomes.append(Outcome(name, assignment, score, most, note="graded before"))
    return outcomes


def _grade_one(api: NbGraderAPI, course: Path, folder: Path, released: Path) -> Outcome:
    name, assignment, started = folder.parent.name, folder.name, time.monotonic()
    checked = course / "checked" / name / assignment
    try:
        notebook, note = read_notebook(_regular_file(folder / released.name)), ""
    except NotebookError as error:
        notebook, note = _stand_in(released, str(error).partition(": ")[2]), str(error).partition(": ")[2]
    _stage(notebook, folder, checked / released.name)
    result = api.autograde(assignment, name)
    if not result["success"]:
        note = "nbgrader could not read its cells; submit the released notebook with your answers in it"
        _stage(_stand_in(released, note), folder, checked / released.name)
        result = api.autograde(assignment, name)
        if not result["success"]:
            raise RuntimeError(f"nbgrader failed on the stand-in for {name}: {result['log'][-2000:]}")
    score, most = _score(api.config, name, assignment)
    graded = read_notebook(course / "autograded" / name / assignment / released.name)
    note = note or graded.metadata.get(FAILURE, "")
    return Outcome(name, assignment, score, most, time.monotonic() - started, note)


def _regular_file(path: Path) -> Path:
    """Refuse what is not a plain file: a link could point at anything the instructor may read."""
    if path.is_symlink() or (path.exists() and not stat.S_ISREG(path.lstat().st_mode)):
        raise NotebookError(path, None, "not a regular file; submit the notebook itself")
    return path


def _stand_in(released: Path, reason: str) -> NotebookNode:
    """Return the released notebook with the reason on top, to carry a zero and its explanation."""
    notebook = copy.deepcopy(read_notebook(released))
    notebook.metadata[REFUSED] = reason
    notebook.cells.insert(0, _notice("This submission could not be graded", reason))
    return notebook


def _notice(title: str, reason: str) -> NotebookNode:
    notice: NotebookNode = nbformat.v4.new_markdown_cell(f"## {title}\n\n{reason}")
    return notice


def _stage(notebook: NotebookNode, folder: Path, target: Path) -> None:
    shutil.rmtree(target.parent, ignore_errors=True)
    target.parent.mkdir(parents=True)
    nbformat.write(notebook, target)
    timestamp = folder / "timestamp.txt"
    if timestamp.is_file() and not timestamp.is_symlink():
        shutil.copy(timestamp, target.parent)


def _score(config: Config, student: str, assignment: str) -> tuple[float, float]:
    with Gradebook(config.CourseDirectory.db_url, config.CourseDirectory.course_id) as gradebook:
        try:
            submission = gradebook.find_submission(assignment, student)
        except MissingEntry:
            return 0.0, gradebook.find_assignment(assignment).max_score
        return submission.score, submission.max_score


def feedback(root: Path, assignment: str, *, student: str | None = None) -> list[Path]:
    """Write the feedback pages of an assignment's graded submissions and return them."""
    api = NbGraderAPI(config=configure(Config(), root))
    result = api.generate_feedback(assignment, student, force=True)
    if not result["success"]:
        raise NotebookError(assignment, None, f"no feedback: {result['log'].splitlines()[-1]}; grade it first")
    return sorted((root / "course" / "feedback").glob(f"{student or '*'}/{assignment}/*.html"))


def print_grades(outcomes: Sequence[Outcome], write: Callable[[str], None] = print) -> None:
    """Print a table of outcomes."""
    width = max([len(outcome.student) for outcome in outcomes], default=7)
    write(f"{'student':<{width}}  {'score':>7}  {'of':>5}  {'seconds':>7}  note")
    for outcome in outcomes:
        points = f"{outcome.score:>7g}  {outcome.max_score:>5g}  {outcome.seconds:>7.1f}"
        write(f"{outcome.student:<{width}}  {points}  {outcome.note}")

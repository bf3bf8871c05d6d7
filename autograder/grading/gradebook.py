"""The one place that writes grades: a judged notebook into nbgrader's gradebook and folder of autograded work."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution, is_task
from sqlalchemy.exc import ArgumentError, OperationalError, SAWarning
from traitlets.config import Config

from autograder.course.config import GRADEBOOK
from autograder.course.notebook import NotebookError, label, read_notebook
from autograder.grading.collect import time_of


@contextmanager
def open_gradebook(config: Config, assignment: str) -> Iterator[Any]:
    """Open nbgrader's gradebook for a batch: opening it once instead of nine times a submission saves 40 ms each.

    Raises
    ------
    ValueError
        If its database cannot be reached.
    NotebookError
        If it does not know the assignment.
    """
    with warnings.catch_warnings():
        # nbgrader's models autoflush in an order SQLAlchemy 2 warns about, to no effect
        warnings.filterwarnings("ignore", category=SAWarning, module="nbgrader")
        with _connected(config.CourseDirectory.db_url, config.CourseDirectory.course_id) as gradebook:
            try:
                gradebook.find_assignment(assignment)
            except MissingEntry:
                raise NotebookError(
                    assignment, None, f"not in this gradebook yet; run `autograder release {assignment}`"
                ) from None
            yield gradebook


def _connected(url: str, course: str) -> Any:
    try:
        return Gradebook(url, course)
    except (ArgumentError, ImportError, OperationalError) as error:
        why = str(error).splitlines()[0]  # not the address, which may hold a password
        more = '; run `pip install "tinybench[scale]"`' if isinstance(error, ImportError) else ""
        raise ValueError(f"the gradebook cannot be opened, {GRADEBOOK} names its database: {why}{more}") from None


def released_checksums(released: Path) -> dict[str, str]:
    """Return each released cell's checksum, by which an untouched written answer is known."""
    cells = read_notebook(released).cells
    marks = {label(cell, i): cell.metadata.get("nbgrader", {}).get("checksum") for i, cell in enumerate(cells)}
    return {name: checksum for name, checksum in marks.items() if checksum}


def record(
    gradebook: Any, student: str, assignment: str, notebook: NotebookNode, checksums: Mapping[str, str], config: Config
) -> tuple[float, float]:
    """Write the points of one judged notebook, as nbgrader's SaveAutoGrades and AssignLatePenalties do.

    Parameters
    ----------
    gradebook
        See `open_gradebook`.
    student, assignment
        Whose it is; both are created where they are new.
    notebook
        Executed and judged; gets the released checksums.
    checksums
        See `released_checksums`.
    config
        Configuration of the late penalty.

    Returns
    -------
    tuple of float
        ``(score, max_score)`` of the submission. Points a person has given stay.

    Notes
    -----
    Writing the same notebook twice leaves the gradebook as writing it once.
    """
    gradebook.update_or_create_student(student)
    course = Path(config.CourseDirectory.root)
    beside = exchange_marks(course / config.CourseDirectory.submitted_directory / student / assignment)
    timestamp = beside.get("timestamp.txt", "").strip()
    submission = gradebook.update_or_create_submission(
        assignment, student, **({"timestamp": timestamp} if timestamp else {})
    )
    saved = next(entry for entry in submission.notebooks if entry.name == assignment)
    grades = {grade.name: grade for grade in saved.grades}
    comments = {comment.name: comment for comment in saved.comments}
    for index, cell in enumerate(notebook.cells):
        if "nbgrader" not in cell.metadata:
            continue
        name = label(cell, index)
        if name in checksums:
            cell.metadata["nbgrader"]["checksum"] = checksums[name]
        if is_grade(cell) and name in grades:
            grade = grades[name]
            grade.auto_score, _ = determine_grade(cell)
            grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
        if (is_solution(cell) or is_task(cell)) and name in comments:
            untouched = checksums.get(name) == compute_checksum(cell) and not is_task(cell)
            comments[name].auto_comment = "No response." if untouched else None
    saved.late_submission_penalty = None
    gradebook.db.commit()
    if submission.total_seconds_late > 0:
        who = {"notebook": assignment, "assignment": assignment, "student": student}
        resources = {"nbgrader": who | {"db_url": config.CourseDirectory.db_url}}
        AssignLatePenalties(config=config).preprocess(notebook, resources)
        gradebook.db.refresh(saved)
    write_autograded(notebook, course / config.CourseDirectory.autograded_directory / student / assignment, beside)
    return submission.score, submission.max_score


def exchange_marks(submitted: Path) -> dict[str, str]:
    """Return what the exchange put beside a submission, by name; releasing feedback asks for it."""
    files = (submitted / name for name in ("timestamp.txt", "submission_secret.txt"))
    marks = {}
    for file in files:
        if file.is_file() and not file.is_symlink():
            with file.open(encoding="utf-8", errors="replace") as opened:
                marks[file.name] = opened.read(200)
            if file.name == "timestamp.txt" and time_of(file) is None:
                # a student may have written it; the file system's time of collecting is not theirs to set
                marks[file.name] = datetime.fromtimestamp(file.stat().st_ctime, UTC).strftime("%Y-%m-%d %H:%M:%S %Z")
    return marks


def write_autograded(notebook: NotebookNode, folder: Path, beside: Mapping[str, str]) -> None:
    """Put the notebook where Formgrader and feedback look for it; a reader never sees half a folder."""
    fresh, old = (folder.with_name(f".{folder.name}.{which}") for which in ("new", "old"))
    for left in (fresh, old):
        shutil.rmtree(left, ignore_errors=True)  # by a run that was killed
    fresh.mkdir(parents=True)
    nbformat.write(notebook, fresh / f"{folder.name}.ipynb")
    for name, text in beside.items():
        (fresh / name).write_text(text, encoding="utf-8")
    if folder.exists():
        os.replace(folder, old)
    os.replace(fresh, folder)
    shutil.rmtree(old, ignore_errors=True)


def score_of(gradebook: Any, student: str, assignment: str) -> tuple[float, float] | None:
    """Return what the gradebook holds for a submission, None where it has none."""
    try:
        submission = gradebook.find_submission(assignment, student)
    except MissingEntry:
        return None
    return submission.score, submission.max_score

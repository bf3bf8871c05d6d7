"""The only module that writes grades. It saves judged notebooks to nbgrader's gradebook and autograded folder."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from nbformat import NotebookNode
from nbgrader.api import Comment, Grade, Gradebook, MissingEntry
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution, is_task
from sqlalchemy.exc import ArgumentError, OperationalError, SAWarning
from sqlalchemy.orm import joinedload
from traitlets.config import Config

from autograder.course.nbgrader_settings import GRADEBOOK
from autograder.course.notebook import NotebookError, cells_of, read_notebook
from autograder.grading.collect import time_of
from autograder.grading.sanitize import safe_line

T = TypeVar("T")
LOCKED_SECONDS = 600
GO_ON = "what was judged is kept: when that is put right, the same command goes on"


@contextmanager
def open_gradebook(config: Config, assignment: str) -> Iterator[Any]:
    """Open nbgrader's gradebook once for a whole batch.

    nbgrader itself would open it nine times per submission, which takes 40 ms.
    """
    with warnings.catch_warnings():
        # SQLAlchemy 2 warns about the order of autoflushes in nbgrader's models; this order does no harm
        warnings.filterwarnings("ignore", category=SAWarning, module="nbgrader")
        url, course = config.CourseDirectory.db_url, config.CourseDirectory.course_id
        with patiently(lambda: _connected(url, course)) as gradebook:
            try:
                gradebook.find_assignment(assignment)
            except MissingEntry:
                why = f"not in this gradebook yet; run `autograder release {assignment}`"
                raise NotebookError(assignment, None, why) from None
            yield gradebook


def _connected(url: str, course: str) -> Any:
    try:
        return Gradebook(url, course)
    except (ArgumentError, ImportError, OperationalError) as error:
        if isinstance(error, OperationalError) and _is_locked(error):
            raise
        why = str(error).splitlines()[0]  # without the address, which may contain a password
        more = '; run `pip install "tinybench-course[scale]"`' if isinstance(error, ImportError) else ""
        raise ValueError(f"the gradebook cannot be opened, {GRADEBOOK} names its database: {why}{more}") from None


class GradebookFails(ValueError):
    """An error of the gradebook itself, which affects every student. The message says what to do."""


def patiently(do: Callable[[], T], undo: Callable[[], object] = lambda: None) -> T:
    """Call `do`, which uses the gradebook, and return its result.

    While another program locks the gradebook, print a notice once, call `undo` and retry. After `LOCKED_SECONDS`, or if
    the database fails for another reason, raise GradebookFails.
    """
    until, waiting = time.monotonic() + LOCKED_SECONDS, False
    while True:
        try:
            return do()
        except OperationalError as error:
            undo()
            if not _is_locked(error) or time.monotonic() > until:
                why = safe_line(str(error.orig).partition("\n")[0])
                raise GradebookFails(f"the gradebook cannot be used: {why}; {GO_ON}") from None
            if not waiting:
                print("the gradebook is locked by another program: waiting until it is free", file=sys.stderr)
            waiting = True
            time.sleep(0.2)


def _is_locked(error: OperationalError) -> bool:
    return "lock" in str(error.orig)


def released_checksums(released: Path) -> dict[str, str]:
    """Return the checksums of the released cells by cell id.

    If a submitted cell has the same checksum, the student did not change its answer.
    """
    return {cell.id: cell.marks["checksum"] for cell in cells_of(read_notebook(released)) if cell.marks.get("checksum")}


def record(
    gradebook: Any, student: str, assignment: str, notebook: NotebookNode, checksums: Mapping[str, str], config: Config
) -> tuple[float, float]:
    """Write the points of a judged notebook to the gradebook, as nbgrader's SaveAutoGrades and AssignLatePenalties do.

    Points that were given manually are kept, and writing the same notebook twice changes nothing. The released
    checksums are written to the notebook. Return the submission's score and its maximum score.
    """
    gradebook.update_or_create_student(student)
    course = Path(config.CourseDirectory.root)
    extra = exchange_marks(course / config.CourseDirectory.submitted_directory / student / assignment)
    timestamp = extra.get("timestamp.txt", "").strip()
    submission = gradebook.update_or_create_submission(
        assignment, student, **({"timestamp": timestamp} if timestamp else {})
    )
    saved = next(entry for entry in submission.notebooks if entry.name == assignment)
    grades, comments = _by_cell(gradebook, Grade, saved), _by_cell(gradebook, Comment, saved)
    for name, cell in ((each.id, each.node) for each in cells_of(notebook) if each.marks):
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
    write_autograded(notebook, course / config.CourseDirectory.autograded_directory / student / assignment, extra)
    return submission.score, submission.max_score


def _by_cell(gradebook: Any, kind: Any, saved: Any) -> dict[str, Any]:
    """Return the grades or comments of a notebook by cell name. One query fetches all of them."""
    found = gradebook.db.query(kind).options(joinedload(kind.cell)).filter(kind.notebook_id == saved.id)
    return {entry.cell.name: entry for entry in found}


def exchange_marks(submitted: Path) -> dict[str, str]:
    """Return the texts of the files that nbgrader's exchange added to a submission, by file name.

    nbgrader needs these files to release feedback.
    """
    files = (submitted / name for name in ("timestamp.txt", "submission_secret.txt"))
    marks = {}
    for file in files:
        if file.is_file() and not file.is_symlink():
            with file.open(encoding="utf-8", errors="replace") as opened:
                marks[file.name] = opened.read(200)
            if file.name == "timestamp.txt" and time_of(file) is None:
                # A student may have written this invalid file. The file system knows when the file was collected.
                marks[file.name] = datetime.fromtimestamp(file.stat().st_ctime, UTC).strftime("%Y-%m-%d %H:%M:%S %Z")
    return marks


def write_autograded(notebook: NotebookNode, folder: Path, extra: Mapping[str, str]) -> None:
    """Write a notebook to the folder from which Formgrader and the feedback command read it.

    They never find this folder half-written.
    """
    fresh, old = (folder.with_name(f".{folder.name}.{which}") for which in ("new", "old"))
    for left in (fresh, old):
        shutil.rmtree(left, ignore_errors=True)  # left by a run that was killed
    fresh.mkdir(parents=True)
    # `nbformat.write` would copy the notebook and validate it again, although it was validated when it was read
    (fresh / f"{folder.name}.ipynb").write_text(json.dumps(notebook, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, text in extra.items():
        (fresh / name).write_text(text, encoding="utf-8")
    if folder.exists():
        os.replace(folder, old)
    os.replace(fresh, folder)
    shutil.rmtree(old, ignore_errors=True)


def score_of(gradebook: Any, student: str, assignment: str) -> tuple[float, float] | None:
    """Return the score and maximum score of a submission in the gradebook, or None if the submission is not there."""
    try:
        submission = gradebook.find_submission(assignment, student)
    except MissingEntry:
        return None
    return submission.score, submission.max_score

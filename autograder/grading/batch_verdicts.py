"""The submissions to one assignment, and the verdict files in which the results of grading are kept on disk."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from filelock import FileLock, Timeout

from autograder.course.assignment import Assignment
from autograder.course.nbgrader_settings import MODULES, course_config
from autograder.course.notebook import NotebookError, parse_notebook
from autograder.files import write_atomically
from autograder.grading.names import why_no_student
from autograder.grading.nbgrader_gradebook import record, released_checksums, score_of
from autograder.grading.sanitize import safe_line, safe_markdown
from autograder.grading.submission import UnusableSubmission, read_submission
from autograder.grading.verdict import packed, zero

MAX_SEED = 2**31


@dataclass(frozen=True)
class Outcome:
    """The result of one submission. If the submission was not graded, `score` is None."""

    student: str
    assignment: str
    score: float | None = None
    max_score: float | None = None
    seconds: float = 0.0
    note: str = ""  # why the submission could not be graded, or why it ended early
    evidence: tuple[str, ...] = ()  # unusual contents, which the instructor should review


class Batch:
    """The submissions to one assignment, from all students or from one `student`, and the verdicts on them.

    A verdict is a file named after the student. Its `key` is a digest of everything on which the verdict depends: the
    submission, the instructor's notebook and data files, and the seed of the checks. A submission is judged again only
    if this digest has changed. A second file per student, `NAME.entered`, holds the digest of the verdict that was last
    written to the gradebook.
    """

    def __init__(self, root: Path, assignment: str, student: str | None = None) -> None:
        self.assignment, course = assignment, root / "course"
        self.config = course_config(root)
        released = course / "release" / assignment / f"{assignment}.ipynb"
        if not released.is_file():
            raise NotebookError(assignment, None, f"not released yet; run `autograder release {assignment}`")
        self.checksums = released_checksums(released)
        self.instructors = Assignment.read(root / MODULES / assignment / f"{assignment}.ipynb")
        self.contents = submissions(root, assignment, student)
        self.unusable = {} if student else _names(root, assignment)[1]
        self._digests = {name: _digest(content) for name, content in self.contents.items()}
        self._instructors_digest = self.instructors.digest()
        self.verdicts = course / "verdicts" / assignment
        self.seed = kept_seed(self.verdicts, draw=False)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other graders away from the assignment during the block.

        First remove files that a killed grader left behind.
        """
        self.verdicts.mkdir(parents=True, exist_ok=True)
        try:
            lock = FileLock(self.verdicts / "lock", timeout=0).acquire()
        except Timeout:
            raise NotebookError(self.assignment, None, "is being graded already; wait, or stop the other") from None
        except OSError as error:
            why = f"{self.verdicts / 'lock'} cannot be locked ({error.strerror}); grade as the user whose file it is"
            raise NotebookError(self.assignment, None, why) from None
        with lock:
            for left in self.verdicts.glob(".*"):  # not verdicts, because no student's name begins with a dot
                with suppress(OSError):
                    left.unlink()
            self.seed = kept_seed(self.verdicts)
            yield

    def _key(self, name: str) -> str:
        return _digest(f"{self._instructors_digest} {self.seed} {self._digests[name]}".encode())

    def _file(self, name: str) -> Path:
        return self.verdicts / f"{name}.json"

    def _verdict(self, name: str) -> dict[str, Any] | None:
        try:
            verdict = json.loads(self._file(name).read_bytes())
        except (FileNotFoundError, ValueError, RecursionError):
            return None
        return verdict if isinstance(verdict, dict) and verdict.get("key") == self._key(name) else None

    def state(self, name: str, regrade: bool = False) -> str:
        """Return ``"kept"`` if a submission's stored verdict is still valid, or ``"graded"`` if it must be graded."""
        return "graded" if regrade or self._verdict(name) is None else "kept"

    def forget(self) -> None:
        """Delete the verdicts of this batch. The gradebook keeps the old points until new verdicts are entered."""
        for name in self.contents:
            self._file(name).unlink(missing_ok=True)

    def pending(self) -> list[tuple[str, bytes]]:
        """Return the submissions to run, as pairs of student and content.

        A submission that cannot be read is not returned. Instead, this method stores a verdict of zero points for it.
        """
        waiting = []
        for name, content in self.contents.items():
            if self.state(name) == "kept":
                continue
            if isinstance(content, UnusableSubmission):
                instructors = parse_notebook(self.instructors.notebook, self.assignment)
                self.keep(name, packed(zero(instructors, str(content))))
            else:
                waiting.append((name, content))
        return waiting

    def keep(self, name: str, result: bytes) -> None:
        """Write the verdict on the submission of the student `name` to disk."""
        write_atomically(self._file(name), json.dumps(json.loads(result) | {"key": self._key(name)}))

    def enter(self, gradebook: Any, name: str) -> Outcome:
        """Write a student's verdict to the gradebook, unless it is there already.

        Return the outcome of the submission.
        """
        verdict = self._verdict(name)
        if verdict is None:
            raise RuntimeError(f"the verdict on {name} vanished while it was being graded; run the command again")
        entered, digest = self.verdicts / f"{name}.entered", _digest(self._file(name).read_bytes())
        score = score_of(gradebook, name, self.assignment)
        if score is None or not entered.is_file() or entered.read_bytes() != digest.encode():
            notebook = parse_notebook(verdict["notebook"].encode(), name)
            if verdict["failure"]:
                notice = f"## This submission could not be graded to its end\n\n{safe_markdown(verdict['failure'])}"
                notebook.cells.insert(0, nbformat.v4.new_markdown_cell(notice, id="notice"))
            score = record(gradebook, name, self.assignment, notebook, self.checksums, self.config)
            write_atomically(entered, digest)
        evidence = tuple(safe_line(f"{item['cell']}: {item['what']}") for item in verdict["evidence"])
        return Outcome(name, self.assignment, *score, verdict["seconds"], safe_line(verdict["failure"], 500), evidence)


def kept_seed(verdicts: Path, *, draw: bool = True) -> int:
    """Return the seed for the checks of an assignment, which is stored in the folder of its verdicts.

    If no valid seed is stored, draw one and store it. With ``draw=False``, return -1 instead.
    """
    file = verdicts / "seed"
    if file.is_file():
        with suppress(ValueError), file.open("rb") as opened:
            if 0 <= (seed := int(opened.read(20))) < MAX_SEED:
                return seed
        if draw:
            print(f"{file} was damaged: a new seed is drawn, and everything is graded again", file=sys.stderr)
    if not draw:
        return -1
    write_atomically(file, str(secrets.randbelow(MAX_SEED)))
    return kept_seed(verdicts)  # read again, because another process may have drawn a seed too


def submissions(root: Path, assignment: str, student: str | None = None) -> dict[str, bytes | UnusableSubmission]:
    """Return the content of each student's submitted notebook, or the reason why the notebook cannot be used."""
    folder = root / "course" / "submitted"
    found, unusable = _names(root, assignment)
    students = [name for name in found if student in (None, name)]
    if not students and (student or not unusable):
        who = f"by {safe_line(student)} " if student else ""
        raise NotebookError(assignment, None, f"nothing submitted {who}in {folder}; collect first")
    return {name: _content(folder / name / assignment / f"{assignment}.ipynb", folder) for name in students}


def _names(root: Path, assignment: str) -> tuple[list[str], dict[str, str]]:
    """Return the names of the students who submitted, and why each other folder's name cannot be a student's."""
    submitted = root / "course" / "submitted"
    found = [
        name
        for name in sorted(os.listdir(submitted) if submitted.is_dir() else ())
        if _there(submitted / name / assignment)
    ]
    reasons = {name: why_no_student(name) for name in found}
    return [name for name in found if not reasons[name]], {name: why for name, why in reasons.items() if why}


def _there(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # the path exists but cannot be read
        return True
    return True


def _content(path: Path, submitted: Path) -> bytes | UnusableSubmission:
    try:
        return read_submission(path, submitted)
    except UnusableSubmission as why:
        return why


def _digest(content: bytes | UnusableSubmission) -> str:
    return hashlib.sha256(str(content).encode() if isinstance(content, UnusableSubmission) else content).hexdigest()

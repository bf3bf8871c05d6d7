"""What is known about a batch: the submissions of one assignment, and a verdict on disk for each that was judged."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from autograder.course.assignment import Assignment
from autograder.course.config import MODULES, course_config
from autograder.course.export import write_atomically
from autograder.course.notebook import NotebookError, parse_notebook
from autograder.grading.executors import packed
from autograder.grading.gradebook import record, released_checksums, score_of
from autograder.grading.grader import refused
from autograder.grading.sanitize import safe_line, safe_markdown
from autograder.grading.submission import Refused, read_submission


@dataclass(frozen=True)
class Outcome:
    """What came of one submission.

    Attributes
    ----------
    score, max_score
        None where there is no verdict.
    note
        Why it could not be graded as it was, or ended early.
    evidence
        What an honest submission does not hold, for the instructor to look at.
    """

    student: str
    assignment: str
    score: float | None = None
    max_score: float | None = None
    seconds: float = 0.0
    note: str = ""
    evidence: tuple[str, ...] = ()


class Batch:
    """The submissions of one assignment, and what is known about each.

    A verdict is a file of its own, named by student and holding a digest of the submission, the instructor's notebook
    and data files, and the seed: what has been judged is not judged twice, and a changed submission is. Beside it lies
    the digest of the verdict that the gradebook holds.

    Parameters
    ----------
    root
        The course.
    assignment
        Such as ``"03_latency"``.
    student
        Only this one.
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
        self._digests = {name: _digest(content) for name, content in self.contents.items()}
        self._instructors_digest = self.instructors.digest()
        self.verdicts = course / "verdicts" / assignment
        self.seed = kept_seed(self.verdicts, draw=False)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other graders of this assignment out, and see to what a killed one left.

        Raises
        ------
        NotebookError
            If one is at work, or this system cannot tell.
        """
        try:
            import fcntl
        except ImportError:
            raise NotebookError(self.assignment, None, "cannot be graded on this system: use WSL or Linux") from None
        self.verdicts.mkdir(parents=True, exist_ok=True)
        with (self.verdicts / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise NotebookError(self.assignment, None, "is being graded already; wait, or stop the other") from None
            for left in self.verdicts.glob(".*"):
                left.unlink()
            self.seed = kept_seed(self.verdicts)
            yield

    def _key(self, name: str) -> str:
        return _digest(f"{self._instructors_digest} {self.seed} {self._digests[name]}".encode())

    def _file(self, name: str) -> Path:
        return self.verdicts / f"{name}.json"

    def _verdict(self, name: str) -> dict[str, Any] | None:
        try:
            verdict: dict[str, Any] = json.loads(self._file(name).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return verdict if verdict.get("key") == self._key(name) else None

    def state(self, name: str, regrade: bool = False) -> str:
        """Return ``"graded"`` if the submission has to be run, else ``"kept"``."""
        return "graded" if regrade or self._verdict(name) is None else "kept"

    def forget(self) -> None:
        """Drop the verdicts; what the gradebook holds stays until there are new ones."""
        for name in self.contents:
            self._file(name).unlink(missing_ok=True)

    def pending(self) -> list[tuple[str, bytes]]:
        """Return the submissions to run; those that cannot be read have their verdict at once."""
        waiting = []
        for name, content in self.contents.items():
            if self.state(name) == "kept":
                continue
            if isinstance(content, Refused):
                self.keep(
                    name, packed(refused(parse_notebook(self.instructors.notebook, self.assignment), str(content)))
                )
            else:
                waiting.append((name, content))
        return waiting

    def keep(self, name: str, result: bytes) -> None:
        """Keep a verdict on disk."""
        write_atomically(self._file(name), json.dumps(json.loads(result) | {"key": self._key(name)}))

    def enter(self, gradebook: Any, name: str) -> Outcome:
        """Write a kept verdict into the gradebook, unless it is there, and return its outcome."""
        verdict = self._verdict(name)
        if verdict is None:
            raise RuntimeError(f"the verdict on {name} vanished while it was being graded; run the command again")
        entered, digest = self.verdicts / f"{name}.entered", _digest(self._file(name).read_bytes())
        score = score_of(gradebook, name, self.assignment)
        if score is None or not entered.is_file() or entered.read_text(encoding="utf-8") != digest:
            notebook = parse_notebook(verdict["notebook"].encode(), name)
            if verdict["failure"]:
                notice = f"## This submission could not be graded to its end\n\n{safe_markdown(verdict['failure'])}"
                notebook.cells.insert(0, nbformat.v4.new_markdown_cell(notice, id="notice"))
            score = record(gradebook, name, self.assignment, notebook, self.checksums, self.config)
            write_atomically(entered, digest)
        evidence = tuple(safe_line(f"{item['cell']}: {item['what']}") for item in verdict["evidence"])
        return Outcome(name, self.assignment, *score, verdict["seconds"], safe_line(verdict["failure"], 500), evidence)


def kept_seed(verdicts: Path, *, draw: bool = True) -> int:
    """Return the seed of an assignment's checks, drawn once and kept with its verdicts; -1 if there is none yet."""
    file = verdicts / "seed"
    if draw and not file.is_file():
        verdicts.mkdir(parents=True, exist_ok=True)
        write_atomically(file, str(secrets.randbelow(2**31)))
    return int(file.read_text(encoding="utf-8")) if file.is_file() else -1


def submissions(root: Path, assignment: str, student: str | None = None) -> dict[str, bytes | Refused]:
    """Return each student's submitted notebook, or why it is not read.

    Raises
    ------
    NotebookError
        If there is none.
    """
    folder = root / "course" / "submitted"
    students = sorted(path.parent.name for path in folder.glob(f"{student or '*'}/{assignment}"))
    if not students:
        who = f"by {student} " if student else ""
        raise NotebookError(assignment, None, f"nothing submitted {who}in {folder}; collect first")
    return {name: _content(folder / name / assignment / f"{assignment}.ipynb", folder) for name in students}


def _content(path: Path, submitted: Path) -> bytes | Refused:
    try:
        return read_submission(path, submitted)
    except Refused as refused:
        return refused


def _digest(content: bytes | Refused) -> str:
    return hashlib.sha256(str(content).encode() if isinstance(content, Refused) else content).hexdigest()

"""Grade a batch: submissions out to confined workers, verdicts kept as they come, one writer of the gradebook."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.apps.api import NbGraderAPI
from nbgrader.preprocessors import NbGraderPreprocessor
from tqdm import tqdm
from traitlets.config import Config

from autograder.config import MODULES, configure, project_root
from autograder.confined import Grader
from autograder.export import write_atomically
from autograder.gradebook import open_gradebook, record, released_checksums, score_of
from autograder.notebook import NotebookError, parse_notebook
from autograder.pool import packed, run_dask, run_local
from autograder.sandbox import available
from autograder.submission import Refused, read_submission


@dataclass(frozen=True)
class Outcome:
    """What came of one submission.

    Attributes
    ----------
    note
        Why it could not be graded as it was, or ended early.
    evidence
        What an honest submission does not hold, for the instructor to look at.
    """

    student: str
    assignment: str
    score: float
    max_score: float
    seconds: float = 0.0
    note: str = ""
    evidence: tuple[str, ...] = ()


class ExecuteSubmission(NbGraderPreprocessor):
    """nbgrader's step that runs a notebook, confined: for plain `nbgrader autograde` and Formgrader's button."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Run and judge a submission in the sandbox."""
        available()
        name = resources["nbgrader"]["assignment"]
        with Grader(project_root() / MODULES / name / f"{name}.ipynb") as grader:
            graded = grader.grade(nbformat.writes(nb).encode())
        judged = parse_notebook(graded.notebook, name)
        checksums = {c.metadata.nbgrader.grade_id: c.metadata.nbgrader.checksum for c in nb.cells if _has_checksum(c)}
        for cell in judged.cells:
            marks = cell.metadata.get("nbgrader", {})
            if marks.get("grade_id") in checksums:
                marks["checksum"] = checksums[marks["grade_id"]]
        return judged, resources


def _has_checksum(cell: NotebookNode) -> bool:
    return "checksum" in cell.metadata.get("nbgrader", {})


def grade(
    root: Path,
    assignment: str,
    *,
    student: str | None = None,
    regrade: bool = False,
    dry_run: bool = False,
    scheduler: str | None = None,
    workers: int | None = None,
    unsafe: bool = False,
    progress: bool = True,
) -> list[Outcome]:
    """Grade the collected submissions of an assignment; killed at any point, the next call goes on.

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
    dry_run
        Only say what would be done.
    scheduler
        Address of a Dask scheduler; processes of this machine otherwise.
    workers
        Local processes; one for each core by default.
    unsafe
        Run submissions as this user, without a sandbox.
    progress
        Show a bar with the time left.

    Returns
    -------
    list of Outcome
        One for each submission, by student.

    Raises
    ------
    NotebookError
        If the assignment has not been released, or nothing was submitted.
    SandboxUnavailable
        If this machine cannot confine untrusted code.
    """
    batch = Batch(root, assignment, student)
    if dry_run:
        return [
            Outcome(name, assignment, 0, 0, note=f"would be {batch.state(name, regrade)}") for name in batch.students
        ]
    if scheduler is None and not unsafe:
        available()
    pending = {}
    for name in batch.students:
        if batch.state(name, regrade) == "graded":
            content = batch.contents[name]
            if isinstance(content, Refused):
                batch.keep(name, _refusal(batch, content))
            else:
                pending[name] = content
    source = batch.source.read_bytes()
    if scheduler:
        results = run_dask(pending.items(), assignment, source, batch.seed, scheduler)
    else:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        size = min(workers or cores, max(1, len(pending)))
        results = run_local(pending.items(), assignment, source, batch.seed, size, not unsafe)
    outcomes = []
    with open_gradebook(batch.config) as gradebook:
        waiting = set(pending)
        bar = tqdm(total=len(batch.students), desc=assignment, unit="submission", disable=not progress)
        for name in batch.students:
            if name not in waiting:
                outcomes.append(batch.enter(gradebook, name))
                bar.update()
        for name, result in results if pending else ():
            batch.keep(name, result)
            outcomes.append(batch.enter(gradebook, name))
            bar.update()
        bar.close()
    return sorted(outcomes, key=lambda outcome: outcome.student)


def _refusal(batch: Batch, refused: Refused) -> bytes:
    with Grader(batch.source) as grader:
        return packed(grader.refuse(str(refused)))


class Batch:
    """The submissions of one assignment, and what is known about each.

    A verdict is a file of its own, named by student and holding a digest of the submission, the instructor's notebook
    and the seed: what has been judged is not judged twice, and a changed submission is.
    """

    def __init__(self, root: Path, assignment: str, student: str | None = None) -> None:
        self.assignment, self.course = assignment, root / "course"
        self.config = configure(Config(), root)
        self.source = root / MODULES / assignment / f"{assignment}.ipynb"
        released = self.course / "release" / assignment / f"{assignment}.ipynb"
        if not released.is_file():
            raise NotebookError(assignment, None, f"not released yet; run `autograder release {assignment}`")
        self.checksums = released_checksums(released)
        submitted = self.course / "submitted"
        folders = sorted(submitted.glob(f"{student or '*'}/{assignment}"))
        if not folders:
            who = f"by {student} " if student else ""
            raise NotebookError(assignment, None, f"nothing submitted {who}in {submitted}; collect first")
        self.students = [folder.parent.name for folder in folders]
        self.contents = {folder.parent.name: _content(folder / released.name, submitted) for folder in folders}
        self.verdicts = self.course / "verdicts" / assignment
        self.seed = self._seed()

    def _seed(self) -> int:
        """Return the seed of this assignment's checks: drawn once, so that all students get the same inputs."""
        file = self.verdicts / "seed"
        if not file.is_file():
            write_atomically(file, str(secrets.randbelow(2**31)))
        return int(file.read_text(encoding="utf-8"))

    def _key(self, name: str) -> str:
        content = self.contents[name]
        submitted = str(content).encode() if isinstance(content, Refused) else content
        parts = (self.source.read_bytes(), str(self.seed).encode(), submitted)
        return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()

    def _verdict(self, name: str) -> dict[str, Any] | None:
        file = self.verdicts / f"{name}.json"
        try:
            verdict: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return verdict if verdict.get("key") == self._key(name) else None

    def state(self, name: str, regrade: bool = False) -> str:
        """Return ``"graded"`` if the submission has to be run, else ``"kept"``."""
        return "graded" if regrade or self._verdict(name) is None else "kept"

    def keep(self, name: str, result: bytes) -> None:
        """Keep a verdict on disk."""
        verdict = json.loads(result) | {"key": self._key(name)}
        write_atomically(self.verdicts / f"{name}.json", json.dumps(verdict))

    def enter(self, gradebook: Any, name: str) -> Outcome:
        """Write a kept verdict into the gradebook, unless it is there, and return its outcome."""
        verdict = self._verdict(name)
        if verdict is None:
            raise RuntimeError(f"the verdict on {name} vanished while it was being graded; run the command again")
        entered = self.verdicts / f"{name}.entered"
        score = score_of(gradebook, name, self.assignment)
        if score is None or not entered.is_file() or entered.read_text(encoding="utf-8") != verdict["key"]:
            notebook = parse_notebook(verdict["notebook"].encode(), name)
            if verdict["failure"]:
                notice = f"## This submission could not be graded to its end\n\n{verdict['failure']}"
                notebook.cells.insert(0, nbformat.v4.new_markdown_cell(notice))
            score = record(gradebook, name, self.assignment, notebook, self.checksums, self.config)
            write_atomically(entered, verdict["key"])
        evidence = tuple(f"{item['cell']}: {item['what']}" for item in verdict["evidence"])
        return Outcome(name, self.assignment, *score, verdict["seconds"], verdict["failure"], evidence)


def _content(path: Path, submitted: Path) -> bytes | Refused:
    try:
        return read_submission(path, submitted)
    except Refused as refused:
        return refused


def feedback(root: Path, assignment: str, *, student: str | None = None) -> list[Path]:
    """Write the feedback pages of an assignment's graded submissions and return them."""
    api = NbGraderAPI(config=configure(Config(), root))
    result = api.generate_feedback(assignment, student, force=True)
    if not result["success"]:
        raise NotebookError(assignment, None, f"no feedback: {result['log'].splitlines()[-1]}; grade it first")
    return sorted((root / "course" / "feedback").glob(f"{student or '*'}/{assignment}/*.html"))


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of a table of outcomes, and below it what to look at."""
    width = max([len(outcome.student) for outcome in outcomes], default=7)
    yield f"{'student':<{width}}  {'score':>7}  {'of':>5}  {'seconds':>7}  note"
    for outcome in outcomes:
        points = f"{outcome.score:>7g}  {outcome.max_score:>5g}  {outcome.seconds:>7.2f}"
        yield f"{outcome.student:<{width}}  {points}  {outcome.note}".rstrip()
    flagged = [outcome for outcome in outcomes if outcome.evidence]
    if flagged:
        yield f"\n{len(flagged)} to look at: they hold what an honest submission does not"
        for outcome in flagged:
            yield from (f"  {outcome.student}: {line}" for line in outcome.evidence)


def print_grades(outcomes: Sequence[Outcome], write: Callable[[str], None] = print) -> None:
    """Print the table of outcomes."""
    for line in table(outcomes):
        write(line)

"""Grade a batch: submissions out to confined workers, verdicts kept as they come, one writer of the gradebook."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.preprocessors import NbGraderPreprocessor
from sqlalchemy.exc import OperationalError
from tqdm import tqdm

from autograder.course.assignment import Assignment
from autograder.course.config import MODULES, course_config, project_root
from autograder.course.notebook import NotebookError, parse_notebook
from autograder.grading.batch import Batch, Outcome, kept_seed
from autograder.grading.executors import Lost, run_dask, run_local, seeded_checks
from autograder.grading.gradebook import open_gradebook
from autograder.grading.grader import Grader
from autograder.grading.sanitize import safe_line
from autograder.grading.submission import read_submission
from autograder.sandbox.bubblewrap import available
from tinybench.energy import usable_cores

NOT_GRADED = "not graded, by no fault of the student's; once its cause is mended, the same command grades it"


class ExecuteSubmission(NbGraderPreprocessor):
    """nbgrader's step that runs a notebook, confined: for plain `nbgrader autograde` and Formgrader's button."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Run and judge a submission in the sandbox, as it was handed in: `nb` has been put in order already."""
        available()
        who, name, root = resources["nbgrader"]["student"], resources["nbgrader"]["assignment"], project_root()
        submitted = root / "course" / "submitted"
        content = read_submission(submitted / who / name / f"{name}.ipynb", submitted)
        seed, assignment = kept_seed(root / "course" / "verdicts" / name), root / MODULES / name / f"{name}.ipynb"
        with seeded_checks(seed, content), Grader(Assignment.read(assignment)) as grader:
            graded = grader.grade(content)
        for item in graded.evidence:
            self.log.warning("look at %s: %s", who, safe_line(f"{item.cell}: {item.what}"))
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
        Grade again what has been graded. Killed in between, a call without it goes on.
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
        If the assignment has not been released, nothing was submitted, or it is being graded already.
    ValueError
        If the gradebook cannot be opened, or no scheduler answers.
    SandboxUnavailable
        If this machine cannot confine untrusted code.
    """
    batch = Batch(root, assignment, student)
    if dry_run:
        return [Outcome(name, assignment, note=f"would be {batch.state(name, regrade)}") for name in batch.contents]
    if scheduler is None and not unsafe:
        available()
    with batch.alone(), open_gradebook(batch.config, assignment) as gradebook:
        if regrade:
            batch.forget()
        pending = batch.pending()
        if scheduler:
            results = run_dask(pending, batch.instructors, batch.seed, scheduler)
        else:
            size = min(workers or usable_cores(), max(1, len(pending)))
            results = run_local(pending, batch.instructors, batch.seed, size, not unsafe)
        outcomes = []
        with tqdm(total=len(batch.contents), desc=assignment, unit="submission", disable=not progress) as bar:
            waiting = {name for name, _ in pending}
            for name in batch.contents:
                if name not in waiting:
                    outcomes.append(_entered(batch, gradebook, name))
                    bar.update()
            for name, result in results if pending else ():
                if isinstance(result, Lost):
                    outcomes.append(Outcome(name, assignment, note=safe_line(f"{NOT_GRADED}: {result.why}")))
                else:
                    batch.keep(name, result)
                    outcomes.append(_entered(batch, gradebook, name))
                bar.update()
    return sorted(outcomes, key=lambda outcome: outcome.student)


def _entered(batch: Batch, gradebook: Gradebook, name: str) -> Outcome:
    """Enter one verdict into the gradebook; what is odd about one submission does not keep the others out."""
    try:
        return batch.enter(gradebook, name)
    except OperationalError:
        raise  # of the gradebook itself: nobody's could be entered
    except Exception as error:
        gradebook.db.rollback()
        why = f"judged, but not entered into the gradebook: {type(error).__name__}: {error}"
        return Outcome(name, batch.assignment, note=safe_line(why))


def feedback(root: Path, assignment: str, *, student: str | None = None) -> list[Path]:
    """Write the feedback pages of an assignment's graded submissions and return them."""
    api = NbGraderAPI(config=course_config(root))
    result = api.generate_feedback(assignment, student, force=True)
    if not result["success"]:
        why = (result.get("log") or result.get("error") or "nothing is graded").strip().splitlines()[-1]
        raise NotebookError(assignment, None, f"no feedback: {why}; grade it first")
    return sorted((root / "course" / "feedback").glob(f"{student or '*'}/{assignment}/*.html"))


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of a table of outcomes, and below it a summary and what to look at."""
    width = max([len(outcome.student) for outcome in outcomes], default=7)
    yield f"{'student':<{width}}  {'score':>7}  {'of':>5}  {'seconds':>7}  note"
    graded = [outcome for outcome in outcomes if outcome.score is not None]
    for outcome in outcomes:
        points = f"{outcome.score:>7g}  {outcome.max_score:>5g}" if outcome in graded else f"{'–':>7}  {'–':>5}"
        yield f"{outcome.student:<{width}}  {points}  {outcome.seconds:>7.2f}  {outcome.note}".rstrip()
    if graded:
        scores = [outcome.score or 0 for outcome in graded]
        centre = f"mean {statistics.fmean(scores):.3g}, median {statistics.median(scores):g}"
        yield f"\n{len(graded)} of {len(outcomes)} have a grade: {centre}, of {graded[0].max_score:g}"
    flagged = [outcome for outcome in outcomes if outcome.evidence]
    if flagged:
        yield f"\n{len(flagged)} to look at: they hold what an honest submission does not"
        for outcome in flagged:
            yield from (f"  {outcome.student}: {line}" for line in outcome.evidence)


def print_grades(outcomes: Sequence[Outcome], write: Callable[[str], None] = print) -> None:
    """Print the table of outcomes."""
    for line in table(outcomes):
        write(line)

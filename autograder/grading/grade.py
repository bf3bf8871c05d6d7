"""The grading of a batch of submissions.

Workers grade the submissions in sandboxes. This process stores each verdict on disk and writes it to the gradebook.
"""

from __future__ import annotations

import errno
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from tqdm import tqdm

from autograder.course.nbgrader_settings import course_config
from autograder.course.notebook import NotebookError
from autograder.grading.batch_verdicts import Batch, Outcome
from autograder.grading.killable import each, useful_workers
from autograder.grading.mounts import probe
from autograder.grading.names import why_no_student
from autograder.grading.nbgrader_gradebook import GO_ON, GradebookFails, open_gradebook, patiently
from autograder.grading.sanitize import safe_line
from autograder.grading.worker_pools import NoVerdict, run_dask, run_local
from autograder.sandbox.bubblewrap import available
from tinybench.support.basics.table import Table

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
PAGE_SECONDS = 120
START, START_PAGES = 4, 8  # starting a worker takes as long as grading 4 submissions, or as writing 8 pages
NOT_GRADED = "not graded, through no fault of the student; when the cause is fixed, the same command grades it"


def grade_assignment(
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
    """Grade the collected submissions to an assignment, from all students or from one `student`.

    If grading is killed, the next call continues where it stopped. To continue a killed `regrade`, call this again
    without `regrade`. With the address of a Dask `scheduler`, the cluster grades. Otherwise, `workers` local processes
    grade: by default one for each core, and fewer for a small class. With `unsafe`, submissions run as this user,
    without a sandbox. With `dry_run`, nothing is graded, and the outcomes say what would be done.
    """
    batch = Batch(root, assignment, student)
    if dry_run:
        planned = [Outcome(name, assignment, note=f"would be {batch.state(name, regrade)}") for name in batch.contents]
        return [*planned, *_unusable(batch)]
    if scheduler is None and not unsafe:
        available()
    with _room(assignment), batch.locked(), open_gradebook(batch.config, assignment) as gradebook:
        if regrade:
            batch.forget()
        pending = batch.pending()
        if pending and scheduler is None and not unsafe:
            probe(batch.instructors, root)
        if scheduler:
            results = run_dask(pending, batch.instructors, batch.seed, scheduler)
        else:
            size = min(workers, max(1, len(pending))) if workers else useful_workers(len(pending), START)
            results = run_local(pending, batch.instructors, batch.seed, size, not unsafe)
        outcomes = _unusable(batch)
        with tqdm(total=len(batch.contents), desc=assignment, unit="submission", disable=not progress) as bar:
            waiting = {name for name, _ in pending}
            for name in batch.contents:
                if name not in waiting:
                    outcomes.append(_entered(batch, gradebook, name))
                    bar.update()
            for name, result in results if pending else ():
                if isinstance(result, NoVerdict):
                    outcomes.append(Outcome(name, assignment, note=safe_line(f"{NOT_GRADED}: {result.why}")))
                else:
                    batch.keep(name, result)
                    outcomes.append(_entered(batch, gradebook, name))
                bar.update()
    return sorted(outcomes, key=lambda outcome: outcome.student)


def _entered(batch: Batch, gradebook: Gradebook, name: str) -> Outcome:
    """Write the verdict on one submission to the gradebook, and return the outcome.

    An error that concerns only this submission becomes the note of its outcome, so that the other submissions are still
    entered. An error that would affect all submissions is raised.
    """
    for last in (False, True):
        try:
            return patiently(lambda: batch.enter(gradebook, name), gradebook.db.rollback)
        except Exception as error:
            gradebook.db.rollback()
            if isinstance(error, GradebookFails) or (isinstance(error, OSError) and error.errno in NO_ROOM):
                raise  # the other verdicts would fail too
            why = f"judged, but not entered into the gradebook: {type(error).__name__}: {error}"
            if last:
                break  # a first failure is retried: another grader may have created the same student at that moment
    return Outcome(name, batch.assignment, note=safe_line(why))


def _unusable(batch: Batch) -> list[Outcome]:
    """Return an outcome with the reason for each folder whose name cannot be a student's."""
    return [
        Outcome(safe_line(name, 40), batch.assignment, note=f"not graded, no student can have this name: {why}")
        for name, why in batch.unusable.items()
    ]


@contextmanager
def _room(assignment: str) -> Iterator[None]:
    """Replace the error of a full or read-only disk with a NotebookError that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        where = f" ({error.filename})" if error.filename else ""
        raise NotebookError(assignment, None, f"stopped: {error.strerror}{where}; {GO_ON}") from None


def feedback(root: Path, assignment: str, *, student: str | None = None) -> list[Path]:
    """Write the feedback pages of an assignment's graded submissions, and return the paths of the pages."""
    autograded, pages = root / "course" / "autograded", root / "course" / "feedback"
    found = sorted(
        path.parent.name for path in autograded.glob(f"*/{assignment}") if not why_no_student(path.parent.name)
    )
    graded = [name for name in found if student in (None, name)]
    if not graded:
        who = f"of {safe_line(student)} " if student else ""
        raise NotebookError(assignment, None, f"no feedback: nothing {who}is graded in {autograded}; grade it first")
    tasks, failed = ((name, (root, assignment, name)) for name in graded), {}
    for name, result in each(_page, tasks, seconds=PAGE_SECONDS, workers=useful_workers(len(graded), START_PAGES)):
        if isinstance(result, Exception):
            failed[name] = safe_line(result)
    if failed:
        who = "; ".join(f"{name}: {why}" for name, why in sorted(failed.items()))
        raise NotebookError(assignment, None, f"no page could be made of {who}; the others are there")
    return sorted(page for name in graded for page in (pages / name / assignment).glob("*.html"))


def _page(root: Path, assignment: str, student: str) -> None:
    """Write one student's feedback page."""
    result = NbGraderAPI(config=course_config(root)).generate_feedback(assignment, student, force=True)
    if not result["success"]:
        raise RuntimeError((result.get("log") or result.get("error") or "nothing is graded").strip().splitlines()[-1])


def grade_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield a table of outcomes, a summary, and the evidence that the instructor should review."""
    graded = [outcome for outcome in outcomes if outcome.score is not None]
    yield Table(
        {
            "student": outcome.student,
            "score": f"{outcome.score:g}" if outcome in graded else "–",
            "of": (f"{outcome.max_score:g}" if outcome.max_score else "bonus") if outcome in graded else "–",
            "seconds": f"{outcome.seconds:.2f}",
            "note": outcome.note,
        }
        for outcome in outcomes
    ).text()
    if graded:
        scores = [outcome.score or 0 for outcome in graded]
        centre = f"mean {statistics.fmean(scores):.3g}, median {statistics.median(scores):g}"
        most = f"of {graded[0].max_score:g}" if graded[0].max_score else "all of it bonus"
        yield f"\n{len(graded)} of {len(outcomes)} have a grade: {centre}, {most}"
    flagged = [outcome for outcome in outcomes if outcome.evidence]
    if flagged:
        yield f"\n{len(flagged)} to look at: they contain what an honest submission does not"
        for outcome in flagged:
            yield from (f"  {outcome.student}: {line}" for line in outcome.evidence)


def print_grades(outcomes: Sequence[Outcome]) -> None:
    """Print the table of outcomes, the summary, and the evidence that the instructor should review."""
    print("\n".join(grade_lines(outcomes)))

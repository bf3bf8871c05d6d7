"""Grade a batch: submissions out to sandboxed workers, verdicts kept as they come, one writer of the gradebook."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from sqlalchemy.exc import OperationalError
from tqdm import tqdm

from autograder.course.config import course_config
from autograder.course.notebook import NotebookError
from autograder.grading.batch import Batch, Outcome
from autograder.grading.executors import NoVerdict, run_dask, run_local
from autograder.grading.gradebook import open_gradebook
from autograder.grading.mounts import probe
from autograder.grading.sanitize import safe_line
from autograder.sandbox.bubblewrap import available
from tinybench.cores import usable_cores
from tinybench.table import Table

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
    """Grade the collected submissions of an assignment, or of one `student`; if killed, the next call goes on.

    Without the address of a Dask `scheduler`, `workers` processes of this machine grade, by default one for each core.
    `unsafe` runs submissions as this user, without a sandbox. A `regrade` that was killed goes on without this option.
    """
    batch = Batch(root, assignment, student)
    if dry_run:
        return [Outcome(name, assignment, note=f"would be {batch.state(name, regrade)}") for name in batch.contents]
    if scheduler is None and not unsafe:
        available()
    with batch.locked(), open_gradebook(batch.config, assignment) as gradebook:
        if regrade:
            batch.forget()
        pending = batch.pending()
        if pending and scheduler is None and not unsafe:
            probe(batch.instructors, root)
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
                if isinstance(result, NoVerdict):
                    outcomes.append(Outcome(name, assignment, note=safe_line(f"{NOT_GRADED}: {result.why}")))
                else:
                    batch.keep(name, result)
                    outcomes.append(_entered(batch, gradebook, name))
                bar.update()
    return sorted(outcomes, key=lambda outcome: outcome.student)


def _entered(batch: Batch, gradebook: Gradebook, name: str) -> Outcome:
    """Enter one verdict into the gradebook; an odd submission does not keep the others out."""
    try:
        return batch.enter(gradebook, name)
    except OperationalError:
        raise  # the gradebook itself fails: no other could be entered
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


def grade_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield a table of outcomes, a summary, and what to look at."""
    graded = [outcome for outcome in outcomes if outcome.score is not None]
    yield Table(
        {
            "student": outcome.student,
            "score": f"{outcome.score:g}" if outcome in graded else "–",
            "of": f"{outcome.max_score:g}" if outcome in graded else "–",
            "seconds": f"{outcome.seconds:.2f}",
            "note": outcome.note,
        }
        for outcome in outcomes
    ).text()
    if graded:
        scores = [outcome.score or 0 for outcome in graded]
        centre = f"mean {statistics.fmean(scores):.3g}, median {statistics.median(scores):g}"
        yield f"\n{len(graded)} of {len(outcomes)} have a grade: {centre}, of {graded[0].max_score:g}"
    flagged = [outcome for outcome in outcomes if outcome.evidence]
    if flagged:
        yield f"\n{len(flagged)} to look at: they contain what an honest submission does not"
        for outcome in flagged:
            yield from (f"  {outcome.student}: {line}" for line in outcome.evidence)


def print_grades(outcomes: Sequence[Outcome]) -> None:
    """Print the table of outcomes."""
    print("\n".join(grade_lines(outcomes)))

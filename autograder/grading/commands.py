"""The grading commands: grade, doctor, feedback, package, similarity."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autograder.course.nbgrader_settings import FAILED, OK, with_root
from autograder.sandbox import bubblewrap
from tinybench.shell.options import refuse_given

if TYPE_CHECKING:
    from autograder.grading.batch_verdicts import Outcome
from tinybench.support.basics.numbers import number_of


def assignments(command: Callable[..., int]) -> Callable[..., int]:
    """Add arguments to a command that select assignments by number, name or range, or by nbgrader's `--assignment`."""

    @click.argument("assignments", metavar="NN_name...", nargs=-1)
    @click.option("--assignment", "named", metavar="NN_name", help="Select one assignment, as in nbgrader's commands.")
    @with_root
    @functools.wraps(command)
    def found(root: Path, *, assignments: Sequence[str], named: str | None, **options: Any) -> int:
        from autograder.course.notebook import chosen, course_notebooks

        if bool(assignments) == bool(named):
            raise click.UsageError(
                "name assignments: NN_name, such as 03_latency, or 01 05-07, or --assignment NN_name"
            )
        words = [named] if named else assignments
        return command(root, chosen(words, (path.stem for path in course_notebooks(root))), **options)

    return found


def for_each(names: Sequence[str], work: Callable[[str], None]) -> None:
    """Call `work` for each assignment.

    If assignments fail, raise one ValueError at the end that lists all their problems.
    """
    from autograder.course.notebook import NotebookError

    problems = []
    for name in names:
        try:
            work(name)
        except NotebookError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("\n".join(problems))


def print_json(value: Any) -> None:
    """Print a dataclass, or a list of dataclasses, as JSON."""
    print(json.dumps([asdict(each) for each in value] if isinstance(value, list) else asdict(value), indent=1))


@click.command()
@assignments
@click.option("--student", metavar="ID", help="Grade only this student.")
@click.option("--regrade", is_flag=True, help="Grade again. To continue a regrade that was killed, omit this option.")
@click.option("--dry-run", is_flag=True, help="List what would be graded, and grade nothing.")
@click.option("--workers", type=int, help="Start this many processes (default: one per core, fewer for a small class).")
@click.option("--scheduler", metavar="tcp://…", help="Grade on a Dask cluster instead, with one thread per worker.")
@click.option(
    "--unsafe",
    is_flag=True,
    help="Run submissions as you, without a sandbox. Their code can then read and change everything that you can, "
    "including the gradebook. Use this only for people you trust.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcomes as JSON.")
def grade(root: Path, names: Sequence[str], as_json: bool, **options: Any) -> int:
    """Grade the collected submissions of assignments.

    Write the points to the gradebook. Each submission runs in a sandbox and is judged from outside the sandbox. A
    broken submission affects only its author, and the feedback gives the reason. If this command is killed, run it
    again: it continues where it stopped.
    """
    from autograder.grading.grade import grade_assignment, print_grades

    if options["dry_run"]:
        refuse_given({"workers", "scheduler", "unsafe"}, "without --dry-run, which runs nothing")
    if options["scheduler"]:
        refuse_given({"workers"}, "without --scheduler, whose cluster has its own workers")
        refuse_given({"unsafe"}, "without --scheduler, whose workers grade in the sandbox")
    if options["unsafe"]:
        print("unsafe: submissions run as you; they can read and change the gradebook and your files", file=sys.stderr)
    outcomes: list[Outcome] = []

    def work(name: str) -> None:
        found = grade_assignment(root, name, progress=not as_json, **options)
        outcomes.extend(found)
        if not as_json:
            print_grades(found)

    try:
        for_each(names, work)
    finally:
        if as_json and outcomes:
            print_json(outcomes)
    left = sum(outcome.score is None for outcome in outcomes)
    if options["dry_run"] or not left:
        return OK
    if not as_json:
        print(f"\n{left} without a grade, see the notes: when that is put right, the same command grades them")
    return FAILED


@click.command()
def doctor() -> int:
    """Check whether this machine can confine untrusted code.

    List what grading needs, what is missing, and what to install.
    """
    from autograder.sandbox import leak_probe

    unavailable = bool(bubblewrap.unavailable())
    rows = [*bubblewrap.doctor(), *([] if unavailable else [leak_probe.doctor()])]
    for name, works, line in rows:
        print(f"{'ok     ' if works else 'MISSING'}  {name:<12} {line}")
    if unavailable or not rows[-1][1]:
        print("this machine cannot confine submissions: `autograder grade` refuses here")
        return FAILED
    print("this machine can grade submissions of strangers")
    return OK


@click.command()
@assignments
@click.option("--student", metavar="ID", help="Write only this student's page.")
def feedback(root: Path, names: Sequence[str], student: str | None) -> int:
    """Write the students' feedback pages for assignments."""
    from autograder.grading.grade import feedback as write_pages

    pages: list[Path] = []
    for_each(names, lambda name: pages.extend(write_pages(root, name, student=student)))
    print(f"{number_of(len(pages), 'page')} under {root / 'course' / 'feedback'}")
    return OK


@click.command()
@click.option("--student", metavar="ID", required=True, help="Select the student whose package is tested.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@with_root
def package(root: Path, student: str, as_json: bool) -> int:
    """Run the public tests on a student's whole package.

    Each module is built in the sandbox from the submitted notebook, as by `autograder build`. The reference replaces
    each module that was not submitted or cannot be built. The tests and the student's code run in one process, so the
    code could forge the results. Use them as information, never as a mark.
    """
    from autograder.grading.package_report import package as report_on
    from autograder.grading.package_report import report_lines

    modules = report_on(root, student, progress=not as_json)
    print_json(modules) if as_json else print("\n".join(report_lines(modules)))
    return OK


@click.command()
@assignments
@click.option("--top", type=click.IntRange(min=1), default=10, metavar="N", help="Print N pairs.", show_default=True)
@click.option(
    "--with",
    "earlier",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Also compare with an earlier year: a course, a folder of STUDENT/NN_name/NN_name.ipynb, or notebooks named "
    "after students. You can give this option several times.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the pairs and each cell's usual similarity as JSON.")
@click.option("--csv", is_flag=True, help="Print the pairs as CSV.")
def similarity(root: Path, names: Sequence[str], top: int, earlier: tuple[Path, ...], as_json: bool, csv: bool) -> int:
    """List the pairs of submissions whose solutions are most alike.

    A solution can also be paired with the reference. Only the code that students wrote is compared, not the code of the
    released notebook. Names, comments, layout and order do not matter. The pairs are ranked by how much more alike they
    are than correct solutions usually are. The result is a hint where to look, never a mark.
    """
    from autograder.grading.similar.similarity import as_csv, most_alike, report_lines

    if as_json and csv:
        raise click.UsageError("--json or --csv, not both")
    if len(names) > 1:
        raise click.UsageError(f"similarity compares the submissions of one assignment: {' or '.join(names)}")
    report = most_alike(root, names[0], top, earlier)
    if as_json:
        print_json(report)
    else:
        print(as_csv(report) if csv else "\n".join(report_lines(report)), end="" if csv else "\n")
    return OK

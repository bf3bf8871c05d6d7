"""The commands of grading: grade, doctor, feedback, package, similarity."""

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
    """Let assignments be named by numbers, names and ranges, or one as in nbgrader's commands."""

    @click.argument("assignments", metavar="NN_name...", nargs=-1)
    @click.option("--assignment", "named", metavar="NN_name", help="One assignment, as nbgrader writes it.")
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
    """Do the work for each assignment; raise one error that has the problems of all."""
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
    """Print dataclasses as JSON."""
    print(json.dumps([asdict(each) for each in value] if isinstance(value, list) else asdict(value), indent=1))


@click.command()
@assignments
@click.option("--student", metavar="ID", help="Only this student.")
@click.option("--regrade", is_flag=True, help="Grade again; if that is killed, the command without it goes on.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--workers", type=int, help="Local processes (default: one for each core, fewer for a small class).")
@click.option("--scheduler", metavar="tcp://…", help="Grade on a Dask cluster instead, one thread a worker.")
@click.option(
    "--unsafe",
    is_flag=True,
    help="Run submissions as you, without a sandbox: their code can then read and change whatever you can, the "
    "gradebook included; for people you trust.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcomes as JSON.")
def grade(root: Path, names: Sequence[str], as_json: bool, **options: Any) -> int:
    """Grade the collected submissions of assignments.

    Enters them into the gradebook. Each runs in a sandbox and is judged from outside; what is broken costs its author
    only, with the reason in the feedback. If it is killed, the same command goes on where it stopped.
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
    """Say whether this machine can confine untrusted code.

    Lists what grading needs, what is missing, and what to install.
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
@click.option("--student", metavar="ID", help="Only this student.")
def feedback(root: Path, names: Sequence[str], student: str | None) -> int:
    """Write the students' feedback pages of assignments."""
    from autograder.grading.grade import feedback as write_pages

    pages: list[Path] = []
    for_each(names, lambda name: pages.extend(write_pages(root, name, student=student)))
    print(f"{number_of(len(pages), 'page')} under {root / 'course' / 'feedback'}")
    return OK


@click.command()
@click.option("--student", metavar="ID", required=True, help="Whose package.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@with_root
def package(root: Path, student: str, as_json: bool) -> int:
    """Run the public tests on a student's whole package.

    Each module is built from the notebook handed in, as `autograder build` does, in the sandbox; what was not handed in
    or cannot be built is the reference's. The tests run in one process with the student's code, which could forge what
    they say: information, never a mark.
    """
    from autograder.grading.package_report import package as report_on
    from autograder.grading.package_report import report_lines

    modules = report_on(root, student, progress=not as_json)
    print_json(modules) if as_json else print("\n".join(report_lines(modules)))
    return OK


@click.command()
@assignments
@click.option("--top", type=click.IntRange(min=1), default=10, metavar="N", help="How many pairs.", show_default=True)
@click.option(
    "--with",
    "earlier",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="An earlier year to compare with: a course, a folder of STUDENT/NN_name/NN_name.ipynb, or notebooks named "
    "after students. May be given several times.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the pairs as JSON, and what is usual in each cell.")
@click.option("--csv", is_flag=True, help="Print the pairs as CSV.")
def similarity(root: Path, names: Sequence[str], top: int, earlier: tuple[Path, ...], as_json: bool, csv: bool) -> int:
    """List the submissions whose solutions are most alike, or like the reference.

    Compares what students wrote, whatever its names, comments, layout and order, without the given code, and by how
    much it is more alike than correct solutions usually are. A hint where to look, never a mark.
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

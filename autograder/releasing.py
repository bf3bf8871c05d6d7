"""The commands that hand the course out: release, publish."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from autograder.course.nbgrader_settings import OK, with_root
from tinybench.support.basics.numbers import number_of, plural

with_references = click.option(
    "--with",
    "references",
    metavar="MODULES",
    help="Modules whose reference students get: numbers, names and ranges such as 01,03-05, or all or none. By default "
    "those whose due date has passed, those of an earlier release, and those they already have.",
)


@click.command()
@click.argument("assignments", nargs=-1, metavar="[MODULES]...")
@with_references
@click.option("--force", is_flag=True, help="Replace changed student notebooks (a backup is kept).")
@click.option("--no-explanations", is_flag=True, help="A check that passes does not show the solution, explained.")
@click.option("--no-verify", is_flag=True, help="Prove nothing: do not run the notebooks.")
@with_root
def release(
    root: Path, assignments: Sequence[str], references: str | None, force: bool, no_explanations: bool, no_verify: bool
) -> int:
    """Build the student notebooks; untouched, they score 0.

    Releases all modules if none is named. MODULES are numbers, names and ranges such as 01 02_timer 05-07. Each
    notebook is run, and its reference must get full marks on this machine. The command writes course/release/ and
    student/, and keeps a notebook that the student has changed. The student's package holds no module that is still to
    be built. A check that passes shows the explained solution: the right result is the key that opens it.
    """
    from autograder.course.release import release_all
    from autograder.grading.proof import insist_on_full_marks

    proof = insist_on_full_marks
    done = release_all(
        root, assignments, references=references, force=force, verify=not no_verify, explain=not no_explanations,
        full_marks=proof,
    )  # fmt: skip
    print(
        f"{number_of(len(done), 'assignment')} {plural(len(done), 'is', 'are')} in "
        "student/; start with student/map.ipynb"
    )
    return OK


@click.command()
@click.argument("folder", type=Path)
@with_references
@click.option("--url", help="Where students clone it, for Binder and Colab; by default the folder's git remote.")
@click.option(
    "--force", is_flag=True, help="Replace files of the folder that were changed since, or that are in the way."
)
@with_root
def publish(root: Path, folder: Path, references: str | None, url: str | None, force: bool) -> int:
    """Write the repository that students clone, or bring it up to date.

    It holds the released notebooks, the package without what is still to be built, the student's commands, and what
    conda, pip and Binder need: no solution, check or history. Other files of the folder stay, such as .git.
    """
    from autograder.course.published import publish as write

    print(write(root, folder.resolve(), references=references, url=url, force=force))
    return OK

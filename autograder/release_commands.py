"""The commands that hand the course out to students: release and publish."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from autograder.course.nbgrader_settings import OK, with_root
from tinybench.course.paths import PATHS
from tinybench.support.basics.numbers import number_of, plural

with_references = click.option(
    "--with",
    "references",
    metavar="MODULES",
    help="Give students the references of these modules: numbers, names and ranges such as 01,03-05, or all or none. "
    "By default, these are the modules whose due date has passed and those whose reference was released before.",
)


@click.command()
@click.argument("assignments", nargs=-1, metavar="[MODULES]...")
@click.option(
    "--path",
    type=click.Choice([path.name for path in PATHS]),
    help="Release the modules of a path through the course. Students also get the references of the modules that the "
    "path leaves out but needs.",
)
@with_references
@click.option("--force", is_flag=True, help="Replace changed student notebooks, and keep a backup.")
@click.option("--no-explanations", is_flag=True, help="Do not show the explained solution when a check passes.")
@click.option("--no-verify", is_flag=True, help="Do not run the notebooks to verify them.")
@with_root
def release(
    root: Path, assignments: Sequence[str], path: str | None, references: str | None, force: bool,
    no_explanations: bool, no_verify: bool,
) -> int:  # fmt: skip
    """Build the student notebooks, and verify that they score 0 untouched.

    Releases all modules if none is named. MODULES are numbers, names and ranges such as 01 02_timer 05-07. Each
    notebook is run, and its reference must get full marks on this machine. The command writes course/release/ and
    student/, and does not replace a notebook that the student has changed. The student's package contains no module
    that the student has yet to build. A check that passes shows the explained solution, which only the right result
    can decrypt.
    """
    from autograder.course.release import release_all
    from autograder.grading.reference_check import insist_on_full_marks

    if path:
        if assignments or references:
            raise click.UsageError("--path chooses the modules and the references; leave out MODULES and --with")
        [chosen] = [each for each in PATHS if each.name == path]
        assignments, references = chosen.modules, ",".join(chosen.borrowed) or None
    done = release_all(
        root, assignments, references=references, force=force, verify=not no_verify, explain=not no_explanations,
        full_marks=insist_on_full_marks,
    )  # fmt: skip
    print(
        f"{number_of(len(done), 'assignment')} {plural(len(done), 'is', 'are')} in "
        "student/; start with student/map.ipynb"
    )
    return OK


@click.command()
@click.argument("folder", type=Path)
@with_references
@click.option("--url", help="Set the address to clone, for Binder and Colab. The default is the folder's git remote.")
@click.option(
    "--force", is_flag=True, help="Replace files that `publish` did not write or that were changed afterwards."
)
@with_root
def publish(root: Path, folder: Path, references: str | None, url: str | None, force: bool) -> int:
    """Write the repository that students clone, or bring it up to date.

    The repository contains the released notebooks, the package without the modules that students build, the students'
    commands, and the files for conda, pip and Binder. It contains no solutions, hidden checks or history. Other files
    in the folder, such as .git, are kept.
    """
    from autograder.course.published_repository import publish as write

    print(write(root, folder.resolve(), references=references, url=url, force=force))
    return OK

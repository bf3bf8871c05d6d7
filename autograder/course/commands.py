"""The commands for the authors of the course: export and lint."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from autograder.course.nbgrader_settings import FAILED, OK, with_root
from tinybench.support.basics.numbers import number_of, plural


@click.command()
@click.argument("notebooks", nargs=-1, metavar="[MODULES]...")
@click.option("--check", is_flag=True, help="Write nothing, and exit with 1 if a file would change.")
@with_root
def export(root: Path, notebooks: Sequence[str], check: bool) -> int:
    """Write tinybench/ from the notebooks.

    Exports all notebooks if none is named. MODULES are numbers, names and ranges such as 01 02_timer 05-07. The command
    copies the cells tagged export without their solution markers. It rejects undefined names, magics and side effects.
    """
    from autograder.course.export import changed_files, export_course
    from autograder.files import write_atomically

    files = export_course(root, notebooks)
    changed = changed_files(files)
    for path in changed:
        if not check:
            write_atomically(path, files[path])
        print(f"{path.relative_to(root)}: {'differs from its notebook' if check else 'written'}")
    if check and changed:
        print("run `autograder export` and commit the result", file=sys.stderr)
        return FAILED
    print(f"{number_of(len(files), 'file')}, {len(changed)} changed")
    return OK


@click.command()
@click.option("--fix", is_flag=True, help="Clear outputs and unknown metadata, and set cell ids.")
@with_root
def lint(root: Path, fix: bool) -> int:
    """Check that the course's notebooks are clean.

    A clean notebook has no outputs, stable cell ids and well-formed markers.
    """
    from autograder.course.lint import lint_notebook
    from autograder.course.notebook import course_notebooks

    notebooks = list(course_notebooks(root))
    found = [line for path in notebooks for line in lint_notebook(path, fix=fix)]
    print(
        "\n".join(found)
        if found
        else f"{number_of(len(notebooks), 'notebook')} {plural(len(notebooks), 'is', 'are')} clean"
    )
    return FAILED if found else OK

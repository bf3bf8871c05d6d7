"""The commands for students: lab, build, status, borrow, save and restore."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from autograder.course.nbgrader_settings import ASSERTING, OK, PACKAGE, is_students


def with_student_folder(command: Callable[..., int]) -> Callable[..., int]:
    """Pass the student's folder to a command as its first argument.

    Search for the folder from the current folder upwards, or in the course that ``--root`` names.
    """

    @functools.wraps(command)
    def found(*args: Any, **options: Any) -> int:
        from autograder.course.student_package import student_folder

        named = click.get_current_context().find_root().params["root"]
        return command(student_folder(Path(named) if named else None), *args, **options)

    return found


MODULES = click.argument("modules", nargs=-1, required=True, metavar="MODULES...")


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, metavar="[ARGUMENTS]...", type=click.UNPROCESSED)
@with_student_folder
def lab(student: Path, arguments: Sequence[str]) -> int:
    """Open JupyterLab on the map of the course.

    ARGUMENTS are those of `jupyter lab`, such as --no-browser. The sidebars are closed at first; click on their icons
    to open them.
    """
    from autograder.course.student_lab import run

    run(student, arguments)
    return OK


@click.command()
@MODULES
@with_student_folder
def build(student: Path, modules: Sequence[str]) -> int:
    """Put modules from the student's notebooks into the student's tinybench package.

    MODULES are numbers, names and ranges such as 01 02_timer 05-07. The visible checks run first. If one fails, the
    module's file is not changed.
    """
    from autograder.course.notebook import chosen, optional

    here = Path.cwd()
    if modules == (here.name,):
        return _build(here)
    there = {path.stem for path in student.glob("*/*.ipynb") if path.stem == path.parent.name}
    names = chosen(modules, there)
    extra = {name for name in optional(there) if not {name, name.partition("_")[2]} & {*modules}}
    return max(_build(student / name) for name in names if name not in extra)


def _build(folder: Path) -> int:
    """Build one module in a separate process, and return the exit code."""
    assignment = folder.name
    package = folder.parent / PACKAGE
    if not is_students(package):
        print(f"{folder} is not in a student's folder (no tinybench/ of a student next to it): nothing to build")
        return OK
    # a subprocess, in which the student's package takes precedence over any other installed `tinybench`
    path = os.pathsep.join(filter(None, [str(package.parent), os.environ.get("PYTHONPATH")]))
    words = [sys.executable, "-m", "autograder.course.module_build", str(folder / f"{assignment}.ipynb"), str(package)]
    run = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **ASSERTING, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        errors="replace",
    )
    print(run.stdout, end="")
    print(run.stderr, end="", file=sys.stderr)
    return run.returncode


@click.command()
@with_student_folder
def status(student: Path) -> int:
    """Show who wrote each module of the package, and how many checks of its notebook pass now."""
    from autograder.course.student_package import status as whose_modules

    for name, whose in whose_modules(student):
        print(f"{name:<16} {whose}")
    return OK


@click.command()
@MODULES
@click.option("--force", is_flag=True, help="Also replace the student's own modules, and keep them as backups.")
@with_student_folder
def borrow(student: Path, modules: Sequence[str], force: bool) -> int:
    """Add the reference solutions of modules to the package, for those who study alone.

    MODULES are numbers, names and ranges such as 01 02_timer 05-07. You can then do later modules without building
    these. The last line names further modules that the borrowed ones need. `status` shows which modules are borrowed.
    """
    from autograder.course.student_package import borrow as take

    print(take(student, modules, force=force))
    return OK


@click.command()
@click.argument("file", type=Path)
@with_student_folder
def save(student: Path, file: Path) -> int:
    """Save all of the student's work in one zip file.

    The file contains the notebooks that the student worked on, the modules that the student built, and a list of the
    checks that have passed. It contains no references.
    """
    from tinybench.course.backup import save as write

    print(write(file, student))
    return OK


@click.command()
@click.argument("file", type=Path)
@click.option("--programs", is_flag=True, help="Also restore files that Python may import, such as helpers.py.")
@with_student_folder
def restore(student: Path, file: Path, programs: bool) -> int:
    """Restore work from a file that `save` wrote.

    Files that are replaced are kept in another zip file.
    """
    from tinybench.course.backup import restore as read

    print(read(file, student, programs=programs))
    return OK

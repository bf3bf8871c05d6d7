"""The `autograder` command."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from autograder.course.config import with_root
from autograder.sandbox.bubblewrap import SandboxUnavailable

OK, FAILED = 0, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 something is wrong; wrong usage exits with 2."""
    try:
        return cli.main(arguments, prog_name="autograder", standalone_mode=False) or OK
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (SandboxUnavailable, OSError, ValueError) as error:
        print(f"autograder: {error}", file=sys.stderr)
        return FAILED
    except click.Abort:
        print("autograder: stopped", file=sys.stderr)
        return 130


class InOrder(click.Group):
    """Lists its commands in the order in which a course needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)


@click.group(cls=InOrder, epilog="Exit codes: 0 done, 1 something is wrong (and said), 2 wrong usage.")
@click.option("--root", metavar="FOLDER", help="The course's folder; found from the current folder otherwise.")
def cli(root: str | None) -> None:
    """From notebook to grade: export the package, release the course, grade it."""


def one_assignment(command: Callable[..., int]) -> Callable[..., int]:
    """Let an assignment be named as here, or as in nbgrader's commands."""

    @click.argument("assignment", metavar="NN_name", required=False)
    @click.option("--assignment", "named", metavar="NN_name", help="The same, as nbgrader writes it.")
    @functools.wraps(command)
    def once(*args: Any, assignment: str | None, named: str | None, **options: Any) -> int:
        if bool(assignment) == bool(named):
            raise click.UsageError("name one assignment: NN_name, such as 03_latency, or --assignment NN_name")
        return command(*args, assignment or named, **options)

    return once


def print_json(value: Any) -> None:
    """Print dataclasses as JSON."""
    print(json.dumps([asdict(each) for each in value] if isinstance(value, list) else asdict(value), indent=1))


@cli.command()
@click.argument("notebooks", nargs=-1, metavar="[NN_name]...")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file would change.")
@with_root
def export(root: Path, notebooks: Sequence[str], check: bool) -> int:
    """Write tinybench/ from the notebooks.

    All notebooks when none is named. Takes the cells tagged export without solution markers; refuses undefined names,
    magics and side effects.
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
    print(f"{len(files)} files, {len(changed)} changed")
    return OK


@cli.command()
@click.option("--fix", is_flag=True, help="Clear outputs and foreign metadata, set ids.")
@with_root
def lint(root: Path, fix: bool) -> int:
    """Check that the course's notebooks are clean.

    No outputs, stable ids, markers in order.
    """
    from autograder.course.lint import lint as problems_of
    from autograder.course.notebook import course_notebooks

    notebooks = list(course_notebooks(root))
    found = [line for path in notebooks for line in problems_of(path, fix=fix)]
    print("\n".join(found) if found else f"{len(notebooks)} notebooks are clean")
    return FAILED if found else OK


@cli.command()
@click.argument("assignments", nargs=-1, metavar="[NN_name]...")
@click.option("--force", is_flag=True, help="Replace changed student notebooks (a backup is kept).")
@click.option("--no-verify", is_flag=True, help="Do not run the released notebooks.")
@with_root
def release(root: Path, assignments: Sequence[str], force: bool, no_verify: bool) -> int:
    """Build the student notebooks; untouched, they score 0.

    All when none is named. Runs each to prove it, and writes course/release/ and student/; a notebook the student has
    changed stays.
    """
    from autograder.course.release import release_all

    done = release_all(root, assignments, force=force, verify=not no_verify)
    print(f"{len(done)} assignments are in student/; start with student/{done[0]}/{done[0]}.ipynb")
    return OK


@cli.command()
@click.argument("assignment", metavar="NN_name")
@with_root
def build(root: Path, assignment: str) -> int:
    """Put a module of the student's into their tinybench package.

    Runs the visible checks first; the file stays as it was when one fails.
    """
    from autograder.course.build import build as build_module

    here = Path.cwd()
    folder = here if here.name == assignment else root / "student" / assignment
    package = folder.parent / "tinybench"
    if not package.is_dir() or folder.parent == root / "modules":
        print(f"{folder} is not in a student's folder (no tinybench/ next to it): nothing to build")
        return OK
    os.chdir(folder)
    print(build_module(folder / f"{assignment}.ipynb", package))
    return OK


@cli.command()
@with_root
def status(root: Path) -> int:
    """Show which modules of the package are the student's own."""
    from autograder.course.build import status as whose_modules

    for name, whose in whose_modules(root):
        print(f"{name:<16} {whose}")
    return OK


@cli.command()
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option("--port", type=int, help="The port; a free one otherwise.")
@with_root
def course(root: Path, no_browser: bool, port: int | None) -> int:
    """Start JupyterLab with the course and nbgrader's pages.

    Also a local exchange and the leaderboard; prints the addresses.
    """
    from autograder.serve import serve

    return serve(root, browser=not no_browser, port=port)


@cli.command()
@one_assignment
@click.option("--student", metavar="ID", help="Only this student.")
@click.option("--regrade", is_flag=True, help="Grade again; if that is killed, the command without it goes on.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--workers", type=int, help="Local processes (default: one for each core).")
@click.option("--scheduler", metavar="tcp://…", help="Grade on a Dask cluster instead, one thread a worker.")
@click.option(
    "--unsafe",
    is_flag=True,
    help="Run submissions as you, without a sandbox: their code can then read and change whatever you can, the "
    "gradebook included; for people you trust.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcomes as JSON.")
@with_root
def grade(root: Path, assignment: str, as_json: bool, **options: Any) -> int:
    """Grade the collected submissions of an assignment.

    Enters them into the gradebook. Each runs in a sandbox and is judged from outside; what is broken costs its author
    only, with the reason in the feedback. If it is killed, the same command goes on where it stopped.
    """
    from autograder.grading.grade import grade as grade_all
    from autograder.grading.grade import print_grades

    if options["unsafe"]:
        print("unsafe: submissions run as you; they can read and change the gradebook and your files", file=sys.stderr)
    outcomes = grade_all(root, assignment, progress=not as_json, **options)
    print_json(outcomes) if as_json else print_grades(outcomes)
    return FAILED if any(outcome.score is None for outcome in outcomes) and not options["dry_run"] else OK


@cli.command()
def doctor() -> int:
    """Say whether this machine can confine untrusted code.

    Lists what grading needs, what is missing, and what to install.
    """
    from autograder.sandbox.bubblewrap import doctor as findings
    from autograder.sandbox.bubblewrap import unavailable

    for name, works, line in findings():
        print(f"{'ok     ' if works else 'MISSING'}  {name:<12} {line}")
    if unavailable():
        print("this machine cannot confine submissions: `autograder grade` refuses here")
        return FAILED
    print("this machine can grade submissions of strangers")
    return OK


@cli.command()
@one_assignment
@click.option("--student", metavar="ID", help="Only this student.")
@with_root
def feedback(root: Path, assignment: str, student: str | None) -> int:
    """Write the students' feedback pages of an assignment."""
    from autograder.grading.grade import feedback as write_pages

    pages = write_pages(root, assignment, student=student)
    print(f"{len(pages)} pages under {root / 'course' / 'feedback'}")
    return OK


@cli.command()
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


@cli.command()
@one_assignment
@click.option("--top", type=int, default=10, metavar="N", help="How many pairs.", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the pairs as JSON.")
@click.option("--csv", is_flag=True, help="Print the pairs as CSV.")
@with_root
def similarity(root: Path, assignment: str, top: int, as_json: bool, csv: bool) -> int:
    """List the submissions whose solutions are most alike.

    Compares what students wrote, whatever its names, comments and layout, without the given code and without what most
    of the class writes. A hint where to look, never a mark.
    """
    from autograder.grading.similarity import as_csv, report_lines
    from autograder.grading.similarity import similarity as most_alike

    if as_json and csv:
        raise click.UsageError("--json or --csv, not both")
    report = most_alike(root, assignment, top)
    if as_json:
        print_json(report)
    else:
        print(as_csv(report) if csv else "\n".join(report_lines(report)), end="" if csv else "\n")
    return OK


@cli.command()
@click.option("--out", default="demo", metavar="FOLDER", help="The folder.", show_default=True)
@with_root
def demo(root: Path, out: str) -> int:
    """Grade a small class and benchmark a model, headless.

    Takes about two minutes and leaves everything in a folder of its own.
    """
    from autograder.demo import demo as run_demo

    return run_demo(root, Path(out).resolve())


@cli.command(
    "leaderboard",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
    short_help="The Olympics: serve the leaderboard, measure and enter models.",
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@with_root
def leaderboard(root: Path, words: Sequence[str]) -> int:
    """Stand in until the leaderboard's own commands are click's too."""
    import argparse

    from autograder.leaderboard.commands import add_commands

    parser = argparse.ArgumentParser(prog="autograder")
    add_commands(parser.add_subparsers())
    options = parser.parse_args(["leaderboard", *words])
    return int(options.command(root, options))


if __name__ == "__main__":
    sys.exit(main())

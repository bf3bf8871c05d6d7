"""The `autograder` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from autograder.course import commands as of_course
from autograder.course import student_commands as of_student
from autograder.course.config import FAILED, OK, with_root
from autograder.grading import commands as of_grading
from autograder.leaderboard.commands import leaderboard
from autograder.sandbox import bubblewrap


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 something is wrong; wrong usage exits with 2."""
    try:
        return commands.main(arguments, prog_name="autograder", standalone_mode=False) or OK
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (bubblewrap.SandboxUnavailable, OSError, ValueError) as error:
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
def commands(root: str | None) -> None:
    """From notebook to grade: export the package, release the course, grade it."""


@click.command()
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option("--port", type=int, help="The port; a free one otherwise.")
@with_root
def course(root: Path, no_browser: bool, port: int | None) -> int:
    """Start JupyterLab with the course and nbgrader's pages.

    Also a local exchange and the leaderboard; prints the addresses.
    """
    from autograder.serve import serve_course

    return serve_course(root, browser=not no_browser, port=port)


@click.command()
@click.option("--out", default="demo", metavar="FOLDER", help="The folder.", show_default=True)
@with_root
def demo(root: Path, out: str) -> int:
    """Grade a small class and benchmark a model, headless.

    Takes about two minutes and leaves everything in a folder of its own.
    """
    from autograder.demo import run_demo

    return run_demo(root, Path(out).resolve())


IN_ORDER = (
    *(
        of_course.export,
        of_course.lint,
        of_course.release,
        of_student.build,
        of_student.status,
        of_student.borrow,
        course,
    ),
    *(of_grading.grade, of_grading.doctor, of_grading.feedback, of_grading.package, of_grading.similarity),
    *(demo, leaderboard),
)
for command in IN_ORDER:
    commands.add_command(command)


if __name__ == "__main__":
    sys.exit(main())

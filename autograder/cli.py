"""The `autograder` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

import click

from autograder.course.nbgrader_settings import FAILED, OK
from autograder.sandbox import bubblewrap
from tinybench import __version__
from tinybench.shell.streams import escape_unprintable

# Each command and the modules that may define it, in the order in which a course needs the commands. A student's folder
# lacks some of these modules. There, `leaderboard` comes from its second module, which is for students.
COMMANDS = {
    "export": ("autograder.course.commands",),
    "lint": ("autograder.course.commands",),
    "release": ("autograder.release_commands",),
    "publish": ("autograder.release_commands",),
    "lab": ("autograder.course.student_commands",),
    "build": ("autograder.course.student_commands",),
    "status": ("autograder.course.student_commands",),
    "borrow": ("autograder.course.student_commands",),
    "save": ("autograder.course.student_commands",),
    "restore": ("autograder.course.student_commands",),
    "course": ("autograder.course_command",),
    "grade": ("autograder.grading.commands",),
    "doctor": ("autograder.grading.commands",),
    "feedback": ("autograder.grading.commands",),
    "package": ("autograder.grading.commands",),
    "similarity": ("autograder.grading.commands",),
    "demo": ("autograder.demo",),
    "leaderboard": ("autograder.leaderboard.commands", "autograder.leaderboard.entry_commands"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Return 0 after success, 1 after an error, 130 if interrupted. After wrong usage, exit with 2."""
    escape_unprintable()
    try:
        return commands.main(arguments, prog_name="autograder", standalone_mode=False) or OK
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (bubblewrap.SandboxUnavailable, ModuleNotFoundError, OSError, ValueError) as error:
        print(f"autograder: {error}", file=sys.stderr)
        return FAILED
    except click.Abort:
        print("autograder: stopped", file=sys.stderr)
        return 130


class Wings(click.Group):
    """A group of the commands whose modules are present. A module is imported when one of its commands is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands whose modules are present."""
        return [name for name in COMMANDS if _home(name)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name, or None if there is none."""
        home = _home(cmd_name)
        there = vars(import_module(home)).values() if home else ()
        return next((each for each in there if isinstance(each, click.Command) and each.name == cmd_name), None)


def _home(command: str) -> str | None:
    return next((module for module in COMMANDS.get(command, ()) if _is_here(module)), None)


def _is_here(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the module's package is missing, too
        return False


@click.group(cls=Wings, epilog="Exit codes: 0 success, 1 an error that is reported, 2 wrong usage.")
@click.option("--root", metavar="FOLDER", help="Set the course's folder. By default, search upwards from here.")
@click.version_option(__version__, prog_name="autograder")
def commands(root: str | None) -> None:
    """Export the package from the notebooks, release the course, and grade it."""


if __name__ == "__main__":
    sys.exit(main())

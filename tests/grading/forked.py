"""Commands as in a shell, without a new interpreter for each: a fork of this one, which has imported what they need."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from nbgrader.apps import nbgraderapp
from traitlets.config import SingletonConfigurable

from autograder.cli import main

SHELL = re.compile(r"[|<>;&*?$]")


def _nbgrader(words: list[str]) -> int:
    sys.argv = ["nbgrader", *words]
    nbgraderapp.main()
    return 0


PROGRAMS: dict[str, Callable[[list[str]], int]] = {"autograder": main, "nbgrader": _nbgrader}


def can_fork(command: str) -> bool:
    """Return whether a command is one of `PROGRAMS`, and nothing is left to a shell."""
    return command.partition(" ")[0] in PROGRAMS and not SHELL.search(command)


def forked(folder: Path, command: str, environment: Mapping[str, str]) -> str:
    """Run a command that `can_fork` in a folder, and return what it prints."""
    program, *words = shlex.split(command)
    with tempfile.TemporaryFile() as output:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if not child:
            _become(PROGRAMS[program], words, folder, environment, output.fileno())
        os.waitpid(child, 0)
        output.seek(0)
        return output.read().decode()


def _below(kind: type[SingletonConfigurable]) -> Iterator[type[SingletonConfigurable]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _below(each)


def _become(
    program: Callable[[list[str]], int], words: list[str], folder: Path, environment: Mapping[str, str], output: int
) -> None:
    """Be the command in this process, and end it."""
    code = 1
    try:
        for number in (1, 2):
            os.dup2(output, number)
        sys.stdout, sys.stderr = (open(number, "w", buffering=1, closefd=False) for number in (1, 2))  # noqa: SIM115
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        for kind in _below(SingletonConfigurable):
            kind._instance = None
        code = program(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

"""Solutions that are right on the asserts of their check only: they look at no more of a sequence than these show.

``python -m tests.mutants.overfit [NN_name ...]`` makes such a solution of each piece of the reference, and prints the
pieces whose proof in `passed` is right all the same: a student would get a tick for wrong code.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import io
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from autograder.course import sealed_solutions
from autograder.course.assignment import Assignment
from autograder.course.module_build import needed_cells
from autograder.course.notebook import Cell, course_notebooks, read_notebook
from tests.course.perfect_student import ROOT
from tinybench.course import check_feedback

LONG = 20  # nobody cuts there by mistake


class Short:
    """A piece that looks, once the asserts are over, at no more of a sequence than the longest that they gave it."""

    def __init__(self) -> None:
        self.asserts, self.longest = True, 0

    def of(self, value: Any) -> Any:
        """Return a function, property or class method that cuts its input; anything else as it is."""
        if isinstance(value, property):
            return property(self.of(value.fget), doc=value.__doc__)
        if isinstance(value, staticmethod | classmethod):
            return type(value)(self.of(value.__func__))
        if isinstance(value, type) or not callable(value):
            return value

        @functools.wraps(value)
        def short(*args: Any, **keywords: Any) -> Any:
            return value(*map(self.cut, args), **{name: self.cut(each) for name, each in keywords.items()})

        return short

    def cut(self, value: Any) -> Any:
        """Return an argument: its beginning, if it is a list, an array or an iterator, as series of values are."""
        if isinstance(value, Iterator):
            return iter(self.cut(list(value)))
        if not isinstance(value, list) and not (isinstance(value, np.ndarray) and value.ndim):
            return value
        if self.asserts:
            self.longest = max(self.longest, len(value))
        return value[: self.longest] if len(value) > self.longest else value


def survivors(module: str) -> Iterator[str]:
    """Yield the pieces of a module, run in the current folder, that prove right although they cut their input."""
    path = ROOT / "modules" / module / f"{module}.ipynb"
    Assignment.read(path).lay_out(Path.cwd())
    about, space = sealed_solutions.about(path), dict[str, Any]({"__name__": "__main__"})
    for cell in needed_cells(read_notebook(path)):
        if not cell.is_check:
            exec(compile(cell.source, f"<{cell.id}>", "exec"), space)
        elif not about[cell.id]["questions"]:
            right = proof(cell, space, Short())
            for piece in about[cell.id]["pieces"]:
                short = Short()
                if sabotaged(cell, space, piece, short) == right and 0 < short.longest < LONG:
                    yield piece


def sabotaged(cell: Cell, space: dict[str, Any], piece: str, short: Short) -> str:
    """Return what a check proves if one piece cuts its input."""
    owner, _, name = piece.rpartition(".")
    original = vars(space[owner])[name] if owner else space[name]
    put: Callable[[str, Any], None] = functools.partial(setattr, space[owner]) if owner else space.__setitem__
    put(name, short.of(original))
    try:
        return proof(cell, space, short)
    finally:
        put(name, original)


def proof(cell: Cell, space: dict[str, Any], short: Short) -> str:
    """Return what a check proves, or its error."""
    *asserts, last = ast.parse(cell.visible).body
    check_feedback.RECORD["on"] = True
    before = dict(space)
    try:
        exec(compile(ast.Module(asserts, []), f"<{cell.id}>", "exec"), space)
        short.asserts = False
        exec(compile(ast.Module([last], []), f"<{cell.id}>", "exec"), space)
        return str(check_feedback.RECORD["proofs"][cell.id])
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        check_feedback.RECORD.clear()
        space.update(before)


def survivors_of(module: str) -> list[str]:
    """Return the pieces of a module that prove right although they cut their input."""
    quiet = contextlib.redirect_stdout(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), quiet:
        return list(survivors(module))


def main() -> int:
    """Print the pieces that prove right although they cut their input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="NN_name")
    for module in parser.parse_args().modules or [path.stem for path in course_notebooks(ROOT)]:
        print(f"{module}: {', '.join(survivors_of(module)) or 'none'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

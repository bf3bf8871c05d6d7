"""Hidden checks: plain functions over the student's names, one file per module.

A graded cell calls one with ``run("m01_result.t_interval_is_student_t", globals())``. The check gets a namespace in
which only the pieces it `judges` are the student's and all else is the reference; a check without pieces (of an answer
function) gets the student's names as they are. It compares plain values with an independent truth: `agrees`,
`refuses` and their relatives say what was expected and what came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from autograder.checks.answers import CheckFailed
from tinybench.course import graft

Check = Callable[[Any], None]


def judges(*pieces: str, module: str = "") -> Callable[[Check], Check]:
    """Name the pieces of the student's work a check is about, and the module if it has not the notebook's name."""

    def mark(check: Check) -> Check:
        check.pieces, check.module = pieces, module  # type: ignore[attr-defined]
        return check

    return mark


def run(name: str, names: Mapping[str, Any]) -> None:
    """Run one hidden check, such as ``"m01_result.t_interval_is_student_t"``, on the student's namespace.

    Raises CheckFailed if the student's work is wrong, or raises what it should not.
    """
    module = getattr(_check(name), "module", "") or name.partition(".")[0].partition("_")[2]
    home = f"tinybench.{module}"
    judge(name, lambda pieces: graft(home, names, *pieces) if pieces else SimpleNamespace(**names))


def _check(name: str) -> Check:
    file, _, function = name.partition(".")
    return getattr(import_module(f"autograder.checks.{file}"), function)  # type: ignore[no-any-return]


def pieces_of(name: str) -> tuple[str, ...]:
    """Return the pieces that a hidden check is about."""
    return getattr(_check(name), "pieces", ())


def judge(name: str, student: Callable[[tuple[str, ...]], Any]) -> None:
    """Run one hidden check on what `student` returns for the pieces judged; see `run`."""
    check, pieces = _check(name), pieces_of(name)
    try:
        check(_Names(student(pieces)))
    except CheckFailed as failure:
        raise failure.with_traceback(None) from None
    except Exception as error:
        what = f"{', '.join(pieces)} raised " if pieces else ""
        raise CheckFailed(f"{what}{type(error).__name__}: {error}") from None


class _Names:
    """The student's names; a check fetches each function once, because each fetch from the sandbox is a message."""

    def __init__(self, names: Any) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._names, name)
        if callable(value):
            self.__dict__[name] = value
        return value

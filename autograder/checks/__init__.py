"""Hidden checks: plain functions that test the student's names, one file per module.

A graded cell calls a check with ``run("m01_result.t_interval_is_student_t", globals())``. The check receives a
namespace in which only the pieces that it `judges` are the student's; everything else is the reference. A check
without pieces (of an answer function) receives the student's names unchanged. The check compares plain values with an
independent truth: `agrees`, `refuses` and related functions report the expected and the actual value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from autograder.checks.plain_answers import CheckFailed
from tinybench.course import graft

Check = Callable[[Any], None]


def judges(*pieces: str, module: str = "") -> Callable[[Check], Check]:
    """Mark a check with the pieces of the student's work that it tests, and with their module.

    Without `module`, it is the module after which the notebook is named.
    """

    def mark(check: Check) -> Check:
        check.pieces, check.module = pieces, module  # type: ignore[attr-defined]
        return check

    return mark


def run(name: str, names: Mapping[str, Any]) -> None:
    """Run one hidden check, such as ``"m01_result.t_interval_is_student_t"``, on the student's namespace.

    Raise CheckFailed if the student's work is wrong or raises an unexpected exception.
    """
    module = getattr(_check(name), "module", "") or name.partition(".")[0].partition("_")[2]
    home = f"tinybench.{module}"
    judge(name, lambda pieces: graft(home, names, *pieces) if pieces else SimpleNamespace(**names))


def _check(name: str) -> Check:
    file, _, function = name.partition(".")
    return getattr(import_module(f"autograder.checks.{file}"), function)  # type: ignore[no-any-return]


def pieces_of(name: str) -> tuple[str, ...]:
    """Return the pieces of the student's work that a hidden check tests."""
    return getattr(_check(name), "pieces", ())


def judge(name: str, student: Callable[[tuple[str, ...]], Any]) -> None:
    """Run one hidden check on the namespace that `student` returns for the pieces of the check; see `run`."""
    check, pieces = _check(name), pieces_of(name)
    try:
        check(_Names(student(pieces)))
    except CheckFailed as failure:
        raise failure.with_traceback(None) from None
    except Exception as error:
        what = f"{', '.join(pieces)} raised " if pieces else ""
        raise CheckFailed(f"{what}{type(error).__name__}: {error}") from None


class _Names:
    """The student's names. Each function is fetched once only, because a fetch from the sandbox costs a message."""

    def __init__(self, names: Any) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._names, name)
        if callable(value):
            self.__dict__[name] = value
        return value

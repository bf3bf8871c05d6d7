"""Hidden checks: plain functions that test what a student writes in a notebook, one file per module.

A graded cell calls a check with ``run("m01_result.t_interval_is_student_t", globals())``. The functions and methods
that a student writes are called *pieces*, and `judges` lists the pieces that a check tests. The check receives a
namespace that holds the student's version of these pieces and the reference version of everything else. A check without
pieces, such as a check of an answer to a question, receives the student's names unchanged. Each check compares plain
values with independently computed ones. `agrees`, `refuses` and related functions report the expected and the actual
value.
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
    """Mark a check with the pieces that it tests (functions and methods written by the student) and with their module.

    Without `module`, the module is named by the file of the check: ``m01_result`` stands for `tinybench.result`.
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
    """Return the names of the functions and methods written by the student that a hidden check tests."""
    return getattr(_check(name), "pieces", ())


def judge(name: str, student: Callable[[tuple[str, ...]], Any]) -> None:
    """Run one hidden check on the namespace that `student` returns for the pieces (functions and methods) it tests.

    Raise CheckFailed under the same conditions as `run`.
    """
    check, pieces = _check(name), pieces_of(name)
    try:
        check(_Names(student(pieces)))
    except CheckFailed as failure:
        raise failure.with_traceback(None) from None
    except Exception as error:
        what = f"{', '.join(pieces)} raised " if pieces else ""
        raise CheckFailed(f"{what}{type(error).__name__}: {error}") from None


class _Names:
    """A cached view of the student's names.

    Each function is fetched only once, because each fetch from the sandbox costs a message.
    """

    def __init__(self, names: Any) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._names, name)
        if callable(value):
            self.__dict__[name] = value
        return value

"""Hidden checks: plain functions over the student's names, one file per module.

A graded cell calls one with ``run("m01_result.t_interval_is_student_t", globals())``. The check gets a namespace in
which only the pieces it `judges` are the student's and all else is the reference; a check without pieces (of an answer
function) gets the student's names as they are. It compares plain values with an independent truth, and reports by
`expect` and its relatives.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from tinybench.course import graft

Check = Callable[[Any], None]
SEED: ContextVar[int | None] = ContextVar("SEED", default=None)  # each thread of a Dask worker has its own submission


class CheckFailed(AssertionError):
    """A check's verdict in one friendly line; its traceback shows no source."""

    def _render_traceback_(self) -> list[str]:
        return [f"CheckFailed: {self}"]


def judges(*pieces: str) -> Callable[[Check], Check]:
    """Name the pieces of the student's work a check is about."""

    def mark(check: Check) -> Check:
        check.pieces = pieces  # type: ignore[attr-defined]
        return check

    return mark


def run(name: str, names: Mapping[str, Any]) -> None:
    """Run one hidden check.

    Parameters
    ----------
    name
        File and function, such as ``"m01_result.t_interval_is_student_t"``.
    names
        The student's namespace.

    Raises
    ------
    CheckFailed
        If the student's work is wrong, or raises what it should not.
    """
    judge(name, lambda module, pieces: graft(module, names, *pieces) if pieces else SimpleNamespace(**names))


def judge(name: str, student: Callable[[str, tuple[str, ...]], Any]) -> None:
    """Run one hidden check on what `student` returns for a module and the pieces judged; see `run`."""
    file, _, function = name.partition(".")
    check: Check = getattr(import_module(f"autograder.checks.{file}"), function)
    pieces: tuple[str, ...] = getattr(check, "pieces", ())
    try:
        check(student(f"tinybench.{file.partition('_')[2]}", pieces))
    except CheckFailed as failure:
        raise failure.with_traceback(None) from None
    except Exception as error:
        what = f"{', '.join(pieces)} raised " if pieces else ""
        raise CheckFailed(f"{what}{type(error).__name__}: {error}") from None


class FakeClock:
    """A clock that stands still until something of the check moves `now`.

    From the sandbox, of this and any other fake only methods and properties can be had, and the attributes that it
    names in `shows`.

    Attributes
    ----------
    standing
        What it shows until then, or None if its readings cannot be known beforehand. It goes along with each message
        to the sandbox, where reading it then costs no message of its own.
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    @property
    def standing(self) -> float | None:
        return self.now


def draw() -> np.random.Generator:
    """Return the generator from which a check draws its inputs; the grader sets `SEED`, or the environment."""
    seed = SEED.get()
    return np.random.default_rng(int(os.environ.get("TINYBENCH_CHECK_SEED", "20")) if seed is None else seed)


def words(rng: np.random.Generator, number: int) -> list[str]:
    """Return made-up names, all different and none of them a word, for inputs whose names are told back."""
    picked = rng.choice(26**4, number, replace=False).tolist()
    return ["".join(chr(97 + n // 26**place % 26) for place in range(4)) + str(n % 10) for n in picked]


def expect(condition: bool, message: str) -> None:
    """Fail with a message that says what was expected, what came, and the likely cause."""
    if not condition:
        raise CheckFailed(message)


def number(value: Any, what: str) -> float:
    """Return a plain float, or fail with a message naming what should have been one."""
    try:
        plain = float(value)
    except (TypeError, ValueError):
        raise CheckFailed(f"{what} should be a number, not {type(value).__name__}") from None
    return plain


def close(value: Any, truth: float, what: str, *, cause: str = "", rel: float = 1e-9, abs: float = 0.0) -> None:
    """Fail unless a value is near its truth."""
    plain = number(value, what)
    expect(
        math.isclose(plain, truth, rel_tol=rel, abs_tol=abs) or (math.isnan(plain) and math.isnan(truth)),
        f"{what}: expected {truth:.6g}, got {plain:.6g}" + (f"; {cause}" if cause else ""),
    )


def all_close(
    values: Any, truths: Sequence[float], what: str, *, cause: str = "", rel: float = 1e-9, abs: float = 0.0
) -> None:
    """Fail unless a sequence has the length and, one by one, the values of its truth."""
    try:
        plain = [float(value) for value in values]
    except (TypeError, ValueError):
        raise CheckFailed(f"{what} should be a sequence of numbers, not {type(values).__name__}") from None
    expect(len(plain) == len(truths), f"{what}: expected {len(truths)} numbers, got {len(plain)}")
    for index, (value, truth) in enumerate(zip(plain, truths, strict=True)):
        close(value, truth, f"{what}[{index}]", cause=cause, rel=rel, abs=abs)


def raises(
    error: type[Exception], call: Callable[..., Any], what: str, *, mentions: Sequence[str] = (), cause: str = ""
) -> None:
    """Fail unless a call raises this error, with every given word in its message."""
    wanted = f"{what} should raise {error.__name__}"
    try:
        call()
    except error as raised:
        for word in mentions:
            expect(word in str(raised), f"{wanted} with {word!r} in its message, which is {str(raised)!r}")
        return
    except Exception as raised:
        raise CheckFailed(f"{wanted}, not {type(raised).__name__}: {raised}") from None
    raise CheckFailed(wanted + (f"; {cause}" if cause else ""))

"""Helper functions for checks: random inputs, fake clocks, and comparisons with known correct values ("truths").

Each check file imports all of these helpers with ``from autograder.checks.check_helpers import *``.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from itertools import combinations
from numbers import Real
from typing import Any

import numpy as np

from autograder.checks.plain_answers import CheckFailed, entries, flag, items, number, numbers, plain, text
from autograder.sandbox.rpc.proxy import Answer
from tinybench.support.basics.dependence import is_dependent

__all__ = [
    "CheckFailed", "FakeClock", "agree_at_once", "agrees", "draw", "each", "entries", "expect", "flag", "holds",
    "items", "number", "numbers", "plain", "quiet", "refuses", "same", "shown", "shuffled", "text", "words",
]  # fmt: skip
# a context variable, because each thread of a Dask worker grades its own submission
SEED: ContextVar[int | None] = ContextVar("SEED", default=None)


class FakeClock:
    """A clock that stands still until the check changes `now`.

    Code in the sandbox can use only the methods and properties of a fake such as this one, and the attributes that the
    fake lists in `shows`.

    Attributes
    ----------
    simulated
        Always True, so that `clock_step` does not wait for the clock to move.
    standing
        The reading until the check changes `now`, or None if readings cannot be known beforehand. Each message to the
        sandbox carries this reading, so that reading the clock there costs no message of its own.
    """

    simulated = True

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    @property
    def standing(self) -> float | None:
        return self.now


def draw() -> np.random.Generator:
    """Return the random generator from which a check draws its inputs.

    The grader sets its seed in `SEED`. Without `SEED`, the environment variable TINYBENCH_CHECK_SEED gives the seed.
    """
    seed = SEED.get()
    return np.random.default_rng(int(os.environ.get("TINYBENCH_CHECK_SEED", "20")) if seed is None else seed)


def shuffled(values: np.ndarray) -> np.ndarray:
    """Shuffle values until they have no detectable autocorrelation, and return them.

    If there are several rows, measured in the same rounds, all rows get the same new order, until neither a row nor the
    ratio of two rows is autocorrelated. Otherwise, the code under test would replace the values, or the ratios of two
    rows, by medians of batches.
    """
    rng = np.random.default_rng(0)

    def series() -> list[np.ndarray]:
        rows = np.atleast_2d(values)
        return [*rows, *(a / b for a, b in combinations(rows, 2))]

    while any(is_dependent(one.tolist()) for one in series()):
        values = values[..., rng.permutation(values.shape[-1])]
    return values


def words(rng: np.random.Generator, number: int) -> list[str]:
    """Return `number` different made-up names, none of them a real word, for inputs whose names the output shows."""
    picked = rng.choice(26**4, number, replace=False).tolist()
    return ["".join(chr(97 + n // 26**place % 26) for place in range(4)) + str(n % 10) for n in picked]


def quiet(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function and suppress its warnings, which stock nbgrader would penalise as output on stderr.

    For example, NumPy and SciPy rightly warn about the standard deviation of a single value.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args)


def expect(condition: bool, message: str) -> None:
    """Raise CheckFailed with this message unless the condition holds.

    The message should give the expected value, the actual value and the likely cause of the difference.
    """
    if not condition:
        raise CheckFailed(message)


def same(value: Any, truth: Any, what: str, cause: str = "", *, rel: float = 1e-9, abs: float = 0.0) -> None:
    """Raise CheckFailed unless `value` equals `truth`: numbers within a tolerance, everything else exactly.

    The elements of sequences and mappings are compared by the same rule. The type of `truth` decides how to compare.
    The value's own methods supply its content only, never the result of the comparison.
    """
    value, truth = plain(value), plain(truth)
    within, because = partial(same, cause=cause, rel=rel, abs=abs), f"; {cause}" if cause else ""
    # build messages only where values differ, because there are thousands of values
    if isinstance(truth, Mapping):
        value = entries(value, what)
        if set(value) != set(truth):
            raise CheckFailed(f"{what}: expected the keys {shown([*truth])}, got {shown([*value])}{because}")
        for key, part in truth.items():
            within(value[key], part, f"{what}[{key!r}]")
    elif isinstance(truth, list | tuple):
        parts = items(value, what)
        if len(parts) != len(truth):
            raise CheckFailed(f"{what}: expected {shown(truth)}, of length {len(truth)}, got {len(parts)}")
        for index, (part, true) in enumerate(zip(parts, truth, strict=True)):
            within(part, true, f"{what}[{index}]")
    elif isinstance(truth, Real) and not isinstance(truth, bool):
        told, true = number(value, what), float(truth)
        if not (math.isclose(told, true, rel_tol=rel, abs_tol=abs) or (math.isnan(told) and math.isnan(true))):
            digits = 6 if f"{true:.6g}" != f"{told:.6g}" else 17
            raise CheckFailed(f"{what}: expected {true:.{digits}g}, got {told:.{digits}g}{because}")
    else:
        kind: Any = type(truth)
        if not (isinstance(value, kind) and kind.__eq__(truth, value) is True):  # never trust the value's own __eq__
            raise CheckFailed(f"{what}: expected {shown(truth, 300)}, got {shown(value, 300)}{because}")


def holds(value: Any, truths: Mapping[str, Any], what: str, cause: str = "", **near: float) -> None:
    """Raise CheckFailed unless each named entry or attribute of `value` equals its expected value; see `same`."""
    taken = plain(value)
    found = taken if isinstance(taken, dict) else {}
    for name, truth in truths.items():
        part = found[name] if name in found else getattr(value, name, holds)
        expect(part is not holds, f"{what} has no {name!r}" + (f"; {cause}" if cause else ""))
        same(part, truth, f"{what}[{name!r}]" if found else f"{what}.{name}", cause, **near)


def agrees(
    function: Callable[..., Any], oracle: Any, cases: Iterable[Any], cause: str = "", *, what: str = "", **near: float
) -> None:
    """Raise CheckFailed unless a function returns the same value as an independent oracle in every case.

    Parameters
    ----------
    function
        The student's function.
    oracle
        A function of the same arguments, or a single value that is correct in all cases.
    cases
        Each case is a tuple of arguments, a dict of keywords, or a single argument.
    cause
        The likely cause of a difference.
    what
        The description of the call in the message. Without it, the message shows the name and shortened arguments.
    near
        The tolerances `rel` and `abs`.
    """
    for case in cases:
        args, keywords = _arguments(case)
        truth = oracle(*args, **keywords) if callable(oracle) else oracle
        told = what or partial(_call, function, args, keywords)
        _agree(function(*args, **keywords), truth, told, cause, near)


def agree_at_once(
    student: Any, function: Callable[..., Any], truths: Sequence[tuple[Any, Any]], cause: str = "", **near: float
) -> None:  # fmt: skip
    """Raise CheckFailed as `agrees` does, with one message to the sandbox for all cases; see `each`.

    Each of `truths` is a pair: the tuple of arguments, and the value that is correct for them.
    """
    cases = [case for case, _ in truths]
    values = each(student, function, *zip(*cases, strict=True))
    for value, (case, truth) in zip(values, truths, strict=True):
        _agree(value, truth, partial(_call, function, case, {}), cause, near)


def _agree(value: Any, truth: Any, told: str | Callable[[], str], cause: str, near: Mapping[str, float]) -> None:
    try:
        same(value, truth, "", cause, **near)
    except CheckFailed as failure:  # read the name only on failure: each read costs a message
        raise CheckFailed(f"{told if isinstance(told, str) else told()}{failure}") from None


def each(student: Any, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
    """Return what a function returns for each row of arguments, with one message to the sandbox for all of them.

    The student's names must include NumPy as ``np``. Each of `columns` holds one argument of all calls.
    """
    tables = [np.empty(len(column), dtype=object) for column in columns]
    for table, column in zip(tables, columns, strict=True):
        for row, argument in enumerate(column):  # one by one, because NumPy would turn lists into rows
            table[row] = argument
    return items(student.np.frompyfunc(function, len(columns), 1)(*tables), "the answers", len(columns[0]))


def refuses(
    function: Callable[..., Any],
    *cases: Any,
    error: type[Exception] = ValueError,
    mentions: str | Sequence[str] = (),
    cause: str = "",
    what: str = "",
) -> None:
    """Raise CheckFailed unless a function raises `error` in every case, with the words `mentions` in its message.

    Each case has the same form as in `agrees`. If no cases are given, the function is called without arguments.
    """
    wanted = [mentions] if isinstance(mentions, str) else mentions
    for args, keywords in map(_arguments, cases or [()]):
        try:
            function(*args, **keywords)
        except error as raised:
            absent = [word for word in wanted if word not in str(raised)]
            came = f" with {absent[0]!r} in its message, which is {str(raised)!r}" if absent else ""
        except Exception as raised:
            came = f", not {type(raised).__name__}: {raised}"
        else:
            came = f"; {cause}" if cause else ", it raises nothing"
        if came:
            told = what or _call(function, args, keywords)
            raise CheckFailed(f"{told} should raise {error.__name__}{came}")


def shown(value: Any, most: int = 60) -> str:
    """Return a short text that shows any value in a message."""
    if isinstance(value, Answer):
        return f"an object of type {type(value).__name__}"[:most]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray):
        told = f"an array of shape {value.shape}"
    elif isinstance(value, float):
        told = f"{value:.6g}"
    elif isinstance(value, list | tuple):
        parts = ", ".join([shown(part, most) for part in value[:6]] + ["…"] * (len(value) > 6))
        told = f"[{parts}]" if isinstance(value, list) else f"({parts})"
    else:
        told = repr(value)
        told = _name(value, type(value).__name__) if told.startswith("<") else told
    return told if len(told) <= most else told[:most] + "…"


def _arguments(case: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(case, dict):
        return (), case
    return (case if isinstance(case, tuple) else (case,)), {}


def _name(function: Any, otherwise: str) -> str:
    """Return the name of a function, or `otherwise` if it is not a short identifier.

    The student's code may supply the name, so it is not trusted.
    """
    name = getattr(function, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() and len(name) <= 60 else otherwise


def _call(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> str:
    """Return the text of a call, such as ``f(1, x=2)``, for a message."""
    while isinstance(function, partial):
        args, keywords, function = (*function.args, *args), {**function.keywords, **keywords}, function.func
    told = [shown(value) for value in args] + [f"{name}={shown(value)}" for name, value in keywords.items()]
    return f"{_name(function, 'the call')}({', '.join(told)})"

"""Conversion of a student's answers to plain values of known type and length.

Each answer is read once, because an object may return something else the next time. Only this copy is compared.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.sandbox.rpc.proxy import Answer
from autograder.sandbox.rpc.taking import take


class CheckFailed(AssertionError):
    """The error of a failed check, shown as one friendly line without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"CheckFailed: {self}"]


def _taken(value: Any) -> Any:
    return value._endpoint.ask("take", value) if isinstance(value, Answer) else take(value)


def plain(value: Any) -> Any:
    """Return an answer as built-in Python values where possible. NumPy arrays become lists."""
    value = _taken(value)
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def number(value: Any, what: str, *, finite: bool = False) -> float:
    """Return the answer as a plain float. If it is not a number, raise CheckFailed with `what` in the message."""
    value = plain(value)
    if isinstance(value, int | float):
        if finite and not math.isfinite(value):
            raise CheckFailed(f"{what} should be finite, and is {value}")
        return float(value)
    raise _wrong(value, what, "a number")


def items(value: Any, what: str, length: int | None = None) -> list[Any]:
    """Return the items of a sequence or iterator as a plain list. The items themselves are not converted."""
    found = plain(value)
    if not isinstance(found, list | tuple | set | frozenset | range):
        raise _wrong(found, what, "a sequence")
    if length is not None and len(found) != length:
        raise CheckFailed(f"{what} should hold {length} items, and holds {len(found)}")
    return list(found)


def numbers(value: Any, what: str, length: int | None = None, *, finite: bool = True) -> list[float]:
    """Return a sequence of numbers as a plain list of floats."""
    found = items(value, what, length)
    return [number(each, f"{what}[{index}]", finite=finite) for index, each in enumerate(found)]


def array(value: Any, what: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return an answer as a NumPy array of numbers.

    An array of numbers keeps its dtype. Nested sequences become an array of floats.
    """

    def rows(part: Any) -> Any:
        part = plain(part)
        return [rows(each) for each in part] if isinstance(part, list | tuple) else number(part, what)

    found = _taken(value)
    try:
        known = isinstance(found, np.ndarray | np.generic) and found.dtype.kind in "biuf"
        found = np.asarray(found if known else rows(found))
    except ValueError:
        raise CheckFailed(f"{what} should be an array, and its rows differ in length") from None
    if shape is not None and found.shape != shape:
        raise CheckFailed(f"{what} should have the shape {shape}, and has {found.shape}")
    return found


def entries(value: Any, what: str) -> dict[Any, Any]:
    """Return the entries of a mapping as a plain dict. Its values are not converted."""
    found = plain(value)
    if not isinstance(found, dict):
        raise _wrong(found, what, "a mapping")
    return found


def text(value: Any, what: str) -> str:
    """Return the answer if it is text. Otherwise raise CheckFailed."""
    if isinstance(value, str):
        return value
    raise _wrong(value, what, "text")


def flag(value: Any, what: str) -> bool:
    """Return the answer as a plain bool. If it is neither True nor False, raise CheckFailed."""
    found = plain(value)
    if isinstance(found, bool):
        return found
    raise _wrong(found, what, "True or False")


def _wrong(value: Any, what: str, kind: str) -> CheckFailed:
    return CheckFailed(f"{what} should be {kind}, not {type(value).__name__}")

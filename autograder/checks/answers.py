"""Taking answers: what a student's object says once, as plain values of known type and length.

The object may answer differently the next time it is asked, so nothing else of it is compared.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.sandbox.rpc.proxy import Answer
from autograder.sandbox.rpc.taking import take


class CheckFailed(AssertionError):
    """A check's verdict in one friendly line; its traceback shows no source."""

    def _render_traceback_(self) -> list[str]:
        return [f"CheckFailed: {self}"]


def _taken(value: Any) -> Any:
    return value._endpoint.ask("take", value) if isinstance(value, Answer) else take(value)


def plain(value: Any) -> Any:
    """Return an answer as Python's own values."""
    value = _taken(value)
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def number(value: Any, what: str, *, finite: bool = False) -> float:
    """Return a plain float, or fail with a message naming what should have been one."""
    value = plain(value)
    if isinstance(value, int | float):
        if finite and not math.isfinite(value):
            raise CheckFailed(f"{what} should be finite, and is {value}")
        return float(value)
    raise _wrong(value, what, "a number")


def items(value: Any, what: str, length: int | None = None) -> list[Any]:
    """Return a plain list of what a sequence or iterator holds; an element may be an object again."""
    found = plain(value)
    if not isinstance(found, list | tuple | set | frozenset | range):
        raise _wrong(found, what, "a sequence")
    if length is not None and len(found) != length:
        raise CheckFailed(f"{what} should hold {length} items, and holds {len(found)}")
    return list(found)


def numbers(value: Any, what: str, length: int | None = None, *, finite: bool = True) -> list[float]:
    """Return a plain list of floats."""
    found = items(value, what, length)
    return [number(each, f"{what}[{index}]", finite=finite) for index, each in enumerate(found)]


def array(value: Any, what: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return a plain array of numbers, of its own type, or of floats where it is none yet."""

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
    """Return a plain dict of what a mapping holds; a value may be an object again."""
    found = plain(value)
    if not isinstance(found, dict):
        raise _wrong(found, what, "a mapping")
    return found


def text(value: Any, what: str) -> str:
    """Return plain text."""
    if isinstance(value, str):
        return value
    raise _wrong(value, what, "text")


def flag(value: Any, what: str) -> bool:
    """Return a plain truth value."""
    found = plain(value)
    if isinstance(found, bool):
        return found
    raise _wrong(found, what, "True or False")


def _wrong(value: Any, what: str, kind: str) -> CheckFailed:
    return CheckFailed(f"{what} should be {kind}, not {type(value).__name__}")

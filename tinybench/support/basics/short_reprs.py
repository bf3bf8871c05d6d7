"""A one-line ``repr`` for objects that hold many measurements. Lists, dictionaries and error messages show it."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import fields
from reprlib import Repr
from typing import Any

__all__ = ["short_repr"]

MOST = 200  # characters
_SCALARS = Repr()
_SCALARS.maxstring = _SCALARS.maxother = 40


def short_repr(self: Any) -> str:
    """Return a one-line description of an object with at most `MOST` characters.

    An example is ``<BenchmarkResult latency: median 12.1 ms (95 % CI 11.9–12.4), n = 30>``. Assign this function in a
    dataclass: ``__repr__ = short_repr``. The description is the first line of ``str(self)``. If the class does not
    define ``__str__``, the description lists the fields, with containers as type and size.
    """
    kind = type(self)
    text = ""
    if vars(object)["__str__"] is not kind.__str__:
        try:
            text = str(self).partition("\n")[0]
        except Exception:  # such as a method that a student has not written yet
            text = ""
    text = text or ", ".join(f"{field.name}={_value(getattr(self, field.name, None))}" for field in fields(self))
    room = MOST - len(kind.__name__) - len("< >")
    return f"<{kind.__name__} {text if len(text) <= room else f'{text[: room - 2]} …'}>"


def _value(value: Any) -> str:
    """Return a value as short text. Arrays, and containers of more than two items, become their type and size."""
    if shape := getattr(value, "shape", None):
        return f"{type(value).__name__} of shape {tuple(shape)}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Sized) and not isinstance(value, str) and len(value) > 2:
        return f"{type(value).__name__} of {len(value)}"
    return _SCALARS.repr(value)

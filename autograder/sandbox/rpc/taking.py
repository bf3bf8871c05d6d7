"""The conversion of a student's answers to plain values that a check may compare.

Each answer is converted only once.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

MAX_ITEMS = 100_000
KNOWN = (type(None), bool, int, float, complex, list, np.ndarray)


def take(value: Any) -> Any:
    """Return the list, dict, array or number that an object represents. Return any other object unchanged.

    The conversion runs in the process that holds the object. If the object is an iterator, the conversion exhausts it.
    """
    kind = type(value)
    if kind in KNOWN or isinstance(value, str | bytes | type | np.generic):
        return value
    if isinstance(value, Mapping) or (hasattr(kind, "keys") and hasattr(kind, "__getitem__")):
        return {key: value[key] for key in _bounded(value.keys())}
    if hasattr(kind, "__array__"):
        return np.asarray(value)
    for exact in (tuple, set, frozenset):
        if isinstance(value, exact):
            return exact(value)
    if hasattr(kind, "__iter__") or (hasattr(kind, "__getitem__") and hasattr(kind, "__len__")):
        return _bounded(value)
    for convert in ("__index__", "__float__", "__complex__"):
        if hasattr(kind, convert):
            return {"__index__": int, "__float__": float, "__complex__": complex}[convert](value)
    return value


def _bounded(values: Any) -> list[Any]:
    items = list(islice(iter(values), MAX_ITEMS + 1))
    if len(items) > MAX_ITEMS:
        raise ValueError(f"more than {MAX_ITEMS} items")
    return items

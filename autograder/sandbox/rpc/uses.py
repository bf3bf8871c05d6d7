"""The uses of an object that an `Endpoint` allows the other side, and the names by which it sends functions."""

from __future__ import annotations

import operator
import sys
from functools import lru_cache, partial
from importlib import import_module
from pathlib import PurePath
from typing import Any

from .codec import ProtocolViolation
from .proxy import READABLE, SPECIAL

# The guest imports and calls functions of these modules itself. Clocks are excluded, because they stay with the grader.
NAMED = {"numpy", "math", "builtins", "operator", "statistics", "scipy", "itertools", "functools", "json"}


def names_shown(value: Any) -> list[str]:
    """Return the names of the attributes that the guest may read from one of the grader's objects."""
    # the arguments of a `partial` belong to the check
    public = () if isinstance(value, partial) else _public_names(value if isinstance(value, type) else type(value))
    return [*public, *getattr(value, "shows", ()), *(name for name in sorted(READABLE) if hasattr(value, name))]


@lru_cache(maxsize=1000)
def _public_names(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


def call_special(target: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Return the result of a special method, if the other side may call it."""
    if name not in SPECIAL:
        raise ProtocolViolation(f"no special method {name!r}")
    if name == "__exit__" and args[0] is not None:
        args = [type(args[1]), args[1], None] if isinstance(args[1], BaseException) else [None, None, None]
    method = target if name == "__call__" else partial(getattr(type(target), name), target)
    value = method(*args, **kwargs)
    if value is NotImplemented:
        raise TypeError(f"{type(target).__name__} does not take part in {name} with that")
    return value


def named(name: str) -> Any:
    """Return the function or class that `library_name` named."""
    module, _, path = name.partition(":")
    return operator.attrgetter(path)(import_module(module))


def text_of(error: BaseException) -> str:
    """Return the text of an error, whose own method may fail."""
    try:
        return str(error)[:10_000]
    except Exception as broken:
        return f"(its text cannot be had: {type(broken).__name__})"


def library_name(value: Any) -> str | None:
    """Return ``module:name`` if the guest can import this function or class itself, otherwise None."""
    if isinstance(value, PurePath) or not callable(value):
        return None
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", getattr(value, "__name__", None))
    if not isinstance(module, str) or not isinstance(name, str) or module.partition(".")[0] not in NAMED:
        return None
    try:
        found = operator.attrgetter(name)(sys.modules[module])
    except (KeyError, AttributeError):
        return None
    return f"{module}:{name}" if found is value else None

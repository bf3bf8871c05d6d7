"""A student whose every answer is right, and an object of a kind of its own: what a check compares it must take first."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


class OddNumber:
    """A number that Python's numbers know nothing of."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __float__(self) -> float:
        return float(self._value)

    def __eq__(self, other: object) -> bool:
        return bool(self._value == (other._value if isinstance(other, OddNumber) else other))

    def __lt__(self, other: Any) -> bool:
        return bool(self._value < other)

    def __bool__(self) -> bool:
        return bool(self._value)

    __hash__ = None  # type: ignore[assignment]


class OddSequence:
    """A sequence that is no list."""

    def __init__(self, values: Any) -> None:
        self._values = [odd(value) for value in values]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __getitem__(self, index: Any) -> Any:
        return self._values[index]

    def __contains__(self, value: object) -> bool:
        return value in self._values


class OddMapping:
    """A mapping that is no dict."""

    def __init__(self, values: dict[Any, Any]) -> None:
        self._values = {key: odd(value) for key, value in values.items()}

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __getitem__(self, key: Any) -> Any:
        return self._values[key]

    def keys(self) -> Any:
        """Return the keys."""
        return self._values.keys()

    def __contains__(self, key: object) -> bool:
        return key in self._values


def odd(value: Any) -> Any:
    """Return an answer as an object that stands for it; what is no plain value stays as it is."""
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return OddNumber(value)
    if isinstance(value, dict):
        return OddMapping(value)
    if type(value) in (list, tuple) or isinstance(value, np.ndarray):
        return OddSequence(value)
    return value


class Opaque:
    """An object that has every attribute and stands for nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Opaque()

    def __call__(self, *_: Any, **__: Any) -> Any:
        return Opaque()

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return True

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    __hash__ = object.__hash__


def answering(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a function that answers as another does, its answers changed; of a class, of its methods too."""
    if isinstance(value, type):
        members = {
            name: answering(member, change)
            for name, member in vars(value).items()
            if isinstance(member, types.FunctionType) and not name.startswith("__")
        }
        return type(value.__name__, (value,), members) if members else value
    if not isinstance(value, types.FunctionType):
        return value

    async def later(*args: Any, **kwargs: Any) -> Any:
        return change(await value(*args, **kwargs))

    def answered(*args: Any, **kwargs: Any) -> Any:
        return change(value(*args, **kwargs))

    if inspect.iscoroutinefunction(value):
        answered = later
    answered.__name__, answered.__qualname__ = value.__name__, value.__qualname__
    return answered

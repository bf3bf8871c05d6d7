"""Stand-ins for objects and errors of the other process.

Each use of an object's stand-in is forwarded to the object.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from .ahead import Ahead
from .codec import References

# special methods that a `Proxy` forwards, if its object has them
SPECIAL = (
    "__call__", "__iter__", "__next__", "__len__", "__getitem__", "__contains__", "__enter__", "__exit__", "__bool__",
    "__float__", "__int__", "__index__", "__complex__", "__array__", "__abs__", "__neg__", "__round__",
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__",
    "__matmul__", "__lt__", "__le__", "__gt__", "__ge__",
)  # fmt: skip
USABLE = frozenset(["__call__", "__enter__", "__exit__"])  # special methods that a check may use on a student's object
READABLE = {"__name__", "__qualname__", "__doc__"}


class Asked(References, Protocol):
    """The part of an `Endpoint` that a proxy needs to send requests."""

    ahead: Ahead

    def ask(self, what: str, *args: Any, **kwargs: Any) -> Any:
        """Send a request and return the answer."""


class Proxy:
    """A stand-in for an object of the other process. If `names` is given, only these attributes are ever requested."""

    def __init__(self, endpoint: Asked, number: int, names: list[str] | None = None) -> None:
        object.__setattr__(self, "_endpoint", endpoint)
        object.__setattr__(self, "_proxy_number", number)
        object.__setattr__(self, "_proxy_names", names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in READABLE:
            raise AttributeError(name)  # NumPy would read any address that an __array_interface__ names
        if self._proxy_names is not None and name not in self._proxy_names:
            raise AttributeError(f"no attribute {name!r}")
        value = self._endpoint.ask("get", self, name)
        if name in READABLE and not isinstance(self, Answer):  # the grader's functions keep their names
            object.__setattr__(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        self._endpoint.ask("set", self, name, value)

    def __repr__(self) -> str:
        return str(self._endpoint.ask("repr", self))

    def __str__(self) -> str:
        return str(self._endpoint.ask("str", self))

    def __format__(self, spec: str) -> str:
        return str(self._endpoint.ask("format", self, spec))

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, Proxy) and bool(self._endpoint.ask("isinstance", self, instance))


class AnswerNotTaken(TypeError):
    """A check used an answer that is still in the sandbox, where its value can change with each use.

    The check must first take the answer, that is, convert it to a plain value.
    """


class Answer(Proxy):
    """The grader's proxy of a student's object.

    A check may only call it, enter it as a context manager, take it (convert it to a plain value), or read its
    attributes.
    """


def _not_taken(name: str) -> Callable[..., Any]:
    def method(self: Answer, *_: Any) -> Any:
        raise AnswerNotTaken(
            f"{name} of {type(self).__name__}: take the answer first, by the helpers of autograder.checks"
        )

    method.__name__ = name
    return method


for _name in {*SPECIAL, "__eq__", "__ne__"} - USABLE:
    setattr(Answer, _name, _not_taken(_name))
Answer.__hash__ = object.__hash__  # type: ignore[method-assign]


def _special(name: str) -> Callable[..., Any]:
    def method(self: Proxy, *args: Any, **kwargs: Any) -> Any:
        if name == "__call__" and not kwargs:
            ahead = self._endpoint.ahead
            shown = None if args else ahead.standing.get(self._proxy_number)
            if shown is not None:
                return shown
            known, result = ahead.call(self._proxy_number, args, self._endpoint)
            if known:
                return result
        if name == "__exit__":  # a traceback cannot be sent; an error can, as its type and text
            args = (None, None, None) if args[0] is None else ("raised", args[1], None)
        return self._endpoint.ask("special", self, name, *args, **kwargs)

    method.__name__ = name
    return method


@lru_cache(maxsize=1000)  # bounded, because the student chooses the names
def proxy_class(names: frozenset[str], kind: str = "object", *, answer: bool = False) -> type[Proxy]:
    """Return a subclass of `Proxy` called `kind`, with the special methods in `names`.

    With `answer`, return a subclass of `Answer`, with only those of these methods that a check may use.
    """
    members: dict[str, Any] = {name: _special(name) for name in (names & USABLE if answer else names)}
    members["__doc__"] = property(lambda self: self._endpoint.ask("get", self, "__doc__"))
    return type(kind, (Answer if answer else Proxy,), members)


@lru_cache(maxsize=1000)
def error_class(names: tuple[str, ...]) -> type[Exception]:
    """Return a stand-in for an exception class, given the names of the class and its ancestors.

    If the first name is that of a builtin exception, return the builtin class.
    """
    known = getattr(builtins, names[0], None) if names and names[0].isidentifier() else Exception
    if isinstance(known, type) and issubclass(known, Exception):
        return known
    if isinstance(known, type) and issubclass(known, BaseException):
        return type(names[0], (RuntimeError,), {})  # SystemExit and similar must not end the grader
    return type(names[0], (error_class(names[1:]),), {})


def ancestors(kind: type) -> list[str]:
    """Return the names of a class and its nearest ancestors, without `object`."""
    return [str(type.__getattribute__(cls, "__name__"))[:100] for cls in type.mro(kind)[:20] if cls is not object]

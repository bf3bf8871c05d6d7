"""Two processes that use each other's objects: calls and attributes travel, the objects stay at home."""

from __future__ import annotations

import base64
import operator
import pickle
import sys
from collections import deque
from collections.abc import Callable, Sized
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import PurePath
from typing import Any

import numpy as np

from .codec import Foul, Wire, WireError, decode, encode
from .proxy import READABLE, SPECIAL, Remote, ancestors, error_class, remote_class

MAX_NESTING = 40
MAX_CLOCKS = 4
MAX_KEPT = 100_000  # objects and errors that one end keeps for the other
# functions of these may be named instead of called back; clocks are not among them, they stay with the judge
NAMED = {"numpy", "math", "builtins", "operator", "statistics", "scipy", "itertools", "functools", "json"}


class Peer:
    """One end of the conversation.

    Parameters
    ----------
    wire
        The private socket.
    guard
        For the judge's end: says whether an object of its own may be referred to. The student's end has none, and
        takes pickles, which the judge's never does.
    """

    def __init__(self, wire: Wire, guard: Callable[[Any], bool] | None = None) -> None:
        self.wire, self.guard = wire, guard
        self.mine: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.theirs: dict[int, Remote] = {}
        self.copies: dict[int, tuple[int, Any]] = {}
        self.errors: list[BaseException] = []
        self.lent: set[int] = set()  # ids of what the judge lends: nothing else of its answers questions
        self.nesting = 0
        self.clocks: deque[int] = deque(maxlen=MAX_CLOCKS)  # the judge's newest
        self.standing: dict[int, float] = {}  # what they show until the next message

    def share(self, root: Any) -> None:
        """Make an object the one that the other side finds as `root`."""
        self.mine[0], self.numbers[id(root)] = root, 0
        self.lent.add(id(root))

    def root(self) -> Remote:
        """Return the object that the other side shares, to call or to use."""
        return self.theirs.setdefault(0, remote_class(frozenset(["__call__"]))(self, 0))

    def ask(self, what: str, *args: Any, **kwargs: Any) -> Any:
        """Have the other side do something, serving its questions meanwhile."""
        try:
            self._send(["ask", what, self._encode(list(args)), self._encode(kwargs) if kwargs else None])
            while True:
                kind, *content = self._message()
                if kind == "value":
                    return self._decode(content[0])
                if kind == "error":
                    break
                self._answer(*content)
            error = self._error(*content)
        except WireError as broken:
            self.wire.broken = self.wire.broken or broken
            raise
        raise error

    def serve(self) -> None:
        """Answer until the other side hangs up."""
        with suppress(WireError):
            while True:
                kind, *content = self._message()
                if kind != "ask":
                    raise Foul("an answer nobody asked for")
                self._answer(*content)

    def _message(self) -> list[Any]:
        message = self.wire.receive()
        if self.guard is None:
            self.standing = dict(message.pop())
        sizes = {"ask": 4, "value": 2, "error": 5}
        if not isinstance(message, list) or not message or sizes.get(str(message[0])) != len(message):
            raise Foul("a message of unknown form")
        return message

    def _send(self, message: list[Any]) -> None:
        """Send a message; the judge's say what its clocks show, so that reading one that stands costs no message."""
        if self.guard is not None:
            shown = ((number, self.mine[number].standing) for number in self.clocks)
            message.append([pair for pair in shown if pair[1] is not None])
        self.wire.send(message)

    def _answer(self, what: Any, args: Any, kwargs: Any) -> None:
        self.nesting += 1
        try:
            if self.nesting > MAX_NESTING:
                raise Foul("questions nested too deeply")
            answer = ["value", self._encode(self._do(str(what), self._decode(args), self._decode(kwargs) or {}))]
        except WireError:
            raise
        except BaseException as error:  # whatever it is, it belongs to the one who asked
            if self.guard is not None and not isinstance(error, Exception):
                raise
            self._room(self.errors)
            self.errors.append(error.with_traceback(None))  # which would keep the question alive
            number = getattr(error, "wire_number", None)  # theirs, if it came from there
            answer = ["error", ancestors(type(error)), _text_of(error), len(self.errors) - 1, number]
        finally:
            self.nesting -= 1
        try:
            self._send(answer)
        except ValueError as error:
            self._send(["error", ["ValueError"], str(error), -1, None])

    def _do(self, what: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        target, *rest = args
        if isinstance(target, Remote):
            raise Foul("a question about one's own object")
        if self.guard is not None and id(target) not in self.lent:
            raise Foul("a question about what was not lent")
        if what == "get":
            return getattr(target, self._allowed(target, rest[0]))
        if what == "special":
            name, *rest = rest
            if name not in SPECIAL:
                raise Foul(f"no special method {name!r}")
            if name == "__exit__" and rest[0] is not None:
                rest = [type(rest[1]), rest[1], None] if isinstance(rest[1], BaseException) else [None, None, None]
            method = target if name == "__call__" else partial(getattr(type(target), name), target)
            value = method(*rest, **kwargs)
            if value is NotImplemented:
                raise TypeError(f"{type(target).__name__} does not take part in {name} with that")
            return value
        if what in ("repr", "str"):
            return (repr if what == "repr" else str)(target)[:10_000]
        if what == "format":
            return format(target, rest[0])[:10_000]
        if self.guard is None:
            if what == "set":
                return setattr(target, rest[0], rest[1])
            if what == "isinstance":
                return isinstance(rest[0], target)
        raise Foul(f"no question {what[:20]!r}")

    def _allowed(self, target: Any, name: Any) -> str:
        """Of the judge's objects only methods and what they say they show: the rest is what a check knows."""
        if isinstance(name, str):
            shown = hasattr(target if isinstance(target, type) else type(target), name)
            shown = (shown and not name.startswith("_")) or name in getattr(target, "shows", ())
            if self.guard is None or shown or name in READABLE:
                return name
        raise AttributeError(f"no attribute {str(name)[:100]!r}")

    def _encode(self, value: Any) -> Any:
        return encode(value, self)

    def _decode(self, data: Any) -> Any:
        return decode(data, self)

    def _number(self, value: Any) -> int:
        self._room(self.mine)
        number = self.numbers.setdefault(id(value), len(self.numbers))
        self.mine[number] = value  # kept alive, so that its id stays its own
        return number

    def _room(self, kept: Sized) -> None:
        if len(kept) >= MAX_KEPT and self.guard is not None:
            raise Foul(f"more than {MAX_KEPT} objects in one conversation")

    def refer(self, value: Any) -> Any:
        """Return the code of what cannot be copied."""
        if isinstance(value, Remote) and value._peer is self:
            return {"yours": value._remote_number}
        if self.guard is None and self.copies.get(id(value), (None, None))[1] is value:
            return {"yours": self.copies[id(value)][0]}
        if isinstance(value, BaseException):
            return {"error": [ancestors(type(value)), _text_of(value)]}
        if isinstance(value, type) and issubclass(value, BaseException):
            return {"error type": ancestors(value)}
        if self.guard is not None:
            if name := _library_name(value):
                return {"named": [self._number(value), name]}
            if not self.guard(value):
                return {"pickle": [self._number(value), base64.b64encode(pickle.dumps(value)).decode()]}
            if hasattr(type(value), "standing"):
                self._watch(self._number(value))
        self.lent.add(id(value))
        kind = type(value)
        name = str(type.__getattribute__(kind, "__name__"))[:50]
        special = [n for n in SPECIAL if getattr(kind, n, None) is not getattr(object, n, None)]
        return {"mine": [self._number(value), name, special]}

    def _watch(self, clock: int) -> None:
        if clock in self.clocks:
            self.clocks.remove(clock)
        self.clocks.append(clock)

    def resolve(self, kind: str, content: Any) -> Any:
        """Return the value of a code of `refer`."""
        try:
            if kind == "yours":
                return self.mine[int(content)]
            if kind == "mine":
                number, name, special = int(content[0]), str(content[1])[:50], frozenset(map(str, content[2]))
                if number not in self.theirs:
                    self._room(self.theirs)
                    self.theirs[number] = remote_class(special & frozenset(SPECIAL), name)(self, number)
                return self.theirs[number]
            if kind == "error":
                return error_class(tuple(map(str, content[0])))(str(content[1]))
            if kind == "error type":
                return error_class(tuple(map(str, content)))
            if kind in ("named", "pickle") and self.guard is None:
                return self._keep(_looked_up(content[1]) if kind == "named" else _unpickled(content[1]), content[0])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise Foul(f"a broken reference: {type(error).__name__}") from None
        raise Foul(f"a value of unknown kind {kind[:20]!r}")

    def _keep(self, copy: Any, number: int) -> Any:
        """Remember a copy of the judge's, so that it goes home as the original."""
        self.copies[id(copy)] = number, copy
        return copy

    def mark(self, array: Any) -> int | None:
        """Return the number of an array of the judge's."""
        if self.guard is not None:
            return self._number(array)
        number, copy = self.copies.get(id(array), (None, None))
        return number if copy is array else None

    def meet(self, array: Any, number: int) -> Any:
        """Keep a copy of the judge's; at the judge's end, return the original of a copy that nobody changed."""
        if self.guard is None:
            return self._keep(array, number)
        own = self.mine.get(number)
        if not isinstance(own, np.ndarray) or (own.dtype, own.shape) != (array.dtype, array.shape):
            return array
        return own if own.tobytes() == array.tobytes() else array

    def _error(self, names: Any, text: Any, number: Any, ours: Any) -> BaseException:
        """Return the error of an answer: one of our own that comes back, or a likeness of theirs."""
        if isinstance(ours, int) and 0 <= ours < len(self.errors):
            return self.errors[ours]
        if not isinstance(names, list):
            raise Foul("an error of unknown form")
        error = error_class(tuple(str(name)[:100] for name in names[:20]))(str(text)[:10_000])
        if self.guard is None:
            error.wire_number = number  # type: ignore[attr-defined]
        return error


def _looked_up(name: str) -> Any:
    module, _, path = name.partition(":")
    return operator.attrgetter(path)(import_module(module))


def _unpickled(text: str) -> Any:
    return pickle.loads(base64.b64decode(text))


def _text_of(error: BaseException) -> str:
    try:
        return str(error)[:10_000]
    except Exception as broken:
        return f"(its text cannot be had: {type(broken).__name__})"


def _library_name(value: Any) -> str | None:
    """Return ``module:name`` of a function or class that the student's side can look up for itself."""
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

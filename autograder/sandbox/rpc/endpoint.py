"""The endpoints through which two processes use each other's objects. Calls and results are sent, but no objects."""

from __future__ import annotations

import base64
import pickle
from collections import deque
from collections.abc import Callable, Sized
from contextlib import suppress
from typing import Any

import numpy as np

from .ahead import MAX_MADE, Ahead
from .codec import Channel, ChannelError, ProtocolViolation, decode, encode
from .proxy import SPECIAL, Proxy, ancestors, error_class, proxy_class
from .taking import take
from .uses import call_special, library_name, named, names_shown, text_of

MAX_NESTING = 40
MAX_CLOCKS = 4
MAX_PLANNED = 6
MAX_KEPT = 100_000  # objects and errors that one endpoint keeps for the other


class Endpoint:
    """One end of the connection. Only the grader's end has `may_lend`, which decides which objects the guest may use.

    The guest's end unpickles data that it receives. The grader's end never unpickles anything.
    """

    def __init__(self, channel: Channel, may_lend: Callable[[Any], bool] | None = None) -> None:
        self.channel, self.may_lend = channel, may_lend
        self.objects: dict[int, Any] = {}  # this side's objects, by the number that the other side uses
        self.numbers: dict[int, int] = {}  # the numbers of these objects, by id
        self.proxies: dict[int, Proxy] = {}
        self.copies: dict[int, tuple[int, Any]] = {}
        self.errors: list[BaseException] = []
        self.lent: set[int] = set()  # ids of objects that the grader lends; requests for other objects are refused
        self.nesting = 0
        self.clocks: deque[int] = deque(maxlen=MAX_CLOCKS)  # the numbers of the grader's newest clocks
        self.planned: deque[int] = deque(maxlen=MAX_PLANNED)  # the numbers of the grader's newest fakes with `ahead`
        self.ahead = Ahead()
        self.described: dict[int, Any] = {}  # the references to lent objects, by number

    def share(self, root: Any) -> None:
        """Share an object, which the other side then gets from its `root` method."""
        self.objects[0], self.numbers[id(root)] = root, 0
        self.lent.add(id(root))

    def root(self) -> Proxy:
        """Return a proxy of the object that the other side shares."""
        return self.proxies.setdefault(
            0, proxy_class(frozenset(["__call__"]), answer=self.may_lend is not None)(self, 0)
        )

    def ask(self, what: str, *args: Any, **kwargs: Any) -> Any:
        """Send a request and return its result. Until the result arrives, serve the other side's requests."""
        try:
            self._send(["ask", what, encode(list(args), self), encode(kwargs, self) if kwargs else None])
            while True:
                kind, *content = self._message()
                if kind == "value":
                    return decode(content[0], self)
                if kind == "error":
                    break
                self._answer(*content)
            error = self._error(*content)
        except ChannelError as broken:
            self.channel.broken = self.channel.broken or broken
            raise
        raise error

    def serve(self) -> None:
        """Answer requests until the connection ends."""
        with suppress(ChannelError):
            while True:
                kind, *content = self._message()
                if kind != "ask":
                    raise ProtocolViolation("an answer nobody asked for")
                self._answer(*content)

    def _message(self) -> list[Any]:
        message = self.channel.receive()
        sizes = {"ask": 5, "value": 3, "error": 6}
        if not isinstance(message, list) or not message or sizes.get(str(message[0])) != len(message):
            raise ProtocolViolation("a message of unknown form")
        more = message.pop()
        if self.may_lend is None:
            self.ahead.learn(*more)
        else:
            self._make_again(more)
        return message

    def _send(self, message: list[Any]) -> None:
        """Send a message.

        The grader adds what the guest may do without a request: the times of its fake clocks, and the next calls of
        fakes. The guest adds which of these calls it made.
        """
        if self.may_lend is not None:
            shown = ((number, self.objects[number].standing) for number in self.clocks)
            plans = ((number, *self.objects[number].ahead) for number in self.planned)
            message.append(
                [
                    [pair for pair in shown if pair[1] is not None],
                    [(number, self._number(clock), clock.now, calls) for number, clock, calls in plans],
                ]
            )
            self.channel.send(message)
        else:
            self.channel.send([*message, self.ahead.made])
            self.ahead.made = []

    def _make_again(self, made: Any) -> None:
        """Make the calls of fakes that the guest made ahead of the grader."""
        try:
            if not isinstance(made, list) or len(made) > MAX_MADE:
                raise TypeError(type(made))
            for number, args in made:
                if number not in self.planned:
                    raise ValueError(number)
                self.objects[number](*decode(args, self))
        except (TypeError, ValueError) as error:
            raise ProtocolViolation(f"a call that cannot have been made: {type(error).__name__}") from None

    def _answer(self, what: Any, args: Any, kwargs: Any) -> None:
        self.nesting += 1
        try:
            if self.nesting > MAX_NESTING:
                raise ProtocolViolation("questions nested too deeply")
            answer = ["value", encode(self._do(str(what), decode(args, self), decode(kwargs, self) or {}), self)]
        except ChannelError:
            raise
        except BaseException as error:  # any error belongs to the side that sent the request
            if self.may_lend is not None and not isinstance(error, Exception):
                raise
            self._check_room(self.errors)
            self.errors.append(error.with_traceback(None))  # a traceback would keep the request's objects alive
            number = getattr(error, "error_number", None)  # set if the error came from the other side
            answer = ["error", ancestors(type(error)), text_of(error), len(self.errors) - 1, number]
        finally:
            self.nesting -= 1
        try:
            self._send(answer)
        except ValueError as error:
            self._send(["error", ["ValueError"], str(error), -1, None])

    def _do(self, what: str, args: list[Any], kwargs: dict[str, Any]) -> Any:  # noqa: C901 - one branch a question
        target, *rest = args
        if isinstance(target, Proxy):
            raise ProtocolViolation("a question about one's own object")
        if self.may_lend is not None and id(target) not in self.lent:
            raise ProtocolViolation("a question about what was not lent")
        if what == "get":
            return getattr(target, self._allowed(target, rest[0]))
        if what == "special":
            return call_special(target, rest[0], rest[1:], kwargs)
        if what in ("repr", "str"):
            return (repr if what == "repr" else str)(target)[:10_000]
        if what == "format":
            return format(target, rest[0])[:10_000]
        if self.may_lend is None:
            if what == "set":
                return setattr(target, rest[0], rest[1])
            if what == "take":
                return take(target)
            if what == "isinstance":
                return isinstance(rest[0], target)
        raise ProtocolViolation(f"no question {what[:20]!r}")

    def _allowed(self, target: Any, name: Any) -> str:
        """Return `name` if the other side may read this attribute.

        Data attributes of the grader's objects are hidden, unless the object lists them in `shows`.
        """
        if isinstance(name, str) and (self.may_lend is None or name in names_shown(target)):
            return name
        raise AttributeError(f"no attribute {str(name)[:100]!r}")

    def _number(self, value: Any) -> int:
        self._check_room(self.objects)
        number = self.numbers.setdefault(id(value), len(self.numbers))
        self.objects[number] = value  # kept alive, so that no other object gets its id
        return number

    def _check_room(self, kept: Sized) -> None:
        if len(kept) >= MAX_KEPT and self.may_lend is not None:
            raise ProtocolViolation(f"more than {MAX_KEPT} objects in one conversation")

    def encode_reference(self, value: Any) -> Any:
        """Encode a value that cannot be copied."""
        if isinstance(value, Proxy) and value._endpoint is self:
            return {"yours": value._proxy_number}
        if self.may_lend is None and self.copies.get(id(value), (None, None))[1] is value:
            return {"yours": self.copies[id(value)][0]}
        if isinstance(value, BaseException):
            return {"error": [ancestors(type(value)), text_of(value)]}
        if isinstance(value, type) and issubclass(value, BaseException):
            return {"error type": ancestors(value)}
        if self.may_lend is not None:
            if name := library_name(value):
                return {"named": [self._number(value), name]}
            if not self.may_lend(value):
                return {"pickle": [self._number(value), base64.b64encode(pickle.dumps(value)).decode()]}
            self._count_as_newest(value)
        return self._described(value)

    def _count_as_newest(self, value: Any) -> None:
        """Remember one of the grader's fakes as the newest one whose readings or calls each message tells ahead."""
        for newest, protocol in ((self.clocks, "standing"), (self.planned, "ahead")):
            if hasattr(type(value), protocol):
                number = self._number(value)
                if number in newest:
                    newest.remove(number)
                newest.append(number)

    def _described(self, value: Any) -> Any:
        """Lend an object, and return what the other side learns about it."""
        number = self._number(value)
        if number in self.described:
            return self.described[number]
        self.lent.add(id(value))
        kind = type(value)
        name = str(type.__getattribute__(kind, "__name__"))[:50]
        special = [n for n in SPECIAL if getattr(kind, n, None) is not getattr(object, n, None)]
        names = None if self.may_lend is None else names_shown(value)
        self.described[number] = {"mine": [number, name, special, names]}
        return self.described[number]

    def decode_reference(self, kind: str, content: Any) -> Any:
        """Return the value that an encoded reference stands for."""
        try:
            if kind == "yours":
                return self.objects[int(content)]
            if kind == "mine":
                number, name, special = int(content[0]), str(content[1])[:50], frozenset(map(str, content[2]))
                if number not in self.proxies:
                    self._check_room(self.proxies)
                    known, names = special & frozenset(SPECIAL), content[3] if self.may_lend is None else None
                    stand_in = proxy_class(known, name, answer=self.may_lend is not None)
                    self.proxies[number] = stand_in(self, number, names)
                return self.proxies[number]
            if kind == "error":
                return error_class(tuple(map(str, content[0])))(str(content[1]))
            if kind == "error type":
                return error_class(tuple(map(str, content)))
            if kind in ("named", "pickle") and self.may_lend is None:
                number, text = content
                made = named(text) if kind == "named" else pickle.loads(base64.b64decode(text))
                return self._keep(made, number)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ProtocolViolation(f"a broken reference: {type(error).__name__}") from None
        raise ProtocolViolation(f"a value of unknown kind {kind[:20]!r}")

    def _keep(self, copy: Any, number: int) -> Any:
        """Record a copy of a grader's object. If the copy is sent back, the grader gets its original object."""
        self.copies[id(copy)] = number, copy
        return copy

    def array_number(self, array: Any) -> int | None:
        """Return the number that identifies one of the grader's arrays, or None for any other array."""
        if self.may_lend is not None:
            return self._number(array)
        number, copy = self.copies.get(id(array), (None, None))
        return number if copy is array else None

    def known_array(self, array: Any, number: int) -> Any:
        """Return the grader's own array if `array` is an unchanged copy of it. In the guest, record the copy."""
        if self.may_lend is None:
            return self._keep(array, number)
        own = self.objects.get(number)
        if not isinstance(own, np.ndarray) or (own.dtype, own.shape) != (array.dtype, array.shape):
            return array
        return own if own.tobytes() == array.tobytes() else array

    def _error(self, names: Any, text: Any, number: Any, ours: Any) -> BaseException:
        """Return the exception for an error message: the original if this side raised it first, else a stand-in."""
        if isinstance(ours, int) and 0 <= ours < len(self.errors):
            return self.errors[ours]
        if not isinstance(names, list):
            raise ProtocolViolation("an error of unknown form")
        error = error_class(tuple(str(name)[:100] for name in names[:20]))(str(text)[:10_000])
        if self.may_lend is None:
            error.error_number = number  # type: ignore[attr-defined]
        return error

"""The messages between grader and guest: JSON over a socket, with plain values by copy and other objects by reference.

Numbers, text, lists, tuples, dicts, sets, bytes and NumPy arrays are sent as copies of exactly these types. Any other
object stays in its process, and the other side gets a `Proxy`. The grader never unpickles anything from the guest.
"""

from __future__ import annotations

import base64
import collections
import json
import math
import socket
import struct
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

import numpy as np

MAX_FRAME = 32 * 2**20
MAX_CLAIMS = 256 * 2**20  # bytes of all messages, limited because a check's fakes may keep the arguments of their calls
MAX_CLAIM = 8 * 2**20  # bytes of one message from a submission; in the grader's memory, it may take many times its size
MAX_DEPTH = 60
MAX_LENGTH = 1_000_000  # of ranges and empty arrays, which are short as JSON but may be huge when expanded
PLAIN_DTYPES = "biufcSUmM"
SCALARS = (type(None), bool, int, float, str)
PLAIN: dict[type, Callable[[Any], Any]] = {str: str.__str__, float: float.__pos__, int: int.__pos__}
SEQUENCES: dict[str, type] = {"tuple": tuple, "set": set, "frozenset": frozenset}
MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)


class References(Protocol):
    """The methods of an `Endpoint` that `encode` and `decode` call for references, and for arrays sent back."""

    def encode_reference(self, value: Any) -> Any:
        """Encode a value that cannot be copied."""

    def decode_reference(self, kind: str, content: Any) -> Any:
        """Return the value that an encoded reference stands for."""

    def array_number(self, array: Any) -> int | None:
        """Return the number that identifies one of the grader's arrays, or None for any other array."""

    def known_array(self, array: Any, number: int) -> Any:
        """Return the grader's own array if `array` is an unchanged copy of it."""


class ChannelError(Exception):
    """The connection is over: the other side violated the protocol, stopped, or took too long."""


class ProtocolViolation(ChannelError):
    """The other side sent a message that its unmodified code never sends."""


class Channel:
    """A channel for JSON messages over a stream socket.

    The channel has limits on time, on the size of each message, and on the total of received bytes.
    """

    def __init__(
        self, sock: socket.socket, *, max_sent: int = MAX_FRAME, max_received: int = MAX_FRAME, total: float = math.inf
    ) -> None:
        self.sock, self.max_sent, self.max_received, self.left = sock, max_sent, max_received, total
        self.deadline = math.inf
        self.broken: ChannelError | None = None
        self.busy = False
        self._buffer = bytearray()

    def set_deadline(self, seconds: float) -> None:
        """Raise ChannelError for any send or receive that is unfinished after `seconds` from now."""
        self.deadline = time.monotonic() + seconds
        self.sock.settimeout(seconds)

    def send(self, message: Any) -> None:
        """Send one message."""
        content = json.dumps(message).encode()
        if len(content) > self.max_sent:
            raise ValueError(f"{len(content) / 2**20:.0f} MB are more than can be handed over")
        self.busy = True
        try:
            self._check_time()
            self.sock.sendall(struct.pack("!I", len(content)) + content)
        except OSError as error:
            raise ChannelError(_why(error)) from None
        finally:
            self.busy = False

    def receive(self) -> Any:
        """Return the next message."""
        self.busy = True
        try:
            self._fill(4)
            size = struct.unpack_from("!I", self._buffer)[0]
            if size > self.max_received:
                raise ProtocolViolation(f"a message of {size} bytes is over the limit of {self.max_received}")
            self.left -= size
            if self.left < 0:
                raise ProtocolViolation("it sent more than one conversation may")
            self._fill(4 + size)
            content = self._buffer[4 : 4 + size]
            del self._buffer[: 4 + size]
        finally:
            self.busy = False
        try:
            return json.loads(content.decode())
        except (ValueError, RecursionError):
            raise ProtocolViolation("a message that is not JSON") from None

    def _check_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise ChannelError("it took too long")

    def _fill(self, size: int) -> None:
        while len(self._buffer) < size:
            self._check_time()
            try:
                piece = self.sock.recv(2**16)
            except OSError as error:
                raise ChannelError(_why(error)) from None
            if not piece:
                raise ChannelError("the process ended")
            self._buffer += piece


def _why(error: OSError) -> str:
    return "it took too long" if isinstance(error, TimeoutError) else "the process ended"


def encode(value: Any, refs: References, depth: int = 0) -> Any:  # noqa: C901 - one branch for each type
    """Return a value as plain JSON data, from which `decode` restores the value."""
    kind = type(value)
    if kind in SCALARS:  # first, because most values are scalars
        return value
    if depth > MAX_DEPTH:
        raise ValueError(f"a value nested more than {MAX_DEPTH} deep cannot be handed over")

    def inner(items: Iterable[Any]) -> list[Any]:
        return [encode(item, refs, depth + 1) for item in items]

    if kind is list:
        return inner(value)
    if kind in MAPPINGS:
        return {"dict": [inner(pair) for pair in value.items()]}
    if kind in (tuple, set, frozenset):
        return {kind.__name__: inner(value)}
    if kind is bytes:
        return {"bytes": _text(value)}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    if kind in (range, slice):
        return {kind.__name__: inner((value.start, value.stop, value.step))}
    if (kind is np.ndarray or isinstance(value, np.generic)) and value.dtype.kind in PLAIN_DTYPES:
        shape, number = (list(value.shape), refs.array_number(value)) if kind is np.ndarray else (None, None)
        return {"array": [value.dtype.str, shape, _text(np.ascontiguousarray(value).tobytes()), number]}
    if kind is np.ndarray and value.dtype.kind == "O":
        return {"objects": [list(value.shape), inner(value.ravel().tolist())]}
    for plain, copy in PLAIN.items():
        if isinstance(value, plain):  # such as a member of an enum
            return copy(value)
    return refs.encode_reference(value)


def decode(data: Any, refs: References, depth: int = 0) -> Any:  # noqa: C901 - one branch for each type
    """Return the value that `encode` turned into `data`. Any other data raises `ProtocolViolation`."""
    if type(data) in SCALARS:
        return data
    if depth > 2 * MAX_DEPTH:
        raise ProtocolViolation("a value nested too deeply")
    if isinstance(data, list):
        return [decode(item, refs, depth + 1) for item in data]
    inner = partial(decode, refs=refs, depth=depth + 1)
    if not isinstance(data, dict) or len(data) != 1:
        raise ProtocolViolation("a value of unknown form")
    ((kind, content),) = data.items()
    try:
        if kind == "dict":
            return {inner(k): inner(v) for k, v in content}
        if kind in SEQUENCES:
            return SEQUENCES[kind](inner(item) for item in content)
        if kind == "bytes":
            return base64.b64decode(content)
        if kind == "complex":
            return complex(float(content[0]), float(content[1]))
        if kind == "range":
            made = range(*(int(part) for part in content))
            if len(made) > MAX_LENGTH:
                raise ProtocolViolation(f"a range of {len(made)} numbers")
            return made
        if kind == "slice":
            return slice(*(inner(part) for part in content))
        if kind == "objects":
            shape, items = content
            flat = np.empty(len(items), dtype=object)
            for index, item in enumerate(items):
                flat[index] = inner(item)
            return _shaped(flat, shape)
        if kind == "array":
            code, shape, text, number = content
            array = _array(str(code), shape, text)
            return array if number is None else refs.known_array(array, int(number))
        return refs.decode_reference(kind, content)
    except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:  # such as the number Infinity
        raise ProtocolViolation(f"a broken {kind[:20]}: {type(error).__name__}") from None


def _array(code: str, shape: list[int] | None, content: str) -> Any:
    dtype = np.dtype(code)
    if dtype.kind not in PLAIN_DTYPES:
        raise ValueError(code)
    flat = np.frombuffer(base64.b64decode(content), dtype=dtype)
    return flat[0] if shape is None else _shaped(flat, shape).copy()


def _shaped(flat: np.ndarray, shape: list[int]) -> np.ndarray:
    sizes = [int(n) for n in shape]
    if not flat.size and max(sizes, default=0) > MAX_LENGTH:  # empty rows, whose number is not limited elsewhere
        raise ProtocolViolation(f"an array of shape {sizes}")
    return flat.reshape(sizes)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()

"""How judge and judged talk: framed JSON over a socket, values by copy, everything else by reference.

Numbers, text, lists, tuples, dicts, sets, bytes and NumPy arrays travel as copies of exactly these types. Any other
object stays where it is, and the other side gets a `Remote` to it. Nothing is ever unpickled from the student's side.
"""

from __future__ import annotations

import base64
import collections
import json
import math
import socket
import struct
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

MAX_FRAME = 32 * 2**20
MAX_CLAIMS = 256 * 2**20  # in all, of which a check's fakes may keep what they are called with
MAX_CLAIM = 8 * 2**20  # from a submission: what a message may take in the judge's memory is many times its size
MAX_DEPTH = 60
MAX_LENGTH = 1_000_000  # of what takes few bytes here and many where it is unrolled
PLAIN_DTYPES = "biufcSUmM"
SCALARS = (type(None), bool, int, float, str)
PLAIN: dict[type, Callable[[Any], Any]] = {str: str.__str__, float: float.__pos__, int: int.__pos__}
SEQUENCES: dict[str, type] = {"tuple": tuple, "set": set, "frozenset": frozenset}
MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)


class WireError(Exception):
    """The other side broke the protocol, stopped, or took too long: the conversation is over."""


class Foul(WireError):
    """What came is nothing the other side's own code sends."""


class Wire:
    """Frames of JSON over a stream socket, each bounded in size, by direction, and in time, and together in size."""

    def __init__(
        self, sock: socket.socket, *, sends: int = MAX_FRAME, takes: int = MAX_FRAME, in_all: float = math.inf
    ) -> None:
        self.sock, self.sends, self.takes, self.left = sock, sends, takes, in_all
        self.deadline = math.inf
        self.broken: WireError | None = None
        self.busy = False
        self._kept = bytearray()

    def allow(self, seconds: float) -> None:
        """Give everything from now on this much time."""
        self.deadline = time.monotonic() + seconds
        self.sock.settimeout(seconds)

    def send(self, message: Any) -> None:
        """Send one message."""
        content = json.dumps(message).encode()
        if len(content) > self.sends:
            raise ValueError(f"{len(content) / 2**20:.0f} MB are more than can be handed over")
        self.busy = True
        try:
            self._check_time()
            self.sock.sendall(struct.pack("!I", len(content)) + content)
        except OSError as error:
            raise WireError(_why(error)) from None
        finally:
            self.busy = False

    def receive(self) -> Any:
        """Return the next message."""
        self.busy = True
        try:
            self._fill(4)
            size = struct.unpack_from("!I", self._kept)[0]
            if size > self.takes:
                raise Foul(f"a message of {size} bytes is over the limit of {self.takes}")
            self.left -= size
            if self.left < 0:
                raise Foul("it sent more than one conversation may")
            self._fill(4 + size)
            content = bytes(self._kept[4 : 4 + size])
            del self._kept[: 4 + size]
        finally:
            self.busy = False
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise Foul("a message that is not JSON") from None

    def _check_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise WireError("it took too long")

    def _fill(self, size: int) -> None:
        while len(self._kept) < size:
            self._check_time()
            try:
                piece = self.sock.recv(2**16)
            except OSError as error:
                raise WireError(_why(error)) from None
            if not piece:
                raise WireError("the process ended")
            self._kept += piece


def _why(error: OSError) -> str:
    return "it took too long" if isinstance(error, TimeoutError) else "the process ended"


class End(Protocol):
    """What an end of the conversation decides about values."""

    def refer(self, value: Any) -> Any:
        """Return the code of what cannot be copied."""

    def resolve(self, kind: str, content: Any) -> Any:
        """Return the value of such a code."""

    def mark(self, array: Any) -> int | None:
        """Return the number under which an array is known to both sides, if it has one."""

    def meet(self, array: Any, number: int) -> Any:
        """Return the array itself if the copy that came is one of its own, unchanged."""


def encode(value: Any, end: End, depth: int = 0) -> Any:
    """Return a value as JSON."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if depth > MAX_DEPTH:
        raise ValueError(f"a value nested more than {MAX_DEPTH} deep cannot be handed over")
    if kind is list:
        return [encode(item, end, depth + 1) for item in value]
    if kind in MAPPINGS:
        return {"dict": [[encode(k, end, depth + 1), encode(v, end, depth + 1)] for k, v in value.items()]}
    if kind in (tuple, set, frozenset):
        return {kind.__name__: [encode(item, end, depth + 1) for item in value]}
    if kind is bytes:
        return {"bytes": _text(value)}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    if kind is range or kind is slice:
        return {kind.__name__: [encode(part, end, depth + 1) for part in (value.start, value.stop, value.step)]}
    if (kind is np.ndarray or isinstance(value, np.generic)) and value.dtype.kind in PLAIN_DTYPES:
        whole = kind is np.ndarray
        shape, number = (list(value.shape), end.mark(value)) if whole else (None, None)
        return {"array": [value.dtype.str, shape, _text(np.ascontiguousarray(value).tobytes()), number]}
    if kind is np.ndarray and value.dtype.kind == "O":
        return {"objects": [list(value.shape), [encode(item, end, depth + 1) for item in value.ravel().tolist()]]}
    for plain, copy in PLAIN.items():
        if isinstance(value, plain):  # such as an enum's member
            return copy(value)
    return end.refer(value)


def decode(data: Any, end: End, depth: int = 0) -> Any:
    """Return the value of a code.

    Raises
    ------
    Foul
        If `encode` makes no such code.
    """
    if isinstance(data, SCALARS):
        return data
    if depth > 2 * MAX_DEPTH:
        raise Foul("a value nested too deeply")
    if isinstance(data, list):
        return [decode(item, end, depth + 1) for item in data]
    if not isinstance(data, dict) or len(data) != 1:
        raise Foul("a value of unknown form")
    ((kind, content),) = data.items()
    try:
        if kind == "dict":
            return {decode(k, end, depth + 1): decode(v, end, depth + 1) for k, v in content}
        if kind in SEQUENCES:
            return SEQUENCES[kind](decode(item, end, depth + 1) for item in content)
        if kind == "bytes":
            return base64.b64decode(content)
        if kind == "complex":
            return complex(float(content[0]), float(content[1]))
        if kind == "range":
            made = range(*(int(part) for part in content))
            if len(made) > MAX_LENGTH:
                raise Foul(f"a range of {len(made)} numbers")
            return made
        if kind == "slice":
            return slice(*(decode(part, end, depth + 1) for part in content))
        if kind == "objects":
            shape, items = content
            flat = np.empty(len(items), dtype=object)
            for index, item in enumerate(items):
                flat[index] = decode(item, end, depth + 1)
            return _shaped(flat, shape)
        if kind == "array":
            code, shape, text, number = content
            array = _array(str(code), shape, text)
            return array if number is None else end.meet(array, int(number))
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise Foul(f"a broken {kind[:20]}: {type(error).__name__}") from None
    return end.resolve(kind, content)


def _array(code: str, shape: list[int] | None, content: str) -> Any:
    dtype = np.dtype(code)
    if dtype.kind not in PLAIN_DTYPES:
        raise ValueError(code)
    flat = np.frombuffer(base64.b64decode(content), dtype=dtype)
    return flat[0] if shape is None else _shaped(flat, shape).copy()


def _shaped(flat: np.ndarray, shape: list[int]) -> np.ndarray:
    sizes = [int(n) for n in shape]
    if not flat.size and max(sizes, default=0) > MAX_LENGTH:  # rows of nothing, whose number nothing else bounds
        raise Foul(f"an array of shape {sizes}")
    return flat.reshape(sizes)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()

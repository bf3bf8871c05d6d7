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
from typing import Any

import numpy as np

MAX_FRAME = 32 * 2**20
MAX_DEPTH = 60
SCALARS = (type(None), bool, int, float, str)
SEQUENCES: dict[str, type] = {"tuple": tuple, "set": set, "frozenset": frozenset}
MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)


class WireError(Exception):
    """The other side broke the protocol, stopped, or took too long: the conversation is over."""


class Foul(WireError):
    """What came is nothing the other side's own code sends."""


class Wire:
    """Frames of JSON over a stream socket, each bounded in size and time."""

    def __init__(self, sock: socket.socket, *, max_frame: int = MAX_FRAME) -> None:
        self.sock, self.max_frame = sock, max_frame
        self.deadline = math.inf
        self.broken: WireError | None = None

    def send(self, message: Any) -> None:
        """Send one message."""
        content = json.dumps(message).encode()
        if len(content) > self.max_frame:
            raise ValueError(f"{len(content) / 2**20:.0f} MB are more than can be handed over")
        try:
            self._wait()
            self.sock.sendall(struct.pack("!I", len(content)) + content)
        except (OSError, TimeoutError) as error:
            raise WireError(self._why(error)) from None

    def receive(self) -> Any:
        """Return the next message."""
        size = struct.unpack("!I", self._read(4))[0]
        if size > self.max_frame:
            raise Foul(f"a message of {size} bytes is over the limit of {self.max_frame}")
        try:
            return json.loads(self._read(size))
        except (ValueError, RecursionError):
            raise Foul("a message that is not JSON") from None

    def _wait(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.sock.settimeout(None if left == math.inf else left)

    def _read(self, size: int) -> bytes:
        content = bytearray()
        while len(content) < size:
            try:
                self._wait()
                piece = self.sock.recv(min(size - len(content), 2**20))
            except (OSError, TimeoutError) as error:
                raise WireError(self._why(error)) from None
            if not piece:
                raise WireError("the process ended")
            content += piece
        return bytes(content)

    @staticmethod
    def _why(error: BaseException) -> str:
        return "it took too long" if isinstance(error, TimeoutError) else "the process ended"


def encode(value: Any, refer: Callable[[Any], Any], depth: int = 0) -> Any:
    """Return a value as JSON; `refer` gives the code of what cannot be copied."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if depth > MAX_DEPTH:
        raise ValueError(f"a value nested more than {MAX_DEPTH} deep cannot be handed over")
    if kind is list:
        return [encode(item, refer, depth + 1) for item in value]
    if kind in MAPPINGS:
        pairs = [[encode(k, refer, depth + 1), encode(v, refer, depth + 1)] for k, v in value.items()]
        return {"dict": pairs}
    if kind in (tuple, set, frozenset):
        return {kind.__name__: [encode(item, refer, depth + 1) for item in value]}
    if kind is bytes:
        return {"bytes": _text(value)}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    if kind is range or kind is slice:
        return {kind.__name__: [encode(part, refer, depth + 1) for part in (value.start, value.stop, value.step)]}
    if (kind is np.ndarray or isinstance(value, np.generic)) and value.dtype.kind in "biufcSUmM":
        array = np.ascontiguousarray(value)
        shape = list(value.shape) if kind is np.ndarray else None
        return {"array": [value.dtype.str, shape, _text(array.tobytes())]}
    return refer(value)


def decode(data: Any, resolve: Callable[[str, Any], Any], depth: int = 0) -> Any:
    """Return the value of a code; `resolve` answers for what `encode` had referred."""
    if isinstance(data, SCALARS):
        return data
    if depth > 2 * MAX_DEPTH:
        raise Foul("a value nested too deeply")
    if isinstance(data, list):
        return [decode(item, resolve, depth + 1) for item in data]
    if not isinstance(data, dict) or len(data) != 1:
        raise Foul("a value of unknown form")
    ((kind, content),) = data.items()
    try:
        if kind == "dict":
            return {decode(k, resolve, depth + 1): decode(v, resolve, depth + 1) for k, v in content}
        if kind in SEQUENCES:
            return SEQUENCES[kind](decode(item, resolve, depth + 1) for item in content)
        if kind == "bytes":
            return base64.b64decode(content)
        if kind == "complex":
            return complex(float(content[0]), float(content[1]))
        if kind == "range":
            return range(*(int(part) for part in content))
        if kind == "slice":
            return slice(*(decode(part, resolve, depth + 1) for part in content))
        if kind == "array":
            return _array(*content)
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise Foul(f"a broken {kind[:20]}: {type(error).__name__}") from None
    return resolve(kind, content)


def _array(code: str, shape: list[int] | None, content: str) -> Any:
    dtype = np.dtype(str(code))
    if dtype.kind not in "biufcSUmM":
        raise ValueError(code)
    flat = np.frombuffer(base64.b64decode(content), dtype=dtype)
    return flat[0] if shape is None else flat.reshape([int(n) for n in shape]).copy()


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()

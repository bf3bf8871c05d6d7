"""An HTTP client for `tinybench serve` that has at most one open request per connection.

The client sends single probes, and the requests of closed-loop load tests. In a closed loop, each simulated user waits
for the response before sending the next request.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

try:
    import httptools
except ImportError:
    raise ValueError("loading a server takes httptools: pip install 'tinybench-ml[serve]'") from None

__all__ = [
    "Address",
    "ClientConnection",
    "Response",
    "Users",
    "address_of",
    "ask",
    "bodies_of",
    "random_rows",
    "sample_bodies",
]

MOST_BODIES = 256  # maximum number of different request bodies, which are sent in rotation
STAMP = struct.Struct("@ll")  # C's struct timespec: seconds and nanoseconds
STAMPED = sys.platform == "linux" and STAMP.size == 16
SO_TIMESTAMPNS = 35  # Linux, Documentation/networking/timestamping.rst: the kernel reports when bytes arrived
CLOSED, TIMEOUT = "closed the connection", "no answer in time"


class Address(NamedTuple):
    """A server's address: the Host header, the socket's family and address, and the URL path before /predict."""

    host: str
    family: int
    sockaddr: Any
    path: str

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://{self.host}{self.path}"


def address_of(url: str) -> Address:
    """Parse the URL of a server. If the URL cannot be used, raise ValueError with the reason."""
    example = "write the address that `tinybench serve` prints, such as http://127.0.0.1:8000"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 80
    except ValueError as error:
        raise ValueError(f"{url} is no address ({error}); {example}") from None
    if parts.scheme != "http" or not host:
        raise ValueError(f"{url} is no address to load, which begins with http://; {example}")
    try:
        family, _, _, _, sockaddr = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise ValueError(f"{url}: there is no host {host} ({getattr(error, 'strerror', error)})") from None
    return Address(parts.netloc.rpartition("@")[2], family, sockaddr, parts.path.rstrip("/").removesuffix("/predict"))


class Response(NamedTuple):
    """A server's HTTP response. If no response came, `code` is 0 and `body` holds the reason."""

    code: int
    body: bytes

    @property
    def detail(self) -> str:
        """The response's error message, or the whole body if there is none, as one line of at most 300 characters."""
        try:
            told = json.loads(self.body)["detail"]
        except (ValueError, TypeError, KeyError):
            told = self.body.decode(errors="replace")
        return " ".join(str(told).split())[:300] or "without a word"

    @property
    def outcome(self) -> str:
        """The status code as text, or the reason why there was no response."""
        return str(self.code) if self.code else self.body.decode()


class ClientConnection:
    """A persistent connection with at most one open request, and a parser for the responses."""

    def __init__(self, address: Address, timeout: float) -> None:
        """Connect to the server. With a timeout of 0, connecting, reading and writing never wait."""
        self.socket = socket.socket(address.family, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if STAMPED:
            with suppress(OSError):  # without timestamps, a response counts as received when it is read
                self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        try:
            self.socket.connect(address.sockaddr)
        except BlockingIOError:
            pass
        except OSError:
            self.socket.close()
            raise
        self.parser = httptools.HttpResponseParser(self)
        self.parts: list[bytes] = []
        self.complete = self.reusable = False
        self.request: Any = None  # the request that is waiting for its response
        self.unsent: memoryview | bytes = b""
        self.age = 0.0  # seconds that the last bytes waited in the kernel, to be subtracted from the response time

    def on_body(self, part: bytes) -> None:
        """Store a part of the response body. The parser calls this method."""
        self.parts.append(part)

    def on_message_complete(self) -> None:
        """Mark the response as complete. The parser calls this method."""
        self.complete, self.reusable = True, self.parser.should_keep_alive()

    def receive(self) -> Response | None:
        """Read the available bytes. Return the response or a failure, or None if the response is incomplete."""
        try:
            if data := self._read():
                self.parser.feed_data(data)
        except BlockingIOError:
            return None
        except TimeoutError:
            return Response(0, TIMEOUT.encode())
        except OSError:
            data = b""
        except httptools.HttpParserError:
            return Response(0, b"no HTTP")
        if self.complete:
            answer = Response(self.parser.get_status_code(), b"".join(self.parts))
            self.complete, self.parts = False, []
            return answer
        return None if data else Response(0, CLOSED.encode())

    def _read(self) -> bytes:
        self.age = 0.0
        if not STAMPED:
            return self.socket.recv(65536)
        data, told, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(STAMP.size))
        for level, kind, stamp in told:
            if (level, kind, len(stamp)) == (socket.SOL_SOCKET, SO_TIMESTAMPNS, STAMP.size):
                seconds, nanoseconds = STAMP.unpack(stamp)
                self.age = max(0.0, (time.time_ns() - seconds * 10**9 - nanoseconds) / 1e9)
        return data

    def ask(self, message: bytes) -> Response:
        """Send a request and return the response. Each read waits no longer than the socket's timeout."""
        self.reusable = False
        try:
            self.socket.sendall(message)
        except OSError:
            return Response(0, CLOSED.encode())
        while True:
            if answer := self.receive():
                return answer


def message(address: Address, path: str, body: bytes = b"") -> Callable[[object], bytes]:
    """Return a function that takes a request id and builds the request: a POST if `body` is given, otherwise a GET."""
    head = f"{'POST' if body else 'GET'} {address.path}{path} HTTP/1.1\r\nHost: {address.host}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    first, last = f"{head}X-Request-Id: ".encode(), b"\r\n\r\n" + body
    return lambda number: b"%b%b%b" % (first, str(number).encode(), last)


def bodies_of(rows: np.ndarray) -> list[bytes]:
    """Return one JSON request body for each of the first `MOST_BODIES` rows."""
    if rows.ndim < 1 or len(rows) == 0:
        raise ValueError("--data holds no rows to send")
    return [json.dumps({"inputs": [row.tolist()]}).encode() for row in rows[:MOST_BODIES]]


def random_rows(model_input: Any, seed: int) -> np.ndarray:
    """Return 16 random rows for a model input. If the input has a free size or is not numeric, raise ValueError."""
    try:
        shape, dtype = [int(size) for size in model_input["shape"]], np.dtype(model_input["dtype"])
    except (TypeError, KeyError, ValueError):
        shape, dtype = [], np.dtype(object)
    rng = np.random.default_rng(seed)
    match dtype.kind:
        case "f":
            return rng.random((16, *shape)).round(4)
        case "i" | "u" | "b":
            return rng.integers(0, 2, (16, *shape)).astype(bool if dtype.kind == "b" else int)
        case _:
            raise ValueError("the server names no fixed shape of numbers to send; give rows with --data rows.npy")


def ask(address: Address, path: str, body: bytes = b"", timeout: float = 10.0, name: str = "probe") -> Response:
    """Send one request on a new connection and return the response. If the connection fails, raise ValueError."""
    try:
        connection = ClientConnection(address, timeout)
    except TimeoutError:
        raise ValueError(f"{address.url} does not answer within {timeout:g} s") from None
    except OSError as error:
        raise ValueError(f"{address.url} does not answer ({error.strerror}); is the server running there?") from None
    with connection.socket:
        return connection.ask(message(address, path, body)(name))


def sample_bodies(address: Address, rows: np.ndarray | None, seed: int, timeout: float) -> list[bytes]:
    """Return request bodies for `rows`, or for random rows if `rows` is None.

    The first body is sent to the server as a test. If this request fails, raise ValueError with the reason.
    """
    health = ask(address, "/health", timeout=timeout)
    if health.code == 0:
        raise ValueError(f"{address.url}/health: the server {_did(health)}; is it `tinybench serve`?")
    if health.code not in (200, 503):
        raise ValueError(f"{address.url}/health answers {health.code}: that is not `tinybench serve`")
    if health.code == 503:
        raise ValueError(f"{address.url} takes no requests now, it answers 503: {health.detail}")
    if rows is None:
        try:
            told = json.loads(health.body)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise ValueError(f"{address.url}/health does not answer with JSON: that is not `tinybench serve`")
        rows = random_rows(told.get("input"), seed)
    bodies = bodies_of(rows)
    first = ask(address, "/predict", bodies[0], timeout)
    if first.code == 0:
        raise ValueError(f"{address.url}/predict: the server {_did(first)} at the first request")
    if first.code == 404:
        raise ValueError(f"{address.url}/predict answers 404: that is not `tinybench serve`")
    if first.code != 200:
        raise ValueError(f"{address.url}/predict answers {first.code} to the first request: {first.detail}")
    return bodies


def _did(answer: Response) -> str:
    return {CLOSED: CLOSED, TIMEOUT: "gives " + TIMEOUT}.get(answer.outcome, f"speaks {answer.outcome}")


class Users:
    """The simulated users of a closed loop. Each has its own thread and connection, and at most one open request."""

    def __init__(self, address: Address, bodies: Sequence[bytes], timeout: float) -> None:
        self.address, self.timeout = address, timeout
        self.messages = [message(address, "/predict", body) for body in bodies]
        self.sent: list[tuple[float, float, str]] = []  # start, end and outcome of each request
        self._own = threading.local()
        self._open: list[ClientConnection] = []
        self._closed = False

    def send(self, number: int) -> bool:
        """Send request `number` on this thread's connection. Return True if the response has status 200."""
        if self._closed:
            raise SystemExit  # ends only this user's thread
        started, age = time.perf_counter(), 0.0
        try:
            connection: ClientConnection = getattr(self._own, "connection", None) or self._connect()
            answer = connection.ask(self.messages[number % len(self.messages)](number))
            age = connection.age
            if not connection.reusable:
                connection.socket.close()
                self._own.connection = None
        except OSError as error:
            answer = Response(0, (error.strerror or "no connection").encode())
        if not self._closed:
            self.sent.append((started, max(started, time.perf_counter() - age), answer.outcome))
        return answer.code == 200

    def _connect(self) -> ClientConnection:
        connection = self._own.connection = ClientConnection(self.address, self.timeout)
        self._open.append(connection)
        return connection

    @property
    def outcomes(self) -> Counter[str]:
        """The number of requests with each outcome."""
        return Counter(outcome for _, _, outcome in self.sent)

    def close(self) -> None:
        """Stop all users, including users who are waiting for a response, and close all connections."""
        self._closed = True
        for connection in self._open:
            with suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)
            connection.socket.close()

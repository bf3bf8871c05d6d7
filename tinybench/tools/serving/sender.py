"""Requests sent when they are due, whether or not earlier ones were answered.

One thread does it all. Between two sends it waits in `Sender.sleep` for answers, by `select`, which keeps microseconds;
the timers of asyncio and epoll know whole milliseconds, and between two threads the interpreter's lock is handed over
with delays of its own.
"""

from __future__ import annotations

import errno
import math
import select
import selectors
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np

from tinybench.load import LoadResult, open_loop
from tinybench.tools.serving.client import TIMEOUT, Address, ClientConnection, Response, message

__all__ = ["Sender", "TooLateError"]

LATE, BEHIND, SOON = 0.5, 0.2, 1.0  # so many seconds late, and by that share of the time, after so many seconds
OVERSLEPT = 50e-6, 500e-6  # s; what the system may add to a wait: so long before the time it is spent looking,
LOOKING = 0.2  # or as much as takes this share of the time
UNREACHABLE = "no connection"


class TooLateError(ValueError):
    """The generator cannot send as fast as it was asked to."""


class _Request:
    __slots__ = ("answered", "call", "deadline", "future", "number")

    number: int
    call: Callable[[int], Any]
    deadline: float

    def __init__(self) -> None:
        self.future: Future[bool] = Future()
        self.answered = False


class Sender(Executor):
    """An executor for `tinybench.load.open_loop` whose `sleep` reads the answers; `run` passes it all it needs.

    Parameters
    ----------
    address, bodies
        The server, and the bodies to send in turn.
    due
        Intended starts in seconds from the first `submit`'s; their number is that of the requests.
    connections
        How many are opened at most, each when no other is free.
    timeout
        Seconds after which a request without an answer has failed.
    """

    def __init__(
        self,
        address: Address,
        bodies: Sequence[bytes],
        due: np.ndarray,
        *,
        connections: int = 256,
        timeout: float = 10.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.address, self.due, self.timeout, self.clock = address, due.tolist(), timeout, clock
        self.messages = [message(address, "/predict", body) for body in bodies]
        self.connections = connections
        # on the clock, by number; NaN where it has not come to that
        self.submitted, self.started, self.finished = np.full((3, len(due)), np.nan)
        self.ok = np.zeros(len(due), bool)
        self.outcomes: Counter[str] = Counter()
        self.began = math.nan
        self._looking = float(np.clip(LOOKING * due[-1] / len(due), *OVERSLEPT))
        self._open: set[ClientConnection] = set()
        self._free: list[ClientConnection] = []
        self._waiting: deque[_Request] = deque()  # for a connection
        self._pending: deque[_Request] = deque()  # for an answer, by deadline
        self._current = self._next = _Request()
        self._selector = selectors.DefaultSelector()
        if not hasattr(self._selector, "fileno"):  # Windows
            raise ValueError("an open loop needs Linux or macOS to wait for answers and send in time")
        self._file = self._selector.fileno()
        self._drainer: threading.Thread | None = None
        self._stop_at = math.inf

    def run(self, sleep: Callable[[float], None] | None = None) -> LoadResult:
        """Send everything when it is due; another `sleep` does more in a pause, and calls that of here."""
        open_loop(self.send, np.array(self.due), pool=self, clock=self.time, sleep=sleep or self.sleep)
        return self.result()

    def result(self) -> LoadResult:
        """Return what came of the requests so far: an answer has come when the kernel had it, not when it was read."""
        sent = ~np.isnan(self.submitted)
        due = np.array(self.due)[sent]
        started, finished = (np.nan_to_num(x[sent] - self.began, nan=due[-1]) for x in (self.started, self.finished))
        known = {"loop": "open", "began": self.began}
        return LoadResult(due, started, finished, self.ok[sent], max(float(due[-1]), 1e-9), known)

    def time(self) -> float:
        """Tell the time; who asks first is `open_loop`, which counts from then."""
        now = self.clock()
        if math.isnan(self.began):
            self.began = now
        return now

    def submit(self, call: Callable[[int], Any], /, number: int) -> Future[bool]:  # type: ignore[override]
        """Start a request, or queue it if every connection is busy; the future has whether it was answered."""
        self._check_pace(number, now := self.time())
        request = self._next
        request.number, request.call, request.deadline = number, call, now + self.timeout
        self._pending.append(request)
        self._waiting.append(request)
        self._start_waiting()
        self._next = _Request()  # made when there is time
        if number == len(self.due) - 1:  # nobody calls `sleep` after it
            self._drainer = threading.Thread(target=self._drain, name="answers", daemon=True)
            self._drainer.start()
        else:
            self._read(now)  # one who is late does not sleep either
        return request.future

    def _check_pace(self, number: int, now: float) -> None:
        self.submitted[number] = now
        late, passed = now - self.began - self.due[number], now - self.began
        if late > max(LATE, BEHIND * passed) and passed > SOON:  # it will not catch up
            sent = number / passed
            raise TooLateError(f"{late:.1f} s late after {passed:.1f} s: this generator sends about {sent:,.0f}/s here")

    def send(self, number: int) -> bool:
        """Write a request to a free connection, or a new one; called back from `submit`."""
        self.started[number] = self.clock()
        data = self.messages[number % len(self.messages)](number)
        while True:
            fresh = not self._free
            connection = self._connect() if fresh else self._free.pop()
            try:
                written = 0 if fresh else connection.socket.send(data)
            except BlockingIOError:
                written = 0
            except OSError:  # the server closed it meanwhile
                self._drop(connection)
                continue
            connection.request = self._current
            if written < len(data):
                connection.unsent = memoryview(data)[written:]
                self._selector.modify(connection.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
            return True

    def sleep(self, seconds: float) -> None:
        """Read answers for so long."""
        until = self.clock() + seconds
        while (left := until - self.clock()) > 0:
            if self._wait(max(0.0, left - self._looking)):
                self._read(until)
            elif self._pending:
                self._expire(until - left, TIMEOUT)

    def wait_for(self, future: Future[bool]) -> None:
        """Read answers until this one has come."""
        while not future.done():
            self._wait(self.timeout)
            self._read(math.inf)

    def stop(self, grace: float = 1.0) -> None:
        """Wait that long for answers, then give up the rest."""
        self._stop_at = self.clock() + grace
        if self._drainer is None:
            self._drain()
        else:
            self._drainer.join()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Close the connections, after the answers have come."""
        if self._drainer is not None:
            self._drainer.join()
        for connection in list(self._open):
            self._drop(connection)
        self._selector.close()

    def _drain(self) -> None:
        while any(not request.answered for request in self._pending):
            if (now := self.clock()) > self._stop_at:
                self._expire(math.inf, "stopped")
                return
            self._wait(0.02)
            self._read(now + 0.02)

    def _wait(self, seconds: float) -> bool:
        """Wait for something to read, or for the next deadline; by `select`, whose timeout has microseconds."""
        if self._pending:
            seconds = max(0.0, min(seconds, self._pending[0].deadline - self.clock()))
        return bool(select.select([self._file], [], [], seconds)[0])

    def _read(self, until: float) -> None:
        """Take what has come, but send what is due first."""
        for key, mask in self._selector.select(0):
            self._serve(key.data, mask)
            if self.clock() >= until:
                break
        self._expire(self.clock(), TIMEOUT)

    def _serve(self, connection: ClientConnection, mask: int) -> None:
        if mask & selectors.EVENT_WRITE and connection in self._open:
            self._flush(connection)
        if mask & selectors.EVENT_READ and connection in self._open:  # what is told with it may have ended it
            self._receive(connection)
        self._start_waiting()

    def _receive(self, connection: ClientConnection) -> None:
        request, answer = connection.request, connection.receive()
        if answer is None and request is not None:
            return
        # closed while idle or for good, or answered before it was told everything
        if answer is None or request is None or connection.unsent or not connection.reusable:
            self._drop(connection)
        else:
            connection.request, connection.reusable = None, False
            self._free.append(connection)
        if answer is not None and request is not None:
            self._finish(request, answer, connection.age)

    def _flush(self, connection: ClientConnection) -> None:
        try:
            connection.unsent = connection.unsent[connection.socket.send(connection.unsent) :]
        except BlockingIOError:
            return
        except OSError as error:
            self._drop(connection)
            self._finish(connection.request, Response(0, (error.strerror or UNREACHABLE).encode()))
            return
        if not connection.unsent:
            self._selector.modify(connection.socket, selectors.EVENT_READ, connection)

    def _start_waiting(self) -> None:
        while self._waiting and (self._free or len(self._open) < self.connections):
            request = self._current = self._waiting.popleft()
            if request.answered:  # timed out in the queue
                continue
            try:
                request.call(request.number)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE) and self._open:  # this process may open no more
                    self.connections = len(self._open)
                    self._waiting.appendleft(request)
                else:
                    self._finish(request, Response(0, (error.strerror or UNREACHABLE).encode()))

    def _finish(self, request: _Request, answer: Response, age: float = 0.0) -> None:
        request.answered = True
        # a clock that was set meanwhile makes no answer come before its question
        self.finished[request.number] = max(self.clock() - age, self.started[request.number])
        self.ok[request.number] = answer.code == 200
        self.outcomes[answer.outcome] += 1
        request.future.set_result(answer.code == 200)
        while self._pending and self._pending[0].answered:
            self._pending.popleft()

    def _expire(self, now: float, why: str) -> None:
        while self._pending and self._pending[0].deadline <= now:
            request = self._pending[0]
            for connection in [found for found in self._open if found.request is request]:
                self._drop(connection)
            self._finish(request, Response(0, why.encode()))
            self._start_waiting()

    def _connect(self) -> ClientConnection:
        connection = ClientConnection(self.address, 0.0)
        self._open.add(connection)
        self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        return connection

    def _drop(self, connection: ClientConnection) -> None:
        self._selector.unregister(connection.socket)
        connection.socket.close()
        self._open.discard(connection)
        if connection in self._free:
            self._free.remove(connection)

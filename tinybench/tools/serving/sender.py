"""An open-loop load generator, which sends each request when it is due, whether or not earlier ones were answered.

One thread does all the work. Between two sends, `Sender.sleep` waits for answers with `select`, whose timeout has a
resolution of microseconds. The timers of asyncio and epoll have a resolution of milliseconds. A second thread would add
delays, because the interpreter lock would have to pass from one thread to the other.
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

LATE, BEHIND, SOON = 0.5, 0.2, 1.0  # after SOON s, too late is later than LATE s and BEHIND × the elapsed time
OVERSLEPT = 50e-6, 500e-6  # s, shortest and longest polling at the end of a wait, as a blocking wait may end late
LOOKING = 0.2  # fraction of the mean time between requests that is spent polling, within OVERSLEPT
UNREACHABLE = "no connection"


class TooLateError(ValueError):
    """The error raised when the generator cannot send requests at the given rate."""


class _Request:
    __slots__ = ("answered", "call", "deadline", "future", "number")

    number: int
    call: Callable[[int], Any]
    deadline: float

    def __init__(self) -> None:
        self.future: Future[bool] = Future()
        self.answered = False


class Sender(Executor):
    """An open-loop load generator, implemented as an executor for `tinybench.load.open_loop`.

    `run` performs the load test. `sleep` waits until the next request is due, and reads answers while it waits.

    Parameters
    ----------
    address, bodies
        The server, and the request bodies, which are sent in rotation.
    due
        Times at which the requests are due, in seconds from the start of the load test.
    connections
        Maximum number of connections. A new connection is opened only if no existing one is free.
    timeout
        Seconds after which an unanswered request counts as failed.
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
        # clock times by request number; NaN for events that have not happened
        self.submitted, self.started, self.finished = np.full((3, len(due)), np.nan)
        self.ok = np.zeros(len(due), bool)
        self.outcomes: Counter[str] = Counter()
        self.began = math.nan
        self._looking = float(np.clip(LOOKING * due[-1] / len(due), *OVERSLEPT))
        self._open: set[ClientConnection] = set()
        self._free: list[ClientConnection] = []
        self._waiting: deque[_Request] = deque()  # requests that wait for a connection
        self._pending: deque[_Request] = deque()  # requests without an answer, by deadline
        self._current = self._next = _Request()
        self._selector = selectors.DefaultSelector()
        if not hasattr(self._selector, "fileno"):  # Windows
            raise ValueError("an open loop needs Linux or macOS to wait for answers and send in time")
        self._file = self._selector.fileno()
        self._drainer: threading.Thread | None = None
        self._stop_at = math.inf

    def run(self, sleep: Callable[[float], None] | None = None) -> LoadResult:
        """Send every request when it is due, and return the result. A custom `sleep` must call `Sender.sleep`."""
        open_loop(self.send, np.array(self.due), pool=self, clock=self.time, sleep=sleep or self.sleep)
        return self.result()

    def result(self) -> LoadResult:
        """Return the result of the requests so far. A request ends when this machine's kernel receives the answer."""
        sent = ~np.isnan(self.submitted)
        due = np.array(self.due)[sent]
        started, finished = (np.nan_to_num(x[sent] - self.began, nan=due[-1]) for x in (self.started, self.finished))
        known = {"loop": "open", "began": self.began}
        return LoadResult(due, started, finished, self.ok[sent], max(float(due[-1]), 1e-9), known)

    def time(self) -> float:
        """Return the clock's time. The first call, made by `open_loop`, marks the beginning of the load test."""
        now = self.clock()
        if math.isnan(self.began):
            self.began = now
        return now

    def submit(self, call: Callable[[int], Any], /, number: int) -> Future[bool]:  # type: ignore[override]
        """Start a request, or queue it if every connection is busy. The future's result is True for status 200."""
        self._check_pace(number, now := self.time())
        request = self._next
        request.number, request.call, request.deadline = number, call, now + self.timeout
        self._pending.append(request)
        self._waiting.append(request)
        self._start_waiting()
        self._next = _Request()  # created in advance, as the next send may be urgent
        if number == len(self.due) - 1:  # `sleep` is not called after the last request
            self._drainer = threading.Thread(target=self._drain, name="answers", daemon=True)
            self._drainer.start()
        else:
            self._read(now)  # nor is `sleep` called if the generator is late
        return request.future

    def _check_pace(self, number: int, now: float) -> None:
        self.submitted[number] = now
        late, passed = now - self.began - self.due[number], now - self.began
        if late > max(LATE, BEHIND * passed) and passed > SOON:  # the generator will not catch up
            sent = number / passed
            raise TooLateError(f"{late:.1f} s late after {passed:.1f} s: this generator sends about {sent:,.0f}/s here")

    def send(self, number: int) -> bool:
        """Write request `number` to a free or new connection. The sender waits for a connection before this call."""
        self.started[number] = self.clock()
        data = self.messages[number % len(self.messages)](number)
        while True:
            fresh = not self._free
            connection = self._connect() if fresh else self._free.pop()
            try:
                written = 0 if fresh else connection.socket.send(data)
            except BlockingIOError:
                written = 0
            except OSError:  # the server has closed the connection
                self._drop(connection)
                continue
            connection.request = self._current
            if written < len(data):
                connection.unsent = memoryview(data)[written:]
                self._selector.modify(connection.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
            return True

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`, and read the answers that arrive in this time."""
        until = self.clock() + seconds
        while (left := until - self.clock()) > 0:
            if self._wait(max(0.0, left - self._looking)):
                self._read(until)
            elif self._pending:
                self._expire(until - left, TIMEOUT)

    def wait_for(self, future: Future[bool]) -> None:
        """Read answers until the future is done."""
        while not future.done():
            self._wait(self.timeout)
            self._read(math.inf)

    def stop(self, grace: float = 1.0) -> None:
        """Wait up to `grace` seconds for answers, then mark the remaining requests as failed."""
        self._stop_at = self.clock() + grace
        if self._drainer is None:
            self._drain()
        else:
            self._drainer.join()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for the remaining answers, then close the connections."""
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
        """Wait for a ready socket. Return True if there is one, or False after `seconds` or at the next deadline."""
        if self._pending:
            seconds = max(0.0, min(seconds, self._pending[0].deadline - self.clock()))
        return bool(select.select([self._file], [], [], seconds)[0])

    def _read(self, until: float) -> None:
        """Process the answers that have arrived, but stop at the time `until`, when the next request is due."""
        for key, mask in self._selector.select(0):
            self._serve(key.data, mask)
            if self.clock() >= until:
                break
        self._expire(self.clock(), TIMEOUT)

    def _serve(self, connection: ClientConnection, mask: int) -> None:
        if mask & selectors.EVENT_WRITE and connection in self._open:
            self._flush(connection)
        if mask & selectors.EVENT_READ and connection in self._open:  # writing may have closed the connection
            self._receive(connection)
        self._start_waiting()

    def _receive(self, connection: ClientConnection) -> None:
        request, answer = connection.request, connection.receive()
        if answer is None and request is not None:
            return
        # the server closed the connection, will not keep it open, or answered before the whole request was written
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
            if request.answered:  # the request timed out in the queue
                continue
            try:
                request.call(request.number)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE) and self._open:  # no more files may be opened
                    self.connections = len(self._open)
                    self._waiting.appendleft(request)
                else:
                    self._finish(request, Response(0, (error.strerror or UNREACHABLE).encode()))

    def _finish(self, request: _Request, answer: Response, age: float = 0.0) -> None:
        request.answered = True
        # if the system clock was set, an answer must still not precede its request
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

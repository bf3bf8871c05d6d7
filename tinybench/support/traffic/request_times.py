"""A recorder of the times of requests, which wait for their answers in a pool of threads."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

HEAD_START = 1e-3  # s; own threads receive a request this long before it is due, as waking up takes about 0.1 ms


def wait_until(moment: float) -> None:
    """Wait until `moment` on `time.perf_counter`. Poll for the last 0.2 ms because sleep ends about 0.1 ms late."""
    let_others = getattr(os, "sched_yield", partial(time.sleep, 0))  # sleep(0) takes 0.07 ms on Linux
    while (left := moment - time.perf_counter()) > 0:
        if left > 2e-4:
            time.sleep(left - 2e-4)
        else:
            let_others()


class RequestTimes:
    """A recorder of the start and finish times of requests, which may run in any thread or event loop.

    Times count from `zero`. `due` holds the intended start times. If `due` is given, `begin` lies `HEAD_START` before
    `zero`, and the thread that runs a request waits until the request is due.
    """

    def __init__(
        self, send: Callable[[int], Any], number: int, clock: Callable[[], float], due: np.ndarray | None = None
    ) -> None:
        self.send, self.clock, self.submitted = send, clock, 0
        self.started, self.finished = np.full((2, number), math.nan)
        self.ok = np.zeros(number, dtype=bool)
        self.answered = threading.Semaphore(0)
        self.due = due if clock is time.perf_counter else None
        self.begin = clock()
        self.zero = self.begin + (0.0 if self.due is None else HEAD_START)

    def submit(self, pool: Executor, i: int) -> None:
        """Submit request number `i` to `pool` without waiting for its answer."""
        self.submitted += 1
        pool.submit(self._request, i).add_done_callback(partial(self._finish, i))

    def _request(self, i: int) -> Any:
        if self.due is not None:
            wait_until(self.zero + self.due[i])
        self.started[i] = self.clock() - self.zero
        return self.send(i)

    def _finish(self, i: int, future: Future[Any]) -> None:
        try:
            self.finished[i] = self.clock() - self.zero
            self.ok[i] = not future.cancelled() and future.exception() is None and future.result() is not False
        finally:
            self.answered.release()

    def wait(self) -> None:
        """Wait until all submitted requests are finished."""
        for _ in range(self.submitted):
            self.answered.acquire()
        self.submitted = 0


@contextmanager
def thread_pool(pool: Executor | None, most: int = 256) -> Iterator[Executor]:
    """Yield the given pool. If it is None, yield a new pool of at most `most` threads, which ends with the block."""
    if pool is not None:
        yield pool
        return
    with ThreadPoolExecutor(most) as own:
        yield own


@contextmanager
def recorded(
    send: Callable[[int], Any], times: np.ndarray, pool: Executor | None, clock: Callable[[], float]
) -> Iterator[tuple[Executor, RequestTimes]]:
    """Yield a pool and a recorder of requests that are due at `times`. Wait for all answers at the end of the block."""
    due = times if pool is None else None  # the default threads wait for the intended start themselves
    with thread_pool(pool) as pool:
        record = RequestTimes(send, len(times), clock, due)
        yield pool, record
        record.wait()


def users_in_turn(
    send: Callable[[int], Any], users: int, think: float, seconds: float,
    clock: Callable[[], float], sleep: Callable[[float], None],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Return the start and end of each request, and whether it was answered, for users who wait for their answers.

    The parameters are those of `tinybench.load.closed_loop`. Requests are sorted by their start.
    """
    rows: list[tuple[float, float, bool]] = []
    begin, numbers = clock(), iter(range(10**12))

    def user(_: int) -> None:
        while (start := clock() - begin) < seconds:
            try:
                ok = send(next(numbers)) is not False
            except Exception:
                ok = False
            rows.append((start, clock() - begin, ok))
            if think:
                sleep(think)

    with ThreadPoolExecutor(users) as pool:
        list(pool.map(user, range(users)))
    started, finished, answered = np.array(sorted(rows)).T
    return started, finished, answered > 0

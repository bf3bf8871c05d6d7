"""A router between users and two versions of a model.

Each user's requests go to one version. A proportion of the requests is mirrored, that is, also sent to the other
version. A single thread sends requests and reads answers, as in `tinybench.tools.serving.sender`. Each version has its
own sender.
"""

from __future__ import annotations

import json
import math
import select
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinybench.tools.serving.client import TIMEOUT, Address, Response
from tinybench.tools.serving.sender import Sender, _Request

__all__ = ["NEW", "OLD", "Router", "label_of"]

OLD, NEW = 0, 1
NONE = -1  # no answer
ODD = -2  # an answer that is not a row of numbers


def label_of(body: bytes) -> float:
    """Return the label in the answer to a single row: the index of its largest number, or its only number.

    If the answer is not a row of numbers, return `ODD`.
    """
    try:
        value = json.loads(body)["outputs"][0]
        while isinstance(value, list) and len(value) == 1:
            [value] = value
        if isinstance(value, list):
            return float(np.argmax(value))
        return float(value)
    except (ValueError, TypeError, KeyError, IndexError):
        return ODD


class Version(Sender):
    """A sender of requests to one version of the model. It records the label in each answer."""

    def __init__(
        self, address: Address, rows: np.ndarray, bodies: Sequence[bytes], due: np.ndarray, **how: Any
    ) -> None:
        super().__init__(address, bodies, np.append(due, due[-1] + 1), **how)  # one more: the last one is never sent
        by_row = self.messages
        self.messages = [by_row[row] for row in rows.tolist()]
        self.labels = np.full(len(due), float(NONE))
        self.answers = 0
        self.late = 0.0

    def _check_pace(self, number: int, now: float) -> None:
        self.submitted[number] = now
        self.late = now - self.began - self.due[number]

    def _finish(self, request: _Request, answer: Response, age: float = 0.0) -> None:
        if answer.code == 200:
            self.labels[request.number] = label_of(answer.body)
        self.answers += answer.code != 0
        super()._finish(request, answer, age)

    def read(self, until: float) -> None:
        """Read the answers that have arrived."""
        self._read(until)

    @property
    def file(self) -> int:
        """The file descriptor that becomes readable when there is something to read."""
        return self._file

    def give_up(self) -> None:
        """Mark all requests that are still waiting for an answer as failed."""
        self._expire(math.inf, TIMEOUT)


class Router:
    """A router that sends each request when it is due, to one version or to both. Call `run_until` to send requests.

    Parameters
    ----------
    addresses
        The addresses of the old and the new version.
    bodies
        The bodies of all possible requests.
    due
        The time at which each request is due, in seconds from the start.
    rows
        The index of each request's body in `bodies`.
    route
        A function that takes the index of a request. It returns whether the request goes to the new version, and
        whether the request also goes to the other version.
    timeout
        Seconds after which a request without an answer has failed.
    """

    def __init__(
        self,
        addresses: tuple[Address, Address],
        bodies: Sequence[bytes],
        due: np.ndarray,
        rows: np.ndarray,
        route: Callable[[int], tuple[bool, bool]],
        timeout: float = 2.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        how: dict[str, Any] = {"timeout": timeout, "clock": clock}
        self.sides = tuple(Version(address, rows, bodies, due, **how) for address in addresses)
        self.due, self.route, self.clock = due, route, clock
        self.next, self.began = 0, math.nan
        self.turn = np.random.default_rng(len(due)).integers(0, 2, len(due))  # which request of a pair is sent first

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.began

    @property
    def late(self) -> float:
        """How late the last request was sent, in seconds after its due time."""
        return max(side.late for side in self.sides)

    def start(self) -> None:
        """Start the clock."""
        self.began = self.clock()
        for side in self.sides:
            side.began = self.began

    def run_until(self, end: float) -> None:
        """Send all requests that are due before `end`, and read answers between them."""
        while self.next < len(self.due) and self.due[self.next] < end:
            self._read_until(float(self.due[self.next]))
            number, self.next = self.next, self.next + 1
            is_new, mirrored = self.route(number)
            sides = [int(is_new)] if not mirrored else [NEW, OLD] if self.turn[number] else [OLD, NEW]
            for side in sides:
                self.sides[side].submit(self.sides[side].send, number)
        self._read_until(end)

    def drain(self, seconds: float) -> None:
        """Wait up to `seconds` for outstanding answers, then mark the remaining requests as failed."""
        end = self.now + seconds
        while self.now < end and any(side._pending for side in self.sides):
            self._read_until(min(end, self.now + 0.02))
        for side in self.sides:
            side.give_up()

    def close(self) -> None:
        """Close all connections."""
        for side in self.sides:
            side.shutdown()

    def _read_until(self, when: float) -> None:
        end = self.began + when
        while (left := end - self.clock()) > 0:
            found, _, _ = select.select([side.file for side in self.sides], [], [], min(left, 0.05))
            for side in self.sides:
                if side.file in found or not found:
                    side.read(end)

"""The router: users' requests to the version that is theirs, a mirrored share of them to the other one, too.

One thread sends and reads, as `tinybench.tools.serving.sender` does, with a sender for each version.
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
ODD = -2  # an answer that is no row of numbers


def label_of(body: bytes) -> float:
    """Return what an answer to one row says: the place of its largest number, or the number itself."""
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
    """The sender to one version; it keeps what each answer said."""

    def __init__(
        self, address: Address, rows: np.ndarray, bodies: Sequence[bytes], due: np.ndarray, **how: Any
    ) -> None:
        super().__init__(address, bodies, np.append(due, due[-1] + 1), **how)  # one more: the last number is never sent
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
        """Take what has come."""
        self._read(until)

    @property
    def file(self) -> int:
        """What becomes readable when there is something to read."""
        return self._file

    def give_up(self) -> None:
        """Wait for no answer any more."""
        self._expire(math.inf, TIMEOUT)


class Router:
    """Sends requests when they are due, to one version or both, while time passes in `run_until`.

    Parameters
    ----------
    addresses
        The old version's and the new one's.
    bodies
        What can be asked.
    due
        When each request is due, in seconds from the start.
    rows
        Which body each request has.
    route
        Returns for a request whether it goes to the new version, and whether to the other one, too.
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
        self.turn = np.random.default_rng(len(due)).integers(0, 2, len(due))  # who of a pair is sent first

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.began

    @property
    def late(self) -> float:
        """How much too late the last request was sent."""
        return max(side.late for side in self.sides)

    def start(self) -> None:
        """Let the time begin."""
        self.began = self.clock()
        for side in self.sides:
            side.began = self.began

    def run_until(self, end: float) -> None:
        """Send what is due until then, and read answers meanwhile."""
        while self.next < len(self.due) and self.due[self.next] < end:
            self._read_until(float(self.due[self.next]))
            number, self.next = self.next, self.next + 1
            is_new, mirrored = self.route(number)
            sides = [int(is_new)] if not mirrored else [NEW, OLD] if self.turn[number] else [OLD, NEW]
            for side in sides:
                self.sides[side].submit(self.sides[side].send, number)
        self._read_until(end)

    def drain(self, seconds: float) -> None:
        """Wait so long for the answers on their way, then give them up."""
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

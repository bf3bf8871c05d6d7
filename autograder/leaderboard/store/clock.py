"""The clock for deadlines and quotas. A jump of the system's clock does not affect this clock, and is logged."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from autograder.leaderboard.formatting import moment

JUMP = 3600.0  # seconds; smaller changes are normal clock corrections

_said: dict[str, float] = {}


class SteadyClock:
    """A clock that follows the system's clock, but ignores its jumps.

    After a jump, this clock logs an error and continues as if there were no jump, until the program starts again.
    `wall` returns seconds since 1970. `steady` returns seconds since any fixed moment, including time in which the
    machine sleeps.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
    ) -> None:
        self.wall, self.steady = wall, steady
        self.apart = wall() - steady()

    def __call__(self) -> float:
        """Return seconds since 1970. If the wall clock has jumped, continue with the steady clock and log an error."""
        wall, expected = self.wall(), self.steady() + self.apart
        if abs(wall - expected) > JUMP:
            alarm(
                f"the clock jumped to {moment(wall)}; going on with {moment(expected)} until this program starts again"
            )
            return expected
        self.apart += wall - expected
        return wall


def alarm(text: str) -> None:
    """Log an error, but log errors of the same kind at most once a minute."""
    now, kind = time.monotonic(), text[:20]  # the rest holds times, which differ between errors of the same kind
    if now - _said.get(kind, float("-inf")) > 60:
        _said[kind] = now
        logging.getLogger(__name__).error("%s", text)

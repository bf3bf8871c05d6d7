"""How long something computes, whatever else the machine and this process do."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from autograder import time_limits

TRIES = 3  # a collection of garbage, or a cache that others have emptied, makes one slow


def cpu_seconds(do: Callable[[], object], enough: float = 0.0) -> float:
    """Return the least CPU time that this thread takes for some calls; one in `enough` seconds is the last."""
    least = math.inf
    for _ in range(TRIES):
        started = time.thread_time()
        do()
        least = min(least, time.thread_time() - started)
        if least <= enough:
            break
    return least


def within(seconds: float, do: Callable[[], object]) -> None:
    """Fail if something computes for longer than `seconds`, which a slower processor has more of."""
    limit = time_limits.cpu(seconds)
    took = cpu_seconds(do, limit)
    assert took <= limit, f"it computes for {took:.3g} s, and has {limit:.3g} s"

"""How slow this machine is: time limits are multiplied by it, up to a cap.

`cpu` is for limits on computing, which a hostile submission may use up: it depends on the processor alone, is measured
once and handed on to child processes, so that grader, workers and tests agree. `wall` is for limits on waiting, which
must not strike because others use the machine: it asks for the load each time.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

USUAL = 0.0015  # CPU seconds of `_work` on the processor that the limits were written on
MOST_SLOW, MOST_BUSY = 8.0, 16.0
SLOWNESS = "TINYBENCH_SLOWNESS"  # in the environment: for child processes


def cpu(seconds: float) -> float:
    """Return a limit on CPU time as this processor needs it."""
    return seconds * slowness()


def wall(seconds: float) -> float:
    """Return a limit on waiting time as this processor needs it, as busy as it is now."""
    return seconds * slowness() * busyness()


@cache
def slowness() -> float:
    """Return how many times the usual time this processor takes, at least 1."""
    try:
        known = float(os.environ[SLOWNESS])
    except (KeyError, ValueError):
        trace = sys.gettrace()
        sys.settrace(None)  # a debugger or coverage makes Python slow, not this processor
        known = min(_work() for _ in range(5)) / USUAL
        sys.settrace(trace)
    known = min(max(known, 1.0), MOST_SLOW)
    os.environ[SLOWNESS] = f"{known:.3g}"
    return known


def busyness() -> float:
    """Return how many processes want each core, at least 1: in the last minute or right now, whichever is more."""
    wanting = [0.0]
    with suppress(OSError, AttributeError):  # Windows has none
        wanting.append(os.getloadavg()[0])
    with suppress(OSError, ValueError):  # the average takes a minute to tell
        wanting.append(float(Path("/proc/loadavg").read_text(encoding="utf-8").split()[3].partition("/")[0]))
    from tinybench.support.conditions.cores import usable_cores  # late: psutil takes a while to load

    return min(max(1.0, max(wanting) / usable_cores()), MOST_BUSY)


def _work() -> float:
    """Return the CPU seconds of a little of what Python usually does."""
    started, kept = time.thread_time(), dict[int, str]()
    for number in range(20_000):
        kept[number % 512] = str(number * number % 7)
    return time.thread_time() - started

"""Factors that adapt time limits to the speed and the load of this machine, up to a cap.

`cpu` adapts limits on CPU time, all of which a hostile submission may use up. The factor of `cpu` depends on the
processor alone. This factor is measured once and passed to child processes, so that the grader, its workers and the
tests agree. `wall` adapts limits on waiting time. Such a limit must not be exceeded merely because other processes use
the machine, so each call of `wall` reads the current load.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

USUAL = 0.0015  # CPU seconds of `_work` on the processor for which the limits were chosen
MOST_SLOW, MOST_BUSY = 8.0, 16.0
SLOWNESS = "TINYBENCH_SLOWNESS"  # the environment variable that passes the factor to child processes


def cpu(seconds: float) -> float:
    """Return a limit on CPU time, multiplied by the slowness of this processor."""
    return seconds * slowness()


def wall(seconds: float) -> float:
    """Return a limit on waiting time, multiplied by the slowness of this processor and by its current load."""
    return seconds * slowness() * busyness()


@cache
def slowness() -> float:
    """Return this processor's time for `_work` as a multiple of the usual time, at least 1 and at most `MOST_SLOW`."""
    try:
        known = float(os.environ[SLOWNESS])
    except (KeyError, ValueError):
        trace = sys.gettrace()
        sys.settrace(None)  # a debugger or a coverage tool slows down Python, not the processor
        known = min(_work() for _ in range(5)) / USUAL
        sys.settrace(trace)
    known = min(max(known, 1.0), MOST_SLOW)
    os.environ[SLOWNESS] = f"{known:.3g}"
    return known


def busyness() -> float:
    """Return the number of runnable processes per core, at least 1 and at most `MOST_BUSY`.

    The number is the average over the last minute or the current number, whichever is larger.
    """
    wanting = [0.0]
    with suppress(OSError, AttributeError):  # Windows has no load average
        wanting.append(os.getloadavg()[0])
    with suppress(OSError, ValueError):  # the average lags behind by a minute
        wanting.append(float(Path("/proc/loadavg").read_text(encoding="utf-8").split()[3].partition("/")[0]))
    return min(max(1.0, max(wanting) / _cores()), MOST_BUSY)


@cache
def _cores() -> int:
    from tinybench.support.conditions.cores import usable_cores  # imported here because psutil loads slowly

    return usable_cores()


def _work() -> float:
    """Return the CPU seconds of a short, typical Python workload."""
    started, kept = time.thread_time(), dict[int, str]()
    for number in range(20_000):
        kept[number % 512] = str(number * number % 7)
    return time.thread_time() - started

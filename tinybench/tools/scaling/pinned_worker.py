"""The code that each worker runs: pinning to cores, and counting calls within a time window.

The module imports little, so that new processes start fast.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil


def calls_in(
    call: Callable[[], Any], start: float, end: float, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Wait until `start`, then repeat the call until `end`. Return the number of calls.

    The last call counts as the fraction of its duration that lies before `end`.
    """
    while (now := clock()) < start:
        time.sleep(max(0.0, min(start - now, 1e-3)))
    calls = 0
    while True:
        call()
        before, now = now, clock()
        if now >= end:
            return calls + (end - before) / (now - before) if before < end else float(calls)
        calls += 1


def can_pin() -> bool:
    """Return whether this system lets a program choose its cores: Linux and Windows do, macOS does not."""
    return hasattr(psutil.Process(), "cpu_affinity")


def own_cores() -> list[int]:
    """Return the indices of the cores that this process may use, as far as the system reports them."""
    return list(psutil.Process().cpu_affinity()) if can_pin() else list(range(os.cpu_count() or 1))


@contextmanager
def pinned(cores: Collection[int] | None) -> Iterator[None]:
    """Pin all threads of this process, including new ones, to the given cores. With None, do nothing."""
    if cores is None:
        yield
        return
    process = psutil.Process()
    if not hasattr(os, "sched_setaffinity"):
        before = process.cpu_affinity()
        process.cpu_affinity(list(cores))
        try:
            yield
        finally:
            process.cpu_affinity(before)
        return
    each = {thread.id: os.sched_getaffinity(thread.id) for thread in process.threads()}  # on Linux they may differ
    try:
        for thread in each:
            with suppress(ProcessLookupError):  # the thread has ended
                os.sched_setaffinity(thread, cores)
        yield
    finally:
        for thread, cores in each.items():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread, cores)

"""Locks and events between processes in a sandbox where nobody can sleep on them: see `syscalls.PRIVATE_FUTEX`."""

from __future__ import annotations

import math
import time
from multiprocessing.synchronize import SemLock
from typing import Any

LONGEST_PAUSE = 0.005


def wait_by_asking() -> None:
    """Have `multiprocessing` ask again and again, as Python does where a system cannot wait for a given time."""
    now, sleep = time.monotonic, time.sleep  # a student may replace them

    def make_methods(lock: Any) -> None:
        take = lock._semlock.acquire

        def acquire(block: bool = True, timeout: float | None = None) -> bool:
            until, pause = math.inf if timeout is None else now() + timeout, 1e-5
            while not take(False):
                if not block or now() >= until:
                    return False
                sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            return True

        lock.acquire, lock.release = acquire, lock._semlock.release

    SemLock._make_methods = make_methods  # type: ignore[attr-defined]
    SemLock.__enter__ = lambda lock: lock.acquire()  # type: ignore[method-assign]

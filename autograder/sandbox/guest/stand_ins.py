"""Replacements for blocked system calls: locks between processes, load averages, and the size of the memory.

The system-call filter blocks the originals.
"""

from __future__ import annotations

import math
import os
import time
from multiprocessing.synchronize import SemLock
from pathlib import Path
from typing import Any

LONGEST_PAUSE = 0.005


def install() -> None:
    """Install the replacements.

    Call this before other libraries are loaded, because they keep references to the originals.
    """
    _wait_by_asking()
    os.getloadavg = _load_averages
    known = os.sysconf
    os.sysconf = lambda name: _pages(name) if name in ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES") else known(name)


def _wait_by_asking() -> None:
    """Make the locks of `multiprocessing` poll, as Python does on systems that cannot wait with a timeout."""
    now, sleep = time.monotonic, time.sleep  # kept here, because a student may replace them

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


def _load_averages() -> tuple[float, float, float]:
    one, five, fifteen = Path("/proc/loadavg").read_text(encoding="utf-8").split()[:3]
    return float(one), float(five), float(fifteen)


def _pages(name: str) -> int:
    lines = (line.split() for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines())
    kilobytes = {words[0]: int(words[1]) for words in lines}
    found = kilobytes["MemTotal:" if name == "SC_PHYS_PAGES" else "MemAvailable:"]
    return found * 1024 // os.sysconf("SC_PAGE_SIZE")

"""A lock that allows only one measurement at a time on this host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from autograder import time_limits

LOCKS = Path("/tmp")  # the same for all users, whatever their TMPDIR says
NAME = "tinybench-referee"
PATIENCE = 600.0  # seconds on a typical idle machine; longer than a measurement takes

Progress = Callable[[str], object]


@contextmanager
def locked_host(progress: Progress = lambda text: None, name: str = NAME, patience: float = PATIENCE) -> Iterator[None]:
    """Hold this host's lock for measurements, which all workers, leaderboards and users share.

    Any user could hold the lock for ever, or create a lock file that others cannot open. So after `patience` seconds,
    or if the file cannot be opened, the block runs without the lock.
    """
    lock = FileLock(LOCKS / f"{name}.lock", mode=0o666)
    try:
        with suppress(OSError):  # filelock's Timeout is an OSError too
            _acquire(lock, progress, time_limits.wall(patience))
        yield
    finally:
        lock.release()


def _acquire(lock: FileLock, progress: Progress, seconds: float) -> None:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        progress("waiting for another measurement on this machine")
        lock.acquire(timeout=seconds, poll_interval=0.2)

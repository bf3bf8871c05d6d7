"""One measurement at a time on this host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from autograder import pace

LOCKS = Path("/tmp")  # the same for all users, whatever their TMPDIR says
NAME = "tinybench-referee"
PATIENCE = 600.0  # seconds on a usual, idle machine; more than a measurement takes

Progress = Callable[[str], object]


@contextmanager
def locked_host(progress: Progress = lambda text: None, name: str = NAME, patience: float = PATIENCE) -> Iterator[None]:
    """Measure alone on this host, however many workers, leaderboards and users there are.

    Any user can keep the lock, or a lock file that others cannot open: that stops nobody for longer than `patience`.
    """
    lock = FileLock(LOCKS / f"{name}.lock", mode=0o666)
    try:
        with suppress(OSError):  # Timeout is one
            _acquire(lock, progress, pace.wall(patience))
        yield
    finally:
        lock.release()


def _acquire(lock: FileLock, progress: Progress, seconds: float) -> None:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        progress("waiting for another measurement on this machine")
        lock.acquire(timeout=seconds, poll_interval=0.2)

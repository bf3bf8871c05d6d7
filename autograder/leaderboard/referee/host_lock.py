"""One measurement at a time on this host."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from autograder import pace

LOCK = "tinybench-referee"
PATIENCE = 600.0  # seconds; more than a measurement takes

Progress = Callable[[str], object]


@contextmanager
def host_lock(progress: Progress = lambda text: None, name: str = LOCK, patience: float = PATIENCE) -> Iterator[None]:
    """Measure alone on this host, however many workers, leaderboards and users there are.

    Parameters
    ----------
    progress
        Is told when another measurement is waited for.
    name
        Of a socket that one process at a time can have; the kernel frees it with the process.
    patience
        Seconds on a usual, idle machine. Any user can have that socket: who keeps it longer than a measurement takes
        stops nobody.
    """
    with socket.socket(socket.AF_UNIX) as place:
        end = time.monotonic() + pace.wall(patience)
        if not _taken(place, name):
            progress("waiting for another measurement on this machine")
            while not _taken(place, name) and time.monotonic() < end:
                time.sleep(0.2)
        yield


def _taken(place: socket.socket, name: str) -> bool:
    try:
        place.bind(f"\0{name}")
    except OSError:
        return False
    return True

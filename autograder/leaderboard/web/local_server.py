"""A local leaderboard that starts and ends together with another program."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from autograder import time_limits
from autograder.leaderboard.settings import PORT
from tinybench.support.basics.child_process import ChildProcess

STARTS_WITHIN = 60.0  # seconds


class NotRunning(Exception):
    """The leaderboard did not start. The message says why."""


def database_of(root: Path) -> str:
    """Return the address of a course's database: the value of TINYBENCH_DATABASE, or a file in ``course/``."""
    (root / "course").mkdir(exist_ok=True)
    return os.environ.get("TINYBENCH_DATABASE") or f"sqlite:///{root / 'course' / 'leaderboard.db'}"


@contextmanager
def running(root: Path, events: Path | None = None, seconds: float = STARTS_WITHIN) -> Iterator[str]:
    """Run `autograder leaderboard serve`, with pages and a worker, until the block ends. Yield the address.

    The port is the usual one, or a free one if another program uses that port. The output of the leaderboard goes to
    ``course/leaderboard.log``. If the leaderboard ends or does not answer in time, raise NotRunning with the reason.
    """
    log = root / "course" / "leaderboard.log"
    log.parent.mkdir(exist_ok=True)
    with ExitStack() as stack:
        with _listening() as sock:  # passed on, so no other program can take the port
            port, number = sock.getsockname()[1], sock.fileno()
            command = [sys.executable, "-m", "autograder", "--root", str(root), "leaderboard", "serve"]
            command += ["--port", str(port), "--fd", str(number), *(["--events", str(events)] if events else [])]
            child = ChildProcess(
                command, wrapped=True, output="file", errors=log, patience=time_limits.wall(10), handles=[number]
            )
            server = stack.enter_context(child)
        address = f"http://127.0.0.1:{port}/"
        _await(server, address, log, time.monotonic() + time_limits.wall(seconds))
        yield address


def _listening() -> socket.socket:
    for port in (PORT, 0):
        try:
            return socket.create_server(("127.0.0.1", port))
        except OSError:
            continue
    raise NotRunning("there is no free port on this machine")


def _await(server: ChildProcess, address: str, log: Path, deadline: float) -> None:
    import httpx  # takes longer than everything else that the commands import

    while server.process.poll() is None:
        try:
            httpx.get(address, timeout=time_limits.wall(5)).raise_for_status()
        except httpx.HTTPError:
            if time.monotonic() > deadline:
                raise NotRunning(f"it does not answer; {log} says more") from None
            time.sleep(0.1)
        else:
            return
    lines = server.written().strip().splitlines()
    code = server.process.returncode
    raise NotRunning(lines[-1].removeprefix("autograder: ") if lines else f"it ended with exit code {code}")

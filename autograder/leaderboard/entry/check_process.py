"""The entry check in a process of its own: a file that hangs or breaks its reader costs the server nothing."""

from __future__ import annotations

import atexit
import json
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from autograder import pace
from autograder.leaderboard.entry.validate import Facts, Refused, check
from autograder.leaderboard.settings import EntryLimits

COMMAND = [sys.executable, "-m", __name__]
CPU_SECONDS = 2.0
WALL_SECONDS = 20.0  # on a busy machine waiting for a core costs no file its chance
MEMORY = 2 * 2**30


class Reader:
    """A process that checks one file after another, until one ends it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, data: bytes, limits: EntryLimits) -> Any:
        """Return what the process says of a file; None, and the process has ended, if it says nothing in time."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        alarm = threading.Timer(pace.wall(WALL_SECONDS), self.process.kill)
        alarm.start()
        try:
            self.process.stdin.write(json.dumps({"size": len(data), "limits": asdict(limits)}).encode() + b"\n" + data)
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (OSError, ValueError):
            self.end()
            return None
        finally:
            alarm.cancel()

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


_idle: list[Reader] = []


@atexit.register
def _end_all() -> None:
    while _idle:
        _idle.pop().end()


def check_apart(data: bytes, limits: EntryLimits) -> Facts:
    """Do what `entry.check` does, in a process with limits on time and memory.

    Parameters
    ----------
    data, limits
        See `entry.check`.

    Raises
    ------
    Refused
        As `entry.check`, and if the check uses too much or breaks down.
    """
    try:
        reader = _idle.pop()
    except IndexError:
        reader = Reader()
    answer = reader.ask(data, limits)
    if answer is None:
        most = pace.cpu(CPU_SECONDS)
        raise Refused(f"reading it takes more than {most:.3g} s, or breaks the reader; make the model simpler")
    _idle.append(reader)
    if "refused" in answer:
        raise Refused(answer["refused"])
    return Facts(**answer)


def serve(check: Callable[[bytes, EntryLimits], Facts] = check) -> None:
    """Check what comes on standard input, until there is no more: each time a line of JSON, and the file."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C ends the server, and its end this
    for line in iter(sys.stdin.buffer.readline, b""):
        question = json.loads(line)
        data = sys.stdin.buffer.read(question["size"])
        # its signal ends the process, whatever that is doing
        signal.setitimer(signal.ITIMER_PROF, pace.cpu(CPU_SECONDS))
        try:
            answer = asdict(check(data, EntryLimits(**question["limits"])))
        except Refused as refused:
            answer = {"refused": str(refused)}
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()

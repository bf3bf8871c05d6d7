"""The entry check in a process of its own: a file that hangs or breaks its reader costs the server nothing."""

from __future__ import annotations

import atexit
import json
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from autograder import pace
from autograder.leaderboard.entry.validate import EntryRefused, Facts, check
from autograder.leaderboard.settings import EntryLimits
from tinybench.support.basics.child_process import ChildEndedError, ChildProcess

COMMAND = [sys.executable, "-m", __name__]
CPU_SECONDS = 2.0
WALL_SECONDS = 20.0  # on a busy machine waiting for a core costs no file its chance
MEMORY = 2 * 2**30


def _ask(child: ChildProcess, data: bytes, limits: EntryLimits) -> Any:
    """Return the answer of a process that checks files; close it and return None if there is no answer in time."""
    assert child.process.stdin is not None
    try:
        with child.killed_after(pace.wall(WALL_SECONDS)):
            pipe = child.process.stdin.buffer  # type: ignore[attr-defined]
            pipe.write(json.dumps({"size": len(data), "limits": asdict(limits)}).encode() + b"\n" + data)
            pipe.flush()
            return json.loads(child.receive())
    except (ChildEndedError, OSError, ValueError):
        child.close()
        return None


_idle: list[ChildProcess] = []


@atexit.register
def _end_all() -> None:
    while _idle:
        _idle.pop().close()


def check_in_process(data: bytes, limits: EntryLimits) -> Facts:
    """Do what `validate.check` does, in a process with limits on time and memory; what breaks it is refused."""
    try:
        process = _idle.pop()
    except IndexError:
        process = ChildProcess(COMMAND, patience=0)
    answer = _ask(process, data, limits)
    if answer is None:
        most = pace.cpu(CPU_SECONDS)
        raise EntryRefused(f"reading it takes more than {most:.3g} s, or breaks the reader; make the model simpler")
    _idle.append(process)
    if "refused" in answer:
        raise EntryRefused(answer["refused"])
    return Facts(**answer)


def answer_questions(check: Callable[[bytes, EntryLimits], Facts] = check) -> None:
    """Check the files on standard input until it ends: each time a line of JSON, and the file."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C ends the server, and its end this
    for line in iter(sys.stdin.buffer.readline, b""):
        question = json.loads(line)
        data = sys.stdin.buffer.read(question["size"])
        # its signal ends the process, whatever that is doing
        signal.setitimer(signal.ITIMER_PROF, pace.cpu(CPU_SECONDS))
        try:
            answer = asdict(check(data, EntryLimits(**question["limits"])))
        except EntryRefused as refused:
            answer = {"refused": str(refused)}
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    answer_questions()

"""The validation of an entry in a subprocess, so that a malicious file cannot hang or crash the server."""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autograder import time_limits
from autograder.leaderboard.entry.validate import EntryRefused, Facts, check
from autograder.leaderboard.settings import EntryLimits
from tinybench.support.basics.child_process import ChildEndedError, ChildProcess

COMMAND = [sys.executable, "-m", __name__]
CPU_SECONDS = 2.0
WALL_SECONDS = 20.0  # long enough that a file is not refused only because it waits for a core
MEMORY = 2 * 2**30


def _ask(child: ChildProcess, data: bytes, limits: EntryLimits) -> Any:
    """Send a file to the subprocess, and return the answer.

    If no answer comes in time, end the subprocess and return None.
    """
    assert child.process.stdin is not None
    try:
        with child.killed_after(time_limits.wall(WALL_SECONDS)):
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
    """Run `validate.check` in a subprocess with limits on time and memory.

    Refuse any file that breaks the subprocess.
    """
    try:
        process = _idle.pop()
    except IndexError:
        process = ChildProcess(COMMAND, errors=Path(os.devnull), patience=0)  # a hostile file could fill a log
    answer = _ask(process, data, limits)
    if answer is None:
        most = time_limits.cpu(CPU_SECONDS)
        raise EntryRefused(f"reading it takes more than {most:.3g} s, or breaks the reader; make the model simpler")
    _idle.append(process)
    if "refused" in answer:
        raise EntryRefused(answer["refused"])
    return Facts(**answer)


def answer_questions(check: Callable[[bytes, EntryLimits], Facts] = check) -> None:
    """Check the files that arrive on standard input, until it ends.

    Each file follows a line of JSON, which holds the size of the file and the limits. The result is printed as JSON.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C ends the server, which then ends this process
    for line in iter(sys.stdin.buffer.readline, b""):
        question = json.loads(line)
        data = sys.stdin.buffer.read(question["size"])
        # the timer's signal ends this process at any point
        signal.setitimer(signal.ITIMER_PROF, time_limits.cpu(CPU_SECONDS))
        try:
            answer = asdict(check(data, EntryLimits(**question["limits"])))
        except EntryRefused as refused:
            answer = {"refused": str(refused)}
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    answer_questions()

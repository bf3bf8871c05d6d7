"""The entry check in a process of its own: a file that hangs or breaks its reader costs the server nothing."""

from __future__ import annotations

import json
import multiprocessing
import resource
from collections.abc import Callable
from dataclasses import asdict
from multiprocessing.connection import Connection

from autograder.leaderboard.entry import Facts, Refused, check
from autograder.leaderboard.events import EntryLimits

CPU_SECONDS = 2
WALL_SECONDS = 20.0  # on a busy machine waiting for a core costs no file its chance
MEMORY = 2 * 2**30

# Each check is a fork of one small process that has imported everything: that takes milliseconds.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([__name__])


Check = Callable[[bytes, EntryLimits], Facts]


def check_apart(data: bytes, limits: EntryLimits, check: Check = check) -> Facts:
    """Do what `entry.check` does, in a process with limits on time and memory.

    Parameters
    ----------
    data, limits
        See `entry.check`.
    check
        What is done there.

    Raises
    ------
    Refused
        As `entry.check`, and if the check uses too much or breaks down.
    """
    ours, theirs = _processes.Pipe()
    process = _processes.Process(target=_answer, args=(theirs, limits, check), daemon=True)
    process.start()
    theirs.close()
    try:
        ours.send_bytes(data)
        answer = json.loads(ours.recv_bytes()) if ours.poll(WALL_SECONDS) else None
    except (EOFError, OSError):  # it was ended by a limit, or broke down
        answer = None
    finally:
        process.kill()
        process.join()
        ours.close()
    if answer is None:
        raise Refused(f"reading it takes more than {CPU_SECONDS} s, or breaks the reader; make the model simpler")
    if "refused" in answer:
        raise Refused(answer["refused"])
    return Facts(**answer)


def _answer(theirs: Connection, limits: EntryLimits, check: Check) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        answer = asdict(check(theirs.recv_bytes(), limits))
    except Refused as refused:
        answer = {"refused": str(refused)}
    # As JSON: a reader that a file has taken over can say nothing that runs here.
    theirs.send_bytes(json.dumps(answer).encode())

"""Runs the measuring program for a grade: by a fork, because a new interpreter takes longer than the question."""

from __future__ import annotations

import atexit
import os
from functools import cache
from pathlib import Path

import tinybench
from autograder import pace
from autograder.leaderboard.referee.referee import PROGRAM
from autograder.sandbox.bubblewrap import Finished, Limits, Mounts
from autograder.sandbox.rpc.codec import MAX_CLAIM, Channel, ChannelError
from autograder.sandbox.rpc.endpoint import Endpoint
from autograder.sandbox.zygote import Zygote


def run_forked(stdin: bytes, limits: Limits) -> Finished:
    """Run the measuring program in a sandbox of its own, forked from a process that has loaded its libraries."""
    if _zygote(os.getpid(), limits).process.poll() is not None:  # such as for want of memory
        _zygote.cache_clear()
    sandbox = _zygote(os.getpid(), limits).fork()
    channel, output = Channel(sandbox.rpc, max_received=MAX_CLAIM), ""
    channel.set_deadline(pace.wall(limits.wall_seconds))
    try:
        guest = Endpoint(channel, lambda value: False).root()
        guest.cell("from measure import answered")
        output = str(guest.names().answered(stdin))
    except ChannelError as broken:
        why = sandbox.end()
        return Finished(1, b"", b"", why if why not in ("", "done") else str(broken))
    sandbox.end()
    return Finished(0, output.encode(), b"")


@cache
def _zygote(process: int, limits: Limits) -> Zygote:
    """Return the zygote of this process, which ends with it; one that was forked needs its own."""
    shown = {"/course/measure.py": PROGRAM, "/course/tinybench": Path(str(tinybench.__file__)).parent}
    zygote = Zygote(["measure", "tinybench.latency", "tinybench.course"], Mounts(shown), limits=limits)
    atexit.register(zygote.close)
    return zygote

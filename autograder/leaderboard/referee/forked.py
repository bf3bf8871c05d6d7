"""A way to run the measuring program in a forked process, which is used to grade notebooks.

A new interpreter would take longer to start than the measurement takes.
"""

from __future__ import annotations

import atexit
import os
from functools import cache
from pathlib import Path

import tinybench
from autograder import time_limits
from autograder.leaderboard.referee.referee import PROGRAM
from autograder.sandbox.bubblewrap import Finished, Limits, Mounts
from autograder.sandbox.rpc.codec import MAX_CLAIM, Channel, ChannelError
from autograder.sandbox.rpc.endpoint import Endpoint
from autograder.sandbox.zygote_client import Zygote


def run_forked(stdin: bytes, limits: Limits) -> Finished:
    """Run the measuring program in a separate sandbox, forked from a process that has loaded the libraries."""
    if _zygote(os.getpid(), limits).process.poll() is not None:  # it may have run out of memory
        _zygote.cache_clear()
    sandbox = _zygote(os.getpid(), limits).fork()
    channel = Channel(sandbox.rpc, max_received=MAX_CLAIM)
    channel.set_deadline(time_limits.wall(limits.wall_seconds))
    try:
        guest = Endpoint(channel, lambda value: False).root()
        guest.cell("from measure import answered")
        return Finished(0, str(guest.names().answered(stdin)).encode(), b"")
    except ChannelError as broken:
        return Finished(1, b"", b"", sandbox.end() or str(broken))
    finally:
        sandbox.end()


@cache
def _zygote(process: int, limits: Limits) -> Zygote:
    """Return the zygote of this process, from which sandboxes are forked. The zygote ends together with this process.

    `process` is the ID of this process. A forked process has another ID, so it gets a zygote of its own.
    """
    shown = {"/course/measure.py": PROGRAM, "/course/tinybench": Path(str(tinybench.__file__)).parent}
    zygote = Zygote(["measure", "tinybench.latency", "tinybench.course"], Mounts(shown), limits=limits)
    atexit.register(zygote.close)
    return zygote

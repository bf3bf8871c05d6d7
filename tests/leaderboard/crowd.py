"""Server and worker as programs that a test can kill: ``python -m tests.leaderboard.crowd serve|work DATABASE …``.

The worker measures for real, but without a fresh sandbox for each of hundreds of entries: these models are the test's own.
"""

from __future__ import annotations

import functools
import sys
import threading

import uvicorn

from autograder.leaderboard.referee import measure, worker
from autograder.leaderboard.referee.referee import Referee
from autograder.leaderboard.store import jobs
from autograder.leaderboard.store.store import Store
from autograder.leaderboard.web import connection_timeouts
from autograder.leaderboard.web.app import create_app
from autograder.sandbox.bubblewrap import Finished, Limits
from tests.leaderboard.boards import small_olympics, trained
from tinybench import latency


def in_this_process(stdin: bytes, limits: Limits) -> Finished:
    """Run the measuring program without starting one."""
    return Finished(0, measure.answered(stdin).encode(), b"")


def main(what: str, database: str, *more: str) -> None:
    """Be a server or a worker."""
    store, olympics = Store(database), small_olympics()
    if what == "serve":
        uvicorn.Server(connection_timeouts.config(create_app(store, olympics), port=int(more[0]))).run()
        return
    jobs.LEASE, worker.HEARTBEAT, worker.POLL = 2.0, 0.5, 0.05
    latency.measure_latencies = functools.partial(latency.measure_latencies, warmup_runs=0)
    referee = Referee(olympics, trained(), store.private_seed(), in_this_process)
    print("ready", flush=True)
    worker.work(store, referee.measure, stop=threading.Event())


if __name__ == "__main__":
    main(*sys.argv[1:])

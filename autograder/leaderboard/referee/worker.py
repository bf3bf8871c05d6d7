"""The worker. It takes entries from the queue one by one, and has the referee measure them."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import Any

from autograder.leaderboard import digits
from autograder.leaderboard.entry.validate import EntryRefused
from autograder.leaderboard.referee.host_lock import Progress
from autograder.leaderboard.referee.referee import Referee
from autograder.leaderboard.settings import Olympics
from autograder.leaderboard.store import jobs
from autograder.leaderboard.store.jobs import Job
from autograder.leaderboard.store.store import Store
from autograder.sandbox.bubblewrap import available

RECIPE = "baseline recipe"
POLL = 0.5
HEARTBEAT = 5.0

Measure = Callable[[bytes, Progress], tuple[dict[str, Any], dict[str, Any]]]


class LeaseLost(Exception):
    """The lease on a job expired, and another worker has taken over the job."""


def check_baseline(store: Store, olympics: Olympics) -> None:
    """Raise ValueError if the baseline of this database differs from the baseline in the events file."""
    known = store.setting(RECIPE)
    if known and known != _recipe(olympics):
        raise ValueError(
            f"[baseline] in the events file is not the one of this database, {known.decode()}: all entries are "
            "compared with the same one. Put it back, or begin a new database"
        )


def _recipe(olympics: Olympics) -> bytes:
    return json.dumps(asdict(olympics.baseline)).encode()


def make_referee(store: Store, olympics: Olympics) -> Referee:
    """Return a referee that uses the baseline and the private seed of this database."""
    check_baseline(store, olympics)
    store.setting(RECIPE, lambda: _recipe(olympics))
    baseline = store.setting("baseline", lambda: digits.train_baseline(olympics.baseline))
    return Referee(olympics, baseline, store.private_seed())


def work(store: Store, measure: Measure, *, stop: threading.Event, idle: bool = True, name: str = "") -> int:
    """Measure entries until `stop` is set. Return the number of finished entries.

    With ``idle=False``, also stop when no entry is left. `name` appears in the history of entries. The default consists
    of the host's name and the process ID.
    """
    name = name or f"{socket.gethostname()}:{os.getpid()}"
    ended = 0
    while not stop.is_set():
        job = jobs.claim(store, name)
        if job is not None:
            ended += _measure(store, job, measure)
        elif idle:
            stop.wait(POLL)
        else:
            break
    return ended


def _measure(store: Store, job: Job, measure: Measure) -> bool:
    """Measure one entry and write the result. Return False if another worker has taken over the job meanwhile."""
    done = threading.Event()

    def keep_lease() -> None:
        while not done.wait(HEARTBEAT):
            jobs.renew(store, job)

    def progress(text: str) -> None:
        if not jobs.renew(store, job, text):
            raise LeaseLost

    heartbeat = threading.Thread(target=keep_lease, daemon=True)
    heartbeat.start()
    try:
        return jobs.finish(store, job, *measure(store.content(job.sha256), progress))
    except EntryRefused as refused:
        # It counts: it has cost the referee's time, and nobody may probe the private digits for free.
        return jobs.refuse(store, job, str(refused), counts=True)
    except LeaseLost:
        return False
    except (KeyboardInterrupt, SystemExit):
        jobs.put_back(store, job)
        raise
    except Exception:
        # An error in the referee, not in the entry. Say so, print it for the instructor, and continue with the next.
        traceback.print_exc(file=sys.stderr)
        return jobs.refuse(store, job, "the referee failed on it; tell your instructor, whose log says more")
    finally:
        done.set()
        heartbeat.join()


def run_worker(database: str, olympics: Olympics) -> None:
    """Run a worker until it is interrupted. An entry that is being measured then goes back to the queue."""
    available()
    store = Store(database)
    check_baseline(store, olympics)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    referee = cache(lambda: make_referee(store, olympics))

    def measure(data: bytes, progress: Progress) -> tuple[dict[str, Any], dict[str, Any]]:
        if not referee.cache_info().currsize:  # prepared at the first entry, so that the pages start at once
            progress("preparing baseline and digits")
        return referee().measure(data, progress)

    print("worker: waiting for entries", flush=True)
    work(store, measure, stop=threading.Event())

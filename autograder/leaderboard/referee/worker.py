"""The worker: takes entries from the database one by one and lets the referee measure them."""

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
from typing import Any

from autograder.leaderboard import digits
from autograder.leaderboard.entry.validate import Refused
from autograder.leaderboard.referee.host_lock import Progress
from autograder.leaderboard.referee.referee import Referee, RefusedOnPrivate
from autograder.leaderboard.settings import Olympics
from autograder.leaderboard.store import jobs
from autograder.leaderboard.store.jobs import Job
from autograder.leaderboard.store.store import Store
from autograder.sandbox.bubblewrap import available

RECIPE = "baseline recipe"
POLL = 0.5
HEARTBEAT = 5.0

Measure = Callable[[bytes, Progress], tuple[dict[str, Any], dict[str, Any]]]


class Lost(Exception):
    """Another worker has this job now: the lease had lapsed."""


def check_baseline(store: Store, olympics: Olympics) -> None:
    """Raise ValueError if the entries of this database are measured beside another baseline than the file's."""
    known = store.setting(RECIPE)
    if known and known != _recipe(olympics):
        raise ValueError(
            f"[baseline] in the events file is not the one of this database, {known.decode()}: all entries are "
            "measured beside the same one. Put it back, or begin a new database"
        )


def _recipe(olympics: Olympics) -> bytes:
    return json.dumps(asdict(olympics.baseline)).encode()


def make_referee(store: Store, olympics: Olympics) -> Referee:
    """Return the referee with the baseline and the private seed of this database."""
    check_baseline(store, olympics)
    store.setting(RECIPE, lambda: _recipe(olympics))
    baseline = store.setting("baseline", lambda: digits.train_baseline(olympics.baseline))
    return Referee(olympics, baseline, store.private_seed())


def work(store: Store, measure: Measure, *, stop: threading.Event, idle: bool = True, name: str = "") -> int:
    """Measure entries until told to stop.

    Parameters
    ----------
    store
        The database.
    measure
        `Referee.measure`.
    stop
        Set to end after the entry in hand.
    idle
        Wait for more when no entry is left; otherwise return.
    name
        Of this worker, in the history of entries; by default host and process.

    Returns
    -------
    int
        How many entries it ended.
    """
    name = name or f"{socket.gethostname()}:{os.getpid()}"
    ended = 0
    while not stop.is_set():
        job = jobs.claim(store, name)
        if job is not None:
            ended += _attend(store, job, measure)
        elif idle:
            stop.wait(POLL)
        else:
            break
    return ended


def _attend(store: Store, job: Job, measure: Measure) -> bool:
    """Measure one entry and write how it ended; False if that was for another worker to do."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(HEARTBEAT):
            jobs.renew(store, job)

    def progress(text: str) -> None:
        if not jobs.renew(store, job, text):
            raise Lost

    heart = threading.Thread(target=beat, daemon=True)
    heart.start()
    try:
        return jobs.finish(store, job, *measure(store.content(job.sha256), progress))
    except Refused as refused:
        return jobs.refuse(store, job, str(refused), counts=isinstance(refused, RefusedOnPrivate))
    except Lost:
        return False
    except (KeyboardInterrupt, SystemExit):
        jobs.put_back(store, job)
        raise
    except Exception:
        # An error of ours, not of the entry: say so, keep it for the instructor, and go on with the next one.
        traceback.print_exc(file=sys.stderr)
        return jobs.refuse(store, job, "the referee failed on it; tell your instructor, whose log says more")
    finally:
        done.set()
        heart.join()


def run(database: str, olympics: Olympics) -> int:
    """Be a worker until interrupted; an entry in hand then goes back to the queue.

    Raises
    ------
    SandboxUnavailable
        If this machine cannot confine entries.
    """
    available()
    store = Store(database)
    check_baseline(store, olympics)

    def leave(*_: object) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, leave)
    hired: list[Referee] = []

    def measure(data: bytes, progress: Progress) -> tuple[dict[str, Any], dict[str, Any]]:
        if not hired:  # with the first entry: who only looks at the pages need not wait for a baseline to be trained
            progress("preparing baseline and digits")
            hired.append(make_referee(store, olympics))
        return hired[0].measure(data, progress)

    print("worker: waiting for entries", flush=True)
    work(store, measure, stop=threading.Event())
    return 0

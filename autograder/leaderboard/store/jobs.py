"""Who measures what: entries are claimed, kept alive by a lease, and ended exactly once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, func, or_, select

from autograder.leaderboard.store.store import Store
from autograder.leaderboard.store.tables import (
    COUNTED,
    MEASURED,
    QUEUED,
    REFUSED,
    RUNNING,
    TAKEN_UP,
    history,
    jobs,
    results,
    writing,
)

LEASE = 30.0  # seconds
ATTEMPTS = 3


@dataclass(frozen=True)
class Job:
    """An entry that a worker has taken up; a later attempt makes this one worthless."""

    entry_id: int
    event: str
    sha256: str
    worker: str
    attempt: int


def _last_served() -> Any:
    """Return, as SQL, when an entry of the same student was last taken up: lines of history are numbered."""
    theirs = jobs.alias()
    query = select(func.coalesce(func.max(history.c.id), 0)).join(theirs, theirs.c.entry_id == history.c.entry_id)
    return query.where(theirs.c.student_id == jobs.c.student_id, history.c.what == TAKEN_UP).scalar_subquery()


def claim(store: Store, worker: str) -> Job | None:
    """Take up the next entry: one whose worker has not been heard of for `LEASE` seconds, or one that waits.

    Students take turns, so that nobody's many entries keep the others waiting.

    No two workers get the same one: PostgreSQL passes over rows that another transaction holds, SQLite has one
    transaction that writes at a time.
    """
    now = store.clock()
    # A lease far in the future was made before the clock was set back.
    lapsed = and_(jobs.c.state == RUNNING, or_(jobs.c.lease < now, jobs.c.lease > now + 10 * LEASE))
    # "running" comes after "queued"
    order = (jobs.c.state.desc(), _last_served(), jobs.c.entry_id)
    query = select(jobs).where(or_(jobs.c.state == QUEUED, lapsed)).order_by(*order).limit(1)
    with writing(store.engine) as connection:
        row = connection.execute(query.with_for_update(skip_locked=True)).first()
        if row is None:
            return None
        spent = row.attempt >= ATTEMPTS
        if spent:
            reason = f"the referee stopped {ATTEMPTS} times while it measured this entry; tell your instructor"
            connection.execute(jobs.update().where(jobs.c.entry_id == row.entry_id).values(state=REFUSED))
            store.note(connection, row.entry_id, "refused", reason)
        else:
            values = {"state": RUNNING, "worker": worker, "attempt": row.attempt + 1, "lease": now + LEASE}
            connection.execute(
                jobs.update().where(jobs.c.entry_id == row.entry_id).values(**values, progress="starting")
            )
            again = f", because {row.worker} did not finish" if row.state == RUNNING else ""
            store.note(connection, row.entry_id, TAKEN_UP, f"by {worker}, attempt {row.attempt + 1}{again}")
    return claim(store, worker) if spent else Job(row.entry_id, row.event, row.sha256, worker, row.attempt + 1)


def ahead(store: Store, entry_id: int) -> int:
    """Return how many entries will be measured before one that waits, if no others come."""
    running = select(func.count()).select_from(jobs).where(jobs.c.state == RUNNING)
    queued = select(jobs.c.entry_id, jobs.c.student_id, _last_served().label("served"))
    with store.engine.begin() as connection:
        rows = connection.execute(queued.where(jobs.c.state == QUEUED).order_by(jobs.c.entry_id)).all()
        before = connection.scalar(running) or 0
    turns: Counter[int] = Counter()
    order = []
    for row in rows:
        turns[row.student_id] += 1
        order.append((turns[row.student_id], row.served, row.entry_id))
    numbers = [number for *_, number in sorted(order)]
    return before + (numbers.index(entry_id) if entry_id in numbers else 0)


def _still_mine(job: Job) -> Any:
    mine = (jobs.c.worker == job.worker) & (jobs.c.attempt == job.attempt) & (jobs.c.state == RUNNING)
    return jobs.update().where(jobs.c.entry_id == job.entry_id, mine)


def renew(store: Store, job: Job, progress: str | None = None) -> bool:
    """Say that the worker is alive, and how far it is; False if the job is no longer its own."""
    values: dict[str, Any] = {"lease": store.clock() + LEASE} | ({"progress": progress} if progress else {})
    with writing(store.engine) as connection:
        return bool(connection.execute(_still_mine(job).values(**values)).rowcount)


def put_back(store: Store, job: Job) -> None:
    """Let another worker take the job up at once; this attempt does not count."""
    values = {"state": QUEUED, "attempt": job.attempt - 1, "progress": "", "lease": 0.0}
    with writing(store.engine) as connection:
        if connection.execute(_still_mine(job).values(**values)).rowcount:
            store.note(connection, job.entry_id, "put back", f"by {job.worker}, which was stopped")


def finish(store: Store, job: Job, scores: dict[str, Any], evidence: dict[str, Any]) -> bool:
    """Write what was measured; False, and nothing written, if the job is no longer this worker's."""
    with writing(store.engine) as connection:
        if not connection.execute(_still_mine(job).values(state=MEASURED, progress="")).rowcount:
            return False
        connection.execute(results.insert().values(entry_id=job.entry_id, scores=scores, evidence=evidence))
        store.note(connection, job.entry_id, "measured", f"by {job.worker}")
    return True


def refuse(store: Store, job: Job, reason: str, counts: bool = False) -> bool:
    """Write why an entry could not be measured; False, and nothing written, if the job is not this worker's.

    An entry that counts takes its part of the quota nevertheless.
    """
    with writing(store.engine) as connection:
        if not connection.execute(_still_mine(job).values(state=REFUSED, progress="")).rowcount:
            return False
        store.note(connection, job.entry_id, "refused", reason)
        if counts:
            store.note(connection, job.entry_id, COUNTED, "against the quota of its day")
    return True

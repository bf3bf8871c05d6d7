"""The job queue. A worker claims an entry, and keeps it by renewing a lease. Each entry is finished exactly once.

The queue is a table instead of a queue library, because entry, state and result have to change in one transaction, on
SQLite and on PostgreSQL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, func, or_, select

from autograder.leaderboard.store.database import writing
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
)

LEASE = 30.0  # seconds
ATTEMPTS = 3


@dataclass(frozen=True)
class Job:
    """An entry that a worker has claimed. A later attempt by any worker makes this job invalid."""

    entry_id: int
    event: str
    sha256: str
    worker: str
    attempt: int


def _last_served() -> Any:
    """Return a SQL subquery that finds when a worker last claimed an entry of the same student as a job's.

    Its result is the number of the history line that records this claim, or 0 if there is none.
    """
    theirs = jobs.alias()
    query = select(func.coalesce(func.max(history.c.id), 0)).join(theirs, theirs.c.entry_id == history.c.entry_id)
    return query.where(theirs.c.student_id == jobs.c.student_id, history.c.what == TAKEN_UP).scalar_subquery()


def claim(store: Store, worker: str) -> Job | None:
    """Claim the next entry and return it as a job, or return None if there is none.

    The next entry is a waiting one, or one whose worker has not renewed the lease for `LEASE` seconds. Students take
    turns. No two workers get the same entry: PostgreSQL skips rows that another transaction has locked, and SQLite
    allows only one writing transaction at a time.
    """
    now = store.clock()
    # A lease far in the future dates from before the clock was set back.
    lapsed = and_(jobs.c.state == RUNNING, or_(jobs.c.lease < now, jobs.c.lease > now + 10 * LEASE))
    # expired jobs come first, because "running" sorts after "queued"
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
    """Return the number of entries that will be measured before a waiting entry, if no new entries arrive."""
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


@contextmanager
def _changed(store: Store, job: Job, **values: Any) -> Iterator[Connection | None]:
    """Change a job and yield the transaction's connection. Yield None if this worker no longer has the job."""
    mine = (jobs.c.worker == job.worker) & (jobs.c.attempt == job.attempt) & (jobs.c.state == RUNNING)
    change = jobs.update().where(jobs.c.entry_id == job.entry_id, mine).values(**values)
    with writing(store.engine) as connection:
        yield connection if connection.execute(change).rowcount else None


def renew(store: Store, job: Job, progress: str | None = None) -> bool:
    """Renew the lease on a job, and store the worker's progress. Return False if the worker no longer has the job."""
    values: dict[str, Any] = {"progress": progress} if progress else {}
    with _changed(store, job, lease=store.clock() + LEASE, **values) as connection:
        return connection is not None


def put_back(store: Store, job: Job) -> None:
    """Return a job to the queue, where any worker can claim it at once. The interrupted attempt does not count."""
    with _changed(store, job, state=QUEUED, attempt=job.attempt - 1, progress="", lease=0.0) as connection:
        if connection:
            store.note(connection, job.entry_id, "put back", f"by {job.worker}, which was stopped")


def finish(store: Store, job: Job, scores: dict[str, Any], evidence: dict[str, Any]) -> bool:
    """Write the scores and the evidence of an entry.

    If the worker no longer has the job, write nothing and return False.
    """
    with _changed(store, job, state=MEASURED, progress="") as connection:
        if connection:
            connection.execute(results.insert().values(entry_id=job.entry_id, scores=scores, evidence=evidence))
            store.note(connection, job.entry_id, "measured", f"by {job.worker}")
        return connection is not None


def refuse(store: Store, job: Job, reason: str, counts: bool = False) -> bool:
    """Write why an entry is refused, and whether it counts against the quota.

    If the worker no longer has the job, write nothing and return False.
    """
    with _changed(store, job, state=REFUSED, progress="") as connection:
        if connection:
            store.note(connection, job.entry_id, "refused", reason)
            if counts:
                store.note(connection, job.entry_id, COUNTED, "against the quota of its day")
        return connection is not None

"""The leaderboard's stored data: students, entries, results, and each entry's history. The queue is in `jobs`."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, exists, func, select
from sqlalchemy.exc import IntegrityError

from autograder.leaderboard.formatting import moment
from autograder.leaderboard.store.clock import JUMP, SteadyClock, alarm
from autograder.leaderboard.store.database import open_database, writing
from autograder.leaderboard.store.tables import (
    COUNTED,
    QUEUED,
    REFUSED,
    entries,
    files,
    history,
    jobs,
    results,
    settings,
    students,
)
from tinybench.support.basics.numbers import number_of

if TYPE_CHECKING:  # the entry check takes long to import
    from autograder.leaderboard.entry.validate import Facts
    from autograder.leaderboard.settings import Quota

DAY = 86_400
TRUSTED = "clock trusted since"  # a setting: the number of the history line after which times count


class NotAllowed(Exception):
    """The request is not allowed now. The message says why and what to do."""


class UnknownToken(NotAllowed):
    """The token is missing, forged, replaced or expired."""


class Conflict(NotAllowed):
    """The same file was entered before."""


class Waiting(NotAllowed):
    """The student's last entry to this event is still waiting."""


class Exhausted(NotAllowed):
    """The student's quota for the day is used up."""


@dataclass(frozen=True)
class Student:
    """A student who may enter models."""

    id: int
    name: str


def _digest(token: str) -> str:
    # A token has 192 random bits: nobody can guess one, so no slow hash and no salt are needed.
    return hashlib.sha256(token.encode()).hexdigest()


class Store:
    """The database of a leaderboard. `clock` returns seconds since 1970."""

    def __init__(self, url: str, clock: Callable[[], float] | None = None) -> None:
        self.engine = open_database(url)
        self.clock = clock or SteadyClock()

    def close(self) -> None:
        """Close the connections to the database."""
        self.engine.dispose()

    def _now(self, connection: Connection) -> float:
        """Return the current time or, if later, the time of the last history line.

        So nobody gains time by setting the clock back.
        """
        now, last = self.clock(), self._last(connection)
        if last > now + JUMP:
            alarm(
                f"the last entry is of {moment(last)}, this machine's clock says {moment(now)}: the later one counts. "
                "Set the clock right, or, if it was ahead then, run `autograder leaderboard clock --trust`"
            )
        return max(now, last)

    def _last(self, connection: Connection) -> float:
        """Return the time of the last line of history after the last call of `trust_clock`, or 0 if there is none."""
        trusted = connection.scalar(select(settings.c.value).where(settings.c.name == TRUSTED))
        lines = select(history.c.stamp).order_by(history.c.id.desc()).limit(1)
        return connection.scalar(lines.where(history.c.id > int(trusted or b"0"))) or 0.0

    def last(self) -> float:
        """Return the time of the last line of history in seconds since 1970, or 0 if there is none."""
        with self.engine.begin() as connection:
            return self._last(connection)

    def trust_clock(self) -> None:
        """Trust this machine's clock again.

        Ignore the times of all history lines so far, because the clock was ahead then.
        """
        with writing(self.engine) as connection:
            latest = connection.scalar(select(func.max(history.c.id))) or 0
            connection.execute(settings.delete().where(settings.c.name == TRUSTED))
            connection.execute(settings.insert().values(name=TRUSTED, value=str(latest).encode()))

    def now(self) -> float:
        """Return the time used for deadlines and quotas."""
        with self.engine.begin() as connection:
            return self._now(connection)

    def note(self, connection: Connection, entry_id: int, what: str, detail: str = "") -> None:
        """Add a line to the history of an entry."""
        stamp = self._now(connection)
        connection.execute(history.insert().values(entry_id=entry_id, stamp=stamp, what=what, detail=detail))

    def setting(self, name: str, make: Callable[[], bytes] | None = None) -> bytes:
        """Return the setting `name`, whose value all servers and workers share.

        If it is missing, store the value that `make` returns, or the value of another process if that was faster.
        If it is missing and there is no `make`, return empty bytes.
        """
        query = select(settings.c.value).where(settings.c.name == name)
        rows = self._rows(query)
        if not rows and make:
            made = make()  # may take long, so it runs outside any transaction
            # If another process was faster, its value counts.
            with suppress(IntegrityError), writing(self.engine) as connection:
                connection.execute(settings.insert().values(name=name, value=made))
            rows = self._rows(query)
        return bytes(rows[0].value) if rows else b""

    def private_seed(self) -> int:
        """Return the seed of the private digits, which is stored only in this database."""
        return int.from_bytes(self.setting("private seed", lambda: secrets.token_bytes(8)))

    def add_token(self, name: str, days: float) -> str:
        """Return a new token for a student, which replaces any earlier one. Raise ValueError for an invalid name."""
        name = name.strip()
        if not name or len(name) > 80 or not name.isprintable():
            raise ValueError(f"{name[:80]!r} is no name; a name has 1 to 80 printable characters")
        token = secrets.token_hex(24)  # no dash, as a leading one would be an option on a command line
        values = {"token_sha256": _digest(token), "expires": self.clock() + days * DAY}
        with writing(self.engine) as connection:
            changed = connection.execute(students.update().where(students.c.name == name).values(**values))
            if changed.rowcount == 0:
                connection.execute(students.insert().values(name=name, **values))
        return token

    def student(self, token: str) -> Student:
        """Return the owner of a token. Raise UnknownToken if it is missing, forged, replaced or expired."""
        if not token:
            raise UnknownToken("a token is missing; your instructor has one for you")
        query = select(students).where(students.c.token_sha256 == _digest(token))
        with self.engine.begin() as connection:
            row = connection.execute(query).first()
            now = self._now(connection)
        if row is None:
            raise UnknownToken("this token is not known; copy it again, or ask your instructor for a new one")
        if row.expires < now:
            raise UnknownToken("this token has expired; ask your instructor for a new one")
        return Student(row.id, row.name)

    def enter(
        self,
        student: Student,
        event: str,
        name: str,
        data: bytes,
        facts: Facts,
        quota: Quota,
        deadline: datetime | None = None,
        arrived: float | None = None,
    ) -> int:
        """Queue a checked file for measurement, and return the entry's number.

        If the file may not be entered, raise `NotAllowed` or a subclass of it. The deadline is compared with the time
        `arrived` at which the upload began, by default now.
        """
        with writing(self.engine) as connection:
            # Lock the student's row. Otherwise two entries at once could both pass the quota.
            connection.execute(select(students.c.id).where(students.c.id == student.id).with_for_update())
            stamp = self._now(connection)
            if deadline and (stamp if arrived is None else arrived) >= deadline.timestamp():
                raise NotAllowed(f"the deadline was {moment(deadline.timestamp())}; nobody can enter any more")
            same = (jobs.c.event == event) & (jobs.c.sha256 == facts.sha256) & (jobs.c.state != REFUSED)
            earlier = connection.scalar(select(jobs.c.entry_id).where(same))
            if earlier is not None:
                raise Conflict(f"this very file is entry {earlier} already; change the model, then enter it again")
            used = self._used(connection, student, event)
            if used >= quota.per_day:
                raise Exhausted(
                    f"you have entered {number_of(used, 'model')} to this event today, which is "
                    "the daily limit; try again tomorrow (in UTC)"
                )
            mine = (jobs.c.student_id == student.id) & (jobs.c.event == event)
            waiting = connection.scalar(select(jobs.c.entry_id).where(mine, jobs.c.state == QUEUED))
            if waiting is not None:
                raise Waiting(f"your entry {waiting} to this event still waits; enter the next when it is measured")
            known = connection.scalar(select(files.c.sha256).where(files.c.sha256 == facts.sha256))
            try:
                if known is None:
                    connection.execute(files.insert().values(sha256=facts.sha256, content=data))
                return self._add(connection, student, event, name, asdict(facts), QUEUED)
            except IntegrityError:  # on PostgreSQL another student may enter the same file in the same instant
                raise Conflict("this very file has just been entered; change the model, then enter it again") from None

    def _used(self, connection: Connection, student: Student, event: str) -> int:
        """Return the number of a student's entries to an event that count against the quota of today."""
        today = int(self._now(connection) // DAY)
        todays = (jobs.c.student_id == student.id) & (jobs.c.event == event) & (jobs.c.day == today)
        counted = exists().where(history.c.entry_id == jobs.c.entry_id, history.c.what == COUNTED)
        query = select(func.count()).select_from(jobs).where(todays, (jobs.c.state != REFUSED) | counted)
        return connection.scalar(query) or 0

    def record_refusal(self, student: Student, event: str, name: str, data: bytes, reason: str) -> int:
        """Record a file that is not a valid entry, and return the entry's number. The file itself is not kept."""
        facts = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
        with writing(self.engine) as connection:
            entry_id = self._add(connection, student, event, name, facts, REFUSED)
            self.note(connection, entry_id, "refused", reason)
        return entry_id

    def _add(self, connection: Connection, student: Student, event: str, name: str, facts: Any, state: str) -> int:
        stamp = self._now(connection)
        shared = {"event": event, "student_id": student.id, "sha256": facts["sha256"]}
        name = "".join(letter for letter in name if letter.isprintable()).strip()[:80] or "model.onnx"
        values = {**shared, "name": name, "size": facts["size"], "facts": facts, "stamp": stamp}
        entry_id = int(connection.scalar(entries.insert().values(**values).returning(entries.c.id)) or 0)
        connection.execute(jobs.insert().values(**shared, entry_id=entry_id, day=int(stamp // DAY), state=state))
        self.note(connection, entry_id, "entered", name)
        return entry_id

    def _rows(self, query: Any) -> list[Row[Any]]:
        with self.engine.begin() as connection:
            return list(connection.execute(query))

    def content(self, sha256: str) -> bytes:
        """Return the bytes of the entered file with this hash, or b"" if there is none."""
        rows = self._rows(select(files.c.content).where(files.c.sha256 == sha256))
        return bytes(rows[0].content) if rows else b""

    def version(self) -> int:
        """Return a number that grows with every line of history. A page made at a smaller number is out of date."""
        return int(self._rows(select(func.max(history.c.id)))[0][0] or 0)

    def measured(self) -> list[Row[Any]]:
        """Return all measured entries with their students and scores, earliest first."""
        query = select(entries.c.id, entries.c.event, entries.c.name, entries.c.size, entries.c.stamp, results.c.scores)
        query = query.add_columns(students.c.name.label("student"))
        query = query.join(results, results.c.entry_id == entries.c.id)
        return self._rows(query.join(students, students.c.id == entries.c.student_id).order_by(entries.c.id))

    def entry(self, entry_id: int) -> Row[Any] | None:
        """Return an entry with its student, state and scores, or None if there is no such entry."""
        query = (
            select(entries, students.c.name.label("student"), results.c.scores)
            .add_columns(jobs.c.state, jobs.c.progress, jobs.c.attempt)
            .join(students, students.c.id == entries.c.student_id)
            .join(jobs, jobs.c.entry_id == entries.c.id)
            .join(results, results.c.entry_id == entries.c.id, isouter=True)
        )
        return next(iter(self._rows(query.where(entries.c.id == entry_id))), None)

    def entries_of(self, student: Student, most: int = 50) -> list[Row[Any]]:
        """Return a student's latest entries with their states, newest first."""
        query = select(entries.c.id, entries.c.event, entries.c.name, entries.c.stamp, jobs.c.state)
        query = query.join(jobs, jobs.c.entry_id == entries.c.id).where(jobs.c.student_id == student.id)
        return self._rows(query.order_by(entries.c.id.desc()).limit(most))

    def entries_left(self, student: Student, event: str, quota: Quota) -> int:
        """Return how many models a student may still enter to an event today."""
        with self.engine.begin() as connection:
            return max(0, quota.per_day - self._used(connection, student, event))

    def history(self, entry_id: int) -> list[Row[Any]]:
        """Return the lines of an entry's history, in order."""
        return self._rows(select(history).where(history.c.entry_id == entry_id).order_by(history.c.id))

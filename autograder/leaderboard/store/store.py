"""What the leaderboard remembers: students, entries, jobs, results, and the history of each entry."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, exists, func, select
from sqlalchemy.exc import IntegrityError

from autograder.leaderboard.entry.validate import Facts
from autograder.leaderboard.formatting import moment
from autograder.leaderboard.settings import Quota
from autograder.leaderboard.store.clock import JUMP, SteadyClock, alarm
from autograder.leaderboard.store.tables import (
    COUNTED,
    QUEUED,
    REFUSED,
    entries,
    files,
    history,
    jobs,
    open_database,
    results,
    settings,
    students,
    writing,
)

DAY = 86_400
TRUSTED = "clock trusted since"  # the line of history after which times count


class NotAllowed(Exception):
    """This cannot be done now; the message says why and what to do."""


class UnknownToken(NotAllowed):
    """The token is missing, forged, replaced or expired."""


class Conflict(NotAllowed):
    """Somebody entered this file before."""


class Waiting(NotAllowed):
    """The student's last entry to this event still waits."""


class Exhausted(NotAllowed):
    """The quota of the day is used up."""


@dataclass(frozen=True)
class Student:
    """Who enters."""

    id: int
    name: str


def _digest(token: str) -> str:
    # A token has 192 random bits: nobody can guess one, so no slow hash and no salt are needed.
    return hashlib.sha256(token.encode()).hexdigest()


class Store:
    """The database of a leaderboard.

    Parameters
    ----------
    url
        Address of the database, see `open_database`.
    clock
        Returns seconds since 1970; by default a `SteadyClock`.
    """

    def __init__(self, url: str, clock: Callable[[], float] | None = None) -> None:
        self.engine = open_database(url)
        self.clock = clock or SteadyClock()

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()

    def _stamp(self, connection: Connection) -> float:
        """Return now, but never a time before the last thing that happened: setting a clock back gains nothing."""
        now, last = self.clock(), self._last(connection)
        if last > now + JUMP:
            alarm(
                f"the last entry is of {moment(last)}, this machine's clock says {moment(now)}: going by the later. "
                "Set the clock right, or, if it was ahead then, run `autograder leaderboard clock --trust`"
            )
        return max(now, last)

    def _last(self, connection: Connection) -> float:
        """Return when something last happened, since the clock was trusted."""
        trusted = connection.scalar(select(settings.c.value).where(settings.c.name == TRUSTED))
        lines = select(history.c.stamp).order_by(history.c.id.desc()).limit(1)
        return connection.scalar(lines.where(history.c.id > int(trusted or b"0"))) or 0.0

    def last(self) -> float:
        """Return when something last happened, in seconds since 1970; 0 if nothing has."""
        with self.engine.begin() as connection:
            return self._last(connection)

    def trust_clock(self) -> None:
        """Go by this machine's clock again, whatever the entries so far say: it was ahead when they came."""
        with writing(self.engine) as connection:
            latest = connection.scalar(select(func.max(history.c.id))) or 0
            connection.execute(settings.delete().where(settings.c.name == TRUSTED))
            connection.execute(settings.insert().values(name=TRUSTED, value=str(latest).encode()))

    def now(self) -> float:
        """Return the time that deadlines and quotas go by."""
        with self.engine.begin() as connection:
            return self._stamp(connection)

    def note(self, connection: Connection, entry_id: int, what: str, detail: str = "") -> None:
        """Add a line to the history of an entry."""
        stamp = self._stamp(connection)
        connection.execute(history.insert().values(entry_id=entry_id, stamp=stamp, what=what, detail=detail))

    def setting(self, name: str, make: Callable[[], bytes] | None = None) -> bytes:
        """Return a value that is made once and then the same for every server and worker; empty if there is none."""
        query = select(settings.c.value).where(settings.c.name == name)
        with self.engine.begin() as connection:
            value = connection.scalar(query)
        if value is None and make:
            made = make()  # may take a while: outside any transaction
            # Another process may have been faster; then its value counts.
            with suppress(IntegrityError), writing(self.engine) as connection:
                connection.execute(settings.insert().values(name=name, value=made))
            with self.engine.begin() as connection:
                value = connection.scalar(query)
        return bytes(value or b"")

    def private_seed(self) -> int:
        """Return the seed of the private digits; nobody but this database has it."""
        return int.from_bytes(self.setting("private seed", lambda: secrets.token_bytes(8)))

    def add_token(self, name: str, days: float) -> str:
        """Make a token for a student, in place of an earlier one.

        Parameters
        ----------
        name
            The student, as the pages show the name.
        days
            How long the token is good for.

        Raises
        ------
        ValueError
            If the name is empty, longer than 80 characters, or holds control characters.
        """
        name = name.strip()
        if not name or len(name) > 80 or not name.isprintable():
            raise ValueError(f"{name[:80]!r} is no name: 1 to 80 printable characters")
        token = secrets.token_hex(24)  # no dash: with one at its beginning it would be an option on a command line
        values = {"token_sha256": _digest(token), "expires": self.clock() + days * DAY}
        with writing(self.engine) as connection:
            changed = connection.execute(students.update().where(students.c.name == name).values(**values))
            if changed.rowcount == 0:
                connection.execute(students.insert().values(name=name, **values))
        return token

    def student(self, token: str) -> Student:
        """Return whose token this is.

        Raises
        ------
        UnknownToken
            If it is missing, forged, replaced or expired.
        """
        if not token:
            raise UnknownToken("a token is missing; your instructor has one for you")
        query = select(students).where(students.c.token_sha256 == _digest(token))
        with self.engine.begin() as connection:
            row = connection.execute(query).first()
            now = self._stamp(connection)
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
        """Queue a checked file for measurement.

        Parameters
        ----------
        student
            Who enters.
        event
            Id of the event.
        name
            What the student calls the entry.
        data, facts
            The file, and what `entry.check` said of it.
        quota
            How many entries to one event a day.
        deadline
            Nobody enters any more after it.
        arrived
            When the upload began, which is what the deadline goes by; by default now.

        Returns
        -------
        int
            Number of the entry.

        Raises
        ------
        Conflict, Waiting, Exhausted, NotAllowed
            If the file was entered before, an earlier entry still waits, the quota is used up, or the deadline has
            passed.
        """
        with writing(self.engine) as connection:
            # One entry of a student at a time, or two at once would both see room under the quota.
            connection.execute(select(students.c.id).where(students.c.id == student.id).with_for_update())
            stamp = self._stamp(connection)
            if deadline and (stamp if arrived is None else arrived) >= deadline.timestamp():
                raise NotAllowed(f"the deadline was {moment(deadline.timestamp())}; nobody can enter any more")
            same = (jobs.c.event == event) & (jobs.c.sha256 == facts.sha256) & (jobs.c.state != REFUSED)
            earlier = connection.scalar(select(jobs.c.entry_id).where(same))
            if earlier is not None:
                raise Conflict(f"this very file is entry {earlier} already; change the model, then enter it again")
            used = self._used(connection, student, event, stamp)
            if used >= quota.per_day:
                raise Exhausted(
                    f"you have entered {used} models to this event today, which is the most; go on tomorrow (in UTC)"
                )
            mine = (jobs.c.student_id == student.id) & (jobs.c.event == event)
            waiting = connection.scalar(select(jobs.c.entry_id).where(mine, jobs.c.state == QUEUED))
            if waiting is not None:
                raise Waiting(f"your entry {waiting} to this event still waits; enter the next when it is measured")
            known = connection.scalar(select(files.c.sha256).where(files.c.sha256 == facts.sha256))
            try:
                if known is None:
                    connection.execute(files.insert().values(sha256=facts.sha256, content=data))
                return self._add(connection, student, event, name, asdict(facts), stamp, QUEUED)
            except IntegrityError:  # on PostgreSQL another student may enter the same file in the same instant
                raise Conflict("this very file has just been entered; change the model, then enter it again") from None

    def _used(self, connection: Connection, student: Student, event: str, stamp: float) -> int:
        """Return how much of the quota of the day is used up."""
        todays = (jobs.c.student_id == student.id) & (jobs.c.event == event) & (jobs.c.day == int(stamp // DAY))
        counted = exists().where(history.c.entry_id == jobs.c.entry_id, history.c.what == COUNTED)
        query = select(func.count()).select_from(jobs).where(todays, (jobs.c.state != REFUSED) | counted)
        return connection.scalar(query) or 0

    def refuse_at_the_door(self, student: Student, event: str, name: str, data: bytes, reason: str) -> int:
        """Keep a record of a file that is no valid entry, but not the file."""
        facts = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
        with writing(self.engine) as connection:
            stamp = self._stamp(connection)
            entry_id = self._add(connection, student, event, name, facts, stamp, REFUSED)
            self.note(connection, entry_id, "refused", reason)
        return entry_id

    def _add(
        self,
        connection: Connection,
        student: Student,
        event: str,
        name: str,
        facts: dict[str, Any],
        stamp: float,
        state: str,
    ) -> int:
        shared = {"event": event, "student_id": student.id, "sha256": facts["sha256"]}
        name = "".join(letter for letter in name if letter.isprintable()).strip()[:80] or "model.onnx"
        values = {**shared, "name": name, "size": facts["size"], "facts": facts, "stamp": stamp}
        entry_id = int(connection.scalar(entries.insert().values(**values).returning(entries.c.id)) or 0)
        connection.execute(jobs.insert().values(**shared, entry_id=entry_id, day=int(stamp // DAY), state=state))
        self.note(connection, entry_id, "entered", name)
        return entry_id

    def content(self, sha256: str) -> bytes:
        """Return the bytes of a file that was entered."""
        with self.engine.begin() as connection:
            return bytes(connection.scalar(select(files.c.content).where(files.c.sha256 == sha256)) or b"")

    def version(self) -> int:
        """Return a number that grows with everything that happens: what a page is out of date by."""
        with self.engine.begin() as connection:
            return int(connection.scalar(select(func.max(history.c.id))) or 0)

    def measured(self) -> list[Row[Any]]:
        """Return all measured entries with their students and scores, earliest first."""
        query = (
            select(entries.c.id, entries.c.event, entries.c.name, entries.c.size, students.c.name.label("student"))
            .add_columns(entries.c.stamp, results.c.scores)
            .join(results, results.c.entry_id == entries.c.id)
            .join(students, students.c.id == entries.c.student_id)
            .order_by(entries.c.id)
        )
        with self.engine.begin() as connection:
            return list(connection.execute(query))

    def entry(self, entry_id: int) -> Row[Any] | None:
        """Return an entry with its student, state and scores."""
        query = (
            select(entries, students.c.name.label("student"), results.c.scores)
            .add_columns(jobs.c.state, jobs.c.progress, jobs.c.attempt)
            .join(students, students.c.id == entries.c.student_id)
            .join(jobs, jobs.c.entry_id == entries.c.id)
            .join(results, results.c.entry_id == entries.c.id, isouter=True)
            .where(entries.c.id == entry_id)
        )
        with self.engine.begin() as connection:
            return connection.execute(query).first()

    def entries_of(self, student: Student, most: int = 50) -> list[Row[Any]]:
        """Return a student's latest entries with their states, the latest first."""
        query = select(entries.c.id, entries.c.event, entries.c.name, entries.c.stamp, jobs.c.state)
        query = query.join(jobs, jobs.c.entry_id == entries.c.id).where(jobs.c.student_id == student.id)
        with self.engine.begin() as connection:
            return list(connection.execute(query.order_by(entries.c.id.desc()).limit(most)))

    def left(self, student: Student, event: str, quota: Quota) -> int:
        """Return how many models a student may still enter to an event today."""
        with self.engine.begin() as connection:
            return max(0, quota.per_day - self._used(connection, student, event, self._stamp(connection)))

    def history(self, entry_id: int) -> list[Row[Any]]:
        """Return what happened to an entry, in order."""
        with self.engine.begin() as connection:
            return list(
                connection.execute(select(history).where(history.c.entry_id == entry_id).order_by(history.c.id))
            )

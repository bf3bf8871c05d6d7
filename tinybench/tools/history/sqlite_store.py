"""The storage of a history: one SQLite file, to which any number of processes may write at the same time."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from tinybench.result import BenchmarkResult
from tinybench.tools.history.entry import Measurement, as_text, entry_of
from tinybench.tools.history.series import Series, series_of

APPLICATION, VERSION = 0x54424848, 1  # in the header of the file: the application, and the version of the schema
PATIENCE = 30.0  # s to wait while other processes write
SCHEMA = """
CREATE TABLE entries (
    id TEXT PRIMARY KEY,
    benchmark TEXT NOT NULL,
    machine TEXT NOT NULL,
    commit_name TEXT NOT NULL,
    committed TEXT NOT NULL,
    measured TEXT NOT NULL,
    baseline TEXT NOT NULL,
    value REAL NOT NULL,
    low REAL NOT NULL,
    high REAL NOT NULL,
    unit TEXT NOT NULL,
    result TEXT NOT NULL,
    baseline_result TEXT NOT NULL
)
"""
COLUMNS = ", ".join(line.split()[0] for line in SCHEMA.splitlines() if line.startswith("    "))


class History:
    """A store of results by commit, machine and benchmark, in one file.

    Parameters
    ----------
    path
        The path of the file. The file is created if it does not exist.
    create
        Whether to create a missing file. If False, a missing file raises FileNotFoundError.

    Raises
    ------
    ValueError
        If the file is not a history, is damaged, or was written by a later version.
    OSError
        If the file cannot be read or written, for example because the disk is full. If writing fails, nothing is added.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> new, old = (BenchmarkResult("latency", values, {"pairing": "a"}, unit="s") for values in ([2.2] * 8, [2.0] * 8))
    >>> with TemporaryDirectory() as folder, History(Path(folder, "history.db")) as history:
    ...     _ = history.add(new, old, commit="b2", baseline="a1", machine="mine")
    ...     [(point.commit, round(point.value, 3)) for point in history.series("latency", "mine").points]
    [('b2', 1.1)]
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        if not create and not self.path.is_file():
            raise FileNotFoundError(f"{path}: no history there yet; `tinybench history add RESULT.json` begins one")
        with self._told():
            self.connection = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self.connection.close()
                raise

    def add(self, result: BenchmarkResult, baseline_result: BenchmarkResult | None = None, **named: str) -> Measurement:
        """Store a result and, if there is one, the result of the baseline in the same rounds. Return the entry.

        The other arguments are passed to `entry_of`.
        """
        entry = entry_of(result, baseline_result, **named)
        self.add_all([entry])
        return entry

    def add_all(self, entries: Iterable[Measurement]) -> int:
        """Store either all entries or, if there is an error, none. Return the number of entries that were new."""
        rows = [_row(entry) for entry in entries]
        with self._told(), self._writing():
            before = self.connection.total_changes
            places = ", ".join("?" * (COLUMNS.count(",") + 1))
            self.connection.executemany(f"INSERT OR IGNORE INTO entries ({COLUMNS}) VALUES ({places})", rows)
            return self.connection.total_changes - before

    def entries(self, benchmark: str = "", machine: str = "") -> list[Measurement]:
        """Return the entries of a benchmark and a machine, sorted by commit time.

        An empty name stands for all benchmarks or all machines.
        """
        query = f"SELECT {COLUMNS} FROM entries WHERE (benchmark = ?1 OR ?1 = '') AND (machine = ?2 OR ?2 = '')"
        with self._told():
            rows = self.connection.execute(f"{query} ORDER BY committed, measured, id", (benchmark, machine)).fetchall()
        return [self._entry(row) for row in rows]

    def names(self) -> list[tuple[str, str]]:
        """Return the names of the benchmark and of the machine of every series."""
        with self._told():
            return self.connection.execute(
                "SELECT benchmark, machine FROM entries GROUP BY 1, 2 ORDER BY 1, 2"
            ).fetchall()

    def series(self, benchmark: str = "", machine: str = "") -> Series:
        """Return the series of a benchmark on a machine. Either name may be left out if only one series matches."""
        keys = [key for key in self.names() if benchmark in ("", key[0]) and machine in ("", key[1])]
        if len(keys) != 1:
            there = "; ".join(f"{name!r} on {where!r}" for name, where in keys or self.names())
            raise ValueError(f"{len(keys)} series fit, choose benchmark and machine: there are {there or 'none'}")
        return series_of(self.entries(*keys[0]))

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def __enter__(self) -> History:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prepare(self) -> None:
        """Create the table in a new file. Raise ValueError if the file is not a history of a known version."""
        self.connection.execute("BEGIN")  # one snapshot for all three queries: another process may create the table now
        application, version, tables = (
            self.connection.execute(query).fetchone()[0]
            for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema")
        )
        self.connection.execute("COMMIT")
        if application != APPLICATION and (tables or application):
            raise ValueError(f"{self.path} is a database, but no history of tinybench; name another file")
        if version > VERSION:
            raise ValueError(
                f"{self.path} was written by a later tinybench (schema {version}, known: {VERSION}); update"
            )
        self.connection.execute("PRAGMA synchronous = FULL")  # added entries survive a power failure
        if version == VERSION:
            return
        self._write_ahead()
        with self._writing():
            if not self.connection.execute("PRAGMA user_version").fetchone()[0]:  # otherwise another process was faster
                self.connection.execute(SCHEMA)
                self.connection.execute(f"PRAGMA application_id = {APPLICATION}")
                self.connection.execute(f"PRAGMA user_version = {VERSION}")

    def _write_ahead(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:  # switching a file to WAL needs exclusive access, and SQLite does not wait for it
            try:
                self.connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Run the block in one transaction, which takes effect completely or not at all."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Replace SQLite's errors with exceptions that name the cause and the remedy."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_NOTADB:
                raise ValueError(f"{self.path} is no history of tinybench; name another file") from None
            if code == sqlite3.SQLITE_CORRUPT:
                raise ValueError(
                    f"{self.path} is damaged ({error}); take a copy of it, or begin a new one from a file of "
                    "`tinybench history export`"
                ) from None
            if code == sqlite3.SQLITE_FULL:
                raise OSError(f"no room for {self.path}: nothing was added; make room and add it again") from None
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise TimeoutError(f"others have been writing to {self.path} for {PATIENCE:.0f} s; try again") from None
            raise OSError(f"{self.path} cannot be opened or written: {error}") from None

    def _entry(self, row: tuple[Any, ...]) -> Measurement:
        id, *told, result, baseline_result = row
        try:
            results = json.loads(result), json.loads(baseline_result or "null")
            entry = Measurement(**dict(zip(Measurement.__match_args__, (*told, *results), strict=True)))
            whole = entry.id == id
        except (TypeError, ValueError):
            whole = False
        if not whole:
            raise ValueError(
                f"{self.path} is damaged: entry {id} is not what was written; begin a new history from a file of "
                "`tinybench history export`"
            )
        return entry


def _row(entry: Measurement) -> tuple[Any, ...]:
    told = {name: value for name, value in vars(entry).items() if not name.endswith("result")}
    return (entry.id, *told.values(), as_text(entry.result), as_text(entry.baseline_result))

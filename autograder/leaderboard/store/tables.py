"""The tables of the leaderboard, on SQLite and on PostgreSQL.

What happened (entries, results, history) is append-only, and the database itself sees to it. What is to be done (jobs)
changes: that table alone says which entry waits, runs, or has ended.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    DDL,
    JSON,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    text,
)
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError

QUEUED, RUNNING, MEASURED, REFUSED = "queued", "running", "measured", "refused"
# Lines of history that are looked for; a refused entry that is counted takes its part of the quota nevertheless.
TAKEN_UP, COUNTED = "taken up", "counted"

metadata = MetaData()

settings = Table(
    "settings", metadata, Column("name", String(40), primary_key=True), Column("value", LargeBinary, nullable=False)
)
students = Table(
    "students",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(80), nullable=False, unique=True),
    Column("token_sha256", String(64), nullable=False, unique=True),
    Column("expires", Float, nullable=False),
)
files = Table(
    "files", metadata, Column("sha256", String(64), primary_key=True), Column("content", LargeBinary, nullable=False)
)
entries = Table(
    "entries",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("event", String(40), nullable=False),
    Column("student_id", ForeignKey("students.id"), nullable=False),
    Column("name", String(80), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size", Integer, nullable=False),
    Column("facts", JSON, nullable=False),
    Column("stamp", Float, nullable=False),
)
jobs = Table(
    "jobs",
    metadata,
    Column("entry_id", ForeignKey("entries.id"), primary_key=True),
    Column("event", String(40), nullable=False),
    Column("student_id", Integer, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("day", Integer, nullable=False),
    Column("state", String(10), nullable=False, index=True),
    Column("attempt", Integer, nullable=False, default=0),
    Column("worker", String(80), nullable=False, default=""),
    Column("lease", Float, nullable=False, default=0.0),
    Column("progress", String(200), nullable=False, default=""),
)
Index(
    "one_entry_per_file",
    jobs.c.event,
    jobs.c.sha256,
    unique=True,
    sqlite_where=jobs.c.state != REFUSED,
    postgresql_where=jobs.c.state != REFUSED,
)
Index("jobs_of_a_day", jobs.c.student_id, jobs.c.event, jobs.c.day)
results = Table(
    "results",
    metadata,
    Column("entry_id", ForeignKey("entries.id"), primary_key=True),
    Column("scores", JSON, nullable=False),
    Column("evidence", JSON, nullable=False),
)
history = Table(
    "history",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("entry_id", ForeignKey("entries.id"), nullable=False, index=True),
    Column("stamp", Float, nullable=False),
    Column("what", String(20), nullable=False),
    Column("detail", Text, nullable=False),
)


def _when_made(target: Any, moment: str, dialect: str, statement: str) -> None:
    """Let one dialect run a statement when tables are created."""
    ddl: Any = DDL(statement)  # type: ignore[no-untyped-call]
    event.listen(target, moment, ddl.execute_if(dialect=dialect))


_when_made(
    metadata,
    "before_create",
    "postgresql",
    "CREATE OR REPLACE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION '%% is append-only', TG_TABLE_NAME; END $$",
)
for _table in (entries, results, history):
    for _change in ("UPDATE", "DELETE"):
        _when_made(
            _table,
            "after_create",
            "sqlite",
            f"CREATE TRIGGER {_table.name}_no_{_change.lower()} BEFORE {_change} ON {_table.name} "
            f"BEGIN SELECT RAISE(ABORT, '{_table.name} is append-only'); END",
        )
    _when_made(
        _table,
        "after_create",
        "postgresql",
        f"CREATE TRIGGER {_table.name}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {_table.name} "
        "FOR EACH STATEMENT EXECUTE FUNCTION append_only()",
    )


def open_database(url: str) -> Engine:
    """Connect to a database and make sure that its tables are there.

    Parameters
    ----------
    url
        Such as ``sqlite:///course/leaderboard.db`` or ``postgresql+psycopg://user@host/name``.

    Raises
    ------
    ValueError
        If the address is none that SQLAlchemy understands, or no database can be opened there.
    """
    try:
        engine = create_engine(url, pool_pre_ping=True)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise ValueError(
            f"{url.split('@')[-1]!r} is no database this machine can reach ({error}); write sqlite:///path/to/file.db "
            "or postgresql+psycopg://user@host/name"
        ) from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    try:
        _create_tables(engine)
    except OperationalError as error:
        raise ValueError(f"the database {engine.url!r} cannot be opened: {error.orig}") from None
    return engine


def _create_tables(engine: Engine) -> None:
    with writing(engine) as connection:
        if engine.dialect.name == "postgresql":
            # A server and its workers start together; one of them creates the tables.
            connection.execute(text("SELECT pg_advisory_xact_lock(20270212)"))
        metadata.create_all(connection)


def writing(engine: Engine) -> Any:
    """Begin a transaction that writes; on SQLite it holds the write lock from its first line on."""
    return engine.execution_options(writes=True).begin()


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # `_begin_sqlite` begins transactions, not the driver
    for pragma in ("busy_timeout = 30000", "journal_mode = WAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later would fail when another has written meanwhile.
    immediate = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

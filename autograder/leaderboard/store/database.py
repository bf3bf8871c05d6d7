"""The connection to SQLite or PostgreSQL, and the migration of its schema."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError

BASE, HEAD = "0001", "0001"  # the first and the last migration
PATIENCE = 30  # seconds that SQLite waits for a lock


def open_database(url: str) -> Engine:
    """Connect to a database such as ``sqlite:///course/leaderboard.db`` and bring its tables up to date.

    If SQLAlchemy does not understand the address, or if the database cannot be opened, raise ValueError with the
    reason.
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
        with engine.begin() as connection:
            version = _version(connection)
        if version != HEAD:
            _migrate(engine)
    except (OperationalError, ValueError) as error:
        engine.dispose()
        raise ValueError(f"the database {engine.url!r} cannot be opened: {getattr(error, 'orig', error)}") from None
    return engine


def _version(connection: Connection) -> str:
    known = inspect(connection).has_table("alembic_version")
    return connection.scalar(text("SELECT version_num FROM alembic_version")) or "" if known else ""


def _migrate(engine: Engine) -> None:
    # imported only if a migration is needed, because the import takes longer than opening the database
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", "autograder.leaderboard.store:migrations")
    with writing(engine) as connection:
        if engine.dialect.name == "postgresql":
            # A server and its workers start together. The lock lets only one of them migrate at a time.
            connection.execute(text("SELECT pg_advisory_xact_lock(20270212)"))
        config.attributes["connection"] = connection
        try:
            if not _version(connection) and inspect(connection).has_table("history"):
                command.stamp(config, BASE)  # created before the schema had versions
            command.upgrade(config, "head")
        except CommandError as error:
            raise ValueError(f"it is not of this version of autograder: {error}") from None


def writing(engine: Engine) -> Any:
    """Begin a transaction that writes. On SQLite, the transaction holds the write lock from its start."""
    return engine.execution_options(writes=True).begin()


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # `_begin_sqlite` begins transactions instead of the driver
    for pragma in (f"busy_timeout = {1000 * PATIENCE}", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
    deadline = time.monotonic() + PATIENCE
    while True:  # switching a file to WAL needs exclusive access, and SQLite does not wait for that
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later would fail if another one has written in between.
    immediate = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

"""The schema: databases of every age open, keep their rows, and end up with the same tables."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from autograder.leaderboard.entry.validate import check
from autograder.leaderboard.settings import Quota
from autograder.leaderboard.store import database as databases
from autograder.leaderboard.store import store as stores
from autograder.leaderboard.store.store import Store
from autograder.leaderboard.store.tables import metadata
from tests.leaderboard.boards import dense

ROWS = [
    "INSERT INTO students VALUES (1, 'Ada', 'hash', 4e9)",
    "INSERT INTO entries VALUES (1, 'latency', 1, 'old.onnx', 'abc', 3, '{}', 1.5e9)",
    "INSERT INTO jobs VALUES (1, 'latency', 1, 'abc', 17361, 'measured', 1, 'w', 0, '')",
    "INSERT INTO results VALUES (1, '{\"size\": 3}', '{}')",
    "INSERT INTO history VALUES (1, 1, 1.5e9, 'measured', 'by w')",
]
SERIALS = [f"SELECT setval('{table}_id_seq', 1)" for table in ("students", "entries", "history")]


def versions(store: Store) -> list[str]:
    with store.engine.begin() as connection:
        return list(connection.scalars(text("SELECT version_num FROM alembic_version")))


def differences(store: Store) -> list[object]:
    with store.engine.begin() as connection:
        return list(compare_metadata(MigrationContext.configure(connection), metadata))


@pytest.fixture
def unversioned(database: str) -> str:
    """A database as it was made before the schema had versions, with a measured entry."""
    engine = create_engine(database)
    schema = Path(__file__).with_name(f"unversioned_{engine.dialect.name}.sql").read_text(encoding="utf-8")
    serials = SERIALS if engine.dialect.name == "postgresql" else []
    with engine.begin() as connection:
        for statement in [*schema.splitlines(), *ROWS, *serials]:
            connection.execute(text(statement))
    engine.dispose()
    return database


def test_a_database_without_a_version_is_adopted_with_its_rows(unversioned: str) -> None:
    for _ in range(2):  # the second time it has one
        store = Store(unversioned)
        assert versions(store) == [databases.HEAD]
        assert differences(store) == []
        assert [(row.student, row.name, row.scores) for row in store.measured()] == [("Ada", "old.onnx", {"size": 3})]
        assert [line.detail for line in store.history(1)] == ["by w"]
        store.close()
    store, data = Store(unversioned), dense()
    student = store.student(store.add_token("Ada", 1))
    assert (student.id, store.enter(student, "latency", "new.onnx", data, check(data), Quota())) == (1, 2)
    with pytest.raises(DBAPIError, match="append-only"), store.engine.begin() as connection:
        connection.execute(text("DELETE FROM history"))
    store.close()


def test_a_new_database_has_the_tables_of_the_code(store: Store) -> None:
    assert versions(store) == [databases.HEAD]
    assert differences(store) == []


def test_the_code_knows_the_first_and_the_last_migration() -> None:
    script = ScriptDirectory(str(Path(stores.__file__).with_name("migrations")))
    assert (script.get_bases(), script.get_heads()) == ([databases.BASE], [databases.HEAD])


@pytest.mark.parametrize("before", ["nothing", "unversioned"])
def test_first_starts_at_once(database: str, before: str, request: pytest.FixtureRequest) -> None:
    if before == "unversioned":
        request.getfixturevalue("unversioned")
    words = f"import sys; from autograder.leaderboard.store.store import Store; print(end='.', flush=True); sys.stdin.readline(); Store({database!r})"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    starting = [subprocess.Popen([sys.executable, "-c", words], text=True, **pipes) for _ in range(3)]  # type: ignore[call-overload]
    assert [process.stdout.read(1) for process in starting] == ["."] * 3
    for process in starting:  # all are as far: now at once
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.communicate()[1] for process in starting] == [""] * 3
    store = Store(database)
    assert versions(store) == [databases.HEAD]
    store.close()


def test_a_database_of_a_later_version_is_refused(store: Store) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ValueError, match="not of this version"):
        Store(store.engine.url.render_as_string(hide_password=False))


def test_first_connections_to_a_file_wait_for_each_other(tmp_path: Path) -> None:
    def connect(file: Path, together: threading.Barrier) -> str:
        with closing(sqlite3.connect(file)) as connection:
            together.wait()
            databases._prepare_sqlite(connection, None)
            return str(connection.execute("PRAGMA journal_mode").fetchone()[0])

    for number in range(200):  # without waiting one in 80 connections fails
        with closing(sqlite3.connect(tmp_path / f"{number}.db")) as plain:
            plain.execute("CREATE TABLE history (id)")
        together = threading.Barrier(4)
        with ThreadPoolExecutor(4) as pool:
            found = pool.map(connect, [tmp_path / f"{number}.db"] * 4, [together] * 4)
            assert list(found) == ["wal"] * 4

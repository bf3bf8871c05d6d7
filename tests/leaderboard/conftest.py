"""Databases to test on: SQLite in a file, and a PostgreSQL server of our own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from autograder.leaderboard.store import Store

NOBODY = 65534


def _postgres_programs() -> Path | None:
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return homes[-1] if homes else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server without its database, on a socket in a folder of its own."""
    programs = _postgres_programs()
    if programs is None:
        reason = "no PostgreSQL on this machine: install Debian's package postgresql"
        assert not os.environ.get("CI"), reason
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="tinybench-pg-"))
    as_nobody: list[str] = []
    if os.geteuid() == 0:  # the server refuses to run as root
        os.chown(folder, NOBODY, NOBODY)
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    data = folder / "data"
    init = [programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    subprocess.run([*as_nobody, *init], check=True, capture_output=True, cwd=folder)
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off -c log_statement=none"
    control = [*as_nobody, programs / "pg_ctl", "-D", data, "-l", folder / "log", "-w"]
    subprocess.run([*control, "-o", options, "start"], check=True, capture_output=True, cwd=folder)
    yield f"postgresql+psycopg://tester@/{{name}}?host={folder}"
    subprocess.run([*control, "-m", "immediate", "stop"], check=True, capture_output=True, cwd=folder)
    shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'leaderboard.db'}"
        return
    server = request.getfixturevalue("postgres")
    name = f"board_{os.urandom(6).hex()}"
    engine = create_engine(server.format(name="postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield server.format(name=name)
    with engine.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    """An empty store on either database."""
    store = Store(database)
    yield store
    store.close()


@pytest.fixture
def light_store(tmp_path: Path) -> Iterator[Store]:
    """An empty store on SQLite, for tests of what lies above it."""
    store = Store(f"sqlite:///{tmp_path / 'leaderboard.db'}")
    yield store
    store.close()

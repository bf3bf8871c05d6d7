"""What tests of several folders share: a real browser, what axe finds in a page, and databases."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from sqlalchemy import create_engine, text

# Two workers share the cores: numerical libraries that take all of them each would wait for one another. They look when
# they are first imported, which is after this.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

NOBODY = 65534
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--disable-quic"]  # fmt: skip


@pytest.fixture(scope="module")  # not longer: while Playwright runs, no other test of the process can use asyncio
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    chromium = shutil.which("chromium")
    assert chromium, "no chromium on this machine: run `bash .ci/install-system`"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def barriers() -> Callable[[Page], list[str]]:
    """A function that returns what axe finds on a page that is more than minor."""

    def find(page: Page) -> list[str]:
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found: dict[str, Any] = page.evaluate("tags => axe.run(document, {runOnly: tags})", RULES)
        return [
            f"{each['id']} ({each['impact']}): {each['nodes'][0]['html'][:200]}"
            for each in found["violations"]
            if each["impact"] in ("moderate", "serious", "critical")
        ]

    return find


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
        yield f"sqlite:///{tmp_path / 'test.db'}"
        return
    server = request.getfixturevalue("postgres")
    name = f"test_{os.urandom(6).hex()}"
    engine = create_engine(server.format(name="postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield server.format(name=name)
    with engine.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()

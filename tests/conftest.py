"""What tests of several folders share: a real browser, what axe finds in a page, and databases."""

from __future__ import annotations

import os

from tests.surroundings import tidy

tidy(os.environ)  # numerical libraries read it when they are first imported, and others below import them

# ruff: noqa: E402
import gc
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from autograder import time_limits
from tests.needs import POSTGRESQL, pytest_configure, pytest_runtest_setup, pytest_unconfigure, require  # noqa: F401
from tests.tiny_course import course, module, released, released_once  # noqa: F401
from tests.took import pytest_runtest_protocol, pytest_sessionstart  # noqa: F401

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a background job: what tests start would ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

if TYPE_CHECKING:  # what few tests need is imported by them: under an emulated processor it takes half a minute
    from playwright.sync_api import Browser, Page

# How long an example takes says how busy the machine is.
settings.register_profile("course", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("course")

NOBODY = 65534
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--disable-quic"]  # fmt: skip
NOTEBOOKS = ("tests/notebooks/test_nbval.py", "tests/notebooks/test_released.py")
EMULATED = "tests/test_processors.py"
# Whole files of `make audit`; in others, single tests carry its mark.
AUDIT = (
    EMULATED, "tests/attacks/notebooks/test_answers", "tests/attacks/notebooks/test_other_modules.py",
    "tests/attacks/test_channels.py", "tests/benchmarks/", "tests/checks/test_accepted_answers.py",
    "tests/course/test_colab.py", "tests/grading/test_honest.py", "tests/grading/test_linear.py",
    "tests/leaderboard/test_crowd.py", "tests/mutants/test_overfit.py", "tests/mutants/test_pairs.py",
    "tests/notebooks/test_released.py", "tests/notebooks/test_student.py", "tests/variants/",
)  # fmt: skip
MUTANTS = "tests/mutants/"
ALONE = ("tests/benchmarks/test_short.py", MUTANTS, *NOTEBOOKS, EMULATED)


class ByFile(LoadScopeScheduling):
    """Keeps a file's tests on one worker, whose fixtures they share; but each of those `ALONE` goes to who is free."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if nodeid.startswith(ALONE) else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Schedule by `ByFile` where `--dist loadfile` is asked for."""
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Spare `make test` the imports of the audit's files: each worker would take a second for them."""
    if config.option.markexpr != "not audit":
        return None
    return True if collection_path.relative_to(config.rootpath).as_posix().startswith(AUDIT) else None


@pytest.hookimpl(tryfirst=True)  # before marks select
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the audit, and put those `ALONE` last, the longest first: they keep all workers busy."""
    for item in items:
        if item.nodeid.startswith(AUDIT):
            item.add_marker(pytest.mark.audit)

    def place(item: pytest.Item) -> tuple[Any, ...]:
        name = item.nodeid
        return name.startswith(ALONE), not name.startswith(EMULATED), name.startswith(MUTANTS), -_module(item)

    items.sort(key=place)


def _module(item: pytest.Item) -> int:
    """Return the number of the module that one of those `ALONE` is about; the later ones do more."""
    found = re.search(r"\[m?(\d\d)_", item.nodeid) if item.nodeid.startswith(ALONE) else None
    return int(found[1]) if found else 0


@pytest.fixture(autouse=True, scope="module")
def set_aside() -> Iterator[None]:
    """Keep what was imported out of later collections of garbage: a worker holds a million objects, and each takes a second.

    A measurement of memory puts them back. Here this waits for the end of the file. No test counts what is set aside:
    ``gc.get_freeze_count`` visits each object.
    """
    gc.collect()
    gc.freeze()
    wanted = False

    def later() -> None:
        nonlocal wanted
        wanted = True

    with mock.patch("gc.unfreeze", later):
        yield
    if wanted:
        gc.unfreeze()


@pytest.fixture(scope="module")  # not longer: while Playwright runs, no other test of the process can use asyncio
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    require("chromium")
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


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server without its database, on a socket in a folder of its own."""
    require("postgresql")
    programs = max(POSTGRESQL.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])).parent
    folder = Path(tempfile.mkdtemp(prefix="tinybench-pg-"))
    as_nobody: list[str] = []
    if os.geteuid() == 0:  # the server refuses to run as root
        os.chown(folder, NOBODY, NOBODY)
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    data = folder / "data"
    init = [programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    subprocess.run([*as_nobody, *init], check=True, capture_output=True, cwd=folder)
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off -c log_statement=none"
    control = [
        *as_nobody,
        programs / "pg_ctl",
        "-D",
        data,
        "-l",
        folder / "log",
        "-w",
        "-t",
        str(int(time_limits.wall(60))),
    ]
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
    from sqlalchemy import create_engine, text

    server = request.getfixturevalue("postgres")
    name = f"test_{os.urandom(6).hex()}"
    engine = create_engine(server.format(name="postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield server.format(name=name)
    with engine.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()

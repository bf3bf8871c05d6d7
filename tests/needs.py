"""What some tests need of the system: whether it is here, how to get it, and what was left out without it.

A pytest plugin: ``@pytest.mark.needs("sandbox")`` skips a test where that is missing, and fails it in CI. As a program
it prints the Debian packages that are missing, for the needs named; `.ci/install-system` asks it, with any Python, so
everything but the standard library is imported late.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pytest

POSTGRESQL = Path("/usr/lib/postgresql")
HAPROXY = Path("/usr/sbin/haproxy")  # not on the path of those who are not root
ARM = Path(__file__).parents[1] / ".venv" / "arm64"


class Need(NamedTuple):
    """Something of the system, the Debian packages that hold it, whether it is here, and how else to get it."""

    title: str
    packages: str
    here: Callable[[], Any]
    otherwise: str = ""

    @property
    def how(self) -> str:
        """What to type."""
        return self.otherwise or f"apt-get install {self.packages}"


def has_library(name: str) -> bool:
    """Return whether a shared library can be loaded."""
    try:
        return bool(ctypes.CDLL(name))
    except OSError:
        return False


NEEDS = {
    # libatomic is for Playwright's own node, which drives it
    "chromium": Need("Chromium", "chromium libatomic1", lambda: which("chromium") and has_library("libatomic.so.1")),
    "sandbox": Need("bubblewrap", "bubblewrap", partial(which, "bwrap")),
    "postgresql": Need("PostgreSQL", "postgresql", lambda: list(POSTGRESQL.glob("*/bin/initdb"))),
    "qemu": Need("qemu-user", "qemu-user", partial(which, "qemu-x86_64")),
    "aarch64": Need("a Python for aarch64", "", lambda: (ARM / "ready").exists(), "bash .ci/install-arm64"),
    "load": Need("wrk, hey and haproxy", "wrk hey haproxy", lambda: which("wrk") and which("hey") and HAPROXY.exists()),
    "prometheus": Need("Prometheus", "prometheus", lambda: which("prometheus") and which("promtool")),
    "venv": Need("Python's venv", "python3-venv", lambda: find_spec("venv") and find_spec("ensurepip")),
}


@cache
def missing(name: str) -> str:
    """Return why something is not to be had here and what to do, or nothing if it is."""
    need = NEEDS[name]
    if not need.here():
        return f"{need.title} cannot be used here: {need.how}"
    if name == "sandbox":  # it can be here and not work
        from autograder.sandbox.bubblewrap import unavailable

        return unavailable()
    return ""


def require(name: str) -> None:
    """Skip this test where something is missing; in CI, which must not become green by losing tests, fail it."""
    import pytest

    if why := missing(name):
        reason = f"needs {name}: {why}"
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


def left_out(counts: dict[str, int]) -> str:
    """Return the line that says how many tests were left out for want of what, and how to get it."""
    tests = [f"{NEEDS[name].title} ({count})" for name, count in Counter(counts).most_common()]
    lacking = [NEEDS[name] for name in sorted(counts) if not NEEDS[name].here()]
    packages = sorted(need.packages for need in lacking if not need.otherwise)
    todo = [f"apt-get install {' '.join(packages)}"] if packages else []
    todo += [need.otherwise for need in lacking if need.otherwise]
    if "sandbox" in counts and NEEDS["sandbox"].here():
        todo.append("see in `autograder doctor` why bubblewrap does not work")
    return f"left out: tests that need {', '.join(tests)}; to run them too: {', and '.join(todo)}"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"needs(*names): left out where one is missing, of: {', '.join(NEEDS)}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            require(name)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say in one line, below everything else, what this run left out, and those before it that share its LEFT_OUT."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:  # a worker of xdist
        return
    reasons = [str(report.longrepr[-1]) for report in reporter.stats.get("skipped", [])]
    counts = Counter(found[1] for reason in reasons if (found := re.match(r"Skipped: needs (\w+): ", reason)))
    if kept := os.environ.get("LEFT_OUT"):
        file = Path(kept)
        counts += Counter(json.loads(file.read_text()) if file.exists() else {})
        file.write_text(json.dumps(counts))
    if counts:
        reporter.write_line(left_out(counts), yellow=True)


if __name__ == "__main__":
    wanted = [NEEDS[name] for name in sys.argv[1:] or NEEDS]
    print(*(need.packages for need in wanted if need.packages and not need.here()))

"""Builds a module of a student's package, or runs a file of tests on it; what comes out is the student's word.

Its own words leave by the standard output, which the student's code no longer finds there, after a secret that was read
before that code began. Both can be had by code that looks for them.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

MOST_FAILURES, MOST_TEXT = 50, 300


def main(task: str, name: str) -> None:
    """Do ``"build"`` or ``"test"`` for a module, and say what came of it."""
    sys.path[0] = os.environ["PYTHONPATH"] = "/course"  # the latter for programs that tests start
    secret = sys.stdin.buffer.readline()
    out = os.dup(1)
    os.dup2(2, 1)
    report = build(name, sys.stdin.buffer.read()) if task == "build" else test(name)
    with os.fdopen(out, "wb") as stream:
        stream.write(secret + json.dumps(report).encode())
    os._exit(0)  # whatever the student's code still has running


def build(name: str, content: bytes) -> dict[str, Any]:
    """Return the module that a student's notebook makes, or why it makes none."""
    from autograder.course.build import build as build_module

    notebook, package = Path(f"/tmp/{name}.ipynb"), Path("/tmp/package")
    notebook.write_bytes(content)
    try:
        build_module(notebook, package)
    except BaseException as error:
        text = str(error).replace(f"{notebook}, ", "").replace(f"{notebook}: ", "")
        return {"why": text if type(error).__name__ == "NotebookError" else f"{type(error).__name__}: {text}"}
    for file in package.glob("*.py"):
        return {"source": file.read_text(encoding="utf-8")}
    return {"why": "no cell is tagged export"}


class Recorder:
    """A plugin of pytest that keeps what became of each test."""

    def __init__(self) -> None:
        self.passed = 0
        self.failures: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep a test's outcome."""
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self._fail(report.nodeid, crash.message if crash else str(report.longrepr))
        elif report.passed and report.when == "call":
            self.passed += 1

    def pytest_collectreport(self, report: Any) -> None:
        """Keep that a file could not be read."""
        if report.failed:
            self._fail(report.nodeid, str(report.longrepr).strip().splitlines()[-1].removeprefix("E").strip())

    def _fail(self, test: str, why: str) -> None:
        self.failures.setdefault(test.partition("::")[2] or test, " ".join(why.split())[:MOST_TEXT])


def test(name: str) -> dict[str, Any]:
    """Return what the public tests of a module say; not the slow ones, and none that needs a browser."""
    os.environ |= {"HYPOTHESIS_STORAGE_DIRECTORY": "/tmp/hypothesis", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    import pytest
    from hypothesis import settings

    settings.register_profile("package", deadline=None)  # how long an example takes says how busy the machine is
    settings.load_profile("package")
    recorder = Recorder()
    choice = ["-m", "not slow and not browser", "-p", "no:cacheprovider", "-q"]
    pytest.main([*choice, "-c", "/course/pyproject.toml", f"/course/tests/test_{name}.py"], [recorder])
    return {"passed": recorder.passed, "failures": dict(list(recorder.failures.items())[:MOST_FAILURES])}


if __name__ == "__main__":
    main(*sys.argv[1:])

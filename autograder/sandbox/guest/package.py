"""A program that builds a module of a student's package, or runs the public tests on it.

The report is written to the original standard output, while output of the student's code is redirected to standard
error. The report begins with a secret that this program reads before the student's code starts. So other output is not
mistaken for the report by accident. But code that searches for the output and the secret can forge the report.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

MAX_FAILURES, MAX_TEXT = 50, 300


def main(task: str, name: str) -> None:
    """Build or test a module, and write the report."""
    sys.path[0] = os.environ["PYTHONPATH"] = "/course"  # the variable is for programs that tests start
    secret = sys.stdin.buffer.readline()
    out = os.dup(1)
    os.dup2(2, 1)
    report = build(name, sys.stdin.buffer.read()) if task == "build" else test(name)
    with os.fdopen(out, "wb") as stream:
        stream.write(secret + json.dumps(report).encode())
    os._exit(0)  # end even if the student's code still runs something


def build(name: str, content: bytes) -> dict[str, Any]:
    """Return the sources of the modules that a student's notebook exports, by name, or the reason why this fails."""
    from autograder.course.module_build import build_module

    notebook, package = Path(f"/tmp/{name}.ipynb"), Path("/tmp/package")
    notebook.write_bytes(content)
    try:
        build_module(notebook, package)
    except BaseException as error:
        text = str(error).replace(f"{notebook}, ", "").replace(f"{notebook}: ", "")
        return {"why": text if type(error).__name__ == "NotebookError" else f"{type(error).__name__}: {text}"}
    sources = {file.stem: file.read_text(encoding="utf-8") for file in package.glob("*.py")}
    return {"sources": sources} if sources else {"why": "no cell is tagged export"}


class Recorder:
    """A pytest plugin that records the outcome of each test."""

    def __init__(self) -> None:
        self.passed = 0
        self.failures: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count a test that passed, or record why it failed."""
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self._fail(report.nodeid, crash.message if crash else str(report.longrepr))
        elif report.passed and report.when == "call":
            self.passed += 1

    def pytest_collectreport(self, report: Any) -> None:
        """Record why a test file could not be collected."""
        if report.failed:
            self._fail(report.nodeid, str(report.longrepr).strip().splitlines()[-1].removeprefix("E").strip())

    def _fail(self, test: str, why: str) -> None:
        self.failures.setdefault(test.partition("::")[2] or test, " ".join(why.split())[:MAX_TEXT])


def test(name: str) -> dict[str, Any]:
    """Run the public tests of a module, except slow tests and tests that need a browser."""
    os.environ |= {"HYPOTHESIS_STORAGE_DIRECTORY": "/tmp/hypothesis", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    import pytest
    from hypothesis import settings

    settings.register_profile("package", deadline=None)  # the duration of an example depends on the machine's load
    settings.load_profile("package")
    recorder = Recorder()
    choice = ["-m", "not slow and not browser", "-p", "no:cacheprovider", "-q"]
    pytest.main([*choice, "-c", "/course/pyproject.toml", f"/course/tests/test_{name}.py"], [recorder])
    return {"passed": recorder.passed, "failures": dict(list(recorder.failures.items())[:MAX_FAILURES])}


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A student's whole package against the public tests: what is built, what is reported, what cannot be forged by print."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import nbformat
import pytest

from autograder.cli import main
from autograder.course.export import export_course
from autograder.course.notebook import NotebookError, read_notebook
from autograder.files import write_atomically
from autograder.grading.package_report import Module, package
from tests.tiny_course import ROOT, SETUP, Write, code, hand_in

pytestmark = pytest.mark.needs("sandbox")

TESTS = """
import pytest
from tinybench.{name} import half

def test_even():
    assert half(4) == 2

def test_odd():
    assert half(3) == 1.5, "half of 3 is 1.5"

@pytest.mark.slow
def test_slow():
    assert False

@pytest.mark.browser
def test_browser(browser):
    assert False
"""
FORGED = """    import json, os, sys
    if "pytest" in sys.modules:
        print(json.dumps({"passed": 1000, "failures": {}}))
        os.write(1, b'{"passed": 1000, "failures": {}}')
        os._exit(0)
    return x / 2"""
CURIOUS = """    import os, sys
    if "pytest" in sys.modules:
        found = [os.path.join(folder, file) for folder, _, files in os.walk("/") for file in files]
        private = ("course/gradebook.db", "_curious.ipynb", "autograder/checks", "autograder/grading/session", "course/submitted")
        raise LookupError([f for f in found if any(word in f for word in private)])
    return x / 2"""
NETWORK = """
def test_network():
    import socket
    socket.create_connection(("127.0.0.1", 80), timeout=1)
"""
# module: what the student wrote, None where nothing was handed in
BODIES = {
    "right": "    return 0.5 * x",
    "wrong": "    return x // 2",
    "unfinished": "    return None",
    "absent": None,
    "forged": FORGED,
    "curious": CURIOUS,
}


@pytest.fixture
def handed_in(course: Path, module: Write) -> Path:
    """A course of small modules, most of which ada handed in."""
    for folder in ("course", "support"):
        shutil.copytree(ROOT / "tinybench" / folder, course / "tinybench" / folder)
    (course / "tests" / "tinybench").mkdir(parents=True)
    for number, (name, body) in enumerate(BODIES.items(), start=1):
        given = 'def half(x: float) -> float:\n    """Return half of x."""\n'
        solution = f"{given}    ### BEGIN SOLUTION\n    return x / 2\n    ### END SOLUTION"
        check = 'assert half(4) == 2, "half of 4 is 2"'
        cells = [
            code(SETUP, "setup", locked=True),
            code(solution, name, "export", solution=True),
            code(check, f"check_{name}", grade=True, locked=True, points=1),
        ]
        path = module(*cells, name=f"{number:02}_{name}")
        (course / "tests" / "tinybench" / f"test_{name}.py").write_text(
            TESTS.format(name=name) + NETWORK * (name == "right")
        )
        if body is not None:
            notebook = read_notebook(path)
            notebook.cells[1].source = given + body
            hand_in(course, "ada", nbformat.writes(notebook).encode(), path.stem)
    for path, text in export_course(course).items():
        write_atomically(path, text)
    return course


@pytest.mark.slow
def test_each_module_is_reported(handed_in: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--root", str(handed_in), "package", "--student", "ada", "--json"]) == 0
    rows = [Module(**row) for row in json.loads(capsys.readouterr().out)]
    modules = {row.name.partition("_")[2]: row for row in rows}
    left_out = "1 left out, as the reference fails them here too"
    assert modules["right"] == Module("01_right", "own", passed=2, failures=[], note=left_out)  # type: ignore[arg-type]
    assert (modules["wrong"].whose, modules["wrong"].passed, modules["wrong"].note) == ("own", 1, "")
    [[test, why]] = modules["wrong"].failures
    assert test == "test_odd"
    assert "half of 3 is 1.5" in why
    for name, reason in {
        "unfinished": "check_unfinished: AssertionError: half of 4 is 2",
        "absent": "not handed in",
    }.items():
        assert modules[name].whose == "reference"
        assert reason in modules[name].why
        assert modules[name].passed == 2
    assert (modules["forged"].whose, modules["forged"].passed) == ("own", 0)
    assert "did not end: the process ended early" in modules["forged"].note
    found = dict(modules["curious"].failures)["test_even"]
    assert "LookupError: []" in found, found


def test_nothing_handed_in_is_said(course: Path, module: Write) -> None:
    module()
    with pytest.raises(NotebookError, match="nothing submitted"):
        package(course, "nobody")

"""The instructor's page, followed to the word after each of its two starts; and a log without warnings."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from nbgrader.apps.nbgraderapp import NbGraderApp

from autograder import time_limits
from autograder.cli import main
from tests.attacks.notebooks import ROOT
from tests.grading.forked import can_fork, forked
from tests.grading.instructor_page import AS_A_STUDENT, ASSIGNMENT, ME, PAGE, STEPS, Step, environment, prepare, run

# What must not stand in a log that a newcomer sees.
WORRIES = re.compile(r"^\[[WEC] |WARN|CRITICAL|ERROR|Traceback|[Dd]eprecat", re.M)
PAGES = (
    "lab",
    "tree",
    "formgrader",
    "assignments?course_id=tinybench",
    "lab/api/settings",
    "api/contents/student/map.ipynb",
)


def test_its_commands_are_those_of_the_script() -> None:
    commands = re.findall(r"^\$ (.*)$", PAGE.read_text(encoding="utf-8"), re.M)
    assert commands == [step.command for step in STEPS if step.command]


def test_its_commands_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.Command, "invoke", lambda self, context: None)  # its words are read, nothing is run
    for step in STEPS:
        program, _, words = step.command.partition(" ")
        if program == "autograder":
            assert main(shlex.split(words.replace("$(id -un)", "ada"))) == 0, step.command
        elif program == "nbgrader":
            assert words.split()[0] in NbGraderApp.subcommands


def test_it_shows_no_place_of_this_machine() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert str(ROOT) not in page
    assert not re.search(r"/(tmp|home|root|work)/", page)
    assert "autograder/INSTRUCTOR.md" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_step_promises_something() -> None:
    silent = [step.command for step in STEPS if step.command and not (step.makes or step.says)]
    assert silent == [f"nbgrader fetch_feedback {ASSIGNMENT}"]  # what it fetches, the next step finds


def follow(steps: list[Step], course: Path) -> None:
    """Run steps as they are written, and check what they promise."""
    for step in steps:
        command = step.command.replace("$(id -un)", ME)
        if can_fork(command) and not step.how:
            output = forked(course, command, environment())
        else:
            output = (step.how or run)(course, step.command)
        assert step.says in output, (step.command, output)
        assert not re.search(r"CRITICAL|ERROR|Traceback", output), (step.command, output)
        for pattern in step.makes:
            assert list(course.glob(pattern)), (step.command, pattern, output)


@dataclass
class Running:
    """A course that `autograder course` serves, with its log."""

    root: Path
    address: str
    token: str
    log: Path

    def ask(self, path: str, data: object = None) -> bytes:
        """Return what JupyterLab answers."""
        request = urllib.request.Request(
            f"{self.address}{path}",
            json.dumps(data).encode() if data else None,
            {"Authorization": f"token {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=time_limits.wall(60)) as answer:
            return bytes(answer.read())


@pytest.fixture
def after_make_course(tmp_path: Path) -> Iterator[Running]:
    """The first start: the course runs in another terminal, on a machine without a browser."""
    root = tmp_path / "course"
    root.mkdir()
    prepare(root)
    home = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    variables = environment() | home | {"IPYTHONDIR": str(tmp_path / "ipython"), "BROWSER": "", "DISPLAY": ""}
    log = tmp_path / "log"
    with log.open("w") as output:
        command = ["autograder", "course", "--port", "0"]
        server = subprocess.Popen(command, cwd=root, env=variables, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield Running(root, *address_of(server, log), log)
    finally:
        server.terminate()
        server.wait(time_limits.wall(60))


def address_of(server: subprocess.Popen[bytes], log: Path) -> tuple[str, str]:
    pattern = re.compile(r"JupyterLab +(\S+/)lab\?token=(\w+)[\s\S]*publish` writes\.\n")
    for _ in range(int(time_limits.wall(1200))):
        if found := pattern.search(log.read_text(encoding="utf-8")):
            return found[1], found[2]
        try:
            server.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError(log.read_text(encoding="utf-8"))


@pytest.mark.audit
@pytest.mark.slow
@pytest.mark.needs("sandbox")
def test_it_holds_after_make_course(after_make_course: Running) -> None:
    """All of it; and the log of the course, whose pages were opened and whose kernel runs, has nothing to worry about."""
    course = after_make_course
    for page in PAGES:
        assert course.ask(page)
    notebook = f"student/{ASSIGNMENT}/{ASSIGNMENT}.ipynb"
    assert course.ask(f"api/contents/{notebook}")
    kernel = {"path": notebook, "name": notebook, "type": "notebook", "kernel": {"name": "python3"}}
    assert json.loads(course.ask("api/sessions", kernel))["kernel"]["id"]
    follow(STEPS, course.root)
    said = course.log.read_text(encoding="utf-8")
    assert "open the first address in one" in said
    assert not WORRIES.findall(said), said
    board = (course.root / "course" / "leaderboard.log").read_text(encoding="utf-8")
    assert not WORRIES.findall(board), board


@pytest.mark.slow
@pytest.mark.needs("sandbox")
def test_it_holds_in_a_fresh_folder(tmp_path: Path) -> None:
    """The second start: up to the exchange, and the way of a student, which needs nothing else of the page."""
    prepare(tmp_path)
    until = next(number for number, step in enumerate(STEPS) if "release_assignment" in step.command)
    follow(STEPS[: until + 1] + AS_A_STUDENT, tmp_path)

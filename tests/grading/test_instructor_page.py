"""The instructor's page holds the commands that its script runs, and they exist."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from nbgrader.apps.nbgraderapp import NbGraderApp

from autograder.cli import main
from tests.attacks.notebooks import ROOT
from tests.grading.instructor_page import PAGE, STEPS


def test_its_commands_are_those_of_the_script() -> None:
    commands = re.findall(r"^\$ (.*)$", PAGE.read_text(encoding="utf-8"), re.M)
    assert commands == [step.command for step in STEPS if step.command]


def test_its_commands_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.Command, "invoke", lambda self, context: None)  # its words are read, nothing is run
    for step in STEPS:
        program, _, words = step.command.partition(" ")
        if program == "autograder":
            assert main(shlex.split(words)) == 0, step.command
        elif program == "nbgrader":
            assert words.split()[0] in NbGraderApp.subcommands


def test_it_shows_no_place_of_this_machine() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert str(ROOT) not in page
    assert not re.search(r"/(tmp|home|root|work)/", page)
    assert "autograder/INSTRUCTOR.md" in (ROOT / "README.md").read_text(encoding="utf-8")

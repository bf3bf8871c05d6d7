"""The house is in order: no file is longer than one reads in a sitting, no function is named like its module."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from autograder.course.export import EXPORTED
from tests.house import PACKAGES, ROOT, files, main, names_in_two_files

MOST, MOST_EXPORTED = 300, 600
# of these the folder says which one is meant: commands of grading
TOLD_BY_FOLDER = {"__init__.py", "__main__.py", "commands.py"}


def test_no_file_is_too_long() -> None:
    too_long = {}
    for path in files(*PACKAGES):
        text = path.read_text(encoding="utf-8")
        most = MOST_EXPORTED if text.startswith(EXPORTED) else MOST
        if (lines := text.count("\n")) > most and not checks(path):
            too_long[str(path.relative_to(ROOT))] = lines
    assert not too_long, f"split them: {too_long}"


def checks(path: Path) -> bool:
    """Whether a file holds the hidden checks of a module, as long as what they check."""
    return path.parent.name == "checks" and path.name.startswith("m")


def test_nothing_is_named_like_its_module() -> None:
    named = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in files(*PACKAGES)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == path.stem
    ]
    assert not named


def test_a_public_name_means_one_thing() -> None:
    assert names_in_two_files() == {}


def test_a_file_name_means_one_thing() -> None:
    for package in PACKAGES:
        # what runs inside of the sandbox is another program
        names = Counter(path.name for path in files(package) if "guest" not in path.parts)
        assert {name for name, times in names.items() if times > 1} <= TOLD_BY_FOLDER, package


@pytest.mark.audit
def test_the_house_shows_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    told = capsys.readouterr().out
    assert "circles: 0" in told
    assert re.search(r"^\d+ functions in \d+ files: tinybench compare ", told, re.M)
    assert re.search(r"^\d+ functions in \d+ files: tinybench rollout ", told, re.M)

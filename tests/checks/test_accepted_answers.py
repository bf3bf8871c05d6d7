"""An answer that the student is told is right earns its points: the hidden check accepts it as the visible one does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.checks import run
from autograder.checks.plain_answers import CheckFailed
from autograder.course import sealed_solutions
from autograder.course.assignment import Assignment
from autograder.course.module_build import needed_cells
from autograder.course.notebook import Cell, course_notebooks, read_notebook
from autograder.grading.session import hidden_checks
from tests.course.perfect_student import ROOT

NOTEBOOKS = {path.stem: path for path in course_notebooks(ROOT)}


@pytest.mark.slow
@pytest.mark.parametrize("module", NOTEBOOKS)
def test_a_rounded_answer_earns_its_points(module: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    Assignment.read(NOTEBOOKS[module]).lay_out(tmp_path)
    answers = sealed_solutions.keys(NOTEBOOKS[module])["answers"]
    cells, space = list(needed_cells(read_notebook(NOTEBOOKS[module]))), dict[str, Any]({"__name__": "__main__"})
    for cell in cells:
        if not cell.is_check:
            exec(compile(cell.source, f"<{cell.id}>", "exec"), space)
    refused = [why for cell in cells if cell.is_check for why in refusals(cell, space, answers)]
    assert not refused, "the visible check accepts what the hidden one does not"


def refusals(check: Cell, space: dict[str, Any], answers: dict[str, Any]) -> Iterator[str]:
    """Yield what the hidden check of a cell says to answers rounded to the digits that count."""
    for question in sealed_solutions.questions(check):
        right = space[question]()
        for place, part in enumerate(answers[question]):
            if not part["rounded"]:
                continue
            parts = list(right) if isinstance(right, tuple | list) else [right]
            parts[place] = float(json.loads(part["right"]) if part["right"].startswith('"') else part["right"])
            given = tuple(parts) if isinstance(right, tuple | list) else parts[0]
            for name in hidden_checks(check.source):
                try:
                    run(name, space | {question: lambda given=given: given})
                except CheckFailed as failure:
                    yield f"{question}: {parts[place]} instead of {part['right']}: {failure}"

"""Honest work earns full marks in the sandbox, however it is written, or is told what differs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from autograder.checks.check_helpers import SEED
from autograder.course import sealed_solutions
from autograder.course.assignment import Assignment
from autograder.course.module_build import run_checks
from autograder.course.notebook import cells_of, course_notebooks, read_notebook
from autograder.grading.submission_grader import Grader
from tests.variants import students, variants

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = {path.stem: path for path in course_notebooks(ROOT)}
LISTS = [module for module in NOTEBOOKS if variants(module)]


@pytest.mark.parametrize("module", LISTS)
def test_honest_variants_earn_full_marks(module: str) -> None:
    path, lost = NOTEBOOKS[module], []
    with Grader(Assignment.read(path)) as grader:
        for notebook, judged in students(module, read_notebook(path)):
            SEED.set(20)
            graded = grader.grade(nbformat.writes(notebook).encode())
            for check, why in graded.verdicts.items():
                tried = judged.get(check, [])
                said = [variant.said for variant in tried if variant.said]
                if (why and not said) or any(words not in why for words in said):
                    lost.append(f"{[variant.name for variant in tried]} at {check}: {why or 'full marks'}")
    assert not lost, "\n".join(lost)


@pytest.mark.parametrize("module", LISTS)
def test_honest_variants_are_ticked(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What proves a right solution depends on neither its style nor its types, as in a student's folder."""
    path, refused = NOTEBOOKS[module], []
    Assignment.read(path).lay_out(tmp_path)
    sealed_solutions.write_sealed(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    for notebook, judged in students(module, read_notebook(path)):
        for cell in cells_of(notebook):
            cell.node.source = cell.visible
        for check, why in run_checks(notebook, path).items():
            tried = judged.get(check, [])
            if why and not any(variant.said for variant in tried):
                refused.append(f"{[variant.name for variant in tried]} at {check}: {why}")
    assert not refused, "\n".join(refused)


def test_every_module_has_variants() -> None:
    assert set(LISTS) == set(NOTEBOOKS)
    assert sum(len(variants(module)) for module in LISTS) >= 100

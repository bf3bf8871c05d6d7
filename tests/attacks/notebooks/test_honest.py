"""Honest work, right or wrong, gets the same verdicts from the sandboxed judge as from the checks in one process."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from pathlib import Path

import nbformat
import pytest

from autograder.course.assignment import Assignment
from autograder.course.build import run_checks
from autograder.course.notebook import course_notebooks, read_notebook
from autograder.grading.grader import Grader
from tests.attacks.notebooks import ROOT, released, solved
from tests.mutants import Mutant, mutants

pytestmark = pytest.mark.needs("sandbox")

SOME = 4  # mutants of each module; all of them take an hour: TINYBENCH_ALL_MUTANTS=1
NOTEBOOKS = {path.stem: path for path in course_notebooks(ROOT)}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_reference_as_in_one_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    same_verdicts(name, [], monkeypatch)


@pytest.mark.audit
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_wrong_solutions_as_in_one_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = mutants(name)
    step = 1 if os.environ.get("TINYBENCH_ALL_MUTANTS") else len(wrong) // SOME
    same_verdicts(name, wrong[::step], monkeypatch)


def same_verdicts(name: str, wrong: Sequence[Mutant], monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge the reference and wrong solutions both ways, and the untouched notebook."""
    path = NOTEBOOKS[name]
    monkeypatch.chdir(path.parent)
    reference = read_notebook(path)
    submissions = {"reference": reference}
    for mutant in wrong:
        submissions[mutant.name] = copy.deepcopy(reference)
        mutant.apply(submissions[mutant.name])
    different, flagged = [], []
    with Grader(Assignment.read(path)) as grader:
        for label, notebook in submissions.items():
            expected = run_checks(notebook, path)
            graded = grader.grade(nbformat.writes(_as_submitted(notebook, path)).encode())
            if {check: not why for check, why in expected.items()} != {c: not w for c, w in graded.verdicts.items()}:
                different.append((label, expected, graded.verdicts))
            if graded.evidence:
                flagged.append((label, graded.evidence))
        untouched = grader.grade(nbformat.writes(released(path)).encode())
    assert not different
    assert not flagged
    assert all(untouched.verdicts.values())
    assert not untouched.evidence


def _as_submitted(notebook: nbformat.NotebookNode, path: Path) -> nbformat.NotebookNode:
    """Return a notebook with the released checks in place of the instructor's."""
    shown = {cell.id: cell.source for cell in solved(path).cells}
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade") and cell.cell_type == "code":
            cell.source = shown[cell.id]
    return notebook

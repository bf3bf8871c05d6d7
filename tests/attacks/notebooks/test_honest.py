"""Honest work, right or wrong, gets the same verdicts from the sandboxed judge as from the checks in one process."""

from __future__ import annotations

import copy
import os
from pathlib import Path

import nbformat
import pytest

from autograder.course.assignment import Assignment
from autograder.course.module_build import run_checks
from autograder.course.notebook import cells_of, course_notebooks, read_notebook
from autograder.grading.submission_grader import Grader
from tests.attacks.notebooks import ROOT, released, solved
from tests.mutants import mutants

pytestmark = pytest.mark.needs("sandbox")

SOME = 4  # mutants of each module; all of them take an hour: TINYBENCH_ALL_MUTANTS=1
NOTEBOOKS = {path.stem: path for path in course_notebooks(ROOT)}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_reference_passes_and_an_untouched_notebook_does_not(name: str) -> None:
    path = NOTEBOOKS[name]
    checks = {cell.id for cell in cells_of(read_notebook(path)) if cell.is_check}
    with Grader(Assignment.read(path)) as grader:
        reference = grader.grade(nbformat.writes(_as_submitted(read_notebook(path), path)).encode())
        untouched = grader.grade(nbformat.writes(released(path)).encode())
    assert reference.verdicts == dict.fromkeys(checks, "")
    assert untouched.verdicts.keys() == checks
    assert all(untouched.verdicts.values())
    assert not reference.evidence
    assert not untouched.evidence


@pytest.mark.audit
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_reference_and_wrong_solutions_as_in_one_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, wrong = NOTEBOOKS[name], mutants(name)
    step = 1 if os.environ.get("TINYBENCH_ALL_MUTANTS") else len(wrong) // SOME
    monkeypatch.chdir(path.parent)
    reference = read_notebook(path)
    submissions = {"reference": reference}
    for mutant in wrong[::step]:
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
    assert not different
    assert not flagged


def _as_submitted(notebook: nbformat.NotebookNode, path: Path) -> nbformat.NotebookNode:
    """Return a notebook with the released checks in place of the instructor's."""
    shown = {cell.id: cell.source for cell in solved(path).cells}
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade") and cell.cell_type == "code":
            cell.source = shown[cell.id]
    return notebook

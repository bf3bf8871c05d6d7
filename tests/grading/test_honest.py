"""A few generated students get stock nbgrader's scores, and the reference passes under another seed than the usual one."""

from __future__ import annotations

import copy
import os

import nbformat
import pytest

from autograder.course.notebook import course_notebooks, read_notebook
from autograder.grading.submission import parse_submission, prepare
from tests.attacks.notebooks import ROOT, cell_of, solved
from tests.attacks.page import part
from tests.grading.honest import submissions
from tests.mutants.seeds import SEED, under_seeds

NOTEBOOKS = {path.stem: path for path in course_notebooks(ROOT)}


@pytest.fixture(autouse=True)
def seed_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SEED, os.environ.get(SEED, "20"))


def test_a_copied_split_or_moved_solution_is_no_evidence() -> None:
    """JupyterLab keeps nbgrader's marks in both parts of a cell that is split."""
    path = NOTEBOOKS["01_result"]
    notebook = solved(path)
    cell, gone = cell_of(notebook, "answer_understanding"), cell_of(notebook, "t_interval")
    first, second = "def one():\n    return 1", "def two():\n    return 2"
    twin = nbformat.v4.new_code_cell(second, metadata=copy.deepcopy(cell.metadata))
    cell.source = first
    notebook.cells.insert(notebook.cells.index(cell) + 1, twin)
    notebook.cells[notebook.cells.index(gone)] = nbformat.v4.new_code_cell("def t_interval(): pass")
    prepared = prepare(parse_submission(nbformat.writes(notebook).encode()), read_notebook(path))
    sources = [cell.source for cell in prepared.notebook.cells]
    assert sources.index(second) == sources.index(first) + 1
    assert "def t_interval(): pass" in sources
    assert not prepared.evidence


@pytest.mark.needs("sandbox")
@pytest.mark.slow
def test_the_score_is_stock_nbgraders() -> None:
    said = submissions(10, 0, ["01_result", "04_accuracy"], report=print)
    assert "Every score is equal" in said


@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if name < "13"])  # later ones measure models: slow
def test_the_reference_passes_under_another_seed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(NOTEBOOKS[name].parent)
    _, failures = under_seeds(NOTEBOOKS[name], [2**31 - 1])
    assert not failures


@pytest.mark.parametrize("name", ["versus_stock", "honest", "seeds"])
def test_the_page_has_its_results(name: str) -> None:
    assert part(name).strip()

"""Every module's released notebook is worth nothing untouched, and fails by its stubs only."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autograder.course.notebook import course_notebooks, read_notebook
from autograder.course.release import release_all

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("notebook", course_notebooks(ROOT), ids=lambda path: path.stem)
def test_untouched_is_worth_nothing(notebook: Path, tmp_path: Path) -> None:
    shutil.copytree(notebook.parent, tmp_path / "modules" / notebook.stem)
    shutil.copytree(ROOT / "tinybench", tmp_path / "tinybench")
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    lines: list[str] = []
    release_all(tmp_path, report=lines.append)  # raises where a point is earned or another error comes first
    assert "0 points untouched" in lines[0]
    student = read_notebook(tmp_path / "student" / notebook.stem / notebook.name)
    assert not any("BEGIN SOLUTION" in cell.source or "HIDDEN TESTS" in cell.source for cell in student.cells)

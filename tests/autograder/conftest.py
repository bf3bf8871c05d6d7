"""A course of one small module in a temporary folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]

SETUP = 'import sys\n\nsys.path.insert(0, "..")'
HALVE = '''def halve(x: float) -> float:
    """Return half of x."""
    ### BEGIN SOLUTION
    return x / 2
    ### END SOLUTION'''
CHECK = """assert halve(4) == 2, "half of 4 is 2"
### BEGIN HIDDEN TESTS
assert halve(3) == 1.5, "half of 3 is 1.5"
### END HIDDEN TESTS"""


def code(source: str, name: str, *tags: str, **grading: Any) -> NotebookNode:
    """Return a code cell; grading keywords make it an nbgrader cell."""
    cell = nbformat.v4.new_code_cell(source, id=name)
    if tags:
        cell.metadata["tags"] = list(tags)
    if grading:
        defaults = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3}
        cell.metadata["nbgrader"] = defaults | {"grade_id": name} | grading
    return cell


def tiny_cells() -> list[NotebookNode]:
    """Return the cells of a module that exports one function and checks it for 3 points."""
    return [
        code(SETUP, "setup", grade=False, locked=True),
        code('"""Halves."""\n\nimport math', "imports", locked=True),
        code(HALVE, "halve", "export", solution=True),
        code(CHECK, "check_halve", grade=True, locked=True, points=3),
    ]


SMALL = ["setup", "imports", "check_values", "check_values_guard", "mean_and_std", "check_moments"]


def small_cells() -> list[NotebookNode]:
    """Return the first two functions of module 01 with their checks, 2 points each."""
    real = nbformat.read(ROOT / "modules" / "01_result" / "01_result.ipynb", as_version=4)
    return [cell for name in SMALL for cell in real.cells if cell.id == name]


Write = Callable[..., Path]


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Return an empty course."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "tinybench").mkdir()
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copy(ROOT / "tinybench" / "py.typed", tmp_path / "tinybench")
    return tmp_path


@pytest.fixture
def module(course: Path) -> Write:
    """Return a function that writes a module's notebook and returns its path."""

    def write(*cells: NotebookNode, name: str = "01_tiny") -> Path:
        notebook = nbformat.v4.new_notebook(cells=list(cells) or tiny_cells())
        notebook.metadata = nbformat.from_dict(
            {
                "kernelspec": {
                    "display_name": "Python 3 (ipykernel)",
                    "language": "python",
                    "name": "python3",
                },
                "language_info": {"name": "python"},
            }
        )
        path = course / "modules" / name / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
        return path

    return write

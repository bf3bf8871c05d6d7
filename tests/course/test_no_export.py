"""A module that adds no file to the package, as the capstone: exported and built without complaint."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.cli import main
from autograder.course.export import course_modules, export_course
from autograder.course.module_build import build_module
from autograder.course.notebook import NotebookError, course_notebooks
from tests.tiny_course import Write, tiny_cells


def without_export() -> list[NotebookNode]:
    cells = tiny_cells()
    for cell in cells:
        cell.metadata.pop("tags", None)
    return cells


def test_it_has_no_file_and_stops_no_other(course: Path, module: Write) -> None:
    module()
    module(*without_export(), name="17_capstone")
    assert set(course_modules(course_notebooks(course))) == {"tiny"}
    assert {path.name for path in export_course(course)} == {"tiny.py", "__init__.py"}
    assert main(["--root", str(course), "export"]) == 0
    assert main(["--root", str(course), "export", "17_capstone"]) == 0
    assert main(["--root", str(course), "export", "--check", "17_capstone"]) == 0
    assert not (course / "tinybench" / "capstone.py").exists()


def test_a_notebook_that_is_not_there_is_still_named(course: Path, module: Write) -> None:
    module()
    module(*without_export(), name="17_capstone")
    with pytest.raises(ValueError, match="there are 01_tiny, 17_capstone"):
        export_course(course, ["18_more"])


def test_building_runs_its_checks(course: Path, module: Write, tmp_path: Path) -> None:
    notebook = module(*without_export(), name="17_capstone")
    package = tmp_path / "student" / "tinybench"
    assert "every visible check of 17_capstone passes" in build_module(notebook, package)
    assert not package.exists()
    wrong = nbformat.read(notebook, as_version=4)
    wrong.cells[2].source = wrong.cells[2].source.replace("x / 2", "x / 3")
    nbformat.write(wrong, notebook)
    with pytest.raises(NotebookError, match="check_halve: AssertionError: half of 4 is 2"):
        build_module(notebook, package)

"""A course of one small module in a temporary folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import nbformat
import nbgrader.api
import pytest
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from traitlets.config import Config

from autograder.course.nbgrader_settings import configure
from autograder.course.notebook import read_notebook
from autograder.course.release import release_all

# a process of alembic's tells it, for every new gradebook
nbgrader.api.get_alembic_version = cache(nbgrader.api.get_alembic_version)

ROOT = Path(__file__).resolve().parents[1]

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


NAME = "01_result"
RIGHT = {
    "check_values": "def check_values(values):\n    out = []\n    for i, v in enumerate(values):\n        if type(v) is bool or not isinstance(v, Real) or not math.isfinite(v):\n            raise ValueError(f'{i}')\n        out.append(float(v))\n    if not out:\n        raise ValueError('empty')\n    return out",
    "mean_and_std": "def mean_and_std(v):\n    m = math.fsum(v) / len(v)\n    if len(v) == 1:\n        return m, 0.0\n    r = [x - m for x in v]\n    return m, math.sqrt((math.fsum(x * x for x in r) - math.fsum(r) ** 2 / len(v)) / (len(v) - 1))",
}

SMALL = ["setup", "imports", "check_values", "check_values_guard", "mean_and_std", "check_moments"]


def small_cells() -> list[NotebookNode]:
    """Return the first two functions of module 01 with their checks, 2 points each."""
    real = nbformat.read(ROOT / "modules" / "01_result" / "01_result.ipynb", as_version=4)
    cells = [cell for name in SMALL for cell in real.cells if cell.id == name]
    for cell in cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.metadata.nbgrader.points = 2
    return cells


Write = Callable[..., Path]


def new_course(folder: Path) -> Path:
    """Lay out an empty course in a folder, and return it."""
    (folder / "modules").mkdir()
    (folder / "tinybench").mkdir()
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copy(ROOT / "tinybench" / "py.typed", folder / "tinybench")
    return folder


def write_module(course: Path, *cells: NotebookNode, name: str = "01_tiny") -> Path:
    """Write a module's notebook into a course, and return its path."""
    notebook = nbformat.v4.new_notebook(cells=list(cells) or tiny_cells())
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    notebook.metadata = nbformat.from_dict({"kernelspec": kernel, "language_info": {"name": "python"}})
    path = course / "modules" / name / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """An empty course."""
    return new_course(tmp_path)


@pytest.fixture
def module(course: Path) -> Write:
    """A function that writes a module's notebook and returns its path."""
    return partial(write_module, course)


@pytest.fixture(scope="session")
def released_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course whose one small module is released; not to be changed."""
    course = new_course(tmp_path_factory.mktemp("released"))
    write_module(course, *small_cells(), name=NAME)
    shutil.copytree(ROOT / "tinybench", course / "tinybench", dirs_exist_ok=True)
    release_all(course, verify=False, report=lambda line: None)
    return course


@pytest.fixture
def released(released_once: Path, tmp_path: Path) -> Path:
    """A course whose one small module is released."""
    return Path(shutil.copytree(released_once, tmp_path, dirs_exist_ok=True))


def hand_in(course: Path, student: str, content: bytes, name: str = NAME) -> Path:
    folder = course / "course" / "submitted" / student / name
    folder.mkdir(parents=True)
    path = folder / f"{name}.ipynb"
    path.write_bytes(content)
    return path


def solved(course: Path, extra: str = "", **sources: str) -> bytes:
    notebook = read_notebook(course / "course" / "release" / NAME / f"{NAME}.ipynb")
    for cell in notebook.cells:
        if cell.id in RIGHT:
            cell.source = sources.get(cell.id, RIGHT[cell.id])
        if cell.id == "mean_and_std":
            cell.source += extra
    return nbformat.writes(notebook).encode()


def gradebook(course: Path) -> Gradebook:
    """Return a course's gradebook, to be used in a `with`."""
    directory = configure(Config(), course).CourseDirectory
    return Gradebook(directory.db_url, directory.course_id)

"""Progress in a real kernel: a mark is given for right code, and taken back with it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from autograder.course.module_build import needed_cells
from autograder.course.notebook import Cell, cells_of, read_notebook
from autograder.course.student_package import lay_out_package, status
from tests.course.perfect_student import ROOT, environment
from tests.notebooks.student import Desk, course_of
from tinybench.course.progress import read_module

MODULE = "01_result"

SECTIONS = {"check_values": "check_values_guard", "mean_and_std": "check_moments", "t_interval": "check_interval"}


class Student:
    """Somebody who works through a released notebook in a kernel, and saves it now and then."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / MODULE / f"{MODULE}.ipynb"
        self.notebook = read_notebook(self.path)
        self.cells = {cell.id: cell for cell in needed_cells(self.notebook)}
        reference = read_notebook(ROOT / "modules" / MODULE / f"{MODULE}.ipynb")
        self.right = {cell.id: cell.code for cell in cells_of(reference) if cell.is_solution}
        self.desk = Desk(self.notebook, self.path.parent)

    def write(self, cell: str, old: str = "", new: str = "") -> None:
        """Write the right code into a cell, with one change, and run it."""
        assert self.right[cell].count(old) >= 1
        self.cells[cell].node.source = self.right[cell].replace(old, new) if old else self.right[cell]
        self.run(cell)

    def run(self, cell: str) -> str:
        """Run a cell, and return what stands below it."""
        shown, _ = self.desk.run(Cell.of(self.cells[cell].node))
        return "\n".join(shown)

    def save(self) -> None:
        nbformat.write(self.notebook, self.path)

    @property
    def on_the_map(self) -> set[str]:
        """The checks that count on the map."""
        module = read_module(self.path)
        assert module is not None
        return set(module.passed)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return course_of(tmp_path_factory.mktemp("course"), [MODULE])


@pytest.fixture(scope="module")
def desk(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Student]:
    """A student's notebook in a kernel."""
    folder = tmp_path_factory.mktemp("student")
    lay_out_package(released, folder / "tinybench")
    shutil.copytree(released / "student" / MODULE, folder / MODULE)
    person = Student(folder)
    with person.desk.client.setup_kernel(env=environment(person.path.parent)):
        for cell in ("setup", "imports"):
            person.run(cell)
        yield person


@pytest.fixture
def student(desk: Student) -> Student:
    """A student at the end of the third section, with all that stands above it right and saved."""
    for solution, check in SECTIONS.items():
        desk.write(solution)
        assert f"✓ **{check}** passed" in desk.run(check)
    desk.save()
    assert desk.on_the_map >= {*SECTIONS.values()}
    return desk


@pytest.mark.slow
def test_progress_goes_back_and_forth(student: Student) -> None:
    folder = student.path.parents[1]
    for count, (solution, old, new) in enumerate(
        [("check_values", "not math.isfinite(value)", "math.isinf(value)"), ("mean_and_std", "(n - 1))", "n)"),
         ("t_interval", "(n - 1, 0.5", "(n, 0.5")], start=1,
    ):  # fmt: skip
        student.write(solution, old, new)
        assert student.on_the_map == {*list(SECTIONS.values())[count:]}, "changed code has no mark before it is checked"
        assert "AssertionError" in student.run(SECTIONS[solution])
        assert student.on_the_map == {*list(SECTIONS.values())[count:]}
        left = 3 - count
        assert dict(status(folder))[MODULE] == f"not built yet, {left} of 11 checks pass{'es' if left == 1 else ''}"
    for count, solution in enumerate(SECTIONS, start=1):
        student.write(solution)
        assert re.search(rf"passed: {count} of 11 checks", student.run(SECTIONS[solution]))
    student.run("check_values")
    assert len(student.on_the_map) == 3, "running the same code again changes nothing"


@pytest.mark.slow
def test_code_that_was_changed_since_has_no_mark(student: Student) -> None:
    node = student.cells["check_values"].node
    node.source = "# a remark\n\n" + node.source
    student.save()
    assert len(student.on_the_map) == 3, "a comment changes no code"
    node.source = node.source.replace("float(value)", "value")
    assert len(student.on_the_map) == 3
    student.save()
    assert student.on_the_map == {"check_moments", "check_interval"}
    assert "passed: 2 of 11" in student.run("check_moments"), "the notebook counts as the map does"
    student.write("check_values")
    student.run("check_values_guard")
    assert len(student.on_the_map) == 3, "younger than what was saved"


@pytest.mark.slow
def test_a_tick_means_right(student: Student) -> None:
    student.write("check_values", "return checked", "return checked[:2]")
    shown = student.run("check_values_guard")
    assert "AssertionError: the visible tests pass, a hidden one does not" in shown
    assert "Look at check_values" in shown
    assert "✓" not in shown
    assert "explained" not in shown
    assert "check_values_guard" not in student.on_the_map


@pytest.mark.slow
def test_the_earlier_mistake_comes_first(student: Student) -> None:
    student.write("mean_and_std", "(n - 1))", "n)")
    student.run("check_moments")
    shown = student.run("check_interval")
    assert shown.startswith("AssertionError: Make check_moments pass first (section “2 · Mean and standard deviation")
    student.write("t_interval", "float(stdtrit(n - 1, 0.5 + confidence / 2))", "1.96")
    shown = student.run("check_interval")
    assert shown.index("check_moments pass first") < shown.index("half of what is left")


@pytest.mark.slow
def test_a_wrong_answer_after_a_right_one_takes_the_mark(student: Student) -> None:
    student.write("required_runs")
    student.write("answer_runs")
    assert "✓" in student.run("check_answer_runs")
    assert "check_answer_runs" in student.on_the_map
    student.write("answer_runs", "867", "866")
    assert "is not right yet" in student.run("check_answer_runs")
    assert "check_answer_runs" not in student.on_the_map


@pytest.mark.slow
def test_a_new_kernel_keeps_the_marks_of_unchanged_code(student: Student) -> None:
    again = Student(student.path.parents[1])
    with again.desk.client.setup_kernel(env=environment(again.path.parent)):
        for cell in ("setup", "imports", *SECTIONS):
            again.run(cell)
        assert len(again.on_the_map) == 3
        again.write("mean_and_std", "(n - 1))", "n)")
        assert again.on_the_map == {"check_values_guard", "check_interval"}
        for check in SECTIONS.values():
            again.run(check)
        assert again.on_the_map == {"check_values_guard"}
    kept = json.loads((again.path.parent / ".progress.json").read_text())
    assert list(kept["checks"]) == ["check_values_guard"]

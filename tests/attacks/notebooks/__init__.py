"""Hostile notebooks: what strangers may hand in, each built from the released notebook of module 01."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.course.notebook import cells_of, read_notebook
from autograder.course.release import stub_solutions

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "modules" / "01_result" / "01_result.ipynb"


@dataclass(frozen=True)
class Attack:
    """A hostile submission."""

    name: str
    tries: str  # what it tries, for the table
    build: Callable[[NotebookNode], bytes | None] = lambda notebook: (
        None
    )  # changes it in place, or returns what to hand in
    flagged: bool = False  # the instructor must be told
    reason: str = ""  # words that the reason must hold when the submission is refused or ended
    arrange: Callable[[Path, Path], None] = lambda folder, source: (
        None
    )  # changes the folder, given the instructor's notebook

    def content(self, *, demonstrations: bool = True) -> bytes:
        """Return the submission, with the module's demonstrations or, to save time, without."""
        notebook = released(SOURCE)
        if not demonstrations:
            without_demonstrations(notebook)
        content = self.build(notebook)
        return nbformat.writes(notebook).encode() if content is None else content

    def hand_in(self, folder: Path, source: Path, *, demonstrations: bool = True) -> None:
        """Lay the submission out in a folder; `source` is the instructor's notebook there."""
        folder.mkdir(parents=True)
        (folder / SOURCE.name).write_bytes(self.content(demonstrations=demonstrations))
        self.arrange(folder, source)


def released(path: Path) -> NotebookNode:
    """Return a module's notebook as students get it."""
    notebook = read_notebook(path)
    for cell in cells_of(notebook):
        if cell.is_solution:
            cell.node.source = stub_solutions(cell.source, cell.id)
        elif cell.is_written:
            cell.node.source = ""
        elif cell.is_check:
            cell.node.source = cell.visible
    return notebook


def solved(path: Path) -> NotebookNode:
    """Return a right submission: the reference's solutions, the released checks."""
    notebook = read_notebook(path)
    for cell in cells_of(notebook):
        if cell.is_check:
            cell.node.source = cell.visible
    return notebook


def cell_of(notebook: NotebookNode, name: str) -> NotebookNode:
    """Return the cell of a grade_id."""
    return next(cell.node for cell in cells_of(notebook) if cell.id == name)


def without_demonstrations(notebook: NotebookNode) -> None:
    """Drop the code cells that grading does not know, to save their time."""
    notebook.cells = [cell.node for cell in cells_of(notebook) if not cell.is_code or cell.marks]


# A student's code can always make the visible asserts pass: both share an interpreter. So each attack begins with that.
VISIBLE_PASSES = """try:
    import sandbox.guest.runner
    sandbox.guest.runner.Runner.visible = lambda *_: ([], None)
except ImportError:
    pass  # stock nbgrader
"""


def first(code: str, *, visible_passes: bool = True) -> Callable[[NotebookNode], None]:
    """Put a cell of the student's own after the set-up."""

    def build(notebook: NotebookNode) -> None:
        notebook.cells.insert(2, nbformat.v4.new_code_cell(VISIBLE_PASSES * visible_passes + code))

    return build


def before_checks(code: str) -> Callable[[NotebookNode], None]:
    """Put a cell of the student's own before each check, after the stubs."""

    def build(notebook: NotebookNode) -> None:
        first("")(notebook)
        for cell in [cell.node for cell in cells_of(notebook) if cell.is_check]:
            notebook.cells.insert(notebook.cells.index(cell), nbformat.v4.new_code_cell(code))

    return build


def solving(code: str, cell: str = "check_values") -> Callable[[NotebookNode], None]:
    """Write code into a solution cell."""

    def build(notebook: NotebookNode) -> None:
        first("")(notebook)
        cell_of(notebook, cell).source = code

    return build


def marked(change: Callable[[NotebookNode], None]) -> Callable[[NotebookNode], None]:
    """Change the first check cell."""

    def build(notebook: NotebookNode) -> None:
        change(cell_of(notebook, "check_values_guard"))

    return build


def raw(change: Callable[[dict[str, object]], object]) -> Callable[[NotebookNode], bytes]:
    """Change the notebook as plain JSON."""

    def build(notebook: NotebookNode) -> bytes:
        data = json.loads(nbformat.writes(notebook))
        change(data)
        return json.dumps(data).encode()

    return build

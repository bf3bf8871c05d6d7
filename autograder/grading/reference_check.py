"""A check before a release: the reference solution must get full marks from every hidden check on this machine."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

from nbgrader.utils import determine_grade

from autograder.course.assignment import Assignment
from autograder.course.execute import run_notebook
from autograder.course.module_build import needed_cells
from autograder.course.notebook import NotebookError, cells_of, read_notebook
from autograder.grading.submission_grader import Grader
from autograder.sandbox.bubblewrap import unavailable
from tinybench.support.basics.numbers import number_of


def insist_on_full_marks(source: Path) -> None:
    """Raise NotebookError if the reference solution fails a check.

    The solution runs in the sandbox. If this machine has no sandbox, the solution runs as this user.
    """
    for cell, problem in (_as_you(source) if unavailable() else _in_sandbox(source)).items():
        if problem:
            raise NotebookError(source, cell, f"the reference itself does not pass this check here: {problem}")


def _in_sandbox(source: Path) -> dict[str, str]:
    with Grader(Assignment.read(source)) as grader:
        graded = grader.grade(source.read_bytes())
    if graded.failure:
        return {"": graded.failure, **graded.verdicts}
    return graded.verdicts


def _as_you(source: Path) -> dict[str, str]:
    """Run a notebook without its demonstration cells in a kernel of this user.

    Return the problem of each graded cell.
    """
    notebook, assignment = read_notebook(source), Assignment.read(source)
    notebook.cells = [cell.node for cell in needed_cells(copy.deepcopy(notebook))]
    with tempfile.TemporaryDirectory() as folder:
        assignment.lay_out(Path(folder))
        done = run_notebook(notebook, folder=Path(folder))
    found = {"": done.failure} if done.failure else {}
    for cell in cells_of(done.notebook):
        if cell.is_check:
            points, most = determine_grade(cell.node)
            errors = [f"{o.ename}: {o.evalue}" for o in cell.node.outputs if o.output_type == "error"]
            found[cell.id] = (
                "" if points == most else "; ".join(errors) or f"{points:g} of {number_of(f'{most:g}', 'point')}"
            )
    return found

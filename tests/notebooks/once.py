"""``python -m tests.notebooks.once NOTEBOOK``: run a module with its solutions, and print what fails and how long it took."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from autograder.course.assignment import Assignment
from autograder.course.execute import run_notebook
from autograder.course.notebook import cells_of
from tests.course.perfect_student import solved

CELL_SECONDS = 1200


def main(source: Path) -> int:
    """Return how many cells fail."""
    with tempfile.TemporaryDirectory() as folder:
        Assignment.read(source).lay_out(Path(folder))
        done = run_notebook(
            solved(source), folder=Path(folder), cell_seconds=CELL_SECONDS, variables={"MPLBACKEND": "agg"}
        )
    outputs = [(cell.id, output) for cell in cells_of(done.notebook) for output in cell.node.get("outputs", [])]
    errors = [f"{cell}: {o.ename}: {o.evalue}" for cell, o in outputs if o.output_type == "error"]
    children = sum(os.times()[2:4])
    print(
        f"{source.stem}: {done.seconds:.0f} s, {children:.0f} s of processor time {done.failure}", *errors, sep="\n    "
    )
    return len(errors) + bool(done.failure)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

"""A student who solves everything: each module in turn, on nothing but what they built before.

``python -m tests.course.perfect_student [NN ...]`` goes through the modules in an empty student's folder. With
``--references`` the references of all earlier modules but the optional ones are there instead, so that any module can
be tried alone. With ``--build`` the notebooks are not run: building one runs its checks, and no demonstrations.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from autograder.course.assignment import Assignment
from autograder.course.execute import run_notebook
from autograder.course.notebook import (
    Cell,
    cells_of,
    course_notebooks,
    optional,
    read_notebook,
    without_solution_markers,
)
from autograder.course.release import StubSolutions
from autograder.course.student_package import lay_out_package

ROOT = Path(__file__).resolve().parents[2]


def solved(source: Path) -> nbformat.NotebookNode:
    """Return the notebook that a student hands in who writes what the reference has, without hidden checks."""
    notebook = read_notebook(source)
    stubs = StubSolutions()
    for number, node in enumerate(notebook.cells):
        cell = Cell.of(node, number)
        stubs.preprocess_cell(nbformat.from_dict(node), {}, number)  # the release would refuse it: say so here, too
        node.source = without_solution_markers(cell.source) if cell.is_written else cell.visible
    return notebook


def failures(notebook: nbformat.NotebookNode, folder: Path) -> list[str]:
    """Run a notebook as a person does, cell by cell; return what fails in it."""
    done = run_notebook(notebook, folder=folder, variables=environment(folder))
    errors = [
        f"cell {cell.id}: {output.ename}: {output.evalue}"
        for cell in cells_of(done.notebook)
        for output in cell.node.get("outputs", [])
        if output.output_type == "error"
    ]
    return [done.failure, *errors] if done.failure else errors


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a student: the package at hand is their own."""
    return {**os.environ, "PYTHONPATH": str(folder.parent), "MPLBACKEND": "agg"}


def hand_out(source: Path, work: Path) -> Path:
    """Lay out a solved notebook in a student's folder, with its data files, and return it."""
    folder = work / source.stem
    folder.mkdir(exist_ok=True)
    Assignment.read(source).lay_out(folder)
    nbformat.write(solved(source), folder / source.name)
    return folder / source.name


def build(notebook: Path) -> str:
    """Run the command of the last cell; return what it says if it fails, or fails to build."""
    command = [sys.executable, "-m", "autograder", "build", notebook.stem]
    run = subprocess.run(command, cwd=notebook.parent, env=environment(notebook.parent), capture_output=True, text=True)
    said = (run.stdout + run.stderr).strip()
    return "" if run.returncode == 0 and "nothing to build" not in said else said


def one_module(source: Path, work: Path, *, run: bool = True) -> list[str]:
    """Solve, run and build one module in a student's folder; return what goes wrong."""
    notebook = hand_out(source, work)
    found = failures(read_notebook(notebook), notebook.parent) if run else []
    said = build(notebook)
    return found + ([f"build: {said}"] if said else [])


def main() -> int:
    """Go through the modules and print what goes wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "modules", nargs="*", metavar="NN", help="only these; needs --references unless from the first on"
    )
    parser.add_argument("--references", action="store_true", help="put the references of all earlier modules in")
    parser.add_argument("--build", action="store_true", help="run only what building runs")
    options = parser.parse_args()
    notebooks = list(course_notebooks(ROOT))
    names = {path.stem for path in notebooks}
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for number, source in enumerate(notebooks):
            if options.modules and source.stem[:2] not in {name[:2] for name in options.modules}:
                continue
            earlier = {path.stem for path in notebooks[:number]} - optional(names) if options.references else set()
            lay_out_package(ROOT, work / "tinybench", earlier)
            started = time.monotonic()
            found = one_module(source, work, run=not options.build)
            wrong += bool(found)
            print(f"{source.stem:<16} {'FAILS' if found else 'ok'}  {time.monotonic() - started:.0f} s", flush=True)
            for line in found:
                print(f"    {line}", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

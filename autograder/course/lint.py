"""Keep notebooks clean: no outputs, no machine's metadata, stable cell ids, markers in order."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.course.notebook import (
    BEGIN_HIDDEN,
    BEGIN_SOLUTION,
    END_HIDDEN,
    END_SOLUTION,
    NotebookError,
    grading,
    is_check,
    is_export,
    is_solution,
    label,
    read_notebook,
)
from autograder.course.release import stub_solutions

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
METADATA = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
KNOWN_TAGS = {"export", "nbval-ignore-output", "nbval-check-output", "raises-exception"}


def problems(notebook: NotebookNode) -> list[tuple[str, str]]:
    """Return what is wrong with a course notebook, as pairs of cell and reason."""
    found = []
    if notebook.metadata != METADATA:
        found.append(("metadata", "holds more or less than the kernel; `autograder lint --fix` sets it"))
    seen: set[str] = set()
    for index, cell in enumerate(notebook.cells):
        name, marks = label(cell, index), grading(cell)
        if cell.get("outputs") or cell.get("execution_count"):
            found.append((name, "has outputs; `autograder lint --fix` clears them"))
        if marks.get("grade_id", cell.id) != cell.id:
            found.append((name, f"its cell id {cell.id!r} differs from its grade_id; `autograder lint --fix` sets it"))
        if name in seen:
            found.append((name, "its id is used twice"))
        seen.add(name)
        if unknown := set(cell.metadata) - {"tags", "nbgrader"}:
            found.append((name, f"metadata {sorted(unknown)}; `autograder lint --fix` drops it"))
        if unknown := set(cell.metadata.get("tags", [])) - KNOWN_TAGS:
            found.append((name, f"unknown tags {sorted(unknown)}; known are {sorted(KNOWN_TAGS)}"))
        found += [(name, why) for why in _cell_problems(cell, name)]
    first = next((cell for cell in notebook.cells if cell.cell_type == "code"), None)
    if first is None or 'sys.path.insert(0, "..")' not in first.source:
        found.append(("first code cell", 'must hold sys.path.insert(0, ".."), so that the student\'s package is found'))
    return found


def _cell_problems(cell: NotebookNode, name: str) -> list[str]:
    found = []
    if is_solution(cell):
        try:
            stub_solutions(cell.source, name)
        except NotebookError as error:
            found.append(str(error))
    elif BEGIN_SOLUTION in cell.source or END_SOLUTION in cell.source:
        found.append("a solution region outside a solution cell")
    if is_check(cell):
        if not grading(cell).get("locked"):
            found.append("a graded cell must be locked")
        if cell.source.count(BEGIN_HIDDEN) != 1 or cell.source.count(END_HIDDEN) != 1:
            found.append("a graded cell holds one hidden region")
        elif cell.source.rstrip().splitlines()[-1] != END_HIDDEN:
            found.append("the hidden region must be the end of the cell")
    elif BEGIN_HIDDEN in cell.source:
        found.append("a hidden region outside a graded cell")
    if is_export(cell) and not grading(cell):
        found.append("an exported cell must be a solution cell or locked, so that grading knows it")
    return found


def clean(notebook: NotebookNode) -> None:
    """Drop outputs and foreign metadata, and give graded cells their grade_id as id."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        cell.metadata = nbformat.from_dict({k: v for k, v in cell.metadata.items() if k in ("tags", "nbgrader")})
        if grade_id := grading(cell).get("grade_id"):
            cell.id = grade_id


def lint(path: Path, *, fix: bool = False) -> list[str]:
    """Return the problems of one notebook as lines for people; with `fix`, mend first what can be mended."""
    notebook = read_notebook(path)
    if fix:
        before = nbformat.writes(notebook)
        clean(notebook)
        if nbformat.writes(notebook) != before:
            nbformat.write(notebook, path)
    return [f"{path}, cell {cell!r}: {why}" for cell, why in problems(notebook)]

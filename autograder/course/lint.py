"""Checks that notebooks are clean: no outputs, no machine-specific metadata, stable cell ids, well-formed markers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.course.notebook import (
    BEGIN_HIDDEN,
    BEGIN_SOLUTION,
    COLLAPSED_SECTION,
    END_HIDDEN,
    END_SOLUTION,
    HIDDEN_SOURCE,
    KERNEL,
    Cell,
    NotebookError,
    cells_of,
    optional_cells,
    read_notebook,
)
from autograder.course.release import stub_solutions
from tinybench.support.basics.numbers import number_of

METADATA = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
MOST_OPEN, MOST_STUB, MOST_DOCSTRING = 12, 40, 24  # the most lines that fit on a screen
KNOWN_TAGS = {"export", "public", "nbval-ignore-output", "nbval-check-output", "raises-exception"}


def problems(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """Yield each problem of a course notebook as a pair of the cell's name and the reason."""
    if notebook.metadata != METADATA:
        yield "metadata", "holds more or less than the kernel; `autograder lint --fix` sets it"
    cells, seen = cells_of(notebook), set[str]()
    for cell in cells:
        if cell.id in seen:
            yield cell.id, "its id is used twice"
        seen.add(cell.id)
        for why in (*_metadata_problems(cell), *_marker_problems(cell), *_reading_problems(cell)):
            yield cell.id, why
    for cell in cells:
        if cell.is_written and cell.id in optional_cells(cells):
            yield cell.id, "a student's cell in an optional section; move it to the core or to an optional notebook"
    first = next((cell.source for cell in cells if cell.is_code), "")
    if 'sys.path.insert(0, "..")' not in first:
        yield "first code cell", 'must hold sys.path.insert(0, ".."), so that the student\'s package is found'


def _metadata_problems(cell: Cell) -> Iterator[str]:
    node = cell.node
    if node.get("outputs") or node.get("execution_count"):
        yield "has outputs; `autograder lint --fix` clears them"
    if cell.id != node.id:
        yield f"its cell id {node.id!r} differs from its grade_id; `autograder lint --fix` sets it"
    if unknown := set(node.metadata) - {"tags", "nbgrader", "jupyter", COLLAPSED_SECTION}:
        yield f"metadata {sorted(unknown)}; `autograder lint --fix` drops it"
    if bool(node.metadata.get(COLLAPSED_SECTION)) != cell.begins_optional_section:
        yield 'collapsed are sections whose heading ends with "(optional)"; `autograder lint --fix` sets it'
    if unknown := {tag.partition(":")[0] for tag in cell.tags} - KNOWN_TAGS:
        yield f"unknown tags {sorted(unknown)}; known are {sorted(KNOWN_TAGS)}"


def _marker_problems(cell: Cell) -> Iterator[str]:
    if cell.is_solution:
        try:
            stub_solutions(cell.source, cell.id)
        except NotebookError as error:
            yield str(error)
    elif BEGIN_SOLUTION in cell.source or END_SOLUTION in cell.source:
        yield "a solution region outside a solution cell"
    if cell.is_check:
        if not cell.marks.get("locked"):
            yield "a graded cell must be locked"
        if cell.source.count(BEGIN_HIDDEN) != 1 or cell.source.count(END_HIDDEN) != 1:
            yield "a graded cell holds one hidden region"
        elif cell.source.rstrip().splitlines()[-1] != END_HIDDEN:
            yield "the hidden region must be the end of the cell"
    elif BEGIN_HIDDEN in cell.source:
        yield "a hidden region outside a graded cell"
    if cell.is_export and not cell.marks:
        yield "an exported cell must be a solution cell or locked, so that grading knows it"


def _reading_problems(cell: Cell) -> Iterator[str]:
    """Yield the reasons why a cell is hard to read: wrongly open or collapsed, no caption, or too long."""
    if cell.is_code and cell.is_collapsed != bool(cell.caption):
        yield (
            "collapsed are cells whose first line is a comment such as `# Figure: what it draws` (Given, Check); "
            "`autograder lint --fix` sets it by that line"
        )
    if cell.is_solution:
        yield from _stub_problems(cell)
    elif cell.is_check and not cell.caption.startswith("# Check: "):
        yield "a graded cell begins with a line such as `# Check: what it looks at`"
    elif cell.is_check and f'passed("{cell.id}"' not in cell.visible:
        yield f'a graded cell ends, but for its hidden region, in passed("{cell.id}", what only a right solution says)'
    elif cell.is_export and not cell.caption:
        yield "a given cell of the package begins with a line such as `# Given: what it holds`"
    elif cell.is_code and not cell.caption and len(cell.source.splitlines()) > MOST_OPEN:
        yield f"open, with more than {MOST_OPEN} lines: begin it with `# Given: what it holds`, or make it shorter"


def _stub_problems(cell: Cell) -> Iterator[str]:
    try:
        stub = stub_solutions(cell.source, cell.id)
    except NotebookError:
        return
    if len(stub.splitlines()) > MOST_STUB:
        yield f"a student sees {number_of(len(stub.splitlines()), 'line')} here; {MOST_STUB} fit on a screen"
    for node in ast.walk(ast.parse(stub)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            lines = len((ast.get_docstring(node) or "").splitlines())
            if lines > MOST_DOCSTRING:
                yield (
                    f"the docstring of {node.name} has {number_of(lines, 'line')}; "
                    f"{MOST_DOCSTRING} are enough for a stub"
                )


def clean(notebook: NotebookNode) -> None:
    """Clear outputs and unknown metadata, collapse captions and optional sections, and use grade_ids as cell ids."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        kept = {k: v for k, v in cell.metadata.items() if k in ("tags", "nbgrader")}
        collapsed: dict[str, Any] = {"jupyter": HIDDEN_SOURCE} if Cell.of(cell).caption else {}
        collapsed |= {COLLAPSED_SECTION: True} if Cell.of(cell).begins_optional_section else {}
        cell.metadata = nbformat.from_dict(kept | collapsed)
        cell.id = Cell.of(cell).id


def lint_notebook(path: Path, *, fix: bool = False) -> list[str]:
    """Return the problems of one notebook as lines of text. With `fix`, first correct the file with `clean`."""
    notebook = read_notebook(path)
    if fix:
        before = nbformat.writes(notebook)
        clean(notebook)
        if nbformat.writes(notebook) != before:
            nbformat.write(notebook, path)
    return [f"{path}, cell {cell!r}: {why}" for cell, why in problems(notebook)]

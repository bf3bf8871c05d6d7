"""The export of a student's notebook to a module in the student's package, student/tinybench/."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from autograder.course.export import export_notebook
from autograder.course.notebook import Cell, NotebookError, cells_of, module_name, read_notebook
from autograder.files import write_atomically
from tinybench.course import BUILT_BY_STUDENT, passed_checks
from tinybench.support.basics.numbers import number_of, plural

COLAB = "colab"  # the tag and id of the cell that `publish` adds for Google Colab


def needed_cells(notebook: NotebookNode) -> Iterator[Cell]:
    """Yield the cells that a check may depend on: the first code cell, export and solution cells, and the checks."""
    first = True
    for cell in cells_of(notebook):
        if not cell.is_code or COLAB in cell.tags:
            continue
        if first or cell.is_export or cell.is_solution or cell.is_check:
            yield cell
        first = False


def run_checks(notebook: NotebookNode, where: Path | str) -> dict[str, str]:
    """Run the checks of a notebook in this process, without a sandbox, as the notebook's author would.

    Returns
    -------
    dict of str to str
        The error message of each graded cell, by the cell's id. The message is empty if the cell passed.

    Raises
    ------
    NotebookError
        If a cell other than a check fails.
    """
    space: dict[str, object] = {"__name__": "__main__"}
    failures = {}
    for cell in needed_cells(notebook):
        passed_checks.begin(cell.source)
        try:
            exec(compile(cell.source, f"<{cell.id}>", "exec", optimize=0), space)  # keeps asserts even with python -O
            if cell.is_check:
                failures[cell.id] = ""
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            if not cell.is_check:
                raise NotebookError(where, cell.id, reason) from error
            failures[cell.id] = reason
    return failures


def build_module(notebook: Path, package: Path) -> str:
    """Export a student's notebook into the student's package if its visible checks pass.

    Returns
    -------
    str
        A message that describes the result.

    Raises
    ------
    NotebookError
        If a check fails or the notebook cannot be exported. The file in the package is then unchanged.
    """
    read = read_notebook(notebook)
    failures = {name: why for name, why in run_checks(read, notebook).items() if why}
    if failures:
        listed = "\n".join(f"  {name}: {why}" for name, why in failures.items())
        number = f"{number_of(len(failures), 'check')} {plural(len(failures), 'does', 'do')}"
        raise NotebookError(notebook, None, f"{number} not pass yet, nothing was built\n{listed}")
    if not any(cell.is_export for cell in cells_of(read)):
        return f"every visible check of {notebook.stem} passes; it adds no file to {package.name}/"
    stamp = time.strftime("%Y-%m-%d %H:%M")
    sources = export_notebook(notebook, header=f"{BUILT_BY_STUDENT}{notebook.name} on {stamp}.\n")
    for name, source in sources.items():
        write_atomically(package / f"{name}.py", source)
    saved = (time.time() - notebook.stat().st_mtime) / 60
    old = (
        f" The notebook was last saved {number_of(f'{saved:.0f}', 'minute')} ago: save "
        "and build again for later changes."
        if saved > 5
        else ""
    )
    name = module_name(notebook)
    return f"tinybench.{name} is now your own code ({package.name}/{name}.py).{old}"


if __name__ == "__main__":
    try:
        print(build_module(*map(Path, sys.argv[1:])))
    except (OSError, ValueError) as error:
        sys.exit(f"autograder: {error}")

"""Reading notebooks: one place that knows what their cells mean, and says clearly what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
EXPORT_TAG = "export"
MAX_BYTES = 20 * 2**20


class NotebookError(Exception):
    """A notebook that cannot be used: which one, which cell, why, and what to do."""

    def __init__(self, where: Path | str, cell: str | None, why: str) -> None:
        super().__init__(f"{where}{f', cell {cell!r}' if cell else ''}: {why}")


def read_notebook(path: Path, *, max_bytes: int = MAX_BYTES) -> NotebookNode:
    """Read a version 4 notebook.

    Raises
    ------
    NotebookError
        If the file is missing, too large, not JSON or not a valid notebook.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise NotebookError(path, None, "no such file; restore it, or check the name") from None
    if size > max_bytes:
        raise NotebookError(
            path, None, f"{size / 2**20:.0f} MB is over the limit of {max_bytes / 2**20:.0f} MB; clear its outputs"
        )
    return parse_notebook(path.read_bytes(), path)


def parse_notebook(content: bytes, where: Path | str) -> NotebookNode:
    """Parse the bytes of a version 4 notebook; `where` names it in errors.

    Raises
    ------
    NotebookError
        If they are not JSON in UTF-8 or not a valid notebook.
    """
    try:
        notebook: NotebookNode = nbformat.reads(content.decode("utf-8"), as_version=nbformat.NO_CONVERT)
        if not isinstance(notebook, dict) or notebook.get("nbformat") != 4:
            raise NotebookError(where, None, "not a version 4 notebook; open it in JupyterLab and save it again")
        nbformat.validate(notebook)
    except NotebookError:
        raise
    except UnicodeDecodeError as error:
        raise NotebookError(where, None, f"not UTF-8 text (byte {error.start}); save it again in JupyterLab") from None
    except RecursionError:
        raise NotebookError(where, None, "nested too deeply to be a notebook") from None
    except nbformat.ValidationError as error:
        reason = str(error).splitlines()[0][:200]
        raise NotebookError(where, None, f"not a valid notebook ({reason}); download it again") from None
    except Exception as error:  # nbformat lets JSON and attribute errors of every kind through
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise NotebookError(where, None, f"not a notebook ({reason}); it must be the .ipynb file itself") from None
    return notebook


def tags(cell: NotebookNode) -> list[str]:
    """Return the tags of a cell."""
    return list(cell.metadata.get("tags", []))


def is_export(cell: NotebookNode) -> bool:
    """Whether the cell goes into the package."""
    return cell.cell_type == "code" and EXPORT_TAG in tags(cell)


def grading(cell: NotebookNode) -> NotebookNode:
    """Return the nbgrader metadata of a cell, empty where it has none."""
    marks: NotebookNode = cell.metadata.get("nbgrader", NotebookNode())
    return marks


def is_check(cell: NotebookNode) -> bool:
    """Whether the cell is graded by running it."""
    marks = grading(cell)
    return cell.cell_type == "code" and bool(marks.get("grade")) and not marks.get("solution")


def is_solution(cell: NotebookNode) -> bool:
    """Whether the student writes in this code cell."""
    return cell.cell_type == "code" and bool(grading(cell).get("solution"))


def label(cell: NotebookNode, index: int) -> str:
    """Return the name by which messages call a cell."""
    return str(grading(cell).get("grade_id") or cell.get("id") or f"number {index}")


def without_solution_markers(source: str) -> str:
    """Drop the marker lines and keep what stands between them."""
    kept = (line for line in source.splitlines() if line.strip() not in (BEGIN_SOLUTION, END_SOLUTION))
    return "\n".join(kept)


def without_hidden(source: str) -> str:
    """Drop hidden regions."""
    return re.sub(rf"[^\S\n]*{BEGIN_HIDDEN}.*?{END_HIDDEN}[^\n]*\n?", "", source, flags=re.S).rstrip()


def course_notebooks(root: Path) -> Iterator[Path]:
    """Yield the notebook of every module in order.

    Raises
    ------
    NotebookError
        If a module's folder has no notebook of its own name.
    """
    for folder in sorted(path for path in (root / "modules").iterdir() if path.is_dir() and path.name[:2].isdigit()):
        notebook = folder / f"{folder.name}.ipynb"
        if not notebook.is_file():
            raise NotebookError(notebook, None, "missing; a module's folder holds one notebook of the same name")
        yield notebook


def module_name(notebook: Path) -> str:
    """Return the name a module's file, tests and checks share: ``latency`` for ``03_latency.ipynb``."""
    return notebook.stem.partition("_")[2]

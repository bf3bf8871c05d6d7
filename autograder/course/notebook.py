"""Reading notebooks: one place that knows what their cells mean, and says clearly what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
EXPORT_TAG, PUBLIC_TAG = "export", "public"
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


@dataclass(frozen=True)
class Cell:
    """A cell as it was when `cells_of` read it; to change the notebook, change its `node`.

    Attributes
    ----------
    kind
        ``"code"``, ``"markdown"`` or ``"raw"``.
    id
        Its grade_id, else its id, else its number: what messages call it.
    marks
        The metadata of nbgrader, empty where it has none.
    """

    kind: str
    source: str
    id: str
    marks: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    node: NotebookNode = field(default_factory=NotebookNode, repr=False, compare=False)

    @classmethod
    def of(cls, node: NotebookNode, number: int = 0) -> Cell:
        """Read a cell; `number` names it where it has no id."""
        marks = node.metadata.get("nbgrader", {})
        name = str(marks.get("grade_id") or node.get("id") or f"number {number}")
        return cls(node.cell_type, node.source, name, marks, tuple(node.metadata.get("tags", ())), node)

    @property
    def is_code(self) -> bool:
        """Whether it is run."""
        return self.kind == "code"

    @property
    def is_check(self) -> bool:
        """Whether it is graded by running it."""
        return self.is_code and bool(self.marks.get("grade")) and not self.is_written

    @property
    def is_written(self) -> bool:
        """Whether the student writes in it, code or text."""
        return bool(self.marks.get("solution"))

    @property
    def is_solution(self) -> bool:
        """Whether the student writes code in it."""
        return self.is_code and self.is_written

    @property
    def is_locked(self) -> bool:
        """Whether the student's version of it is not used."""
        return self.is_check or bool(self.marks.get("locked"))

    @property
    def targets(self) -> tuple[str, ...]:
        """The files of the package it goes to: "" is the module's own, "study" that of the tag ``export:study``."""
        tags = self.tags if self.is_code else ()
        return tuple(tag.partition(":")[2] for tag in tags if tag.partition(":")[0] == EXPORT_TAG)

    @property
    def is_export(self) -> bool:
        """Whether it goes into the package."""
        return bool(self.targets)

    @property
    def is_public(self) -> bool:
        """Whether its names belong to the public face of the package."""
        return self.is_export and PUBLIC_TAG in self.tags

    @property
    def visible(self) -> str:
        """The source without hidden checks."""
        hidden = rf"[^\S\n]*{BEGIN_HIDDEN}.*?{END_HIDDEN}[^\n]*\n?"
        return re.sub(hidden, "", self.source, flags=re.S).rstrip()


def cells_of(notebook: NotebookNode) -> list[Cell]:
    """Read the cells of a notebook."""
    return [Cell.of(node, number) for number, node in enumerate(notebook.cells)]


def without_solution_markers(source: str) -> str:
    """Drop the marker lines and keep what stands between them."""
    kept = (line for line in source.splitlines() if line.strip() not in (BEGIN_SOLUTION, END_SOLUTION))
    return "\n".join(kept)


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

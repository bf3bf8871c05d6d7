"""Functions that read notebooks, interpret the cells, and raise clear errors for unusable files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import nbformat
import nbformat.reader
from nbformat import NotebookNode

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
_HIDDEN = re.compile(rf"(?<![^\S\n])[^\S\n]*+{BEGIN_HIDDEN}(?:(?!{BEGIN_HIDDEN}).)*?{END_HIDDEN}[^\n]*\n?", re.S)
CAPTION = re.compile(r"# (?:Given|Figure|Check): \S.*")  # the first line of a collapsed cell, which stays visible
COLLAPSED_SECTION = "jp-MarkdownHeadingCollapsed"  # JupyterLab's mark of a collapsed heading
HIDDEN_SOURCE = {"source_hidden": True}
MAX_BYTES = 20 * 2**20
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


class NotebookError(ValueError):
    """An error in a notebook. The message names the notebook, the cell, the reason and the remedy."""

    def __init__(self, where: Path | str, cell: str | None, why: str) -> None:
        super().__init__(f"{where}{f', cell {cell!r}' if cell else ''}: {why}")


def read_notebook(path: Path, *, max_bytes: int = MAX_BYTES) -> NotebookNode:
    """Read a version 4 notebook. Raise NotebookError if it is missing, too large or invalid."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise NotebookError(path, None, "no such file; restore it, or check the name") from None
    if size > max_bytes:
        limit = f"the limit of {max_bytes / 2**20:.0f} MB"
        raise NotebookError(path, None, f"{size / 2**20:.0f} MB is over {limit}; clear its outputs")
    return parse_notebook(path.read_bytes(), path)


def parse_notebook(content: bytes, where: Path | str) -> NotebookNode:
    """Parse the bytes of a version 4 notebook. Error messages call the notebook `where`."""
    try:
        notebook: NotebookNode = nbformat.reader.reads(content.decode("utf-8"))  # `nbformat.reads` would also validate
        if isinstance(notebook, dict) and notebook.get("nbformat") == 4:
            nbformat.validate(notebook)
            return notebook
        why = "not a version 4 notebook; open it in JupyterLab and save it again"
    except UnicodeDecodeError as error:
        why = f"not UTF-8 text (byte {error.start}); save it again in JupyterLab"
    except RecursionError:
        why = "nested too deeply to be a notebook"
    except nbformat.ValidationError as error:
        why = f"not a valid notebook ({str(error).splitlines()[0][:200]}); download it again"
    except Exception as error:  # nbformat does not catch JSON, attribute and other errors
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        why = f"not a notebook ({reason}); it must be the .ipynb file itself"
    raise NotebookError(where, None, why)


@dataclass(frozen=True)
class Cell:
    """A snapshot of a cell. To change the notebook, change the cell's `node`.

    Attributes
    ----------
    kind
        ``"code"``, ``"markdown"`` or ``"raw"``.
    id
        The cell's name in messages: the grade_id, or else the notebook's cell id, or else the number of the cell.
    marks
        The cell's nbgrader metadata, empty if there is none.
    """

    kind: str
    source: str
    id: str
    marks: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    node: NotebookNode = field(default_factory=NotebookNode, repr=False, compare=False)

    @classmethod
    def of(cls, node: NotebookNode, number: int = 0) -> Cell:
        """Return the `Cell` of a notebook's node. `number` names a cell that has no id."""
        marks = node.metadata.get("nbgrader", {})
        name = str(marks.get("grade_id") or node.get("id") or f"number {number}")
        return cls(node.cell_type, node.source, name, marks, tuple(node.metadata.get("tags", ())), node)

    @property
    def is_code(self) -> bool:
        """Whether the cell contains code."""
        return self.kind == "code"

    @property
    def is_check(self) -> bool:
        """Whether the cell is graded by running its code."""
        return self.is_code and bool(self.marks.get("grade")) and not self.is_written

    @property
    def is_written(self) -> bool:
        """Whether the student writes code or text in the cell."""
        return bool(self.marks.get("solution"))

    @property
    def is_solution(self) -> bool:
        """Whether the student writes code in the cell."""
        return self.is_code and self.is_written

    @property
    def is_locked(self) -> bool:
        """Whether grading uses the instructor's version of the cell."""
        return self.is_check or bool(self.marks.get("locked"))

    @property
    def is_export(self) -> bool:
        """Whether the cell is exported to the package."""
        return self.is_code and bool(self.tagged("export"))

    @property
    def visible(self) -> str:
        """The source without its hidden checks."""
        return _HIDDEN.sub("", self.source).rstrip()

    @property
    def caption(self) -> str:
        """The first line, if it is a comment that marks a collapsed code cell, or else an empty string."""
        first = self.source.partition("\n")[0]
        return first if self.is_code and CAPTION.fullmatch(first) else ""

    @property
    def is_collapsed(self) -> bool:
        """Whether JupyterLab shows the cell with its code collapsed."""
        return bool(self.node.get("metadata", {}).get("jupyter", {}).get("source_hidden"))

    @property
    def heading_level(self) -> int:
        """The level of the heading with which a Markdown cell begins, or else 0."""
        found = re.match(r"(#+) ", self.source) if self.kind == "markdown" else None
        return len(found[1]) if found else 0

    @property
    def begins_optional_section(self) -> bool:
        """Whether the cell is the heading of an optional section, which JupyterLab shows collapsed."""
        return self.heading_level > 1 and self.source.partition("\n")[0].endswith("(optional)")

    @property
    def code(self) -> str:
        """The source as exported to a package: without caption, solution markers and hidden checks."""
        return without_solution_markers(self.visible.removeprefix(self.caption).lstrip("\n"))

    def tagged(self, word: str) -> list[str]:
        """Return the suffixes of the tags that begin with `word`: "" for ``export``, "study" for ``export:study``."""
        parts = (tag.partition(":") for tag in self.tags)
        return [name for first, _, name in parts if first == word]


def cells_of(notebook: NotebookNode) -> list[Cell]:
    """Return a `Cell` for each cell of a notebook."""
    return [Cell.of(node, number) for number, node in enumerate(notebook.cells)]


def without_solution_markers(source: str) -> str:
    """Return the source without the lines that mark a solution. The solution itself is kept."""
    return "\n".join(line for line in source.splitlines() if line.strip() not in (BEGIN_SOLUTION, END_SOLUTION))


def course_notebooks(root: Path) -> Iterator[Path]:
    """Yield the path of every module's notebook, in order."""
    for folder in sorted(path for path in (root / "modules").iterdir() if path.is_dir() and path.name[:2].isdigit()):
        notebook = folder / f"{folder.name}.ipynb"
        if not notebook.is_file():
            raise NotebookError(notebook, None, "missing; a module's folder holds one notebook of the same name")
        yield notebook


def optional_cells(cells: Iterable[Cell]) -> set[str]:
    """Return the names of the cells in sections whose headings end with "(optional)"."""
    found, level = set[str](), 0
    for cell in cells:
        if cell.begins_optional_section and not 0 < level < cell.heading_level:
            level = cell.heading_level
        elif 0 < cell.heading_level <= level:
            level = 0
        found |= {cell.id} if level else set()
    return found


def optional(names: Iterable[str]) -> set[str]:
    """Return the optional notebooks. If several notebooks share a number, all but the first are optional."""
    ordered = sorted(set(names))
    return {name for before, name in pairwise(ordered) if before[:2] == name[:2]}


def chosen(words: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the notebooks that match words such as ``03``, ``latency``, ``03_latency``, ``05-07`` or ``01,03-05``.

    A number also matches the optional notebook with this number. The result is in the course's order.

    Raises
    ------
    ValueError
        If some words match no notebook. The message lists all of these words.
    """
    names, found, unknown = sorted(known), set[str](), []
    for part in (part.strip() for word in words for part in word.split(",")):
        first, dash, last = part.partition("-")
        low, high = ([name for name in names if _is_meant(each, name)] for each in (first, last if dash else first))
        within = [name for name in names if low and high and low[0] <= name <= high[-1]]
        unknown += [] if within else [repr(part)]
        found.update(within)
    if unknown:
        raise ValueError(f"no module is called {' or '.join(unknown)}; there are {', '.join(names)}")
    return sorted(found)


def _is_meant(word: str, notebook: str) -> bool:
    return word in (notebook, *notebook.split("_", 1)) or (word.isdigit() and word.zfill(2) == notebook[:2])


def module_name(notebook: Path) -> str:
    """Return the common name of a module's file, tests and checks: ``latency`` for ``03_latency.ipynb``."""
    return notebook.stem.partition("_")[2]

"""The conversion of a submitted file to a notebook that may run: the instructor's notebook with the student's cells."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.course.notebook import MAX_BYTES, Cell, cells_of
from autograder.grading.sanitize import safe_markdown
from tinybench.support.basics.numbers import number_of

MAX_CELLS = 2000
LINK = "the notebook is a symbolic link or cannot be read; submit the file itself"
HARD_LINK = "the notebook is a hard link to another file; submit a copy"
FOREIGN = "what was handed in under this name belongs to another user; submit it yourself"
NOT_PLAIN = "the notebook is not a plain file; submit the file itself"
TOO_LARGE = f"the notebook is over {MAX_BYTES / 2**20:.0f} MB; clear its outputs and submit again"
NOT_COLLECTED = ".not-collected"  # the suffix of the file that `collect` writes in place of a notebook
FLAGS = ("grade", "solution", "locked", "task", "points")


class UnusableSubmission(Exception):
    """The submission cannot be read. The message gives the reason, and goes into the feedback."""


@dataclass(frozen=True)
class Evidence:
    """An observation about a submission that is unusual for an honest one, such as an edited locked cell."""

    cell: str
    what: str


@dataclass
class Prepared:
    """The notebook to run, the ids of its unchanged demonstration cells, and the evidence found in the submission."""

    notebook: NotebookNode
    demonstrations: set[str] = field(default_factory=set)
    evidence: list[Evidence] = field(default_factory=list)


def read_submission(path: Path, below: Path) -> bytes:
    """Return the bytes of a submitted file without following any link that a student may have planted.

    The folder `below` belongs to the instructor. Raise UnusableSubmission if the file or a folder between `below` and
    the file is a link, if the file is not a plain file, or if it is too large.
    """
    if ".." in path.parts:
        raise UnusableSubmission("its name leads outside of the folder of submissions")
    try:
        for folder in path.relative_to(below).parents:
            if (below / folder).is_symlink():
                raise UnusableSubmission(f"its folder {folder} is a symbolic link; submit the file itself")
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise UnusableSubmission(_why_not_collected(path)) from None
    except OSError:
        raise UnusableSubmission(LINK) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnusableSubmission(NOT_PLAIN)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if facts.st_nlink != 1:
            raise UnusableSubmission(HARD_LINK)
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UnusableSubmission(TOO_LARGE)
    return content


def _why_not_collected(path: Path) -> str:
    """Return the reason that `collect` wrote in place of a notebook.

    Ignore any text that is not one of these reasons.
    """
    with suppress(OSError):
        descriptor = os.open(path.with_name(path.name + NOT_COLLECTED), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            said = file.read(1000).decode(errors="replace")
        if said in (FOREIGN, LINK, HARD_LINK, NOT_PLAIN, TOO_LARGE):
            return said
    return "the notebook is missing; submit it under its own name"


def parse_submission(content: bytes) -> list[Cell]:
    """Return the cells of a submitted notebook. Each keeps only its type, its source and nbgrader's metadata."""
    if len(content) > MAX_BYTES:
        raise UnusableSubmission(TOO_LARGE)
    try:
        data = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        why = f"the notebook is not UTF-8 text (byte {error.start}); save it again in JupyterLab"
        raise UnusableSubmission(why) from None
    except RecursionError:
        raise UnusableSubmission("the notebook is nested too deeply; save it again in JupyterLab") from None
    except ValueError as error:
        why = f"the notebook is not JSON ({str(error)[:100]}); submit the .ipynb file itself"
        raise UnusableSubmission(why) from None
    if not isinstance(data, dict) or data.get("nbformat") != 4 or not isinstance(data.get("cells"), list):
        raise UnusableSubmission("this is not a version 4 notebook; open it in JupyterLab and save it again")
    if len(data["cells"]) > MAX_CELLS:
        raise UnusableSubmission(
            f"the notebook has {number_of(len(data['cells']), 'cell')}; at most {MAX_CELLS} are read"
        )
    return [_cell(cell, number) for number, cell in enumerate(data["cells"], start=1)]


def _cell(cell: Any, number: int) -> Cell:
    source = cell.get("source", "") if isinstance(cell, dict) else None
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str) or cell.get("cell_type") not in ("code", "markdown", "raw"):
        raise UnusableSubmission(f"cell {number} is not a cell of a notebook; save it again in JupyterLab")
    metadata = cell.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    marks = marks if isinstance(marks, dict) else {}
    source = source.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot be encoded
    name = marks.get("grade_id")
    return Cell(cell["cell_type"], source, name if isinstance(name, str) else "", marks)


def prepare(cells: list[Cell], source: NotebookNode) -> Prepared:
    """Put a student's cells into the instructor's notebook, from which all the instructor's solutions are removed."""
    original = cells_of(source)
    known = {cell.id: cell for cell in original if cell.marks.get("grade_id")}
    plain = {(cell.kind, cell.source.strip()) for cell in original if not cell.marks.get("grade_id")}
    theirs, after, evidence = _placed(cells, known)
    prepared = Prepared(nbformat.v4.new_notebook(metadata=source.metadata), evidence=evidence)
    number = 0
    for name in ("", *known):
        if name:
            prepared.notebook.cells.append(_merged(known[name], theirs.get(name)))
        for free in after.get(name, []):
            number += 1
            given = (free.kind, free.source.strip()) in plain
            prepared.notebook.cells.append(_free(free, f"own-{number}", trusted=given))
            if given:
                prepared.demonstrations.add(f"own-{number}")
    return prepared


def _placed(cells: list[Cell], known: dict[str, Cell]) -> tuple[dict[str, Cell], dict[str, list[Cell]], list[Evidence]]:
    """Sort a student's cells. Return the student's version of each known cell, the other cells, and the evidence.

    The other cells are keyed by the name of the known cell that precedes them.
    """
    theirs: dict[str, Cell] = {}
    after: dict[str, list[Cell]] = {"": []}
    evidence, anchor = [], ""
    for cell in cells:
        name = cell.marks.get("grade_id")
        if not isinstance(name, str) or name not in known:
            after.setdefault(anchor, []).append(cell)
            if name is not None:
                what = "a cell with nbgrader marks that the assignment does not have"
                evidence.append(Evidence(str(name)[:80], what))
        elif name not in theirs:
            theirs[name], anchor = cell, name
            evidence += [Evidence(name, what) for what in _oddities(cell, known[name])]
        elif known[name].is_solution:  # a split cell or an earlier attempt: both run
            after.setdefault(anchor, []).append(cell)
        else:
            evidence.append(Evidence(name, "the cell is there twice; the first one counts"))
    for name, cell in known.items():
        if name not in theirs and not cell.is_written:
            evidence.append(Evidence(name, "the cell was deleted; the instructor's is used"))
    if list(theirs) != [name for name in known if name in theirs]:
        evidence.append(Evidence("", "the assignment's cells are in another order; the instructor's is used"))
    return theirs, after, evidence


def _oddities(cell: Cell, original: Cell) -> Iterator[str]:
    if cell.kind != original.kind:
        yield f"the cell was made a {cell.kind} cell"
    if changed := [flag for flag in FLAGS if cell.marks.get(flag) != original.marks.get(flag)]:
        yield f"its nbgrader marks were changed: {', '.join(changed)}"
    kept = [_text(original.source), _text(original.visible)]
    if original.marks.get("locked") and _text(cell.source) not in kept:
        yield "the locked cell was edited; the instructor's is used"


def _text(source: str) -> list[str]:
    return [line.rstrip() for line in source.strip().splitlines()]


def _merged(original: Cell, cell: Cell | None) -> NotebookNode:
    if original.is_locked:
        text = original.source
    elif cell is None or cell.kind != original.kind:
        text = ""
    else:
        text = cell.source if original.is_code else safe_markdown(cell.source)
    marks = nbformat.from_dict({"nbgrader": dict(original.marks)})
    return _made(original.is_code, text, id=original.node.id, metadata=marks)


def _free(cell: Cell, name: str, *, trusted: bool) -> NotebookNode:
    return _made(cell.is_code, cell.source if cell.is_code or trusted else safe_markdown(cell.source), id=name)


def _made(code: bool, text: str, **fields: Any) -> NotebookNode:
    """Return a new cell. nbformat's own functions would validate each cell against the schema, which is slow."""
    more: dict[str, Any] = {"execution_count": None, "outputs": []} if code else {}
    parts = {"id": "", "metadata": NotebookNode(), **fields, **more, "source": text}
    return NotebookNode(cell_type="code" if code else "markdown", **parts)

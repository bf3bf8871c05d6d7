"""From a stranger's file to a notebook that may run: the instructor's cells in order, the student's in their places."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.course.notebook import MAX_BYTES, grading, is_check, is_solution, without_hidden
from autograder.grading.sanitize import safe_markdown

MAX_CELLS = 2000
LINK = "the notebook is a symbolic link or cannot be read; submit the file itself"
HARD_LINK = "the notebook is a hard link to another file; submit a copy"
FOREIGN = "what was handed in under this name belongs to another user; submit it yourself"
NOT_PLAIN = "the notebook is not a plain file; submit the file itself"
TOO_LARGE = f"the notebook is over {MAX_BYTES / 2**20:.0f} MB; clear its outputs and submit again"
NOT_COLLECTED = ".not-collected"  # ends the name of the file that `collect` leaves in place of one of these
FLAGS = ("grade", "solution", "locked", "task", "points")


class Refused(Exception):
    """A submission that is not read at all, with the reason for the feedback."""


@dataclass(frozen=True)
class Evidence:
    """One thing in a submission that an honest one does not hold."""

    cell: str
    what: str


@dataclass
class Prepared:
    """The notebook to run, which of its cells are unchanged demonstrations, and what was odd about the submission."""

    notebook: NotebookNode
    demonstrations: set[str] = field(default_factory=set)
    evidence: list[Evidence] = field(default_factory=list)


def read_submission(path: Path, below: Path) -> bytes:
    """Return a submitted file's bytes without following anything a student may have planted.

    Parameters
    ----------
    path
        The file.
    below
        The folder of submissions, which is the instructor's; no folder under it may be a link.

    Raises
    ------
    Refused
        If it is a link, not a plain file, too large, or not there.
    """
    if ".." in path.parts:
        raise Refused("its name leads outside of the folder of submissions")
    for folder in path.relative_to(below).parents:
        if (below / folder).is_symlink():
            raise Refused(f"its folder {folder} is a symbolic link; submit the file itself")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise Refused(_why_not_collected(path)) from None
    except OSError:
        raise Refused(LINK) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Refused(NOT_PLAIN)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if facts.st_nlink != 1:
            raise Refused(HARD_LINK)
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise Refused(TOO_LARGE)
    return content


def _why_not_collected(path: Path) -> str:
    """Return what `collect` left in place of a notebook; only its own sentences count."""
    with suppress(OSError):
        descriptor = os.open(path.with_name(path.name + NOT_COLLECTED), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            said = file.read(1000).decode(errors="replace")
        if said in (FOREIGN, LINK, HARD_LINK, NOT_PLAIN, TOO_LARGE):
            return said
    return "the notebook is missing; submit it under its own name"


def parse_submission(content: bytes) -> list[dict[str, Any]]:
    """Return the cells of a notebook, only type, source and nbgrader's marks of each.

    Raises
    ------
    Refused
        If the bytes are not a version 4 notebook.
    """
    if len(content) > MAX_BYTES:
        raise Refused(f"the notebook is over {MAX_BYTES / 2**20:.0f} MB; clear its outputs and submit again")
    try:
        data = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Refused(f"the notebook is not UTF-8 text (byte {error.start}); save it again in JupyterLab") from None
    except RecursionError:
        raise Refused("the notebook is nested too deeply; save it again in JupyterLab") from None
    except ValueError as error:
        raise Refused(f"the notebook is not JSON ({str(error)[:100]}); submit the .ipynb file itself") from None
    if not isinstance(data, dict) or data.get("nbformat") != 4 or not isinstance(data.get("cells"), list):
        raise Refused("this is not a version 4 notebook; open it in JupyterLab and save it again")
    if len(data["cells"]) > MAX_CELLS:
        raise Refused(f"the notebook has {len(data['cells'])} cells; at most {MAX_CELLS} are read")
    return [_cell(cell, number) for number, cell in enumerate(data["cells"], start=1)]


def _cell(cell: Any, number: int) -> dict[str, Any]:
    source = cell.get("source", "") if isinstance(cell, dict) else None
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str) or cell.get("cell_type") not in ("code", "markdown", "raw"):
        raise Refused(f"cell {number} is not a cell of a notebook; save it again in JupyterLab")
    metadata = cell.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    source = source.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot be written again
    return {"kind": cell["cell_type"], "source": source, "marks": marks if isinstance(marks, dict) else {}}


def prepare(cells: list[dict[str, Any]], source: NotebookNode) -> Prepared:
    """Put a student's cells into the instructor's notebook.

    Parameters
    ----------
    cells
        From `parse_submission`.
    source
        The instructor's notebook, solutions and hidden checks included; no solution of it survives.
    """
    known = {mark["grade_id"]: cell for cell in source.cells if (mark := grading(cell)).get("grade_id")}
    plain = {(cell.cell_type, cell.source.strip()): cell for cell in source.cells if not grading(cell).get("grade_id")}
    theirs: dict[str, dict[str, Any]] = {}
    after: dict[str, list[dict[str, Any]]] = {"": []}
    evidence, order, anchor = [], [], ""
    for cell in cells:
        name = cell["marks"].get("grade_id")
        if not isinstance(name, str) or name not in known:
            after.setdefault(anchor, []).append(cell)
            if name is not None:
                evidence.append(
                    Evidence(str(name)[:80], "a cell with nbgrader marks that the assignment does not have")
                )
            continue
        if name in theirs:
            if is_solution(known[name]):  # split in two, or kept as a first attempt: both run
                after.setdefault(anchor, []).append(cell)
            else:
                evidence.append(Evidence(name, "the cell is there twice; the first one counts"))
            continue
        theirs[name], anchor = cell, name
        order.append(name)
        evidence += [Evidence(name, what) for what in _oddities(cell, known[name])]
    missing = [name for name in known if name not in theirs]
    evidence += [
        Evidence(name, "the cell was deleted; the instructor's is used")
        for name in missing if not grading(known[name]).get("solution")
    ]  # fmt: skip
    if order != [name for name in known if name in theirs]:
        evidence.append(Evidence("", "the assignment's cells are in another order; the instructor's is used"))
    prepared = Prepared(nbformat.v4.new_notebook(metadata=source.metadata), evidence=evidence)
    number = 0
    for name, cell in (("", None), *known.items()):
        if cell is not None:
            prepared.notebook.cells.append(_merged(cell, theirs.get(name)))
        for free in after.get(name, []):
            number += 1
            made = plain.get((free["kind"], free["source"].strip()))
            prepared.notebook.cells.append(_free(free, f"own-{number}", trusted=made is not None))
            if made is not None:
                prepared.demonstrations.add(f"own-{number}")
    return prepared


def _oddities(cell: dict[str, Any], original: NotebookNode) -> Iterator[str]:
    marks = grading(original)
    if cell["kind"] != original.cell_type:
        yield f"the cell was made a {cell['kind']} cell"
    if changed := [flag for flag in FLAGS if cell["marks"].get(flag) != marks.get(flag)]:
        yield f"its nbgrader marks were changed: {', '.join(changed)}"
    kept = [_text(original.source), _text(without_hidden(original.source))]
    if marks.get("locked") and _text(cell["source"]) not in kept:
        yield "the locked cell was edited; the instructor's is used"


def _text(source: str) -> list[str]:
    return [line.rstrip() for line in source.strip().splitlines()]


def _merged(original: NotebookNode, cell: dict[str, Any] | None) -> NotebookNode:
    marks = nbformat.from_dict({"nbgrader": dict(grading(original))})
    make: Callable[..., NotebookNode] = nbformat.v4.new_markdown_cell
    if original.cell_type == "code":
        make = nbformat.v4.new_code_cell
    locked = is_check(original) or grading(original).get("locked")
    if locked:
        text = original.source
    elif cell is None or cell["kind"] != original.cell_type:
        text = ""
    else:
        text = cell["source"] if original.cell_type == "code" else safe_markdown(cell["source"])
    made: NotebookNode = make(text, id=original.id, metadata=marks)
    return made


def _free(cell: dict[str, Any], name: str, *, trusted: bool) -> NotebookNode:
    make: Callable[..., NotebookNode] = nbformat.v4.new_markdown_cell
    if cell["kind"] == "code":
        make = nbformat.v4.new_code_cell
    elif not trusted:
        return make(safe_markdown(cell["source"]), id=name)
    return make(cell["source"], id=name)

"""What came of one submission: points, evidence, and the notebook that shows them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

import nbformat
from nbformat import NotebookNode

from autograder.course.execute import error_output
from autograder.course.notebook import cells_of
from autograder.grading.submission import Evidence, prepare


@dataclass(frozen=True)
class Graded:
    """What came of one submission."""

    notebook: bytes  # executed, ready for the gradebook, Formgrader and feedback
    verdicts: dict[str, str]  # for each graded cell what is wrong, empty where nothing is
    evidence: list[Evidence] = field(default_factory=list)
    failure: str = ""  # why it could not be read or did not run to its end
    seconds: float = 0.0


def zero(source: NotebookNode, reason: str) -> Graded:
    """Return the result of a submission that cannot be read or judged: no points for any cell, and the reason."""
    prepared = prepare([], source)
    verdicts = {}
    for cell in cells_of(prepared.notebook):
        if cell.is_check:
            verdicts[cell.id] = reason
            cell.node.outputs = [error_output("NotRun", reason)]
    return Graded(nbformat.writes(prepared.notebook).encode(), verdicts, [], reason)


def packed(graded: Graded) -> bytes:
    """Return a verdict as JSON."""
    return json.dumps(asdict(graded) | {"notebook": graded.notebook.decode()}).encode()

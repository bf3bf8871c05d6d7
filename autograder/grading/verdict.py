"""The result of one submission: points, evidence, and the notebook that shows them."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.course.assignment import Assignment
from autograder.course.execute import error_output
from autograder.course.notebook import NotebookError, cells_of, parse_notebook
from autograder.grading.sanitize import Allowance, safe_outputs, safe_text
from autograder.grading.submission import Evidence, Prepared, UnusableSubmission, parse_submission, prepare

MAX_RESULT = 128 * 2**20
MAX_REASON = 5000


@dataclass(frozen=True)
class Graded:
    """The result of one submission: verdicts, evidence, and the executed notebook."""

    notebook: bytes  # the executed notebook, ready for the gradebook, Formgrader and feedback
    verdicts: dict[str, str]  # the problem of each graded cell, empty if there is none
    evidence: list[Evidence] = field(default_factory=list)
    failure: str = ""  # why the submission could not be read or did not run to its end
    seconds: float = 0.0


def zero(source: NotebookNode, reason: str) -> Graded:
    """Return the result for a submission that cannot be read or judged: no points for any cell, and the reason."""
    prepared = prepare([], source)
    verdicts = {}
    for cell in cells_of(prepared.notebook):
        if cell.is_check:
            verdicts[cell.id] = reason
            cell.node.outputs = [error_output("NotRun", reason)]
    return Graded(json.dumps(prepared.notebook).encode(), verdicts, [], reason)


def packed(graded: Graded) -> bytes:
    """Return a result as JSON."""
    return json.dumps(asdict(graded) | {"notebook": graded.notebook.decode()}).encode()


class NotAVerdict(ValueError):
    """The received data is not a verdict on this submission."""


def checked(result: object, content: bytes, assignment: Assignment) -> bytes:
    """Return a verdict received from another machine, with its outputs cleaned again.

    Raise NotAVerdict if the data is not a verdict on this submission. Only the form and consistency of the verdict are
    checked. The points are accepted from the other machine without proof.
    """
    instructors = _instructors(assignment)
    try:
        prepared = prepare(parse_submission(content), instructors)
    except UnusableSubmission as why:
        return packed(zero(instructors, str(why)))
    if not isinstance(result, bytes) or len(result) > MAX_RESULT:
        raise NotAVerdict("an answer that is no verdict came back")
    try:
        said = json.loads(result)
        notebook = parse_notebook(said["notebook"].encode(), "what came back")
        graded = Graded(
            json.dumps(notebook).encode(),
            {_text(name): _text(problem) for name, problem in said["verdicts"].items()},
            [Evidence(_text(item["cell"]), _text(item["what"])) for item in said["evidence"]],
            _text(said["failure"]),
            float(said["seconds"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, NotebookError) as error:
        raise NotAVerdict(f"what came back is no verdict: {type(error).__name__}") from None
    if not 0 <= graded.seconds < math.inf:
        raise NotAVerdict("what came back took no time that there is")
    _compare(graded, notebook, prepared, instructors)
    return packed(replace(graded, notebook=json.dumps(notebook).encode()))


@lru_cache(maxsize=4)
def _instructors(assignment: Assignment) -> NotebookNode:
    return parse_notebook(assignment.notebook, assignment.name)


def _compare(graded: Graded, notebook: NotebookNode, prepared: Prepared, instructors: NotebookNode) -> None:
    """Clean the outputs of a received notebook. Raise NotAVerdict if the notebook does not fit the submission.

    The cells must be those of the submission, and the cells with errors must be those that `graded` reports as wrong.
    """
    bare = _bare(notebook)
    if bare != _bare(prepared.notebook) and bare != _bare(prepare([], instructors).notebook):
        raise NotAVerdict("what came back is on another submission")
    allowance, failed = Allowance(), set()
    for cell in cells_of(notebook):
        if cell.is_code:
            outputs = json.loads(json.dumps(cell.node.outputs))
            errors = [each for each in outputs if each["output_type"] == "error"][:1]
            cell.node.outputs = [nbformat.from_dict(each) for each in safe_outputs(outputs, allowance)]
            cell.node.outputs += [error_output(_text(each["ename"]), _text(each["evalue"])) for each in errors]
            if cell.is_check and errors:
                failed.add(cell.id)
    if failed != {name for name, problem in graded.verdicts.items() if problem}:
        raise NotAVerdict("what came back contradicts itself")


def _bare(notebook: NotebookNode) -> Any:
    """Return the metadata and cells of a notebook without outputs and execution counts."""
    shown = ("outputs", "execution_count")
    return notebook.metadata, [{key: cell[key] for key in cell if key not in shown} for cell in notebook.cells]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return safe_text(value, MAX_REASON)

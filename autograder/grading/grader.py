"""Grade one submission in the sandbox: bytes in, verdicts and the executed notebook out. No database, no folder."""

from __future__ import annotations

import ast
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import nbformat
from nbformat import NotebookNode

import autograder
import tinybench
from autograder import pace
from autograder.course.assignment import Assignment
from autograder.course.execute import error_output
from autograder.course.notebook import grading, is_check, label, module_name, parse_notebook
from autograder.grading.reference import ABSENT
from autograder.grading.sanitize import Allowance, safe_outputs, safe_text
from autograder.grading.session import Bench, Ended, Hidden, schedule
from autograder.grading.submission import Evidence, Prepared, Refused, parse_submission, prepare
from autograder.sandbox.bubblewrap import Limits, Room, within_python
from autograder.sandbox.zygote import Warm

MAX_RESTARTS = 2
Settled = tuple[str, object]  # the problem and the outputs of a check that ran to its end
MAX_MESSAGE = 1000


@dataclass(frozen=True)
class Graded:
    """What came of one submission.

    Attributes
    ----------
    notebook
        The executed notebook, ready for the gradebook, Formgrader and feedback.
    verdicts
        For each graded cell what is wrong, empty where nothing is.
    evidence
        What an honest submission does not hold.
    failure
        Why it could not be read or did not run to its end, if so.
    """

    notebook: bytes
    verdicts: dict[str, str]
    evidence: list[Evidence] = field(default_factory=list)
    failure: str = ""
    seconds: float = 0.0


def refused(source: NotebookNode, reason: str) -> Graded:
    """Return the result of a submission that cannot be read: nothing for any cell, and the reason.

    Parameters
    ----------
    source
        The instructor's notebook.
    reason
        For the feedback.
    """
    prepared = prepare([], source)
    verdicts = {}
    for index, cell in enumerate(prepared.notebook.cells):
        if is_check(cell):
            verdicts[label(cell, index)] = reason
            cell.outputs = [error_output("NotRun", reason)]
    return Graded(nbformat.writes(prepared.notebook).encode(), verdicts, [], reason)


class Grader:
    """Grades submissions of one assignment; its warm parent starts once.

    Parameters
    ----------
    assignment
        The instructor's notebook and data files.
    limits
        What one submission may use.
    """

    def __init__(self, assignment: Assignment, *, limits: Limits | None = None) -> None:
        self.source = parse_notebook(assignment.notebook, assignment.name)
        name = module_name(Path(assignment.name))
        self.module = f"tinybench.{name}"
        self.plan = schedule(self.source)
        package, own = Path(str(tinybench.__file__)).parent, f"{name}.py"
        reference = package / own
        self.reference = reference.read_text(encoding="utf-8") if reference.is_file() else ""
        folder = f"/course/{assignment.name}"
        shown = {f"/course/tinybench/{p.name}": p for p in package.glob("*.py") if p.name != own}
        self._data = tempfile.TemporaryDirectory()
        laid_out = Path(self._data.name)
        data = {f"/course/data/{p.relative_to(laid_out)}": p for p in assignment.lay_out(laid_out)}
        tops = dict.fromkeys(f"/course/data/{name.partition('/')[0]}" for name, _ in assignment.data)
        hidden = within_python([package, Path(str(autograder.__file__)).parent])
        room = Room({**shown, **data}, hidden, [folder], folder)
        self.warm = Warm([*_imports(self.source), "tinybench.course"], room, list(tops), limits)

    def grade(self, content: bytes) -> Graded:
        """Grade one submission, whatever it is; only its author is concerned by what is wrong with it."""
        started = time.monotonic()
        try:
            prepared = prepare(parse_submission(content), self.source)
        except Refused as refusal:
            return refused(self.source, str(refusal))
        try:
            return self._graded(prepared, started)
        except Exception as error:
            if self.warm.ended():
                raise
            # only a submission made for it gets here: it is judged by what it did, and the batch goes on
            what = f"what it sent could not be judged: {type(error).__name__}"
            graded = refused(self.source, what)
            return replace(
                graded, evidence=[*prepared.evidence, Evidence("", what)], seconds=time.monotonic() - started
            )

    def _graded(self, prepared: Prepared, started: float) -> Graded:
        """Run and judge a submission, again where that gives its author more of what is due."""
        until = started + pace.wall(self.warm.limits.wall_seconds)
        skip, lost, settled = prepared.demonstrations, dict[str, str](), dict[str, Settled]()
        while True:
            verdicts, ending, missing = self._run(prepared, skip, lost, settled, until)
            if time.monotonic() > until:
                break
            if ending is not None and len(lost) < MAX_RESTARTS:
                lost[ending[0]] = ending[1]  # once more without the cell that ended it: it costs its own points only
            elif missing and skip:
                # a demonstration is not run unless it was changed, or a name is missing that it may define
                skip = set()
            else:
                break
        failure = "; ".join(dict.fromkeys(lost.values())) or (ending[1] if ending else "")
        content = nbformat.writes(prepared.notebook).encode()
        return Graded(content, verdicts, prepared.evidence, failure, time.monotonic() - started)

    def _run(
        self, prepared: Prepared, skip: set[str], lost: dict[str, str], settled: dict[str, Settled], until: float
    ) -> tuple[dict[str, str], tuple[str, str] | None, bool]:
        """Run and judge the cells; return the verdicts, the cell that ended it and how, whether a name was missing."""
        verdicts: dict[str, str] = {}
        ending: tuple[str, str] | None = None
        missing, ran, allowance = False, list[NotebookNode](), Allowance()
        bench = Bench(self.warm, self.module, self.reference, until)
        try:
            for index, cell in enumerate(prepared.notebook.cells):
                if cell.cell_type != "code":
                    continue
                cell.outputs, cell.execution_count = [], None
                if cell.id in skip:
                    continue
                cell.execution_count = index + 1
                if cell.id in settled and (ending is not None or cell.id in lost):
                    problem, outputs = settled[cell.id]
                    cell.outputs = [nbformat.from_dict(output) for output in safe_outputs(outputs, allowance)]
                elif cell.id in lost:
                    problem = f"Stopped: {lost[cell.id]}"
                elif ending is not None:
                    problem = f"NotRun: an earlier cell ended the process: {ending[1]}"
                else:
                    try:
                        problem, outputs = self._cell(bench, cell, ran, settled)
                        ran.append(cell)
                        cell.outputs = [nbformat.from_dict(output) for output in safe_outputs(outputs, allowance)]
                        missing = missing or "NameError" in problem
                        if is_check(cell) and not (missing and skip):  # else all is run again, with demonstrations
                            settled.setdefault(cell.id, (problem, outputs))
                    except Ended as ended:
                        why = bench.end()
                        if ended.foul:
                            prepared.evidence.append(Evidence(cell.id, str(ended)))
                        ending = cell.id, safe_text(why if why not in ("", "done") else str(ended), MAX_MESSAGE)
                        problem = f"Stopped: {ending[1]}"
                problem = problem and (safe_text(problem, MAX_MESSAGE).strip() or "Error")
                if is_check(cell):
                    verdicts[label(cell, index)] = problem
                if problem:
                    name, _, text = problem.partition(": ")
                    cell.outputs.append(error_output(name, text))
                    missing = missing or "NameError" in problem
        finally:
            bench.end()
        return verdicts, ending, missing

    def _cell(
        self, bench: Bench, cell: NotebookNode, before: Sequence[NotebookNode], settled: dict[str, Settled]
    ) -> tuple[str, object]:
        """Run or judge a cell; return what went wrong, and its outputs."""
        if not is_check(cell):
            return bench.run(cell.source)
        checks = self.plan.get(cell.id, [])
        if cell.id in settled:  # judged before the process ended: one who guesses has one guess
            bench.show(cell.source, checks)
            return settled[cell.id]
        problem, outputs = bench.check(cell.source, checks)
        if ABSENT not in problem:
            return problem, outputs
        # It needs the reference of what is judged later. Each check may have it, in a sandbox that ends with the check:
        # what a student's code sees there it cannot carry to the next one.
        for hidden in checks:
            problem, outputs = self._apart(cell, replace(hidden, absent=hidden.pieces), before, bench.until)
            if problem:
                break
        return problem, outputs

    def _apart(
        self, cell: NotebookNode, hidden: Hidden, before: Sequence[NotebookNode], until: float
    ) -> tuple[str, object]:
        """Judge one check of a cell in a sandbox of its own."""
        apart = Bench(self.warm, self.module, self.reference, until)
        try:
            for earlier in before:
                if is_check(earlier):
                    apart.show(earlier.source, self.plan[earlier.id])
                else:
                    apart.run(earlier.source)
            return apart.check(cell.source, [hidden])
        except Ended as ended:
            if ended.foul:
                raise
            return f"Stopped: {ended}", []
        finally:
            apart.end()

    def close(self) -> None:
        """End the warm parent."""
        self.warm.close()
        self._data.cleanup()

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _imports(notebook: NotebookNode) -> Sequence[str]:
    """Return the modules that the instructor's cells import, demonstrations apart: they are loaded once."""
    found: dict[str, None] = {"numpy": None}
    for cell in notebook.cells:
        if cell.cell_type != "code" or not grading(cell):
            continue
        try:
            tree = ast.parse(cell.source)
        except SyntaxError:
            continue  # a line for the shell
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found.update((alias.name, None) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found[node.module] = None
                if node.module == "scipy":
                    found.update((f"scipy.{alias.name}", None) for alias in node.names)
    return [name for name in found if name.partition(".")[0] not in ("autograder", "tinybench", "__future__")]

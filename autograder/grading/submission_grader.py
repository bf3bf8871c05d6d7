"""A grader that turns the bytes of a submission into verdicts and an executed notebook, without using a database.

It reads and writes none of the folders in which a course keeps submissions.
"""

from __future__ import annotations

import ast
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder import time_limits
from autograder.course.assignment import Assignment
from autograder.course.execute import error_output
from autograder.course.notebook import Cell, cells_of, module_name, parse_notebook
from autograder.grading.mounts import graded_modules, mounts_of
from autograder.grading.reference import joined
from autograder.grading.sanitize import Allowance, safe_outputs, safe_text
from autograder.grading.session import Session, SessionEnded, plan_checks
from autograder.grading.submission import Evidence, Prepared, UnusableSubmission, parse_submission, prepare
from autograder.grading.verdict import Graded, zero
from autograder.sandbox.bubblewrap import Limits
from autograder.sandbox.zygote_client import Zygote

MAX_RESTARTS = 2
MAX_MESSAGE = 1000
# modules that others import only at first use, which would be in each submission
LATE = {
    "numpy": ["numpy.random", "IPython.core.logger"],
    "onnx.reference": ["onnx.reference.ops"],
    "tinybench.support.conditions.int8_probe": ["onnxruntime", "onnx"],
    "tinybench.benchmark": ["onnxruntime", "onnx"],
}
Judged = tuple[str, object]  # the problem in a cell, empty if there is none, and the cell's outputs


@dataclass
class _Memory:
    """The state that all runs of one submission share: cells to skip, and verdicts that are final."""

    until: float
    skipped: set[str]
    lost: dict[str, str] = field(default_factory=dict)  # for each cell that ended the process, the reason
    settled: dict[str, Judged] = field(default_factory=dict)  # cells with a final verdict
    passed: set[str] = field(default_factory=set)  # hidden checks that passed; a submission may see their references


@dataclass
class _Run:
    """One run of a submission. If a cell ended the process, `ending` holds the cell's id and the reason."""

    verdicts: dict[str, str] = field(default_factory=dict)
    ending: tuple[str, str] | None = None
    name_missing: bool = False


class Grader:
    """A grader for the submissions of one assignment.

    It starts only one zygote, the process from which the sandbox of each submission is forked.
    """

    def __init__(self, assignment: Assignment, *, limits: Limits | None = None) -> None:
        self.source = parse_notebook(assignment.notebook, assignment.name)
        self.plan = plan_checks(self.source)
        own = graded_modules(assignment.name)
        graded = {f"tinybench.{path.stem}": path.read_text(encoding="utf-8") for path in own}
        self.modules = [*graded] or [f"tinybench.{module_name(Path(assignment.name))}"]
        self.reference = joined(graded)
        self._data = tempfile.TemporaryDirectory()
        mounts, data = mounts_of(assignment, Path(self._data.name))
        self.zygote = Zygote([*_imports(self.source), "tinybench.course"], mounts, data, limits)

    def grade(self, content: bytes) -> Graded:
        """Grade one submission from its bytes, which may be anything.

        A faulty submission affects only its own author.
        """
        started = time.monotonic()
        try:
            prepared = prepare(parse_submission(content), self.source)
        except UnusableSubmission as why:
            return zero(self.source, str(why))
        try:
            return self._graded(prepared, started)
        except Exception as error:
            if self.zygote.ended():
                raise
            # Only a submission written to break the grader gets here. It gets no points, and the batch continues.
            what = f"what it sent could not be judged: {type(error).__name__}"
            evidence = [*prepared.evidence, Evidence("", what)]
            return replace(zero(self.source, what), evidence=evidence, seconds=time.monotonic() - started)

    def _graded(self, prepared: Prepared, started: float) -> Graded:
        """Run and judge a submission. Repeat the run if its author would otherwise lose points unfairly."""
        memory = _Memory(started + time_limits.wall(self.zygote.limits.wall_seconds), prepared.demonstrations)
        while True:
            run = self._run(prepared, memory)
            if run.name_missing and memory.skipped:
                # unchanged demonstration cells run only if a name is missing, which they may define
                memory.skipped = set()
            elif run.ending is not None and len(memory.lost) < MAX_RESTARTS and time.monotonic() < memory.until:
                # run again without the cell that ended the process, so that only this cell's points are lost
                memory.lost[run.ending[0]] = run.ending[1]
            else:
                break
        failure = "; ".join(dict.fromkeys(memory.lost.values())) or (run.ending[1] if run.ending else "")
        content = json.dumps(prepared.notebook).encode()
        return Graded(content, run.verdicts, prepared.evidence, failure, time.monotonic() - started)

    def _run(self, prepared: Prepared, memory: _Memory) -> _Run:
        run, allowance = _Run(), Allowance()
        session = Session(self.zygote, self.modules, self.reference, memory.until)
        try:
            for number, cell in enumerate(cells_of(prepared.notebook), start=1):
                if not cell.is_code:
                    continue
                cell.node.outputs, cell.node.execution_count = [], None
                if cell.id in memory.skipped:
                    continue
                cell.node.execution_count = number
                outputs: object = []
                try:
                    problem, outputs = self._judged(session, cell, run, memory)
                except SessionEnded as ended:
                    why = session.end()
                    if ended.violation:
                        prepared.evidence.append(Evidence(cell.id, str(ended)))
                    run.ending = cell.id, safe_text(why or str(ended), MAX_MESSAGE)
                    problem = f"Stopped: {run.ending[1]}"
                cell.node.outputs = [nbformat.from_dict(output) for output in safe_outputs(outputs, allowance)]
                run.name_missing |= "NameError" in problem
                if run.name_missing and memory.skipped:
                    break  # before the submission can see the reference of code that the next run judges again
                problem = problem and (safe_text(problem, MAX_MESSAGE).strip() or "Error")
                if cell.is_check:
                    run.verdicts[cell.id] = problem
                if problem:
                    name, _, text = problem.partition(": ")
                    cell.node.outputs.append(error_output(name, text))
        finally:
            session.end()
        return run

    def _judged(self, session: Session, cell: Cell, run: _Run, memory: _Memory) -> Judged:
        """Run or judge a cell, and return the problem and the outputs.

        If the process has ended, or if this cell ended it in an earlier run, return without running the cell.
        """
        if cell.id in memory.settled and (run.ending is not None or cell.id in memory.lost):
            return memory.settled[cell.id]
        if cell.id in memory.lost:
            return f"Stopped: {memory.lost[cell.id]}", []
        if run.ending is not None:
            return f"NotRun: an earlier cell ended the process: {run.ending[1]}", []
        if not cell.is_check:
            problem, outputs = session.run_cell(cell.source)
        elif cell.id in memory.settled:  # judged before the process ended, so there is no second attempt
            if checks := self.plan.get(cell.id):
                session.run_visible(cell, checks)
            problem, outputs = memory.settled[cell.id]
        else:
            problem, outputs = session.check(cell, self.plan.get(cell.id, []), memory.passed)
        if cell.is_check and not ("NameError" in problem and memory.skipped):  # else the next run judges it again
            memory.settled.setdefault(cell.id, (problem, outputs))
        return problem, outputs

    def close(self) -> None:
        """End the zygote, and delete the temporary copies of the assignment's data."""
        self.zygote.close()
        self._data.cleanup()

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _imports(notebook: NotebookNode) -> Sequence[str]:
    """Return the names of the modules that the zygote should load.

    These are the modules that the instructor's cells import, except the demonstration cells.
    """
    found: dict[str, None] = {"numpy": None}
    for cell in cells_of(notebook):
        if not cell.is_code or not cell.marks:
            continue
        try:
            tree = ast.parse(cell.source)
        except SyntaxError:
            continue  # a shell command
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found.update((alias.name, None) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found[node.module] = None
                if node.module == "scipy":
                    found.update((f"scipy.{alias.name}", None) for alias in node.names)
    found.update((late, None) for name, modules in LATE.items() if name in found for late in modules)
    return [name for name in found if name.partition(".")[0] not in ("autograder", "__future__")]

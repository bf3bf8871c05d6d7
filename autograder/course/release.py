"""modules/ → course/release/ → student/: notebooks without solutions, proven to be worth nothing untouched."""

from __future__ import annotations

import ast
import filecmp
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbgrader.apps.api import NbGraderAPI
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import determine_grade
from traitlets.config import Config

from autograder.course.config import STUDENT, configure
from autograder.course.execute import CELL_SECONDS, execute
from autograder.course.notebook import (
    BEGIN_SOLUTION,
    END_SOLUTION,
    NotebookError,
    course_notebooks,
    is_check,
    is_solution,
    label,
    read_notebook,
)

if TYPE_CHECKING:
    from nbformat import NotebookNode

WRITTEN_ANSWER = "*Write your answer here.*"


class NotReleased(NotebookError):
    """Some notebooks could not be released, the others were: which, why, and what to do."""

    def __init__(self, problems: dict[str, str], most: int) -> None:
        self.problems = problems
        listed = "".join(f"  {name}: {why}\n" for name, why in problems.items())
        again = f"autograder release {' '.join(problems)}"
        what = "the others are in student/" if len(problems) < most else "nothing else was asked for"
        super().__init__(
            "release",
            None,
            f"{len(problems)} of {most} notebooks were not released\n{listed}{what}; mend what is wrong with these, or "
            f"wait until the machine is less busy where only the time ran out, and run\n  {again}",
        )


class StubSolutions(NbGraderPreprocessor):
    """Replace each solution region by a ``NotImplementedError`` that names what to write."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], cell_index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Stub one cell; a written answer becomes a placeholder."""
        if is_solution(cell):
            cell.source = stub_solutions(cell.source, label(cell, cell_index))
        elif cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = WRITTEN_ANSWER
        elif BEGIN_SOLUTION in cell.source:
            raise NotebookError("solution", label(cell, cell_index), "a solution region outside a solution cell")
        return cell, resources


def stub_solutions(source: str, cell: str) -> str:
    """Return the student's version of a solution cell.

    Raises
    ------
    NotebookError
        If the cell has no region, an unclosed one, or one outside a function.
    """
    lines, kept, begin = source.splitlines(), [], 0
    for number, line in enumerate(lines, start=1):
        if line.strip() == BEGIN_SOLUTION:
            if begin:
                raise NotebookError("solution", cell, f"line {number}: a solution region inside another")
            begin = number
            indent = line[: len(line) - len(line.lstrip())]
            kept.append(f'{indent}raise NotImplementedError("write {_enclosing(source, number, cell)}")')
        elif line.strip() == END_SOLUTION:
            begin = 0
        elif not begin:
            kept.append(line)
    if begin:
        raise NotebookError("solution", cell, f"line {begin}: the solution region is never closed")
    if len(kept) == len(lines):
        raise NotebookError("solution", cell, f"no {BEGIN_SOLUTION} … {END_SOLUTION} region")
    return "\n".join(kept)


def _enclosing(source: str, line: int, cell: str) -> str:
    """Return the dotted name of the function around a line."""

    def search(nodes: Iterable[ast.stmt], path: tuple[str, ...]) -> tuple[str, ...] | None:
        for node in nodes:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if node.lineno <= line <= (node.end_lineno or 0) + 1:  # a marker may be the function's last line
                owner = [
                    ast.unparse(d.args[0])
                    for d in node.decorator_list
                    if isinstance(d, ast.Call) and ast.unparse(d.func) == "add_to_class"
                ]
                here = (*path, *owner, node.name)
                return here if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else search(node.body, here)
        return None

    try:
        found = search(ast.parse(source).body, ())
    except SyntaxError as error:
        raise NotebookError("solution", cell, f"line {error.lineno}: {error.msg}") from None
    if found is None:
        raise NotebookError("solution", cell, f"line {line}: a solution region must be inside a function")
    return ".".join(found)


def release_all(
    root: Path,
    assignments: Iterable[str] = (),
    *,
    force: bool = False,
    verify: bool = True,
    cell_seconds: float = CELL_SECONDS,
    report: Callable[[str], None] = print,
) -> list[str]:
    """Build and prove the student notebooks, and lay out the student's folder.

    Parameters
    ----------
    root
        The course.
    assignments
        Names such as ``03_latency``; all when empty.
    force
        Replace notebooks in ``student/`` that the student has changed.
    verify
        Run every released notebook and insist on 0 points.
    cell_seconds
        See `autograder.course.execute.execute`.
    report
        Called with a line of progress.

    Returns
    -------
    list of str
        The released assignments.

    Raises
    ------
    NotebookError
        If there is no such assignment.
    NotReleased
        In the end, if a notebook is damaged, or scores above 0 untouched, or fails otherwise than by
        ``NotImplementedError``, or takes too long.
    """
    notebooks = {path.stem: path for path in course_notebooks(root)}
    chosen = list(assignments) or list(notebooks)
    for name in chosen:
        if name not in notebooks:
            raise NotebookError(name, None, f"no such assignment; there are {', '.join(notebooks)}")
    (root / "course" / "exchange").mkdir(parents=True, exist_ok=True)
    (root / "course" / "exchange").chmod(0o777)
    refresh_student_package(root)  # first: whatever becomes of a notebook, the others can be built
    api = NbGraderAPI(config=configure(Config(), root))
    problems: dict[str, str] = {}
    for number, name in enumerate(chosen, start=1):
        released = root / "course" / "release" / name / f"{name}.ipynb"
        try:
            _generate(api, notebooks[name])
            if verify:
                verify_untouched(released, cell_seconds)
        except NotebookError as error:
            problems[name] = str(error)
            shutil.rmtree(released.parent, ignore_errors=True)  # what is not proven is not handed out
            report(f"[{number}/{len(chosen)}] {name}: NOT released: {error}")
            continue
        kept = _lay_out(released, root / STUDENT / name / f"{name}.ipynb", force)
        report(f"[{number}/{len(chosen)}] {name}: released{', 0 points untouched' if verify else ''}{kept}")
    if problems:
        raise NotReleased(problems, len(chosen))
    return chosen


def _generate(api: NbGraderAPI, notebook: Path) -> None:
    read_notebook(notebook)
    result = api.generate_assignment(notebook.stem, force=True, create=True)
    if not result["success"]:
        reason = _last_reason(result.get("log") or result.get("error", ""))
        raise NotebookError(notebook, None, f"nbgrader could not release it: {reason}")


def _last_reason(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if re.match(r"\s*[\w.]*(Error|Exception): ", line)]
    return lines[-1] if lines else log[-300:]


def _lay_out(released: Path, target: Path, force: bool) -> str:
    """Copy a released notebook for the student; what the student wrote is never lost."""
    pristine = target.parent / ".released" / target.name
    note = ""
    if target.is_file() and not filecmp.cmp(target, released, shallow=False):
        theirs = not pristine.is_file() or not filecmp.cmp(target, pristine, shallow=False)
        if theirs and not force:
            return f"; {target.parent.name} has the student's work and stays (--force replaces it)"
        if theirs:
            backup = target.with_suffix(".backup.ipynb")
            shutil.copy(target, backup)
            note = f"; the student's work is in {backup.name}"
    pristine.parent.mkdir(parents=True, exist_ok=True)
    for path in (target, pristine):
        path.unlink(missing_ok=True)
        shutil.copy(released, path)
        path.chmod(0o644)
    return note


def refresh_student_package(root: Path) -> None:
    """Copy the reference package next to the student's notebooks; files the student built stay."""
    from autograder.course.build import is_built_by_student

    target = root / STUDENT / "tinybench"
    target.mkdir(parents=True, exist_ok=True)
    for source in [*(root / "tinybench").glob("*.py"), root / "tinybench" / "py.typed"]:
        if not is_built_by_student(target / source.name):
            shutil.copy(source, target / source.name)


def verify_untouched(notebook: Path, cell_seconds: float = CELL_SECONDS) -> None:
    """Run a released notebook and insist that nothing written is worth nothing.

    Raises
    ------
    NotebookError
        If it does not run to its end, a graded cell earns points, or an error is not a stub's
        ``NotImplementedError``.
    """
    run = execute(read_notebook(notebook), folder=notebook.parent, cell_seconds=cell_seconds)
    if run.failure:
        begun = [label(cell, at) for at, cell in enumerate(run.notebook.cells) if cell.get("execution_count")]
        raise NotebookError(notebook, begun[-1] if begun else None, run.failure)
    for index, cell in enumerate(run.notebook.cells):
        if is_check(cell):
            points, most = determine_grade(cell)
            if points:
                raise NotebookError(notebook, label(cell, index), f"earns {points:g} of {most:g} points untouched")
        for output in cell.get("outputs", []):
            if output.output_type == "error" and output.ename != "NotImplementedError":
                raise NotebookError(
                    notebook,
                    label(cell, index),
                    f"fails untouched with {output.ename}: {output.evalue}; a stub's "
                    "NotImplementedError should come first",
                )

"""The release of notebooks without solutions, from modules/ to course/release/ and student/.

By default, a release verifies that an untouched notebook scores 0.
"""

from __future__ import annotations

import ast
import filecmp
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbgrader.apps.api import NbGraderAPI
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import determine_grade
from traitlets.config import Config

from autograder.course.execute import CELL_SECONDS, run_notebook
from autograder.course.nbgrader_settings import PACKAGE, STUDENT, configure
from autograder.course.notebook import (
    BEGIN_SOLUTION,
    END_SOLUTION,
    Cell,
    NotebookError,
    cells_of,
    chosen,
    course_notebooks,
    optional,
    read_notebook,
)
from autograder.course.sealed_solutions import write_sealed
from autograder.course.student_guides import lay_out_papers
from autograder.course.student_package import lay_out_package, references_for, written_by
from tinybench.course.passed_checks import SEALED
from tinybench.support.basics.numbers import number_of

if TYPE_CHECKING:
    from nbformat import NotebookNode

WRITTEN_ANSWER = "*Write your answer here.*"
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class NotReleased(NotebookError):
    """An error that lists the notebooks that could not be released, the reasons and the remedy."""

    def __init__(self, problems: dict[str, str], most: int) -> None:
        listed = "".join(f"  {name}: {why}\n" for name, why in problems.items())
        others = "the others are in student/" if len(problems) < most else "nothing else was asked for"
        why = f"""{len(problems)} of {number_of(most, "notebook")} were not released
{listed}{others}; mend what is wrong, or wait until the machine is less busy if only the time ran out, and run
  autograder release {" ".join(problems)}"""
        super().__init__("release", None, why)


class StubSolutions(NbGraderPreprocessor):
    """An nbgrader preprocessor that replaces each solution region with a stub: ``raise NotImplementedError(...)``."""

    def preprocess_cell(
        self, node: NotebookNode, resources: dict[str, Any], cell_index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Replace the code of a solution cell with a stub, or a written answer with a placeholder."""
        cell = Cell.of(node, cell_index)
        if cell.is_solution:
            node.source = stub_solutions(cell.source, cell.id)
        elif cell.is_written:
            node.source = WRITTEN_ANSWER
        elif BEGIN_SOLUTION in cell.source:
            raise NotebookError("solution", cell.id, "a solution region outside a solution cell")
        return node, resources


def stub_solutions(source: str, cell: str) -> str:
    """Return the student's version of a solution cell. Raise NotebookError if its solution regions are malformed."""
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
    """Return the dotted name of the function that contains a line."""
    path: list[str] = []
    try:
        found = _around(ast.parse(source).body, line)
    except SyntaxError as error:
        raise NotebookError("solution", cell, f"line {error.lineno}: {error.msg}") from None
    while found:
        calls = [decorator for decorator in found.decorator_list if isinstance(decorator, ast.Call)]
        path += [ast.unparse(call.args[0]) for call in calls if ast.unparse(call.func) == "add_to_class"]
        path.append(found.name)
        if not isinstance(found, ast.ClassDef):
            return ".".join(path)
        found = _around(found.body, line)
    raise NotebookError("solution", cell, f"line {line}: a solution region must be inside a function")


def _around(body: Iterable[ast.stmt], line: int) -> Definition | None:
    """Return the function or class that contains a line. A marker may stand one line below the last statement."""
    definitions = (node for node in body if isinstance(node, Definition))
    return next((node for node in definitions if node.lineno <= line <= (node.end_lineno or 0) + 1), None)


def release_all(
    root: Path,
    assignments: Iterable[str] = (),
    *,
    references: str | None = None,
    force: bool = False,
    verify: bool = True,
    explain: bool = True,
    full_marks: Callable[[Path], None] = lambda source: None,
    cell_seconds: float = CELL_SECONDS,
    report: Callable[[str], None] = print,
) -> list[str]:
    """Build the student notebooks, verify that they score 0 untouched, and write the student's folder.

    Parameters
    ----------
    root
        The course's folder.
    assignments
        The notebooks to release, see `autograder.course.notebook.chosen`. By default, all notebooks.
    references
        The modules whose references the student's package contains, see `references_for`.
    force
        Whether to replace notebooks that the student has changed. A backup is kept.
    verify
        Whether to verify each notebook. The untouched notebook is run in a student's folder with the references of
        earlier modules. It must score 0 and fail only at its stubs. Then `full_marks` is called.
    explain
        Whether a check shows the explained solution once the student's code passes it.
    full_marks
        A function that raises `NotebookError` if a notebook's reference solution does not get full marks on this
        machine.
    cell_seconds
        The time limit of one cell in seconds.
    report
        A function that receives a message about each notebook.

    Raises
    ------
    NotReleased
        If some notebooks are damaged or fail the verification. All other notebooks are released.
    """
    notebooks = {path.stem: path for path in course_notebooks(root)}
    names = chosen(assignments, notebooks) or list(notebooks)
    exchange = root / "course" / "exchange"
    exchange.mkdir(parents=True, exist_ok=True)
    exchange.chmod(0o777)
    package = root / STUDENT / PACKAGE
    given = references_for(root, [package], references)
    lay_out_papers(root / STUDENT)
    lay_out_package(root, package, given)  # first, so that notebooks can be built even if others fail
    api = NbGraderAPI(config=configure(Config(), root))
    problems: dict[str, str] = {}
    for number, name in enumerate(names, start=1):
        released = root / "course" / "release" / name / f"{name}.ipynb"
        try:
            _generate(api, notebooks[name])
            if name in optional(notebooks):
                _make_bonus(api, name)
            write_sealed(notebooks[name], released.parent, explain=explain)
            if verify:
                verify_untouched(root, released, cell_seconds)
                full_marks(notebooks[name])
        except NotebookError as error:
            problems[name] = str(error)
            shutil.rmtree(released.parent, ignore_errors=True)  # an unverified notebook is not handed out
            report(f"[{number}/{len(names)}] {name}: NOT released: {error}")
            continue
        kept = _lay_out(released, root / STUDENT / name / f"{name}.ipynb", force)
        report(f"[{number}/{len(names)}] {name}: released{', 0 points untouched' if verify else ''}{kept}")
    report(f"references in {STUDENT}/{PACKAGE}: {', '.join(given) or 'none'}")
    if problems:
        raise NotReleased(problems, len(names))
    return names


def _generate(api: NbGraderAPI, notebook: Path) -> None:
    read_notebook(notebook)
    result = api.generate_assignment(notebook.stem, force=True, create=True)
    if not result["success"]:
        log = result.get("log") or result.get("error", "")
        reasons = re.findall(r"^\s*([\w.]*(?:Error|Exception): .*?)\s*$", log, re.M) or [log[-300:]]
        raise NotebookError(notebook, None, f"nbgrader could not release it: {reasons[-1]}")


def _make_bonus(api: NbGraderAPI, assignment: str) -> None:
    """Make an optional notebook's points a bonus, by setting the maximum score of its cells in the gradebook to 0."""
    with api.gradebook as gradebook:
        for notebook in gradebook.find_assignment(assignment).notebooks:
            for cell in notebook.grade_cells:
                cell.max_score = 0
        gradebook.db.commit()


def _lay_out(released: Path, target: Path, force: bool) -> str:
    """Copy a released notebook to the student's folder.

    A notebook that the student has changed is kept or, with `force`, backed up. Return a remark about this, or an empty
    text.
    """
    pristine = target.parent / ".released" / target.name
    target.parent.mkdir(parents=True, exist_ok=True)
    if (sealed := released.with_name(SEALED)).is_file():
        shutil.copy(sealed, target.with_name(SEALED))
    note = ""
    if _differ(target, released) and _differ(target, pristine):
        if not force:
            return f"; {target.parent.name} has the student's work and stays (--force replaces it)"
        backup = target.with_suffix(".backup.ipynb")
        shutil.copy(target, backup)
        note = f"; the student's work is in {backup.name}"
    pristine.parent.mkdir(parents=True, exist_ok=True)
    for path in (target, pristine):
        path.unlink(missing_ok=True)
        shutil.copy(released, path)
        path.chmod(0o644)
    return note


def _differ(file: Path, other: Path) -> bool:
    return file.is_file() and not (other.is_file() and filecmp.cmp(file, other, shallow=False))


def verify_untouched(root: Path, released: Path, cell_seconds: float = CELL_SECONDS) -> None:
    """Raise NotebookError if an untouched notebook scores points, or fails for a reason other than its stubs.

    The notebook runs in a student's folder with the references of all earlier modules that are not optional. After a
    cell has failed, a later cell may fail, too, if it lacks a name that the failed cell defines or if it draws a
    figure.
    """
    notebook = read_notebook(released)
    names = set(written_by(root / PACKAGE).values())
    earlier = {name for name in names - optional(names) if name < released.stem}
    with tempfile.TemporaryDirectory() as folder:
        lay_out_package(root, Path(folder, PACKAGE), earlier)
        shutil.copytree(released.parent, Path(folder, released.stem))
        executed, _, failure = run_notebook(notebook, folder=Path(folder, released.stem), cell_seconds=cell_seconds)
    cells = cells_of(executed)
    if failure:
        begun = [cell.id for cell in cells if cell.node.get("execution_count")]
        raise NotebookError(released, begun[-1] if begun else None, failure)
    unmade = ""  # the code of failed cells: the names that these define may be missing in later cells
    for cell in cells:
        if cell.is_check:
            points, most = determine_grade(cell.node)
            if points:
                raise NotebookError(
                    released, cell.id, f"earns {points:g} of {number_of(f'{most:g}', 'point')} untouched"
                )
        for output in cell.node.get("outputs", []):
            if output.output_type != "error":
                continue
            missing = re.match(r"name '(\w+)' is not defined", output.evalue)
            follows = (
                re.search(rf"\b{missing[1]}\b", unmade) if missing else unmade and cell.caption.startswith("# Figure")
            )
            unmade += cell.source
            if not follows and output.ename != "NotImplementedError":
                why = f"{output.ename}: {output.evalue}; a stub's NotImplementedError should come first"
                raise NotebookError(released, cell.id, f"fails untouched with {why}")

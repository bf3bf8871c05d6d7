"""The sealed solutions of a notebook: digests of the right answers, and encrypted, explained solutions.

A release writes the sealed solutions to a file next to the notebook. The notebook's checks read this file. The
reference solution is run once, and the answers and results of this run are the keys: only the right result decrypts a
solution. The explanations come from ``autograder/checks/mNN_name.md``, which has a section for each check. Lines such
as ``- name = literal: hint`` in a section are hints for wrong answers.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import autograder
import tinybench
from autograder import time_limits
from autograder.course.assignment import Assignment
from autograder.course.module_build import run_checks
from autograder.course.nbgrader_settings import ASSERTING
from autograder.course.notebook import Cell, NotebookError, cells_of, read_notebook
from autograder.files import write_atomically
from tinybench.course import cached, check_feedback, passed_checks
from tinybench.course.progress import HEADING

SECONDS = 120
HINT = re.compile(r"^- (?P<name>\w+)(?:\[(?P<part>\d+)\])? = (?P<wrong>.+?): (?P<hint>\S.*)$")

QUESTION = re.compile(r'\bcheck_answer\("(\w+)"')


@dataclass
class Section:
    """The explanations of one check: a text, and hints as tuples (question, part of the answer, wrong answer, hint)."""

    text: str = ""
    hints: list[tuple[str, int, Any, str]] = field(default_factory=list)


def explanations(notebook: Path) -> Path:
    """Return the path of the file with a notebook's explanations."""
    return Path(str(autograder.__file__)).parent / "checks" / f"m{notebook.stem}.md"


def read_explanations(path: Path) -> dict[str, Section]:
    """Return the sections of a file with explanations, by check. If the file is missing, return no sections."""
    found: dict[str, Section] = {}
    section = Section()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.is_file() else (), start=1):
        if line.startswith("## "):
            section = found.setdefault(line[3:].strip(), Section())
        elif match := HINT.match(line):
            try:
                wrong = ast.literal_eval(match["wrong"])
            except (SyntaxError, ValueError):
                raise NotebookError(path, f"line {number}", f"{match['wrong']} is no literal") from None
            section.hints.append((match["name"], int(match["part"] or 0), wrong, match["hint"]))
        elif not line.startswith("# "):
            section.text += line + "\n"
    return found


def keys(notebook: Path) -> dict[str, Any]:
    """Return the answers and results of a notebook's reference solution.

    The answers and results are cached, because computing them takes seconds.
    """
    found: dict[str, Any] = cached(run_reference, Assignment.read(notebook), _package())
    return found


def _package() -> str:
    """Return a digest of the `tinybench` library, on which the result of every notebook depends."""
    files = sorted(Path(str(tinybench.__file__)).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def run_reference(assignment: Assignment, package: str = "") -> dict[str, Any]:
    """Run a reference notebook's checks in a subprocess. Return the answers and results.

    `package`, a digest of the library, is only a part of the cache key.
    """
    with tempfile.TemporaryDirectory() as folder:
        assignment.lay_out(Path(folder))
        notebook = Path(folder) / f"{assignment.name}.ipynb"
        notebook.write_bytes(assignment.notebook)
        run = subprocess.run(
            [sys.executable, "-m", __spec__.name, notebook],
            cwd=folder,
            env={**os.environ, **ASSERTING, "MPLBACKEND": "agg"},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=time_limits.wall(SECONDS),
        )
    if run.returncode:
        raise NotebookError(notebook, None, run.stderr.strip()[-500:])
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def record(notebook: Path) -> dict[str, Any]:
    """Run the visible checks of a reference notebook in this process, and return its answers and results."""
    reference = copy.deepcopy(read_notebook(notebook))
    for cell in cells_of(reference):
        if cell.is_check:
            cell.node.source = cell.visible
    check_feedback.RECORD["on"] = True
    try:
        failures = {name: why for name, why in run_checks(reference, notebook).items() if why}
        kept = dict(check_feedback.RECORD)
    finally:
        check_feedback.RECORD.clear()
    for check, why in failures.items():
        raise NotebookError(notebook, check, f"the reference itself does not pass this check here: {why}")
    answers = {name: _parts(answer, digits) for name, (answer, digits) in kept.get("answers", {}).items()}
    right = {name: [part["right"] for part in parts] for name, parts in answers.items()}
    proofs: dict[str, str] = kept.get("proofs", {})
    asked = {cell.id: questions(cell) for cell in cells_of(reference) if cell.is_check}
    proofs |= {check: check_feedback.answered(right, names) for check, names in asked.items() if names}
    return {"answers": answers, "proofs": proofs}


def questions(check: Cell) -> list[str]:
    """Return the names of a check's questions, in order."""
    return QUESTION.findall(check.visible)


def _parts(answer: Any, digits: int) -> list[dict[str, Any]]:
    """Return, for each part of an answer, its text (``right``), whether it was rounded, and the number of digits."""
    given = list(answer) if isinstance(answer, tuple | list) else [answer]
    parts = []
    for value in given:
        value = value.item() if hasattr(value, "item") else value
        rounded = isinstance(value, float)
        parts.append(
            {"right": check_feedback.form(value, digits, rounded=rounded), "rounded": rounded, "digits": digits}
        )
    return parts


def seal(notebook: Path, found: Mapping[str, Any], *, explain: bool = True) -> dict[str, Any]:
    """Return a notebook's sealed solutions as data for a JSON file. `found` is the result of `keys`."""
    sections = read_explanations(explanations(notebook))
    answers: dict[str, Any] = {name: {"parts": []} for name in found["answers"]}
    for name, parts in found["answers"].items():
        for number, part in enumerate(parts):
            right = check_feedback.sealed(f"{name}[{number}]", part["right"])
            answers[name]["parts"].append({"right": right, "rounded": part["rounded"], "hints": {}})
    for section in sections.values():
        for name, part, wrong, hint in section.hints:
            if name not in answers:
                continue
            known = found["answers"][name][part]
            form = check_feedback.form(wrong, known["digits"], rounded=known["rounded"])
            if form == known["right"]:
                raise NotebookError(explanations(notebook), name, f"{wrong} is the right answer, and has a hint")
            answers[name]["parts"][part]["hints"][check_feedback.sealed(f"{name}[{part}]", form)] = hint
    code = solutions(notebook)
    checks = {}
    for check, proof in found["proofs"].items():
        text = f"{sections.get(check, Section()).text.strip()}\n\n{code[check]}"
        checks[check] = check_feedback.closed(check, proof, text if explain else "")
    return {"answers": answers, "checks": checks, "about": about(notebook)}


def about(notebook: Path) -> dict[str, dict[str, Any]]:
    """Return each check's section, the names of the functions and classes that the check judges, and its questions."""
    found: dict[str, dict[str, Any]] = {}
    section, pieces = "", list[str]()
    for cell in cells_of(read_notebook(notebook)):
        heading = HEADING.search(cell.source) if cell.kind == "markdown" else None
        if heading:
            section = heading[1].strip()
        elif cell.is_solution:
            pieces += passed_checks.defined(cell.code)
        elif cell.is_check:
            found[cell.id] = {"section": section, "pieces": pieces, "questions": questions(cell)}
            pieces = []
    return found


def solutions(notebook: Path) -> dict[str, str]:
    """Return the reference code for each check as Markdown: the code of the solution cells since the previous check."""
    found, since = {}, list[str]()
    for cell in cells_of(read_notebook(notebook)):
        if cell.is_solution:
            since.append(f"```python\n{_without_docstrings(cell)}\n```\n")
        elif cell.is_check:
            found[cell.id], since = "\n".join(since), []
    return found


def _without_docstrings(cell: Cell) -> str:
    gone: set[int] = set()
    for node in ast.walk(ast.parse(cell.code)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) and len(node.body) > 1:
            gone.update(range(node.body[0].lineno, node.body[1].lineno - _decorators(node.body[1])))
    lines = enumerate(cell.code.splitlines(), start=1)
    return "\n".join(line for number, line in lines if number not in gone or line.strip().startswith("#")).strip()


def _decorators(node: ast.stmt) -> int:
    """Return the number of decorator lines above a statement."""
    above = getattr(node, "decorator_list", [])
    return node.lineno - above[0].lineno if above else 0


def write_sealed(notebook: Path, folder: Path, *, explain: bool = True) -> None:
    """Write a notebook's sealed solutions into the folder of its release. If no check calls `passed`, do nothing."""
    if any("passed(" in cell.visible for cell in cells_of(read_notebook(notebook)) if cell.is_check):
        text = json.dumps(seal(notebook, keys(notebook), explain=explain), indent=1, ensure_ascii=False)
        write_atomically(folder / passed_checks.SEALED, text + "\n")


if __name__ == "__main__":
    try:
        print("\n" + json.dumps(record(Path(sys.argv[1]))))
    except NotebookError as error:
        sys.exit(str(error))

"""A student's whole package, from the notebooks that were handed in, against the public tests: information, not a mark.

Students' code and the tests that judge it share an interpreter here, as on the student's own machine; all of it runs in
the sandbox.
"""

from __future__ import annotations

import json
import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

import autograder
import tinybench
from autograder.course.export import targets
from autograder.course.notebook import NotebookError, course_notebooks
from autograder.grading.sanitize import safe_line, safe_text
from autograder.grading.submission import Refused, read_submission
from autograder.sandbox import bubblewrap

HERE = Path(str(autograder.__file__)).parent
BUILDER = ("__init__.py", *(f"course/{name}.py" for name in ("__init__", "build", "export", "notebook")))
LIMITS = bubblewrap.Limits(cpu_seconds=300, wall_seconds=600)
MAX_SOURCE = 2**20
OWN, REFERENCE = "own", "reference"


@dataclass(frozen=True)
class Module:
    """One module of a student's package.

    Attributes
    ----------
    whose
        ``"own"`` or ``"reference"``.
    why
        Why it is the reference.
    passed
        How many tests passed.
    failures
        For each test that failed, how; without those that the reference fails here too.
    note
        What else is to be known of the tests.
    """

    name: str
    whose: str
    why: str = ""
    passed: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    note: str = ""


def package(root: Path, student: str, *, progress: bool = True) -> list[Module]:
    """Build a student's package and run each module's public tests on it, all in the sandbox.

    Parameters
    ----------
    root
        The course.
    student
        Whose; what was collected counts.
    progress
        Show a bar with the time left.

    Returns
    -------
    list of Module
        One for each module of the course that has tests.

    Raises
    ------
    NotebookError
        If nothing was handed in.
    SandboxUnavailable
        If this machine cannot confine untrusted code.
    """
    bubblewrap.available()
    submitted = root / "course" / "submitted"
    notebooks = targets(course_notebooks(root))
    if not any((submitted / student / path.stem).is_dir() for path in notebooks.values()):
        raise NotebookError(student, None, f"nothing submitted in {submitted / student}; collect first")
    with (
        tempfile.TemporaryDirectory() as folder,
        tqdm(total=2 * len(notebooks), desc=student, unit="step", disable=not progress) as bar,
    ):
        reference = {path.name: path for path in (root / "tinybench").glob("*.py")}
        files, modules = dict(reference), []
        for name, notebook in notebooks.items():
            source, why = _build(root, files, submitted, student, notebook.stem)
            if source:
                files[f"{name}.py"] = Path(folder) / f"{name}.py"
                files[f"{name}.py"].write_text(source, encoding="utf-8")
            modules.append(Module(notebook.stem, OWN if source else REFERENCE, why))
            bar.update()
        for number, (name, module) in enumerate(zip(notebooks, modules, strict=True)):
            modules[number] = _tested(root, files, reference, name, module)
            bar.update()
    return modules


def _build(root: Path, files: dict[str, Path], submitted: Path, student: str, name: str) -> tuple[str, str]:
    """Return the source of a student's module, or why there is none."""
    if not (submitted / student / name).is_dir():
        return "", "not handed in"
    try:
        content = read_submission(submitted / student / name / f"{name}.ipynb", submitted)
    except Refused as refused:
        return "", str(refused)
    tools = {f"/course/autograder/{file}": HERE / file for file in BUILDER}
    report = _run("build", name, files, tools, content)
    source = report.get("source")
    if isinstance(source, str) and len(source) <= MAX_SOURCE:
        return source, ""
    return "", safe_text(report.get("why", "no module came out"), 1000)


def _tested(root: Path, files: dict[str, Path], reference: dict[str, Path], name: str, module: Module) -> Module:
    """Return a module with what its public tests say."""
    tests = root / "tests" / "tinybench" / f"test_{name}.py"
    if not tests.is_file():
        return replace(module, note="no public tests")
    shown = {f"/course/tests/{tests.name}": tests, "/course/pyproject.toml": root / "pyproject.toml"}
    report = _run("test", name, files, shown)
    if "why" in report:
        return replace(module, note=f"the tests did not end: {safe_text(report['why'], 1000)}")
    failures = _failures(report)
    note = ""
    if failures and files != reference:
        here_too = _failures(_run("test", name, reference, shown)).keys() & failures
        failures = {test: why for test, why in failures.items() if test not in here_too}
        note = f"{len(here_too)} left out, as the reference fails them here too" if here_too else ""
    passed = report.get("passed")
    return replace(module, passed=passed if isinstance(passed, int) else 0, failures=tuple(failures.items()), note=note)


def _failures(report: dict[str, Any]) -> dict[str, str]:
    found = report.get("failures")
    return {safe_line(k): safe_line(v, 300) for k, v in found.items()} if isinstance(found, dict) else {}


def _run(task: str, name: str, files: dict[str, Path], shown: dict[str, Path], content: bytes = b"") -> dict[str, Any]:
    """Run one step in a sandbox that shows a package; return its report, or ``"why"`` there is none."""
    places = {f"/course/tinybench/{file}": path for file, path in files.items()}
    places |= {"/inside/package.py": HERE / "sandbox" / "guest" / "package.py", **shown}
    homes = (HERE, Path(str(tinybench.__file__)).parent)
    hidden = bubblewrap.within_python(homes)
    room = bubblewrap.Room(places, hidden, [f"/course/{name}"], f"/course/{name}")
    secret = secrets.token_hex(16).encode() + b"\n"
    argv = [sys.executable, "-sB", "/inside/package.py", task, name]
    done = bubblewrap.run(argv, secret + content, room=room, limits=LIMITS)
    _, found, text = done.output.rpartition(secret)
    try:
        report = json.loads(text) if found else {}
    except (ValueError, RecursionError):
        report = {}
    if isinstance(report, dict) and report:
        return report
    last = done.errors.decode(errors="replace").strip().splitlines()[-1:]
    return {"why": done.limit or f"the process ended early ({done.code}) {' '.join(last)}"}


def table(modules: Sequence[Module]) -> Iterator[str]:
    """Yield the lines of a report for people."""
    yield f"{'module':<14}  {'whose':<9}  {'passed':>6}  {'failed':>6}  note"
    for module in modules:
        note = "; ".join(part.splitlines()[0] for part in (module.why, module.note) if part)
        numbers = f"{module.passed:>6}  {len(module.failures):>6}"
        yield f"{module.name:<14}  {module.whose:<9}  {numbers}  {note}".rstrip()
    for module in modules:
        if module.why.count("\n") or module.failures:
            yield f"\n{module.name}"
            yield from (f"  {line.strip()}" for line in module.why.splitlines()[1:])
            yield from (f"  {test}: {why}" for test, why in module.failures)
    own = sum(module.whose == OWN for module in modules)
    yield f"\n{own} of {len(modules)} modules are the student's own. Information, never a mark: the student's code ran"
    yield "beside the tests, and could have forged what they say."

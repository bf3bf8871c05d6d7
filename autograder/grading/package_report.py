"""A report on a student's whole package. The package is built from submitted notebooks, and public tests run on it.

The report is information, not a mark, because the student's code and the tests share an interpreter, as on the
student's own machine. Both the code and the tests run in the sandbox.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ruff import find_ruff_bin  # type: ignore[import-untyped]
from tqdm import tqdm

import autograder
from autograder.course.export import course_modules
from autograder.course.notebook import NotebookError, course_notebooks, module_name
from autograder.grading.sanitize import safe_line, safe_text
from autograder.grading.submission import UnusableSubmission, read_submission
from autograder.sandbox import bubblewrap
from autograder.sandbox.root import PROGRAM
from tinybench.support.basics.numbers import number_of, plural
from tinybench.support.basics.table import Table

HERE = Path(str(autograder.__file__)).parent
BUILDER = (
    "__init__.py",
    "files.py",
    *(
        f"course/{name}.py"
        for name in ("__init__", "module_build", "export", "notebook", "exported_statements", "ruff_checks")
    ),
)
LIMITS = bubblewrap.Limits(cpu_seconds=300, wall_seconds=600)
MAX_SOURCE = 2**20
OWN, REFERENCE = "own", "reference"


@dataclass(frozen=True)
class Module:
    """One module of a student's package, or the reference module in its place, with the results of its public tests."""

    name: str
    whose: str  # "own" or "reference"
    why: str = ""  # why the reference is used
    passed: int = 0
    failures: tuple[tuple[str, str], ...] = ()  # tests and reasons, except tests that the reference also fails here
    note: str = ""  # a remark on the tests


def package(root: Path, student: str, *, progress: bool = True) -> list[Module]:
    """Build a student's package from the collected notebooks, and run each module's public tests in the sandbox."""
    bubblewrap.available()
    submitted = root / "course" / "submitted"
    exported = course_modules(course_notebooks(root)).values()
    written = {path: {m.name for m in exported if m.notebook == path} for path in {m.notebook: 0 for m in exported}}
    notebooks = {module_name(path): path for path in written}
    if not any((submitted / student / path.stem).is_dir() for path in notebooks.values()):
        raise NotebookError(student, None, f"nothing submitted in {submitted / student}; collect first")
    with (
        tempfile.TemporaryDirectory() as folder,
        tqdm(total=2 * len(notebooks), desc=student, unit="step", disable=not progress) as bar,
    ):
        reference = {str(path.relative_to(root / "tinybench")): path for path in (root / "tinybench").rglob("*.py")}
        files, modules = dict(reference), []
        for name, notebook in notebooks.items():
            sources, why = _build(root, files, submitted, student, notebook.stem)
            for own in written[notebook] & sources.keys():
                files[f"{own}.py"] = Path(folder) / f"{own}.py"
                files[f"{own}.py"].write_text(sources[own], encoding="utf-8")
            modules.append(Module(notebook.stem, OWN if name in sources else REFERENCE, why))
            bar.update()
        for number, (name, module) in enumerate(zip(notebooks, modules, strict=True)):
            modules[number] = _tested(root, files, reference, name, module)
            bar.update()
    return modules


def _build(root: Path, files: dict[str, Path], submitted: Path, student: str, name: str) -> tuple[dict[str, str], str]:
    """Return the sources of the modules that a student's notebook exports, by name. If there are none, also say why."""
    if not (submitted / student / name).is_dir():
        return {}, "not handed in"
    try:
        content = read_submission(submitted / student / name / f"{name}.ipynb", submitted)
    except UnusableSubmission as why:
        return {}, str(why)
    tools = {f"/course/autograder/{file}": HERE / file for file in BUILDER}
    tools["/python/bin/ruff"] = Path(find_ruff_bin())
    report = _run("build", name, files, tools, content)
    sources = report.get("sources")
    if isinstance(sources, dict) and all(isinstance(s, str) and len(s) <= MAX_SOURCE for s in sources.values()):
        return sources, ""
    return {}, safe_text(report.get("why", "no module came out"), 1000)


def _tested(root: Path, files: dict[str, Path], reference: dict[str, Path], name: str, module: Module) -> Module:
    """Run the public tests of a module, and return a copy of `module` with the results."""
    tests = root / "tests" / "tinybench" / f"test_{name}.py"
    if not tests.is_file():
        return replace(module, note="no public tests")
    mounted = {f"/course/tests/{tests.name}": tests, "/course/pyproject.toml": root / "pyproject.toml"}
    report = _run("test", name, files, mounted)
    if "why" in report:
        return replace(module, note=f"the tests did not end: {safe_text(report['why'], 1000)}")
    failures = _failures(report)
    note = ""
    if failures and files != reference:
        here_too = _failures(_run("test", name, reference, mounted)).keys() & failures
        failures = {test: why for test, why in failures.items() if test not in here_too}
        note = f"{len(here_too)} left out, as the reference fails them here too" if here_too else ""
    passed = report.get("passed")
    return replace(module, passed=passed if isinstance(passed, int) else 0, failures=tuple(failures.items()), note=note)


def _failures(report: dict[str, Any]) -> dict[str, str]:
    found = report.get("failures")
    return {safe_line(k): safe_line(v, 300) for k, v in found.items()} if isinstance(found, dict) else {}


def _run(task: str, name: str, files: dict[str, Path], more: dict[str, Path], content: bytes = b"") -> dict[str, Any]:
    """Build or test a module in a sandbox.

    Return the report or, if there is none, the reason under the key ``"why"``.
    """
    places = {f"/course/tinybench/{file}": path for file, path in files.items()}
    places |= {"/inside/package.py": HERE / "sandbox" / "guest" / "package.py", **more}
    mounts = bubblewrap.Mounts(places, [f"/course/{name}"], working_directory=f"/course/{name}")
    secret = secrets.token_hex(16).encode() + b"\n"
    argv = [PROGRAM, "-sB", "/inside/package.py", task, name]
    done = bubblewrap.run_program(argv, secret + content, mounts=mounts, limits=LIMITS)
    _, found, text = done.output.rpartition(secret)
    try:
        report = json.loads(text) if found else {}
    except (ValueError, RecursionError):
        report = {}
    if isinstance(report, dict) and report:
        return report
    last = done.errors.decode(errors="replace").strip().splitlines()[-1:]
    return {"why": done.limit or f"the process ended early ({done.code}) {' '.join(last)}"}


def report_lines(modules: Sequence[Module]) -> Iterator[str]:
    """Yield the lines of the report to print."""
    yield Table(
        {
            "module": module.name,
            "whose": module.whose,
            "passed": str(module.passed),
            "failed": str(len(module.failures)),
            "note": "; ".join(part.splitlines()[0] for part in (module.why, module.note) if part),
        }
        for module in modules
    ).text()
    for module in modules:
        if module.why.count("\n") or module.failures:
            yield f"\n{module.name}"
            yield from (f"  {line.strip()}" for line in module.why.splitlines()[1:])
            yield from (f"  {test}: {why}" for test, why in module.failures)
    own = sum(module.whose == OWN for module in modules)
    yield (
        f"\n{own} of {number_of(len(modules), 'module')} {plural(own, 'is', 'are')} the student's own. Information, "
        "never a mark: the student's code ran"
    )
    yield "together with the tests, and could have forged their results."

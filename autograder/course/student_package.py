"""The student's package: handwritten modules, modules that the student built, and reference modules from the course."""

from __future__ import annotations

import ast
import os
import re
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from autograder.course.module_prerequisites import needed_notebooks
from autograder.course.nbgrader_settings import (
    COURSE_ID,
    FACE,
    MODULES,
    PACKAGE,
    STUDENT,
    first_line,
    gradebook_url,
    is_students,
    project_root,
    student_folder_above,
)
from autograder.course.notebook import chosen, optional
from autograder.files import write_atomically
from tinybench.course import REFERENCE_OF
from tinybench.course.passed_checks import PROGRESS
from tinybench.course.pieces import BUILT_BY_STUDENT, EXPORTED, how_given, is_own
from tinybench.course.progress import read_module
from tinybench.support.basics.numbers import number_of, plural

REFERENCES = "references"  # subfolder with references, for modules that the student has not built
RELEASED = "released by your instructor"
# Code at the end of a student's ``__init__.py``. The student's own files take precedence over references.
GROWING = """

__path__.append(f"{{__path__[0]}}/{references}")
import_module("tinybench.course.unwritten").install({notebooks}, {needs})
"""


def student_folder(named: Path | None = None) -> Path:
    """Return the folder with a student's notebooks and package: ``student/`` of a course, or a published folder.

    Without `named`, search the current folder and the folders above it. `named` is the value of ``--root``.
    """
    here = (named or Path.cwd()).resolve()
    found = student_folder_above([here] if named else (here, *here.parents))
    return found or (named or project_root()) / STUDENT


def written_by(package: Path) -> dict[str, str]:
    """Return the name of the notebook that writes each module of a package. Leave out handwritten modules.

    A student's package lists these names in its ``__init__.py``. In the reference package, the first line of each file
    names the notebook.
    """
    if is_students(package):
        return _listing(package)[0]
    first_lines = {path.stem: first_line(path) for path in sorted(package.glob("*.py"))}
    found = {name: re.match(rf"{re.escape(EXPORTED)}{MODULES}/([^/]+)/", line) for name, line in first_lines.items()}
    return {name: match[1] for name, match in found.items() if match}


def lay_out_package(root: Path, target: Path, references: Iterable[str] = ()) -> None:
    """Write a student's package into `target`, with references only for the notebooks named in `references`.

    Modules that the student built in `target` are kept and take precedence over references. References that the student
    borrowed are kept, too. Built modules and references are removed if the course no longer has the module.
    """
    package, given = root / PACKAGE, set(references)
    written = written_by(package)
    for source in (path for path in package.rglob("*") if path.suffix == ".py" or path.name == "py.typed"):
        name = source.relative_to(package)
        if name == Path("__init__.py"):
            _write(target / name, _face(source.read_text(encoding="utf-8"), package, written))
        elif str(name.with_suffix("")) not in written:
            _write(target / name, source.read_bytes())
    for path in (*target.glob("*.py"), *(target / REFERENCES).glob("*.py")):
        ours = first_line(path).startswith((EXPORTED, BUILT_BY_STUDENT, REFERENCE_OF))
        if ours and path.stem not in {*written, "__init__"}:
            path.unlink()  # the course no longer has this module, and others would import it by mistake
    for module, notebook in written.items():
        own, reference = target / f"{module}.py", target / REFERENCES / f"{module}.py"
        if own.is_file() and not is_own(own):
            own.unlink()  # earlier versions released references here and not in a separate folder
        if notebook in given:
            give_reference(root, target, module, RELEASED)
        elif how_given(reference) == RELEASED:
            reference.unlink()


def give_reference(root: Path, target: Path, module: str, how: str) -> None:
    """Put a reference module into a student's package.

    The first line of the new file contains the notebook's name and `how`, such as "released by your instructor".
    """
    text = (root / PACKAGE / f"{module}.py").read_text(encoding="utf-8")
    notebook = written_by(root / PACKAGE)[module]
    first = f"{REFERENCE_OF}{notebook}, {how}: your own comes before it as soon as you build it.\n"
    _write(target / REFERENCES / f"{module}.py", first + text.partition("\n")[2])


def references_for(root: Path, packages: Sequence[Path], named: str | None) -> list[str]:
    """Return the notebooks whose references belong in a student's package.

    Parameters
    ----------
    root
        The course's folder.
    packages
        Students' packages, which earlier releases may have written.
    named
        The notebooks to return, such as ``"01,03-05,latency"``, ``"all"`` or ``"none"``. By default, return the
        notebooks whose due date has passed, and those whose reference was released into one of the packages, so that a
        release takes no reference away.
    """
    known = sorted(set(written_by(root / PACKAGE).values()))
    if named is not None:
        return [] if named == "none" else known if named == "all" else chosen([named], known)
    there = {
        notebook
        for package in packages
        if is_students(package)
        for name, notebook in written_by(package).items()
        if how_given(package / REFERENCES / f"{name}.py") == RELEASED
    }
    return [name for name in known if name in there | overdue(root)]


def overdue(root: Path) -> set[str]:
    """Return the assignments whose due date in the gradebook has passed."""
    address = gradebook_url(root)
    if address.startswith("sqlite:///") and not Path(address.removeprefix("sqlite:///")).is_file():
        return set()
    from nbgrader.api import Gradebook

    with Gradebook(address, COURSE_ID) as gradebook:
        due = {each.name: each.duedate for each in gradebook.assignments}
    now = datetime.now(UTC).replace(tzinfo=None)  # nbgrader stores naive UTC times
    return {name for name, when in due.items() if when is not None and when < now}


def _face(text: str, package: Path, notebooks: dict[str, str]) -> str:
    _, _, rest = text.partition("\n")
    needs = needed_notebooks(package, notebooks)
    return FACE + rest + GROWING.format(references=REFERENCES, notebooks=notebooks, needs=needs)


def _write(path: Path, content: str | bytes) -> None:
    """Write a file unless it already has this content."""
    data = content.encode() if isinstance(content, str) else content
    if not path.is_file() or path.read_bytes() != data:
        write_atomically(path, data)


def status(folder: Path) -> list[tuple[str, str]]:
    """Return the name of each notebook, with a text that says who wrote its modules and how many of its checks pass.

    `folder` is the student's folder.
    """
    package = folder / PACKAGE
    if not is_students(package):
        raise FileNotFoundError(f"{folder} holds no student's package yet; run `autograder release`")
    modules: dict[str, list[str]] = {}
    for module, notebook in written_by(package).items():
        modules.setdefault(notebook, []).append(module)
    extra = optional(modules)
    return [
        (notebook, _whose(package, names) + _passing(folder, notebook) + (", optional" if notebook in extra else ""))
        for notebook, names in sorted(modules.items())
    ]


def _passing(folder: Path, notebook: str) -> str:
    """Return a text that says how many checks of a notebook pass, or an empty string if no check was run."""
    module = read_module(folder / notebook / f"{notebook}.ipynb")
    if module is None or not (folder / notebook / PROGRESS).is_file():
        return ""
    done = len(module.passed)
    return f", {done} of {number_of(len(module.checks), 'check')} {plural(done, 'passes', 'pass')}"


def _whose(package: Path, modules: Iterable[str]) -> str:
    if any(is_own(package / f"{name}.py") for name in modules):
        return "yours"
    given = [how for name in modules if (how := how_given(package / REFERENCES / f"{name}.py"))]
    return f"reference, {given[0]}" if given else "not built yet"


def borrow(folder: Path, named: Iterable[str], *, force: bool = False) -> str:
    """Put references into the package of a student who studies alone, and return a message about the result.

    `named` selects notebooks by the words that `autograder.course.notebook.chosen` accepts. The student's own modules
    are kept. With `force`, these modules are renamed to backups. The message lists all missing modules that the
    borrowed modules need.
    """
    package, root = folder / PACKAGE, folder.parent
    if not is_students(package):
        raise FileNotFoundError(f"{folder} holds no student's package yet; run `autograder release`")
    written, needs = _listing(package)
    taken = chosen(named, set(written.values()))
    own = [notebook for notebook in taken if any(is_own(path) for path in _files(package, written, notebook))]
    if own == taken and not force:
        raise ValueError(f"{', '.join(own)}: already yours; --force puts yours aside and takes the reference")
    wanted = [notebook for notebook in taken if force or notebook not in own]
    absent = [notebook for notebook in wanted if not _is_given(package, written, notebook)]
    further = _not_there(package, written, {each for notebook in wanted for each in needs.get(notebook, ())} - {*taken})
    if absent and not (root / MODULES).is_dir():
        raise ValueError(
            f"no reference of {', '.join(sorted([*absent, *further]))} is in this folder: ask your instructor, who can "
            "publish references; then `git pull` brings them"
        )
    for notebook in absent:
        for name in (name for name, home in written.items() if home == notebook):
            give_reference(root, package, name, f"borrowed on {time.strftime('%Y-%m-%d')}")
    aside = [path for notebook in wanted for path in _files(package, written, notebook) if is_own(path)]
    for path in aside:
        os.replace(path, path.with_name(f"{path.name}.backup"))
    modules = {notebook: [name for name, home in written.items() if home == notebook] for notebook in taken}
    lines = [f"{notebook}: {_whose(package, modules[notebook])}" for notebook in taken]
    if aside:
        lines[-1] += f"; yours is in {', '.join(f'{path.name}.backup' for path in aside)}"
    if own and not force:
        lines.append(f"kept: {', '.join(own)}; --force puts yours aside and takes the reference")
    if further:
        lines.append(
            f"needed as well, and not built yet: {', '.join(further)}; build them, or run "
            f"autograder borrow {' '.join(further)}"
        )
    return "\n".join(lines)


def _listing(package: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return which notebook writes each module of a student's package, and which notebooks each notebook requires."""
    _, _, listed = (package / "__init__.py").read_text(encoding="utf-8").rpartition(".install(")
    notebooks, *needs = ast.literal_eval(f"({listed.strip().removesuffix(')')},)")
    return notebooks, needs[0] if needs else {}


def _files(package: Path, written: dict[str, str], notebook: str) -> list[Path]:
    return [package / f"{name}.py" for name, home in written.items() if home == notebook]


def _is_given(package: Path, written: dict[str, str], notebook: str) -> bool:
    return all(how_given(package / REFERENCES / path.name) for path in _files(package, written, notebook))


def _not_there(package: Path, written: dict[str, str], notebooks: Iterable[str]) -> list[str]:
    """Return the notebooks with at least one module that the student has neither built nor been given."""
    return sorted(
        notebook
        for notebook in notebooks
        if not all(
            is_own(path) or how_given(package / REFERENCES / path.name) for path in _files(package, written, notebook)
        )
    )

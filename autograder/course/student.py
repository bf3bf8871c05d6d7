"""The student's package: what is written by hand, what they built themselves, and the references they were given."""

from __future__ import annotations

import ast
import os
import re
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from autograder.course.config import (
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
from autograder.course.notebook import optional
from autograder.files import write_atomically
from tinybench.course import REFERENCE_OF
from tinybench.course.pieces import EXPORTED, how_given, is_own

REFERENCES = "references"  # the folder of the package where a module is looked for that the student has not built
RELEASED = "released by your instructor"
# What a student's package does beyond the library; the student's own file comes before a reference.
GROWING = """

__path__.append(f"{{__path__[0]}}/{references}")
import_module("tinybench.course.unwritten").install({notebooks})
"""


def student_folder(named: Path | None = None) -> Path:
    """Return the folder with a student's notebooks and package: ``student/`` of a course, or a published one.

    It is the nearest at or above the current folder, or at the one that ``--root`` names.
    """
    here = (named or Path.cwd()).resolve()
    found = student_folder_above([here] if named else (here, *here.parents))
    return found or (named or project_root()) / STUDENT


def written_by(package: Path) -> dict[str, str]:
    """Return the modules of a package that notebooks write, by the notebook that writes each.

    Of a student's package they are in its ``__init__.py``, of the reference each file says it.
    """
    if is_students(package):
        _, _, listed = (package / "__init__.py").read_text(encoding="utf-8").rpartition(".install(")
        notebooks: dict[str, str] = ast.literal_eval(listed.strip().removesuffix(")"))
        return notebooks
    first_lines = {path.stem: first_line(path) for path in sorted(package.glob("*.py"))}
    found = {name: re.match(rf"{re.escape(EXPORTED)}{MODULES}/([^/]+)/", line) for name, line in first_lines.items()}
    return {name: match[1] for name, match in found.items() if match}


def lay_out_package(root: Path, target: Path, references: Iterable[str] = ()) -> None:
    """Write a student's package into `target`: nothing of the reference but the modules of the named notebooks.

    What the student built there stays and comes before a reference; so do references that they borrowed.
    """
    package, given = root / PACKAGE, set(references)
    written = written_by(package)
    for source in (path for path in package.rglob("*") if path.suffix == ".py" or path.name == "py.typed"):
        name = source.relative_to(package)
        if name == Path("__init__.py"):
            _write(target / name, _face(source.read_text(encoding="utf-8"), written))
        elif str(name.with_suffix("")) not in written:
            _write(target / name, source.read_bytes())
    for module, notebook in written.items():
        own, reference = target / f"{module}.py", target / REFERENCES / f"{module}.py"
        if own.is_file() and not is_own(own):
            own.unlink()  # as released before references had a folder of their own
        if notebook in given:
            give_reference(root, target, module, RELEASED)
        elif how_given(reference) == RELEASED:
            reference.unlink()


def give_reference(root: Path, target: Path, module: str, how: str) -> None:
    """Put a module of the reference into a student's package; its first line says whose it is and how it came there."""
    text = (root / PACKAGE / f"{module}.py").read_text(encoding="utf-8")
    notebook = written_by(root / PACKAGE)[module]
    first = f"{REFERENCE_OF}{notebook}, {how}: your own comes before it as soon as you build it.\n"
    _write(target / REFERENCES / f"{module}.py", first + text.partition("\n")[2])


def references_for(root: Path, packages: Sequence[Path], named: str | None) -> list[str]:
    """Return the notebooks whose reference belongs into a student's package.

    Parameters
    ----------
    root
        The course.
    packages
        Students' packages, as earlier releases may have left them.
    named
        Such as ``"01,03-05,latency"``, ``"all"`` or ``"none"``: exactly these. Otherwise those whose due date has
        passed, and those released in one of the packages: what students have been given is not taken away by the way.
    """
    known = sorted(set(written_by(root / PACKAGE).values()))
    if named is not None:
        return [] if named == "none" else known if named == "all" else _chosen(named, known)
    there = {
        notebook
        for package in packages
        if is_students(package)
        for name, notebook in written_by(package).items()
        if how_given(package / REFERENCES / f"{name}.py") == RELEASED
    }
    return [name for name in known if name in there | overdue(root)]


def _chosen(named: str, known: Sequence[str]) -> list[str]:
    chosen = set[str]()
    for part in named.split(","):
        first, dash, last = part.strip().partition("-")
        low, high = ([name for name in known if _is_meant(each, name)] for each in (first, last if dash else first))
        if not low or not high:
            raise ValueError(f"no module is called {part.strip()!r}; there are {', '.join(known)}")
        chosen |= {name for name in known if low[0] <= name <= high[-1]}  # a number means its optional notebook, too
    return sorted(chosen)


def _is_meant(word: str, notebook: str) -> bool:
    return word in (notebook, *notebook.split("_", 1)) or (word.isdigit() and word.zfill(2) == notebook[:2])


def overdue(root: Path) -> set[str]:
    """Return the assignments whose due date in the gradebook has passed."""
    address = gradebook_url(root)
    if address.startswith("sqlite:///") and not Path(address.removeprefix("sqlite:///")).is_file():
        return set()
    from nbgrader.api import Gradebook

    with Gradebook(address, COURSE_ID) as gradebook:
        due = {each.name: each.duedate for each in gradebook.assignments}
    now = datetime.now(UTC).replace(tzinfo=None)  # nbgrader keeps naive times in UTC
    return {name for name, when in due.items() if when is not None and when < now}


def _face(text: str, notebooks: dict[str, str]) -> str:
    _, _, rest = text.partition("\n")
    return FACE + rest + GROWING.format(references=REFERENCES, notebooks=notebooks)


def _write(path: Path, content: str | bytes) -> None:
    """Write a file, unless it holds exactly this."""
    data = content.encode() if isinstance(content, str) else content
    if not path.is_file() or path.read_bytes() != data:
        write_atomically(path, data)


def status(folder: Path) -> list[tuple[str, str]]:
    """Return for each module of a student's package whose code it is."""
    package = folder / PACKAGE
    if not is_students(package):
        raise FileNotFoundError(f"{folder} holds no student's package yet; run `autograder release`")
    modules: dict[str, list[str]] = {}
    for module, notebook in written_by(package).items():
        modules.setdefault(notebook, []).append(module)
    extra = optional(modules)
    return [
        (notebook, _whose(package, names) + (", optional" if notebook in extra else ""))
        for notebook, names in sorted(modules.items())
    ]


def _whose(package: Path, modules: Iterable[str]) -> str:
    if any(is_own(package / f"{name}.py") for name in modules):
        return "yours"
    given = [how for name in modules if (how := how_given(package / REFERENCES / f"{name}.py"))]
    return f"reference, {given[0]}" if given else "not built yet"


def borrow(folder: Path, named: str, *, force: bool = False) -> str:
    """Put the reference of a module into the package of someone who studies alone, and return what happened.

    `named` may mean several, see `references_for`.
    """
    package, root = folder / PACKAGE, folder.parent
    if not is_students(package):
        raise FileNotFoundError(f"{folder} holds no student's package yet; run `autograder release`")
    written = written_by(package)
    chosen = _chosen(named, sorted(set(written.values())))
    modules = [name for name, notebook in written.items() if notebook in chosen]
    own = [package / f"{name}.py" for name in modules if is_own(package / f"{name}.py")]
    missing = [name for name in modules if not how_given(package / REFERENCES / f"{name}.py")]
    if own and not force:
        raise ValueError(f"{written[own[0].stem]} is already yours; --force puts yours aside and takes the reference")
    if missing and not (root / MODULES).is_dir():
        raise ValueError(
            f"the reference of {written[missing[0]]} is not in this folder: ask your instructor, who can publish it; "
            "then `git pull` brings it"
        )
    for name in missing:
        give_reference(root, package, name, f"borrowed on {time.strftime('%Y-%m-%d')}")
    for path in own:
        os.replace(path, path.with_name(f"{path.name}.backup"))
    aside = f"; yours is in {', '.join(f'{path.name}.backup' for path in own)}" if own else ""
    return (
        "\n".join(f"{name}: {_whose(package, [m for m in modules if written[m] == name])}" for name in chosen) + aside
    )

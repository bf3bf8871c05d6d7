"""The files that a submission can read while it is graded, and the files that it must not find."""

from __future__ import annotations

import importlib.util
import marshal
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType

import tinybench
from autograder.course.assignment import Assignment
from autograder.course.export import EXPORTED
from autograder.course.notebook import BEGIN_SOLUTION, END_SOLUTION, cells_of, module_name, parse_notebook
from autograder.sandbox.bubblewrap import Mounts
from autograder.sandbox.leak_probe import Forbidden, verify

PACKAGE = Path(str(tinybench.__file__)).parent
UNCHECKED = (1).to_bytes(4, "little")  # PEP 552: do not compare file times, which differ in the sandbox
TELLING = 200  # characters; a shorter text may also occur elsewhere by chance


def shown_modules(name: str) -> list[Path]:
    """Return the files of `tinybench` that a notebook may import: handwritten files and earlier notebooks' modules."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if _notebook(path) < name]


def graded_modules(name: str) -> list[Path]:
    """Return the modules that a notebook exports. The module with the notebook's own name comes last."""
    own = [path for path in sorted(PACKAGE.glob("*.py")) if _notebook(path) == name]
    return sorted(own, key=lambda path: path.stem == module_name(Path(name)))


def hidden_modules(name: str) -> list[Path]:
    """Return the modules that this notebook and later notebooks export."""
    return sorted(set(PACKAGE.rglob("*.py")).difference(shown_modules(name)))


def mounts_of(assignment: Assignment, laid_out: Path) -> tuple[Mounts, list[str]]:
    """Return the mounts for an assignment, and the paths of its data files inside the sandbox.

    Data files and byte code are first written to the folder `laid_out`.
    """
    files = {f"/course/tinybench/{path.relative_to(PACKAGE)}": path for path in shown_modules(assignment.name)}
    files |= _compiled(files, Path(laid_out, ".compiled"))
    files |= {f"/course/data/{path.relative_to(laid_out)}": path for path in assignment.lay_out(laid_out)}
    tops = dict.fromkeys(f"/course/data/{name.partition('/')[0]}" for name, _ in assignment.data)
    folder = f"/course/{assignment.name}"
    return Mounts(files, [folder], working_directory=folder), list(tops)


def _compiled(files: Mapping[str, Path], into: Path) -> dict[str, Path]:
    """Compile modules, so that no submission has to.

    Return the byte-code files, keyed by their paths in the sandbox.
    """
    compiled = {}
    into.mkdir(exist_ok=True)
    for number, (place, path) in enumerate(files.items()):
        # uses this machine's cached byte code, if there is any
        code = SourceFileLoader("module", str(path)).get_code("module")
        assert code is not None, "a file of Python has code"
        file = into / f"{number}.pyc"
        file.write_bytes(MAGIC_NUMBER + UNCHECKED + bytes(8) + marshal.dumps(_placed(code, place)))
        compiled[importlib.util.cache_from_source(place)] = file
    return compiled


def _placed(code: CodeType, place: str) -> CodeType:
    """Return a copy of a code object with `place` as its file name, so that it contains no path of this machine."""
    inner = tuple(_placed(each, place) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=place, co_consts=inner)


def probe(assignment: Assignment, course: Path) -> None:
    """Raise `SandboxUnavailable` if a program inside the sandbox finds anything that submissions must not read."""
    with tempfile.TemporaryDirectory() as folder:
        must_not = replace(forbidden(assignment), paths=[str(course.resolve())])
        verify(mounts_of(assignment, Path(folder))[0], must_not)


def forbidden(assignment: Assignment) -> Forbidden:
    """Return the files, names and texts that submissions of an assignment must not find."""
    source = parse_notebook(assignment.notebook, assignment.name)
    parts = [part for cell in cells_of(source) for part in cell.source.split(BEGIN_SOLUTION)[1:]]
    solutions = [part.partition(END_SOLUTION)[0].strip() for part in parts]
    texts = {f"solution {number}": text for number, text in enumerate(solutions, start=1) if len(text) >= TELLING}
    names = (f"{assignment.name}.ipynb", "gradebook.db", "nbgrader_config.py")
    return Forbidden(hidden_modules(assignment.name), names, texts)


def _notebook(path: Path) -> str:
    """Return the name of the notebook that exported a module, or "" if the module is handwritten."""
    with path.open(encoding="utf-8") as file:
        line = file.readline()
    return Path(line.removeprefix(EXPORTED).partition(":")[0]).stem if line.startswith(EXPORTED) else ""

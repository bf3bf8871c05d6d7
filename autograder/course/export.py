"""The export of notebook cells tagged `export` to Python modules that read as if written by hand.

The course does not use nbdev for this, because nbdev keeps solution markers and may write a broken module and still
exit with 0.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from autograder.course.exported_statements import Module, Piece, read_modules
from autograder.course.notebook import NotebookError, chosen, course_notebooks
from autograder.course.ruff_checks import tidy_modules, undefined
from tinybench.course.pieces import EXPORTED as EXPORTED

HEADER = EXPORTED + "modules/{name}/{name}.ipynb: edit the notebook, not this file.\n"
PACKAGE_HEADER = '# Written by "autograder export": the public names of the package.\n'
# The public names of handwritten modules, and the function that `%load_ext tinybench` calls
MORE_PUBLIC = {
    "support.comparisons.verdict": ("Comparison", "Gate"),
    "support.footprint.first_calls": ("memory_stages",),
    "support.profiling.what_if_experiment": ("in_order",),
    "support.reports.frontier_figure": ("plot_pareto_frontier",),
    "support.rounds.checked_calls": ("arguments",),
    "tools.study.int8_study": ("tradeoff_study",),
}
EXTENSION = {"shell.magic": ("load_ipython_extension",)}
PACKAGE = '''{header}
"""Benchmarks of machine-learning inference that can be trusted."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
{typed}

__version__ = "{version}"

__all__ = {names}

_HOMES = {homes}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            from tinybench.support.basics.type_checks import checked  # late: `import tinybench` loads no NumPy

            return checked(getattr(import_module(f"tinybench.{{home}}"), name))
    raise AttributeError(f"module 'tinybench' has no attribute {{name!r}}")


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
'''


def export_notebook(notebook: Path, header: str | None = None) -> dict[str, str]:
    """Return the text of each module that a notebook exports, by the module's name.

    Each text begins with `header`. By default, this line names the notebook in the course.

    Raises
    ------
    NotebookError
        If `read_modules` raises it, or if a cell uses an undefined name. Without `header`, also if an import is not
        used.
    """
    modules = read_modules(notebook)
    if not modules:
        raise NotebookError(notebook, None, "no cell is tagged export")
    return tidy_modules(_sources(modules, header))


def _sources(modules: Sequence[Module], header: str | None = None) -> dict[str, str]:
    """Return the unformatted text of each module, by the module's name."""
    missing = _missing_names(modules)
    texts: dict[str, str] = {}
    for notebook in dict.fromkeys(module.notebook for module in modules):
        theirs = [module for module in modules if module.notebook == notebook]
        if header is None:  # a student need not use every given import
            _refuse_unused_imports(theirs[0], {name for module in theirs for name in missing[module.name]})
        lines = {module.name: _imports(module, missing[module.name], theirs) for module in theirs}
        _refuse_cycles(notebook, lines)
        top = HEADER.format(name=notebook.stem) if header is None else header
        texts |= {m.name: _text(m, top, lines[m.name]) for m in theirs}
    return texts


def _text(module: Module, header: str, imports: Iterable[str]) -> str:
    future = {p.source for p in module.imports if getattr(p.node, "module", "") == "__future__"}
    parts = [p.source for p in module.docstring], future, imports, [""], (p.source for p in module.body)
    return "\n".join([header, *(text for part in parts for text in part), ""])


def _missing_names(modules: Sequence[Module]) -> dict[str, set[str]]:
    """Return the names that each module uses but does not define."""
    missing: dict[str, set[str]] = {module.name: set() for module in modules}
    named = {module.name: module for module in modules}
    for file, code, message in undefined({m.name: _text(m, "", ()) for m in modules}):
        word = re.findall(r"`([\w.]+)`", message)[0]
        if code != "F821":
            raise NotebookError(
                named[file].notebook, _last_use(named[file].body, word), f"{message}; rename one of them"
            )
        missing[file].add(word)
    return missing


def _last_use(pieces: Sequence[Piece], word: str) -> str | None:
    return next((p.cell for p in reversed(pieces) if re.search(rf"\b{re.escape(word)}\b", p.source)), None)


def _bound(alias: ast.alias) -> str:
    """Return the name that an import binds."""
    return alias.asname or alias.name.partition(".")[0]


def _statements(piece: Piece) -> list[ast.Import | ast.ImportFrom]:
    """Return the imports of a `Piece`: the statement itself, or the statements inside ``if TYPE_CHECKING``."""
    inner = piece.node.body if isinstance(piece.node, ast.If) else [piece.node]
    return [node for node in inner if isinstance(node, ast.Import | ast.ImportFrom)]


def _refuse_unused_imports(module: Module, missing: set[str]) -> None:
    for piece in module.imports:
        for node in _statements(piece):
            for alias in node.names:
                used = _bound(alias) in missing | {"annotations", "TYPE_CHECKING"}
                if not used:
                    raise NotebookError(
                        module.notebook, piece.cell, f"`{alias.name}` is imported but not used; remove it"
                    )


def _imports(module: Module, missing: set[str], theirs: Sequence[Module]) -> dict[str, str | None]:
    """Return a module's import lines.

    Each line is mapped to the module of the same notebook that the line loads at run time, or to None.
    """
    written, typed = _written_imports(module, missing)
    lines: dict[str, str | None] = dict.fromkeys(written)
    rest = missing - {_bound(alias) for piece in module.imports for node in _statements(piece) for alias in node.names}
    runs = set().union(*(piece.needed_to_run for piece in module.body)) if rest else set()
    for other in theirs:
        for name in sorted(rest.intersection(other.names)):
            line = f"from tinybench.{other.name} import {name}"
            if name in runs:
                lines[line] = other.name
            else:
                typed.append(line)
            rest.remove(name)
    for name in sorted(rest):
        why = f"Undefined name `{name}`; import or define it in an export cell"
        raise NotebookError(module.notebook, _last_use(module.body, name), why)
    if typed:
        lines["from typing import TYPE_CHECKING"] = None
        lines["if TYPE_CHECKING:\n    " + "\n    ".join(typed)] = None
    return lines


def _written_imports(module: Module, missing: set[str]) -> tuple[list[str], list[str]]:
    """Return a notebook's import lines for names that a module needs: one list for run time, one for types only."""
    lines: list[str] = []
    typed: list[str] = []
    for piece in module.imports:
        for node in _statements(piece):
            names = [alias for alias in node.names if _bound(alias) in missing]
            if isinstance(piece.node, ast.If):
                typed += [_only(node, names)] if names else []
            elif len(names) == len(node.names):
                lines.append(piece.source)
            elif names:
                comment = re.search(r"  #.*$", piece.source)
                lines.append(_only(node, names) + (comment.group() if comment else ""))
    return lines, typed


def _only(node: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> str:
    if isinstance(node, ast.Import):
        return ast.unparse(ast.Import(names))
    return ast.unparse(ast.ImportFrom(node.module, names, node.level))


def _refuse_cycles(notebook: Path, lines: Mapping[str, Mapping[str, str | None]]) -> None:
    needs = {name: {other for other in theirs.values() if other} for name, theirs in lines.items()}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        ring = error.args[1]
        through = [line for name in ring for line, other in lines[name].items() if other in ring]
        why = f"{' and '.join(sorted(set(ring)))} import each other: {'; '.join(dict.fromkeys(through))}"
        raise NotebookError(notebook, None, f"{why}; pass one as an argument") from None


def course_modules(notebooks: Iterable[Path], by_hand: Iterable[str] = ()) -> dict[str, Module]:
    """Return every module that the notebooks export, by name. A notebook need not have any export cells.

    Parameters
    ----------
    by_hand
        The names of the package's handwritten modules, which no notebook may write.

    Raises
    ------
    NotebookError
        If two notebooks would write the same file, or if a notebook would write a file that is written by hand. Also if
        a name is defined in two files of one notebook, is public in two modules, or is also the name of a module.
    """
    found: dict[str, Module] = {}
    hand, homes = set(by_hand), dict[str, str]()
    for notebook in notebooks:
        seen: dict[str, str] = {}
        for module in read_modules(notebook):
            file = f"tinybench/{module.name}.py"
            if module.name in hand:
                raise NotebookError(notebook, None, f"writes {file}, which is written by hand; rename the target")
            if module.name in found:
                raise NotebookError(
                    notebook, None, f"writes {file}, and so does {found[module.name].notebook}; rename one"
                )
            found[module.name] = module
            for where, names in ((seen, module.names), (homes, module.public)):
                for name in names:
                    if where.setdefault(name, module.name) != module.name:
                        raise NotebookError(
                            notebook, None, f"{name} is in {where[name]} and in {module.name}; rename one"
                        )
    for module in found.values():
        for name in hand.union(found).intersection(module.names):
            raise NotebookError(module.notebook, None, f"{name} is the name of a module, too; rename one")
    return found


def package_init(public: Mapping[str, Sequence[str]], version: str) -> str:
    """Return the unformatted text of the package's ``__init__.py``, which imports each public name on first use."""
    homes = {home: tuple(sorted(names)) for home, names in sorted(public.items()) if names}
    return PACKAGE.format(
        header=PACKAGE_HEADER,
        typed="\n".join(f"    from tinybench.{home} import {', '.join(names)}" for home, names in homes.items())
        or "    pass",
        version=version,
        names=[name for names in homes.values() for name in names],
        homes={**homes, **EXTENSION},
    )


def export_course(root: Path, only: Sequence[str] = ()) -> dict[Path, str]:
    """Return the text of every file that the course's notebooks export, and of ``__init__.py``, by path.

    Parameters
    ----------
    root
        The course's folder.
    only
        The notebooks to export, see `autograder.course.notebook.chosen`. By default, all notebooks. A notebook without
        export cells, such as ``17_olympics``, writes no file.

    Raises
    ------
    NotebookError
        Under the same conditions as in `export_notebook` and `course_modules`.
    """
    package = root / "tinybench"
    notebooks = list(course_notebooks(root))
    names = chosen(only, (notebook.stem for notebook in notebooks))
    modules = course_modules(notebooks, by_hand(package))
    wanted = [module for module in modules.values() if not only or module.notebook.stem in names]
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    public: dict[str, Sequence[str]] = {module.name: module.public for module in modules.values()}
    homes = {home: Path(package, *home.split(".")).with_suffix(".py") for home in MORE_PUBLIC}
    public |= {home: MORE_PUBLIC[home] for home, file in homes.items() if file.is_file()}
    face = package_init(public, version)
    texts = tidy_modules(_sources(wanted) | {"__init__": face})
    return {package / f"{name}.py": text for name, text in texts.items()}


def by_hand(package: Path) -> list[str]:
    """Return the names of a package's handwritten modules and of its subpackages."""
    files = (path for path in package.glob("*.py") if not path.read_text(encoding="utf-8").startswith(EXPORTED))
    return [path.stem for path in files if path.stem != "__init__"] + [
        path.parent.name for path in package.glob("*/__init__.py")
    ]


def changed_files(files: dict[Path, str]) -> list[Path]:
    """Return the files that do not exist on disk, or whose text on disk differs from the text in `files`."""
    return [path for path, text in files.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]

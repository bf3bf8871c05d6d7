"""Notebooks → package: the cells tagged `export`, as one module that reads as if written by hand."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.course.notebook import (
    NotebookError,
    course_notebooks,
    is_export,
    label,
    module_name,
    read_notebook,
    without_solution_markers,
)

HEADER = '# Written by "autograder export" from modules/{name}/{name}.ipynb: edit the notebook, not this file.\n'
PACKAGE_HEADER = '# Written by "autograder export": the public names of every exported module.\n'
UNSHADOWED = '''

class _Package(ModuleType):
    """A package in which importing a module does not hide the function of the same name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and _HOMES.get(name) == name):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
'''
EXTENSION = {"load_ipython_extension": "magic"}  # `%load_ext tinybench`, written by hand
PURE_CALLS = {"MappingProxyType", "NewType", "Path", "TypeVar", "frozenset", "namedtuple", "re.compile"}
STYLE = (
    "line-length = 120",
    "format.skip-magic-trailing-comma = true",
    "lint.isort.split-on-trailing-comma = false",
    'lint.isort.known-first-party = ["tinybench"]',
)
_MAGIC = re.compile(r"^\s*[%!?]\S*|^\s*\w+\s*=\s*[%!]\S*", re.M)


@dataclass
class _Piece:
    """A top-level statement of an export cell, with the comment lines above it."""

    cell: str
    source: str
    node: ast.stmt


def export_source(notebook: Path, header: str | None = None) -> str:
    """Return the module that a notebook's export cells make up.

    Raises
    ------
    NotebookError
        If a cell holds a syntax error, a magic, a statement with side effects, a method of a class that is not
        there, or a name nothing defines.
    """
    pieces = [piece for cell, source in _export_cells(notebook) for piece in _pieces(notebook, cell, source)]
    if not pieces:
        raise NotebookError(notebook, None, "no cell is tagged export")
    imports = [p for p in pieces if isinstance(p.node, ast.Import | ast.ImportFrom | ast.If)]
    body = [p for p in pieces if p not in imports]
    docstring = [p for p in body if isinstance(p.node, ast.Expr)]
    if len(docstring) > 1:
        raise NotebookError(notebook, docstring[1].cell, "a second module docstring; keep the first")
    body = _with_methods_in_place(notebook, [p for p in body if p not in docstring])
    names = sorted(name for p in body for name in _public_names(p.node))
    text = "\n".join(
        [
            header if header is not None else HEADER.format(name=notebook.stem),
            *(p.source for p in docstring),
            *sorted(dict.fromkeys(p.source for p in imports), key=_import_order),
            "__all__ = [" + ", ".join(f'"{name}"' for name in names) + "]",
            *(p.source for p in body),
        ]
    )
    _refuse_unknown_names(notebook, text)
    return _ruff(["format", "-"], _ruff(["check", "--select", "I,RUF022", "--fix", "-"], text + "\n"))


def _import_order(source: str) -> int:
    return 0 if "__future__" in source else 2 if source.startswith("if ") else 1


def _export_cells(notebook: Path) -> Iterable[tuple[str, str]]:
    for index, cell in enumerate(read_notebook(notebook).cells):
        if is_export(cell):
            yield label(cell, index), without_solution_markers(cell.source)


def _pieces(notebook: Path, cell: str, source: str) -> list[_Piece]:
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        magic = _MAGIC.search(source)
        why = f"line {error.lineno}: {error.msg}: {(error.text or '').strip()!r}"
        if magic:
            why = f"the magic {magic.group().strip()!r} is not Python; move it to a cell without the export tag"
        raise NotebookError(notebook, cell, why) from None
    lines, pieces, start = source.splitlines(), [], 0
    for node in tree.body:
        _refuse_side_effects(notebook, cell, node)
        end = node.end_lineno or 0
        pieces.append(_Piece(cell, "\n".join(lines[start:end]).strip("\n"), node))
        start = end
    return pieces


def _refuse_side_effects(notebook: Path, cell: str, node: ast.stmt) -> None:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            calls = [n for n in ast.walk(value) if isinstance(n, ast.Call)] if value else []
            if all(ast.unparse(call.func) in PURE_CALLS for call in calls):
                return
        case ast.Expr(value=ast.Constant(value=str())):
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=[]):
            return
    raise NotebookError(
        notebook,
        cell,
        f"line {node.lineno}: `{ast.unparse(node).splitlines()[0]}` would run on import; "
        "put it into a function, or into a cell without the export tag",
    )


def _method_owner(node: ast.stmt) -> str | None:
    """Return C for a function decorated with ``@add_to_class(C)``."""
    for decorator in getattr(node, "decorator_list", []):
        match decorator:
            case ast.Call(func=ast.Name(id="add_to_class"), args=[ast.Name(id=owner)]):
                return owner
    return None


def _with_methods_in_place(notebook: Path, pieces: Sequence[_Piece]) -> list[_Piece]:
    methods: dict[str, list[_Piece]] = defaultdict(list)
    rest: list[_Piece] = []
    for piece in pieces:
        owner = _method_owner(piece.node)
        (methods[owner] if owner else rest).append(piece)
    classes = {p.node.name for p in rest if isinstance(p.node, ast.ClassDef)}
    for owner, missing in methods.items():
        if owner not in classes:
            raise NotebookError(
                notebook, missing[0].cell, f"add_to_class({owner}), but no export cell defines a class {owner}"
            )
    for piece in rest:
        if isinstance(piece.node, ast.ClassDef):
            bodies = [_indented(notebook, method) for method in methods[piece.node.name]]
            piece.source = "\n\n".join([piece.source, *bodies])
    return rest


def _indented(notebook: Path, method: _Piece) -> str:
    source = re.sub(r"^@add_to_class\(.*\)\n", "", method.source, count=1, flags=re.M)
    for node in ast.walk(method.node):
        if isinstance(node, ast.JoinedStr | ast.Constant) and node.end_lineno != node.lineno:
            is_docstring = isinstance(node, ast.Constant) and node.value == ast.get_docstring(method.node, clean=False)  # type: ignore[arg-type]
            if not is_docstring:
                raise NotebookError(
                    notebook,
                    method.cell,
                    f"line {node.lineno}: a string over several lines would change inside the class",
                )
    return "\n".join("    " + line if line.strip() else "" for line in source.splitlines())


def _public_names(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            names = [name]
        case ast.Assign(targets=targets):
            names = [t.id for t in targets if isinstance(t, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            names = [name]
        case _:
            names = []
    return [name for name in names if not name.startswith("_")]


def _ruff(arguments: list[str], text: str, *, check: bool = True) -> str:
    # --isolated: the same text on every machine, whatever folder this is called from
    own = [option for line in STYLE for option in ("--config", line)]
    command = [sys.executable, "-m", "ruff", *arguments, "--isolated", "--quiet", *own]
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if check and run.returncode:
        raise RuntimeError(f"ruff {arguments[0]} failed: {run.stderr or run.stdout}")
    return run.stdout


def _refuse_unknown_names(notebook: Path, text: str) -> None:
    found = _ruff(["check", "--select", "F821,F401,F811", "--output-format", "concise", "-"], text, check=False)
    for line in found.splitlines():
        match = re.search(r"(F\d+) (?:\[\*\] )?(.*)", line)
        if not match:
            continue
        name = re.search(r"`(?:.*\bas )?([\w.]+)`", match.group(2))
        word = name.group(1).rpartition(".")[2] if name else ""
        cells = [cell for cell, source in _export_cells(notebook) if re.search(rf"\b{re.escape(word)}\b", source)]
        hint = {"F821": "import or define it in an export cell", "F401": "remove it", "F811": "rename one of them"}
        raise NotebookError(notebook, cells[-1] if cells else None, f"{match.group(2)}; {hint[match.group(1)]}")


def targets(notebooks: Iterable[Path]) -> dict[str, Path]:
    """Map each exported module name to its notebook; a notebook without export cells has no target.

    Raises
    ------
    NotebookError
        If two notebooks would write the same file.
    """
    found: dict[str, Path] = {}
    for notebook in notebooks:
        name = module_name(notebook)
        if not name.isidentifier():
            raise NotebookError(notebook, None, "its name must be NN_name, name being a Python identifier")
        if not any(is_export(cell) for cell in read_notebook(notebook).cells):
            continue
        if name in found:
            raise NotebookError(notebook, None, f"writes tinybench/{name}.py, and so does {found[name]}; rename one")
        found[name] = notebook
    return found


def package_init(modules: dict[str, str], version: str) -> str:
    """Return the package's ``__init__.py``: every public name, imported on first use.

    Parameters
    ----------
    modules
        Source of each exported module by name, in course order.
    version
        The distribution's version.
    """
    homes: dict[str, str] = {}
    for module, source in modules.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                for name in ast.literal_eval(node.value):
                    if name in homes:
                        raise ValueError(f"{name} is public in tinybench.{homes[name]} and in tinybench.{module}")
                    homes[name] = module
    typed = [f"    from tinybench.{home} import {name} as {name}" for name, home in homes.items()]
    shadowed = any(name == home for name, home in homes.items())
    text = f'''{PACKAGE_HEADER}
"""Benchmarks of machine-learning inference that can be trusted."""

{"import sys" if shadowed else ""}
from importlib import import_module
{"from types import ModuleType" if shadowed else ""}
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
{chr(10).join(typed)}

__version__ = "{version}"

_HOMES = {{{", ".join(f'"{name}": "{home}"' for name, home in sorted({**homes, **EXTENSION}.items()))}}}

__all__ = [{", ".join(f'"{name}"' for name in sorted(homes))}]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tinybench' has no attribute {{name!r}}")
    return getattr(import_module(f"tinybench.{{_HOMES[name]}}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
{UNSHADOWED if shadowed else ""}'''
    return _ruff(["format", "-"], _ruff(["check", "--select", "I,RUF022", "--fix", "-"], text))


def export_course(root: Path, only: Sequence[str] = ()) -> dict[Path, str]:
    """Return the text of every file the course's notebooks export, by path.

    Parameters
    ----------
    root
        The course.
    only
        Notebooks to export, such as ``03_latency``; the others' files are taken as they are. All when empty. One
        without export cells, such as ``17_olympics``, has no file.

    Raises
    ------
    NotebookError
        See `export_source` and `targets`.
    """
    package = root / "tinybench"
    notebooks = list(course_notebooks(root))
    found = targets(notebooks)
    for name in only:
        if name not in {notebook.stem for notebook in notebooks}:
            raise NotebookError(name, None, f"no such notebook; there are {', '.join(n.stem for n in notebooks)}")
    sources = {}
    for name, notebook in found.items():
        if not only or notebook.stem in only:
            sources[name] = export_source(notebook)
        elif (package / f"{name}.py").is_file():
            sources[name] = (package / f"{name}.py").read_text(encoding="utf-8")
    files = {package / f"{name}.py": source for name, source in sources.items()}
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    files[package / "__init__.py"] = package_init(sources, version)
    return files


def write_atomically(path: Path, text: str) -> None:
    """Write a text file so that a reader sees the old or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def changed_files(files: dict[Path, str]) -> list[Path]:
    """Return those files whose text on disk differs, or that are not there."""
    return [path for path, text in files.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]

"""The statements in a notebook's export cells, and the modules that they form."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.course.notebook import Cell, NotebookError, cells_of, module_name, read_notebook

PURE_CALLS = {"MappingProxyType", "NewType", "Path", "TypeVar", "frozenset", "namedtuple", "re.compile"}
_MAGIC = re.compile(r"^\s*[%!?]\S*|^\s*\w+\s*=\s*[%!]\S*", re.M)


@dataclass
class Piece:
    """A top-level statement of an export cell, with the comment lines above it."""

    cell: str
    source: str
    node: ast.stmt

    @property
    def names(self) -> list[str]:
        """The names that the statement defines."""
        match self.node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                return [] if self.owner else [name]
            case ast.Assign(targets=targets):
                return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                return [name]
        return []

    @property
    def owner(self) -> str | None:
        """The name C if the statement is decorated with ``@add_to_class(C)``, or else None."""
        for decorator in getattr(self.node, "decorator_list", []):
            match decorator:
                case ast.Call(func=ast.Name(id="add_to_class"), args=[ast.Name(id=owner)]):
                    return owner
        return None

    @property
    def needed_to_run(self) -> set[str]:
        """The names that the statement reads outside annotations."""
        nodes = list(ast.walk(self.node))
        notes = [note for n in nodes for note in (getattr(n, "annotation", None), getattr(n, "returns", None)) if note]
        annotated = {id(n) for note in notes for n in ast.walk(note)}
        return {n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in annotated}


@dataclass
class Module:
    """A Python file that is built from a notebook's export cells.

    Attributes
    ----------
    imports
        The imports in all export cells of the notebook, including cells for other files.
    public
        The names that can be imported from the package itself, through its ``__init__.py``.
    """

    name: str
    notebook: Path
    imports: list[Piece]
    docstring: list[Piece] = field(default_factory=list)
    body: list[Piece] = field(default_factory=list)
    public: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The names that the module defines, in order."""
        return [name for piece in self.body for name in piece.names]


def read_modules(notebook: Path) -> list[Module]:
    """Return the modules that a notebook exports: one with the notebook's name, and one for each tag ``export:NAME``.

    Raises
    ------
    NotebookError
        If a cell contains a syntax error, a magic, a statement with side effects, or a method for a class that is not
        defined. Also if a cell's tags are invalid.
    """
    imports: list[Piece] = []
    modules: dict[str, Module] = {}
    for cell in cells_of(read_notebook(notebook)):
        face = cell.tagged("public")
        if not cell.is_export:
            if face:
                raise NotebookError(notebook, cell.id, "tagged public, but not export")
            continue
        target = _target(notebook, cell)
        module = modules.setdefault(target, Module(target, notebook, imports))
        pieces = list(_pieces(notebook, cell.id, cell.code))
        for piece in pieces:
            _keep(module, piece)
        module.public += _public(notebook, cell.id, face, [name for piece in pieces for name in piece.names])
    for module in modules.values():
        module.body = _with_methods_in_place(notebook, module.body)
    return list(modules.values())


def _target(notebook: Path, cell: Cell) -> str:
    """Return the name of the module to which a cell is exported."""
    found = cell.tagged("export")
    target = found[0] or module_name(notebook)
    if len(found) > 1:
        raise NotebookError(notebook, cell.id, "two export tags; a cell goes to one file")
    if not (target.isidentifier() and target.islower()):
        raise NotebookError(
            notebook, cell.id, f"{target!r} cannot be a module: NAME in NN_NAME and export:NAME must be one"
        )
    return target


def _keep(module: Module, piece: Piece) -> None:
    match piece.node:
        case ast.Import() | ast.ImportFrom() | ast.If():
            module.imports.append(piece)
        case ast.Expr() if module.docstring:
            raise NotebookError(module.notebook, piece.cell, "a second module docstring; keep the first")
        case ast.Expr():
            module.docstring.append(piece)
        case _:
            module.body.append(piece)


def _public(notebook: Path, cell: str, face: list[str], names: list[str]) -> list[str]:
    """Return a cell's public names.

    The tag ``public`` makes all names public that have no leading underscore. The tag ``public:NAME`` makes NAME
    public.
    """
    chosen = [name for name in face if name]
    if "" in face:
        chosen += [name for name in names if not name.startswith("_")]
    for name in chosen or ["public" for _ in face]:
        if name not in names:
            raise NotebookError(notebook, cell, f"tagged public, but it does not define {name}")
    return chosen


def _pieces(notebook: Path, cell: str, source: str) -> Iterator[Piece]:
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        magic = _MAGIC.search(source)
        why = f"line {error.lineno}: {error.msg}: {(error.text or '').strip()!r}"
        if magic:
            why = f"the magic {magic.group().strip()!r} is not Python; move it to a cell without the export tag"
        raise NotebookError(notebook, cell, why) from None
    lines, start = source.splitlines(), 0
    for node in tree.body:
        _refuse_side_effects(notebook, cell, node)
        end = node.end_lineno or 0
        yield Piece(cell, "\n".join(lines[start:end]).strip("\n"), node)
        start = end


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
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=[], body=body):
            if all(isinstance(n, ast.Import | ast.ImportFrom) for n in body):
                return
    raise NotebookError(
        notebook,
        cell,
        f"line {node.lineno}: `{ast.unparse(node).splitlines()[0]}` would run on import; "
        "put it into a function, or into a cell without the export tag",
    )


def _with_methods_in_place(notebook: Path, pieces: Sequence[Piece]) -> list[Piece]:
    methods: dict[str, list[Piece]] = defaultdict(list)
    rest: list[Piece] = []
    for piece in pieces:
        (methods[piece.owner] if piece.owner else rest).append(piece)
    classes = {p.node.name: p for p in rest if isinstance(p.node, ast.ClassDef)}
    for owner, theirs in methods.items():
        if owner not in classes:
            why = f"add_to_class({owner}), but no cell that goes to the same file defines a class {owner}"
            raise NotebookError(notebook, theirs[0].cell, why)
        whole = classes[owner]
        whole.source = "\n\n".join([whole.source, *(_indented(notebook, method) for method in theirs)])
        whole.node.body += [method.node for method in theirs]  # type: ignore[attr-defined]
    return rest


def _indented(notebook: Path, method: Piece) -> str:
    source = re.sub(r"^@add_to_class\(.*\)\n", "", method.source, count=1, flags=re.M)
    for node in ast.walk(method.node):
        if isinstance(node, ast.JoinedStr | ast.Constant) and node.end_lineno != node.lineno:
            is_docstring = isinstance(node, ast.Constant) and node.value == ast.get_docstring(method.node, clean=False)  # type: ignore[arg-type]
            if not is_docstring:
                why = f"line {node.lineno}: a string over several lines would change inside the class"
                raise NotebookError(notebook, method.cell, why)
    return "\n".join("    " + line if line.strip() else "" for line in source.splitlines())

"""The prerequisites of notebooks.

Notebook A needs notebook B if a module that A writes imports a module that B writes.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path


def needed_notebooks(package: Path, written: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the prerequisites of each notebook: the other notebooks whose modules it needs, directly or indirectly.

    Parameters
    ----------
    package
        The reference package, which holds every module.
    written
        The name of the notebook that writes each module, by the module's name.
    """
    found: dict[str, set[str]] = {notebook: set() for notebook in written.values()}
    for module, others in needed_modules(package, written).items():
        found[written[module]] |= {written[other] for other in others} - {written[module]}
    return {notebook: sorted(found[notebook]) for notebook in sorted(found)}


def needed_modules(package: Path, modules: Collection[str]) -> dict[str, list[str]]:
    """Return, for each of `modules`, which others of `modules` it imports, directly or through other files."""
    found = {}
    for module in modules:
        reached, left = {module}, [module]
        while left:
            new = _imported(package, left.pop()) - reached
            reached |= new
            left += new
        found[module] = sorted(reached & {*modules} - {module})
    return found


def _imported(package: Path, name: str) -> set[str]:
    """Return the modules of a package that one of its modules imports at the top level."""
    path = package.joinpath(*name.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    names = _names(path, path.stat().st_mtime_ns)
    modules = {each.partition(".")[2] for each in names if each.startswith(f"{package.name}.")}
    places = {module: package.joinpath(*module.split(".")) for module in modules}
    return {module for module, place in places.items() if place.is_dir() or place.with_suffix(".py").is_file()}


@cache
def _names(path: Path, changed: int) -> frozenset[str]:
    """Return the dotted names that a file always imports. The cache is keyed by `changed`, the modification time."""
    found = set[str]()
    for node in _statements(ast.parse(path.read_text(encoding="utf-8")).body):
        names = {alias.name for alias in node.names}
        found |= (
            {str(node.module), *(f"{node.module}.{each}" for each in names)}
            if isinstance(node, ast.ImportFrom)
            else names
        )
    return frozenset(found)


def _statements(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that always run. Leave out imports in functions, for types only, or allowed to fail."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test) != "TYPE_CHECKING":
            yield from _statements([*node.body, *node.orelse])
        elif isinstance(node, ast.Try) and not any(_forgives(handler) for handler in node.handlers):
            yield from _statements(node.body)


def _forgives(handler: ast.ExceptHandler) -> bool:
    """Return whether an exception handler lets the module continue if an import fails."""
    caught = ast.unparse(handler.type) if handler.type else "Exception"
    raises = any(isinstance(node, ast.Raise) for node in handler.body)
    return not raises and any(name in caught for name in ("ImportError", "ModuleNotFoundError", "Exception"))

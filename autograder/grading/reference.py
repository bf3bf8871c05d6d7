"""The reference solution of a graded notebook as one module, without the code that a check judges.

This code consists of pieces. A piece is a function, class or method that the student has to write.
"""

from __future__ import annotations

import ast
import marshal
from collections.abc import Mapping
from functools import lru_cache

ABSENT = "a piece that is judged later in the notebook is needed here: use only what stands above"


def joined(sources: Mapping[str, str]) -> str:
    """Return the source of one module that merges several modules.

    `sources` maps the names of these modules to their sources. A module comes after the modules that it imports.
    """
    body = [node for source in sources.values() for node in ast.parse(source).body]
    kept = [node for node in body if not (isinstance(node, ast.ImportFrom) and node.module in {*sources, "__future__"})]
    return "from __future__ import annotations\n" + ast.unparse(ast.Module(kept, []))


@lru_cache(maxsize=256)
def compiled_without(source: str, module: str, pieces: tuple[str, ...]) -> bytes:
    """Return a module's compiled code without the given pieces, marshalled for the interpreter in the sandbox."""
    return marshal.dumps(compile(without_pieces(source, pieces), f"<{module}>", "exec", optimize=0))


def without_pieces(source: str, pieces: tuple[str, ...]) -> ast.Module:
    """Return a module's syntax tree, changed so that the given functions and methods raise NotImplementedError.

    If a given piece is a class, all its methods raise this error.
    """
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if node.name in pieces or f"{node.name}.{getattr(member, 'name', '')}" in pieces:
                    _empty(member)
        elif getattr(node, "name", "") in pieces:
            _empty(node)
    return ast.fix_missing_locations(tree)


def _empty(node: ast.stmt) -> None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        node.body = [ast.parse(f"raise NotImplementedError({ABSENT!r})").body[0]]

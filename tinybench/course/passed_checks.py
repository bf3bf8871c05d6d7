"""The marks of a notebook, which record the checks that pass with its current code.

A mark also records which version of the student's code passed. A piece is a function, class, method or variable that
the student writes. The file `SEALED`, which a release of the course puts next to a notebook, lists the checks and their
pieces. Without this file, as in grading, no mark is kept.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import re
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

SEALED, PROGRESS = ".explained.json", ".progress.json"
PASSED = re.compile(r"""\bpassed\(\s*["'](\w+)["']""")  # the call at the end of a check
_RUN: dict[str, str] = {}  # by piece, the digest of the cell that defined it last


def read_sealed() -> dict[str, Any]:
    """Return the data in `SEALED`, which a release put next to the notebook in the current folder."""
    return read_json(Path(SEALED))


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty one if the file is missing or holds something else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def about(sealed: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the section and the pieces of each check, in the notebook's order."""
    found: dict[str, dict[str, Any]] = sealed.get("about", {})
    return found


def begin(source: str) -> None:
    """Withdraw marks before a cell runs: of the check in the cell, and of all checks whose pieces the cell changes."""
    if not read_sealed().get("checks"):
        return
    digest, pieces, asked = fingerprint(source), defined(source), set(PASSED.findall(source))
    _RUN.update(dict.fromkeys(pieces, digest))
    changed = {
        check for check, mark in kept().items() if any(_code(mark).get(each, digest) != digest for each in pieces)
    }
    withdraw(asked | changed)


def kept() -> dict[str, Any]:
    """Return the marks in the current folder, by check."""
    found = read_json(Path(PROGRESS)).get("checks")
    return found if isinstance(found, dict) else {}


def note(check: str) -> int:
    """Mark a check of the notebook in the current folder as passed, and return how many checks pass now."""
    sealed = read_sealed()
    checks = list(sealed.get("checks", {}))
    pieces = about(sealed).get(check, {}).get("pieces", [])
    code = {piece: _RUN[piece] for piece in pieces if piece in _RUN}
    marks = {name: mark for name, mark in kept().items() if name in checks}
    marks[check] = {"at": time.time(), "code": code}
    _write(marks, len(checks))
    here = Path.cwd()
    return len(standing(here / f"{here.name}.ipynb", checks, marks))


def withdraw(checks: Iterable[str]) -> None:
    """Withdraw the marks of the given checks."""
    before, gone = kept(), set(checks)
    left = {name: mark for name, mark in before.items() if name not in gone}
    if len(left) < len(before):
        _write(left, len(read_sealed().get("checks", {})))


def _write(marks: Mapping[str, Any], most: int) -> None:
    with contextlib.suppress(OSError):  # no marks are kept in a read-only folder
        Path(PROGRESS).write_text(json.dumps({"checks": marks, "of": most}, indent=1), encoding="utf-8")


def standing(notebook: Path, checks: Collection[str], marks: Mapping[str, Any] | None = None) -> frozenset[str]:
    """Return the checks that pass now.

    A check with a mark passes if the mark is newer than the saved notebook, or if the code of the check's pieces has
    not changed since the mark was made.
    """
    marks = read_json(notebook.with_name(PROGRESS)).get("checks", {}) if marks is None else marks
    marks = {check: marks[check] for check in checks if check in marks}
    try:
        saved, cells = notebook.stat().st_mtime, json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"] if marks else []
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset(marks)
    there: dict[str, set[str]] = {}
    for source in sources:
        for piece in defined(source):
            there.setdefault(piece, set()).add(fingerprint(source))

    def stands(mark: Any) -> bool:
        return _at(mark) >= saved or all(digest in there.get(piece, ()) for piece, digest in _code(mark).items())

    return frozenset(check for check, mark in marks.items() if stands(mark))


def _code(mark: Any) -> dict[str, str]:
    found = mark.get("code") if isinstance(mark, dict) else None  # earlier versions stored only the time
    return found if isinstance(found, dict) else {}


def _at(mark: Any) -> float:
    found = mark.get("at") if isinstance(mark, dict) else None
    return float(found) if isinstance(found, int | float) else 0.0


def fingerprint(source: str) -> str:
    """Return a digest of a cell's code that ignores comment lines and empty lines."""
    lines = [line.rstrip() for line in source.splitlines()]
    code = "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))
    return hashlib.sha256(code.encode()).hexdigest()[:12]


def defined(source: str) -> list[str]:
    """Return the pieces that a cell defines: ``f`` for a top-level name, ``C.f`` for a method added to C."""
    lines = ["" if line.startswith(("%", "!")) else line for line in source.splitlines()]
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError):
        return []
    return [name for node in tree.body for name in _names(node)]


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [f"{owner}.{name}" for owner in _owners(node)] or [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _owners(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[str]:
    return [
        ast.unparse(call.args[0])
        for call in node.decorator_list
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "add_to_class" and call.args
    ]

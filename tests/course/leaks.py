"""A search of what students get for what they are to write, and for hidden checks.

Every solution of two statements, or of 60 characters, is looked for as text without white space in any file, as
statements one after the other in any Python code whatever its layout and comments, and by its names in compiled files.
"""

from __future__ import annotations

import ast
import hashlib
import html
import json
import marshal
import re
import textwrap
import types
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from autograder.course.notebook import (
    BEGIN_HIDDEN,
    BEGIN_SOLUTION,
    END_HIDDEN,
    END_SOLUTION,
    cells_of,
    course_notebooks,
    read_notebook,
    without_solution_markers,
)
from autograder.course.release import stub_solutions

LONG, STATEMENTS = 60, 2
NAMES = 4
Names = tuple[str, ...]
PYC_HEADER = 16  # bytes


class Secrets:
    """What no student may get, by names that a test can print."""

    def __init__(self, root: Path) -> None:
        self.texts: dict[str, str] = {}
        self.bodies: dict[str, str] = {}
        self.codes: dict[Names, str] = {}
        self.begin: dict[str, list[str]] = {}  # the names of bodies by their first statement
        # students get most files and most cells more than once
        self.read: dict[tuple[str, bytes], list[str]] = {}  # by suffix and digest
        self.strings: dict[str, set[str]] = {}
        for path in course_notebooks(root):
            for cell in cells_of(read_notebook(path)):
                name = f"{path.stem}/{cell.id}"
                for text in _regions(cell.source, BEGIN_HIDDEN, END_HIDDEN):
                    self.texts[f"{name} (hidden)"] = _squeezed(text)
                if cell.is_solution:
                    self._add_solution(name, cell.source)
        for path in (root / "autograder" / "checks").glob("m*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef) and len(node.body) >= STATEMENTS:
                    self._add_body(f"{path.name}/{node.name}", node.body)

    def _add_solution(self, name: str, source: str) -> None:
        for number, text in enumerate(_regions(source, BEGIN_SOLUTION, END_SOLUTION)):
            body = ast.parse(text).body
            if len(body) >= STATEMENTS or len(_squeezed(text)) >= LONG:
                self.texts[f"{name}#{number}"] = _squeezed(text)
                self._add_body(f"{name}#{number}", body)
        given = {_names(code) for code in _codes(compile(stub_solutions(source, name), "", "exec"))}
        for code in _codes(compile(without_solution_markers(source), "", "exec")):
            if len(_names(code)) >= NAMES and _names(code) not in given:
                self.codes[_names(code)] = name

    def _add_body(self, name: str, body: list[ast.stmt]) -> None:
        self.bodies[name] = _joined(body)
        first = next(node for node in body if not _is_text(node))
        self.begin.setdefault(_form(first), []).append(name)

    def within(self, folder: Path) -> list[str]:
        """Return what a folder gives away, each with its file."""
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        return [f"{path.relative_to(folder)}: {name}" for path in files for name in self._given_away(path)]

    def _given_away(self, path: Path) -> list[str]:
        key = path.suffix, hashlib.sha256(path.read_bytes()).digest()
        if key not in self.read:
            self.read[key] = sorted(set(self.in_file(path)))
        return self.read[key]

    def in_file(self, path: Path) -> Iterator[str]:
        """Yield the names of what a file gives away."""
        content = path.read_bytes()
        if path.suffix == ".pyc":
            yield from self.in_code(marshal.loads(content[PYC_HEADER:]))
            return
        text = content.decode("utf-8", errors="replace")
        if path.suffix == ".html":
            text = html.unescape(re.sub(r"<[^>]*>", "", text))
        yield from self.in_text(text)
        if path.suffix == ".py":
            yield from self.in_source(text)
        if path.suffix in (".ipynb", ".json"):
            for string in _strings(json.loads(text)):
                if string not in self.strings:
                    self.strings[string] = {*self.in_text(string), *self.in_source(string)}
                yield from self.strings[string]

    def in_text(self, text: str) -> Iterator[str]:
        """Yield what stands in a text, whatever its white space."""
        flat = _squeezed(text)
        return (name for name, secret in self.texts.items() if secret in flat)

    def in_source(self, source: str) -> Iterator[str]:
        """Yield what stands in Python code, whatever its layout."""
        if len(source) < LONG and not set(source) & {"\n", ";"}:
            return  # too little
        lines = source.splitlines()
        try:
            tree = ast.parse("\n".join("pass" if line.startswith(("%", "!")) else line for line in lines))
        except (SyntaxError, ValueError):
            return
        for block in (block for node in ast.walk(tree) for block in _blocks(node)):
            begun = {name for node in block for name in self.begin.get(_form(node), ())}
            joined = _joined(block) if begun else ""
            yield from (name for name in begun if self.bodies[name] in joined)

    def in_code(self, module: types.CodeType) -> Iterator[str]:
        """Yield the cells whose functions stand in compiled code."""
        return (self.codes[names] for code in _codes(module) if (names := _names(code)) in self.codes)


def _regions(source: str, begin: str, end: str) -> Iterator[str]:
    for part in source.split(begin)[1:]:
        yield textwrap.dedent(part.partition(end)[0].rpartition("\n")[0].strip("\n"))


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _joined(body: Iterable[ast.stmt]) -> str:
    """Return statements in one form, without docstrings, so that a part of a block is a part of its text."""
    return "\n".join(["", *(_form(node) for node in body if not _is_text(node)), ""])


@cache
def _form(node: ast.stmt) -> str:
    for inner in ast.walk(node):
        body = getattr(inner, "body", None)
        if isinstance(body, list) and len(body) > 1 and _is_text(body[0]):
            del body[0]
    return ast.dump(node)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield block


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _names(code: types.CodeType) -> Names:
    """Return what compiled code uses by name: its bytes differ with line breaks."""
    return *code.co_varnames, "", *code.co_names


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings of a JSON value; a list of lines is one."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        yield "".join(value)
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)

"""What is done to somebody else's solution to make it look like one's own."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

from tests.grading.students import _helper, _Renamed

# a cell's source, to its new one and what goes into a cell of one's own before it
Disguise = Callable[[str], tuple[str, str]]
PADDING = """
seen_before = []
for step in range(3):
    seen_before.append(step * 2)
if len(seen_before) > 5:
    print('odd', seen_before)
"""
OPPOSITE: dict[type, type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}


def _changed(source: str, change: Callable[[ast.Module], object]) -> str:
    tree = ast.parse(source)
    change(tree)
    return ast.unparse(ast.fix_missing_locations(tree))


def renamed(source: str) -> tuple[str, str]:
    """Give variables other names, and drop comments and layout."""
    return _changed(source, _Renamed().visit), ""


def commented(source: str) -> tuple[str, str]:
    """Put a comment and an empty line above every line that begins a statement, and other docstrings."""
    tree = ast.parse(source)
    starts = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)}
    lines = []
    for number, line in enumerate(source.splitlines(), start=1):
        lines += ["", f"{line[: len(line) - len(line.lstrip())]}# and now step {number}"] if number in starts else []
        lines.append(line)
    return "\n".join(lines).replace('"""', '"""My own words. ', 1), ""


def in_a_helper(source: str) -> tuple[str, str]:
    """Move the whole work into a function in the same cell."""
    split = _helper(source)
    return ("\n\n\n".join(reversed(split)), "") if split else (source, "")


def in_another_cell(source: str) -> tuple[str, str]:
    """Move the whole work into a function in a cell of one's own."""
    return _helper(source) or (source, "")


def moved(source: str) -> tuple[str, str]:
    """Let functions stand in the other order, and their first statement before the last; it need not run."""

    def reorder(tree: ast.Module) -> None:
        tree.body.reverse()
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                start = 1 if ast.get_docstring(function) else 0
                if len(function.body) > start + 2:
                    first = function.body.pop(start)
                    function.body.insert(-1, first)

    return _changed(source, reorder), ""


def padded(source: str) -> tuple[str, str]:
    """Add code that does nothing."""

    def pad(tree: ast.Module) -> None:
        for function in tree.body:
            if isinstance(function, ast.FunctionDef):
                start = 1 if ast.get_docstring(function) else 0
                function.body[start:start] = ast.parse(PADDING).body

    return _changed(source, pad), ""


class _Idioms(ast.NodeTransformer):
    """Other words, sides swapped, everything negated."""

    def visit_If(self, node: ast.If) -> ast.If:
        self.generic_visit(node)
        if not node.orelse:
            node.test, node.body, node.orelse = ast.UnaryOp(ast.Not(), node.test), [ast.Pass()], node.body
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Constant:
        return ast.Constant("that does not work")

    def visit_BinOp(self, node: ast.BinOp) -> ast.BinOp:
        self.generic_visit(node)
        if isinstance(node.op, ast.Add | ast.Mult):
            node.left, node.right = node.right, node.left
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        self.generic_visit(node)
        if len(node.ops) == 1 and type(node.ops[0]) in OPPOSITE:
            return ast.Compare(node.comparators[0], [OPPOSITE[type(node.ops[0])]()], [node.left])
        return node


def reworded(source: str) -> tuple[str, str]:
    """Write the same in other idioms."""
    return _changed(source, _Idioms().visit), ""


class _Steps(ast.NodeTransformer):
    """A variable for what is computed within a call or sum."""

    def __init__(self) -> None:
        self.number = 0

    def _in_steps(self, node: ast.Return | ast.Assign) -> list[ast.stmt]:
        value, steps = node.value, list[ast.stmt]()
        parts = value.args if isinstance(value, ast.Call) else [value.left] if isinstance(value, ast.BinOp) else []
        for part in parts:
            if isinstance(part, ast.Call | ast.BinOp):
                self.number += 1
                steps.append(ast.Assign([ast.Name(f"step_{self.number}", ast.Store())], copy.copy(part)))
                part.__class__, part.__dict__ = ast.Name, {"id": f"step_{self.number}", "ctx": ast.Load()}  # type: ignore[assignment]
        return [*steps, node]

    visit_Return = visit_Assign = _in_steps


def in_steps(source: str) -> tuple[str, str]:
    """Take expressions apart."""
    return _changed(source, _Steps().visit), ""


def thoroughly(source: str) -> tuple[str, str]:
    """All of it at once."""
    for change in (renamed, reworded, in_steps, padded):
        source, _ = change(source)
    return in_another_cell(source)


DISGUISES: dict[str, Disguise] = {
    "byte_for_byte": lambda source: (source, ""),
    **{f.__name__: f for f in (renamed, commented, in_a_helper, in_another_cell)},
    **{f.__name__: f for f in (moved, padded, reworded, in_steps, thoroughly)},
}

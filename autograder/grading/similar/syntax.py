"""The pq-grams of normalised syntax trees, to compare code independently of names, comments and layout.

A pq-gram is a node of the tree together with its parent and two neighbouring children. So a block of code that was
moved keeps nearly all of its grams. See N. Augsten, M. Böhlen, J. Gamper, "Approximate Matching of Hierarchical Data
Using pq-Grams", VLDB 2005.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

ABOVE, BELOW, TOKENS = 2, 2, 4  # p, q, and the number of tokens in a gram of code that does not parse
OWN, TEXT, NONE = "own", "text", "*"
Tree = tuple[str, list["Tree"]]
JUMPS = ast.Return | ast.Raise | ast.Continue | ast.Break
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FLIPPED: dict[type, type[ast.cmpop]] = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}
OPPOSITE: dict[type, type[ast.cmpop]] = {ast.In: ast.NotIn, ast.Is: ast.IsNot, ast.Eq: ast.NotEq}
OPPOSITE |= {other: one for one, other in list(OPPOSITE.items())}
FIXED = {*keyword.kwlist, *dir(builtins)}


def parsed(code: str) -> list[ast.stmt] | None:
    """Return the statements of a cell without IPython's magics, or None if the cell is not valid Python."""
    for text in (code, re.sub(r"(?m)^[ \t]*[%!].*$", "", code)):
        try:
            return ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def defined(statement: ast.stmt) -> set[str]:
    """Return the name of the function or class that a statement defines, or the variables that it assigns."""
    if isinstance(statement, DEFINITIONS):
        return {statement.name}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def used(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names that statements use but do not bind."""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    return {node.id for node in nodes if isinstance(node, ast.Name)} - {name for node in nodes for name in _bound(node)}


def aliases(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return what the aliases in imports stand for: ``{"plt": "pyplot"}`` for ``import matplotlib.pyplot as plt``."""
    found = (node for node in nodes if isinstance(node, ast.alias))
    return {node.asname: node.name.rpartition(".")[2] for node in found if node.asname}


def tree_grams(statements: list[ast.stmt], imported: Mapping[str, str]) -> Counter[int]:
    """Return the pq-grams of statements with their counts. The statements are modified.

    `imported` maps aliases to the names that were imported under them.
    """
    module = ast.Module(body=statements, type_ignores=[])
    labels = _Labels(module, imported)
    return Counter(_grams(labels.tree(_Plain().visit(module))))


def token_grams(code: str) -> Counter[int]:
    """Return the n-grams of a text's tokens with their counts.

    Names other than keywords and builtins count as equal.
    """
    words = re.findall(r"\w+|[^\w\s]", re.sub(r"#.*", "", code))
    tokens = [OWN if word.isidentifier() and word not in FIXED else word for word in words]
    return Counter(_hash(tokens[at : at + TOKENS]) for at in range(len(tokens) - TOKENS + 1))


def _hash(labels: Iterable[str]) -> int:
    return zlib.crc32("\0".join(labels).encode())


def _grams(tree: Tree) -> Iterator[int]:
    waiting = [(tree, [NONE] * (ABOVE - 1))]
    while waiting:
        (label, children), above = waiting.pop()
        stem, edge = [*above, label], [NONE] * (BELOW - 1)
        row = [*edge, *(child[0] for child in children), *edge] if children else [NONE] * BELOW
        for at in range(len(row) - BELOW + 1):
            yield _hash([*stem, *row[at : at + BELOW]])
        waiting += [(child, stem[1:]) for child in children]


class _Plain(ast.NodeTransformer):
    """A transformer that gives equivalent code the same form. The resulting tree need not be runnable."""

    def _none(self, node: ast.AST) -> None:
        """Remove the node."""

    visit_Pass = visit_Import = visit_ImportFrom = visit_Global = visit_Nonlocal = _none

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        defaults = [default for default in node.kw_defaults if default]
        return ast.Tuple(elts=[self.visit(value) for value in [*node.defaults, *defaults]])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> object:
        return self.visit(ast.Assign([node.target], node.value)) if node.value else None

    def visit_AugAssign(self, node: ast.AugAssign) -> object:
        return self.visit(ast.Assign([node.target], ast.BinOp(node.target, node.op, node.value)))

    def visit_Assign(self, node: ast.Assign) -> object:
        match node:
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
                return [self.visit(ast.Assign([left], right)) for left, right in zip(targets, values, strict=True)]
            case ast.Assign([ast.Name()], ast.Lambda(args, body)):
                return self.visit(ast.FunctionDef(OWN, args, [ast.Return(body)], [], None))
        return self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> object:
        if isinstance(choice := node.value, ast.IfExp):
            return self.visit(ast.If(choice.test, [ast.Return(choice.body)], [ast.Return(choice.orelse)]))
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> object:
        _right_way_round(node)
        self.generic_visit(node)
        rest = node.orelse if node.body and isinstance(node.body[-1], JUMPS) else []
        if rest:
            node.orelse = []
        return [node, *rest]

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        _right_way_round(node)
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.UnaryOp(ast.Not(), ast.Compare(left, [operator], right)) if type(operator) in OPPOSITE:
                return ast.Compare(left, [OPPOSITE[type(operator)]()], right)
            case ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), inner)):
                return inner
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1 and type(node.ops[0]) in FLIPPED:
            return ast.Compare(node.comparators[0], [FLIPPED[type(node.ops[0])]()], [node.left])
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self.generic_visit(ast.GeneratorExp(node.elt, node.generators))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.keywords.sort(key=lambda each: each.arg or "")
        match node:
            case ast.Call(ast.Attribute(ast.Constant(str()), "format")):
                return ast.JoinedStr([*node.args, *(each.value for each in node.keywords)])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.BinOp(ast.Constant(str()), ast.Mod(), ast.Tuple(values)):
                return ast.JoinedStr(values)
            case ast.BinOp(ast.Constant(str()), ast.Mod(), value):
                return ast.JoinedStr([value])
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        values = [each.value for each in node.values if isinstance(each, ast.FormattedValue)]
        return ast.JoinedStr([self.visit(value) for value in values])


def _right_way_round(node: ast.If | ast.IfExp) -> None:
    """Turn `if not a: b else: c` into `if a: c else: b`. Do the same for the operators `!=`, `not in` and `is not`."""
    match node.test:
        case ast.UnaryOp(ast.Not(), inner) if node.orelse:
            node.test = inner
        case ast.Compare(ops=[ast.NotEq() | ast.NotIn() | ast.IsNot()] as ops) if node.orelse:
            ops[0] = OPPOSITE[type(ops[0])]()
        case _:
            return
    node.body, node.orelse = node.orelse, node.body


class _Labels:
    """Labels for the nodes of a normalised tree.

    All names that the author chose share one label, and import aliases are replaced by the imported names.
    """

    def __init__(self, module: ast.Module, imported: Mapping[str, str]) -> None:
        nodes = list(ast.walk(module))
        self.imported = {**imported, **aliases(nodes)}
        self.own = {name for node in nodes for name in _bound(node)}
        self.attributes = {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}

    def tree(self, node: ast.AST) -> Tree:
        match node:
            case ast.Name(name):
                return OWN if name in self.own else self.imported.get(name, name), []
            case ast.Attribute(value, name):
                label = OWN if name in self.attributes else name
                return (label, []) if self._foreign(value) else (f".{label}", [self.tree(value)])
            case ast.Constant(value):
                return TEXT if isinstance(value, str | bytes) else repr(value), []
            case ast.keyword(name, value):
                return f"{OWN if name in self.own else name}=", [self.tree(value)]
            case ast.BinOp(left, operator, right) | ast.Compare(left, [operator], [right]):
                sides = [self.tree(left), self.tree(right)]
                if isinstance(operator, ast.Add | ast.Mult | ast.Eq | ast.NotEq):
                    sides.sort()
                return type(operator).__name__, sides
            case ast.BoolOp(operator, values):
                return type(operator).__name__, sorted(map(self.tree, values))
            case ast.JoinedStr(values):
                return TEXT, [self.tree(value) for value in values]
        below = (
            child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context | ast.operator)
        )
        return type(node).__name__, [self.tree(child) for child in below]

    def _foreign(self, node: ast.AST) -> bool:
        """Return whether a node is a name that this code does not define, such as a module, or an attribute of one."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self.own


def _bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(name, ast.Store()) | ast.arg(name) | ast.ExceptHandler(name=str(name)):
            yield name
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name) | ast.MatchAs(name=str(name)):
            yield name

"""The prerequisites of a check: pieces of earlier sections that the check runs but whose own checks have not passed.

A piece is a function, class or method that the student writes.
"""

from __future__ import annotations

import ast
import dis
import fnmatch
import functools
import inspect
import types
from collections.abc import Iterator, Mapping
from typing import Any

from tinybench.course import passed_checks

REPAIR_FIRST = "Make {check} pass first (section “{section}”): it tests {pieces}, which this check uses"


def repair_first(source: str, names: Mapping[str, Any]) -> str:
    """Return a sentence that names an earlier check to repair before a later check, or an empty string.

    The later check may run pieces (functions, classes or methods) that earlier checks test. The sentence names the
    first of these earlier checks that has not passed.

    Parameters
    ----------
    source
        The cell of the later check.
    names
        The names that the notebook defines, with their values.
    """
    checks = passed_checks.about(passed_checks.read_sealed())
    this = next((check for check in passed_checks.PASSED.findall(source) if check in checks), None)
    if this is None:
        return ""
    used, passed = pieces_used(source, names), passed_checks.kept()
    for check in list(checks)[: list(checks).index(this)]:
        pieces = [piece for piece in checks[check]["pieces"] if piece in used]
        if pieces and check not in passed:
            section = checks[check]["section"].replace("`", "")
            return REPAIR_FIRST.format(check=check, section=section, pieces=" and ".join(pieces))
    return ""


def pieces_used(source: str, names: Mapping[str, Any]) -> set[str]:
    """Return the functions, classes and methods of a notebook that a cell may run, directly or through one another."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return set()
    words = {node.id for node in nodes if isinstance(node, ast.Name)}
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    found, left = set[str](), sorted(words | attributes)  # graft(…).piece is an attribute
    members: dict[str, Any] = {}  # members of the classes found, by Class.member
    while left:
        for name in left:
            members |= {f"{name}.{member}": value for member, value in _members(names.get(name)).items()}
        found.update(name for name in left if name in names or name in members)
        for code in [code for name in left for code in _codes(members.get(name, names.get(name)))]:
            for word, is_attribute in _words(code):
                (attributes if is_attribute else words).add(word)
        methods = {name for name in members if _is_special(name) or _is_read(name.rpartition(".")[2], attributes)}
        left = sorted(({word for word in words if word in names} | methods) - found)
    return found


def _members(value: Any) -> Mapping[str, Any]:
    """Return the members of a class that is defined in the notebook, or an empty mapping for any other value."""
    return vars(value) if isinstance(value, type) and value.__module__ == "__main__" else {}


def _is_special(name: str) -> bool:
    """Return whether a method has a special name such as ``__add__``, so that operators or statements call it."""
    return name.endswith("__")


def _is_read(member: str, attributes: set[str]) -> bool:
    """Return whether a member is one of the attributes or matches a pattern among them."""
    return member in attributes or any(fnmatch.fnmatchcase(member, name) for name in attributes if "*" in name)


def _codes(value: Any) -> Iterator[types.CodeType]:
    """Yield the code of a notebook's function, property or method, without wrappers such as ``partial``."""
    value = getattr(value, "__func__", value)
    for part in (value.fget, value.fset) if isinstance(value, property) else (value,):
        while isinstance(part, functools.partial):
            part = part.func
        part = inspect.unwrap(part) if callable(part) else part
        if isinstance(part, types.FunctionType) and part.__module__ == "__main__":
            yield part.__code__


def _words(code: types.CodeType) -> Iterator[tuple[str, bool]]:
    """Yield the global names and the attributes that code reads, and whether each is an attribute.

    The attribute of ``getattr(x, f"run_{metric}_benchmark")`` is yielded as a pattern, ``"*run_*_benchmark*"``.
    """
    parts: list[str] | None = None  # the strings in the call of getattr that is being read
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_METHOD"):
            yield str(step.argval), step.opname in ("LOAD_ATTR", "LOAD_METHOD")
            parts = [] if step.argval == "getattr" else parts
        elif isinstance(step.argval, types.CodeType):
            yield from _words(step.argval)
        elif parts is not None and step.opname == "LOAD_CONST" and isinstance(step.argval, str):
            parts.append(step.argval)
        elif parts and step.opname in ("BUILD_STRING", "BINARY_OP"):
            parts = [f"*{'*'.join(parts)}*"]
        elif step.opname == "CALL":
            yield from [(name, True) for name in (parts or [])[:1]]  # a default may follow the name
            parts = None

"""The library calls the taught functions, CONTRIBUTING lists the exceptions with reasons, and no other code repeats one."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import product

import tinybench
from autograder.grading.similar.syntax import tree_grams
from tests.house import ROOT, files
from tinybench.course.pieces import EXPORTED

HEADING = "## Functions that only a lesson uses"


def taught() -> set[str]:
    """Return the functions that students write, or complete."""
    names = set()
    for notebook in (ROOT / "modules").glob("*/*.ipynb"):
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            about = cell["metadata"]
            is_exported = any(tag.startswith("export") for tag in about.get("tags", ()))
            if is_exported and about.get("nbgrader", {}).get("solution"):
                names |= set(re.findall(r"^def (\w+)", "".join(cell["source"]), re.M))
    return names


def names_in(node: ast.AST) -> set[str]:
    """Return the names that code reads, also those that it imports or hands over as text."""
    found = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            found.add(each.id)
        elif isinstance(each, ast.Attribute):
            found.add(each.attr)
        elif isinstance(each, ast.Call):
            found |= {arg.value for arg in each.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)}
        elif isinstance(each, ast.ImportFrom):
            found |= {alias.name for alias in each.names}
    return found


def not_run() -> set[str]:
    """Return the taught functions that neither a command nor a public name nor the library itself ever reaches."""
    library = files("tinybench")
    exported = {path for path in library if path.read_text(encoding="utf-8").startswith(EXPORTED)}
    homes = defaultdict[str, list[ast.stmt]](list)
    todo = set(tinybench.__all__)
    for path in library:
        if path in exported:
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    homes[node.name].append(node)
                elif not isinstance(node, ast.Import | ast.ImportFrom):
                    todo |= names_in(node)
        elif "course" not in path.parts and path != ROOT / "tinybench" / "__init__.py":
            todo |= names_in(ast.parse(path.read_text(encoding="utf-8")))
    run = set[str]()
    while todo:
        name = todo.pop()
        if name not in run:
            run.add(name)
            for node in homes[name]:
                todo |= names_in(node)
                todo |= {each.name for each in getattr(node, "body", ()) if isinstance(each, ast.FunctionDef)}
    return taught() - run


def table() -> dict[str, str]:
    """Return the functions that CONTRIBUTING says are for the lesson alone, with the reasons."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(f"{HEADING}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \| (.+) \|$", text, re.M)
    return {name: why for names, why in rows for name in re.findall(r"`(\w+)`", names)}


def test_what_is_taught_runs_or_the_table_says_why() -> None:
    assert set(table()) == not_run(), f"{HEADING!r} in CONTRIBUTING lists the taught functions that nothing runs"
    assert all(len(why.split()) > 3 for why in table().values())


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    """Yield the name and the body, without its docstring, of every function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            begins = int(ast.get_docstring(node) is not None)
            yield node.name, ast.Module(node.body[begins:], [])


def twins(taught_code: str, other_code: str) -> list[tuple[str, str]]:
    """Return the functions of students and of others that are the same but for names and layout."""
    mine, others = (
        [(name, tree_grams(body.body, {})) for name, body in functions(ast.parse(code)) if body.body]
        for code in (taught_code, other_code)
    )
    names = taught()
    mine = [(name, grams) for name, grams in mine if name in names and grams.total() >= LEAST]
    return [
        (name, other)
        for (name, grams), (other, its) in product(mine, others)
        if min(grams.total(), its.total()) >= (least := ALIKE * max(grams.total(), its.total()))
        and (grams & its).total() >= least
    ]


LEAST, ALIKE = 36, 0.6  # grams of three lines or so; the share of the longer function's grams that both have


def test_nobody_writes_a_taught_function_again() -> None:
    both = defaultdict[bool, list[str]](list)
    for path in files("tinybench", "autograder/course", "autograder/grading", "autograder/leaderboard"):
        text = path.read_text(encoding="utf-8")
        both[text.startswith(EXPORTED)].append(text.replace("from __future__ import annotations", ""))
    assert twins("\n".join(both[True]), "\n".join(both[False])) == []


def test_a_copy_under_other_names_is_found() -> None:
    code = (ROOT / "tinybench" / "production.py").read_text(encoding="utf-8")
    copy = re.sub(r"\bthreshold|reference\b", "before", code.replace("def psi(", "def stability("))
    assert ("psi", "stability") in twins(code, copy)

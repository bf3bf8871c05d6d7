"""The structure of the house in figures, and its imports as a graph: ``python -m tests.house``.

The figures are those of the changelog: lines, files, the longest file, the public names, the longest chain of imports,
the length of functions.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.run_through import run_through

ROOT = Path(__file__).parents[1]
PACKAGES = ("tinybench", "autograder")
# Late imports of what may be absent: module 15, or the optional 07_toolbox.
MAY_BE_ABSENT = {
    "tinybench.support.rounds.machine_state": "tinybench.machine",
    "tinybench.support.comparisons.optional_toolbox": "tinybench.toolbox",
}


def files(*folders: str, root: Path = ROOT) -> list[Path]:
    """Return the Python files of some folders."""
    return sorted(path for folder in folders for path in (root / folder).rglob("*.py"))


def module(path: Path, root: Path = ROOT) -> str:
    """Return the dotted name of a file."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(node: ast.AST, package: str, paths: Mapping[str, Path]) -> set[str]:
    """Return the modules that an import statement loads, or that a text beside ``import_module`` names."""
    if isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*above, node.module] if node.module else above)
        names = (f"{base}.{alias.name}" for alias in node.names)
        return {name if name in paths else base for name in names} & paths.keys()
    named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [getattr(node, "value", None)]
    return {name for name in named if isinstance(name, str) and name in paths}


@cache
def imports(root: Path = ROOT, packages: tuple[str, ...] = PACKAGES) -> dict[str, set[str]]:
    """Return for each module those of this repository that it imports: also in functions, for types, and by text.

    Those of `MAY_BE_ABSENT` are left out.
    """
    paths = {module(path, root): path for path in files(*packages, root=root)}
    found: dict[str, set[str]] = {}
    for name, path in paths.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        text = path.read_text(encoding="utf-8")
        kinds = (ast.Import, ast.ImportFrom, *((ast.Constant,) if "import_module(" in text else ()))
        nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds))
        wanted = set().union(*(_imported(node, package, paths) for node in nodes))
        found[name] = wanted - {name, MAY_BE_ABSENT.get(name)}
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the circles that a walk along the imports meets."""
    found, done, trail = [], set(), []

    def visit(name: str) -> None:
        if name in trail:
            found.append([*trail[trail.index(name) :], name])
        elif name not in done:
            trail.append(name)
            for other in sorted(graph[name]):
                visit(other)
            trail.pop()
            done.add(name)

    for name in sorted(graph):
        visit(name)
    return found


def longest_chain(graph: dict[str, set[str]]) -> list[str]:
    """Return the longest chain of imports, from the roof down; circles are cut."""
    cut = {(circle[-2], circle[-1]) for circle in circles(graph)}

    @cache
    def below(name: str) -> tuple[str, ...]:
        chains = [below(other) for other in sorted(graph[name]) if (name, other) not in cut]
        return (name, *max(chains, key=len, default=()))

    return list(max((below(name) for name in graph), key=len))


def functions(paths: list[Path]) -> list[int]:
    """Return how many lines each function takes."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in paths]
    return sorted(
        (node.end_lineno or 0) - node.lineno + 1
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def lesson(name: str) -> SimpleNamespace:
    """Return what the students of a lesson write, such as ``"bottleneck"``: the names of its files."""

    def notebook(path: Path) -> str:
        return path.read_text(encoding="utf-8").partition("\n")[0]  # the first line of an exported file names it

    here, names = notebook(ROOT / "tinybench" / f"{name}.py"), dict[str, Any]()
    for path in files("tinybench"):
        if notebook(path) == here:
            names |= vars(import_module(module(path)))
    return SimpleNamespace(**names)


def room_of(name: str) -> str:
    """Return the room of `tinybench` that a module is in: a folder of ``support`` or ``tools``, another folder, or a file."""
    parts = name.split(".")[1:]
    deep = 2 if parts[:1] in (["support"], ["tools"]) else 1
    return ".".join(parts[:deep])


def rooms(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return for each room of `tinybench` the rooms that it imports from."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, others in graph.items():
        if name.startswith("tinybench."):
            found[room_of(name)] |= {room_of(other) for other in others if other.startswith("tinybench.")}
    return {room: others - {room} for room, others in found.items()}


def names_in_two_files(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the public functions and classes of `tinybench` that more than one file defines, with these files."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path in files("tinybench", root=root):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name[0] != "_":
                homes[node.name].append(module(path, root))
    return {name: where for name, where in sorted(homes.items()) if len(where) > 1}


def show_library(root: Path) -> None:
    """Print what `tinybench` consists of."""
    from tinybench.course.pieces import EXPORTED  # late: `make quick` needs only the imports

    kinds: dict[str, list[int]] = {"exported": [], "handwritten": [], "of the course": []}
    for path in files("tinybench", root=root):
        text = path.read_text(encoding="utf-8")
        own = "exported" if text.startswith(EXPORTED) else "handwritten"
        kinds["of the course" if "tinybench/course/" in path.as_posix() else own].append(text.count("\n"))
    print("tinybench: " + "; ".join(f"{len(each)} files {kind}, {sum(each)} lines" for kind, each in kinds.items()))
    print(f"  files at the top: {len(list((root / 'tinybench').glob('*.py')))}")
    graph = rooms(imports(root, ("tinybench",)))
    print(f"  rooms: {len(graph)}, on {len(longest_chain(graph))} floors")
    twice = names_in_two_files(root)
    print(f"  public names in two or more files: {len(twice)}: {', '.join(twice)}")


def main(root: Path = ROOT) -> None:
    """Print the figures."""
    for what, folders in {"tinybench and autograder": PACKAGES, "tests": ("tests",)}.items():
        paths = files(*folders, root=root)
        lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
        longest, lengths = max(paths, key=lambda path: lines[path]), functions(paths)
        print(f"{what}: {sum(lines.values())} lines in {len(paths)} files; longest: {lines[longest]}, {longest.name}")
        print(
            f"  functions: median {statistics.median(lengths):g}, 95th percentile {lengths[len(lengths) * 95 // 100]}"
        )
    show_library(root)
    chain = longest_chain(imports(root))
    print(f"longest chain of imports: {len(chain)}: {' > '.join(chain)}")
    print(f"circles: {len(circles(imports(root)))}")
    init = ast.parse((root / "tinybench" / "__init__.py").read_text(encoding="utf-8"))
    listed = [n for n in init.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"]
    print(f"public names of tinybench: {len(ast.literal_eval(listed[0].value))}")
    for command, (held, run) in run_through(root.resolve()).items():
        print(f"{run} functions in {held} files: tinybench {command}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)

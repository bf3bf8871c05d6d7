"""The structure of the house in figures, and its imports as a graph: ``python -m tests.house``.

The figures are those of the changelog: lines, files, the longest file, the public names, the longest chain of imports,
the length of functions.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("tinybench", "autograder")


def files(*folders: str, root: Path = ROOT) -> list[Path]:
    """Return the Python files of some folders."""
    return sorted(path for folder in folders for path in (root / folder).rglob("*.py"))


def module(path: Path, root: Path = ROOT) -> str:
    """Return the dotted name of a file."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield all statements but those for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        yield from _statements(node)


def imports(root: Path = ROOT, packages: Sequence[str] = PACKAGES) -> dict[str, set[str]]:
    """Return for each module those of this repository that it imports, also within functions."""
    paths = {module(path, root): path for path in files(*packages, root=root)}
    found: dict[str, set[str]] = {}
    for name, path in paths.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        wanted = set()
        for node in _statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                base = ".".join([*above, node.module] if node.module else above)
                wanted |= {f"{base}.{alias.name}" if f"{base}.{alias.name}" in paths else base for alias in node.names}
        found[name] = {other for other in wanted if other in paths and other != name}
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
    chain = longest_chain(imports(root))
    print(f"longest chain of imports: {len(chain)}: {' > '.join(chain)}")
    print(f"circles: {len(circles(imports(root)))}")
    init = ast.parse((root / "tinybench" / "__init__.py").read_text(encoding="utf-8"))
    listed = [n for n in init.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"]
    print(f"public names of tinybench: {len(ast.literal_eval(listed[0].value))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)

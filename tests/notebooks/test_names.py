"""Names of a notebook: no check takes one that the student's code needs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from autograder.course.notebook import cells_of, course_notebooks, read_notebook
from tinybench.course.passed_checks import defined

ROOT = Path(__file__).resolve().parents[2]


def imported(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    return set()


def assigned(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return {node.id for node in names if isinstance(node.ctx, ast.Store)}


@pytest.mark.parametrize("notebook", list(course_notebooks(ROOT)), ids=lambda path: path.stem)
def test_a_check_assigns_no_name_of_the_exported_code(notebook: Path) -> None:
    """Where cells run without IPython, as in `autograder build`, a later check would meet the wrong object."""
    exported = set[str]()
    for cell in (cell for cell in cells_of(read_notebook(notebook)) if cell.kind == "code"):
        if "export" in cell.node.metadata.get("tags", []):
            exported |= {name for name in defined(cell.code) if "." not in name}
            exported |= {name for statement in ast.parse(cell.code).body for name in imported(statement)}
        elif cell.is_check:
            taken = {name for statement in ast.parse(cell.visible).body for name in assigned(statement)}
            assert not taken & exported, f"{cell.id} takes {taken & exported}; give its variables other names"

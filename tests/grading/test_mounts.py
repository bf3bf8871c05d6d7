"""What the sandbox shows of the package while a notebook is graded: nothing that its students are to write."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from autograder.grading.mounts import graded_modules, hidden_modules, shown_modules
from autograder.grading.reference import joined

NAMES = [path.parent.name for path in sorted(Path("modules").glob("*/*.ipynb"))]


def functions(paths: list[Path]) -> set[str]:
    """Return the code of every function with more than one statement."""
    nodes = (node for path in paths for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return {ast.unparse(node) for node in nodes if isinstance(node, ast.FunctionDef) and len(node.body) > 2}


@pytest.mark.parametrize("name", NAMES)
def test_no_file_that_is_shown_holds_a_solution(name: str) -> None:
    assert not functions(graded_modules(name)) & functions(shown_modules(name))


def test_every_file_of_a_notebook_is_hidden_while_it_is_graded() -> None:
    assert [path.stem for path in graded_modules("15_bottleneck")] == ["machine", "sampler", "bottleneck"]
    assert set(graded_modules("15_bottleneck")) <= set(hidden_modules("15_bottleneck"))
    assert set(graded_modules("15_bottleneck")) <= set(shown_modules("16_production"))


def test_several_modules_are_one_reference() -> None:
    sources = {
        "tinybench.first": '"""First."""\nfrom __future__ import annotations\ndef one():\n    return 1\n',
        "tinybench.second": "from tinybench.first import one\nfrom math import pi\ndef two():\n    return 2 * one()\n",
    }
    names: dict[str, object] = {}
    exec(joined(sources), names)
    assert names["two"]() == 2  # type: ignore[operator]
    assert joined({}) == "from __future__ import annotations\n"

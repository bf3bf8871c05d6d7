"""The cells of a submission run as IPython would run them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from autograder.course.notebook import cells_of, course_notebooks, read_notebook
from autograder.sandbox.guest.runner import _Shell, make_shell

ROOT = Path(__file__).resolve().parents[2]
IPYTHONS = [
    "x = 1\n%time x", "x = %time 1", "!ls", "x =  !ls", "a?", "a??  \n", "x  ?", "?x", "  x = 1", "\nx", "/f x", ",f a",
    ";f a", "In [1]: x", "In [2]: for i in x:\n   ...:     pass", ">>> x\n... y", "%%time\nx", "if x:\n    %time 1",
]  # fmt: skip
PLAIN = ["x = 3 # why?", "f'{x=!r}'", "'''\n%time\n'''", "x = (1\n     % 2)", "x != y", "x %= 2", ""]


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    made = make_shell()
    yield made
    _Shell.clear_instance()


def test_cells_become_the_same_python(shell: InteractiveShell) -> None:
    cells = [cell for path in course_notebooks(ROOT) for cell in cells_of(read_notebook(path)) if cell.is_code]
    for source in [*IPYTHONS, *PLAIN, *(text for cell in cells for text in (cell.source, cell.visible))]:
        theirs = InteractiveShell.transform_cell(shell, source)  # type: ignore[no-untyped-call]
        assert shell.transform_cell(source) == theirs  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("source", ["import asyncio\nawait asyncio.sleep(0)", "[x async for x in y]", "x = 'await'"])
def test_a_cell_awaits(shell: InteractiveShell, source: str) -> None:
    assert shell.should_run_async(source, transformed_cell=source) == ("'" not in source)  # type: ignore[no-untyped-call]

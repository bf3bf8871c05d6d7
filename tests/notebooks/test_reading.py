"""No module takes longer than an evening, and its header says how long."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.course.notebook import course_notebooks, read_notebook
from tests.notebooks.reading import ROOT, reading

MOST, APART = 90, 10  # minutes


@pytest.mark.parametrize("notebook", course_notebooks(ROOT), ids=lambda path: path.stem)
def test_the_header_says_how_long_it_takes(notebook: Path) -> None:
    found = reading(read_notebook(notebook))
    assert 0 < found.promised <= MOST
    assert abs(found.promised - found.minutes) <= APART, f"estimated: {found.minutes:.0f} minutes"

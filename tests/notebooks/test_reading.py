"""The core of a module fits an evening, its header says how long it takes, and students write a third of its code."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from autograder.course.notebook import course_notebooks, optional, read_notebook
from tests.notebooks.reading import RANGE, ROOT, Reading, reading

MOST, APART, MOST_HOURS = 75, 5, 16  # minutes, minutes, hours
GIVEN_FOR_ONE_WRITTEN, MOST_GIVEN = 2, 2500  # lines of code
NOTEBOOKS = list(course_notebooks(ROOT))


@cache
def of(notebook: Path) -> Reading:
    return reading(read_notebook(notebook))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_header_says_how_long_it_takes(notebook: Path) -> None:
    found = of(notebook)
    assert found.promised, "the header lacks `about 60 minutes (48 to 78)`"
    assert abs(found.promised[0] - found.minutes) <= APART, f"estimated: {found.minutes:.0f} minutes"
    assert found.promised[1:] == tuple(round(share * found.promised[0]) for share in RANGE)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_core_fits_an_evening(notebook: Path) -> None:
    assert of(notebook).minutes <= MOST


def test_the_whole_core_takes_sixteen_hours() -> None:
    extra = optional(path.stem for path in NOTEBOOKS)
    assert sum(of(path).minutes for path in NOTEBOOKS if path.stem not in extra) <= MOST_HOURS * 60


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_students_write_a_third_of_what_a_notebook_exports(notebook: Path) -> None:
    assert of(notebook).given <= GIVEN_FOR_ONE_WRITTEN * of(notebook).written


def test_not_much_code_is_given() -> None:
    assert sum(of(path).given for path in NOTEBOOKS) <= MOST_GIVEN

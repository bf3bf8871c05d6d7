"""A second notebook of a number is optional: its points are a bonus, and nothing later needs it."""

from __future__ import annotations

import shutil
from pathlib import Path

from autograder.course.notebook import optional
from autograder.course.release import release_all
from autograder.grading.grade import grade_assignment, grade_lines
from tests.tiny_course import NAME, gradebook, hand_in, solved

EXTRA = "01_toolbox"


def test_the_second_of_a_number_is_optional() -> None:
    assert optional(["02_b", "01_z", "01_a", "01_b", "03_c"]) == {"01_b", "01_z"}


def test_optional_points_are_a_bonus(released: Path) -> None:
    folder = released / "modules" / EXTRA
    shutil.copytree(released / "modules" / NAME, folder)
    (folder / f"{NAME}.ipynb").rename(folder / f"{EXTRA}.ipynb")
    release_all(released, [EXTRA], verify=False, report=lambda line: None)
    hand_in(released, "ada", solved(released))
    hand_in(released, "ada", solved(released), EXTRA)
    for name in (NAME, EXTRA):
        outcomes = grade_assignment(released, name, unsafe=True)
        assert [outcome.score for outcome in outcomes] == [4], outcomes
    assert "bonus" in "\n".join(grade_lines(outcomes))
    with gradebook(released) as book:
        (ada,) = book.students
        assert (ada.score, ada.max_score) == (8, 4)

"""A fixed number of made-up cases, always the same; `tests.grading.fuzz` goes on as long as one likes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.grading.fuzz import PROPERTIES, check


@pytest.mark.parametrize("which", PROPERTIES)
def test_made_up(which: str) -> None:
    @settings(max_examples=150, derandomize=True, database=None, deadline=None)
    @given(PROPERTIES[which][0])
    def holds(case: Any) -> None:
        check(which, case)

    holds()

"""A fixed number of made-up cases, always the same; `tests.grading.fuzz` goes on as long as one likes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from tests.grading.fuzz import PROPERTIES, check
from tests.grading.made_up import framed


@pytest.mark.parametrize(
    "data",
    [{"complex": [10**400, 0]}, {"range": [0, 10**30, 1]}, {"range": [float("inf")]}, {"array": ["<f8", [float("inf")], "", None]},
     {"array": ["<f8", [10**400], "", 10**400]}, {"dict": [[{"dict": []}, 1]]}, {"objects": [[-2], []]}],
)  # fmt: skip
def test_found_before(data: Any) -> None:
    check("codec", data)
    check("wire", framed(json.dumps(["value", data]).encode()))


@pytest.mark.parametrize("data", [{"yours": float("inf")}, {"mine": [float("inf"), "x", []]}])
def test_found_before_on_the_wire(data: Any) -> None:
    check("wire", framed(json.dumps(["value", data]).encode()))


@pytest.mark.parametrize("which", PROPERTIES)
def test_made_up(which: str) -> None:
    @settings(max_examples=150, derandomize=True, database=None, deadline=None)
    @given(PROPERTIES[which][0])
    def holds(case: Any) -> None:
        check(which, case)

    holds()

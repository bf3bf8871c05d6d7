"""The table of students with and without a teacher."""

from __future__ import annotations

from tests.benchmarks.distillation import page


def test_gains_are_differences_of_the_same_seed() -> None:
    case = "few labels"
    found = {(case, 0, "teacher"): [0.97, 0.96], (case, 64, "labels"): [0.80, 0.90], (case, 64, "T = 1"): [0.83, 0.93]}
    lines = page(found, 2).splitlines()
    assert "| few labels | 64 | labels | 85.0 | – | 96.5 |" in lines
    assert "| few labels | 64 | T = 1 | 88.0 | +3.0 (+3.0 to +3.0) | 96.5 |" in lines

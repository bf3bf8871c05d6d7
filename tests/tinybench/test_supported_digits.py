"""Numbers have the digits that their interval supports: no text gives both ends of an interval fixed digits."""

from __future__ import annotations

import math
import re

import pytest

from tests.house import ROOT, files
from tinybench.causal.foreseen import Row, WhatIf
from tinybench.numerals import with_digits, with_ends
from tinybench.report import _pair_row
from tinybench.roofline.batches import Gain, gains_table
from tinybench.scaling.fits import Estimate
from tinybench.shell.gate_run import Answer

# Two numbers with fixed digits and a dash or "to" between them.
FIXED = re.compile(r"\{[^{}]*:[^{}]*\.\d[fg%]\}[^{}]{0,4}(?:–| to )[^{}]{0,2}\{[^{}]*:[^{}]*\.\d[fg%]\}")
# Ranges, not intervals: of sessions, of measurements, of what a reason names.
RANGES = {
    "tinybench/shell/gate_run.py": "min(medians)",
    "tinybench/result.py": "self.min_val",
    "tinybench/causal/foreseen.py": "runs scatter too much",
    "tinybench/history/pictures.py": "min(values)",
    "autograder/leaderboard/referee/referee.py": "varies too much",
}
ENDS = [(1.6, 1.71), (1.2, 2.6), (1.648, 1.6502), (0.5, 9.0)]
NUMBER = r"−?[\d,]+(?:\.\d+)?"
INTERVAL = re.compile(rf"({NUMBER})[^\d(−]*\([^\d−]*(?:95 % CI )?({NUMBER})(?: to |–)({NUMBER})")


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def step(text: str) -> float:
    """Return what the last digit of a number is worth."""
    return 10.0 ** -len(text.partition(".")[2])


def test_no_interval_has_fixed_digits() -> None:
    found = []
    for path in files("tinybench", "autograder"):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(("autograder/checks/", "tinybench/course/lessons/")):  # exact values, and ranges in captions
            continue
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if FIXED.search(line)]
        found += [(name, line) for line in lines if RANGES.get(name, "\0") not in line]
    assert found == []


def shown(value: float, ends: tuple[float, float]) -> dict[str, str]:
    """Return what tables and sentences make of a number and its interval."""
    low, high = ends
    row = {
        "model_a": "a", "model_b": "b", "metric": "latency", "unit": "s", "ratio": value, "ratio_lower": low,
        "ratio_upper": high, "p_corrected": 0.01, "verdict": "slower", "test": "sign",
    }  # fmt: skip
    gained = Row(2, value / 10, low / 10, high / 10, 0.2, 0.0)
    return {
        "with_ends": with_ends(value, ends),
        "report": _pair_row(row, "latency")["ratio or difference"],
        "roofline": str(gains_table([Gain(1, 2.0, value, ends, (0.5, 0.5))]).rows[0]["measured (95 % CI)"]),
        "fits": str(Estimate(value, low, high)),
        "gate": str(Answer("fails", "a", "b", value + 1, (low + 1, high + 1), 0.05, 8, 1.0, None)),
        "what_if": WhatIf.sentence(WhatIf("model", (), None, "repeats", {}, {}), gained),  # type: ignore[arg-type]
    }


@pytest.mark.parametrize("ends", ENDS)
def test_what_is_shown_has_the_digits_that_its_interval_supports(ends: tuple[float, float]) -> None:
    value = math.sqrt(ends[0] * ends[1])
    for name, text in shown(value, ends).items():
        if name == "what_if" and "less time" not in text:
            continue  # it scatters too much for an answer
        found = INTERVAL.search(text)
        assert found, f"{name}: {text}"
        low, high = number(found[2]), number(found[3])
        for each in found.groups():
            assert step(each) >= (high - low) / 100, f"{name}: {text} has too many digits"
        assert step(found[1]) == step(found[2]) == step(found[3]), f"{name}: {text} has unequal digits"


@pytest.mark.parametrize(("value", "width", "text"), [
    (18_077_819.0, 2.5e6, "18,100,000"), (1.653, 0.11, "1.65"), (-0.004, 1.0, "0.0"), (0.0, 0.0, "0"), (12.34567, 0.0, "12.35"),
])  # fmt: skip
def test_digits(value: float, width: float, text: str) -> None:
    assert with_digits(value, width) == text

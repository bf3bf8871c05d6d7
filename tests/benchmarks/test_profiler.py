"""The benchmark of profilers: what it makes of stacks that are known, what it judges, and its programs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmarks import profiler
from tests.benchmarks.profiler import PROGRAMS, take_turns

RAW = """\
<module> (programs.py:9);take_turns (programs.py:210);numpy (programs.py:80) 50
<module> (programs.py:9);take_turns (programs.py:220);numpy.<locals>.sorting (programs.py:90);sort (numpy/core.py:10) 6
<module> (programs.py:9);take_turns (programs.py:220);numpy.<locals>.multiplying (programs.py:90) 3
<module> (programs.py:9);take_turns (programs.py:221) 1
<module> (programs.py:9);report (programs.py:300) 7
"""


def test_only_the_rounds_count() -> None:
    found = profiler.rounds_of(profiler.raw_stacks(RAW), ["multiplying", "sorting"])
    pieces = [("sorting", "sort", 6), ("multiplying", "numpy.<locals>.multiplying", 3), ("take_turns", "take_turns", 1)]
    assert found == pieces


def test_judges_shares_and_costs() -> None:
    def shares(told: float) -> list[dict[str, Any]]:
        truth, off = {"a": 0.6, "b": 0.4}, {profiler.OURS: told, profiler.PY_SPY: 0.59, profiler.NONBLOCKING: 0.3}
        run = {"program": "p", "truth": truth, "looks": 100}
        return [run | {"tool": tool, "told": {"a": a, "b": 1 - a}} for tool, a in off.items()] * 2

    near, far = shares(0.61), shares(0.64)
    assert "| p | a | 60.0 | 61.0 | +1.0 | -1.0 | -30.0 |" in profiler.share_page(near)[1]
    assert profiler.share_goals(near) == {
        "all shares are within 3 points of the truth; the worst is `a` of `p`, +1.0": True,
        "all shares are within 3 points of py-spy; the worst is `a` of `p`, +2.0; py-spy is -1.0 off the truth there": True,
    }
    assert [*profiler.share_goals(far).values()] == [False, False]
    ratios = [1 + k / 1000 for k in range(21)]
    cost = {"program": "p", "every": 0.01, "clock": ratios, "processor": ratios}
    assert profiler.cost_goals([cost]) == {
        "looking every 10 ms makes `p` take +1.0 % (+0.5 to +1.5) longer, of 2% allowed": True
    }
    assert [*profiler.cost_goals([cost | {"clock": [x + 0.02 for x in ratios]}]).values()] == [False]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_tell_their_truth_and_are_seen(name: str) -> None:
    found = take_turns(name, 0.25, 0.005)
    assert min(found["truth"].values()) > 0
    assert {piece for piece, *_ in profiler.rounds_of(found["seen"], found["truth"])} & found["truth"].keys()

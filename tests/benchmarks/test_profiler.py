"""The benchmark of profilers: what it makes of stacks that are known, its page, and its short form."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.benchmarks import profiler
from tests.benchmarks.profiler_calls import compare
from tests.benchmarks.profiler_programs import PROGRAMS, take_turns

RAW = """\
<module> (programs.py:9);take_turns (programs.py:210);numpy (programs.py:80) 50
<module> (programs.py:9);take_turns (programs.py:220);numpy.<locals>.sorting (programs.py:90);sort (numpy/core.py:10) 6
<module> (programs.py:9);take_turns (programs.py:220);numpy.<locals>.multiplying (programs.py:90) 3
<module> (programs.py:9);take_turns (programs.py:221) 1
<module> (programs.py:9);report (programs.py:300) 7
"""


def test_only_the_rounds_count() -> None:
    found = profiler.rounds_of(profiler.raw_stacks(RAW), ["multiplying", "sorting"])
    assert [(piece, weight) for piece, (_, weight) in found] == [("sorting", 6), ("multiplying", 3), ("between", 1)]


def runs(told: float) -> list[profiler.Run]:
    truth = {"a": 0.6, "b": 0.4}
    off = {profiler.OURS: told, profiler.PY_SPY: 0.59, profiler.NONBLOCKING: 0.3}
    return [
        profiler.Run("p", tool, truth, {"a": share, "b": 1 - share}, 100, {})
        for tool, share in off.items()
        for _ in "12"
    ]


def test_the_page_judges() -> None:
    costs = [profiler.Cost("p", 0.01, (0.012, 0.004, 0.019), (0.01, 0.0, 0.02))]
    calls = [{"python": "3.11", "factors": [2.0, 3.0, 2.5], "true": [0.4] * 3, "told": [0.7] * 3}]
    page = profiler.report(runs(0.61), [], costs, calls, "command")
    assert "- met: all shares are within 3 points of the truth; the worst is `a` of `p`, +1.0" in page
    assert "- met: all shares are within 3 points of py-spy; the worst is `a` of `p`, +2.0" in page
    assert "- met: looking every 10 ms makes `p` take +1.2 % (+0.4 to +1.9) longer" in page
    assert "| p | a | 60.0 | 61.0 | +1.0 | -1.0 | -30.0 |" in page
    assert "2.5 (2.0 to 3.0) | 40 | 70" in page
    costs[0].clock = (0.03, 0.02, 0.04)
    page = profiler.report(runs(0.64), [], costs, calls, "command")
    assert "NOT met: all shares are within 3 points of the truth; the worst is `a` of `p`, +4.0" in page
    assert "NOT met: all shares are within 3 points of py-spy" in page
    assert "NOT met: looking every 10 ms" in page


def test_the_interval_of_a_ratio() -> None:
    middle, low, high = profiler.with_interval([1 + k / 1000 for k in range(101)])
    assert middle == pytest.approx(0.05)
    assert (low, high) == (pytest.approx(0.04), pytest.approx(0.06))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_tell_their_truth_and_are_seen(name: str) -> None:
    found = take_turns(name, 0.25, 0.005)
    assert min(found["truth"].values()) > 0
    pieces = profiler.rounds_of(found["seen"], found["truth"])
    assert {piece for piece, _ in pieces} & found["truth"].keys()


def test_cprofile_sees_more_in_calls_than_there_is() -> None:
    """Its own work is done once a call, and one piece makes them all."""
    found = compare(5, 10)
    assert len(found["factors"]) == len(found["true"]) == len(found["told"]) == 5  # type: ignore[arg-type]
    assert max(found["told"]) > min(found["true"])  # type: ignore[call-overload]


def test_py_spy_and_ours_see_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    """Four seconds."""
    if not shutil.which("py-spy") or (hasattr(os, "geteuid") and os.geteuid() != 0):
        pytest.skip("py-spy is missing, or may not look at others here")
    found = [profiler.one_run("waiting", tool, 1.0) for tool in (profiler.OURS, profiler.PY_SPY)]
    for each in found:
        assert each.looks > 10
        assert each.told["sleeping"] == pytest.approx(each.truth["sleeping"], abs=0.25)
        assert sum(each.told.values()) == pytest.approx(1, abs=0.1)


def test_what_looking_costs_is_a_ratio() -> None:
    found = profiler.cost("waiting", 0.01, 3, 0.03)
    assert found.clock[1] <= found.clock[0] <= found.clock[2]
    assert -0.9 < found.clock[0] < 5

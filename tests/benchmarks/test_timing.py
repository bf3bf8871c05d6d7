"""The timing benchmark runs and writes what it promises; its times are for `make bench`, not for a test."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.benchmarks import timing


@pytest.mark.slow
def test_a_quick_run_has_every_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "bench" / "timing.json"
    assert timing.main(["--quick", "--output", str(output)]) == 0
    data = json.loads(output.read_text(encoding="utf-8"))
    assert {(row["tool"], row["length"]) for row in data["tools"]} == {
        (tool, length) for tool in timing.TOOLS for length in timing.LENGTHS
    }
    for row in data["tools"]:
        assert all(isinstance(row[key], float) for key in ("bias_s", "cost_s"))
    assert {row["rounds"] for row in data["coverage"]} == {10, 20, 30}
    assert len({row["stream"] for row in data["coverage"]}) == 4
    for row in data["coverage"]:
        assert 0 <= row["coverage"] <= 1
        assert 0 <= row["coverage_in_a_row"] <= 1
    assert len(data["goals"]) == 3
    printed = capsys.readouterr().out
    assert "| tinybench timed_calls |" in printed
    assert "| ONNX Runtime, 1 image | 20 |" in printed


def test_the_rest_of_a_call_is_known() -> None:
    """On a clock that ticks 0.1 µs a reading, a call takes one reading's tick more than it logs."""
    ticks = iter(range(10**9))

    def clock() -> float:
        return next(ticks) * 1e-7

    known = timing.KnownCall(1e-6, clock)
    known.call(None)
    assert known.log == [pytest.approx(1e-7)]
    assert known.rest(1000) == pytest.approx(1e-7, rel=0.02)


def test_a_call_takes_about_as_long_as_its_name_says() -> None:
    known = timing.KnownCall(1e-3, time.thread_time)
    for _ in range(20):
        known.call(None)
    assert 0.5e-3 < min(known.log) < 2e-3


def test_each_round_weighs_the_same() -> None:
    assert timing.session_median([[1.0] * 1000, [2.0, 2.0, 9.0], [3.0]]) == 2.0

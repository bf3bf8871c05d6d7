"""A gate on stored results: sessions, conditions that differ, and what it cannot tell."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tinybench.comparison import compare, regression_gate
from tinybench.result import BenchmarkResult
from tinybench.rollout import RolloutState
from tinybench.support.conditions.machine_findings import Finding, MachineCheck
from tinybench.tools.rollout.plan import Report


def latency(values: Any, **metadata: Any) -> BenchmarkResult:
    return BenchmarkResult("latency", [float(v) for v in values], unit="s", metadata=metadata)


def stored(rng: np.random.Generator, size: float, sessions: int, scatter: float, **metadata: Any) -> BenchmarkResult:
    """Return latencies of sessions that differ by more than rounds of one do."""
    medians = size * 1e-3 * rng.lognormal(0, scatter, sessions)
    values = [m * t for m in medians for t in rng.lognormal(0, 0.005, 20)]
    marks = [session for session in range(sessions) for _ in range(20)]
    return latency(values, order="rounds spread over a session", loops=1, sessions=marks, **metadata)


def test_a_gate_knows_how_sessions_differ() -> None:
    rng, verdicts = np.random.default_rng(19), {0.0: [], 0.1: []}  # type: dict[float, list[str]]
    for change in verdicts:
        for _ in range(40):
            gate = regression_gate(stored(rng, 1, 6, 0.015), stored(rng, 1 + change, 6, 0.015), 0.05)
            verdicts[change].append(gate.verdict.split(":")[0])
            assert gate.comparison.counts == (6, 6)
    assert verdicts[0.0].count("fails") == 0
    assert verdicts[0.0].count("passes") > 30
    assert verdicts[0.1].count("passes") == 0
    assert verdicts[0.1].count("fails") > 30
    near = regression_gate(stored(rng, 1, 6, 0.015), stored(rng, 1.05, 6, 0.015), 0.05)
    assert near.verdict == f"cannot tell: needs {near.needs} sessions each"


def test_one_session_each_cannot_tell() -> None:
    rng = np.random.default_rng(20)
    old, new = stored(rng, 1, 1, 0), stored(rng, 1.3, 1, 0)
    for a, b in ((old, new), (old, stored(rng, 1, 5, 0.01)), (latency([1, 2], order="one model alone"), new)):
        gate = regression_gate(a, b)
        assert gate.verdict.startswith("cannot tell: one session each says nothing")
        assert gate.needs is None
        assert "--sessions 5" in str(gate)
        assert json.loads(json.dumps(gate.to_dict(), allow_nan=False))["interval"] == [-1.0, None]
    same = {"pairing": "one", "order": "shuffled rounds"}
    together = [latency(size * rng.lognormal(0, 0.01, 40), **same) for size in (1, 1.3)]
    assert regression_gate(*together).verdict == "fails"  # the same rounds need no sessions
    with pytest.raises(ValueError, match="3 entries for 2 values"):
        regression_gate(latency([1, 2], sessions=[0, 1, 2]), old)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("system.governor", {"system": {"governor": "performance"}}, {"system": {"governor": "powersave"}}),
        ("governor", {"system": {"conditions": {"governor": "a"}}}, {"system": {"conditions": {"governor": "b"}}}),
        ("BLAS threads", {"system": {"conditions": {"BLAS threads": "1"}}}, {"system": {"conditions": {"BLAS threads": "4"}}}),
        ("clock", {"clock": "perf_counter"}, {"clock": "time"}),
        ("mode", {"mode": "hot"}, {"mode": "as_served"}),
        ("input_dtype", {"input_dtype": "float32"}, {"input_dtype": "float64"}),
    ],
)  # fmt: skip
def test_other_paces_do_not_compare(name: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    rng = np.random.default_rng(21)
    before, after = stored(rng, 1, 6, 0.001, **old), stored(rng, 1, 6, 0.001, **new)
    gate = regression_gate(before, after)
    assert gate.verdict.startswith(f"cannot tell: {name} differs")
    assert any(line.startswith(f"{name}: ") for line in gate.differences)
    allowed = regression_gate(before, after, allow=[name])
    assert allowed.verdict == "passes"
    assert allowed.differences == gate.differences
    assert regression_gate(before, before).differences == ()
    with pytest.raises(ValueError, match="allow names"):
        regression_gate(before, after, allow=["colour"])


def test_software_is_listed_and_does_not_block() -> None:
    rng = np.random.default_rng(22)
    old = {"python": "3.11.2", "libraries": {"numpy": "1.26"}, "blas": "openblas 0.3.21", "load_average": [0.1, 0, 0]}
    new = {"python": "3.12.1", "libraries": {"numpy": "2.1"}, "blas": "openblas 0.3.27", "load_average": [3.4, 0, 0]}
    gate = regression_gate(stored(rng, 1, 6, 0.001, system=old), stored(rng, 1, 6, 0.001, system=new | {"time": "now"}))
    assert gate.verdict == "passes"
    listed = "system.python: 3.11.2 → 3.12.1; system.libraries.numpy: 1.26 → 2.1; system.blas: openblas 0.3.21 → openblas 0.3.27; load: 0.1 → 3.4"
    assert str(gate).endswith(f"; also different: {listed}")
    assert gate.to_dict()["differences"] == listed.split("; ")


def test_sessions_that_measured_both_compare_session_by_session() -> None:
    rng = np.random.default_rng(23)
    layout = rng.lognormal(0, 0.03, (2, 8)).repeat(50, axis=1)  # each process has one of its own
    about = {"pairing": "one", "sessions": [session for session in range(8) for _ in range(50)]}
    old, new = (latency(1e-3 * times * rng.lognormal(0, 0.002, 400), **about) for times in layout)
    gate = regression_gate(old, new, 0.0)
    assert gate.comparison.paired
    assert gate.comparison.counts == (8, 8)
    assert gate.verdict.startswith("cannot tell")


@pytest.mark.parametrize(
    ("verdict", "passed"), [("passes", True), ("fails", False), ("cannot tell: needs 120 runs", False)]
)
def test_a_gate_is_true_if_it_passed(verdict: str, passed: bool) -> None:
    rounds = latency([0.010, 0.011, 0.012] * 4, pairing="same")
    gate = replace(regression_gate(rounds, rounds), verdict=verdict)
    assert gate.passed is passed
    assert bool(gate) is passed
    assert gate.to_dict()["passed"] is passed


def test_a_comparison_is_neither_true_nor_false() -> None:
    slower = compare([3.0, 3.1, 2.9] * 4, [1.0, 1.1, 0.9] * 4)
    assert slower.decided
    assert not compare([1.0, 2.0], [1.5, 1.6]).decided
    with pytest.raises(TypeError, match=r"use \.verdict or \.decided"):
        bool(slower)


def test_a_machine_check_is_true_if_nothing_was_found() -> None:
    warning = Finding("load", "warn", "3.0", "others compute", "wait")
    assert MachineCheck(())
    assert not MachineCheck((warning,))
    assert not MachineCheck((warning,)).passed


def test_a_rollout_says_whether_it_was_promoted() -> None:
    assert Report(RolloutState(status="promoted")).promoted
    assert not Report(RolloutState(status="rolled back")).promoted

"""The interval that a requirement looks at, its unit and its part of the result, and the decision to ship."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tinybench.pareto import Requirements
from tinybench.result import BenchmarkResult
from tinybench.tools.study import ship_decision
from tinybench.tools.study.ship_decision import interval_of, may_ship

VALUES = [k / 1000 for k in range(1, 201)]  # 1 to 200 in thousandths of the unit


def result(metric: str, unit: str, values: list[float] = VALUES, **about: object) -> BenchmarkResult:
    return BenchmarkResult(metric, values, metadata=dict(about), unit=unit)


def test_latency_is_its_95th_percentile_in_ms() -> None:
    shuffled = [VALUES[37 * k % 200] for k in range(200)]
    low, high = interval_of("latency_p95_ms", result("latency", "s", shuffled))
    assert 180 <= low < 190.5 < high <= 200


def test_latencies_that_depend_on_one_another_count_as_fewer() -> None:
    drawn = np.random.default_rng(1).exponential(1e-3, 400)
    alone, smooth = (result("latency", "s", v.tolist()) for v in (drawn, np.repeat(drawn[::10], 10)))
    widths = [np.diff(interval_of("latency_p95_ms", r))[0] for r in (alone, smooth)]
    assert widths[0] < widths[1]


def test_accuracy_is_the_share_by_wilson() -> None:
    graded = result("accuracy", "fraction", [0.9], correct=90, total=100)
    assert interval_of("accuracy_min", graded) == pytest.approx((0.8256, 0.9448), abs=1e-4)


def test_memory_is_the_largest_in_mb() -> None:
    assert interval_of("memory_max_mb", result("memory", "B", [2e6, 7.5e6, 3e6])) == (7.5, 7.5)


def test_throughput_is_the_median() -> None:
    shuffled = [float(37 * k % 101 + 1) for k in range(101)]
    low, high = interval_of("throughput_min_qps", result("throughput", "inferences/s", shuffled))
    assert 35 < low < 51 < high < 67


def test_energy_is_the_mean_in_mj() -> None:
    low, high = interval_of("energy_budget_mj", result("energy", "J", [0.004, 0.005, 0.006]))
    assert (low + high) / 2 == pytest.approx(5)
    assert interval_of("energy_budget_mj", result("energy", "J", [0.004])) == (-math.inf, math.inf)


def test_what_cannot_tell() -> None:
    assert interval_of("latency_p95_ms", result("latency", "s", [0.001])) == (-math.inf, math.inf)
    below = interval_of("energy_budget_mj", result("energy", "J", [0.0, 0.0], seen=False, at_most=0.002))
    assert below == (-math.inf, 2.0)
    assert interval_of("memory_max_mb", result("memory", "B", [0.0, 0.0])) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("name", "metric"), [("latency_p95_ms", "latency"), ("memory_max_mb", "memory"), ("energy_budget_mj", "energy")]
)
def test_another_unit_is_refused(name: str, metric: str) -> None:
    with pytest.raises(ValueError, match=f"{metric} of the model is in 'minutes'"):
        interval_of(name, result(metric, "minutes"))


def test_an_unknown_requirement_is_refused() -> None:
    with pytest.raises(ValueError, match="no requirement 'beauty_min'"):
        interval_of("beauty_min", result("beauty", "1"))


def test_the_interval_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    intervals = {"latency_p95_ms": (4.0, 5.0), "accuracy_min": (0.9, 0.95)}
    monkeypatch.setattr(ship_decision, "interval_of", lambda name, result: intervals[name])
    results = {name: BenchmarkResult("latency", [1.0]) for name in intervals}
    verdicts = {}
    for limit in (3.9, 4.0, 4.5, 5.0):
        for least in (0.89, 0.9, 0.92, 0.96):
            verdict, findings = may_ship(results, Requirements(latency_p95_ms=limit, accuracy_min=least))
            verdicts[limit, least] = verdict, findings["latency_p95_ms"], findings["accuracy_min"]
    met, missed, open_ = "met", "missed", "cannot tell"
    assert verdicts[5.0, 0.9] == ("ship", met, met)
    assert verdicts[5.0, 0.92] == ("cannot tell", met, open_)
    assert verdicts[4.0, 0.89] == ("cannot tell", open_, met)
    assert verdicts[3.9, 0.92] == ("do not ship", missed, open_)
    assert verdicts[4.5, 0.96] == ("do not ship", open_, missed)
    assert may_ship({}, Requirements(accuracy_min=0.5)) == ("cannot tell", {"accuracy_min": "cannot tell"})
    assert may_ship({}, Requirements()).verdict == "ship"

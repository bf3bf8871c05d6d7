"""`tinybench.tools.history.steps`: steps are found, placed and sized, by prefix alone; chance and outliers are not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinybench.tools.history import steps
from tinybench.tools.history.steps import StepDetector, find_steps


def history(step: float = 0.0, at: int = 60, n: int = 90, seed: int = 0) -> np.ndarray:
    values = 1 + 0.005 * np.random.default_rng(seed).normal(size=n)
    values[at:] *= 1 + step
    return values


@pytest.mark.parametrize("step", [0.03, -0.03, 0.5, 9.0])
def test_a_step_is_found_placed_and_sized(step: float) -> None:
    (found,) = find_steps(history(step))
    assert found.low <= 60 <= found.high
    assert abs(found.index - 60) <= 1
    assert 60 < found.found <= 65
    assert found.change_ci[0] <= step <= found.change_ci[1]
    assert found.change_ci[0] <= found.change <= found.change_ci[1]


def test_steps_up_and_down_are_two() -> None:
    values = np.concatenate([history(0.03, 50, 100, 1), history(0, seed=2)])
    assert [step.index for step in find_steps(values)] == [50, 100]


def test_no_change_no_step() -> None:
    assert [find_steps(history(seed=seed)) for seed in range(5)] == [[]] * 5
    assert find_steps([]) == find_steps([1.0]) == find_steps([1.0] * 60) == []


def test_an_outlier_is_no_step_and_hides_none() -> None:
    values = history(0.03, 50)
    values[[20, 30, 52, 75]] *= 1.4
    assert [step.index for step in find_steps(values)] == [50]


def test_one_outlier_among_the_new_values_delays_little_and_three_make_no_step() -> None:
    values = history(0.03, 50)
    values[52] *= 0.7
    (step,) = find_steps(values)
    assert (step.index, step.found <= 55) == (50, True)
    values = history()
    values[60:63] *= 1.2
    assert find_steps(values) == []


def test_values_that_repeat_and_then_differ() -> None:
    (step,) = find_steps([2.0] * 40 + [2.1] * 8)
    assert (step.index, step.low, step.high) == (40, 40, 40)
    assert step.change == pytest.approx(0.05)


def test_the_alarm_knows_only_what_came_before() -> None:
    values, detector = history(0.03), StepDetector()
    told = [detector.add(value) for value in values]
    (alarm,) = [step for step in told if step]
    assert told.index(alarm) == alarm.found == find_steps(values)[0].found
    assert detector.steps == [alarm] == find_steps(values[: alarm.found + 1])


def test_the_unit_does_not_matter() -> None:
    in_ms = find_steps(1000 * history(0.03))
    assert [(s.index, s.found) for s in in_ms] == [(s.index, s.found) for s in find_steps(history(0.03))]


def test_autocorrelation_takes_alarms_away() -> None:
    values = np.zeros(200)
    rng = np.random.default_rng(0)
    for i in range(1, 200):
        values[i] = 0.6 * values[i - 1] + rng.normal()
    kept = steps._whitened(values, 200)
    assert abs(np.corrcoef(kept[1:], kept[:-1])[0, 1]) < 0.15 < np.corrcoef(values[1:], values[:-1])[0, 1]
    alternating = np.tile([1.0, 2.0], 50)
    assert np.array_equal(steps._whitened(alternating, 100), alternating)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.data())
def test_orders_are_drawn_without_putting_back(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, n))
    drawn = steps._drawn(np.random.default_rng(n), 20, n, k)
    assert drawn.shape == (20, k)
    assert all(len(set(row)) == k and min(row) >= 0 and max(row) < n for row in drawn.tolist())


def test_every_order_comes_as_often() -> None:
    drawn = steps._drawn(np.random.default_rng(0), 6000, 4, 2)
    _, often = np.unique(drawn, axis=0, return_counts=True)
    assert len(often) == 12
    assert abs(often - 500).max() < 6 * math.sqrt(500)


def test_a_long_history_is_looked_at_in_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_WINDOW", 40)
    (step,) = find_steps(history(0.03, 110, 120))
    assert step.index == 110


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0])
def test_no_ratio(value: float) -> None:
    with pytest.raises(ValueError, match=r"Value 1 is .* above 0"):
        find_steps([1.0, value])


@pytest.mark.parametrize(("level", "horizon"), [(0, 300), (1, 300), (0.01, 0)])
def test_no_level(level: float, horizon: int) -> None:
    with pytest.raises(ValueError, match="level must be"):
        StepDetector(level, horizon)

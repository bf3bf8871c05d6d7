"""What `history` draws, and how it counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.benchmarks import history, history_data


def test_histories_are_drawn_by_their_seed_with_steps_where_they_are_told() -> None:
    first, again = history_data.drawn("normal", 0.02, 3), history_data.drawn("normal", 0.02, 3)
    assert np.array_equal(first.ratios, again.ratios)
    assert len(first.steps) == 4
    for at in first.steps:
        jump = np.log(first.ratios[at : at + 20].mean() / first.ratios[at - 20 : at].mean())
        assert abs(abs(jump) - 0.02) < 0.006
    assert history_data.drawn("t, 2 df", 0, 3).steps == []


@pytest.mark.parametrize("rho", [0.2, 0.5])
def test_autocorrelation_is_as_told(rho: float) -> None:
    values = history_data.scatter(f"autocorrelation {rho}", 20_000, np.random.default_rng(0))
    assert np.corrcoef(values[1:], values[:-1])[0, 1] == pytest.approx(rho, abs=0.03)
    assert values.std() == pytest.approx(1, abs=0.05)


def test_neighbours_and_pelt_see_a_step() -> None:
    values = np.array([1.0, 1.01] * 20 + [1.5, 1.51] * 20)
    assert history_data.neighbours(values) == history_data.pelt(values) == [40]
    assert (40, 41) in history_data.pelt_online(values)


def test_what_is_told_is_matched_with_the_truth() -> None:
    seen = history.matched([50, 100], [(51, 53), (50, 70), (200, 201), (99, 98)])
    assert seen == {"delays": [4, 999], "off": [0, 999], "false": 1}


def test_too_many_alarms_and_late_ones_miss_the_goals() -> None:
    detector: dict[str, Any] = {"unit": "ratios", "way": "StepDetector"}
    found = [{**detector, "scatter": kind, "rang": 1, "of": 140} for kind in history_data.INDEPENDENT]
    assert all(history.goals(found).values())
    found[0]["rang"] = 9
    assert not any(history.goals(found).values())
    about = {"step": 0.02, "scatter": "normal", "way": "StepDetector"}
    for late, met in ((5, True), (6, False)):
        steps = {"delays": [3] * (100 - late) + [6] * late, "off": [1] * (85 - late) + [2] * (15 + late)}
        assert list(history.step_goals([{**about, **steps}]).values()) == [met, met]

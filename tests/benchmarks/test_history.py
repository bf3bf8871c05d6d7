"""The benchmark of steps: what it draws, how they count, their pages, their short forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks import history, history_alarms, history_data, history_found
from tests.benchmarks.report import run_parts


def test_histories_are_drawn_by_their_seed_with_steps_where_they_are_told() -> None:
    first, again = history_data.drawn("normal", 0.02, 3), history_data.drawn("normal", 0.02, 3)
    assert np.array_equal(first.ratios, again.ratios)
    assert len(first.steps) == 4
    for at in first.steps:
        jump = np.log(first.ratios[at : at + 20].mean() / first.ratios[at - 20 : at].mean())
        assert abs(abs(jump) - 0.02) < 0.006
    assert np.std(np.log(first.milliseconds)) > np.std(np.log(first.ratios)) * 0.5
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
    seen = history_found.matched([50, 100], [(51, 53), (50, 70), (200, 201), (99, 98)])
    assert seen == {"delays": [4, 999], "off": [0, 999], "false": 1}


def test_too_many_alarms_and_late_ones_miss_the_goals() -> None:
    found = {kind: {"StepDetector": [1, 140]} for kind in history_data.INDEPENDENT}
    assert all(history_alarms.goals(found).values())
    found["normal"]["StepDetector"] = [9, 140]
    assert not any(history_alarms.goals(found).values())
    ways = {"StepDetector": {"delays": [3] * 95 + [6] * 5, "off": [1] * 80 + [2] * 20}}
    assert all(history_found.goals([{"scatter": "normal", "ways": ways}]).values())
    ways["StepDetector"] = {"delays": [3] * 94 + [6] * 6, "off": [1] * 79 + [2] * 21}
    assert not any(history_found.goals([{"scatter": "normal", "ways": ways}]).values())


def test_the_short_form_makes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for part in (history_alarms, history_found):  # the real one is downloaded
        monkeypatch.setattr(part, "e_divisive", lambda series: [[] for _ in series])
    monkeypatch.setattr(history_alarms, "CORRELATED", {})
    monkeypatch.setattr(history_alarms, "INDEPENDENT", ("t, 2 df",))
    monkeypatch.setattr(history_alarms, "COMMITS", 30)
    run_parts(
        "history", "Title", history.INTRO, history.PARTS, "Doc.", ["--short", "--output", str(tmp_path / "h.json")]
    )
    told = capsys.readouterr().out
    assert "| t, 2 df | 0 of 2 |" in told
    assert "| 2% | normal | StepDetector |" in told

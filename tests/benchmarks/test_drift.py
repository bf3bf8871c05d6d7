"""What `drift` counts and judges, on data that is known."""

from __future__ import annotations

import math
from argparse import Namespace
from typing import Any

import numpy as np
import pytest

from tests.benchmarks import drift, drift_delay, drift_digits


def test_too_many_false_alarms_miss_the_goal() -> None:
    found = [{"kind": "normal", "way": way, "n": 50, "rang": 27, "of": 500} for way in drift.WAYS]
    assert all(drift.goals(found).values())
    found[0]["rang"] = 50
    assert list(drift.goals(found).values()) == [False] + [True] * 4


def test_the_rule_of_thumb_is_counted_with_half_a_value_and_without() -> None:
    halves, plains = np.repeat([0.3, 0.15, 0.0], (30, 46, 24)), np.repeat([0.3, 0.15, 0.0], (45, 41, 14))
    found = [{"n": 50, "half": h, "plain": p, "rang": False} for h, p in zip(halves, plains, strict=True)]
    assert all(drift.thumb_goals(found).values())
    half, plain = drift.thumb_rows(found)
    assert [row[change] for row in (half, plain) for change in drift.THUMBS] == [76, 30, 86, 45]
    assert list(drift.thumb_goals([{**row, "rang": True} for row in found]).values()) == [False, True]


def test_delays_count_from_the_change() -> None:
    early, late = drift_delay.BEFORE, drift_delay.BEFORE + 7
    assert drift_delay.delays([early, late, math.inf]) == (1, [7, math.inf])
    found: list[dict[str, Any]] = [
        {"detector": "tinybench x", "change": "none", "first": [math.inf] * 19 + [5.0]},
        {"detector": "tinybench x", "change": "shift 1", "first": [late] * 20},
    ]
    assert all(drift_delay.goals(found).values())
    found[0]["first"] = [5.0, 5.0, *[math.inf] * 18]
    assert list(drift_delay.goals(found).values()) == [False, True]
    assert "7; 0 before, 0 missed, of 20" in drift_delay.page(found)[1]


def test_streams_change_where_they_should() -> None:
    n = drift_delay.WARM + drift_delay.BEFORE
    for change in (change for changes in drift_delay.CHANGES.values() for change in changes):
        before, after = np.split(drift_delay.stream_of(change, np.random.default_rng(1)), [n])
        moved = abs(after.mean() - before.mean()) + abs(after.std() - before.std())
        assert (moved > 0.1) == (change not in drift_delay.STILL)


def test_every_detector_of_river_and_of_ours_runs_on_what_it_is_for() -> None:
    cases = drift_delay.cases(Namespace(short=False))
    assert len(cases) == len(set(cases)) == 4 + 7 + 2
    stream = drift_delay.stream_of("shift 1", np.random.default_rng(2))
    _, tried = drift_delay.settings()["PageHinkley"]
    assert drift_delay.BEFORE < tried["threshold 30"](stream) < drift_delay.BEFORE + 200


def test_slower_servers_and_slower_pictures_miss_the_goals() -> None:
    pairs = [{"p50 without": 1 + 0.001 * i, "p50 with": 1.009 - 0.001 * i} for i in range(10)]
    assert all(drift_digits.cost_goals(pairs).values())
    assert not any(drift_digits.cost_goals([{**pair, "p50 with": 1.1} for pair in pairs]).values())
    ratios = [0.98 + 0.002 * i for i in range(20)]
    assert drift_digits.middle_of(ratios) == pytest.approx((0.999, ratios[5], ratios[14]))
    run = {"kind": "shifted", "alarm": 10, "first label": 201, "accuracy before": 0.95, "accuracy after": 0.1}
    assert all(drift_digits.goals([{**run, "shifted / plain": each} for each in ratios]).values())
    slow = drift_digits.goals([{**run, "shifted / plain": 1.06 * each} for each in ratios])
    assert list(slow.values()) == [True, True, False, True]

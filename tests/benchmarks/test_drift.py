"""What `drift` counts and judges, on data that is known."""

from __future__ import annotations

import math
from argparse import Namespace
from typing import Any

import numpy as np
import pytest

from tests.benchmarks import drift_alarms, drift_delay, drift_dependence, drift_digits


def test_too_many_false_alarms_miss_the_goal() -> None:
    found = [{"kind": "normal", "way": way, "n": 50, "rang": 27, "of": 500} for way in drift_alarms.WAYS]
    assert all(drift_alarms.goals(found).values())
    found[0]["rang"] = 50
    assert list(drift_alarms.goals(found).values()) == [False] + [True] * 4


def test_the_rule_of_thumb_without_anything_added_has_the_mean_of_the_textbook() -> None:
    rng = np.random.default_rng(0)
    counts = [drift_alarms.counts_of(rng.normal(size=10_000), rng.normal(size=500)) for _ in range(100)]
    assert np.mean([drift_alarms.plain_psi(*each) for each in counts]) == pytest.approx(9 * (1 / 500 + 1e-4), rel=0.2)
    empty = drift_alarms.plain_psi(np.array([50, 50]), np.array([10, 0]))
    assert empty == pytest.approx(0.5 * np.log(2) + (1e-4 - 0.5) * np.log(2e-4))


def test_the_page_says_what_half_a_value_does() -> None:
    halves, plains = np.repeat([0.3, 0.15, 0.0], (30, 46, 24)), np.repeat([0.3, 0.15, 0.0], (45, 41, 14))
    found = [{"n": 50, "half": h, "plain": p, "rang": False} for h, p in zip(halves, plains, strict=True)]
    assert all(drift_alarms.thumb_goals(found).values())
    told = drift_alarms.thumb_page(found)[-1]
    assert "above 0.1 from 86% to 76%, those above 0.2 from 45% to 30%" in told
    assert list(drift_alarms.thumb_goals([{**row, "rang": True} for row in found]).values()) == [False, True]


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
    run = {"kind": "shifted", "alarm": 10, "first label": 201}
    run |= {"accuracy before": 0.95, "accuracy after": 0.1}
    assert all(drift_digits.goals([{**run, "shifted / plain": each} for each in ratios]).values())
    slow = drift_digits.goals([{**run, "shifted / plain": 1.06 * each} for each in ratios])
    assert list(slow.values()) == [True, True, False, True]
    assert drift_digits.shifted(np.arange(64.0)[None])[0, :8].tolist() == [0, 0, 0, 1, 2, 3, 4, 5]


def test_dependent_streams_that_ring_and_shifts_that_are_found_late_miss_the_goals() -> None:
    def record(what: str, way: str, first: list[int | None]) -> dict[str, Any]:
        return {"kind": "AR(1), 0.8", "what": what, "way": way, "first": first}

    found = [record("long", way, [0] * 190 + [7] * 9 + [None]) for way in drift_dependence.WAYS]
    found += [record("delay", "spaced", [40, 80, None])]
    assert list(drift_dependence.goals(found).values()) == [True] * 4
    page = drift_dependence.page(found)
    assert page[1].splitlines()[-1].count("4.5 % (2.4–8.3); 0.5% refused") == 4
    assert page[3].splitlines()[-1].split(" | ")[-1] == "60 |"
    found[0]["first"] = found[1]["first"] = [0] * 150 + [7] * 50
    found[-1]["first"] = [0, 0, 50]
    assert list(drift_dependence.goals(found).values()) == [False, True, True, False]


@pytest.mark.parametrize("kind", drift_dependence.KINDS)
def test_dependent_streams_do_not_change(kind: str) -> None:
    rows, users = drift_dependence.KINDS[kind](40_000, np.random.default_rng(3))
    before, after = np.split(rows, 2)
    assert len(rows) == 40_000
    assert np.abs(after.mean(axis=0) - before.mean(axis=0)) == pytest.approx(0, abs=0.5)
    assert (users is not None) == kind.startswith("users")

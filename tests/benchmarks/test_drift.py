"""The benchmark of drift: its pages and goals on data that is known, and its short form."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import drift, drift_alarms, drift_cost, drift_delay, drift_digits, drift_thumb
from tests.benchmarks.report import run_parts
from tinybench.production import psi


def test_the_short_form_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each run renews its own parts of the page; the others stay."""
    for parts in (["alarms", "thumb"], ["digits"]):
        again = ["--only", *parts, "--short", "--output", str(tmp_path / "kept.json")]
        run_parts("drift", "title", drift.INTRO, drift.PARTS, "doc", again)
        told = capsys.readouterr().out
    assert "| PSI > 0.2 |" in told
    assert "| n = 50 | PSI, nothing added |" in told
    assert "met: the alarm comes before the first label of a shifted digit in 1 of 1 runs" in told


def test_too_many_false_alarms_miss_the_goal() -> None:
    ways = (*drift_alarms.ONCE, *drift_alarms.EVER)
    rows = [{"kind": "normal", "way": way, "n": 50, "rang": 27, "of": 500} for way in ways]
    assert all(drift_alarms.goals({"rows": rows}).values())
    rows[0]["rang"] = 50
    assert list(drift_alarms.goals({"rows": rows}).values()) == [False] + [True] * (len(ways) - 1)


def test_the_rule_of_thumb_is_the_usual_one() -> None:
    """Both make the same bins, and without anything added its mean is the textbook's, at a size where none is empty."""
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(size=10_000), rng.normal(size=500)) for _ in range(100)]
    counts = [drift_thumb.counts_of(*pair) for pair in pairs]
    for pair, count in zip(pairs[:5], counts, strict=False):
        assert drift_alarms.thumb(*pair) == pytest.approx(psi(*count))  # type: ignore[arg-type]
    plain = [drift_thumb.plain_psi(*count) for count in counts]
    assert np.mean(plain) == pytest.approx(9 * (1 / 500 + 1 / 10_000), rel=0.2)
    empty = drift_thumb.plain_psi(np.array([50, 50]), np.array([10, 0]))
    assert empty == pytest.approx(0.5 * np.log(2) + (1e-4 - 0.5) * np.log(2e-4))


def test_the_page_says_what_half_a_value_does() -> None:
    rows: list[dict[str, object]] = [{"n": 50, "way": "judge", "rang": 5, "of": 100}]
    for way, over in (("half", (76, 30)), ("plain", (86, 45))):
        rows.append({"n": 50, "way": way, "mean": 0.2, "over": dict(zip(("0.1", "0.2"), over, strict=True)), "of": 100})
    assert all(drift_thumb.goals({"rows": rows}).values())
    told = drift_thumb.page({"rows": rows})[-1]
    assert "above 0.1 from 86% to 76%, those above 0.2 from 45% to 30%" in told
    rows[0]["rang"] = 20
    assert list(drift_thumb.goals({"rows": rows}).values()) == [False, True]


def test_delays_count_from_the_change() -> None:
    early, late = drift_delay.BEFORE, drift_delay.BEFORE + 7
    assert drift_delay.delays([early, late, None]) == (1, [7, math.inf])
    rows = [
        {"detector": "tinybench x", "change": "none", "first": [None] * 19 + [5]},
        {"detector": "tinybench x", "change": "shift 1", "first": [late] * 20},
    ]
    assert all(drift_delay.goals({"rows": rows}).values())
    rows[0]["first"] = [5, 5, *[None] * 18]
    assert list(drift_delay.goals({"rows": rows}).values()) == [False, True]
    assert "7; 0 before, 0 missed, of 20" in drift_delay.page({"rows": rows})[1]


def test_streams_change_where_they_should() -> None:
    n = drift_delay.WARM + drift_delay.BEFORE
    for change in drift_delay.CHANGES:
        stream = drift_delay.stream_of(change, np.random.default_rng(1))
        before, after = stream[:n], stream[n:]
        moved = abs(after.mean() - before.mean()) + abs(after.std() - before.std())
        assert (moved > 0.1) == (change not in ("none", "no more errors"))


def test_a_peer_of_river_is_run() -> None:
    stream = drift_delay.stream_of("shift 1", np.random.default_rng(2))
    _, tried = drift_delay.settings()["PageHinkley"]
    first = tried["threshold 30"](stream)
    assert drift_delay.BEFORE < first < drift_delay.BEFORE + 200


def test_a_slower_server_misses_the_goal() -> None:
    fast = [{"p50": 1.0 + 0.001 * i, "p95": 2.0} for i in range(10)]
    slow = [{"p50": 1.1 * each["p50"], "p95": 2.0} for each in fast]
    assert all(drift_cost.goals({"rounds": {"without": fast, "with": fast[::-1]}}).values())
    assert not any(drift_cost.goals({"rounds": {"without": fast, "with": slow}}).values())


def test_a_shift_takes_two_columns() -> None:
    rows = np.arange(64.0)[None]
    assert drift_digits.shifted(rows).reshape(8, 8)[0].tolist() == [0, 0, 0, 1, 2, 3, 4, 5]


def test_slower_shifted_digits_miss_the_goal() -> None:
    run = {"alarm": (10, ["inputs"]), "first label": 201, "accuracy": {"before": 0.95, "after": 0.1}, "labels": 206}
    ratios = [0.98 + 0.002 * i for i in range(20)]
    found = {"runs": [{**run, "kind": "shifted", "shifted / plain": ratio} for ratio in ratios]}
    assert all(drift_digits.goals(found).values())
    assert drift_digits.middle_of(ratios) == pytest.approx((0.999, ratios[5], ratios[14]))
    for each in found["runs"]:
        each["shifted / plain"] *= 1.06  # type: ignore[operator]
    assert list(drift_digits.goals(found).values()) == [True, True, False]

"""What module 15 shows: two models twice, a limit by hand, profilers, resources, and machines with the right warnings."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, cast

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tinybench.course.lessons import m15 as lesson
from tinybench.course.lessons import m15_figures
from tinybench.course.lessons import m15_profilers as profilers
from tinybench.course.lessons.m15_machines import made_up_machines, throttled
from tinybench.course.lessons.m15_resources import resource_table
from tinybench.machine import machine_check
from tinybench.sampler import Sample
from tinybench.support.profiling.what_if_experiment import Row


def test_the_fast_model_is_the_same_network() -> None:
    request = lesson.make_request()
    answers = [
        json.loads(lesson.answer_of(stages, request.body))["probabilities"]
        for stages in (request.stages, request.with_stage("model", request.faster))
    ]
    assert np.shape(answers[0]) == (1, 10)
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-5)


def test_the_fast_forest_is_the_same_forest(tmp_path: Path) -> None:
    forest = lesson.make_forest_request(tmp_path)
    answers = [
        json.loads(lesson.answer_of(stages, forest.body))["probabilities"]
        for stages in (forest.stages, forest.with_stage("model", forest.faster))
    ]
    assert np.shape(answers[0]) == (1, 2)
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-5)


def test_sentences_hold_the_numbers_of_the_run_and_stand_without_an_answer_of_what_if() -> None:
    saved = 0.01, -0.01, 0.03
    known, refused = Row(5, 0.3, 0.28, 0.32, 0.32, 0.0), Row(5, 0.3, 0.28, 0.32, 0.32, 0.2)
    assert "predicts 30%" in lesson.told_of_overlap(known, saved)
    assert "cannot tell here" in lesson.told_of_overlap(refused, saved)
    for row in (known, refused):
        assert "should save 32%" in lesson.told_of_overlap(row, saved)
        assert "really saves 1.0 % (95 % CI −1.0 to 3.0)" in lesson.told_of_overlap(row, saved)
    samples = [
        Sample(0.0, ("main (a.py)", "Forest.predict (_forest.py)"), 1.0),
        *3 * [Sample(0.0, ("main (a.py)",), 1.0)],
    ]
    both = lesson.Compared({"model": 98e-6, "parse": 2e-6}, {"model": 1e-6, "parse": 1e-6})
    told = lesson.told_of_forest(samples, cast("Any", "cannot tell"), both)
    for words in (
        "98.0% of the request",
        "50 times as fast",
        "At most 25%",
        "98 times as fast",
        "2 µs before and take 1 µs",
    ):
        assert words in told


def test_a_figure_of_gains_says_whether_what_if_answered() -> None:
    rows = {("model", 5): Row(5, 0.3, 0.28, 0.32, 0.32, 0.0)}
    shown = m15_figures.figure_of_gains(rows, {("model", 5): (0.01, -math.inf, math.inf)})
    assert (
        "what_if was off by up to 29 points. The share in the profile was off by up to 31 points." in shown["caption"]
    )
    refused = {("model", 5): Row(5, 0.3, 0.28, 0.32, 0.32, 0.2)}
    other = m15_figures.figure_of_gains(refused, {("model", 5): (0.01, -math.inf, math.inf)})
    assert other["caption"].startswith("what_if refused each time. The share in the profile")
    for each in (shown, other):
        plt.close(each["figure"])


def test_a_sampler_from_outside_finds_the_functions_or_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = profilers.from_outside(seconds=1)
    assert not found or (set(found) == set(profilers.by_clock(0.05)) and sum(found.values()) == pytest.approx(1))
    monkeypatch.setattr(profilers.shutil, "which", lambda *_, **__: None)
    assert profilers.from_outside() == {}


def test_resources_are_asked_three_questions(tmp_path: Path) -> None:
    (tmp_path / "proc" / "pressure").mkdir(parents=True)
    (tmp_path / "proc" / "pressure" / "cpu").write_text("some avg10=42.50 avg60=1.00 avg300=0.00 total=1\n")
    shown = str(resource_table(0.05, tmp_path))
    assert "work waited 42 % of the last 10 s" in shown
    for words in ("processor", "memory", "disks", "network", "utilisation", "saturation", "errors"):
        assert words in shown


@pytest.mark.parametrize(
    ("start", "end"), [(0, 110), (25, 110), (50, 110), (70, 130), (90, 150), (91, 201), (100, 210), (140, 210)]
)
def test_a_call_of_60_ms_by_half_a_core(start: float, end: float) -> None:
    assert throttled([start], 60, 50, 100) == pytest.approx([end])


def test_calls_without_end_get_half_a_core() -> None:
    done = throttled([0.0] * 600, 60, 50, 100)
    assert (done[-1] - done[-501]) / 500 == pytest.approx(120, rel=0.01)


def test_a_limit_above_a_core_stops_nobody() -> None:
    assert throttled([30.0], 250, 100, 100) == pytest.approx([280])


def test_made_up_machines_have_the_warnings_that_they_are_made_up_for(tmp_path: Path) -> None:
    verdicts = [machine_check(root, **how).verdict for _, root, how in made_up_machines(tmp_path)]
    assert verdicts == ["quota, stopped", "stolen", "battery, governor"]


def test_frames_lead_outwards() -> None:
    frame = lesson.frames("a.py:main", "b/c.py:Thing.method")
    assert (frame.f_code.co_qualname, frame.f_code.co_name, frame.f_back.f_code.co_filename) == (
        "Thing.method",
        "method",
        "a.py",
    )
    assert frame.f_back.f_back is None

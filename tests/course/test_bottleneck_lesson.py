"""What module 15's upper half shows: the same network twice, a limit by hand, and machines with the right warnings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tinybench.course.lessons import m15 as lesson
from tinybench.course.lessons.m15_machines import made_up_machines, throttled
from tinybench.machine import machine_check


def test_the_fast_model_is_the_same_network() -> None:
    request = lesson.make_request()
    answers = [
        json.loads(lesson.answer_of(stages, request.body))["probabilities"]
        for stages in (request.stages, request.with_stage("model", request.by_hand))
    ]
    assert np.shape(answers[0]) == (1, 10)
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-5)


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

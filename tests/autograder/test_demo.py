"""The Olympics of the demo: real entries, measured briefly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.demo import hold_olympics, with_little_effort
from autograder.leaderboard.events import load


def test_the_shipped_events_can_be_made_brief(tmp_path: Path) -> None:
    path = tmp_path / "events.toml"
    path.write_text(with_little_effort(), encoding="utf-8")
    brief, shipped = load(path), load()
    assert [event.id for event in brief.events] == [event.id for event in shipped.events]
    assert brief.event("latency").accuracy_min < shipped.event("latency").accuracy_min
    assert brief.deadline.year == 2999
    assert brief.referee.processes < shipped.referee.processes
    assert sum(brief.baseline.hidden) < sum(shipped.baseline.hidden)
    assert brief.limits == shipped.limits


@pytest.mark.slow
def test_models_are_entered_and_ranked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TINYBENCH_DATABASE", raising=False)
    hold_olympics(tmp_path)
    said = capsys.readouterr().out
    assert re.search(r"finn +half a file +refused: this is not an \.onnx file", said)
    assert said.count(" measured\n") == 3
    places = {student: int(place) for place, student in re.findall(r"(?m)^  (\d)  (\w+) .*accuracy", said)}
    assert set(places) == {"ada", "ben", "cleo"}
    assert places["cleo"] < places["ada"]  # thirty-two units instead of nearly four hundred

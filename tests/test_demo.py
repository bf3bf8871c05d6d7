"""The Olympics of the demo: real entries, measured briefly."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.demo import brief_events, hold_olympics
from autograder.leaderboard.settings import load
from tests.tiny_course import ROOT


def test_the_shipped_events_can_be_made_brief(tmp_path: Path) -> None:
    path = tmp_path / "events.toml"
    path.write_text(brief_events(), encoding="utf-8")
    brief, shipped = load(path), load()
    assert [event.id for event in brief.events] == [event.id for event in shipped.events]
    assert brief.event("latency").accuracy_min < shipped.event("latency").accuracy_min
    assert brief.deadline.year == 2999
    assert brief.referee.processes < shipped.referee.processes
    assert sum(brief.baseline.hidden) < sum(shipped.baseline.hidden)
    assert brief.limits == shipped.limits


@pytest.mark.needs("sandbox")
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


@pytest.mark.audit
@pytest.mark.slow
def test_without_a_sandbox_it_does_the_rest_and_says_so(tmp_path: Path) -> None:
    folders = [Path("/bin"), Path("/usr/bin"), Path(sys.executable).parent]
    programs = {program.name: program for folder in folders for program in folder.iterdir()}
    (tmp_path / "bin").mkdir()
    for name in programs.keys() - {"bwrap"}:
        (tmp_path / "bin" / name).symlink_to(programs[name])
    command = [sys.executable, "-m", "autograder", "--root", ROOT, "demo", "--out", tmp_path / "demo"]
    env = {name: value for name, value in os.environ.items() if name != "SHELL"} | {"PATH": str(tmp_path / "bin")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "demo" / "course" / "submitted").iterdir())) == 6
    assert (tmp_path / "demo" / "latency.png").is_file()
    assert "── Grade" not in done.stdout
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith("left out: grading, feedback and the Olympics")
    assert "install the package bubblewrap" in last

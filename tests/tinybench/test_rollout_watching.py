"""A rollout's journal and watcher: interrupted, torn, away, standing still, with a clock that jumps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tinybench.rollout import RolloutState
from tinybench.tools.rollout.journal import EventLog
from tinybench.tools.rollout.server_readings import Told, Watcher
from tinybench.tools.watching.prometheus_server import AwayError

STEP = RolloutState(stage=1)


class Asked:
    """What a Prometheus tells: readings that move by themselves, unless something is set."""

    def __init__(self) -> None:
        self.stamp, self.requests, self.away = 100.0, {"stable": 0.0, "canary": 0.0}, False

    def __call__(self) -> Mapping[str, Told]:
        if self.away:
            raise AwayError("Prometheus does not answer")
        return {version: Told(self.stamp, requests, 0) for version, requests in self.requests.items()}

    def later(self, watcher: Watcher, answers: int) -> bool:
        """Let some answers be given and read; return whether a look finds new readings."""
        self.stamp += 1
        for version in self.requests:
            self.requests[version] += 10
        watcher.ask_once()
        return watcher.look({"stable": answers, "canary": answers})


def test_new_readings_are_fresh_and_old_ones_are_not() -> None:
    watcher = Watcher(asked := Asked())
    assert not watcher.look({})
    assert "nobody has told" in watcher.problem
    assert all(asked.later(watcher, 10 * number) for number in range(20))
    watcher.ask_once()
    assert not watcher.look({}), "the same reading once more"
    assert "no new reading of the stable server" in watcher.problem
    asked.stamp -= 3600  # somebody sets the clock back
    assert not asked.later(watcher, 300)
    asked.stamp += 7200
    assert asked.later(watcher, 310)


def test_prometheus_away_or_without_a_server_is_said() -> None:
    watcher = Watcher(asked := Asked())
    assert asked.later(watcher, 10)
    asked.away = True
    assert not asked.later(watcher, 20)
    assert watcher.problem == "Prometheus does not answer"
    asked.away = False
    assert asked.later(watcher, 30)
    del asked.requests["canary"]
    assert not asked.later(watcher, 40)
    assert "canary server cannot be read" in watcher.problem
    assert watcher.restarts("canary") == 0


def test_a_counter_that_never_moves_though_answers_come_is_said() -> None:
    watcher = Watcher(asked := Asked())
    found = []
    for number in range(12):
        asked.requests["canary"] = 0.0
        found.append(asked.later(watcher, 10 * number))
        asked.requests["canary"] = 0.0
    asked.requests = {"stable": 500.0, "canary": -10.0}  # `later` adds 10 again: it stands at 0 as before
    assert found[0]
    assert not found[-1]
    assert "tinybench_requests_total of the canary server never moves" in watcher.problem


def test_a_counter_may_stand_still_without_answers() -> None:
    watcher = Watcher(asked := Asked())
    for _ in range(12):
        asked.requests["canary"] = -10.0
        assert asked.later(watcher, 0)


def test_a_journal_tells_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = EventLog(path)
    assert journal.state is None
    assert not journal.unfinished
    journal.write(RolloutState(), salt="a")
    journal.write(STEP, counts=[])
    again = EventLog(path)
    assert again.state == STEP
    assert again.unfinished
    assert [row.get("salt") for row in again.last_rollout()] == ["a", None]
    again.write(RolloutState(status="promoted", stage=3))
    again.write(RolloutState(), salt="b")
    assert [row["salt"] for row in EventLog(path).last_rollout()] == ["b"]


def test_a_torn_line_is_passed_over_and_the_next_one_stands_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    EventLog(path).write(STEP, salt="a")
    whole = path.read_text()
    for cut in range(1, len(whole)):
        path.write_text(whole + whole[:cut])
        torn = EventLog(path)
        assert torn.state == STEP
        torn.write(RolloutState(stage=2))
        assert EventLog(path).state == RolloutState(stage=2)


@pytest.mark.parametrize("text", ["a b\nc d\n", json.dumps({"results": {}}) + "\n", "[1]\n"])
def test_another_file_is_no_journal(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "file").write_text(text)
    with pytest.raises(ValueError, match="journal"):
        EventLog(path)


def test_a_journal_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="choose another --journal"):
        EventLog(tmp_path / "no" / "journal").write(STEP)

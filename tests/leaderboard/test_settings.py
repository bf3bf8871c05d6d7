"""The file an instructor edits: what it may say, and what is said about mistakes in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.leaderboard.settings import load

GOOD = """
title = "Games"
deadline = 2027-02-12T18:00:00+01:00
[[event]]
id = "latency"
title = "Sprint"
goal = "Fast."
measure = "latency"
accuracy_min = 0.9
"""


def test_the_file_that_comes_with_autograder() -> None:
    olympics = load()
    assert [event.measure for event in olympics.events] == ["latency", "memory", "accuracy", "area"]
    assert all(event.rules.endswith(".") for event in olympics.events)


def test_a_small_file_takes_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "events.toml"
    path.write_text(GOOD)
    olympics = load(path)
    assert olympics.event("latency").accuracy_min == 0.9
    assert olympics.referee.processes == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("deadline = 2027-02-12T18:00:00+01:00", "deadline = 2027-02-12T18:00:00"), "offset"),
        (('title = "Games"', ""), "title is missing"),
        (('measure = "latency"', 'measure = "beauty"'), "measure is 'beauty'"),
        (('measure = "latency"', ""), "missing 1 required .* 'measure'"),
        (("accuracy_min = 0.9", "accuracy_min = -1"), "must be positive"),
        (("accuracy_min = 0.9", "accuracy_min = 92"), "must lie between 0 and 1"),
        (("accuracy_min = 0.9", "accuracy_min = 1"), "must lie between 0 and 1"),
        (("accuracy_min = 0.9", 'accuracy_min = "high"'), "must be of type float"),
        (("accuracy_min = 0.9", "accuracy_minimum = 0.9"), "has no 'accuracy_minimum'"),
        (('id = "latency"', 'id = "../x"'), "letters, digits and hyphens"),
        (("[[event]]", "[limits]\nnodes = 2.5\n[[event]]"), "must be of type int"),
        (("[[event]]", "[limit]\nnodes = 2\n[[event]]"), "unknown key 'limit'"),
        (("[[event]]", "[[event"), "is not TOML"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = tmp_path / "events.toml"
    path.write_text(GOOD.replace(*change))
    with pytest.raises(ValueError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_two_events_of_one_id(tmp_path: Path) -> None:
    path = tmp_path / "events.toml"
    path.write_text(GOOD + GOOD[GOOD.index("[[event]]") :])
    with pytest.raises(ValueError, match="same id"):
        load(path)

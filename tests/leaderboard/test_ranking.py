"""Ranking: who shares a place, whose entry counts, and what an area is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.leaderboard.ranking import Entry, Score, on_frontier, score, share_places, standings
from autograder.leaderboard.settings import Event, load

SPRINT, CHALLENGE, CONTEST, ALL_AROUND = load().events


def entry(number: int, student: str = "", latency: float = 0.5, half: float = 0.01, **changes: Any) -> Entry:
    """An entry to the sprint that passes every bar."""
    accuracy = changes.pop("accuracy", 0.95)
    values: dict[str, Any] = {
        "event": SPRINT.id, "name": "m.onnx", "stamp": float(number), "size": 1000, "seconds": 1e-3, "bytes": 1e6,
        "memory": Score(0.5, 0.49, 0.51), "size_ratio": 0.1,
        "public": Score(accuracy, accuracy - 0.01, accuracy + 0.01), "private": Score(0.9, 0.89, 0.91),
    }  # fmt: skip
    latencies = Score(latency, latency - half, latency + half)
    return Entry(id=number, student=student or f"s{number}", latency=latencies, **{**values, **changes})


def places(event: Event, entries: list[Entry], private: bool = False) -> list[tuple[int, bool, int]]:
    return [(line.place, line.shared, line.entry.id) for line in standings(event, entries, private).places]


def test_clear_differences_give_places_of_their_own() -> None:
    entries = [entry(1, latency=0.3), entry(2, latency=0.2), entry(3, latency=0.4)]
    assert places(SPRINT, entries) == [(1, False, 2), (2, False, 1), (3, False, 3)]


def test_overlapping_intervals_share_a_place_and_the_earliest_is_first() -> None:
    entries = [entry(1, latency=0.205), entry(2, latency=0.2), entry(3, latency=0.4)]
    assert places(SPRINT, entries) == [(1, True, 1), (1, True, 2), (3, False, 3)]


def test_sharing_goes_by_the_leader_and_does_not_run_on() -> None:
    entries = [entry(1, latency=0.20), entry(2, latency=0.215), entry(3, latency=0.23), entry(4, latency=0.245)]
    assert places(SPRINT, entries) == [(1, True, 1), (1, True, 2), (3, True, 3), (3, True, 4)]


def test_the_best_entry_of_a_student_counts() -> None:
    entries = [entry(1, "ada", latency=0.4), entry(2, "ada", latency=0.2), entry(3, "ada", latency=0.3)]
    assert places(SPRINT, entries) == [(1, False, 2)]


def test_of_equal_entries_the_earlier_counts_whatever_the_clock_said() -> None:
    entries = [entry(1, "ada", stamp=9e9), entry(2, "ada", stamp=1.0)]
    assert places(SPRINT, entries) == [(1, False, 1)]


def test_bars_keep_out_and_say_why() -> None:
    board = standings(SPRINT, [entry(1, accuracy=0.91), entry(2, latency=0.9)], private=False)
    assert [line.entry.id for line in board.places] == [2]
    assert board.outside[0][1] == "accuracy 91.00 % is below 92 %"


def test_who_has_a_place_is_not_listed_as_outside() -> None:
    board = standings(SPRINT, [entry(1, "ada", accuracy=0.5), entry(2, "ada")], private=False)
    assert not board.outside


def test_private_digits_count_after_the_deadline() -> None:
    assert places(SPRINT, [entry(1)], private=False) == [(1, False, 1)]
    assert places(SPRINT, [entry(1)], private=True) == []  # 90 % on the private digits


def test_accuracy_contest_ranks_large_first_under_both_bars() -> None:
    entries = [
        entry(1, accuracy=0.92, event="accuracy"),
        entry(2, accuracy=0.96, event="accuracy"),
        entry(3, accuracy=0.99, latency=1.2, event="accuracy"),
        entry(4, accuracy=0.99, size_ratio=0.6, event="accuracy"),
    ]
    assert places(CONTEST, entries) == [(1, False, 2), (2, False, 1)]


def test_the_area_of_an_entry() -> None:
    # accuracy gains (0.94 - 0.85) of the 0.15 above the bar, and costs gain 1 - 0.2, 1 - 0.5 and 1 - 0.1 of 1
    one = entry(1, latency=0.2, accuracy=0.94)
    area = score(ALL_AROUND, one, private=False)
    assert area.value == pytest.approx(0.09 / 0.15 * (0.8 + 0.5 + 0.9) / 3)
    assert area.lower < area.value < area.upper


def test_an_entry_worse_than_the_baseline_gains_no_area() -> None:
    worse = entry(1, latency=1.5, memory=Score(1.2, 1.1, 1.3), size_ratio=2.0)
    assert score(ALL_AROUND, worse, private=False) == (0.0, 0.0, 0.0)


def test_the_frontier_keeps_equal_entries() -> None:
    entries = [
        entry(1, latency=0.2, accuracy=0.9),
        entry(2, latency=0.2, accuracy=0.9),
        entry(3, latency=0.3, accuracy=0.9),
    ]
    assert on_frontier(entries) == {1, 2}
    assert on_frontier([]) == set()


@given(st.lists(st.tuples(st.floats(0.01, 10), st.floats(0, 0.5)), max_size=30))
def test_places_cover_everyone_once_and_leaders_are_apart(raw: list[tuple[float, float]]) -> None:
    scores = sorted(Score(value, value * (1 - half), value * (1 + half)) for value, half in raw)
    groups = share_places(scores)
    assert [index for start, end in groups for index in range(start, end)] == list(range(len(scores)))
    for start, end in groups:
        leader = scores[start]
        assert all(other.lower <= leader.upper and other.upper >= leader.lower for other in scores[start:end])
        if end < len(scores):
            following = scores[end]
            assert following.lower > leader.upper or following.upper < leader.lower

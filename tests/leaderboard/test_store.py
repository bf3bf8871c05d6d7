"""The database, on SQLite and on PostgreSQL: entering, measuring exactly once, and what can never be changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from autograder.leaderboard.entry.validate import EntryRefused, check
from autograder.leaderboard.referee import worker
from autograder.leaderboard.referee.referee import PRIVATE
from autograder.leaderboard.settings import Quota
from autograder.leaderboard.store import jobs
from autograder.leaderboard.store.clock import SteadyClock
from autograder.leaderboard.store.jobs import ATTEMPTS, LEASE
from autograder.leaderboard.store.store import (
    DAY,
    Conflict,
    Exhausted,
    NotAllowed,
    Store,
    Student,
    UnknownToken,
    Waiting,
)
from autograder.leaderboard.store.tables import MEASURED, REFUSED
from tests.leaderboard.boards import dense

QUOTA = Quota(per_day=3)
SCORES = {"latency": {"ratio": [1, 1, 1]}}


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(store: Store) -> Clock:
    store.clock = Clock()
    return store.clock


@pytest.fixture
def ada(store: Store) -> Student:
    return store.student(store.add_token("Ada", 1000))


def enter(store: Store, student: Student, seed: int = 0, event: str = "latency", quota: Quota = QUOTA) -> int:
    data = dense(2, seed)
    return store.enter(student, event, f"model {seed}.onnx", data, check(data), quota)


def enter_and_measure(store: Store, student: Student, seed: int, event: str = "latency") -> None:
    enter(store, student, seed, event)
    jobs.finish(store, claimed(store), SCORES, {})


def people(store: Store, count: int) -> list[Student]:
    return [store.student(store.add_token(f"s{number}", 1000)) for number in range(count)]


def at_once(function: Callable[[Any], Any], arguments: Sequence[Any]) -> list[Any]:
    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(function, arguments))


def claimed(store: Store, worker: str = "w1") -> jobs.Job:
    job = jobs.claim(store, worker)
    assert job is not None
    return job


def test_a_token_is_known_and_kept_as_a_hash_only(store: Store) -> None:
    token = store.add_token("Ada", 1)
    assert token.isalnum(), "one that begins with a dash is an option on a command line"
    assert store.student(token).name == "Ada"
    with store.engine.connect() as connection:
        rows = str(connection.execute(text("SELECT * FROM students")).all())
    assert token not in rows


def test_a_new_token_ends_the_earlier_one(store: Store) -> None:
    old, new = store.add_token("Ada", 1), store.add_token("Ada", 1)
    assert store.student(new).name == "Ada"
    with pytest.raises(UnknownToken, match="not known"):
        store.student(old)


@pytest.mark.parametrize("token", ["", "forged", "' OR 1=1 --", "\x00", "ä" * 10_000])
def test_forged_and_missing_tokens(store: Store, token: str) -> None:
    store.add_token("Ada", 1)
    with pytest.raises(UnknownToken, match="token"):
        store.student(token)


def test_an_expired_token_stays_expired_when_the_clock_is_set_back(store: Store, clock: Clock, ada: Student) -> None:
    token = store.add_token("Ben", 1)
    clock.now += 2 * DAY
    enter(store, ada)
    clock.now -= 2 * DAY
    with pytest.raises(UnknownToken, match="expired"):
        store.student(token)


@pytest.mark.parametrize("name", ["", "  ", "a" * 81, "a\nb", "a\x00b"])
def test_names_that_are_none(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        store.add_token(name, 1)


def test_an_entry_is_measured_and_its_history_tells(store: Store, ada: Student) -> None:
    number = enter(store, ada)
    job = claimed(store)
    assert store.content(job.sha256) == dense(2, 0)
    assert jobs.renew(store, job, "timing")
    found = store.entry(number)
    assert found is not None
    assert (found.state, found.progress) == ("running", "timing")
    assert jobs.finish(store, job, SCORES, {})
    assert [line.what for line in store.history(number)] == ["entered", "taken up", "measured"]
    assert [row.id for row in store.measured()] == [number]


def test_the_same_file_is_refused_also_from_another_student(store: Store, ada: Student) -> None:
    number = enter(store, ada)
    with pytest.raises(Conflict, match=f"entry {number} already"):
        enter(store, store.student(store.add_token("Ben", 1)))


def test_the_same_file_may_enter_another_event(store: Store, ada: Student) -> None:
    assert enter(store, ada) != enter(store, ada, event="memory")


def test_a_file_whose_entry_was_refused_may_come_again(store: Store, ada: Student) -> None:
    enter(store, ada)
    jobs.refuse(store, claimed(store), "the machine burned down")
    assert enter(store, ada)


def test_the_quota_is_by_event_and_day_and_refused_entries_are_free(store: Store, clock: Clock, ada: Student) -> None:
    enter(store, ada, 9)
    jobs.refuse(store, claimed(store), "broken")
    store.record_refusal(ada, "latency", "x", b"x", "no model")
    for seed in range(3):
        enter_and_measure(store, ada, seed)
    with pytest.raises(Exhausted, match="tomorrow"):
        enter(store, ada, 3)
    enter_and_measure(store, ada, 3, event="memory")
    clock.now += DAY
    enter_and_measure(store, ada, 5)
    clock.now -= DAY  # set back: the day stays the later one, and its quota
    enter_and_measure(store, ada, 6)
    enter_and_measure(store, ada, 7)
    with pytest.raises(Exhausted):
        enter(store, ada, 8)


def test_one_entry_of_a_student_to_an_event_waits_at_a_time(store: Store, ada: Student) -> None:
    number = enter(store, ada, 0)
    with pytest.raises(Waiting, match=f"your entry {number} to this event still waits"):
        enter(store, ada, 1)
    enter(store, ada, 1, event="memory")
    enter(store, people(store, 1)[0], 2)
    claimed(store)
    enter(store, ada, 1)


def test_students_take_turns(store: Store, ada: Student) -> None:
    events = ("latency", "memory", "accuracy")
    greedy = [enter(store, ada, seed, event) for seed, event in enumerate(events)]
    ben, eve = people(store, 2)
    late = [enter(store, ben, 10), enter(store, eve, 11), enter(store, ben, 12, "memory")]
    expected = [greedy[0], late[0], late[1], greedy[1], late[2], greedy[2]]
    assert [jobs.ahead(store, number) for number in expected] == list(range(6))
    order = []
    while job := jobs.claim(store, "w"):
        order.append(job.entry_id)
        assert jobs.ahead(store, expected[-1]) == (6 - len(order) if len(order) < 6 else 1)
        jobs.finish(store, job, SCORES, {})
    assert order == expected


@pytest.mark.parametrize("why", [PRIVATE, "its latency varies too much from process to process"])
def test_an_entry_that_the_referee_refuses_counts(store: Store, ada: Student, why: str) -> None:
    def measure(data: bytes, progress: object) -> tuple[dict[str, Any], dict[str, Any]]:
        raise EntryRefused(why)

    for seed in range(3):
        number = enter(store, ada, seed)
        worker.work(store, measure, stop=threading.Event(), idle=False)
        assert [line.what for line in store.history(number)][-2:] == ["refused", "counted"]
    with pytest.raises(Exhausted):
        enter(store, ada, 3)


def test_the_deadline_holds_when_the_clock_is_set_back(store: Store, clock: Clock, ada: Student) -> None:
    deadline = datetime.fromtimestamp(clock.now + 100, UTC)
    data = dense(2, 1)
    enter(store, ada)
    clock.now += 200
    jobs.refuse(store, claimed(store), "late")
    clock.now -= 500
    with pytest.raises(NotAllowed, match="deadline"):
        store.enter(ada, "latency", "m", data, check(data), QUOTA, deadline)


def test_an_upload_that_began_in_time_enters(store: Store, clock: Clock, ada: Student) -> None:
    data, arrived = dense(2, 1), clock.now
    deadline = datetime.fromtimestamp(arrived + 10, UTC)
    clock.now += 20
    assert store.enter(ada, "latency", "m", data, check(data), QUOTA, deadline, arrived)


def test_a_clock_that_was_ahead_once_does_not_end_the_contest(
    store: Store, clock: Clock, ada: Student, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.leaderboard.store.clock._said", {})
    right = clock.now
    deadline = datetime.fromtimestamp(right + 30 * DAY, UTC)
    data = dense(2, 1)
    clock.now += 90 * DAY
    store.record_refusal(ada, "latency", "x", b"junk", "no model")
    clock.now = right
    with caplog.at_level(logging.ERROR), pytest.raises(NotAllowed, match="deadline"):
        store.enter(ada, "latency", "m", data, check(data), QUOTA, deadline)
    assert "autograder leaderboard clock --trust" in caplog.text
    store.trust_clock()
    store.trust_clock()
    assert store.now() == right
    assert store.enter(ada, "latency", "m", data, check(data), QUOTA, deadline)


def test_a_clock_that_jumps_is_not_followed(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.leaderboard.store.clock._said", {})
    wall, steady = Clock(1_800_000_000.0), Clock(50.0)
    clock = SteadyClock(wall, steady)
    wall.now += 5.0  # kept right by a few seconds, again and again
    assert clock() == wall.now
    for ahead in (90 * DAY, -90 * DAY):
        right = wall.now
        wall.now += ahead
        steady.now += 7
        with caplog.at_level(logging.ERROR):
            assert clock() == right + 7
        wall.now = right + 7
        assert clock() == wall.now
    assert "the clock jumped to" in caplog.text


@pytest.mark.parametrize("table", ["entries", "results", "history"])
@pytest.mark.parametrize("change", ["UPDATE {} SET id = 99", "DELETE FROM {}"])
def test_what_happened_cannot_be_changed(store: Store, ada: Student, table: str, change: str) -> None:
    enter(store, ada)
    jobs.finish(store, claimed(store), SCORES, {})
    if table == "results":
        change = change.replace("id = 99", "scores = '{{}}'")
    with pytest.raises(DBAPIError, match="append-only"), store.engine.begin() as connection:
        connection.execute(text(change.format(table)))


def test_a_dead_workers_entry_is_taken_up_again_and_said_so(store: Store, clock: Clock, ada: Student) -> None:
    number = enter(store, ada)
    first = claimed(store, "w1")
    assert jobs.claim(store, "w2") is None
    clock.now += LEASE + 1
    second = claimed(store, "w2")
    assert (second.entry_id, second.attempt) == (number, 2)
    assert "because w1 did not finish" in store.history(number)[-1].detail
    # The first one was only slow: its result comes too late and is dropped.
    assert not jobs.renew(store, first)
    assert not jobs.finish(store, first, SCORES, {})
    assert not jobs.refuse(store, first, "late")
    assert jobs.finish(store, second, SCORES, {})
    assert not jobs.finish(store, second, SCORES, {})


def test_a_heartbeat_keeps_a_long_measurement(store: Store, clock: Clock, ada: Student) -> None:
    enter(store, ada)
    job = claimed(store)
    for _ in range(5):
        clock.now += LEASE * 0.8
        assert jobs.renew(store, job)
        assert jobs.claim(store, "w2") is None


def test_an_entry_that_kills_workers_is_given_up(store: Store, clock: Clock, ada: Student) -> None:
    number, other = enter(store, ada, 0), enter(store, people(store, 1)[0], 1)
    for _ in range(ATTEMPTS):
        assert claimed(store).entry_id == number
        clock.now += LEASE + 1
    assert claimed(store).entry_id == other
    found = store.entry(number)
    assert found is not None
    assert found.state == REFUSED
    assert "stopped 3 times" in store.history(number)[-1].detail


def test_a_stopped_worker_puts_its_entry_back(store: Store, ada: Student) -> None:
    number = enter(store, ada)
    jobs.put_back(store, claimed(store, "w1"))
    again = claimed(store, "w2")
    assert (again.entry_id, again.attempt) == (number, 1)


def test_a_lease_made_before_the_clock_was_set_back_lapses(store: Store, clock: Clock, ada: Student) -> None:
    enter(store, ada)
    claimed(store)
    clock.now -= DAY
    assert jobs.claim(store, "w2") is not None


def test_eight_workers_share_the_queue_without_doubles(store: Store) -> None:
    numbers = {enter(store, student, seed) for seed, student in enumerate(people(store, 40))}

    def work(name: str) -> list[int]:
        done = []
        while (job := jobs.claim(store, name)) is not None:
            assert jobs.finish(store, job, SCORES, {})
            done.append(job.entry_id)
        return done

    done = at_once(work, [f"w{number}" for number in range(8)])
    # PostgreSQL may have passed over rows that were locked for an instant; nothing may be left in the end.
    assert sorted(chain(*done, work("last"))) == sorted(numbers)
    assert {row.id for row in store.measured()} == numbers


def test_of_entries_at_once_one_waits(store: Store, ada: Student) -> None:
    def one(seed: int) -> str:
        with suppress(Waiting):
            enter(store, ada, seed)
            return "entered"
        return "waiting"

    assert sorted(at_once(one, range(8))) == ["entered"] + ["waiting"] * 7


def test_the_same_file_at_once_enters_once(store: Store) -> None:
    def one(student: Student) -> str:
        with suppress(Conflict):
            enter(store, student)
            return "entered"
        return "conflict"

    assert sorted(at_once(one, people(store, 6))) == ["conflict"] * 5 + ["entered"]


def test_hostile_names_are_data(store: Store, ada: Student) -> None:
    name = "'); DROP TABLE entries; --\x00\u202e<b>"
    data = dense(2, 0)
    number = store.enter(ada, "latency", name, data, check(data), QUOTA)
    found = store.entry(number)
    assert found is not None
    assert found.name == "'); DROP TABLE entries; --<b>"
    assert found.state != MEASURED


def test_a_setting_is_made_once(store: Store) -> None:
    assert store.setting("x", lambda: b"one") == b"one"
    assert store.setting("x", lambda: b"two") == b"one"
    assert store.private_seed() == store.private_seed()


def test_a_database_that_is_none() -> None:
    with pytest.raises(ValueError, match="sqlite:///"):
        Store("nonsense")

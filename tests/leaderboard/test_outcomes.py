"""Every view of an entry says the same about its place: the page, the list of own entries, the API, the command."""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from autograder.cli import main
from autograder.leaderboard import client as students_end
from autograder.leaderboard.board import Board, Snapshot
from autograder.leaderboard.entry.validate import check
from autograder.leaderboard.ranking import Entry, Score, missed_bars, standings
from autograder.leaderboard.settings import Olympics
from autograder.leaderboard.store import jobs
from autograder.leaderboard.store.store import Store
from autograder.leaderboard.web.app import create_app
from autograder.leaderboard.web.uploads import COOKIE
from tests.leaderboard.boards import dense, serving, small_olympics


def scores(latency: float, right: int, size: float = 0.5) -> dict[str, Any]:
    """Scores as the referee writes them: 4,320 public digits, and 40 fewer right of the private ones."""
    return {
        "latency": {"ratio": [latency, latency * 0.97, latency * 1.03], "seconds": latency / 500},
        "memory": {"ratio": [0.5, 0.49, 0.51], "bytes": 4e6, "stages": {"load": 4e6}},
        "size": {"bytes": 10_000, "ratio": size},
        "accuracy": {"public": [right, 4320], "private": [right - 40, 4320]},
    }


# Of each student, in order: event, latency, right answers, and what every view says.
ENTRIES = [
    ("Ada", "latency", 0.40, 4300, "placed", "Place 1, shared, in the Latency Sprint with 0.400 × (0.388 – 0.412 ×)."),
    ("Ada", "latency", 0.80, 4300, "surpassed", "entry 1 of Ada is better, and the best entry counts."),
    ("Ben", "latency", 0.41, 4300, "placed", "Place 1, shared, in the Latency Sprint"),
    ("Cleo", "latency", 0.10, 3912, "missed", "No place in the Latency Sprint: accuracy 90.56 % is below 92 %."),
    ("Dora", "latency", 0.90, 4100, "placed", "Place 3 in the Latency Sprint"),
]


@pytest.fixture
def served(light_store: Store) -> Iterator[tuple[str, dict[int, str]]]:
    """The address of a server with the entries, and the tokens of the students by the number of their entry."""
    olympics = small_olympics()
    with serving(create_app(light_store, olympics)) as address:
        tokens = {student: light_store.add_token(student, 1) for student, *_ in ENTRIES}
        for number, (student, event, latency, right, *_) in enumerate(ENTRIES, 1):
            entry = students_end.enter(address, tokens[student], event, "m.onnx", dense(number, number))
            assert entry["outcome"] == ""
            job = jobs.claim(light_store, "w")
            assert job
            jobs.finish(light_store, job, scores(latency, right), {})
        yield address, {number: tokens[student] for number, (student, *_) in enumerate(ENTRIES, 1)}


def words(page: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


def test_all_views_agree(served: tuple[str, dict[int, str]], light_store: Store) -> None:
    address, tokens = served
    snapshot = Board(light_store, small_olympics()).snapshot()
    for number, (*_, kind, sentence) in enumerate(ENTRIES, 1):
        shown = httpx.get(f"{address}/entries/{number}").text
        own = httpx.get(f"{address}/enter", cookies={COOKIE: tokens[number]}).text
        entry = snapshot.entry(number)
        assert entry
        outcome = snapshot.outcome_of(entry)

        assert outcome.kind == kind
        assert sentence in words(outcome.sentence)
        assert httpx.get(f"{address}/api/entries/{number}").json()["outcome"] == outcome.sentence
        for page in (shown, own):
            assert words(outcome.sentence) in words(page)
            assert f"state-{kind}" in page
        assert ("no place" in words(shown)) == (kind == "missed")
        assert f'notice {kind}"' in shown, "the colour of the box is not that of the badge"


def test_the_command_says_what_the_page_says(
    light_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "low.onnx"
    model.write_bytes(dense())

    def measured_at_once(server: str, entry: dict[str, Any], report: Any) -> dict[str, Any]:
        job = jobs.claim(light_store, "w")
        assert job
        jobs.finish(light_store, job, scores(0.1, 3912), {})
        return httpx.get(f"{server}/api/entries/{entry['id']}").json()  # type: ignore[no-any-return]

    monkeypatch.setattr(students_end, "follow", measured_at_once)
    with serving(create_app(light_store, small_olympics())) as address:
        token = light_store.add_token("Cleo", 1)
        main(
            ["--root", str(tmp_path), "leaderboard", "enter", str(model), "--url", address, "--token", token, "--wait"]
        )
        said, page = capsys.readouterr().out, httpx.get(f"{address}/entries/1").text

    assert "No place in the Latency Sprint: accuracy 90.56 % is below 92 %." in said
    assert "accuracy 90.56 % is below 92 %." in words(page)
    assert "better entry" not in said
    for number in ("0.100", "0.0970", "0.103", "90.6", "89.6", "91.4"):  # latency and accuracy, with their intervals
        assert number in said
        assert number in words(page)


def test_bars_on_private_digits_and_events_no_longer_held(light_store: Store) -> None:
    olympics = small_olympics()
    board = Board(light_store, olympics)
    student = light_store.student(light_store.add_token("Eve", 1))
    light_store.enter(student, "latency", "m.onnx", dense(), check(dense()), olympics.quota)
    job = jobs.claim(light_store, "w")
    assert job
    jobs.finish(light_store, job, scores(0.3, 4000), {})
    snapshot = board.snapshot()
    entry = snapshot.entry(1)
    assert entry
    assert snapshot.outcome_of(entry).kind == "placed"  # 92.6 % in public, 91.7 % in private

    final = {event.id: standings(event, [entry], True) for event in olympics.events}
    outcome = Snapshot((1, True), [entry], final).outcome_of(entry)
    assert outcome.sentence == "No place in the Latency Sprint: accuracy 91.67 % on the private digits is below 92 %."

    gone = Snapshot((1, True), [entry], {}).outcome_of(entry)
    assert gone.sentence == "No place: the event 'latency' is not held any more."


@pytest.mark.parametrize(("accuracy", "text"), [(0.919999, "91.9999 % is below 92 %"), (0.9056, "90.56 % is below")])
def test_a_missed_bar_never_looks_reached(accuracy: float, text: str) -> None:
    olympics: Olympics = small_olympics()
    event = dataclasses.replace(olympics.event("latency"), latency_max=0.3, size_max=0.25)
    narrow = Score(0.30001, 0.3, 0.31)
    share = Score(accuracy, accuracy - 0.01, accuracy + 0.01)
    entry = Entry(1, "latency", "Ada", "m", 0.0, 10, 0.1, 1.0, narrow, narrow, 0.2500001, share, share)
    missed = missed_bars(event, entry, private=False)
    assert text in missed
    for value, bar in re.findall(r"([\d.]+) × baseline is above ([\d.]+) ×", missed):
        assert float(value) > float(bar)


def test_the_footer_names_what_has_an_interval(served: tuple[str, dict[int, str]]) -> None:
    """Each number that the footer names has both ends on the page of an entry, and the others have none."""
    page = words(httpx.get(f"{served[0]}/entries/1").text)
    footer = page.partition("Deadline ")[2]
    assert "Latency, memory, accuracy and the score have a 95 % interval" in footer
    for interval in ("0.388 × to 0.412 ×", "0.490 × to 0.510 ×", "99.3 % to 99.7 %"):  # latency, memory, accuracy
        assert interval in page
    assert "every number" not in footer

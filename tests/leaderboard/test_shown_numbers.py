"""What the leaderboard's pages, its CSV and its API show, number by number, against the scores of the referee."""

from __future__ import annotations

import csv
import io
import random
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from autograder.leaderboard.store.store import Store
from autograder.leaderboard.web.app import create_app
from tests.leaderboard.boards import dense, fill, made_up_scores, serving, small_olympics
from tests.shown import is_shown, numbers, text_of

ENTRIES, STUDENTS = 12, 3


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Serve a board of made-up scores."""
    store, olympics = Store(f"sqlite:///{tmp_path_factory.mktemp('board') / 'board.db'}"), small_olympics()
    fill(store, olympics, ENTRIES, STUDENTS)
    with serving(create_app(store, olympics)) as address, httpx.Client(base_url=address, trust_env=False) as client:
        yield client


def truths() -> dict[int, dict[str, float]]:
    """Return what the referee found of each entry, by the number in its name."""
    rng, found = random.Random(0), {}
    for number in range(ENTRIES):
        data = dense(1 + number % 7, number)
        scores: dict[str, Any] = made_up_scores(rng, len(data))
        right, total = scores["accuracy"]["public"]
        latency, memory = scores["latency"]["ratio"], scores["memory"]["ratio"]
        found[number] = {
            "latency": latency[0], "latency low": latency[1], "latency high": latency[2], "memory": memory[0],
            "kB": len(data) / 1000, "accuracy": 100 * right / total, "size ratio": scores["size"]["ratio"],
        }  # fmt: skip
    return found


TRUTHS = truths()
EVENTS = ("latency", "memory", "accuracy", "all-around")
# the latency, memory, size and accuracy of an entry, wherever a page shows them
MEASURED = {
    "latency": r"latency ([\d.]+) ×",
    "memory": r"memory ([\d.]+) ×",
    "kB": r"([\d.]+) kB",
    "accuracy": r"accuracy ([\d.]+) %",
}


def entries_in(text: str) -> Iterator[tuple[dict[str, float], str]]:
    """Yield the truth about each entry that a line of a page shows, and the line."""
    for line in text.splitlines():
        if match := re.search(r"model (\d+)\.onnx", line):
            yield TRUTHS[int(match[1])], line


@pytest.mark.parametrize("page", [f"/events/{event}" for event in EVENTS] + ["/pareto"])
def test_a_page_shows_what_the_referee_measured(board: httpx.Client, page: str) -> None:
    lines = [*entries_in(text_of(board.get(page).text))]
    compared = 0
    for truth, line in lines:
        for name, pattern in MEASURED.items():
            for shown in re.findall(pattern, line):
                compared += 1
                assert is_shown(shown, truth[name]), (name, line, truth)
    assert compared, "the page shows entries"


def frontier() -> set[int]:
    """Return the entries that no other entry beats in latency and in accuracy."""
    return {
        number
        for number, mine in TRUTHS.items()
        if not any(
            other["latency"] <= mine["latency"] and other["accuracy"] >= mine["accuracy"] and other != mine
            for other in TRUTHS.values()
        )
    }


def test_pareto(board: httpx.Client) -> None:
    rows = [line for line in text_of(board.get("/pareto").text).splitlines() if "model" in line and "|" in line]
    assert len(rows) == ENTRIES
    for line in rows:
        number = int(re.search(r"model (\d+)\.onnx", line)[1])  # type: ignore[index]
        truth, cells = TRUTHS[number], [cell.strip() for cell in line.split("|")][1:-1]
        for cell, name in zip(cells, ("latency", "accuracy", "memory", "kB"), strict=False):
            assert is_shown(numbers(cell)[0], truth[name]), (cell, name, truth)
        assert cells[4] == ("yes" if number in frontier() else "no"), line


def test_the_score_of_the_sprint_is_the_latency_and_the_interval_its_own(board: httpx.Client) -> None:
    lines = [line for _, line in entries_in(text_of(board.get("/events/latency").text)) if line.count("|") > 6]
    assert lines
    for line in lines:
        truth = TRUTHS[int(re.search(r"model (\d+)\.onnx", line)[1])]  # type: ignore[index]
        score, low, high = re.search(r"\| ([\d.]+) × ([\d.]+) – ([\d.]+) ×", line).groups()  # type: ignore[union-attr]
        for shown, name in ((score, "latency"), (low, "latency low"), (high, "latency high")):
            assert is_shown(shown, truth[name]), (line, truth)


def test_the_api_and_the_csv_hold_the_same_numbers(board: httpx.Client) -> None:
    """Places and all: what passes the bar of 92 % is in the order of latency, the best entry of each student."""
    passing = {n: t for n, t in TRUTHS.items() if n % len(EVENTS) == 0 and t["accuracy"] >= 92}
    best: dict[int, int] = {}
    for number in sorted(passing, key=lambda n: passing[n]["latency"]):
        best.setdefault(number % STUDENTS, number)
    told = board.get("/api/events/latency").json()
    assert {each["name"] for each in told} == {f"model {number}.onnx" for number in best.values()}
    for each in told:
        truth = TRUTHS[int(re.findall(r"\d+", each["name"])[0])]
        assert each["score"]["value"] == pytest.approx(truth["latency"])
        assert each["measured"]["size"] == round(1000 * truth["kB"])
        assert each["measured"]["accuracy"]["value"] == pytest.approx(truth["accuracy"] / 100)
    [link] = set(re.findall(r'href="([^"]*\.csv[^"]*)"', board.get("/events/latency").text))
    rows = [row for row in csv.DictReader(io.StringIO(board.get(link).text)) if row["place"]]
    assert len(rows) == len(told)
    for row, each in zip(rows, told, strict=True):
        shown = {name: float(text) for name, text in row.items() if re.fullmatch(r"[\d.]+(e-?\d+)?", text)}
        values = [each["score"]["value"], each["score"]["lower"], each["score"]["upper"], each["measured"]["size"]]
        for value in values:
            assert any(number == pytest.approx(value) for number in shown.values()), (value, row)


def test_the_page_of_an_entry(board: httpx.Client) -> None:
    for number in range(ENTRIES):
        text, truth = text_of(board.get(f"/entries/{number + 1}").text), TRUTHS[number]
        assert f"model {number}.onnx" in text
        shown = numbers(text.replace("%", " "))
        for name in ("latency", "memory", "kB", "accuracy", "latency low", "latency high"):
            assert any(is_shown(each, truth[name]) for each in shown), (name, truth, text)


def test_there_is_a_comparison_for_every_page(board: httpx.Client) -> None:
    """The pages that the first one leads to; a new one needs a comparison here."""
    found = (urlsplit(link).path for link in re.findall(r'href="([^"#]+)"', board.get("/").text))
    pages = {path for path in found if path.startswith("/") and not path.startswith("/static") and path != "/"}
    shown = {f"/events/{event}" for event in EVENTS} | {"/pareto"}
    assert pages - {"/rules", "/enter"} == shown, "compare the numbers of a new page here"

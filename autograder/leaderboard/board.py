"""The data for web pages and exports: the measured entries and the standings, computed once after each change."""

from __future__ import annotations

import csv
import io
import threading
from dataclasses import dataclass
from typing import Literal

from autograder.leaderboard.formatting import interval, scored
from autograder.leaderboard.ranking import Entry, Place, Standings, entry_of, missed_bars, standings
from autograder.leaderboard.settings import Event, Olympics
from autograder.leaderboard.store.store import Store

COLUMNS = (
    "place", "shared", "student", "entry", "name", "score", "score_lower", "score_upper", "latency_ratio",
    "latency_lower", "latency_upper", "memory_ratio", "memory_lower", "memory_upper", "size_bytes",
    "accuracy", "accuracy_lower", "accuracy_upper", "digits", "misses",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The place of a measured entry, or the reason why the entry has none, as a sentence."""

    kind: Literal["placed", "missed", "surpassed"]
    sentence: str


@dataclass(frozen=True)
class Snapshot:
    """The entries and the standings of all events at one moment."""

    state: tuple[int, bool]
    entries: list[Entry]
    standings: dict[str, Standings]

    @property
    def private(self) -> bool:
        """Whether the deadline has passed. From then on, the private digits count."""
        return self.state[1]

    def entry(self, entry_id: int) -> Entry | None:
        """Return the measured entry with this number, or None if there is none."""
        return next((entry for entry in self.entries if entry.id == entry_id), None)

    def place_of(self, entry_id: int) -> Place | None:
        """Return the place of an entry in its event, or None if the entry has no place."""
        places = (place for each in self.standings.values() for place in each.places)
        return next((place for place in places if place.entry.id == entry_id), None)

    def outcome_of(self, entry: Entry) -> Outcome:
        """Return the outcome of a measured entry. The pages, the API and the command line all show this text."""
        ranked = self.standings.get(entry.event)
        if ranked is None:
            return Outcome("missed", f"No place: the event {entry.event!r} is not held any more.")

        event = ranked.event
        if missed := missed_bars(event, entry, self.private):
            return Outcome("missed", f"No place in the {event.title}: {missed}.")

        counts = next(place for place in ranked.places if place.entry.student == entry.student)
        if counts.entry.id != entry.id:
            better = f"entry {counts.entry.id} of {entry.student} is better, and the best entry counts"
            return Outcome("surpassed", f"No place in the {event.title}: {better}.")

        number = f"{counts.place}, shared," if counts.shared else f"{counts.place}"
        reached = f"{scored(counts.score.value, event)} ({interval(counts.score, event)})"
        return Outcome("placed", f"Place {number} in the {event.title} with {reached}.")


class Board:
    """The standings of all events. They are always up to date."""

    def __init__(self, store: Store, olympics: Olympics) -> None:
        self.store, self.olympics = store, olympics
        self.lock = threading.Lock()
        self.last: Snapshot | None = None
        self.read: dict[int, Entry] = {}  # each result is read once, because results never change

    def state(self) -> tuple[int, bool]:
        """Return the number of the latest history line, and whether the deadline has passed."""
        return self.store.version(), self.store.now() >= self.olympics.deadline.timestamp()

    def snapshot(self) -> Snapshot:
        """Return the standings of all events. The standings are computed again only if `state` has changed."""
        state = self.state()
        with self.lock:
            if self.last is None or self.last.state != state:
                for row in self.store.measured():
                    if row.id not in self.read:
                        self.read[row.id] = entry_of(row)
                entries = sorted(self.read.values(), key=lambda entry: entry.id)
                ranked = {event.id: standings(event, entries, state[1]) for event in self.olympics.events}
                self.last = Snapshot(state, entries, ranked)
            return self.last


def export_csv(event: Event, ranked: Standings) -> str:
    """Return the standings of an event as CSV. Students without a place come last, with the limits that they miss."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    rows = [(place.place, place.shared, place.score, place.entry, "") for place in ranked.places]
    rows += [("", "", ("", "", ""), entry, missed) for entry, missed in ranked.outside]  # type: ignore[misc]
    digits = "private" if ranked.private else "public"
    for place, shared, score, entry, missed in rows:
        measured = (*entry.latency, *entry.memory, entry.size, *entry.accuracy(ranked.private))
        text = (_plain(entry.student), entry.id, _plain(entry.name))
        writer.writerow([place, shared, *text, *score, *measured, digits, missed])
    return out.getvalue()


def _plain(text: str) -> str:
    """Return text that no spreadsheet interprets as a formula: an apostrophe is added if necessary."""
    return f"'{text}" if text[:1] in "=+-@\t\r" else text

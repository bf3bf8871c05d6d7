"""The ranking of entries: scores with intervals decide the places, and overlapping intervals share a place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from autograder.leaderboard.settings import Event
from tinybench.accuracy import wilson_interval
from tinybench.pareto import hypervolume_2d, pareto_frontier


class Score(NamedTuple):
    """A number with its 95 % interval."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Entry:
    """A measured entry."""

    id: int
    event: str
    student: str
    name: str
    stamp: float
    size: int
    seconds: float
    bytes: float
    latency: Score
    memory: Score
    size_ratio: float
    public: Score
    private: Score

    def accuracy(self, private: bool) -> Score:
        """Return the accuracy on the private digits if `private` is True, otherwise on the public digits."""
        return self.private if private else self.public

    def point(self) -> tuple[float, float]:
        """Return the entry's point in the Pareto chart: latency relative to the baseline, and public accuracy."""
        return self.latency.value, self.public.value


@dataclass(frozen=True)
class Place:
    """A place in the standings: its number, whether it is shared, and the entry with its score."""

    place: int
    shared: bool
    score: Score
    entry: Entry


@dataclass(frozen=True)
class Standings:
    """The places in an event.

    `outside` lists the students whose entries all miss a limit of the event. It holds the latest entry of each and the
    reason.
    """

    event: Event
    private: bool
    places: list[Place]
    outside: list[tuple[Entry, str]]


@lru_cache(maxsize=50_000)
def accuracy_of(correct: int, total: int, worth: float | None = None) -> Score:
    """Return the fraction of correct answers with its Wilson interval.

    The digits are copies of a few originals, and `worth` as many independent ones. Without it, as in scores of earlier
    releases, they count as independent.
    """
    lower, upper = wilson_interval(correct, total, worth=worth)
    return Score(correct / total, lower, upper)


def entry_of(row: Any) -> Entry:
    """Return a measured entry from its row in the store."""
    scores = row.scores
    return Entry(
        id=row.id,
        event=row.event,
        student=row.student,
        name=row.name,
        stamp=row.stamp,
        size=row.size,
        seconds=scores["latency"]["seconds"],
        bytes=scores["memory"]["bytes"],
        latency=Score(*scores["latency"]["ratio"]),
        memory=Score(*scores["memory"]["ratio"]),
        size_ratio=scores["size"]["ratio"],
        public=accuracy_of(*scores["accuracy"]["public"]),
        private=accuracy_of(*scores["accuracy"]["private"]),
    )


def score(event: Event, entry: Entry, private: bool) -> Score:
    """Return the score by which an entry is ranked in an event."""
    if event.measure == "latency":
        return entry.latency
    if event.measure == "memory":
        return entry.memory
    if event.measure == "accuracy":
        return entry.accuracy(private)
    return _area(entry.latency, entry.memory, entry.size_ratio, entry.accuracy(private), event.accuracy_min)


@lru_cache(maxsize=50_000)
def _area(latency: Score, memory: Score, size: float, accuracy: Score, begins: float) -> Score:
    """Return the mean of three areas, each of which compares one cost of an entry with the baseline's.

    The costs are latency, memory and size, as ratios to the baseline. In a plot of accuracy against a cost, the area is
    the rectangle between the entry's point and the point with cost 1 and accuracy `begins`. It is scaled so that the
    largest possible area is 1. It is 0 unless the entry is better than this point in both respects.
    """

    def mean_area(costs: Iterable[float], correct: float) -> float:
        areas = [hypervolume_2d([(cost, correct)], (1.0, begins)) for cost in costs]
        return sum(areas) / len(areas) / (1 - begins)

    return Score(
        mean_area((latency.value, memory.value, size), accuracy.value),
        mean_area((latency.upper, memory.upper, size), accuracy.lower),
        mean_area((latency.lower, memory.lower, size), accuracy.upper),
    )


def smaller_is_better(event: Event) -> bool:
    """Return whether the smallest score wins an event."""
    return event.measure in ("latency", "memory")


def missed_bars(event: Event, entry: Entry, private: bool) -> str:
    """Return a text with the limits of the event that an entry misses, or an empty text if the entry meets them all."""
    accuracy = entry.accuracy(private).value
    missed = []
    if accuracy < event.accuracy_min:
        digits = " on the private digits" if private else ""
        value, bar = _unequal(100 * accuracy, 100 * event.accuracy_min, ".2f")
        missed.append(f"accuracy {value} %{digits} is below {bar} %")
    if entry.latency.value > event.latency_max:
        value, bar = _unequal(entry.latency.value, event.latency_max, ".3g")
        missed.append(f"latency {value} × baseline is above {bar} ×")
    if entry.size_ratio > event.size_max:
        value, bar = _unequal(entry.size_ratio, event.size_max, ".3g")
        missed.append(f"size {value} × baseline is above {bar} ×")
    return "; ".join(missed)


def _unequal(value: float, bar: float, form: str) -> tuple[str, str]:
    """Return a value and the limit that the value misses as texts.

    A value that rounds to the limit gets more digits.
    """
    text = format(value, form)
    return f"{value:.15g}" if float(text) == bar else text, f"{bar:g}"


def standings(event: Event, entries: Iterable[Entry], private: bool) -> Standings:
    """Rank each student's best entry in an event. If `private` is True, accuracy on the private digits counts.

    A student shares a place with the best student at that place if their intervals overlap. Within a place, the
    earliest entry comes first.
    """
    sign = 1.0 if smaller_is_better(event) else -1.0
    best: dict[str, tuple[tuple[float, int], Entry]] = {}
    outside: dict[str, tuple[Entry, str]] = {}
    for entry in entries:
        if entry.event != event.id:
            continue
        missed = missed_bars(event, entry, private)
        if missed:
            outside[entry.student] = (entry, missed)
            continue
        # The order of entry numbers is the order of entering, even if a clock was wrong.
        key = (sign * score(event, entry, private).value, entry.id)
        if entry.student not in best or key < best[entry.student][0]:
            best[entry.student] = (key, entry)
    ordered = [entry for _, entry in sorted(best.values(), key=lambda pair: pair[0])]
    groups = share_places([score(event, entry, private) for entry in ordered])
    places = [
        Place(start + 1, end - start > 1, score(event, entry, private), entry)
        for start, end in groups
        for entry in sorted(ordered[start:end], key=lambda entry: entry.id)
    ]
    return Standings(event, private, places, [pair for name, pair in outside.items() if name not in best])


def share_places(scores: Sequence[Score]) -> list[tuple[int, int]]:
    """Return the index ranges of sorted scores that share a place.

    A score shares a place with the first score of a range if their intervals overlap.
    """
    groups: list[tuple[int, int]] = []
    start = 0
    for index, current in enumerate(scores):
        leader = scores[start]
        if current.lower > leader.upper or current.upper < leader.lower:
            groups.append((start, index))
            start = index
    if scores:
        groups.append((start, len(scores)))
    return groups


def on_frontier(entries: Sequence[Entry]) -> set[int]:
    """Return the ids of entries that no other entry beats in both latency and public accuracy."""
    best = set(pareto_frontier([entry.point() for entry in entries])) if entries else set()
    return {entry.id for entry in entries if entry.point() in best}

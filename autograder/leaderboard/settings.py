"""The events, bars, limits and quotas, read from one file that an instructor edits."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

MEASURES = ("latency", "memory", "accuracy", "area")


@dataclass(frozen=True)
class Task:
    """How many digits, and how many of them one timed call gets."""

    public_rows: int = 4320
    private_rows: int = 4320
    batch: int = 256


@dataclass(frozen=True)
class EntryLimits:
    """What an entry may be, and what it may use while it is measured."""

    size_mb: float = 16
    nodes: int = 2000
    weights: int = 4_000_000
    start_seconds: float = 5.0
    call_seconds: float = 1.0
    seconds: float = 120
    memory_mb: float = 1024

    @property
    def size(self) -> int:
        """The largest file in bytes."""
        return int(self.size_mb * 2**20)


@dataclass(frozen=True)
class Quota:
    """How often a student may enter, and how long a token is good for."""

    per_day: int = 8
    token_days: int = 180


@dataclass(frozen=True)
class Baseline:
    """The network that every entry is measured beside."""

    hidden: tuple[int, ...] = (512, 256)
    iterations: int = 15
    seed: int = 0


@dataclass(frozen=True)
class Effort:
    """How thoroughly the referee measures."""

    processes: int = 6
    rounds: int = 25
    floor: float = 0.08
    widest: float = 0.2


@dataclass(frozen=True)
class Event:
    """One contest: what ranks in it, and which bars an entry must pass."""

    id: str
    title: str
    goal: str
    measure: str
    accuracy_min: float = 0.0
    latency_max: float = float("inf")
    size_max: float = float("inf")

    @property
    def rules(self) -> str:
        """The bars as a sentence."""
        bars = []
        if self.accuracy_min:
            begins = "The areas begin at accuracy" if self.measure == "area" else "Accuracy at least"
            bars.append(f"{begins} {100 * self.accuracy_min:g}\N{NO-BREAK SPACE}%")
        if self.latency_max < float("inf"):
            bars.append(f"latency at most {self.latency_max:g}\N{NO-BREAK SPACE}× the baseline's")
        if self.size_max < float("inf"):
            bars.append(f"file at most {self.size_max:g}\N{NO-BREAK SPACE}× the baseline's")
        text = ", ".join(bars)
        return f"{text[0].upper()}{text[1:]}." if text else "No bars."


@dataclass(frozen=True)
class Olympics:
    """All that an instructor sets."""

    title: str
    deadline: datetime
    events: tuple[Event, ...]
    task: Task = field(default_factory=Task)
    limits: EntryLimits = field(default_factory=EntryLimits)
    quota: Quota = field(default_factory=Quota)
    baseline: Baseline = field(default_factory=Baseline)
    referee: Effort = field(default_factory=Effort)

    def event(self, name: str) -> Event:
        """Return an event by its id; raise ValueError with the ids there are."""
        for event in self.events:
            if event.id == name:
                return event
        raise ValueError(f"there is no event {name!r}; there are {', '.join(event.id for event in self.events)}")


Section = TypeVar("Section", Task, EntryLimits, Quota, Baseline, Effort, Event)


def load(path: Path | None = None) -> Olympics:
    """Read the file of the Olympics.

    Parameters
    ----------
    path
        The file; by default the ``events.toml`` beside this module.

    Raises
    ------
    ValueError
        If it cannot be read or is not TOML, or a value is missing, unknown or out of range; the message names file,
        section and key.
    """
    path = path or Path(__file__).with_name("events.toml")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return _olympics(data)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _olympics(data: dict[str, Any]) -> Olympics:
    sections = {"task": Task, "limits": EntryLimits, "quota": Quota, "baseline": Baseline, "referee": Effort}
    unknown = sorted(set(data) - {"title", "deadline", "event", *sections})
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}")
    title, deadline = data.get("title"), data.get("deadline")
    if not isinstance(title, str) or not title:
        raise ValueError('title is missing; write title = "…"')
    if not isinstance(deadline, datetime) or deadline.tzinfo is None:
        raise ValueError("deadline must be a date and time with its offset, such as 2027-02-12T18:00:00+01:00")
    events = tuple(_section(Event, f"event {number}", row) for number, row in enumerate(data.get("event", []), 1))
    if not events:
        raise ValueError("there is no [[event]]")
    for event in events:
        if event.measure not in MEASURES:
            raise ValueError(f"event {event.id}: measure is {event.measure!r}; it must be one of {', '.join(MEASURES)}")
        if event.accuracy_min >= 1:
            raise ValueError(f"event {event.id}: accuracy_min is {event.accuracy_min}; it must lie between 0 and 1")
        if not event.id.replace("-", "").isalnum() or not event.id.isascii():
            raise ValueError(f"event id {event.id!r} stands in addresses: use letters, digits and hyphens")
    if len({event.id for event in events}) < len(events):
        raise ValueError("two events have the same id")
    read: dict[str, Any] = {name: _section(kind, name, data.get(name, {})) for name, kind in sections.items()}
    return Olympics(title, deadline, events, **read)


def _section(kind: type[Section], name: str, values: Mapping[str, Any]) -> Section:
    """Build one section, every key known and every number positive."""
    known = {item.name: item for item in fields(kind)}
    for key, value in values.items():
        if key not in known:
            raise ValueError(f"[{name}] has no {key!r}; it knows {', '.join(known)}")
        wanted = str(known[key].type)
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        fits = {"int": isinstance(value, int) and numeric, "float": numeric, "str": isinstance(value, str)}
        if not fits.get(wanted, isinstance(value, list)):
            raise ValueError(f"[{name}] {key} is {value!r}; it must be of type {wanted}")
        numbers = value if isinstance(value, list) else [value] if numeric and key != "seed" else []
        if not all(isinstance(number, int | float) and number > 0 for number in numbers):
            raise ValueError(f"[{name}] {key} is {value!r}; it must be positive")
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"[{name}] {str(error).split('() ')[-1]}") from None

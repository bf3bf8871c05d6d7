"""The settings of the Olympics, read from a file that an instructor edits: events, limits and quotas.

A bar is a limit that an entry has to meet to get a place in an event.
"""

from __future__ import annotations

import tomllib
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, Strict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

UNLIMITED = float("inf")
PORT = 8017

# A number is never converted from text or a truth value, and a count never from a fraction.
Count = Annotated[int, Strict(), Field(gt=0)]
Amount = Annotated[float, Strict(), Field(gt=0)]
KNOWN_KEYS: ConfigDict = {"extra": "forbid", "validate_by_name": True}


@dataclass(frozen=True, config=KNOWN_KEYS)
class Task:
    """The number of public and of private digits, and the number of digits in one timed call."""

    public_rows: Count = 4320
    private_rows: Count = 4320
    batch: Count = 256


@dataclass(frozen=True, config=KNOWN_KEYS)
class EntryLimits:
    """Limits on an entry's file, and on the resources that the entry uses while it is measured."""

    size_mb: Amount = 16
    nodes: Count = 2000
    weights: Count = 4_000_000
    start_seconds: Amount = 5.0
    call_seconds: Amount = 1.0
    seconds: Amount = 120
    memory_mb: Amount = 1024

    @property
    def size(self) -> int:
        """The maximum size of a file in bytes."""
        return int(self.size_mb * 2**20)


@dataclass(frozen=True, config=KNOWN_KEYS)
class Quota:
    """The number of entries per student and day, and the number of days for which a token is valid."""

    per_day: Count = 8
    token_days: Count = 180


@dataclass(frozen=True, config=KNOWN_KEYS)
class Baseline:
    """The recipe for training the baseline, the network with which every entry is compared."""

    hidden: tuple[Count, ...] = (512, 256)
    iterations: Count = 15
    seed: Annotated[int, Strict()] = 0


@dataclass(frozen=True, config=KNOWN_KEYS)
class Effort:
    """The thoroughness of a measurement: the number of processes and rounds, and bounds on the width of intervals."""

    processes: Count = 6
    rounds: Count = 25
    floor: Amount = 0.08
    widest: Amount = 0.2


def _check_id(name: str) -> str:
    if not name.replace("-", "").isalnum() or not name.isascii():
        raise ValueError("it stands in addresses: use letters, digits and hyphens")
    return name


@dataclass(frozen=True, config=KNOWN_KEYS)
class Event:
    """One contest: the measure that ranks its entries, and the bars that an entry must meet."""

    id: Annotated[str, AfterValidator(_check_id)]
    title: str
    goal: str
    measure: Literal["latency", "memory", "accuracy", "area"]
    accuracy_min: Annotated[float, Strict(), Field(ge=0, lt=1)] = 0.0
    latency_max: Amount = UNLIMITED
    size_max: Amount = UNLIMITED

    @property
    def rules(self) -> str:
        """The bars of the event as a sentence."""
        bars = []
        if self.accuracy_min:
            begins = "The areas begin at accuracy" if self.measure == "area" else "Accuracy at least"
            bars.append(f"{begins} {100 * self.accuracy_min:g}\N{NO-BREAK SPACE}%")
        if self.latency_max < UNLIMITED:
            bars.append(f"latency at most {self.latency_max:g}\N{NO-BREAK SPACE}× the baseline's")
        if self.size_max < UNLIMITED:
            bars.append(f"file at most {self.size_max:g}\N{NO-BREAK SPACE}× the baseline's")
        text = ", ".join(bars)
        return f"{text[0].upper()}{text[1:]}." if text else "No bars."


@dataclass(frozen=True, config=KNOWN_KEYS)
class Olympics:
    """All settings that an instructor chooses."""

    title: Annotated[str, Field(min_length=1)]
    deadline: Annotated[AwareDatetime, Strict()]
    events: Annotated[tuple[Event, ...], Field(min_length=1, alias="event")]
    task: Task = field(default_factory=Task)
    limits: EntryLimits = field(default_factory=EntryLimits)
    quota: Quota = field(default_factory=Quota)
    baseline: Baseline = field(default_factory=Baseline)
    referee: Effort = field(default_factory=Effort)

    def event(self, name: str) -> Event:
        """Return an event by its id. If it is unknown, raise ValueError with the known ids."""
        for event in self.events:
            if event.id == name:
                return event
        raise ValueError(f"there is no event {name!r}; there are {', '.join(event.id for event in self.events)}")


SECTIONS: dict[str, Any] = {
    "event": Event, "task": Task, "limits": EntryLimits, "quota": Quota, "baseline": Baseline, "referee": Effort
}  # fmt: skip


def load(path: Path | None = None) -> Olympics:
    """Read the settings from a file, by default `events.toml` in this folder.

    If a setting is wrong, raise ValueError, which names the file, the section and the key.
    """
    path = path or Path(__file__).with_name("events.toml")
    try:
        olympics = TypeAdapter(Olympics).validate_python(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise ValueError(f"{path}: {_in_words(error.errors()[0])}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    if len({event.id for event in olympics.events}) < len(olympics.events):
        raise ValueError(f"{path}: two events have the same id")
    return olympics


def _in_words(problem: Any) -> str:
    """Return pydantic's error in terms of the settings file: section, key, value, and allowed values."""
    name, *rest = problem["loc"]
    number = f" {rest.pop(0) + 1}" if rest and name == "event" else ""
    section, key = (f"[{name}{number}] ", rest[0]) if rest else ("", name)
    if problem["type"] == "unexpected_keyword_argument":
        return (
            f"{section}has no {key!r}; it knows {', '.join(SECTIONS[name].__annotations__)}"
            if rest
            else f"unknown key {key!r}"
        )
    if key == "deadline":
        return "deadline must be a date and time with its offset, such as 2027-02-12T18:00:00+01:00"
    if problem["type"] == "missing":
        return f"{section}{key} is missing"
    allowed = problem["msg"].removeprefix("Value error, ").replace("Input should", "it must")
    return f"{section}{key} is {problem['input']!r}; {allowed}"

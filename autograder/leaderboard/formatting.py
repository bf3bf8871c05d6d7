"""The text form of numbers and times on the pages, in the API and in the commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.result_text import scale_unit

if TYPE_CHECKING:  # not imported at run time, because the database and the commands use this file
    from autograder.leaderboard.ranking import Score
    from autograder.leaderboard.settings import Event

SPACE = "\N{NO-BREAK SPACE}"


def quantity(value: float, unit: str) -> str:
    """Return a number as text with a suitable unit prefix, such as ``1.89 ms``."""
    factor, name = scale_unit(value, unit)
    return f"{value / factor:.3g}{SPACE}{name}"


def times(value: float) -> str:
    """Return a ratio to the baseline as text, such as ``0.43 ×``."""
    return f"{value:#.3g}{SPACE}×" if value < 100 else f"{value:.0f}{SPACE}×"


def percent(value: float) -> str:
    """Return a fraction as a percentage with one digit after the decimal point."""
    return f"{100 * value:.1f}{SPACE}%"


def scored(value: float, event: Event) -> str:
    """Return a score as text, in the form that suits the event's measure: a ratio, a percentage, or a number."""
    if event.measure in ("latency", "memory"):
        return times(value)
    return percent(value) if event.measure == "accuracy" else f"{value:.3f}"


def interval_of(score: Mapping[str, float], form: Callable[[float], str]) -> str:
    """Return both bounds of an interval from JSON data as text. Only the second bound has the unit."""
    return f"{form(score['lower']).split(SPACE)[0]} – {form(score['upper'])}"


def interval(score: Score, event: Event) -> str:
    """Return both bounds of a score's interval as text. Only the second bound has the unit."""
    return f"{scored(score.lower, event).split(SPACE)[0]} – {scored(score.upper, event)}"


def moment(stamp: float) -> str:
    """Return a time in UTC as text, such as ``12 Feb 2027, 17:00 UTC``."""
    return f"{datetime.fromtimestamp(stamp, UTC):%d %b %Y, %H:%M} UTC"


def machine_time(stamp: float) -> str:
    """Return a time in ISO 8601 format, for the HTML attribute ``datetime``."""
    return datetime.fromtimestamp(stamp, UTC).isoformat(timespec="seconds")


FILTERS = {
    each.__name__: each for each in (quantity, times, percent, scored, interval, moment, machine_time, number_of)
}

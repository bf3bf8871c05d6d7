"""Words for the ratio of two measurements: less or more, percent or multiples, and the interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinybench.support.basics.numbers import number_of, with_ends


def words_for(metric: str, unit: str) -> tuple[str, str]:
    """Return the words for a lower and a higher value of a metric, such as ``("faster", "slower")`` for a time."""
    if metric == "throughput":
        return "slower", "faster"
    return ("faster", "slower") if unit == "s" else ("lower", "higher")


def in_words(verdict: str, metric: str, unit: str) -> str:
    """Translate the verdict ``"faster"`` or ``"slower"`` to the words of a metric. Return other verdicts unchanged."""
    return dict(zip(("faster", "slower"), words_for(metric, unit), strict=True)).get(verdict, verdict)


def needs_more_rounds(more: int) -> str:
    """Return the verdict ``"undecided: needs about 120 more rounds"``, for at least 1 and at most a million rounds."""
    if more > 10**6:
        return "undecided: needs over 1,000,000 more rounds"
    return f"undecided: needs about {number_of(f'{max(1, more):,}', 'more round')}"


def short_number(value: float, ends: tuple[float, float]) -> str:
    """Return a number with the digits that its interval supports, such as 41 for 38–44 and 2.3 for 1.1–3.2."""
    width = ends[1] - ends[0]
    places = min(3, max(0, -math.floor(math.log10(width / 5)))) if 0 < width < 5 else 0
    return f"{round(value, places) + 0.0:.{places}f}".replace("-", "−")  # + 0.0 turns −0 into 0


def span(ends: tuple[float, float], unit: str) -> str:
    """Return an interval as ``38–44 %``, or as ``−1.2 to 3.4 %`` if the lower end is negative."""
    low, high = (short_number(end, ends) for end in ends)
    return f"{low}{'–' if ends[0] >= 0 else ' to '}{high} {unit}".rstrip()


def no_ends(ends: tuple[float, float]) -> str:
    """Return the reason why two bounds do not form an interval: a bound is infinite, or both bounds are equal."""
    return "no interval, as all are equal" if math.isfinite(ends[1] - ends[0]) else "no finite interval"


def times_text(value: float) -> str:
    """Return a factor as text, such as 3.4, 0.02 or 12,000. A huge or tiny factor becomes a bound: over 1,000,000."""
    if value >= 1e6:
        return "over 1,000,000"
    if value < 1e-6:
        return "under 0.000001"
    if value >= 100:
        return f"{value:,.0f}"
    return str(np.format_float_positional(value, precision=2, fractional=False, trim="-"))


def gain_text(gain: float, ends: Sequence[float], unit: str = "") -> str:
    """Return a speed-up as ``2.06 (2.03–2.09)``, with `unit` after 2.06. Write a speed-up below 1 as its reciprocal.

    An example of a reciprocal is ``1.65 times as long (1.6–1.7)``.
    """
    if gain >= 1:
        return with_ends(gain, ends, "–", unit=unit)
    low, high = ends
    return with_ends(1 / gain, (1 / high, 1 / low) if low > 0 else None, "–", unit="times as long")

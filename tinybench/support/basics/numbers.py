"""Numbers in text and JSON: counts with nouns, values rounded to the digits that an interval supports, p-values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = ["finite", "number_of", "p_text", "plural", "with_digits", "with_ends"]


def plural(count: object, noun: str, many: str = "") -> str:
    """Return the noun for a count: ``"row"`` for 1, ``"rows"`` for others, or `many` if the plural is irregular."""
    if str(count).strip() == "1":
        return noun
    if many:
        return many
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def number_of(count: object, noun: str, many: str = "") -> str:
    """Return a count with its noun: ``"1 row"``, ``"12 batches"``, or ``"1,200 queries"`` for the text ``"1,200"``."""
    return f"{count} {plural(count, noun, many)}"


def p_text(p: float, least_of: str = "") -> str:
    """Return a p-value as text: ``"p = 0.012"``, ``"p < 0.001"``, ``"p ≤ 0.031, the least that 6 rounds allow"``.

    If `p` is the smallest p-value that the test can give with this amount of data, pass the amount as `least_of`, such
    as ``"6 rounds"``.
    """
    if p < 0.001:
        return "p < 0.001"
    number = f"{p:.2g}"
    return f"p ≤ {number}, the least that {least_of} allow" if least_of and p < 1 else f"p = {number}"


def with_digits(value: float, width: float) -> str:
    """Return a value as text, rounded to the digits that an interval of this width supports.

    One unit of the last digit is at most a fifth of the width: 18,100,000 for an interval of 15.8 to 18.3 million. If
    the width is 0 or not finite, keep four significant digits.
    """
    place = math.floor(round(math.log10(width / 5), 9)) if 0 < width < math.inf else _fourth_digit(value)
    shown = round(value, -place) + 0.0  # + 0.0 turns −0 into 0
    form = ",.0f" if abs(shown) >= 10_000 else f".{max(0, -place)}f"
    return f"{shown:{form}}".replace("-", "−")


def with_ends(
    value: float, ends: Sequence[float] | None, between: str = " to ", *, named: str = "", unit: str = ""
) -> str:
    """Return a value with its interval, ``"1.65 (1.60 to 1.71)"``. Without an interval, return the value alone.

    The interval determines the number of digits. `named`, such as ``"95 % CI "``, is written before the bounds of the
    interval, `between` between them, and `unit` after the value.
    """
    width = ends[1] - ends[0] if ends else 0.0
    if not 0 < width < math.inf:
        return f"{with_digits(value, 0.0)} {unit}".rstrip()
    shown = f"{with_digits(value, width)} {unit}".rstrip()
    return f"{shown} ({named}{between.join(with_digits(end, width) for end in ends or ())})"


def _fourth_digit(value: float) -> int:
    return math.floor(math.log10(abs(value))) - 3 if value else 0


def finite(value: Any) -> Any:
    """Replace NaN and infinite numbers by None, also in dictionaries and tuples, because JSON cannot hold them."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""Compare every number of a text with a number that was computed another way."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence

# a number that is a word of its own: not the 99 of p99, nor the 2 of test_2
_NUMBER = re.compile(r"(?<![\w.])[+−-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])|(?<![\w.])inf(?!\w)")
Truths = Sequence[float]


def numbers(line: str) -> list[str]:
    """Return the numbers of a line, as they are written."""
    return _NUMBER.findall(line)


def template(line: str) -> str:
    """Return a line with ``#`` in place of its numbers, and one space in place of several."""
    return " ".join(_NUMBER.sub("#", line).split())


def is_shown(text: str, truth: float) -> bool:
    """Return whether a number as it is written is the truth, rounded to the digits that are written."""
    plain = text.replace(",", "").replace("−", "-")
    if plain == "inf" or math.isinf(truth):
        return plain == "inf" and math.isinf(truth)
    digits, _, power = plain.partition("e")
    whole, _, decimals = digits.partition(".")
    # a number from 10,000 on that ends in zeros may stand for all that rounds to it
    zeros = len(whole) - len(whole.rstrip("0")) if len(whole.strip("+-")) > 4 else 0
    last = -len(decimals) if decimals else zeros
    return abs(float(plain) - truth) <= 0.5001 * 10.0 ** (last + int(power or 0))


def wrong(text: str, expected: Mapping[str, Truths | Sequence[Truths]]) -> list[str]:
    """Return what is wrong with a text: numbers that are not the truth, and lines with numbers that nobody expects.

    Parameters
    ----------
    text
        What a command or page shows.
    expected
        The numbers of each line by its `template`; of several lines with the same template the numbers of each.
    """
    left = {name: _by_line(truths) for name, truths in expected.items()}
    found = []
    for line in text.splitlines():
        shown, name = numbers(line), template(line)
        if not shown:
            continue
        if not left.get(name):
            found.append(f"nobody expects {line!r}; its template is {name!r}")
            continue
        truths = left[name].pop(0)
        if len(truths) != len(shown):
            found.append(f"{line!r} has {len(shown)} numbers, and {len(truths)} are expected")
        for number, truth in zip(shown, truths, strict=False):
            if not is_shown(number, truth):
                found.append(f"{number} in {line!r} is {truth!r}")
    return found + [f"no line is {name!r}, of which {truths} are expected" for name, truths in left.items() if truths]


def _by_line(truths: Truths | Sequence[Truths]) -> list[Truths]:
    nested = [truth for truth in truths if isinstance(truth, Sequence)]
    return list(nested) if nested else [[float(truth) for truth in truths if not isinstance(truth, Sequence)]]


def text_of(page: str) -> str:
    """Return the text of an HTML page: a line for each block, row or sentence, without styles and scripts."""
    page = re.sub(r"<(style|script|svg|head)\b.*?</\1>", " ", page, flags=re.DOTALL)
    page = re.sub(r"</(tr|p|h\d|li|div|caption|figcaption|summary|section|dt|dd|header|footer|nav)>", "\n", page)
    page = re.sub(r"</t[hd]>", " | ", page)
    lines = html.unescape(re.sub(r"<[^>]+>", " ", page)).splitlines()
    return "\n".join(" ".join(line.split()) for line in lines if line.strip())


def check(text: str, expected: Mapping[str, Truths | Sequence[Truths]]) -> None:
    """Raise AssertionError with all that `wrong` finds."""
    found = wrong(text, expected)
    assert not found, "\n".join(["", *found])


def rows_of(text: str) -> Iterable[list[str]]:
    """Yield the cells of a table's lines, which two spaces separate at least."""
    for line in text.splitlines():
        if line.strip():
            yield re.split(r"\s{2,}", line.strip())

"""The entries of a journal of optimisations, what counts as decided, and the journal as text and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import Table
from tinybench.support.comparisons.verdict import Comparison
from tinybench.support.compression.seeds import AccuracyChange

VERDICTS = ("keep", "reject", "undecided")


@dataclass(frozen=True)
class Entry:
    """One entry of a journal: the attempt, its baseline, and what was expected, changed, measured and decided."""

    name: str
    against: str
    hypothesis: str
    change: str
    measurements: tuple[str, ...]
    verdict: str

    __repr__ = short_repr


class JournalPages:
    """The part of a journal that checks words, adds entries and shows them."""

    baseline: str
    settings: dict[str, Any]
    entries: list[Entry]

    __repr__ = short_repr

    def check_words(self, name: str, hypothesis: str, verdict: str) -> None:
        """Raise ValueError if an entry has no hypothesis, an unknown verdict, or a name that is already taken."""
        if not hypothesis.strip():
            raise ValueError(f"{name}: write down first what you expect, and why")
        if verdict not in VERDICTS:
            raise ValueError(f"verdict is {verdict!r}; it must be one of {', '.join(VERDICTS)}")
        if name == self.baseline or name in [entry.name for entry in self.entries]:
            raise ValueError(f"{name!r} is in the journal already; give the new attempt a name of its own")

    def add(self, entry: Entry, settings: Mapping[str, Any]) -> Entry:
        """Append an entry and return it. If its verdict is ``"keep"``, it becomes the baseline, with its settings."""
        self.entries.append(entry)
        if entry.verdict == "keep":
            self.baseline, self.settings = entry.name, dict(settings)
        return entry

    def __str__(self) -> str:
        """Return the entries as lines of text."""
        lines = []
        for number, entry in enumerate(self.entries, start=1):
            lines.append(f"{number}. {entry.name} ({entry.change}), against {entry.against}: {entry.verdict.upper()}")
            lines += [f"   expected: {entry.hypothesis}", *(f"   measured: {text}" for text in entry.measurements)]
        return "\n".join([*lines, f"kept: {self.baseline}"])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        rows = (
            {
                "tried": entry.name,
                "against": entry.against,
                "change": entry.change,
                "expected": entry.hypothesis,
                "measured": "\n".join(entry.measurements),
                "verdict": entry.verdict,
            }
            for entry in self.entries
        )
        return {"text/plain": str(self), "text/html": Table(rows, f"kept: {self.baseline}").html()}


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the differences between two settings, such as ``"precision: FP32 → INT8"``, sorted by name.

    If a name is missing on one side, its value there is ``none``.
    """
    names = sorted(before.keys() | after.keys())
    pairs = {name: (before.get(name, "none"), after.get(name, "none")) for name in names}
    return [f"{name}: {old} → {new}" for name, (old, new) in pairs.items() if old != new]


def decided(measurement: Comparison | AccuracyChange) -> bool:
    """Return whether a measurement is decided: significant or equivalent, and not an estimate."""
    return getattr(measurement, "measured", True) and not measurement.verdict.startswith("undecided")

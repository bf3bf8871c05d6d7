"""Changes of the measurement conditions, such as the hardware or a library. After such a change, measure again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tinybench.result import BenchmarkResult
from tinybench.support.conditions.environment_variables import differing
from tinybench.tools.history.entry import Measurement, entry_of, machine_name
from tinybench.tools.history.series import Point

KINDS = {
    "data": r"data|input|rows\b",
    "traffic": r"traffic|rate|users|batch|requests|\bprocess\b",
    "library": r"version|python|blas(?! threads)|librar|\(environment\)$",
    "hardware": r"processor|instruction|\bcores|governor|turbo|clock|threads|memory",
}
# conditions that are no reason to measure again: they change with the code, or may differ between runs of the same code
_NO_REASON = re.compile(r"commit|loops|machine check|order|files?|tinybench-ml version")


class Changed(NamedTuple):
    """A measurement condition that differs from the previous measurement.

    `commit` is the first commit that was measured under the new condition.
    """

    commit: str
    kind: str
    condition: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.condition} {self.before} → {self.after} (from {self.commit[:10]} on)"


def kind_of(condition: str) -> str:
    """Return the kind of a condition: ``"data"``, ``"traffic"``, ``"library"``, ``"hardware"`` or ``"other"``."""
    return next((kind for kind, words in KINDS.items() if re.search(words, condition, re.IGNORECASE)), "other")


def conditions_of(entry: Measurement) -> dict[str, str]:
    """Return the recorded conditions of a measurement.

    Conditions are left out if a change of them is not a reason to measure again.
    """
    from tinybench.support.comparisons.stored_results import stored_conditions

    stated = stored_conditions(entry.result["metadata"])
    return {name: value for name, value in stated.items() if not _NO_REASON.search(name)}


def changes_from(commit: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[Changed]:
    """Return the conditions that are recorded both in `before` and in `after`, but with different values."""
    return [Changed(commit, kind_of(name), name, *values) for name, values in differing(before, after).items()]


def changed_since(point: Point, system: Mapping[str, Any]) -> list[Changed]:
    """Return the conditions that differ between a commit's last measurement and the current `system`.

    If `system` describes another machine, return an empty list.
    """
    entry = point.entries[-1]
    if entry.machine != machine_name(system):
        return []
    now = BenchmarkResult("now", [0.0], {"system": dict(system)})
    return changes_from("now", conditions_of(entry), conditions_of(entry_of(now, commit="now")))


def conditions_over_time(points: Sequence[Point]) -> list[Changed]:
    """Return every change of a condition between successive measurements of a series."""
    entries = [entry for point in points for entry in point.entries]
    known: dict[str, str] = {}
    found = []
    for entry in entries:
        now = conditions_of(entry)
        changes = changes_from(entry.commit, known, now)
        found += changes
        known |= {each.condition: each.after for each in changes} | now
    return found

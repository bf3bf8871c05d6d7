"""Changes of level in a history of results: the commit, the size, and whether the change is for the worse."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tinybench.support.basics.numbers import finite
from tinybench.support.comparisons.ratio_words import short_number, span
from tinybench.tools.history.series import Series
from tinybench.tools.history.steps import find_steps


class Change(NamedTuple):
    """A change of level in a history.

    Attributes
    ----------
    place, commit
        The index and the name of the most likely first commit of the new level.
    earliest, latest
        The bounds of the 95 % interval for `place`. The new level begins at a commit from `earliest` to `latest`.
    factor, low, high
        The ratio of the new level to the old level, and the bounds of its 95 % interval.
    worse
        Whether the change is for the worse: more time, or less accuracy.
    """

    place: int
    commit: str
    earliest: int
    latest: int
    factor: float
    low: float
    high: float
    worse: bool

    def told(self, series: Series) -> str:
        """Return a sentence that describes the change."""
        size, interval = self.in_percent()
        first, last = series.commits[self.earliest][:10], series.commits[self.latest][:10]
        within = "" if first == last else f" (one of {first} to {last})"
        return f"{size} ({interval}) from {self.commit[:10]} on{within}, {'worse' if self.worse else 'better'}."

    def in_percent(self) -> tuple[str, str]:
        """Return the size of the change and its interval in percent, with as many digits as the interval supports."""
        low, value, high = (100 * (end - 1) for end in (self.low, self.factor, self.high))
        size = f"{'+' if value > 0 else ''}{short_number(value, (low, high))} %"
        return size, span((low, high), "%") if math.isfinite(high) else "no interval: too few values"

    def to_dict(self, series: Series) -> dict[str, Any]:
        """Return the change as plain data for ``json.dumps``. If there is no interval, both bounds are None."""
        within = {"earliest": series.commits[self.earliest], "latest": series.commits[self.latest]}
        fields: dict[str, Any] = finite(self._asdict())
        return fields | within | {"benchmark": series.benchmark, "machine": series.machine}


def changes_of(series: Series) -> list[Change]:
    """Return the changes of a series, in the order of the commits."""
    from tinybench.support.comparisons.stored_results import HIGHER_IS_BETTER

    more_is_worse = series.points[0].entries[0].result["metric_name"] not in HIGHER_IS_BETTER
    found = []
    for step in find_steps(series.values):
        factor, low, high = (1 + share for share in (step.change, *step.change_ci))
        worse = (step.change > 0) == more_is_worse
        found.append(Change(step.index, series.commits[step.index], step.low, step.high, factor, low, high, worse))
    return found

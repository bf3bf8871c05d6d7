"""The forecast gain from a faster stage of a pipeline, and the uncertainty of the forecast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tinybench.support.basics.numbers import with_digits
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import Table
from tinybench.support.comparisons.ratio_words import times_text

if TYPE_CHECKING:
    from tinybench.support.profiling.pipeline_trial import Trial

Gain = Callable[[Any, Any, Any, int], float]
NEAR = 0.015  # a gain is known well enough if its interval extends at most this far to either side
TOO_WIDE = 0.05  # a gain is unknown if its interval extends farther than this
FAITHFUL = 0.05  # the largest tolerable error of control runs, relative to the time that they should take


def gain_interval(
    gain: Gain,
    plain: Sequence[float],
    slowed: Sequence[float],
    spared: Sequence[float],
    times: int,
    resamples: int = 400,
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a gain. The bootstrap resamples rounds.

    `plain`, `slowed` and `spared` hold the seconds of the three variants of a pipeline in each round. The function
    `gain` computes the gain from the seconds of resampled rounds and from `times`. With fewer than 4 rounds, or if all
    rounds are equal, return −∞ to ∞, because the scatter is unknown.
    """
    if len(plain) < 4:
        return -math.inf, math.inf
    rng = np.random.default_rng(0)
    a, b, c = np.array(plain), np.array(slowed), np.array(spared)
    rows = rng.integers(len(a), size=(resamples, len(a)))
    found = [gain(a[row], b[row], c[row], times) for row in rows]
    low, high = np.quantile(found, [0.025, 0.975])
    return (float(low), float(high)) if low < high else (-math.inf, math.inf)


def _saved(plain: Sequence[float], other: Sequence[float], _: Sequence[float], __: int) -> float:
    return float(1 - np.median(other) / np.median(plain))


def _percent(share: float) -> str:
    return f"{100 * share + 0.0:.1f}".replace("-", "−")


class Row(NamedTuple):
    """The gain from one speed-up of a stage: the saved fraction of the present time, with its 95 % interval.

    `promised` is the gain that follows from the stage's share of a profile. The method is checked by control runs, in
    which a stand-in replaces the stage, or in which all stages run p times. They should take as long as plain runs, or
    p times as long. `error` is the relative deviation from this time.
    """

    speedup: float
    gain: float
    low: float
    high: float
    promised: float
    error: float

    @property
    def why(self) -> str:
        """The reason why the gain is unknown, or an empty string if it is known."""
        if abs(self.error) > FAITHFUL:
            more = "more" if self.error > 0 else "less"
            return f"runs that should take as long took {abs(100 * self.error):.0f} % {more}"
        if math.isinf(self.high):
            return "too few rounds, or all rounds are equal; increase max_seconds"
        if self.high - self.low > 2 * TOO_WIDE:
            return f"runs scatter too much ({100 * self.low:.0f} to {100 * self.high:.0f} %); measure longer"
        return ""

    @property
    def verdict(self) -> str:
        """``ok``, or ``cannot tell`` with the reason."""
        return f"cannot tell: {self.why}" if self.why else "ok"


@dataclass(frozen=True)
class WhatIf:
    """The gains from a faster stage `name`, with one row for each speed-up.

    `seconds` holds the times of all runs by arm. An arm is one variant of the pipeline, such as ``"plain"``.
    """

    name: str
    rows: tuple[Row, ...]
    trial: Trial
    method: str
    seconds: Mapping[str, Sequence[float]]
    metadata: Mapping[str, Any]

    __repr__ = short_repr

    @property
    def share(self) -> float:
        """The stage's share of the time in a profile."""
        return self.trial.share(self.name, float(np.median(self.seconds["plain"])))

    def saved(self, arm: str) -> tuple[float, float, float]:
        """Return the fraction of the plain arm's time that another arm saves, and its 95 % interval."""
        plain, other = self.seconds["plain"], self.seconds[arm]
        return _saved(plain, other, plain, 1), *gain_interval(_saved, plain, other, plain, 1)

    def narrow(self, beside: Iterable[str] = ()) -> bool:
        """Return whether all gains are known to ±1.5 percentage points, also for the arms `beside`.

        Return False, too, if the error of the control runs (see `Row`) is only a little larger than the tolerance,
        because it may then be due to chance.
        """
        ends = [(row.low, row.high) for row in self.rows] + [self.saved(arm)[1:] for arm in beside]
        doubtful = any(FAITHFUL < abs(row.error) < 2 * FAITHFUL for row in self.rows)
        return not doubtful and all(high - low <= 2 * NEAR for low, high in ends)

    def __getitem__(self, speedup: float) -> Row:
        """Return the row of a speed-up. If no row has this speed-up, raise KeyError."""
        for row in self.rows:
            if row.speedup == speedup:
                return row
        raise KeyError(f"{speedup}; there are {', '.join(f'{row.speedup:g}' for row in self.rows)}")

    def sentence(self, row: Row) -> str:
        """Return a sentence such as ``model 5× faster: it takes 17 % less time (15–19), 1.2 times as fast``."""
        head = f"{self.name} {row.speedup:g}× faster: "
        if row.why:
            return head + row.verdict
        if row.low <= 0 <= row.high:
            return head + f"no gain to be seen ({_percent(row.low)} to {_percent(row.high)} % less time)"
        width = max(100 * (row.high - row.low), 5.0)  # whole percents are enough
        low, high = (with_digits(end, width) for end in sorted(abs(100 * end) for end in (row.low, row.high)))
        gain = with_digits(abs(100 * row.gain), width)
        if row.gain <= 0:
            return head + f"it takes {gain} % more time ({low}–{high})"
        factor = 1 / (1 - row.gain) if row.gain < 1 else math.inf
        told = f"{factor:.2f}" if factor < 1.1 else times_text(factor)
        times = f", {told} times as fast" if factor < math.inf else ""
        return head + f"it takes {gain} % less time ({low}–{high}){times}"

    @property
    def _caution(self) -> str:
        verdict = self.metadata.get("machine", {}).get("verdict", "ok")
        return "" if verdict == "ok" else f"; mind this machine: {verdict}"

    def table(self) -> Table:
        """Return a table with a row for each speed-up."""
        return Table(
            [
                {
                    "speed-up": f"{row.speedup:g}×",
                    "saves %": "–" if row.why else _percent(row.gain),
                    "95 % CI": "–" if row.why else f"{_percent(row.low)} to {_percent(row.high)}",
                    "its share promises %": _percent(row.promised),
                    "control off by %": _percent(row.error),
                    "verdict": row.verdict,
                }
                for row in self.rows
            ],
            f"What a faster {self.name} would bring; its share of a profile is {100 * self.share:.0f} %"
            f" (by {self.method}{self._caution})",
        )

    def __str__(self) -> str:
        """Return a sentence for each speed-up."""
        return "\n".join(self.sentence(row) for row in self.rows)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        table = self.table()
        return {
            "text/plain": f"{self}\n\n{table}",
            "text/html": "".join(f"<p>{line}</p>" for line in str(self).splitlines()) + table.html(),
            "text/markdown": "\n\n".join([*str(self).splitlines(), table.markdown()]),
        }

"""A race of two models: counts of the rounds so far, and the comparison at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult
from tinybench.support.comparisons.cautions import independent_values, judged
from tinybench.support.comparisons.two_samples import pair_names, second_opinions
from tinybench.support.comparisons.verdict import Comparison


class RaceTally:
    """Counts of the rounds of a race between a and b, and the evidence that they hold.

    `e_value(more, rounds)` is the e value of `more` rounds of one kind among `rounds`; see
    `tinybench.comparison.sign_e_value`. Ties count for neither model, but they count as rounds.
    """

    def __init__(self, e_value: Callable[[int, int], float], margin: float = 0.0) -> None:
        self.e_value, self.margin = e_value, margin
        self.rounds = self.slower = self.faster = self.above = self.below = 0

    def add(self, a: float, b: float) -> None:
        """Count a round in which the first model took `a` seconds and the second model took `b` seconds."""
        self.rounds += 1
        self.slower += a > b
        self.faster += a < b
        self.above += a > (1 - self.margin) * b
        self.below += a < (1 + self.margin) * b

    def for_a_winner(self) -> float:
        """Return the e value for one model being faster. It is 1 if neither model leads in most rounds."""
        return self._evidence(max(self.slower, self.faster))

    def for_equality(self) -> float:
        """Return the e value for a ratio within 1 ± margin, the smaller one of two bets.

        One bet is on ratios above 1 − margin, the other one on ratios below 1 + margin. With margin 0, at most one of
        the bets can win.
        """
        return self._evidence(min(self.above, self.below))

    def _evidence(self, count: int) -> float:
        return self.e_value(count, self.rounds) if 2 * count > self.rounds else 1.0


def race_summary(
    results: dict[str, BenchmarkResult],
    highest: float,
    stop_at: float,
    margin: float,
    anytime_interval: Callable[[Sequence[float], float], tuple[float, float]],
    decide: Callable[..., str],
) -> Comparison:
    """Return the comparison of the rounds of a race, with the anytime-valid interval and p-value."""
    a, b = results.values()
    x, y = (np.maximum(result.values, 1e-12) for result in (a, b))  # a coarse clock may measure 0 s
    logs, differences = np.log(x / y).tolist(), (x - y).tolist()
    ends, difference = anytime_interval(logs, stop_at), float(np.median(differences))
    ratio, ratio_ci = math.exp(float(np.median(logs))), (math.exp(ends[0]), math.exp(ends[1]))
    effect, confidence = second_opinions(x.tolist(), y.tolist(), True)[0] if a.count > 1 else math.nan, 1 - 1 / stop_at
    verdict = decide(ratio - 1, (ratio_ci[0] - 1, ratio_ci[1] - 1), a.count, margin, confidence)
    again = partial(decide, n=a.count, confidence=confidence)
    verdict, caution = judged(verdict, a, b, True, margin, difference, ratio, ratio_ci, again)
    checks = {"e_value": highest, **independent_values(a.values, b.values, True)[2]}
    found = ratio, ratio_ci, difference, anytime_interval(differences, stop_at), min(1.0, 1 / highest), effect, verdict
    about: Any = {"metric": "latency", "unit": "s", "checks": checks, "caution": caution}
    method = f"anytime-valid sign test, stops at e ≥ {stop_at:g}"
    first, second = pair_names(a, b, None)
    return Comparison(first, second, (a.count, b.count), True, method, *found, confidence, margin, **about)

"""Nearly independent values of a dependent series: the necessary distance, and a random choice of such values."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from tinybench.support.basics.arguments import check_least
from tinybench.support.basics.dependence import centred_ranks
from tinybench.support.basics.numbers import number_of

FEWEST_VALUES = 200  # in fewer values, the test often misses dependence that causes false alarms
FEWEST_WINDOWS = 10  # the spread of the sums of fewer windows says little
FEWEST_CHOSEN = 20
SHUFFLES, MISTAKEN = 19, 0.1  # a mistaken "dependent" only delays an alarm, so it may be frequent
CORRELATION_TIMES = 2.0  # at this distance, the correlation of an AR(1) process has fallen to e⁻⁴


def independent_spacing(series: Any, seed: int = 0) -> int:
    """Return the least distance at which values of a series are nearly independent, or 1 if neighbours are independent.

    If values are independent, a sum of w neighbouring values has w times the variance of one value. If neighbours are
    alike, its variance is larger. The variance ratio, measured for windows of 2, 4, 8 … values, shows both nearly equal
    neighbours and a slow swing under much noise. Shuffled copies of the series show which ratios arise by chance. The
    largest ratio estimates the correlation time, and the returned distance is twice this time. Ranks replace the
    values, so neither outliers nor the distribution matter. See Lo and MacKinlay, Review of Financial Studies 1 (1988),
    and Schmeiser, Operations Research 30 (1982).

    Parameters
    ----------
    series
        n values or n × features in the order of their arrival. NaN counts as the largest value.
    seed
        Seed of the shuffles.

    Raises ValueError if the series has fewer than 200 values, or if fewer than 20 of them are nearly independent.
    Dependence over more than a tenth of the series cannot be measured. Shuffled values always look independent.
    """
    table = np.asarray(series, dtype=float)
    if len(table) < FEWEST_VALUES:
        raise ValueError(
            f"{number_of(len(table), 'value')} cannot show whether values depend on one another; "
            f"give at least {FEWEST_VALUES}"
        )
    table = table.reshape(len(table), -1)
    ranks = np.column_stack([centred_ranks(column.tolist()) for column in table.T])
    rng = np.random.default_rng(seed)
    ratios = _variance_ratios(ranks)
    found = np.stack([ratios, *(_variance_ratios(rng.permutation(ranks)) for _ in range(SHUFFLES))])
    spread = found.std(axis=0)
    scores = ((found - found.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).max(axis=(1, 2))
    if np.mean(scores >= scores[0]) > MISTAKEN:
        return 1
    spacing = max(2, math.ceil(CORRELATION_TIMES * float(ratios.max())))
    most = int(len(table) / mean_distance(spacing))
    if most < FEWEST_CHOSEN:
        needed = math.ceil(FEWEST_CHOSEN * mean_distance(spacing))
        raise ValueError(
            f"{number_of(len(table), 'value')} depend on one another so much that only {most} of them are nearly "
            f"independent; give at least {max(needed, 2 * len(table)):,}, or one value of each user. If their order "
            f"has no meaning, shuffle them"
        )
    return spacing


def mean_distance(spacing: int) -> float:
    """Return the mean distance between the values that a `SpacedChoice` chooses."""
    return spacing + (spacing - 1) / 2


def _variance_ratios(ranks: np.ndarray) -> np.ndarray:
    """Return the variance ratio of each column for windows of 2, 4, 8 … values: windows × columns."""
    variance = np.mean(ranks**2, axis=0)
    sums, window, found = ranks, 1, list[np.ndarray]()
    while len(sums) // 2 >= FEWEST_WINDOWS:
        even = len(sums) // 2 * 2
        sums, window = sums[:even:2] + sums[1:even:2], 2 * window
        found.append(np.mean(sums**2, axis=0) / (window * np.where(variance > 0, variance, 1.0)))
    return np.array(found)


class SpacedChoice:
    """A random choice from a series. Neighbouring choices are `spacing` to 2 × `spacing` − 1 values apart.

    The distances are random so that the choices do not keep step with a period of the series, such as a day.
    """

    def __init__(self, spacing: int, coin: random.Random) -> None:
        check_least(1, spacing=spacing)
        self.spacing, self.coin = spacing, coin
        self.left_out = coin.randrange(spacing)  # values to leave out before the next choice

    def takes(self) -> bool:
        """Return whether the next value is chosen."""
        if self.left_out:
            self.left_out -= 1
            return False
        self.left_out = self.spacing - 1 + self.coin.randrange(self.spacing)
        return True

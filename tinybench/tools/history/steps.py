"""Steps in a history of measurements, detected commit by commit at a stated rate of false alarms.

A step is the point from which the values lie on another level. `StepDetector` tests for a step after every value.
`find_steps` runs the detector over a whole history as if it grew commit by commit. It then places each step by all the
values on either side.

An alarm needs two things. The first is evidence: the logarithm of how much better another level explains the last
values than the old level does. A value that many kinds of scatter would explain counts little. No value contributes
more than about a third of the threshold to the evidence for a far level.

The second is a permutation test, because scatter may have heavier tails than assumed: few random orders of all values
since the last step may have as much evidence. Both thresholds were set by simulation, because no formula gives them. Of
all histories without a step, in several kinds of independent scatter, at most `level` have an alarm. Scatter unlike
those may give more (``python -m tests.benchmarks history --only alarms``, results in
``tests/benchmarks/results/history.md``).

Autocorrelation, where each value depends on the one before, also gives more alarms. The part of it that the ranks
clearly show is removed. If the autocorrelation is moderate, this keeps such alarms few, but not at the stated rate. If
the machine drifts, pass ratios to a baseline measured in the same rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from scipy.stats import rankdata

_SHIFTS = [sign * shift for shift in (1.2, 1.8, 2.5, 3.2, 4.0, 5.0, 6.5, 9.0, 12.0, 20.0, 40.0) for sign in (1, -1)]
_FAR = 60.0  # largest deviation, in standard deviations; larger ones are clipped to it
_LAST = 30  # number of last values among which a step is searched for
_FEWEST = 10  # fewest values for a test: fewer do not show the scatter
_NEWEST = 5  # number of last values left out of the old level: they may lie on the new one
_MOST = np.where(np.abs(_SHIFTS) > 6, 3.5, np.inf)  # most evidence of one value: three far outliers are not a step
_ASKED = 0.3  # required evidence beyond log(horizon / level): 10.6 in total for 1 % in 300 (by simulation)
_UNSURE = 900.0  # divided by n²: required in addition, as few values show the scatter badly; 9 for n = 10, 0.25 for 60
_ORDERS = 8  # times level / horizon: the share of orders that may have as much evidence, 1 in 3750 (by simulation)
_LONG = 40  # for more values the share falls with (40 / n)², as new values mix less often into the last ones
_LEAST = 0.8  # times level / horizon: the smallest such share, 1 in 37,500
_CHANCE = 1.0  # standard errors subtracted from an autocorrelation, as chance may explain them
_ENOUGH = 4  # this many orders with as much evidence, among _ENOUGH / (allowed share) orders, are too many
_WINDOW = 500  # older values of a level are ignored, so that a test takes no longer in a long history


@dataclass(frozen=True)
class Step:
    """A step in a history.

    Attributes
    ----------
    index
        Index of the first value on the new level.
    low, high
        The first and the last index of the 95 % interval for `index`, both included.
    change
        The relative change of the level: 0.02 for 2 % more.
    change_ci
        The 95 % interval of `change`.
    found
        Index of the value after which the alarm came.
    """

    index: int
    low: int
    high: int
    change: float
    change_ci: tuple[float, float]
    found: int


class StepDetector:
    """A detector that tests for a new step after each value.

    Parameters
    ----------
    level
        The share of histories without a step that have any alarm among the first `horizon` values is about `level` or
        less. This holds if values do not depend on earlier ones (simulated for 0.01 in 300). A longer history has
        `level` alarms per `horizon` values.
    horizon
        See `level`.
    seed
        The seed of the random orders. The same values give the same steps.

    Attributes
    ----------
    steps
        The steps found so far, each as placed at its alarm.
    """

    def __init__(self, level: float = 0.01, horizon: int = 300, seed: int = 0) -> None:
        if not 0 < level < 1 or horizon < 1:
            raise ValueError(f"level must be between 0 and 1 and horizon at least 1, not {level!r} and {horizon!r}.")
        self.level, self.horizon, self.seed = level, horizon, seed
        self.steps: list[Step] = []
        self._begins, self._values = 0, np.empty(0)

    def add(self, value: float) -> Step | None:
        """Add the value of the next commit. Return the step that it reveals, or None."""
        if not (math.isfinite(value) and value > 0):
            raise ValueError(
                f"Value {len(self._values)} is {value!r}: a ratio is a finite number above 0. "
                "Leave out what was not measured."
            )
        self._values = np.append(self._values, float(value))
        n, begins = len(self._values), max(self._begins, len(self._values) - _WINDOW)
        segment = np.log(self._values[begins:])
        level, seed = self.level / self.horizon, [self.seed, n]
        k = _step_in(segment, level, seed)
        # the second test, with the autocorrelation removed, can only cancel alarms
        if k is None or _step_in(_whitened(segment, k), level, seed) is None:
            return None
        step = _placed(segment, k, begins, found=n - 1)
        self._begins = step.index
        self.steps.append(step)
        return step


def find_steps(ratios: Iterable[float], level: float = 0.01, horizon: int = 300, seed: int = 0) -> list[Step]:
    """Return the steps of a history, detected by `StepDetector` and placed by all values up to the adjacent steps."""
    detector = StepDetector(level, horizon, seed)
    for ratio in ratios:
        detector.add(ratio)
    values, found = np.log(detector._values), detector.steps
    steps: list[Step] = []
    for i, step in enumerate(found):
        begins = steps[-1].index if steps else 0
        ends = found[i + 1].index if i + 1 < len(found) else len(values)
        steps.append(_placed(values[begins:ends], step.index - begins, begins, step.found))
    return steps


def _density(z: np.ndarray, at: np.ndarray | float = 0.0) -> np.ndarray:
    """Return the density of values on the level `at`: 0.9 normal, 0.1 Student's t (2 df, 5 times as wide) around 0."""
    wide = np.maximum(1.0, 0.2 * np.abs(at))
    near = np.exp(-0.5 * ((z - at) / wide) ** 2) / (wide * math.sqrt(2 * math.pi))
    return np.asarray(0.9 * near + 0.02 * (2 + z * z / 25) ** -1.5)


def _scale(deviations: np.ndarray, centre: float) -> float:
    """Return a standard deviation that is robust to outliers and above 0 even if all values are equal."""
    return max(1.4826 * float(np.median(np.abs(deviations))), 1e-9 * abs(centre), 1e-12)


def _usual(values: np.ndarray) -> tuple[float, float]:
    """Return the level and standard deviation that make the values most likely by `_density`. Outliers count little."""
    centre = float(np.median(values))
    scale, least = _scale(values - centre, centre), _scale(np.zeros(1), centre)
    for _ in range(4):
        z = np.clip((values - centre) / scale, -_FAR, _FAR)
        near = 1 - 0.02 * (2 + z * z / 25) ** -1.5 / _density(z)
        near /= near.sum()
        centre = float(near @ values)
        scale = max(math.sqrt(float(near @ (values - centre) ** 2)), least)
    return centre, scale


def _scores(z: np.ndarray) -> np.ndarray:
    """Return the log-likelihood ratio of each shift against no shift, for each value."""
    return np.asarray(np.minimum(np.log(_density(z[:, None], np.array(_SHIFTS)) / _density(z[:, None])), _MOST))


def _step_in(values: np.ndarray, level: float, seed: list[int]) -> int | None:
    """Return the index of a step. Return None if the evidence is too weak or too many random orders have as much.

    The evidence of an order is the largest sum of scores over its last values, for any number of them and any shift. A
    value far from both levels contributes nothing, so an outlier neither makes nor hides a step.
    """
    n = len(values)
    if n < _FEWEST:
        return None
    centre, scale = _usual(values[: n - min(_NEWEST, n // 4)])
    z = np.clip((values - centre) / scale, -_FAR, _FAR)
    last = min(_LAST, n // 2)
    sums = np.cumsum(_scores(z[: -last - 1 : -1]), axis=0).max(axis=1)
    evidence = float(sums.max())
    if evidence < _ASKED + _UNSURE / n**2 - math.log(level):
        return None
    scores, rng = _scores(z).astype(np.float32), np.random.default_rng(seed)
    allowed = level * max(_LEAST, _ORDERS * min(1.0, _LONG / n) ** 2)
    orders, done, as_much, batch = math.ceil(_ENOUGH / allowed), 0, 0, 64
    while done < orders:
        as_much += int((_most_evidence(scores, _drawn(rng, batch, n, last)) >= evidence - 1e-3).sum())
        if as_much >= _ENOUGH:
            return None
        done, batch = done + batch, 512
    return n - 1 - int(np.argmax(sums))


def _most_evidence(scores: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Return the evidence of each order, which is a row of indices. Sums are updated in place, within the cache."""
    sums = np.zeros((len(orders), scores.shape[1]), dtype=np.float32)
    most = sums.copy()
    for column in orders.T:
        sums += scores[column]
        np.maximum(most, sums, out=most)
    return np.asarray(most.max(axis=1))


def _whitened(values: np.ndarray, k: int) -> np.ndarray:
    """Return the values without their autocorrelation, as far as the first k values clearly show it."""
    ranks = rankdata(values[:k])
    if not np.ptp(ranks[:-1]) or not np.ptp(ranks[1:]):
        return values
    # minus its standard error: otherwise chance alone would often remove a part of a step
    rho = max(0.0, float(np.corrcoef(ranks[:-1], ranks[1:])[0, 1]) - _CHANCE / math.sqrt(k))
    return values - rho * np.concatenate([[0.0], values[:-1] - np.median(values[:k])])


def _drawn(rng: np.random.Generator, rows: int, n: int, k: int) -> np.ndarray:
    """Return `rows` random samples, each of k different numbers below n in random order."""
    pool = np.tile(np.arange(n, dtype=np.int16), rows)
    begins, picks = np.arange(rows) * n, rng.integers(np.arange(k), n, size=(rows, k))
    for j in range(k):
        here, there = begins + j, begins + picks[:, j]
        pool[here], pool[there] = pool[there], pool[here]
    return np.asarray(pool.reshape(rows, n)[:, :k])


def _placed(values: np.ndarray, k: int, begins: int, found: int) -> Step:
    """Return the step near index k of `values` (logarithms), which begin at index `begins` of the history."""
    at = np.arange(1, len(values))
    for _ in range(3):
        before, after = float(np.median(values[:k])), float(np.median(values[k:]))
        scale = _scale(np.concatenate([values[:k] - before, values[k:] - after]), before)
        likely = np.log(_density((values - before) / scale) / _density((values - after) / scale))
        fit = np.cumsum(likely)[:-1]
        k = int(at[np.argmax(fit)])
    share = np.exp(fit - fit.max())
    share /= share.sum()
    low = high = k - 1
    while share[low : high + 1].sum() < 0.95:
        left, right = share[low - 1] if low else -1.0, share[high + 1] if high + 1 < len(share) else -1.0
        low, high = (low - 1, high) if left > right else (low, high + 1)
    change, (least, most) = _shift(values[:k], values[k:])
    return Step(
        begins + k,
        begins + low + 1,
        begins + high + 1,
        math.expm1(change),
        (math.expm1(least), math.expm1(most)),
        found,
    )


def _shift(before: np.ndarray, after: np.ndarray) -> tuple[float, tuple[float, float]]:
    """Return the difference between two groups and its 95 % interval by ranks (Hodges and Lehmann).

    If there are too few values for an interval, such as 1 and 20, it is −∞ to ∞.
    """
    pairs = np.sort(np.subtract.outer(after, before).ravel())
    m, n = len(before), len(after)
    spread = NormalDist().inv_cdf(0.975) * math.sqrt(m * n * (m + n + 1) / 12)
    if 2 / math.comb(m + n, m) > 0.05:
        return float(np.median(pairs)), (-math.inf, math.inf)
    skip = max(0, int(m * n / 2 - spread))
    return float(np.median(pairs)), (float(pairs[skip]), float(pairs[-skip - 1]))

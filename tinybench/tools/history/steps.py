"""Steps in a history of measurements: found commit by commit, at a stated rate of false alarms.

A step is where the values begin to lie on another level. `StepDetector` looks after every value; `find_steps` lets one
look at a whole history as if it had grown commit by commit, and then places each step by all the values on either side.

An alarm needs two things. First, evidence: the logarithm of how much better the last values are explained by another
level than by the old one, where a value that many kinds of scatter would explain counts little, and none says more for
a far level than about a third of what is asked. Second, as scatter may have tails that this does not foresee: few
random orders of all values since the last step may have as much evidence. By how much and how few was set by
simulation, as no formula gives it: of all histories without a step, in several kinds of independent scatter, at most
`level` have an alarm; scatter unlike those may give more (``python -m tests.benchmarks history --only alarms``, results
in ``tests/benchmarks/results/history.md``). So do values of which each takes after the one before (autocorrelation):
what the ranks clearly tell of that is taken away, which keeps such alarms few where it is moderate, not at the stated
rate. Against a machine that drifts, hand over ratios to a baseline measured in the same rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from scipy.stats import rankdata

_SHIFTS = [sign * shift for shift in (1.2, 1.8, 2.5, 3.2, 4.0, 5.0, 6.5, 9.0, 12.0, 20.0, 40.0) for sign in (1, -1)]
_FAR = 60.0  # what lies further off, in standard deviations, counts as lying there
_LAST = 30  # a step is looked for among so many last values
_FEWEST = 10  # from so many values on: fewer do not tell the scatter
_NEWEST = 5  # so many last values do not tell the old level: they may be on the new one
_MOST = np.where(np.abs(_SHIFTS) > 6, 3.5, np.inf)  # said by one value at most: three far outliers are no step
_ASKED = 0.3  # evidence asked for, above the logarithm of horizon / level: 10.6 for 1 % in 300 (by simulation)
_UNSURE = 900.0  # and by this over n² more, as few values tell the scatter badly: 9 for 10, 0.25 for 60 (by simulation)
_ORDERS = 8  # and at most so many times level / horizon of the orders may have as much: 1 in 3750 (by simulation),
_LONG = 40  # but fewer by the square of n / 40 in a longer history, where new values mix less often into the last ones,
_LEAST = 0.8  # down to so many times level / horizon: 1 in 37,500
_CHANCE = 1.0  # so many standard errors of an autocorrelation are no proof of one
_ENOUGH = 4  # so many such orders, among four times as many as would have one, are too many
_WINDOW = 500  # older values of a level are left aside, so that a look takes as long in a long history


@dataclass(frozen=True)
class Step:
    """A step of a history.

    Attributes
    ----------
    index
        Index of the first value on the new level.
    low, high
        Between these indices, both included, it lies with a probability of 95 %.
    change
        By how much the level changed, as a share of the old one: 0.02 for 2 % more.
    change_ci
        Its 95 % interval.
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
    """Says after each new value whether there is a new step.

    Parameters
    ----------
    level
        About this share of histories without a step, or less, has any alarm among the first `horizon` values, if values
        do not depend on those before (simulated for 0.01 in 300). A longer history has `level` alarms per `horizon`.
    horizon
        See `level`.
    seed
        Of the random orders. The same values give the same steps.

    Attributes
    ----------
    steps
        What was found, each as it was known at its alarm.
    """

    def __init__(self, level: float = 0.01, horizon: int = 300, seed: int = 0) -> None:
        if not 0 < level < 1 or horizon < 1:
            raise ValueError(f"level must be between 0 and 1 and horizon at least 1, not {level!r} and {horizon!r}.")
        self.level, self.horizon, self.seed = level, horizon, seed
        self.steps: list[Step] = []
        self._begins, self._values = 0, np.empty(0)

    def add(self, value: float) -> Step | None:
        """Take in the value of the next commit; return the step that it reveals, if any."""
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
        # the second look, without autocorrelation, only takes alarms away
        if k is None or _step_in(_whitened(segment, k), level, seed) is None:
            return None
        step = _placed(segment, k, begins, found=n - 1)
        self._begins = step.index
        self.steps.append(step)
        return step


def find_steps(ratios: Iterable[float], level: float = 0.01, horizon: int = 300, seed: int = 0) -> list[Step]:
    """Return the steps of a history, found as by `StepDetector` and placed by all values up to the steps beside it."""
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
    """Return the density of values around a level: 0.9 normal, 0.1 Student's t, 2 df, 5 times as wide."""
    wide = np.maximum(1.0, 0.2 * np.abs(at))
    near = np.exp(-0.5 * ((z - at) / wide) ** 2) / (wide * math.sqrt(2 * math.pi))
    return np.asarray(0.9 * near + 0.02 * (2 + z * z / 25) ** -1.5)


def _scale(deviations: np.ndarray, centre: float) -> float:
    """Return a standard deviation that outliers do not move, above 0 also where all values are equal."""
    return max(1.4826 * float(np.median(np.abs(deviations))), 1e-9 * abs(centre), 1e-12)


def _usual(values: np.ndarray) -> tuple[float, float]:
    """Return level and standard deviation that make the values most likely by `_density`: outliers count little."""
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
    """Return the logarithms of how much better each shift explains each value than none."""
    return np.asarray(np.minimum(np.log(_density(z[:, None], np.array(_SHIFTS)) / _density(z[:, None])), _MOST))


def _step_in(values: np.ndarray, level: float, seed: list[int]) -> int | None:
    """Return where the values step, if there is evidence enough and not often as much in random orders.

    The evidence of an order is the largest sum of scores over its last values, by how many and by which shift. A value
    far from both levels says nothing, so an outlier neither makes nor hides a step.
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
    """Return the evidence of some orders, each a row of indices. Sum by sum, in the cache."""
    sums = np.zeros((len(orders), scores.shape[1]), dtype=np.float32)
    most = sums.copy()
    for column in orders.T:
        sums += scores[column]
        np.maximum(most, sums, out=most)
    return np.asarray(most.max(axis=1))


def _whitened(values: np.ndarray, k: int) -> np.ndarray:
    """Return the values without what each takes over from the one before, as far as the first k are sure of that."""
    ranks = rankdata(values[:k])
    if not np.ptp(ranks[:-1]) or not np.ptp(ranks[1:]):
        return values
    # less its standard error: chance alone would often take away a part of a step
    rho = max(0.0, float(np.corrcoef(ranks[:-1], ranks[1:])[0, 1]) - _CHANCE / math.sqrt(k))
    return values - rho * np.concatenate([[0.0], values[:-1] - np.median(values[:k])])


def _drawn(rng: np.random.Generator, rows: int, n: int, k: int) -> np.ndarray:
    """Return rows of k different numbers below n, in random order."""
    pool = np.tile(np.arange(n, dtype=np.int16), rows)
    begins, picks = np.arange(rows) * n, rng.integers(np.arange(k), n, size=(rows, k))
    for j in range(k):
        here, there = begins + j, begins + picks[:, j]
        pool[here], pool[there] = pool[there], pool[here]
    return np.asarray(pool.reshape(rows, n)[:, :k])


def _placed(values: np.ndarray, k: int, begins: int, found: int) -> Step:
    """Return the step near index k of values (logarithms) that begin at index `begins` of the history."""
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
    """Return by how much one group lies above the other, and its 95 % interval by ranks (Hodges and Lehmann).

    With too few values for one, such as 1 and 20, it is −∞ to ∞.
    """
    pairs = np.sort(np.subtract.outer(after, before).ravel())
    m, n = len(before), len(after)
    spread = NormalDist().inv_cdf(0.975) * math.sqrt(m * n * (m + n + 1) / 12)
    if 2 / math.comb(m + n, m) > 0.05:
        return float(np.median(pairs)), (-math.inf, math.inf)
    skip = max(0, int(m * n / 2 - spread))
    return float(np.median(pairs)), (float(pairs[skip]), float(pairs[-skip - 1]))

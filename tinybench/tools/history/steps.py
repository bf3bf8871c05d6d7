"""Steps in a history of measurements, detected commit by commit at a stated rate of false alarms.

A step is a commit from which the values lie at a different level. `StepDetector` tests for a step after every value.
`find_steps` runs the detector over a whole history as if the history grew commit by commit. It then locates each step
again, from all values before and after the step.

An alarm requires two things. The first is evidence: the log-likelihood ratio of another level to the old level, summed
over the last values. Outliers count little, because the assumed distribution of the scatter has heavy tails. If the
other level is far away, no value contributes more than about a third of the threshold.

The second is a permutation test, because the scatter may have heavier tails than assumed. Among random orders of all
values since the last step, only a very small proportion may have as much evidence. Both thresholds were set by
simulation, because no formula gives them. In the simulated histories without a step, with several kinds of independent
scatter, the proportion with an alarm was at most `level`. Other kinds of scatter may cause more alarms. To simulate
again, run ``python -m tests.benchmarks history --only alarms``; the results are in
``tests/benchmarks/results/history.md``.

Autocorrelation, where each value depends on the previous value, also causes more alarms. The autocorrelation that is
clearly visible in the ranks of the values is removed. If the autocorrelation is moderate, such alarms are then few, but
the stated rate is not guaranteed. If the machine drifts, pass ratios to a baseline measured in the same rounds.
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
_LAST = 30  # a step is searched for among this number of last values
_FEWEST = 10  # smallest number of values for a test: the scatter cannot be estimated from fewer
_NEWEST = 5  # number of last values from which the old level is not estimated: they may belong to the new level
_MOST = np.where(np.abs(_SHIFTS) > 6, 3.5, np.inf)  # most evidence from one value: three far outliers are not a step
_ASKED = 0.3  # required evidence beyond log(horizon / level): 10.6 in total for 1 % in 300 (by simulation)
_UNSURE = 900.0  # divided by n²: extra required evidence, as few values show scatter badly; 9 for n = 10, 0.25 for 60
_ORDERS = 8  # times level / horizon: proportion of orders that may have as much evidence, 1 in 3750 (by simulation)
_LONG = 40  # for n > 40 this proportion falls with (40 / n)²: new values are rarer at the end of a random order
_LEAST = 0.8  # times level / horizon: the lower bound of this proportion, 1 in 37,500
_CHANCE = 1.0  # standard errors subtracted from an estimated autocorrelation, because chance may explain them
_ENOUGH = 4  # this many orders with as much evidence, among _ENOUGH / (allowed proportion) orders, are too many
_WINDOW = 500  # number of last values used; older ones are ignored, so that tests are not slower in a long history


@dataclass(frozen=True)
class Step:
    """A step in a history.

    Attributes
    ----------
    index
        Index of the first value on the new level.
    low, high
        The bounds of the 95 % interval for `index`, both included.
    change
        The relative change of the level, such as 0.02 for an increase by 2 %.
    change_ci
        The 95 % interval of `change`.
    found
        Index of the value after which the alarm was raised.
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
        The false-alarm rate. Among histories without a step, the proportion with any alarm in the first `horizon`
        values is about `level` or less. This holds if values do not depend on earlier values (simulated for a level of
        0.01 and a horizon of 300). A longer history has about `level` false alarms per `horizon` values.
    horizon
        The number of values to which `level` refers.
    seed
        The seed of the random orders in the permutation test. With the same seed, the same values give the same steps.

    Attributes
    ----------
    steps
        The steps found so far, each with the position that was estimated when its alarm was raised.
    """

    def __init__(self, level: float = 0.01, horizon: int = 300, seed: int = 0) -> None:
        if not 0 < level < 1 or horizon < 1:
            raise ValueError(f"level must be between 0 and 1 and horizon at least 1, not {level!r} and {horizon!r}.")
        self.level, self.horizon, self.seed = level, horizon, seed
        self.steps: list[Step] = []
        self._begins, self._values = 0, np.empty(0)

    def add(self, value: float) -> Step | None:
        """Add the value of the next commit. Return the step that is detected after this value, or None."""
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
        # a second call, with the autocorrelation removed, can only cancel alarms
        if k is None or _step_in(_whitened(segment, k), level, seed) is None:
            return None
        step = _placed(segment, k, begins, found=n - 1)
        self._begins = step.index
        self.steps.append(step)
        return step


def find_steps(ratios: Iterable[float], level: float = 0.01, horizon: int = 300, seed: int = 0) -> list[Step]:
    """Return the steps of a history.

    `StepDetector` detects the steps. The position of each step is then estimated again from all values between the
    previous step and the next one.
    """
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
    """Return the density of standardised values if their level is `at`.

    The density is a mixture: 0.9 of a normal distribution around `at`, and 0.1 of Student's t around 0 (2 degrees of
    freedom, 5 times as wide).
    """
    wide = np.maximum(1.0, 0.2 * np.abs(at))
    near = np.exp(-0.5 * ((z - at) / wide) ** 2) / (wide * math.sqrt(2 * math.pi))
    return np.asarray(0.9 * near + 0.02 * (2 + z * z / 25) ** -1.5)


def _scale(deviations: np.ndarray, centre: float) -> float:
    """Estimate the standard deviation from the median absolute deviation, which is robust to outliers.

    The result is above 0 even if all values are equal.
    """
    return max(1.4826 * float(np.median(np.abs(deviations))), 1e-9 * abs(centre), 1e-12)


def _usual(values: np.ndarray) -> tuple[float, float]:
    """Estimate the level and the standard deviation that make the values most likely by `_density`.

    Outliers have little influence on the estimates.
    """
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
    """Return one row per value: for each shift of the level, the log-likelihood ratio of this shift to no shift."""
    return np.asarray(np.minimum(np.log(_density(z[:, None], np.array(_SHIFTS)) / _density(z[:, None])), _MOST))


def _step_in(values: np.ndarray, level: float, seed: list[int]) -> int | None:
    """Return the index of a step in `values`, or None if there is no step.

    For each possible shift of the level, the scores (see `_scores`) of the last k values are added. The evidence is the
    largest such sum for any shift and any k up to `_LAST`, but at most half of the values. There is no step if this
    evidence is too weak, or if too many random orders of the values have as much. A value far from both levels
    contributes almost nothing, so an outlier neither causes nor hides a step.
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
    """Return the evidence (see `_step_in`) of each order. Each row of `orders` holds the indices of values.

    The sums are updated in place, so that they stay in the processor's cache.
    """
    sums = np.zeros((len(orders), scores.shape[1]), dtype=np.float32)
    most = sums.copy()
    for column in orders.T:
        sums += scores[column]
        np.maximum(most, sums, out=most)
    return np.asarray(most.max(axis=1))


def _whitened(values: np.ndarray, k: int) -> np.ndarray:
    """Return the values without their autocorrelation, which is estimated from the first k values.

    The estimate is reduced by the amount that chance can cause, so slight autocorrelation is not removed.
    """
    ranks = rankdata(values[:k])
    if not np.ptp(ranks[:-1]) or not np.ptp(ranks[1:]):
        return values
    # the standard error is subtracted: otherwise a part of a step would often be removed by chance alone
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
    """Locate the step near index k of `values`, and return it.

    The values are logarithms. The first of them has the index `begins` in the history.
    """
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
    """Return the Hodges-Lehmann difference between two groups, and its 95 % interval based on ranks.

    If the groups are too small for an interval, such as 1 value and 20 values, the interval is −∞ to ∞.
    """
    pairs = np.sort(np.subtract.outer(after, before).ravel())
    m, n = len(before), len(after)
    spread = NormalDist().inv_cdf(0.975) * math.sqrt(m * n * (m + n + 1) / 12)
    if 2 / math.comb(m + n, m) > 0.05:
        return float(np.median(pairs)), (-math.inf, math.inf)
    skip = max(0, int(m * n / 2 - spread))
    return float(np.median(pairs)), (float(pairs[skip]), float(pairs[-skip - 1]))

# Written by "autograder export" from modules/16_rollout/16_rollout.ipynb: edit the notebook, not this file.

"""Rollouts of new versions: A/B tests, canaries that advance or are rolled back, and change points in a history."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from tinybench.support.basics.arguments import check_least, check_numbers, check_share


def users_needed(share: float, change: float, level: float = 0.05, power: float = 0.8) -> int:
    """Return how many users each version needs so that a change of a proportion is detected with probability `power`.

    Parameters
    ----------
    share, change
        The proportion of users with an event, such as a failure, and the change of this proportion: 0.02 and 0.01 for a
        change from 2 % to 3 %.
    level
        The probability of a false alarm, two-sided.

    The number is (z₁₋ₗₑᵥₑₗ⁄₂ + z_power)² (p(1 − p) + q(1 − q)) / change², rounded up, where p = share and q = share +
    change.

    Raises ValueError unless p, q, the level and the power lie between 0 and 1, the power is above the level, and the
    change is not 0.
    """
    check_share(share=share, level=level, power=power, **{"share + change": share + change})
    if abs(change) < 1e-9:
        raise ValueError(
            f"change is {change}; no number of users can show a change of 0; give the smallest change that matters"
        )
    if power <= level:
        raise ValueError(f"power is {power}, and the level is {level}; the power must be larger")
    p, q = share, share + change
    z = NormalDist().inv_cdf(1 - level / 2) + NormalDist().inv_cdf(power)
    return math.ceil(z**2 * (p * (1 - p) + q * (1 - q)) / change**2)


def share_e_value(new: int, both: int, share: float = 0.5) -> float:
    """Return the e-value against the hypothesis "the new version has its proportional part of the events".

    The e-value is valid at any time.

    Parameters
    ----------
    new, both
        Number of users with the event, such as a failure: with the new version, and with both versions together.
    share
        Share of all users who get the new version, between 0 and 1. If both versions are alike, the new version also
        has this share of the events.

    The e-value is B(new + 1, both − new + 1) / (shareⁿᵉʷ (1 − share)ᵒˡᵈ), by logarithms. It is 1 before the first
    event, and capped at e⁷⁰⁰. Raises ValueError unless 0 ≤ `new` ≤ `both`, and the share lies between 0 and 1.
    """
    check_least(new=new, both=both)
    check_share(share=share)
    if new > both:
        raise ValueError(f"new is {new}, and both is {both}; both must count the events of the two versions together")
    from scipy.special import betaln

    old = both - new
    log = float(betaln(new + 1, old + 1)) - new * math.log(share) - old * math.log1p(-share)
    return math.exp(min(700.0, log))


def in_canary(user: str, share: float, salt: str = "") -> bool:
    """Return whether a user gets the new version, if the fraction `share` of all users gets it.

    The answer for a user never changes. A user who gets the new version at a share of 5 % also gets it at 20 %.

    The first 8 bytes of ``hashlib.sha256((salt + user).encode()).digest()`` are a number below 2⁶⁴, and so a position
    between 0 and 1. Users whose position is below `share` get the new version. Raises ValueError unless `share` is a
    number from 0 to 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share is {share}; the part of all users who get the new version is a number from 0 to 1")
    number = int.from_bytes(hashlib.sha256((salt + user).encode()).digest()[:8], "big")
    return number / 2**64 < share


STAGES = (0.05, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class RolloutState:
    """The state of a rollout.

    Attributes
    ----------
    stage
        Index of the current share of users in `STAGES`.
    status
        ``"running"``, ``"promoted"`` or ``"rolled back"``; the last two are final.
    blind
        Number of consecutive checks without new readings.
    why
        Reason for a rollback.
    """

    stage: int = 0
    status: str = "running"
    blind: int = 0
    why: str = ""

    @property
    def share(self) -> float:
        """The share of users who get the new version now."""
        return {"running": STAGES[self.stage], "promoted": 1.0, "rolled back": 0.0}[self.status]


class Seen(NamedTuple):
    """The result of a check of the metrics.

    ``fresh`` states whether there were new readings. ``evidence`` holds the e-value of harm for each metric. ``enough``
    states whether the stage has had all the users that it needs.
    """

    fresh: bool
    evidence: dict[str, float]
    enough: bool


def advance(state: RolloutState, seen: Seen, stop_at: float = 100.0, patience: int = 3) -> RolloutState:
    """Return the next state of a rollout, after a check of the metrics.

    - A final state stays as it is.
    - Without fresh readings, the stage stays the same. After `patience` such checks in a row, the rollout is rolled
      back, with ``why="blind"``.
    - If the e-value of any metric is `stop_at` or more, the rollout is rolled back. ``why`` is the metric with the
      largest e-value.
    - Otherwise, if `seen.enough` is True, the next stage follows. After the last stage, the version is promoted.

    Raise ValueError for an e-value that is negative or NaN, because such a value does not show that there is no harm.
    """
    for name, value in seen.evidence.items():
        if not value >= 0:
            raise ValueError(
                f"evidence of {name} is {value}; an e-value is at least 0; if there is no reading, set fresh to False"
            )
    if state.status != "running":
        return state
    if not seen.fresh:
        blind = state.blind + 1
        if blind >= patience:
            return replace(state, status="rolled back", blind=blind, why="blind")
        return replace(state, blind=blind)
    state = replace(state, blind=0)
    worst = max(seen.evidence, key=lambda name: seen.evidence[name], default="")
    if worst and seen.evidence[worst] >= stop_at:
        return replace(state, status="rolled back", why=worst)
    if not seen.enough:
        return state
    if state.stage == len(STAGES) - 1:
        return replace(state, status="promoted")
    return replace(state, stage=state.stage + 1)


def best_split(values: Sequence[float]) -> tuple[int, float]:
    """Return the best division of a series by ranks: the index of the first value after it, and the score.

    For every k from 1 to n − 1, take the sum of the ranks of the first k values (1 for the smallest; ties share their
    mean rank, as in `scipy.stats.rankdata`), subtract the expected value of this sum, ``k (n + 1) / 2``, and divide by
    its standard deviation, ``√(k (n − k) (n + 1) / 12)``. The score is the largest absolute value. On a tie, the first
    k counts. Raises ValueError for fewer than 2 values, or a value that is not finite.
    """
    check_numbers(2, values=values)
    from scipy.stats import rankdata

    n = len(values)
    k = np.arange(1, n)
    sums = np.cumsum(rankdata(values))[:-1]
    scores = np.abs(sums - k * (n + 1) / 2) / np.sqrt(k * (n - k) * (n + 1) / 12)
    return int(np.argmax(scores)) + 1, float(scores.max())


def change_points(values: Sequence[float], level: float = 0.01, fewest: int = 5, permutations: int = 999) -> list[int]:
    """Return the indices at which a series changes its level, in order.

    A series is divided at its `best_split` if, among random orders of its values, at most the fraction `level` have a
    score at least as high. The actual order counts as one of the random orders, and ``np.random.default_rng(0)``
    shuffles. Then each part is divided in the same way, with half the level. Parts shorter than twice `fewest` stay
    whole. Raises ValueError for a value that is not finite, a level that is not between 0 and 1, or `fewest` below 1.
    """
    check_share(level=level)
    check_least(1, fewest=fewest, permutations=permutations)
    check_numbers(0, values=values)
    if len(values) < 2 * fewest:
        return []
    k, score = best_split(values)
    rng = np.random.default_rng(0)
    as_good = 1 + sum(best_split(rng.permutation(values).tolist())[1] >= score for _ in range(permutations))
    if as_good / (permutations + 1) > level:
        return []
    before, after = (change_points(part, level / 2, fewest, permutations) for part in (values[:k], values[k:]))
    return [*before, k, *(k + i for i in after)]

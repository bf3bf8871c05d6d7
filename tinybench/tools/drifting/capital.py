"""A betting strategy against "nothing has changed". Its capital is the evidence of a change (an e-value)."""

from __future__ import annotations

import math

import numpy as np

BLOCK = 32  # the product of BLOCK factors, each at most MOST, does not overflow a float
MOST, RICHEST = 1e4, 1e100


class Capital:
    """The capital of a bettor in each of several streams of values, 1 at the start.

    A change may begin at any time. So a part of the initial capital is kept, and at every value a new stake is taken
    from it. After n values, 1 / (1 + ln(n + 1)) of the initial capital is left, so the stake at the n-th value is about
    1 / (n (1 + ln n)²). If a change begins at this value, this stake wins from the first changed value on and has had
    no earlier losses. Compared with a bettor who stakes everything at that moment, the logarithm of the capital is
    lower by about ln n. If each stake were 1 / (n + 1) of the capital that is left, it would be lower by 2 ln n.

    Parameters
    ----------
    streams, bets
        The number of streams, and the number of bets on each stream. Each new stake is divided equally among the bets.

    Attributes
    ----------
    evidence
        The capital of each stream, which is an e-value. If nothing has changed, the probability that the capital ever
        reaches 1 / level is at most `level`. The same holds for the mean over all streams, even if the streams depend
        on one another.
    """

    def __init__(self, streams: int, bets: int) -> None:
        self.n, self.stakes = 0, np.zeros((streams, bets))

    @property
    def kept(self) -> float:
        """The part of the initial capital of 1 that has not been staked yet."""
        return 1 / (1 + math.log(self.n + 1))

    @property
    def evidence(self) -> np.ndarray:
        """The current capital of each stream."""
        return np.asarray(self.kept + self.stakes.sum(axis=1))

    def add(self, factors: np.ndarray) -> np.ndarray:
        """Update each bet with the next values. Return the e-value of each stream after each value.

        Parameters
        ----------
        factors
            The factors by which the next n values multiply the bets: n × streams × bets, each at least 0.001. If
            nothing has changed, the mean of each factor, given all earlier factors, must be at most 1.

        Returns
        -------
        The e-values, of shape (n, streams).
        """
        paths = [self._block(factors[begin : begin + BLOCK]) for begin in range(0, len(factors), BLOCK)]
        return np.concatenate([np.empty((0, len(self.stakes))), *paths])

    def _block(self, factors: np.ndarray) -> np.ndarray:
        factors = np.minimum(factors, MOST)  # a bet remains valid if it is paid less than it won
        kept = 1 / (1 + np.log(np.arange(self.n, self.n + len(factors) + 1) + 1))
        fresh = (kept[:-1] - kept[1:]) / self.stakes.shape[1]
        product = np.cumprod(factors, axis=0)
        before = product / factors  # product of the earlier factors, which do not multiply a new stake
        staked = product * (self.stakes + np.cumsum(fresh[:, None, None] / before, axis=0))
        self.n += len(factors)
        self.stakes = np.minimum(staked[-1], RICHEST)
        return np.asarray(kept[1:, None] + staked.sum(axis=2))

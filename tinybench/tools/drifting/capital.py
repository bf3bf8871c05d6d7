"""A capital that bets against "nothing has changed", with several bets on each of many streams."""

from __future__ import annotations

import math

import numpy as np

BLOCK = 32  # the product of this many factors of at most MOST does not overflow a float
MOST, RICHEST = 1e4, 1e100


class Capital:
    """A capital of 1 for each stream. New bets start at every value, because a change may begin at any time.

    After n values, 1 / (1 + ln(n + 1)) of the capital has not been staked. So the n-th value gets a new stake of about
    1 / (n (1 + ln n)²). The price of not knowing when a change begins is the logarithm of the inverse of this stake,
    close to ln n. If each value got 1 / (n + 1) of the rest, the price would be 2 ln n.

    Parameters
    ----------
    streams, bets
        The number of streams, and of bets on each stream. Each stake is divided equally among the bets.

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
        """The share of the capital that has not been staked."""
        return 1 / (1 + math.log(self.n + 1))

    @property
    def evidence(self) -> np.ndarray:
        """The current capital of each stream."""
        return np.asarray(self.kept + self.stakes.sum(axis=1))

    def add(self, factors: np.ndarray) -> np.ndarray:
        """Update each bet with the next values and return the e-values after each one.

        Parameters
        ----------
        factors
            n × streams × bets, at least 0.001. If nothing has changed, the mean of each factor, given all earlier ones,
            is at most 1.

        Returns
        -------
        n × streams.
        """
        paths = [self._block(factors[begin : begin + BLOCK]) for begin in range(0, len(factors), BLOCK)]
        return np.concatenate([np.empty((0, len(self.stakes))), *paths])

    def _block(self, factors: np.ndarray) -> np.ndarray:
        factors = np.minimum(factors, MOST)  # a bet that is paid less than it won is still fair
        kept = 1 / (1 + np.log(np.arange(self.n, self.n + len(factors) + 1) + 1))
        fresh = (kept[:-1] - kept[1:]) / self.stakes.shape[1]
        product = np.cumprod(factors, axis=0)
        before = product / factors  # product of the earlier factors, which a stake made now does not get
        staked = product * (self.stakes + np.cumsum(fresh[:, None, None] / before, axis=0))
        self.n += len(factors)
        self.stakes = np.minimum(staked[-1], RICHEST)
        return np.asarray(kept[1:, None] + staked.sum(axis=2))

"""A capital that bets against "nothing has changed" by several bets at once, for many streams at once."""

from __future__ import annotations

import math

import numpy as np

BLOCK = 32  # as many factors of at most MOST multiply without leaving the range of floats
MOST, RICHEST = 1e4, 1e100


class Capital:
    """For each of several streams, a capital of 1 that bets on each value, whenever a change may begin.

    After n values 1 / (1 + ln(n + 1)) of the capital has not been staked. So the n-th value gets a new stake of about
    1 / (n (1 + ln n)²): the price of not knowing when a change begins is the logarithm of this, close to ln n. By
    staking 1 / (n + 1) of the rest at each value, the price would be 2 ln n.

    Parameters
    ----------
    streams, bets
        How many there are. A stake is divided equally among the bets.

    Attributes
    ----------
    evidence
        By stream, the capital: an e value. Where nothing has changed, each ever reaches 1 / level with a probability of
        at most `level`. So does their mean, whatever the streams have to do with each other.
    """

    def __init__(self, streams: int, bets: int) -> None:
        self.n, self.stakes = 0, np.zeros((streams, bets))

    @property
    def kept(self) -> float:
        """What has not been put at stake."""
        return 1 / (1 + math.log(self.n + 1))

    @property
    def evidence(self) -> np.ndarray:
        """The capital of each stream."""
        return np.asarray(self.kept + self.stakes.sum(axis=1))

    def add(self, factors: np.ndarray) -> np.ndarray:
        """Multiply stakes by the factors of the next values, and return the evidence after each.

        Parameters
        ----------
        factors
            n × streams × bets, at least 0.001. Given all before, the mean of each is at most 1 if nothing has changed.

        Returns
        -------
        n × streams.
        """
        paths = [self._block(factors[begin : begin + BLOCK]) for begin in range(0, len(factors), BLOCK)]
        return np.concatenate([np.empty((0, len(self.stakes))), *paths])

    def _block(self, factors: np.ndarray) -> np.ndarray:
        factors = np.minimum(factors, MOST)  # who takes less than was won has still bet fairly
        kept = 1 / (1 + np.log(np.arange(self.n, self.n + len(factors) + 1) + 1))
        fresh = (kept[:-1] - kept[1:]) / self.stakes.shape[1]
        product = np.cumprod(factors, axis=0)
        before = product / factors  # of the factors that a stake made now does not get any more
        staked = product * (self.stakes + np.cumsum(fresh[:, None, None] / before, axis=0))
        self.n += len(factors)
        self.stakes = np.minimum(staked[-1], RICHEST)
        return np.asarray(kept[1:, None] + staked.sum(axis=2))

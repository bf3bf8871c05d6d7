"""Conformal p-values, which rank each new value among all values before it."""

from __future__ import annotations

import bisect
import math
import random
from collections.abc import Sequence

__all__ = ["conformal_p"]


def conformal_p(seen: Sequence[float], value: float, coin: random.Random) -> float:
    """Return the p value of a new value: the fraction of all values that are larger. Ties are decided at random.

    All values are the values seen so far and the new value itself.

    Parameters
    ----------
    seen
        All values so far, sorted.
    coin
        ``coin.random()``, between 0 and 1, is the fraction of the ties that count as larger. The new value is one of
        the ties.

    If all values are independent and come from the same source, the result is uniformly distributed between 0 and 1.
    Raises ValueError for NaN.
    """
    if math.isnan(value):
        raise ValueError("value is nan, which has no rank; leave it out, and count how often values are missing")
    larger = len(seen) - bisect.bisect_right(seen, value)
    ties = len(seen) - larger - bisect.bisect_left(seen, value) + 1
    return (larger + coin.random() * ties) / (len(seen) + 1)

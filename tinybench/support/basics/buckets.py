"""The bucket of a histogram in which a quantile lies."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tinybench.support.basics.arguments import check_buckets

__all__ = ["quantile_bounds"]


def quantile_bounds(q: float, bounds: Sequence[float], counts: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the bucket in which the q-quantile lies. The true value may be anywhere between them.

    The result is (NaN, NaN) if no value was counted. For the exceptions see `tinybench.production.histogram_quantile`.
    """
    check_buckets(q, bounds, counts)
    if counts[-1] == 0:
        return math.nan, math.nan
    i = next(i for i, count in enumerate(counts) if count >= q * counts[-1] and count > 0)
    return (float(bounds[i - 1]) if i else 0.0), float(bounds[i])

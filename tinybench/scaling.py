# Written by "autograder export" from modules/15_scaling/15_scaling.ipynb: edit the notebook, not this file.

"""Speed-ups of several workers, and the Universal Scalability Law fitted to them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tinybench.support.basics.arguments import check_least, check_positive
from tinybench.support.basics.numbers import number_of


def speedup(seconds: Mapping[int, float]) -> dict[int, float]:
    """Return the speed-up over one worker, for each number of workers n.

    Raise ValueError if the time of one worker is missing, or if a time or a worker count is not finite and above 0.
    """
    check_positive(**{f"seconds[{n}]": took for n, took in seconds.items()})
    if 1 not in seconds:
        raise ValueError(f"seconds has {', '.join(map(str, seconds))} workers; a speed-up needs the time of 1, too")
    return {n: seconds[1] / took for n, took in seconds.items()}


def fit_usl(speedups: Mapping[int, float]) -> tuple[float, float]:
    """Return the contention and the crosstalk, neither below 0, with which the law fits measured speed-ups best.

    The law is the Universal Scalability Law. The fit is by least squares of n / speed-up − 1, which is linear in both
    parameters. Raises ValueError unless at least two worker counts are above 1, and all speed-ups are finite and above
    0.
    """
    from scipy.optimize import nnls

    if sum(n > 1 for n in speedups) < 2:
        raise ValueError(
            f"speed-ups of {number_of(len(speedups), 'number')} of workers; two unknowns take two of them above 1"
        )
    check_positive(**{f"the speed-up of {n}": gain for n, gain in speedups.items()})
    n = np.array([float(workers) for workers in speedups])
    lost = n / np.array(list(speedups.values())) - 1
    contention, crosstalk = nnls(np.stack([n - 1, n * (n - 1)], axis=1), lost)[0]
    return float(contention), float(crosstalk)


def best_workers(contention: float, crosstalk: float) -> float:
    """Return the number of workers with the largest speed-up according to the Universal Scalability Law.

    The number is at least 1, is not rounded, and may be infinite.
    """
    check_least(contention=contention, crosstalk=crosstalk)
    if contention >= 1:
        return 1.0
    return max(1.0, math.sqrt((1 - contention) / crosstalk)) if crosstalk else math.inf

"""Helpers for module 01: a classifier to time, and a simulation of how many intervals contain the true mean."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np


def digits_timer() -> Callable[[], list[float]]:
    """Fit a classifier of handwritten digits. Return a function that times ten predictions of one image, in s."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    digits = load_digits()
    model = LogisticRegression(max_iter=200).fit(digits.data[:500] / 16, digits.target[:500])
    image = digits.data[500:501] / 16

    def ten_timings() -> list[float]:
        timings = []
        for _ in range(10):
            start = time.perf_counter()
            model.predict_proba(image)
            timings.append(time.perf_counter() - start)
        return timings

    return ten_timings


def interval_coverage(
    draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray],
    true_mean: float,
    n: int,
    trials: int = 4000,
    seed: int = 0,
) -> list[float]:
    """Return the shares of intervals that contain the true mean: with z, with t, and with the percentile bootstrap.

    `draw` returns samples of a given shape. The shares are those of `trials` samples with `n` values each.
    """
    from scipy import stats

    rng = np.random.default_rng(seed)
    samples = draw(rng, (trials, n))
    mean, error = samples.mean(axis=1), samples.std(axis=1, ddof=1) / math.sqrt(n)
    shares = [float(np.mean(np.abs(mean - true_mean) <= width * error)) for width in (1.96, stats.t.ppf(0.975, n - 1))]
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=1000)  # how often each value is in each of 1000 resamples
    low, high = np.quantile(samples @ drawn.T / n, [0.025, 0.975], axis=1)
    return [*shares, float(np.mean((low <= true_mean) & (true_mean <= high)))]

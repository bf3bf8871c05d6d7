"""Autocorrelated values: the autocorrelation, the effective sample size, and nearly independent batches."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

FEW = 30  # with fewer values, the test often misses autocorrelation that invalidates an interval


def centred_ranks(values: Sequence[float]) -> np.ndarray:
    """Return the ranks of the values, shifted to mean 0. Equal values share their mean rank."""
    _, inverse, counts = np.unique(np.asarray(values, dtype=float), return_inverse=True, return_counts=True)
    ranks: np.ndarray = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    ranks -= ranks.mean()
    return ranks


def _autocorrelations(values: Sequence[float]) -> np.ndarray:
    """Return the autocorrelations of the ranks at lags 0, 1, 2 … If all values are equal, return 1, 0, 0 and so on."""
    ranks, n = centred_ranks(values), len(values)
    if not np.any(ranks):
        ranks[0] = 1.0  # if all values are equal, the result is 1 at lag 0 and 0 at all other lags
    spectrum = np.abs(np.fft.rfft(ranks, 2 * n)) ** 2
    products: np.ndarray = np.fft.irfft(spectrum, 2 * n)[:n]
    products /= products[0]
    return products


def autocorrelation(values: Sequence[float]) -> float:
    """Return the autocorrelation of the ranks at lag 1, from −1 to 1. Ranks are robust against outliers."""
    return float(_autocorrelations(values)[1]) if len(values) > 1 else 0.0


def correlation_time(values: Sequence[float]) -> float:
    """Return how many consecutive values contain as much information as one independent value: 1 + 2 Σ ρ, at least 1.

    Σ ρ is the sum of the autocorrelations from lag 1 on. This sum ends before the first pair of neighbouring
    autocorrelations whose sum is negative. See Geyer, Statistical Science 7 (1992).
    """
    rho = _autocorrelations(values)
    pairs = rho[: len(rho) // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    return max(1.0, 2 * float(pairs[: negative[0] if len(negative) else None].sum()) - 1)


def effective_count(values: Sequence[float]) -> float:
    """Return the effective sample size: the number of independent values that would estimate the mean equally well."""
    return len(values) / correlation_time(values)


def is_dependent(values: Sequence[float]) -> bool:
    """Return whether values are positively autocorrelated.

    The test statistic is the sum of the rank autocorrelations at the first lags, with Bartlett's weights. This sum is
    compared with its distribution for shuffled values. The false-alarm rate is 5 to 6 %, whatever the distribution of
    the values. See Wald, Wolfowitz, Annals of Mathematical Statistics 14 (1943).
    """
    n = len(values)
    lags = np.arange(1, max(1, round(n ** (1 / 3)) - 1) + 1)
    if n < 5:
        return False
    weights = 1 - (lags - 1) / len(lags)
    excess = weights @ (_autocorrelations(values)[lags] + (n - lags) / (n * (n - 1)))
    return bool(excess > 1.7 * math.sqrt(weights**2 @ (n - lags) / (n * (n + 2))))


def batch_length(values: Sequence[float], least: int = 6) -> int:
    """Return the number of consecutive values in a batch, always odd. If the values are not autocorrelated, return 1.

    A batch is three correlation times long, so that batches are nearly independent. If that gave fewer than `least`
    batches, batches are shorter.
    """
    if not is_dependent(values):
        return 1
    length = max(1, min(math.ceil(3 * correlation_time(values)), len(values) // least))
    return length - 1 + length % 2  # the median of an odd number of values is too high as often as too low


def batch_means(values: Sequence[float], length: int) -> list[float]:
    """Return the means of batches of `length` consecutive values. See Schmeiser, Operations Research 30 (1982)."""
    return [float(mean) for mean in np.mean(_batches(values, length), axis=1)]


def batch_medians(values: Sequence[float], least: int = 6) -> list[float]:
    """Return the medians of nearly independent batches, or the values themselves if they are not autocorrelated."""
    return [float(median) for median in np.median(_batches(values, batch_length(values, least)), axis=1)]


def _batches(values: Sequence[float], length: int) -> np.ndarray:
    """Return an array with one batch in each row. Values at the start that do not fill a batch are left out."""
    return np.asarray(values, dtype=float)[len(values) % length :].reshape(-1, length)


def caution(values: Sequence[float], least: int = 6) -> str:
    """Return a warning about the effect of autocorrelation on intervals from these values, or "" if all is well."""
    n = len(values)
    if n < 2 or min(values) == max(values):
        return ""
    if not is_dependent(values):
        few = f"{n} values are too few to see whether they depend on one another"
        return few if n < FEW else ""
    number, counts = n // batch_length(values, least), effective_count(values)
    found = f"values depend on one another (autocorrelation {autocorrelation(values):.1f}: {n} count as {counts:.0f})"
    if number == n:
        return f"{found}, too few for batches: intervals are too narrow; measure for longer"
    short = "" if number >= 10 else ", which are few: measure for longer"
    return f"{found}: only intervals from batches hold, here {number}{short}"

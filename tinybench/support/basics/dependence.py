"""Values that depend on those before them: how much, how many they count as, and batches that hardly do."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

FEW = 30  # with fewer values, dependence that spoils an interval is often overlooked


def _centred_ranks(values: Sequence[float]) -> np.ndarray:
    """Return the ranks of the values, equal ones sharing theirs, with mean 0."""
    _, inverse, counts = np.unique(np.asarray(values, dtype=float), return_inverse=True, return_counts=True)
    ranks: np.ndarray = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    ranks -= ranks.mean()
    return ranks


def _autocorrelations(values: Sequence[float]) -> np.ndarray:
    """Return the autocorrelations of the ranks at all lags from 0; zeros after it where all values are equal."""
    ranks, n = _centred_ranks(values), len(values)
    if not np.any(ranks):
        ranks[0] = 1.0  # equal values: 1 at lag 0, nothing after it
    spectrum = np.abs(np.fft.rfft(ranks, 2 * n)) ** 2
    products: np.ndarray = np.fft.irfft(spectrum, 2 * n)[:n]
    products /= products[0]
    return products


def autocorrelation(values: Sequence[float]) -> float:
    """Return how values go with the one before, from −1 to 1: correlation of ranks, which outliers do not sway."""
    return float(_autocorrelations(values)[1]) if len(values) > 1 else 0.0


def correlation_time(values: Sequence[float]) -> float:
    """Return how many values in a row tell as much as one independent value: 1 + 2 Σ ρ, at least 1.

    The sum of autocorrelations ends where two neighbours are negative together. Geyer, Statistical Science 7 (1992).
    """
    rho = _autocorrelations(values)
    pairs = rho[: len(rho) // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    return max(1.0, 2 * float(pairs[: negative[0] if len(negative) else None].sum()) - 1)


def effective_count(values: Sequence[float]) -> float:
    """Return about how many independent values would tell as much about the mean, at most their number."""
    return len(values) / correlation_time(values)


def is_dependent(values: Sequence[float]) -> bool:
    """Whether values tend to resemble those before them; 5 to 6 % false alarms, whatever the distribution.

    Sums the autocorrelations of ranks at the first lags, weighted as by Bartlett, against what shuffling would give.
    Wald, Wolfowitz, Annals of Mathematical Statistics 14 (1943).
    """
    n = len(values)
    lags = np.arange(1, max(1, round(n ** (1 / 3)) - 1) + 1)
    if n < 5:
        return False
    weights = 1 - (lags - 1) / len(lags)
    excess = weights @ (_autocorrelations(values)[lags] + (n - lags) / (n * (n - 1)))
    return bool(excess > 1.7 * math.sqrt(weights**2 @ (n - lags) / (n * (n + 2))))


def batch_length(values: Sequence[float], least: int = 6) -> int:
    """Return how many values in a row make a batch: 1 unless they depend on one another, odd, for `least` batches.

    Three correlation times, where there are values enough: then batches hardly depend on one another.
    """
    if not is_dependent(values):
        return 1
    length = max(1, min(math.ceil(3 * correlation_time(values)), len(values) // least))
    return length - 1 + length % 2  # the median of an odd number is as often above as below the truth


def batch_means(values: Sequence[float], length: int) -> list[float]:
    """Return the means of batches of so many values in a row. Schmeiser, Operations Research 30 (1982)."""
    return [float(mean) for mean in np.mean(_batches(values, length), axis=1)]


def batch_medians(values: Sequence[float], least: int = 6) -> list[float]:
    """Return medians of batches that hardly depend on one another; the values themselves where they do not either."""
    return [float(median) for median in np.median(_batches(values, batch_length(values, least)), axis=1)]


def _batches(values: Sequence[float], length: int) -> np.ndarray:
    """Return one row for each batch; those values at the start that fill none are left out."""
    return np.asarray(values, dtype=float)[len(values) % length :].reshape(-1, length)


def caution(values: Sequence[float], least: int = 6) -> str:
    """Return a sentence on what dependence does to intervals of these values; "" where nothing is to be said."""
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

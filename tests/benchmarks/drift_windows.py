"""A window against a reference, once: PSI, Kolmogorov–Smirnov and χ² of counts, by permutation and quickly.

`tinybench.production.permutation_p` shuffles all values. Shuffling values and counting them again gives counts of the
multivariate hypergeometric distribution, so these are drawn here instead, which spares the values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinybench.tools.drifting.reference import Reference

Statistic = Callable[[np.ndarray, np.ndarray], np.ndarray]


def psi_of(reference: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return `tinybench.production.psi` of counts, references and windows by rows."""
    p, q = reference + 0.5, windows + 0.5
    p, q = p / p.sum(axis=-1, keepdims=True), q / q.sum(axis=-1, keepdims=True)
    return np.asarray(((p - q) * np.log(p / q)).sum(axis=-1))


def ks_of(reference: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return the largest distance between two distribution functions at the ends of bins."""
    p, q = (counts.cumsum(axis=-1) / counts.sum(axis=-1, keepdims=True) for counts in (reference, windows))
    return np.asarray(np.abs(p - q).max(axis=-1))


def chi2_of(reference: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return Pearson's χ² of a table of two rows; bins that are empty in both add nothing."""
    m, n = reference.sum(axis=-1, keepdims=True), windows.sum(axis=-1, keepdims=True)
    both = reference + windows
    scaled = (reference * np.sqrt(n / m) - windows * np.sqrt(m / n)) ** 2
    return np.asarray(np.divide(scaled, both, out=np.zeros(np.shape(scaled)), where=both > 0).sum(axis=-1))


STATISTICS: dict[str, Statistic] = {"PSI": psi_of, "KS": ks_of, "χ²": chi2_of}
GROUPED = ("PSI", "χ²")  # these need bins that are filled


def p_value(reference: Reference, rows: Any, name: str, permutations: int = 199, seed: int = 0) -> float:
    """Return how often a random division of the only feature's counts gives as much as the window, or more."""
    [feature], of = reference.inputs, STATISTICS[name]
    counts = feature.counts, feature.histogram(reference.table(rows)[:, 0])
    before, now = map(feature.grouped, counts) if name in GROUPED else counts
    both = before + now
    windows, filled = np.zeros((permutations, len(both)), dtype=int), both > 0
    rng = np.random.default_rng(seed)
    windows[:, filled] = rng.multivariate_hypergeometric(both[filled], now.sum(), permutations, method="marginals")
    # equal statistics that were summed in another order are equal
    as_much = np.count_nonzero(of(both - windows, windows) >= of(before, now) * (1 - 1e-9))
    return float((1 + as_much) / (permutations + 1))

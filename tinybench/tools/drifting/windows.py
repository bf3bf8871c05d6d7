"""A window against the reference, once: PSI, Kolmogorov–Smirnov and χ², with thresholds by permutation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinybench.tools.drifting.reference import Reference

RULE_OF_THUMB = 0.2  # of PSI; a round number, whatever the sizes of reference and window


def psi_of(reference: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return the population stability index of counts, references and windows by rows (`tinybench.production.psi`)."""
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


class Statistic(NamedTuple):
    """How two rows of counts are compared, and whether in groups of bins."""

    of: Callable[[np.ndarray, np.ndarray], np.ndarray]
    grouped: bool


STATISTICS = {"psi": Statistic(psi_of, True), "ks": Statistic(ks_of, False), "chi2": Statistic(chi2_of, True)}


def by_chance(
    of: Callable[[np.ndarray, np.ndarray], np.ndarray],
    both: np.ndarray,
    n: int,
    permutations: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return a statistic of random divisions of pooled counts into a reference and a window of n.

    Shuffling all values and counting them again gives counts of the multivariate hypergeometric distribution; these
    are drawn instead, without the values.
    """
    windows, filled = np.zeros((permutations, len(both)), dtype=int), both > 0
    windows[:, filled] = rng.multivariate_hypergeometric(both[filled], n, size=permutations, method="marginals")
    return of(both - windows, windows)


class Judgement(NamedTuple):
    """What a window shows.

    Attributes
    ----------
    statistic
        ``"psi"``, ``"ks"`` or ``"chi2"``.
    values, thresholds, p_values
        By feature: the statistic; what it reaches by chance with a probability of `level`, were the feature alone; how
        probable as much is by chance, corrected by Holm's method for the number of features.
    changed
        The features whose corrected p value is at most `level`: where nothing has changed, none, with a probability of
        at least 1 − level.
    """

    statistic: str
    values: dict[str, float]
    thresholds: dict[str, float]
    p_values: dict[str, float]
    changed: list[str]


def judge(
    reference: Reference, rows: Any, statistic: str = "psi", level: float = 0.05, permutations: int = 0, seed: int = 0
) -> Judgement:
    """Compare a window of rows with the reference, once: who looks at many windows wants `DriftWatch`.

    Parameters
    ----------
    rows
        n × features; NaN is a value like others. n ≥ 1.
    permutations
        Random divisions; 0 takes enough for the correction, at least 1,999.
    """
    from tinybench.toolbox import holm

    if statistic not in STATISTICS:
        raise ValueError(f"statistic is {statistic!r}; there are {', '.join(STATISTICS)}")
    table = reference.table(rows)
    if not len(table):
        raise ValueError("the window is empty: nothing came, which is no sign that all is well")
    of, grouped = STATISTICS[statistic]
    permutations = permutations or max(1999, math.ceil(4 * len(reference.inputs) / level))
    rng, values, thresholds, found = np.random.default_rng(seed), {}, {}, []
    for feature, column in zip(reference.inputs, table.T, strict=True):
        counts = feature.counts, feature.histogram(column)
        before, now = (feature.grouped(each) for each in counts) if grouped else counts
        chance = by_chance(of, before + now, len(table), permutations, rng)
        values[feature.name] = float(of(before, now))
        thresholds[feature.name] = float(np.quantile(chance, 1 - level, method="higher"))
        # equal statistics that were summed in another order are equal
        as_much = np.count_nonzero(chance >= values[feature.name] * (1 - 1e-9))
        found.append((1 + as_much) / (permutations + 1))
    p_values = dict(zip(values, holm(found), strict=True))
    return Judgement(statistic, values, thresholds, p_values, [name for name, p in p_values.items() if p <= level])

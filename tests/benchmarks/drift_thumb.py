"""What is the rule of thumb worth? PSI above 0.1 is said to be a slight change, and above 0.2 a large one.

Reference (10,000 values) and window (n) are equal: normal, in ten bins of a tenth of the reference each. PSI is once that
of module 16, `tinybench.production.psi`, which adds half a value to every bin of both, so that none is empty; and once
without that, where an empty bin counts as a share of 0.0001, as is usual. Beside it stand the mean of the textbook,
(bins − 1) (1 / n + 1 / 10,000), and `tinybench.drifting.judge` on the same windows, by 199 random divisions at 5 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.benchmarks.drift_alarms import LEVEL, REFERENCE, THUMBS, said
from tinybench.accuracy import wilson_interval
from tinybench.drifting import Reference, judge
from tinybench.production import psi
from tinybench.table import Table

SIZES = (50, 100, 1000)
BINS, LEAST_SHARE = 10, 1e-4
WAYS = {"half": "PSI, half a value added", "plain": "PSI, nothing added"}


def counts_of(reference: np.ndarray, window: np.ndarray) -> list[np.ndarray]:
    """Return how many values of both fall into the tenths of the reference."""
    edges = np.quantile(reference, np.linspace(0, 1, BINS + 1)[1:-1])
    return [np.bincount(np.searchsorted(edges, values), minlength=BINS) for values in (reference, window)]


def plain_psi(reference: np.ndarray, window: np.ndarray) -> float:
    """Return PSI of counts to which nothing was added."""
    p, q = (np.maximum(counts / counts.sum(), LEAST_SHARE) for counts in (reference, window))
    return float(np.sum((p - q) * np.log(p / q)))


def measured(short: bool) -> dict[str, Any]:
    """Return by n and way all values of PSI, and how often `judge` rang."""
    sizes, trials = (SIZES[:1], 20) if short else (SIZES, 2000)
    rows: list[dict[str, Any]] = []
    for n in sizes:
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        rang = 0
        for seed in range(trials):
            rng = np.random.default_rng([n, seed])
            reference, window = rng.normal(size=REFERENCE), rng.normal(size=n)
            counts = counts_of(reference, window)
            found["half"].append(psi(*counts))  # type: ignore[arg-type]
            found["plain"].append(plain_psi(*counts))
            kept = Reference.of(reference[:, None], seed=seed)
            rang += bool(judge(kept, window[:, None], "psi", LEVEL, 199, seed).changed)
        for way, values in found.items():
            over = {str(bound): sum(value > bound for value in values) for bound in THUMBS}
            rows.append({"n": n, "way": way, "mean": float(np.mean(values)), "over": over, "of": trials})
        rows.append({"n": n, "way": "judge", "rang": rang, "of": trials})
    return {"rows": rows}


def row_of(found: Mapping[str, Any], way: str, n: int) -> dict[str, Any]:
    """Return what was measured."""
    return next(row for row in found["rows"] if (row["way"], row["n"]) == (way, n))


def goals(found: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether ours keeps its level where the rule of thumb does not."""
    ours, thumb = row_of(found, "judge", 50), row_of(found, "plain", 50)
    low, _ = wilson_interval(ours["rang"], ours["of"])
    share = thumb["over"]["0.1"] / thumb["of"]
    return {
        f"at n = 50 PSI by permutation rings in {said(ours['rang'], ours['of'])} of equal data: at most 5 %, within the "
        "interval": low <= LEVEL,
        f"at n = 50 the rule of thumb, above 0.1 with nothing added, rings in {share:.0%}: in more than 80 %": share
        > 0.8,
    }


def page(found: Mapping[str, Any]) -> list[str]:
    """Return the table, and what half a value does."""
    rows = []
    for n in sorted({row["n"] for row in found["rows"]}):
        for way, name in WAYS.items():
            row = row_of(found, way, n)
            shares = {f"above {bound}": said(row["over"][str(bound)], row["of"]) for bound in THUMBS}
            rows.append({"window": f"n = {n:,}", "way": name, "mean": f"{row['mean']:.3f}", **shares})
        ours = row_of(found, "judge", n)
        rows[-1]["PSI by permutation, 5 %"] = rows[-2]["PSI by permutation, 5 %"] = said(ours["rang"], ours["of"])
        rows[-1]["textbook's mean"] = rows[-2]["textbook's mean"] = f"{(BINS - 1) * (1 / n + 1 / REFERENCE):.3f}"
    half, plain = (row_of(found, way, 50) for way in WAYS)
    one, other = ([f"{row['over'][str(bound)] / row['of']:.0%}" for row in (plain, half)] for bound in THUMBS)
    return [
        f"Equal normal data, {plain['of']:,} trials, ten bins:",
        Table(rows).markdown(),
        f"At n = 50 a bin expects 5 values. Half a value more in each bin draws the shares of the window together: the mean "
        f"falls from {plain['mean']:.3f} to {half['mean']:.3f}, the trials above 0.1 from {one[0]} to {one[1]}, those "
        f"above 0.2 from {other[0]} to {other[1]}. It lessens the false alarms of the rule and does not cure them.",
    ]

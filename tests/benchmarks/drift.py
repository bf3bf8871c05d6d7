"""Drift: how often do alarms ring where nothing has changed, how late where something has, and before the labels come?

This file asks how often; `drift_delay` how late, `drift_digits` whether before the labels.

False alarms: of each kind of data 10,000 values are a reference, and n others a window. PSI, Kolmogorov–Smirnov and χ²
are judged once by 199 random divisions. `tinybench.production.permutation_p` shuffles all values; shuffled values
have counts of the multivariate hypergeometric distribution, so these are drawn here instead. The rule of thumb is PSI in
ten bins of a tenth of the reference each, above 0.1 (said to be a slight change) and above 0.2 (a large one). The
sequential alarms look at each value; they count if they ring at any of the n. `DriftAlarm` is what students write in
module 16, `DriftWatch` what `tinybench serve` uses.

Kinds: normal; skewed (lognormal); mostly zero (90 % zeros, else exponential); counts (Poisson, mean 3, so many ties).

The rule of thumb: normal data alone. PSI is once that of module 16, `tinybench.production.psi`, which adds half a value
to every bin of both, so that none is empty; and once without that, where an empty bin counts as a share of 0.0001, as is
usual. Beside it stand the mean of the textbook, (bins − 1) (1 / n + 1 / 10,000), and PSI by permutation on the same windows.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np

from tests.benchmarks import drift_delay, drift_dependence, drift_digits
from tests.benchmarks.drift_delay import LEVEL
from tests.benchmarks.formats import grouped, lines, pooled, share, table
from tests.benchmarks.harness import Benchmark, Case, Part, Records, Trial
from tinybench.accuracy import wilson_interval
from tinybench.course.lessons.m16 import binned_statistics
from tinybench.production import DriftAlarm, psi
from tinybench.tools.drifting import DriftWatch, Reference

REFERENCE = 10_000
SIZES = (50, 100, 500, 1000, 5000, 10_000)
THUMB_SIZES = (50, 100, 1000)
THUMBS = {"slight": 0.1, "large": 0.2}  # what a change of PSI is said to be
BINS = 10
TRIALS, SLOW, THUMB_TRIALS = 500, 150, 2000  # of each kind; with the student's alarm, for it takes values one by one
BLOCK = 50  # trials of a case
KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: rng.lognormal(size=n),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.exponential(size=n)),
    "counts": lambda rng, n: rng.poisson(3, n).astype(float),
}


def psi_of(reference: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return `tinybench.production.psi` of counts, references and windows by rows."""
    p, q = reference + 0.5, windows + 0.5
    p, q = p / p.sum(axis=-1, keepdims=True), q / q.sum(axis=-1, keepdims=True)
    return np.asarray(((p - q) * np.log(p / q)).sum(axis=-1))


def ks_of(reference: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return the largest distance between two distribution functions at the ends of bins."""
    return binned_statistics(reference, windows)[1]


def chi2_of(reference: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return Pearson's χ² of a table of two rows; bins that are empty in both add nothing."""
    m, n = reference.sum(axis=-1, keepdims=True), windows.sum(axis=-1, keepdims=True)
    both = reference + windows
    scaled = (reference * np.sqrt(n / m) - windows * np.sqrt(m / n)) ** 2
    return np.asarray(np.divide(scaled, both, out=np.zeros(np.shape(scaled)), where=both > 0).sum(axis=-1))


STATISTICS = {"PSI": psi_of, "KS": ks_of, "χ²": chi2_of}
EVER = "DriftAlarm", "DriftWatch"
WAYS = (*STATISTICS, *EVER, *(f"PSI > {bound}" for bound in THUMBS.values()))


def p_value(reference: Reference, rows: Any, name: str, permutations: int = 199, seed: int = 0) -> float:
    """Return how often a random division of the only feature's counts gives as much as the window, or more."""
    [feature], of = reference.inputs, STATISTICS[name]
    counts = feature.counts, feature.histogram(reference.table(rows)[:, 0])
    before, now = map(feature.grouped, counts) if name != "KS" else counts  # distances need no filled bins
    both = before + now
    windows, filled = np.zeros((permutations, len(both)), dtype=int), both > 0
    rng = np.random.default_rng(seed)
    windows[:, filled] = rng.multivariate_hypergeometric(both[filled], now.sum(), permutations, method="marginals")
    # equal statistics that were summed in another order are equal
    as_much = np.count_nonzero(of(both - windows, windows) >= of(before, now) * (1 - 1e-9))
    return float((1 + as_much) / (permutations + 1))


def counts_of(reference: np.ndarray, window: np.ndarray) -> list[np.ndarray]:
    """Return how many values of both fall into the tenths of the reference."""
    edges = np.unique(np.quantile(reference, np.linspace(0, 1, BINS + 1)[1:-1]))
    return [np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1) for values in (reference, window)]


def of_trial(kind: str, seed: int, sizes: tuple[int, ...], slow: bool) -> dict[tuple[str, int], bool]:
    """Return by way and size whether it rang; the student's alarm only where `slow`."""
    rng, rang = np.random.default_rng(seed), {}
    values, stream = KINDS[kind](rng, REFERENCE), KINDS[kind](rng, sizes[-1])
    reference = Reference.of(values[:, None], seed=seed)
    for n in sizes:
        window = KINDS[kind](rng, n)
        rang |= {(way, n): p_value(reference, window[:, None], way, seed=seed) <= LEVEL for way in STATISTICS}
        found = psi(*counts_of(values, window))
        rang |= {(f"PSI > {bound}", n): found > bound for bound in THUMBS.values()}
    watch = DriftWatch(reference, LEVEL, seed)
    watch.add(stream[:, None])
    first = {"DriftWatch": watch.streams["inputs"].first or np.inf}
    if slow:
        alarm = DriftAlarm(values.tolist(), LEVEL, seed)
        first["DriftAlarm"] = next((n for n, value in enumerate(stream.tolist(), 1) if alarm.add(value)), np.inf)
    return rang | {(way, n): bool(at <= n) for way, at in first.items() for n in sizes}


def blocks(options: Namespace) -> list[Case]:
    return [*product(KINDS, [0] if options.short else range(0, TRIALS, BLOCK))]


def measured(trial: Trial) -> Records:
    kind, first = trial.case
    sizes, trials, slow = (SIZES[:2], 3, 1) if trial.short else (SIZES, BLOCK, SLOW)
    begin = 10_000 * list(KINDS).index(kind)
    rang = [of_trial(kind, begin + seed, sizes, seed < slow) for seed in range(first, first + trials)]
    return [
        {"kind": kind, "way": way, "n": n, "rang": sum(cell), "of": len(cell)}
        for way, n in product(WAYS, sizes)
        if (cell := [each[way, n] for each in rang if (way, n) in each])
    ]


def goals(found: Records) -> dict[str, bool]:
    """Return whether every way keeps its level: no interval lies above it, all together being right in 95 %."""
    cells = pooled((row for row in found if "PSI >" not in row["way"]), "way", "n", "kind")
    above = {key[0] for key, cell in cells.items() if wilson_interval(*cell, 1 - 0.05 / len(cells))[0] > LEVEL}
    return {
        f"{way} rings in at most 5 % of equal data at every n, of every kind": way not in above
        for way in (*STATISTICS, *EVER)
    }


def page(found: Records) -> list[str]:
    sizes, cells = sorted({row["n"] for row in found}), pooled(found, "way", "n")
    rows = [{"way": way, **{f"n = {n:,}": share(*cells[way, n], 1) for n in sizes}} for way in WAYS]
    worst = []
    for way in WAYS:
        shares = pooled((row for row in found if row["way"] == way), "kind", "n")
        (kind, n), (rang, of) = max(shares.items(), key=lambda item: item[1][0] / item[1][1])
        worst.append({"way": way, "worst": f"{kind}, n = {n:,}", "rang": share(rang, of, 1), "of": str(of)})
    return [
        "All kinds of data together, so the rule of thumb, with half a value added to each bin, rings less than on normal "
        "data alone (next part). A sequential alarm counts if it rang at any of the first n values:",
        table(rows),
        "The worst kind and n of each:",
        table(worst),
    ]


def thumb_blocks(options: Namespace) -> list[Case]:
    return [(50, 0)] if options.short else [*product(THUMB_SIZES, range(0, THUMB_TRIALS, BLOCK))]


def thumb_measured(trial: Trial) -> Records:
    (n, first), rows = trial.case, []
    for seed in range(first, first + (20 if trial.short else BLOCK)):
        rng = np.random.default_rng([n, seed])
        reference, window = rng.normal(size=REFERENCE), rng.normal(size=n)
        counts, kept = counts_of(reference, window), Reference.of(reference[:, None], seed=seed)
        rang = p_value(kept, window[:, None], "PSI", seed=seed) <= LEVEL
        rows.append({"n": n, "half": psi(*counts), "plain": float(binned_statistics(*counts)[0]), "rang": rang})
    return rows


def thumb_rows(found: Records) -> Records:
    """Return by size and way the mean of PSI, how often it is above each bound, and how often PSI by permutation rang."""
    ways = {"half": "PSI, half a value added", "plain": "PSI, nothing added"}
    return [
        {"n": n, "way": name, "mean": fmean(row[way] for row in rows), "of": len(rows)}
        | {change: sum(row[way] > bound for row in rows) for change, bound in THUMBS.items()}
        | {"permuted": sum(row["rang"] for row in rows), "textbook": (BINS - 1) * (1 / n + 1 / REFERENCE)}
        for (n,), rows in grouped(found, "n").items()
        for way, name in ways.items()
    ]


def thumb_goals(found: Records) -> dict[str, bool]:
    _, plain = thumb_rows(row for row in found if row["n"] == 50)
    ours, over = (plain["permuted"], plain["of"]), plain["slight"] / plain["of"]
    level = f"PSI by permutation rings in {share(*ours, 1)} of equal data: at most 5 %, within the interval"
    thumb = f"the rule of thumb, above 0.1 with nothing added, rings in {over:.0%}: in more than 80 %"
    return {f"at n = 50 {level}": wilson_interval(*ours)[0] <= LEVEL, f"at n = 50 {thumb}": over > 0.8}


def thumb_page(found: Records) -> list[str]:
    rows = thumb_rows(found)
    return [
        f"Equal normal data, {rows[0]['of']:,} trials, ten bins:",
        lines(
            [{**row, **{key: share(row[key], row["of"], 1) for key in ("permuted", *THUMBS)}} for row in rows],
            "window | way | mean | above 0.1 | above 0.2 | PSI by permutation, 5 % | textbook's mean",
            "n = {n:,} | {way} | {mean:.3f} | {slight} | {large} | {permuted} | {textbook:.3f}",
        ),
        "At n = 50 a bin expects 5 values. Half a value more in each bin draws the shares of the window together. It lessens "
        "the false alarms of the rule and does not cure them.",
    ]


BENCHMARK = Benchmark(
    "Does what comes now look like what was tested?",
    {
        "alarms": Part("False alarms", measured, page, goals, blocks, "processes"),
        "thumb": Part("The rule of thumb", thumb_measured, thumb_page, thumb_goals, thumb_blocks, "processes"),
        "dependence": drift_dependence.PART,
        "delay": drift_delay.PART,
        "digits": drift_digits.PART,
        "cost": drift_digits.COST,
    },
    "Shares are followed by 95 % intervals (Wilson).",
)

"""How often do alarms ring although reference and window come from the same source, and what is the rule of thumb worth?

False alarms: of each kind of data 10,000 values are a reference, and n others a window. PSI, Kolmogorov–Smirnov and χ²
are judged once by 199 random divisions (`drift_windows`). The rule of thumb is PSI in ten bins of a tenth of
the reference each, above 0.1 (said to be a slight change) and above 0.2 (a large one). The sequential alarms look at each
value; they count if they ring at any of the n. `DriftAlarm` is what students write in module 16, `DriftWatch` what
`tinybench serve` uses.

Kinds: normal; skewed (lognormal); mostly zero (90 % zeros, else exponential); counts (Poisson, mean 3, so many ties).

The rule of thumb: normal data alone. PSI is once that of module 16, `tinybench.production.psi`, which adds half a value
to every bin of both, so that none is empty; and once without that, where an empty bin counts as a share of 0.0001, as is
usual. Beside it stand the mean of the textbook, (bins − 1) (1 / n + 1 / 10,000), and PSI by permutation on the same windows.
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from itertools import product
from statistics import fmean

import numpy as np

from tests.benchmarks.drift_windows import STATISTICS, p_value
from tests.benchmarks.formats import grouped, lines, pooled, share, table
from tests.benchmarks.harness import Case, Part, Records, Trial
from tinybench.accuracy import wilson_interval
from tinybench.production import DriftAlarm, psi
from tinybench.tools.drifting import DriftWatch, Reference

LEVEL, REFERENCE = 0.05, 10_000
SIZES = (50, 100, 500, 1000, 5000, 10_000)
THUMB_SIZES = (50, 100, 1000)
THUMBS = {"slight": 0.1, "large": 0.2}  # what a change of PSI is said to be
BINS, LEAST_SHARE = 10, 1e-4
TRIALS, SLOW, THUMB_TRIALS = 500, 150, 2000  # of each kind; with the student's alarm, for it takes values one by one
BLOCK = 50  # trials of a case
KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: rng.lognormal(size=n),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.exponential(size=n)),
    "counts": lambda rng, n: rng.poisson(3, n).astype(float),
}
EVER = "DriftAlarm", "DriftWatch"
WAYS = (*STATISTICS, *EVER, *(f"PSI > {bound}" for bound in THUMBS.values()))


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


def cases(options: Namespace) -> list[Case]:
    """Return each kind of data with the first seed of a block."""
    return [*product(KINDS, [0] if options.short else range(0, TRIALS, BLOCK))]


def measured(trial: Trial) -> Records:
    """Return by way and size how many of how many rang in a block."""
    (kind, first), rang, total = trial.case, Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    sizes, trials, slow = (SIZES[:2], 3, 1) if trial.short else (SIZES, BLOCK, SLOW)
    for seed in range(first, first + trials):
        for key, yes in of_trial(kind, 10_000 * list(KINDS).index(kind) + seed, sizes, seed < slow).items():
            rang[key] += yes
            total[key] += 1
    return [{"kind": kind, "way": way, "n": n, "rang": rang[way, n], "of": of} for (way, n), of in total.items()]


def goals(found: Records) -> dict[str, bool]:
    """Return whether every way keeps its level: no interval lies above it, all together being right in 95 %."""
    cells = {key: cell for key, cell in pooled(found, "way", "n", "kind").items() if key[0] not in WAYS[-len(THUMBS) :]}
    kept = {key: wilson_interval(*cell, 1 - 0.05 / len(cells))[0] <= LEVEL for key, cell in cells.items()}
    return {
        f"{way} rings in at most 5 % of equal data at every n, of every kind": all(
            met for (name, _, _), met in kept.items() if name == way
        )
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


def plain_psi(reference: np.ndarray, window: np.ndarray) -> float:
    """Return PSI of counts to which nothing was added."""
    p, q = (np.maximum(counts / counts.sum(), LEAST_SHARE) for counts in (reference, window))
    return float(np.sum((p - q) * np.log(p / q)))


def thumb_cases(options: Namespace) -> list[Case]:
    """Return each size of a window with the first seed of a block."""
    return [(50, 0)] if options.short else [*product(THUMB_SIZES, range(0, THUMB_TRIALS, BLOCK))]


def thumb_measured(trial: Trial) -> Records:
    """Return of each trial PSI in both ways, and whether PSI by permutation rang."""
    (n, first), rows = trial.case, []
    for seed in range(first, first + (20 if trial.short else BLOCK)):
        rng = np.random.default_rng([n, seed])
        reference, window = rng.normal(size=REFERENCE), rng.normal(size=n)
        counts, kept = counts_of(reference, window), Reference.of(reference[:, None], seed=seed)
        rang = p_value(kept, window[:, None], "PSI", seed=seed) <= LEVEL
        rows.append({"n": n, "half": psi(*counts), "plain": plain_psi(*counts), "rang": rang})
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
    """Return whether ours keeps its level where the rule of thumb does not."""
    _, plain = thumb_rows(row for row in found if row["n"] == 50)
    ours, over = (plain["permuted"], plain["of"]), plain["slight"] / plain["of"]
    return {
        f"at n = 50 PSI by permutation rings in {share(*ours, 1)} of equal data: at most 5 %, within the "
        "interval": wilson_interval(*ours)[0] <= LEVEL,
        f"at n = 50 the rule of thumb, above 0.1 with nothing added, rings in {over:.0%}: in more than 80 %": over
        > 0.8,
    }


def thumb_page(found: Records) -> list[str]:
    """Return the table, and what half a value does."""
    rows = thumb_rows(found)
    shares = [{**row, **{key: share(row[key], row["of"], 1) for key in ("permuted", *THUMBS)}} for row in rows]
    half, plain = rows[:2]
    one, other = ([f"{row[change] / row['of']:.0%}" for row in (plain, half)] for change in THUMBS)
    return [
        f"Equal normal data, {plain['of']:,} trials, ten bins:",
        lines(
            shares,
            "window | way | mean | above 0.1 | above 0.2 | PSI by permutation, 5 % | textbook's mean",
            "n = {n:,} | {way} | {mean:.3f} | {slight} | {large} | {permuted} | {textbook:.3f}",
        ),
        "At n = 50 a bin expects 5 values. Half a value more in each bin draws the shares of the window together: the mean "
        f"falls from {plain['mean']:.3f} to {half['mean']:.3f}, the trials above 0.1 from {one[0]} to {one[1]}, those "
        f"above 0.2 from {other[0]} to {other[1]}. It lessens the false alarms of the rule and does not cure them.",
    ]


PART = Part("False alarms", measured, page, goals, cases, "processes")
THUMB = Part("The rule of thumb", thumb_measured, thumb_page, thumb_goals, thumb_cases, "processes")

"""How often do alarms ring although reference and window come from the same source?

Of each kind of data 10,000 values are a reference, and n others a window. PSI, Kolmogorov–Smirnov and χ² are judged once
by 199 random divisions (`tinybench.drifting.judge`). The rule of thumb is PSI in ten bins of a tenth of the reference
each, above 0.1 and above 0.2. The sequential alarms look at each value; they count if they ring at any of the n.
`DriftAlarm` is what students write in module 16, `DriftWatch` what `tinybench serve` uses, and `Parity` one of two
versions that disagree in just the allowed 1 %, whatever the kind of data.

Kinds: normal; skewed (lognormal); mostly zero (90 % zeros, else exponential); counts (Poisson, mean 3, so many ties).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tinybench.accuracy import wilson_interval
from tinybench.drifting import DriftWatch, Parity, Reference, judge
from tinybench.drifting.windows import STATISTICS, psi_of
from tinybench.production import DriftAlarm
from tinybench.table import Table

LEVEL, REFERENCE = 0.05, 10_000
SIZES = (50, 100, 500, 1000, 5000, 10_000)
THUMBS = (0.1, 0.2)
Draw = Callable[[np.random.Generator, int], np.ndarray]
KINDS: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: rng.lognormal(size=n),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.exponential(size=n)),
    "counts": lambda rng, n: rng.poisson(3, n).astype(float),
}
ONCE, EVER = tuple(STATISTICS), ("DriftAlarm", "DriftWatch", "Parity")
NAMES = {"psi": "PSI", "ks": "KS", "chi2": "χ²"}


def thumb(reference: np.ndarray, window: np.ndarray) -> float:
    """Return PSI as usually computed: ten bins of a tenth of the reference each."""
    edges = np.unique(np.quantile(reference, np.linspace(0.1, 0.9, 9)))
    counts = [np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (reference, window)]
    return float(psi_of(*counts))


def first_of(alarm: DriftAlarm, values: list[float]) -> float:
    """Return the number of values until a student's alarm rings."""
    return next((number for number, value in enumerate(values, 1) if alarm.add(value)), np.inf)


def of_trial(kind: str, seed: int, sizes: tuple[int, ...], slow: bool) -> dict[tuple[str, int], bool]:
    """Return by way and size whether it rang; the student's alarm only where `slow`, for it takes values one by one."""
    rng, rang = np.random.default_rng(seed), {}
    values, stream = KINDS[kind](rng, REFERENCE), KINDS[kind](rng, sizes[-1])
    reference = Reference.of(values[:, None], seed=seed)
    for n in sizes:
        window = KINDS[kind](rng, n)
        for way in ONCE:
            rang[way, n] = bool(judge(reference, window[:, None], way, LEVEL, 199, seed).changed)
        found = thumb(values, window)
        rang |= {(f"PSI > {bound}", n): found > bound for bound in THUMBS}
    watch, disagree = DriftWatch(reference, LEVEL, seed), Parity(0.01, LEVEL)
    watch.add(stream[:, None])
    first = {"DriftWatch": watch.streams["inputs"].first or np.inf}
    bad = rng.random(sizes[-1]) < 0.01
    first["Parity"] = next((n for n in sizes if disagree.add(bad[disagree.total : n])), np.inf)
    if slow:
        first["DriftAlarm"] = first_of(DriftAlarm(values.tolist(), LEVEL, seed), stream.tolist())
    return rang | {(way, n): bool(at <= n) for way, at in first.items() for n in sizes}


def measured(short: bool) -> dict[str, Any]:
    """Return by kind, way and size how many of how many rang."""
    sizes, trials, slow = (SIZES[:2], 3, 1) if short else (SIZES, 500, 150)
    rows = []
    for place, kind in enumerate(KINDS):
        rang, total = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
        for seed in range(trials):
            for key, yes in of_trial(kind, 10_000 * place + seed, sizes, seed < slow).items():
                rang[key] += yes
                total[key] += 1
        rows += [{"kind": kind, "way": way, "n": n, "rang": rang[way, n], "of": of} for (way, n), of in total.items()]
    return {"rows": rows}


def pooled(found: Mapping[str, Any], way: str, n: int, kind: str = "") -> tuple[int, int]:
    """Return how many of how many rang, over all kinds or of one."""
    these = [row for row in found["rows"] if (row["way"], row["n"]) == (way, n) and kind in ("", row["kind"])]
    return sum(row["rang"] for row in these), sum(row["of"] for row in these)


def said(rang: int, of: int) -> str:
    """Return a share with its interval."""
    low, high = wilson_interval(rang, of)
    return f"{rang / of:.1%} ({low:.1%} to {high:.1%})"


def goals(found: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether every way keeps its level: no interval lies above it, all together being right in 95 %."""
    sizes = sorted({row["n"] for row in found["rows"]})
    kinds = {row["kind"] for row in found["rows"]}
    held = {}
    for way in (*ONCE, *EVER):
        cells = [pooled(found, way, n, kind) for n in sizes for kind in kinds]
        confidence = 1 - 0.05 / (len(cells) * len((*ONCE, *EVER)))
        name = NAMES.get(way, way)
        held[f"{name} rings in at most 5 % of equal data at every n, of every kind"] = all(
            wilson_interval(*cell, confidence)[0] <= LEVEL for cell in cells
        )
    return held


def page(found: Mapping[str, Any]) -> list[str]:
    """Return the tables."""
    sizes = sorted({row["n"] for row in found["rows"]})
    kinds = list(dict.fromkeys(row["kind"] for row in found["rows"]))
    ways = [*ONCE, *EVER, *(f"PSI > {bound}" for bound in THUMBS)]
    rows = [{"way": NAMES.get(way, way), **{f"n = {n:,}": said(*pooled(found, way, n)) for n in sizes}} for way in ways]
    worst = []
    for way in ways:
        shares = {(kind, n): pooled(found, way, n, kind) for kind in kinds for n in sizes}
        (kind, n), cell = max(shares.items(), key=lambda item: item[1][0] / item[1][1])
        worst.append(
            {"way": NAMES.get(way, way), "worst": f"{kind}, n = {n:,}", "rang": said(*cell), "of": f"{cell[1]}"}
        )
    return [
        "All kinds of data together, so the rule of thumb, with half a value added to each bin, rings less than on normal "
        "data alone (next part). A sequential alarm counts if it rang at any of the first n values:",
        Table(rows).markdown(),
        "The worst kind and n of each:",
        Table(worst).markdown(),
    ]

"""How often do alarms ring in streams that never change, but whose values depend on one another, and what does the cure cost?

AR(1): each value is φ times the one before and something new. Users: each sends 1, 5, 16 or 50 values in a row, which
differ by a tenth of what users differ by. Beside them stand tied counts (an AR(1) process, 0.8, cut to whole numbers), a
rare event (an AR(1) process, 0.8, above its 90th percentile), a day of 200 values (its hours move the mean by 1 standard
deviation, or by 0.3), a slow swing below noise (a fifth of the variance, AR(1) 0.99), and four features at once, of which
one depends on itself (0.95). All are stationary.

A reference of 10,000 values comes first, then 4,000 values that are looked at. 400 streams of each kind. "Every value" is
`DriftAlarm` with a spacing of 1, "spaced" is `DriftAlarm` as it is, "DriftWatch" what `tinybench serve` uses, and "a value
of each user" `DriftWatch` that is told the users, in the reference and in the stream. A refused reference is no alarm; it
is counted beside. The short reference, 397 values and 1,000 to look at, is that of module 16.

Delay: all values after the reference are larger by 1 standard deviation of the stream (the last feature of several), and
the stream goes on until the alarm rings, for 100,000 values at most. 100 streams of each kind.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from itertools import product
from statistics import median
from typing import Any

import numpy as np

from tests.benchmarks.drift_delay import LEVEL
from tests.benchmarks.formats import grouped, share, table
from tests.benchmarks.harness import Case, Part, Records, Trial
from tinybench.accuracy import wilson_interval
from tinybench.course.lessons.m16_dependence import autoregressive, of_users
from tinybench.production import DriftAlarm
from tinybench.tools.drifting import DriftWatch, Reference

REFERENCE, STREAM, LONGEST = 10_000, 4000, 100_000
SHORT_REFERENCE, SHORT_STREAM = 397, 1000
STREAMS, SHIFTED, BLOCK = 400, 100, 25
DAY, SOON = 200, 5000
WAYS = ("every value", "spaced", "DriftWatch", "a value of each user")

Stream = tuple[np.ndarray, np.ndarray | None]  # n × features, and the users


def by_day(size: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return noise whose mean moves with the hours of a day."""
    return rng.normal(size=n) + size * np.sqrt(2) * np.sin(2 * np.pi * (np.arange(n) + rng.integers(DAY)) / DAY)


def several(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return four features, of which the last depends on itself."""
    return np.column_stack([rng.normal(size=(n, 3)), autoregressive(0.95, n, rng)])


def with_users(each: int, n: int, rng: np.random.Generator) -> Stream:
    """Return the values of users, and the users."""
    values, users = of_users(each, n, rng)
    return values[:, None], users


def alone(make: Callable[[int, np.random.Generator], np.ndarray]) -> Callable[[int, np.random.Generator], Stream]:
    """Return what makes a stream without users."""
    return lambda n, rng: (make(n, rng).reshape(n, -1), None)


KINDS: dict[str, Callable[[int, np.random.Generator], Stream]] = {
    **{f"AR(1), {part:g}": alone(lambda n, rng, p=part: autoregressive(p, n, rng)) for part in (0, 0.5, 0.8, 0.95)},
    **{f"users, {each}": (lambda n, rng, e=each: with_users(e, n, rng)) for each in (1, 5, 16, 50)},
    "counts": alone(lambda n, rng: np.floor(autoregressive(0.8, n, rng))),
    "rare": alone(lambda n, rng: (autoregressive(0.8, n, rng) > 1.2816).astype(float)),
    "day, 1": alone(lambda n, rng: by_day(1, n, rng)),
    "day, 0.3": alone(lambda n, rng: by_day(0.3, n, rng)),
    "slow swing": alone(lambda n, rng: rng.normal(size=n) + 0.5 * autoregressive(0.99, n, rng)),
    "four features": alone(several),
}


def run_of(way: str, rows: np.ndarray, users: np.ndarray | None, size: int, seed: int) -> int | None:
    """Return after how many rows an alarm rings, 0 if it does not. None: the reference was refused."""
    stream = rows[size:]
    try:
        if way in ("every value", "spaced"):
            alarm = DriftAlarm(rows[:size, -1].tolist(), LEVEL, seed, 1 if way == "every value" else None)
            return next((n for n, value in enumerate(stream[:, -1].tolist(), 1) if alarm.add(value)), 0)
        told = users is not None and way == "a value of each user"
        names = None if users is None else list(map(str, users.tolist()))
        reference = Reference.of(rows[:size], seed=seed, users=names[:size] if names and told else None)
    except ValueError:
        return None
    watch = DriftWatch(reference, LEVEL, seed)
    for begin in range(0, len(stream), STREAM):
        part = slice(begin, begin + STREAM)
        if watch.add(stream[part], users=names[size:][part] if names and told else None):
            break
    return watch.streams["inputs"].first or 0


def ways_of(kind: str, what: str) -> tuple[str, ...]:
    """Return the ways to look at a kind of stream. Only `DriftWatch` takes several features, or is told users."""
    if kind == "four features":
        return WAYS[2:3]
    ways = WAYS if kind.startswith("users") else WAYS[:3]
    return ways[1:] if what == "delay" else ways


def cases(options: Namespace) -> list[Case]:
    """Return kinds with what is looked at, and the first seed of a block."""
    if options.short:
        return [("AR(1), 0.5", "short", 0), ("users, 5", "delay", 0)]
    blocks = {"long": STREAMS, "short": STREAMS, "delay": SHIFTED}
    return [(kind, what, seed) for kind, what in product(KINDS, blocks) for seed in range(0, blocks[what], BLOCK)]


def measured(trial: Trial) -> Records:
    """Return by way what each stream of a block did."""
    kind, what, first = trial.case
    size, length = {
        "short": (SHORT_REFERENCE, SHORT_STREAM),
        "long": (REFERENCE, STREAM),
        "delay": (REFERENCE, LONGEST),
    }[what]
    found: dict[str, list[int | None]] = {way: [] for way in ways_of(kind, what)}
    for seed in range(first, first + (2 if trial.short else BLOCK)):
        rows, users = KINDS[kind](size + length, np.random.default_rng([list(KINDS).index(kind), size, length, seed]))
        if what == "delay":
            rows[size:, -1] += rows[:, -1].std()
        for way, runs in found.items():
            runs.append(run_of(way, rows, users, size, seed))
    return [{"kind": kind, "what": what, "way": way, "first": runs} for way, runs in found.items()]


def firsts(found: Records) -> dict[tuple[str, str, str], list[int | None]]:
    """Return the runs of all blocks by what was looked at, kind and way."""
    groups = grouped(found, "what", "kind", "way")
    return {key: [run for record in records for run in record["first"]] for key, records in groups.items()}


def goals(found: Records) -> dict[str, bool]:
    """Return whether at most 5 % of the streams ring: no interval lies above it, all together being right in 95 %."""
    cured = {key: runs for key, runs in firsts(found).items() if key[0] != "delay" and key[2] != "every value"}
    met = {}
    for what, named in (("long", REFERENCE), ("short", SHORT_REFERENCE)):
        for way in WAYS[1:]:
            cells = {
                kind: runs for (of, kind, by), runs in cured.items() if (of, by) == (what, way) and kind != "slow swing"
            }
            if cells:
                rang = {kind: sum(map(bool, runs)) for kind, runs in cells.items()}
                low = [wilson_interval(rang[kind], len(runs), 1 - 0.05 / len(cured))[0] for kind, runs in cells.items()]
                worst = max(cells, key=lambda kind: rang[kind] / len(cells[kind]))
                met[
                    f"{way}, reference of {named:,}: at most 5 % of unchanged streams ring, of every kind but the slow "
                    f"swing; at worst {share(rang[worst], len(cells[worst]), 1)}, {worst}"
                ] = max(low) <= LEVEL
    late = {(kind, way): delay_of(runs) for (what, kind, way), runs in firsts(found).items() if what == "delay"}
    if late:
        slowest = max(late, key=lambda key: late[key])
        what = (
            f"a shift of 1 standard deviation is found within {SOON:,} values in the median, in every kind of stream; "
        )
        met[what + f"at worst {late[slowest]:,.0f}: {', '.join(slowest)}"] = late[slowest] <= SOON
    return met


def cell(runs: list[int | None] | None) -> str:
    """Return the share that rang, and the share of refused references."""
    if not runs:
        return ""
    refused = sum(run is None for run in runs)
    return share(sum(map(bool, runs)), len(runs), 1) + f"; {refused / len(runs):.1%} refused" * (refused > 0)


def delay_of(runs: list[int | None]) -> float:
    """Return the median of the values until the alarm, of the references that were not refused."""
    accepted = [run or np.inf for run in runs if run is not None]
    return float(median(accepted)) if accepted else np.inf


def delay(runs: list[int | None] | None) -> str:
    """Return the median delay as text."""
    return f"{delay_of(runs):,.0f}" if runs else ""


def page(found: Records) -> list[str]:
    """Return the tables of false alarms and of delays."""
    runs, pieces = firsts(found), list[str]()
    heads = {
        "long": f"Streams that rang in {STREAM:,} unchanged values, after a reference of {REFERENCE:,}:",
        "short": f"Streams that rang in {SHORT_STREAM:,} unchanged values, after a reference of {SHORT_REFERENCE}:",
        "delay": "Values until a shift of 1 standard deviation is found, in the median, after the long reference:",
    }
    for what, head in heads.items():
        shown: Callable[[Any], str] = delay if what == "delay" else cell
        kinds = [kind for kind in KINDS if any(key[:2] == (what, kind) for key in runs)]
        ways = [way for way in WAYS if any((what, kind, way) in runs for kind in kinds)]
        if kinds:
            rows = [{"stream": kind, **{way: shown(runs.get((what, kind, way))) for way in ways}} for kind in kinds]
            pieces += [head, table(rows)]
    return pieces


PART = Part("Values that depend on one another", measured, page, goals, cases, "processes")

"""How many values pass until an alarm, and how often does it ring before, on the very same streams for everybody?

Each stream has 1,000 values as they should be, which detectors are fed first (ours has them as its reference; what
others ring then is not counted), then 1,000 more, then a change and 3,000 values after it. Numbers: a shift by 0.5 and by
1 standard deviation, a spread twice as large, a slow shift that reaches 1 standard deviation after 2,000 values. Errors:
10 % become 20 %. Beside them run streams that never change: 2,000 for our detectors, which promise a level, and 100 for
others. A false alarm is one in the 4,000 values of such a stream; a delay counts from the change, where the alarm had
not rung before. Missed streams count as infinite in the median.

Numbers have mean 0 and standard deviation 1 before the change; ADWIN and HDDM, which ask for values from 0 to 1, get
them from the smallest to the largest of the reference, cut there. All detectors run as their libraries set them. Those of
river run a second time, "tuned": with the most sensitive setting of a few that rang in at most 5 % of 40 other streams
without a change (KSWIN in none of 10, for it takes seconds for one). That is knowledge that ours do not need, and nobody
has who starts. frouros runs in a process of its own, by the settings of its authors.
"""

from __future__ import annotations

import math
import zlib
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tests.benchmarks.formats import grouped, share, table
from tests.benchmarks.harness import Case, Part, Records, Trial
from tests.benchmarks.processes import in_environment
from tinybench.production import DriftAlarm
from tinybench.tools.drifting import DriftWatch, Reference

LEVEL = 0.05
WARM, BEFORE, AFTER = 1000, 1000, 3000
STREAMS, CALM = 100, 2000  # of each change; without one, for ours
OTHERS, SLOW = 40, 10  # streams for frouros, and to tune by; for who takes seconds for one
CHANGES = {
    "numbers": ("none", "shift 0.5", "shift 1", "spread 2", "slow shift"),
    "errors": ("no more errors", "more errors"),
}
STILL = ("none", "no more errors")

Detector = Callable[[np.ndarray], float]


def stream_of(change: str, rng: np.random.Generator) -> np.ndarray:
    """Return a stream; the change comes after the first two parts."""
    n = WARM + BEFORE + AFTER
    late = np.arange(n) >= WARM + BEFORE
    if "errors" in change:
        return (rng.random(n) < np.where(late & (change == "more errors"), 0.2, 0.1)).astype(float)
    values = rng.normal(size=n)
    since = np.clip((np.arange(n) - WARM - BEFORE) / 2000, 0, 1)
    moved = {"none": 0 * since, "shift 0.5": 0.5 * late, "shift 1": 1.0 * late, "slow shift": since}
    return values * (1 + late) if change == "spread 2" else values + moved[change]


def by(make: Callable[[], Any], scaled: bool = False) -> Detector:
    """Return what runs a detector of river, and says after how many values it rang."""

    def first(stream: np.ndarray) -> float:
        low, high = stream[:WARM].min(), stream[:WARM].max()
        values = np.clip((stream - low) / (high - low), 0, 1) if scaled else stream
        detector, binary = make(), "binary" in make().__module__
        for number, value in enumerate(values.tolist()):
            detector.update(value > 0.5 if binary else value)
            if detector.drift_detected and number >= WARM:
                return number - WARM + 1
        return math.inf

    return first


def coin(stream: np.ndarray) -> int:
    """Return a seed that differs from stream to stream: ties are drawn, and one coin for all would make them alike."""
    return zlib.crc32(stream.tobytes())


def watched(stream: np.ndarray) -> float:
    watch = DriftWatch(Reference.of(stream[:WARM, None], seed=coin(stream)), LEVEL, coin(stream))
    watch.add(stream[WARM:, None])
    return watch.streams["inputs"].first or math.inf


def students(stream: np.ndarray) -> float:
    alarm = DriftAlarm(stream[:WARM].tolist(), LEVEL, coin(stream))
    return next((number for number, value in enumerate(stream[WARM:].tolist(), 1) if alarm.add(value)), math.inf)


OURS: dict[str, Detector] = {"DriftWatch": watched, "DriftAlarm": students}


@cache
def settings() -> dict[str, tuple[str, dict[str, Detector]]]:
    """Return river's detectors: what for, and settings from the most sensitive; "" is its own."""
    from river import drift
    from river.drift import binary

    def of(make: Any, scaled: bool, name: str, values: Iterable[Any], **more: Any) -> dict[str, Detector]:
        tried = {f"{name} {value:g}": by(lambda v=value: make(**{name: v}, **more), scaled) for value in values}
        return {"": by(make, scaled), **tried}

    small = [10.0**-power for power in range(1, 9)]
    return {
        "ADWIN": ("numbers", of(drift.ADWIN, True, "delta", [0.9, 0.5, 0.2, *small])),
        "PageHinkley": ("numbers", of(drift.PageHinkley, False, "threshold", [10, 20, 30, 50, 80, 120, 200], delta=0.25)),
        "KSWIN": ("numbers", of(drift.KSWIN, False, "alpha", [1e-5, 1e-7], seed=0)),
        "DDM": ("errors", of(binary.DDM, False, "drift_threshold", [2.5, 3, 3.5, 4, 4.5, 5])),
        "EDDM": ("errors", of(binary.EDDM, False, "beta", [0.8, 0.7, 0.6, 0.5])),
        "HDDMA": ("errors", of(binary.HDDMA, False, "drift_confidence", small)),
        "HDDMW": ("errors", of(binary.HDDMW, False, "drift_confidence", small)),
    }  # fmt: skip


OF_FROUROS = {"numbers": ("ADWIN", "PageHinkley", "CUSUM"), "errors": ("DDM", "HDDMA", "STEPD")}


def frouros(kind: str) -> Records:
    found, script, names = Records(), Path(__file__).with_name("drift_frouros.py"), OF_FROUROS[kind]
    for change in CHANGES[kind]:
        streams = streams_of(change, OTHERS).tolist()
        for name, firsts in in_environment("frouros==0.9.0", script, streams, str(WARM), *names).items():
            after = [math.inf if at is None else at for at in firsts]
            found.append({"detector": f"frouros {name}", "change": change, "first": after})
    return found


def streams_of(change: str, number: int) -> np.ndarray:
    place = [each for changes in CHANGES.values() for each in changes].index(change)
    return np.array([stream_of(change, np.random.default_rng([place, seed])) for seed in range(number)])


def tuned(tried: Mapping[str, Detector], calm: list[np.ndarray], allowed: int) -> str:
    """Return the first setting that rings in few enough streams without a change; the last if none does."""
    *names, last = list(tried)[1:]
    return next((name for name in names if alarms(map(tried[name], calm)) <= allowed), last)


def alarms(firsts: Iterable[float]) -> int:
    return sum(map(math.isfinite, firsts))


def cases(options: Namespace) -> list[Case]:
    ours = [("tinybench", name, kind) for kind in CHANGES for name in OURS]
    if options.short:
        return [*ours[:2], ("river", "PageHinkley", "numbers")]
    peers = [("river", name, kind) for name, (kind, _) in settings().items()]
    return [*ours, *peers, *(("frouros", "", kind) for kind in CHANGES)]


def measured(trial: Trial) -> Records:
    library, name, kind = trial.case
    if library == "frouros":
        return frouros(kind)
    count, calm = (2, 3) if trial.short else (STREAMS, CALM)
    if name == "KSWIN":  # a test of SciPy at each value
        count = min(count, SLOW)
    if library == "tinybench":
        detectors = {f"tinybench {name}": OURS[name]}
    else:
        tried, others, calm = settings()[name][1], min(OTHERS, count), count
        quiet = [stream_of(CHANGES[kind][0], np.random.default_rng([99, seed])) for seed in range(others)]
        best = tuned(tried, quiet, int(LEVEL * others))
        detectors = {f"river {name}": tried[""], f"river {name}, tuned ({best})": tried[best]}
    streams = {
        change: streams_of(change, calm if change in STILL else count)
        for change in CHANGES[kind][: 3 if trial.short else None]
    }
    return [
        {"detector": each, "change": change, "first": [float(detector(one)) for one in these]}
        for (each, detector), (change, these) in product(detectors.items(), streams.items())
    ]


def delays(firsts: list[float]) -> tuple[int, list[float]]:
    """Return how many rang before the change, and how late the others: infinite where they never did."""
    late = [at - BEFORE for at in firsts]
    return sum(at <= 0 for at in late), [at for at in late if at > 0]


def goals(found: Records) -> dict[str, bool]:
    met = {}
    for name, change, firsts in ((record["detector"], record["change"], record["first"]) for record in found):
        if name.startswith("tinybench") and change in STILL:
            rang = alarms(firsts)
            what = f"{name} rings in {rang} of {len(firsts)} streams without a change ({change}): in at most 5 %"
            met[what] = rang <= LEVEL * len(firsts)
        elif name.startswith("tinybench") and change == "shift 1":
            late = median(delays(firsts)[1])
            met[f"{name} finds a shift of 1 standard deviation within 100 values in the median: {late:g}"] = late <= 100
    return met


def cell(firsts: list[float]) -> str:
    """Return how late streams rang, and how many before the change or never."""
    before, late = delays(firsts)
    middle = f"{median(late):g}" if late and math.isfinite(median(late)) else "–"
    return f"{middle}; {before} before, {sum(map(math.isinf, late))} missed, of {len(firsts)}"


def page(found: Records) -> list[str]:
    parts = []
    for kind, (calm, *changes) in CHANGES.items():
        rows = []
        for (name,), records in grouped((r for r in found if r["change"] in CHANGES[kind]), "detector").items():
            firsts = {record["change"]: record["first"] for record in records}
            row = {"detector": name, "rings without a change": share(alarms(firsts[calm]), len(firsts[calm]), 1)}
            rows.append(row | {change: cell(firsts[change]) for change in changes if change in firsts})
        if rows:
            parts += [
                f"{kind.capitalize()}: streams that rang in {BEFORE + AFTER:,} values without a change, and by change the "
                "median delay of those that had not rung before it, in values:",
                table(rows),
            ]
    return parts


PART = Part("How late", measured, page, goals, cases, "processes")

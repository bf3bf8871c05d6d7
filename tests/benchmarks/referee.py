"""How well does the referee repeat itself: the same entries measured again and again, alone or on a loaded machine?

The baseline's INT8 version and a narrow network come in shuffled rounds. A pair of measurements of an entry agrees if
the second's ratio lies within the first's interval. ``--load`` keeps two processes on each core busy.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np

from autograder.leaderboard import digits
from autograder.leaderboard.entry.validate import check
from autograder.leaderboard.referee.referee import Referee
from autograder.leaderboard.settings import Baseline, Olympics, load
from tests.benchmarks.formats import grouped, lines
from tests.benchmarks.harness import Benchmark, Part, Records, Trial
from tests.leaderboard.boards import small_olympics
from tinybench.quantize import quantize_dynamic_int8

GOAL = 0.93
INT8, NARROW = "INT8", "32 hidden units"


def agreement(ratios: Sequence[Sequence[float]]) -> tuple[int, int]:
    """Return in how many ordered pairs the second's value lies within the first's interval, and of how many."""
    pairs = list(permutations(ratios, 2))
    return sum(lower <= value <= upper for (_, lower, upper), (value, _, _) in pairs), len(pairs)


@cache
def prepared(folder: Path, short: bool) -> tuple[Olympics, Referee, dict[str, bytes]]:
    olympics = small_olympics() if short else load()
    baseline = digits.train_baseline(olympics.baseline)
    (path := folder / "baseline.onnx").write_bytes(baseline)
    entries = {INT8: quantize_dynamic_int8(path).read_bytes(), NARROW: digits.train_baseline(Baseline((32,), 8))}
    return olympics, Referee(olympics, baseline, seed=1), entries


def measured(trial: Trial) -> Records:
    olympics, referee, entries = prepared(trial.folder, trial.short)
    [name] = trial.case
    check(entries[name], olympics.limits)
    scores, _ = referee.measure(entries[name])
    load = os.getloadavg()[0]
    return [{"measure": each, "ratio": scores[each]["ratio"], "load": load} for each in ("latency", "memory")]


def rows(found: Records) -> Records:
    """Return of each entry and measure: smallest and largest ratio, mean width, agreeing pairs."""
    told = []
    for (entry, measure), records in grouped(found, "entry", "measure").items():
        values, lower, upper = zip(*(record["ratio"] for record in records), strict=True)
        agree, pairs = agreement([record["ratio"] for record in records])
        row = {"entry": entry, "measure": measure, "smallest": min(values), "largest": max(values)}
        told.append({**row, "width": float(np.mean(np.divide(upper, lower))), "agree": agree, "pairs": pairs})
    return told


def goals(found: Records) -> dict[str, bool]:
    agree, pairs = (sum(row[key] for row in rows(found)) for key in ("agree", "pairs"))
    return {f"at least {GOAL:.0%} of {pairs} pairs agree: {agree / max(1, pairs):.1%}": agree >= GOAL * pairs}


def page(found: Records) -> list[str]:
    loads = [record["load"] for record in found]
    head = "entry | measure | smallest | largest | interval, upper ÷ lower | pairs that agree"
    row = "{entry} | {measure} | {smallest:.3f} × | {largest:.3f} × | {width:.3f} | {agree} of {pairs}"
    return [lines(rows(found), head, row), f"Load average after a measurement: {min(loads):.1f} to {max(loads):.1f}."]


BENCHMARK = Benchmark(
    "How well the referee repeats itself",
    {"referee": Part("", measured, page, goals, [(INT8,), (NARROW,)], fields=["entry"])},
    rounds=8,
    options={"--load": {"action": "store_true", "help": "keep two processes on each core busy"}},
    short={"rounds": 2},
    conditions=lambda options: {"under load": 2 * (os.cpu_count() or 1)} if options.load else {"quiet": 0},
)

"""How well does the referee repeat itself: the same entries measured again and again, alone or on a loaded machine?

The baseline's INT8 version and a narrow network come in shuffled rounds. A pair of measurements of an entry agrees if
the second's ratio lies within the first's interval. ``--load`` keeps two processes on each core busy.
"""

from __future__ import annotations

import itertools
import os
from argparse import Namespace
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from autograder.leaderboard import digits
from autograder.leaderboard.entry.validate import check
from autograder.leaderboard.referee.referee import Referee
from autograder.leaderboard.settings import Baseline, Olympics, load
from tests.benchmarks.formats import grouped, lines
from tests.benchmarks.harness import Benchmark, Part, Trial
from tests.leaderboard.boards import small_olympics
from tinybench.quantize import quantize_dynamic_int8

GOAL = 0.93
INT8, NARROW = "INT8", "32 hidden units"

Ratio = Sequence[float]  # value, lower, upper


def agreement(ratios: Sequence[Ratio]) -> tuple[int, int]:
    """Return in how many ordered pairs the second's value lies within the first's interval, and of how many."""
    pairs = list(itertools.permutations(ratios, 2))
    return sum(lower <= value <= upper for (_, lower, upper), (value, _, _) in pairs), len(pairs)


@cache
def prepared(folder: Path, short: bool) -> tuple[Olympics, Referee, dict[str, bytes]]:
    """Return the Olympics, their referee, and the entries."""
    olympics = small_olympics() if short else load()
    baseline = digits.train_baseline(olympics.baseline)
    (path := folder / "baseline.onnx").write_bytes(baseline)
    entries = {INT8: quantize_dynamic_int8(path).read_bytes(), NARROW: digits.train_baseline(Baseline((32,), 8))}
    return olympics, Referee(olympics, baseline, seed=1), entries


def measured(trial: Trial) -> list[dict[str, Any]]:
    """Return the ratios of an entry to the baseline."""
    olympics, referee, entries = prepared(trial.folder, trial.short)
    [name] = trial.case
    check(entries[name], olympics.limits)
    scores, _ = referee.measure(entries[name])
    load = os.getloadavg()[0]
    return [
        {"entry": name, "measure": each, "ratio": scores[each]["ratio"], "load": load} for each in ("latency", "memory")
    ]


def rows(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return of each entry and measure: smallest and largest ratio, mean width, agreeing pairs."""
    told = []
    for (entry, measure), records in grouped(found, "entry", "measure").items():
        ratios = [record["ratio"] for record in records]
        values, (agree, pairs) = [value for value, _, _ in ratios], agreement(ratios)
        width = fmean(upper / lower for _, lower, upper in ratios)
        row = {"entry": entry, "measure": measure, "smallest": min(values), "largest": max(values)}
        told.append({**row, "width": width, "agree": agree, "pairs": pairs})
    return told


def goals(found: Sequence[dict[str, Any]]) -> dict[str, bool]:
    """Return whether enough pairs agree."""
    agree, pairs = (sum(row[key] for row in rows(found)) for key in ("agree", "pairs"))
    return {f"at least {GOAL:.0%} of {pairs} pairs agree: {agree / max(1, pairs):.1%}": agree >= GOAL * pairs}


def page(found: Sequence[dict[str, Any]]) -> list[str]:
    """Return the table."""
    loads = [record["load"] for record in found]
    head = "entry | measure | smallest | largest | interval, upper ÷ lower | pairs that agree"
    row = "{entry} | {measure} | {smallest:.3f} × | {largest:.3f} × | {width:.3f} | {agree} of {pairs}"
    return [lines(rows(found), head, row), f"Load average after a measurement: {min(loads):.1f} to {max(loads):.1f}."]


def conditions(options: Namespace) -> dict[str, int]:
    """Return the condition with its number of busy processes."""
    return {"under load": 2 * (os.cpu_count() or 1)} if options.load else {"quiet": 0}


BENCHMARK = Benchmark(
    "How well the referee repeats itself",
    {"referee": Part("", measured, page, goals, lambda options: [(INT8,), (NARROW,)])},
    rounds=8,
    options={"--load": {"action": "store_true", "help": "keep two processes on each core busy"}},
    short={"rounds": 2},
    conditions=conditions,
)

"""Who calls a function different from itself, and who finds 1 %, from 50 ns to 20 ms?

Quiet and with a busy process on every core, our four ways to a verdict and the peers of `peers` judge A against A, the
same object under two names, and A against A + 1 % (A + 0.5 % at 0.2 ms). The trials of all ways and lengths come in
shuffled portions, each in a fresh process on a core of its own. A/A trials take ``--seconds``, the others a second,
warm-up and calibration included; the last column tells how long they really took.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from tests.benchmarks.formats import grouped, share, table
from tests.benchmarks.harness import NO_BLAS, Benchmark, Case, Part, Trial
from tests.benchmarks.peers import AGAIN, MORE, PEERS, WAYS, run_portion
from tests.benchmarks.processes import in_child
from tests.benchmarks.subjects import CHOICE, LENGTHS

CONDITIONS = ("quiet", "under load")
PORTION = 25  # trials in one process


def in_portions(way: str, length: str, other: str, trials: int, seconds: float) -> list[Case]:
    """Return trials in portions: way, length, the callable to judge, their number and their seconds."""
    return [(way, length, other, min(PORTION, trials - begun), seconds) for begun in range(0, trials, PORTION)]


def cases(options: Namespace) -> list[Case]:
    """Return all portions of a condition."""
    found: list[Case] = []
    for length, (_, _, sizes) in LENGTHS.items():
        if options.length not in length:
            continue
        for way in WAYS:
            found += in_portions(way, length, AGAIN, options.trials, options.seconds)
            if len(sizes) > 1:
                found += in_portions(way, length, MORE, options.found, 1.0)
        found += [(peer, length, AGAIN, 1, 0.0) for peer in PEERS] * options.peers
    return found


def measured(trial: Trial) -> list[dict[str, Any]]:
    """Run a portion in a fresh process."""
    way, length, *_ = trial.case
    records = in_child(run_portion, *trial.case, **{CHOICE: length})
    return [{"way": way, "length": length, **record} for record in records]


def conditions(options: Namespace) -> dict[str, int]:
    """Return the conditions with their numbers of busy processes."""
    busy = {"quiet": 0, "under load": options.busy}
    return {condition: busy[condition] for condition in options.condition}


def row(length: str, way: str, records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return how often a way called a callable different, how often it was right, and how long it took."""
    again, more = ([r["flagged"] for r in records if r["subject"] == subject] for subject in (AGAIN, MORE))
    late = [r["took"] / r["seconds"] for r in records if r.get("seconds")]
    return {
        "length": length,
        "way": way,
        "A/A called different": share(sum(again), len(again)) if again else "–",
        "trials": str(len(again)) if again else "–",
        "A + 1 % found": share(sum(more), len(more)) if more else "–",
        "time taken / asked, median (longest)": f"{median(late):.2f} ({max(late):.2f})" if late else "–",
    }


def page(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a table for each condition."""
    pieces = ["Rates with their 95 % Wilson intervals."]
    for (condition,), here in grouped(found, "condition").items():
        groups = grouped(here, "length", "way")
        pieces += [f"## {condition.capitalize()}", table(row(*key, records) for key, records in groups.items())]
    last = "At 0.2 ms the longer callable is A + 0.5 %, at 50 ns there is none. How the peers judge stands in "
    return [*pieces, f"{last}[comparison.md](comparison.md)."]


BENCHMARK = Benchmark(
    "Verdicts from 50 ns to 20 ms",
    {"verdicts": Part("", measured, page, cases=cases, parallel="cores")},
    algebra=NO_BLAS,
    options={
        "--trials": {"type": int, "default": 200, "help": "A/A trials of each way and length (200)"},
        "--found": {"type": int, "default": 40, "help": "trials against A + 1 %% (40)"},
        "--peers": {"type": int, "default": 20, "help": "runs of each peer and length (20)"},
        "--seconds": {"type": float, "default": 0.3, "help": "for an A/A trial (0.3)"},
        "--busy": {"type": int, "default": os.cpu_count(), "help": "busy processes under load (one a core)"},
        "--condition": {"choices": CONDITIONS, "nargs": "+", "default": CONDITIONS, "help": "of these only (both)"},
        "--jobs": {"type": int, "default": os.cpu_count(), "help": "trials at a time, each on a core of its own"},
        "--length": {"default": "", "help": "only lengths with this in their name"},
    },
    short={"length": "20 µs", "trials": 1, "found": 1, "peers": 1, "seconds": 0.05, "condition": ("quiet",)},
    conditions=conditions,
)

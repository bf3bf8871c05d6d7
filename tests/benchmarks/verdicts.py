"""Who calls a function different from itself, and who finds 1 %, from 50 ns to 20 ms?

Quiet and with a busy process on every core, our four ways to a verdict and the peers of `peers` judge A against A, the
same object under two names, and A against A + 1 % (A + 0.5 % at 0.2 ms). The trials of all ways and lengths come in
shuffled portions, each in a fresh process on a core of its own. A/A trials take ``--seconds``, the others a second,
warm-up and calibration included; the last column tells how long they really took.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from statistics import median

from tests.benchmarks.formats import grouped, lines, share
from tests.benchmarks.harness import NO_BLAS, Benchmark, Case, Part, Record, Records, Trial
from tests.benchmarks.peers import AGAIN, MORE, PEERS, WAYS, run_portion
from tests.benchmarks.processes import in_child
from tests.benchmarks.subjects import CHOICE, LENGTHS

CONDITIONS = ("quiet", "under load")
PORTION = 25  # trials in one process


def cases(options: Namespace) -> Iterator[Case]:
    """Yield portions: way, length, the callable to judge, the number of trials and their seconds."""
    for length, (_, sizes) in LENGTHS.items():
        if options.short and length != "20 µs":
            continue
        for way in WAYS:
            trials = {AGAIN: (options.trials, options.seconds), MORE: (options.found * (len(sizes) > 1), 1.0)}
            for other, (number, seconds) in trials.items():
                for begun in range(0, number, PORTION):
                    yield way, length, other, min(PORTION, number - begun), seconds
        yield from ((peer, length, AGAIN, 1, 0.0) for peer in list(PEERS) * options.peers)


def measured(trial: Trial) -> Records:
    way, length, *_ = trial.case
    return [{"way": way, "length": length, **each} for each in in_child(run_portion, *trial.case, **{CHOICE: length})]


def row(length: str, way: str, records: Records) -> Record:
    """Return how often a way called a callable different, how often it was right, and how long it took."""
    again, more = ([r["flagged"] for r in records if r["subject"] == subject] for subject in (AGAIN, MORE))
    late = [r["took"] / r["seconds"] for r in records if r.get("seconds")]
    return {
        "length": length,
        "way": way,
        "again": share(sum(again), len(again)) if again else None,
        "trials": len(again) or None,
        "more": share(sum(more), len(more)) if more else None,
        "late": f"{median(late):.2f} ({max(late):.2f})" if late else None,
    }


def page(found: Records) -> list[str]:
    pieces = ["Rates with their 95 % Wilson intervals."]
    for (condition,), here in grouped(found, "condition").items():
        head = "length | way | A/A called different | trials | A + 1 % found | time taken / asked, median (longest)"
        rows = (row(*key, records) for key, records in grouped(here, "length", "way").items())
        pieces += [
            f"## {condition.capitalize()}",
            lines(rows, head, "{length} | {way} | {again} | {trials} | {more} | {late}"),
        ]
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
    },
    short={"trials": 1, "found": 1, "peers": 1, "seconds": 0.05, "condition": ("quiet",)},
    conditions=lambda options: {each: options.busy if each == "under load" else 0 for each in options.condition},
)

"""Which p99 do load generators report, and which would users suffer who do not wait for each other?

A real `tinybench serve` (one worker, no batches) answers each tool, a new process for every run. It stalls by order for
1 s in every 10 s, or not at all, and writes a trace: when each request was received and answered. From it comes the
truth:

tinybench load
    Joined by X-Request-Id with the intended starts that it saved: from the intended start until the server handed the
    answer over.
All others
    They do not say when a request was meant to start. What users would suffer who arrive independently of each other at
    the tool's own rate: Poisson arrivals replayed through the service times of this run and its stalls
    (`tinybench.load.simulate_queue`; a stall is a job that takes as long). The service time of a request is what the
    server spent on it alone: from when it was received, or the answer before it was out, until its answer was out.

Beside them stands the p99 of the requests that the tool did send, as the server saw them. wrk reports more than that: after
the run it adds requests that were never sent, as if each connection had gone on at its mean pace (`stats_correct` in its
source, after Tene's HdrHistogram). Needs Debian's wrk and hey.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tests.benchmarks.formats import bullets, grouped, ranged, table
from tests.benchmarks.harness import ONNX_RUNTIME, Benchmark, Case, Part, Trial
from tests.benchmarks.load_peers import LOOPS, OURS, TOOLS
from tests.tinybench.servers import served
from tinybench.load import LoadResult, simulate_queue
from tinybench.support.basics.layer_networks import initial_layers, save_layers

STALL, BRIEF_STALL = (1.0, 10.0), (0.2, 2.0)  # s in every s; a run lasts two periods
REPLAYS = 30  # as many runs of other users
TOLERANCE = 0.05
Record = dict[str, Any]


@dataclass
class Trace:
    """What the server wrote: the times of all requests, sorted by the end."""

    names: list[str]
    received: np.ndarray
    finished: np.ndarray

    @classmethod
    def read(cls, file: Path) -> Trace:
        rows = sorted((line.split(",") for line in file.read_text().splitlines()[1:]), key=lambda row: float(row[3]))
        return cls([row[0] for row in rows], *(np.array([float(row[i]) for row in rows]) for i in (1, 3)))

    def services(self, stall: Sequence[float] | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the service times without stalls, and when the stalls ended."""
        begun = np.maximum(self.received, np.concatenate([[-np.inf], self.finished[:-1]]))
        service = self.finished - begun
        stalled = service > (stall[0] / 2 if stall else np.inf)
        return service[~stalled], self.finished[stalled]


def p99(latencies: Sequence[float] | np.ndarray) -> float:
    return float(np.quantile(latencies, 0.99, method="inverted_cdf"))


def joined(trace: Trace, rows: LoadResult) -> float:
    """Return the p99 from the intended start until the server had answered."""
    began, found = rows.metadata["began"], {}
    for name, received, finished in zip(trace.names, trace.received, trace.finished, strict=True):
        if received >= began:  # before that the generator tried how fast it is
            found[name] = finished - began
    return p99([found[str(number)] - intended for number, intended in enumerate(rows.intended)])


def replayed(
    trace: Trace, rate: float, seconds: float, stall: Sequence[float] | None, rng: np.random.Generator
) -> float:
    """Return the p99 of users who arrive at this rate, whatever the server does: the median of some runs."""
    services, ends = trace.services(stall)
    length, starts, found = 0.0, np.array([]), []
    if stall:
        length, period = stall
        phase = float(np.median((ends - ends[0] + period / 2) % period)) - period / 2 + ends[0]
        starts = np.arange((phase - length) % period, seconds, period)
    for _ in range(REPLAYS):
        times = np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds)))
        work = np.roll(np.resize(services, len(times)), rng.integers(len(services)))  # neighbours stay neighbours
        order = np.argsort(np.concatenate([times, starts]), kind="stable")
        jobs = np.concatenate([work, np.full(len(starts), length)])[order]
        waits = simulate_queue(np.concatenate([times, starts])[order], jobs)
        found.append(p99((waits + jobs)[order < len(times)]))
    return median(found)


@cache
def classifier(folder: Path) -> Path:
    """Write a small classifier as ONNX, small so that two cores hold server and generator at 2,000 requests a second."""
    return save_layers(initial_layers((4, 3), 0), folder / "classifier.onnx")


def cases(options: Namespace) -> list[Case]:
    """Return tools with the rate that is asked for, and the stall."""
    if options.short:
        return [(tool, 200.0, BRIEF_STALL) for tool in TOOLS]
    plan: list[Case] = [(tool, *how) for how in ((100.0, STALL), (500.0, STALL), (100.0, None)) for tool in TOOLS]
    more = [(OURS, rate, stall) for rate in (500.0, 1000.0, 2000.0) for stall in (STALL, None)]
    return plan + [case for case in more if case not in plan]


def measured(trial: Trial) -> Record:
    """Serve, load, and compare what the tool reports with the trace."""
    tool, rate, stall = trial.case
    seconds = 2 * (stall or STALL)[1]
    options = ["--max-batch", "1", "--max-queue", "100000", "--timeout", "60s"]
    options += ["--stall", f"{stall[0]:g}s/{stall[1]:g}s"] if stall else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with served(classifier(trial.folder), *options, "--trace", str(folder / "trace")) as server:
            found = TOOLS[tool](server.url, rate, seconds, folder)
        trace = Trace.read(folder / "trace")
    if found.rows is not None:
        truth = joined(trace, found.rows)
    else:
        truth = replayed(trace, found.rate, seconds, stall, np.random.default_rng(trial.round))
    about = {"tool": tool, "asked": rate, "stalled": stall is not None, "rate": found.rate}
    return {
        **about,
        "reported": found.p99,
        "truth": truth,
        "own": p99(trace.finished - trace.received),
        "why": found.why,
    }


def row(records: Sequence[Record]) -> dict[str, str]:
    """Return what a tool reported at a rate, beside the truth."""
    told, first = [each for each in records if each["reported"]], records[0]
    reported, own, truth = (
        ranged([1e3 * each[key] for each in of], "{:.3g}")
        for key, of in (("reported", told), ("own", records), ("truth", records))
    )
    off = [1e6 * (each["reported"] - each["truth"]) for each in told]
    return {
        "asked": f"{first['asked']:g}/s",
        "tool": first["tool"],
        "loop": LOOPS[first["tool"]],
        "sent": f"{median(each['rate'] for each in records):.4g}/s",
        "p99 reported, ms": reported,
        "its requests by the server, ms": own,
        "true p99, ms": truth,
        "error": ranged([each["reported"] / each["truth"] - 1 for each in told], "{:+.1%}"),
        **({} if first["stalled"] else {"error, µs": f"{median(off):+.0f}" if off else "–"}),
        "refused": f"{len(records) - len(told)} of {len(records)}",
    }


def goals(found: Sequence[Record]) -> dict[str, bool]:
    """Return whether `tinybench load` reports the true p99, wherever it reports one."""
    met = {}
    for (tool, rate, stalled), records in grouped(found, "tool", "asked", "stalled").items():
        errors = [abs(each["reported"] / each["truth"] - 1) for each in records if each["reported"]]
        if tool == OURS and errors:
            each = f"{median(errors):.2%} in the median of {len(errors)} runs, {max(errors):.2%} in the worst"
            what = f"{OURS} at {rate:g}/s {'with' if stalled else 'without'} stalls"
            met[f"{what} is within {TOLERANCE:.0%} of the true p99: off by {each}"] = median(errors) <= TOLERANCE
    return met


def page(found: Sequence[Record]) -> list[str]:
    """Return the tables with and without stalls, what closed loops hide, and why a p99 was refused."""
    hidden = []
    for (tool, stalled), records in grouped([each for each in found if each["reported"]], "tool", "stalled").items():
        if LOOPS[tool] == "closed" and stalled:
            told, own = (median(each["truth"] / each[key] for each in records) for key in ("reported", "own"))
            hidden.append(
                f"{tool}, a closed loop: when the server stalls the true p99 is {told:.3g} times what it reports, and "
                f"{own:.3g} times that of the requests it sent"
            )
    refused = sorted({f"{each['tool']} at {each['asked']:g}/s: {each['why']}" for each in found if each["why"]})
    rows = {  # with stalls or without
        kind: [
            row(records) for (which, *_), records in grouped(found, "stalled", "asked", "tool").items() if which == kind
        ]
        for kind in (True, False)
    }
    return [
        "A server that stalls for 1 s in every 10 s; median over runs, and range:",
        table(rows[True]),
        "The same server without stalls:",
        table(rows[False]),
        bullets(hidden),
        *(["Refused:", bullets(refused)] if refused else []),
    ]


BENCHMARK = Benchmark(
    "The p99 that is reported, and the p99 that is suffered",
    {"tools": Part("", measured, page, goals, cases)},
    algebra=ONNX_RUNTIME,
    rounds=3,
)

"""Does the interval of `tinybench.load.server` hold the highest rate that keeps a bound, and is it found again?

Simulated, the truth is known: for M/M/1 in closed form, for M/D/1 by Erlang's distribution of the wait. A neighbour that
comes and goes makes service longer at random times; there the truth is that of a run of a million requests.
Really, the truth is the median of what the other repeats under the same condition found: quiet, or with a busy process
on as many cores as told; the conditions take turns. A long run at that rate shows its p99 beside the bound.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.special import gammaln

from tests.benchmarks.capacity_servers import PATIENT, bodies, send, stepping, steps_for, warm
from tests.benchmarks.comparison import busy_cores
from tests.tinybench.servers import served
from tinybench.accuracy import wilson_interval
from tinybench.load import LoadResult, arrivals, server, simulate_queue
from tinybench.table import Table

SERVICE, BOUND, Q, TOLERANCE = 0.00075, 0.02, 99.0, 0.1
REAL_BOUND = 0.1  # s; on a machine that others use, a few tens of milliseconds are theirs
REQUESTS = 2000  # at least, in a real run: with a few hundred no p99 is sure
LOW, HIGH = 0.1 / SERVICE, 1.2 / SERVICE  # where to search, in requests a second
KEPT = 0.90  # what issue 16 asks
NEIGHBOUR, SLOWER = 1.0, 0.15  # s that it stays and stays away, on average; by how much service is longer meanwhile


def exponential(rng: np.random.Generator, times: np.ndarray) -> np.ndarray:
    return rng.exponential(SERVICE, len(times))


def constant(rng: np.random.Generator, times: np.ndarray) -> np.ndarray:
    return np.full(len(times), SERVICE)


def disturbed(rng: np.random.Generator, times: np.ndarray) -> np.ndarray:
    changes = np.cumsum(rng.exponential(NEIGHBOUR, int(2 * times[-1] / NEIGHBOUR) + 60))
    return SERVICE * (1 + SLOWER * ((np.searchsorted(changes, times) + rng.integers(2)) % 2))


Record = dict[str, Any]
Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]
QUEUES: dict[str, Draw] = {"M/M/1": exponential, "M/D/1": constant, "M/D/1 with a neighbour": disturbed}


def simulated(draw: Draw, seconds: float, rng: np.random.Generator, rate: float) -> LoadResult:
    """Return a run of a queue."""
    times = arrivals(rate, seconds, seed=int(rng.integers(2**32)))
    work = draw(rng, times)
    ends = times + simulate_queue(times, work) + work
    return LoadResult(times, times, ends, np.ones(len(times), bool), seconds, {"loop": "open"})


def beyond(name: str, rate: float, bound: float = BOUND) -> float:
    """Return the true share of requests beyond the bound."""
    if name == "M/M/1":
        return math.exp(-(1 / SERVICE - rate) * bound)
    if name == "M/D/1":
        left = bound - SERVICE
        k = np.arange(int(left / SERVICE) + 1)
        ahead = rate * (left - k * SERVICE)
        terms = (-1.0) ** k * np.exp(k * np.log(np.maximum(ahead, 1e-300)) - gammaln(k + 1) + ahead)
        return float(1 - (1 - rate * SERVICE) * terms.sum())
    rng = np.random.default_rng(1)
    return float(np.mean(simulated(QUEUES[name], 1e6 / rate, rng, rate).latencies > bound))


def true_rate(name: str) -> float:
    """Return the highest rate whose share beyond the bound is what the percentile allows."""
    low, high = 0.3 / SERVICE, 0.999 / SERVICE
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(name, middle) <= 1 - Q / 100 else (low, middle)
    return low


CONDITIONS = "quiet", "busy"


def one_search(run: Callable[[float], LoadResult], bound: float = BOUND) -> Record:
    """Return what a search finds, and how many runs it takes; or why it finds nothing."""
    runs = []

    def counted(rate: float) -> LoadResult:
        runs.append(rate)
        return run(rate)

    try:
        best, kept, broken = server(counted, bound, LOW, HIGH, Q, TOLERANCE)
    except ValueError as refusal:
        return {"refused": str(refusal), "runs": len(runs)}
    return {"best": float(best), "kept": float(kept), "broken": float(broken), "runs": len(runs)}


def in_simulation(repeats: int, lengths: tuple[float, ...]) -> list[Record]:
    """Return one row for each queue and length of a run, with all searches."""
    rows = []
    for (name, draw), seconds in product(QUEUES.items(), lengths):
        found = []
        for seed in range(repeats):
            rng = np.random.default_rng(seed)
            found.append(one_search(partial(simulated, draw, seconds, rng)))
        rows.append({"queue": name, "seconds": seconds, "truth": true_rate(name), "found": found})
        print(name, seconds, share(held(rows[-1])), file=sys.stderr, flush=True)
    return rows


def for_real(repeats: int, seconds: float, busy: int, long: float) -> Record:
    """Return what searches on one real server find, every other beside busy processes; and a long run at the median."""
    found: dict[str, list[Record]] = {name: [] for name in CONDITIONS}
    check: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = stepping(Path(folder, "steps.onnx"))
        row = steps_for(model, [SERVICE])
        with served(model, "--max-batch", "1", *PATIENT) as one:
            warm(one, row[0].tolist())
            data, rng = bodies(row), np.random.default_rng()

            def run(rate: float, seconds: float = seconds) -> LoadResult:
                due = arrivals(rate, max(seconds, REQUESTS / rate), seed=int(rng.integers(2**32)))
                return send(one.url, data, due, timeout=60.0)

            for _, condition in product(range(repeats), CONDITIONS):
                with busy_cores(busy if condition == "busy" else 0):
                    found[condition].append(one_search(run, REAL_BOUND))
                print(condition, found[condition][-1], file=sys.stderr, flush=True)
            for condition in CONDITIONS:
                if rates := [search["best"] for search in found[condition] if "best" in search]:
                    with busy_cores(busy if condition == "busy" else 0):
                        check[condition] = float(np.quantile(run(median(rates), long).latencies, Q / 100))
    return {"seconds": seconds, "busy": busy, "searches": found, "long": long, "p99": check}


def measured(short: bool = False) -> Record:
    """Simulate, and measure."""
    if short:
        return {"simulated": in_simulation(15, (10.0,)), "real": for_real(1, 1.5, 1, 3.0)}
    return {"simulated": in_simulation(100, (2.5, 10.0)), "real": for_real(8, 2.5, 1, 10.0)}


def held(row: Record) -> list[bool]:
    """Return for each search whether its interval holds the truth; none does that finds nothing."""
    return ["best" in search and search["kept"] <= row["truth"] <= search["broken"] for search in row["found"]]


def again(searches: list[Record]) -> list[bool]:
    """Return for each search whether its interval holds the median of what the others found."""
    hits = []
    for one in searches:
        others = [other["best"] for other in searches if other is not one and "best" in other]
        hits.append("best" in one and bool(others) and one["kept"] <= median(others) <= one["broken"])
    return hits


def goals(found: Record) -> dict[str, bool]:
    """Return whether what the issue asks is met, up to the error of so many searches."""
    ours = [held(row) for row in found["simulated"]]
    really = [hit for searches in found["real"]["searches"].values() for hit in again(searches)]
    return {
        f"simulated, the interval holds the true rate in ≥ {KEPT:.0%} of the searches, for each queue and length": all(
            wilson_interval(sum(hits), len(hits))[1] >= KEPT for hits in ours
        ),
        f"really, the rate is found again within the interval in ≥ {KEPT:.0%} of the repeats": bool(
            np.mean(really) >= KEPT
        ),
    }


def share(hits: list[bool]) -> str:
    """Return a share with its interval."""
    low, high = wilson_interval(sum(hits), len(hits))
    return f"{np.mean(hits):.0%} ({low:.0%} to {high:.0%})"


def spread(searches: list[Record]) -> dict[str, str]:
    """Return what searches have in common, as cells."""
    found, none = [search for search in searches if "best" in search], len(searches)
    if not found:
        names = "rate found, median (5 % to 95 %)", "width of the interval"
        return dict.fromkeys(names, "–") | {"found nothing": f"{none}", "runs": f"{searches[0]['runs']}"}
    rates = [search["best"] for search in found]
    ends = np.quantile(rates, [0.05, 0.95])
    return {
        "rate found, median (5 % to 95 %)": f"{median(rates):.0f}/s ({ends[0]:.0f} to {ends[1]:.0f})",
        "width of the interval": f"{median(search['broken'] / search['kept'] - 1 for search in found):.0%}",
        "found nothing": f"{sum('best' not in search for search in searches)}",
        "runs": f"{np.mean([search['runs'] for search in searches]):.1f}",
    }


def page(found: Record) -> list[str]:
    """Return the tables as Markdown."""
    simulations = [
        {
            "queue": f"{row['queue']}, runs of {row['seconds']:g} s",
            "true rate": f"{row['truth']:.0f}/s",
            "searches": f"{len(row['found'])}",
            "interval holds it": share(held(row)),
            **spread(row["found"]),
        }
        for row in found["simulated"]
    ]
    real = found["real"]
    reals = [
        {
            "condition": name if name == "quiet" else f"{name}: {real['busy']} process that only computes",
            "searches": f"{len(searches)}",
            "found again": share(again(searches)),
            **spread(searches),
            f"p99 of {real['long']:g} s at the median rate": f"{1e3 * p99:.1f} ms"
            if (p99 := real["p99"].get(name))
            else "–",
        }
        for name, searches in real["searches"].items()
    ]
    return [
        f"p99 ≤ {1e3 * BOUND:g} ms with a service of {1e3 * SERVICE:g} ms; the ends of a search are brought together to "
        f"{TOLERANCE:.0%}. Simulated, against the true rate:",
        Table(simulations).markdown(),
        f"Really, p99 ≤ {1e3 * REAL_BOUND:g} ms, by runs of {real['seconds']:g} s, or {REQUESTS:,} requests, against `tinybench serve --max-batch 1`; found again is a rate if the "
        "interval of a search holds the median of what the others found:",
        Table(reals).markdown(),
    ]

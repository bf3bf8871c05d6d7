"""Does the interval of `tinybench.scenarios.server` hold the highest rate that keeps a bound, and is it found again?

Simulated, the truth is known: for M/M/1 in closed form, for others by a run of a million requests. A neighbour that
comes and goes makes service longer at random times.
Really, the truth is the median of what the other repeats under the same condition found: quiet, or beside a process that
only computes; the conditions come in shuffled order. A longer run at the rate found shows its p99 beside the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import fmean, median
from typing import Any

import numpy as np
from scipy.optimize import brentq

from tests.benchmarks import serving
from tests.benchmarks.formats import grouped, lines, ranged, share
from tests.benchmarks.harness import Part, Record, Records, Trial
from tests.benchmarks.processes import busy_cores
from tests.tinybench.servers import served
from tinybench.accuracy import wilson_interval
from tinybench.load import LoadResult, arrivals, simulate_queue
from tinybench.scenarios import server

SERVICE, BOUND, Q, TOLERANCE = 0.00075, 0.02, 99.0, 0.1
SHORT, LONG = 2.5, 10.0  # s of a run
REAL_BOUND = 0.1  # s; on a machine that others use, a few tens of milliseconds are theirs
REQUESTS = 2000  # at least, in a real run: with a few hundred no p99 is sure
LOW, HIGH = 0.1 / SERVICE, 1.2 / SERVICE  # where to search, in requests a second
KEPT = 0.90  # what issue 16 asks
NEIGHBOUR, SLOWER = 1.0, 0.15  # s that it stays and stays away, on average; by how much service is longer meanwhile
CONDITIONS = {"quiet": 0, "busy: 1 process that only computes": 1}


def disturbed(rng: np.random.Generator, times: np.ndarray) -> np.ndarray:
    changes = np.cumsum(rng.exponential(NEIGHBOUR, int(2 * times[-1] / NEIGHBOUR) + 60))
    return SERVICE * (1 + SLOWER * ((np.searchsorted(changes, times) + rng.integers(2)) % 2))


QUEUES: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    "M/M/1": lambda rng, times: rng.exponential(SERVICE, len(times)),
    "M/D/1": lambda rng, times: np.full(len(times), SERVICE),
    "M/D/1 with a neighbour": disturbed,
}


def simulated(queue: str, seconds: float, rng: np.random.Generator, rate: float) -> LoadResult:
    times = arrivals(rate, seconds, seed=int(rng.integers(2**32)))
    work = QUEUES[queue](rng, times)
    return serving.simulated(times, times + simulate_queue(times, work) + work, seconds)


def true_rate(queue: str) -> float:
    if queue == "M/M/1":
        return 1 / SERVICE + math.log(1 - Q / 100) / BOUND

    def excess(rate: float) -> float:
        run = simulated(queue, 1e6 / rate, np.random.default_rng(1), rate)
        return float(np.mean(run.latencies > BOUND)) - (1 - Q / 100)

    return float(brentq(excess, 0.3 / SERVICE, 0.999 / SERVICE, xtol=0.1))


def one_search(run: Callable[[float], LoadResult], bound: float = BOUND) -> Record:
    """Return what a search finds, if anything, and how many runs it takes."""
    runs = []

    def counted(rate: float) -> LoadResult:
        runs.append(rate)
        return run(rate)

    try:
        found = server(counted, bound, LOW, HIGH, Q, TOLERANCE)
    except ValueError:  # it refuses
        return {"runs": len(runs)}
    return {**dict(zip(("best", "kept", "broken"), map(float, found), strict=True)), "runs": len(runs)}


def measured(trial: Trial) -> Any:
    name, which = trial.case
    if name in QUEUES:
        about = {"of": f"{name}, runs of {which:g} s", "truth": true_rate(name)}
        rngs = map(np.random.default_rng, range(5 if trial.short else 100))
        return [{**about, **one_search(partial(simulated, name, which, rng))} for rng in rngs]
    model, rng = serving.stepping(trial.folder), np.random.default_rng()
    row, (least, length) = serving.steps_for(model, [SERVICE]), (200, 0.5) if trial.short else (REQUESTS, SHORT)

    def load(rate: float, seconds: float = length) -> LoadResult:
        due = arrivals(rate, max(seconds, least / rate), seed=int(rng.integers(2**32)))
        return serving.send(one.url, row, due)

    with served(model, "--max-batch", "1", *serving.PATIENT) as one:
        serving.warm(one, row[0])
        with busy_cores(CONDITIONS[name]):
            found = one_search(load, REAL_BOUND)
            tail = float(np.quantile(load(found["best"], LONG).latencies, Q / 100)) if "best" in found else None
    return {"of": name, "p99": tail, **found}


def hits(searches: Records) -> list[bool]:
    """Return for each search whether its interval holds the truth, or else the median of what the others found."""
    found = []
    for one in searches:
        others = [other["best"] for other in searches if other is not one and "best" in other]
        truth = one.get("truth", median(others) if others else math.nan)
        found.append("best" in one and one["kept"] <= truth <= one["broken"])
    return found


def goals(found: Records) -> dict[str, bool]:
    """Return whether what the issue asks is met, up to the error of so many searches."""
    of = grouped(found, "of").values()
    simulations = [hits(searches) for searches in of if "truth" in searches[0]]
    really = [hit for searches in of if "truth" not in searches[0] for hit in hits(searches)]
    return {
        f"simulated, the interval holds the true rate in ≥ {KEPT:.0%} of the searches, for each queue and length": all(
            wilson_interval(sum(each), len(each))[1] >= KEPT for each in simulations
        ),
        f"really, the rate is found again within the interval in ≥ {KEPT:.0%} of the repeats": (
            sum(really) >= KEPT * len(really)
        ),
    }


def page(found: Records) -> list[str]:
    rows = []
    for searches in grouped(found, "of").values():
        held, sure = hits(searches), [search for search in searches if "best" in search]
        row = {
            **searches[0],
            "searches": len(searches),
            "held": share(sum(held), len(held)),
            "rate": None,
            "width": None,
        }
        row |= {"none": len(searches) - len(sure), "runs": fmean(search["runs"] for search in searches)}
        row["tail"] = ranged([1e3 * search["p99"] for search in sure if search.get("p99")])
        if sure:
            low, middle, high = np.quantile([search["best"] for search in sure], [0.05, 0.5, 0.95])
            row["rate"] = f"{middle:.0f}/s ({low:.0f} to {high:.0f})"
            row["width"] = median(search["broken"] / search["kept"] - 1 for search in sure)
        rows.append(row)
    spread = "rate found, median (5 % to 95 %) | width of the interval | found nothing | runs"
    cells = "{rate} | {width:.0%} | {none} | {runs:.1f}"
    return [
        f"p99 ≤ {1e3 * BOUND:g} ms with a service of {1e3 * SERVICE:g} ms; the ends of a search are brought together to "
        f"{TOLERANCE:.0%}. Simulated, against the true rate:",
        lines(
            (row for row in rows if "truth" in row),
            f"queue | true rate | searches | interval holds it | {spread}",
            f"{{of}} | {{truth:.0f}}/s | {{searches}} | {{held}} | {cells}",
        ),
        f"Really, p99 ≤ {1e3 * REAL_BOUND:g} ms, by runs of {SHORT:g} s, or {REQUESTS:,} requests, against `tinybench "
        "serve --max-batch 1`; found again is a rate if the interval of a search holds the median of what the others "
        "found:",
        lines(
            (row for row in rows if "truth" not in row),
            f"condition | searches | found again | {spread} | p99 of {LONG:g} s at the rate found (ms)",
            f"{{of}} | {{searches}} | {{held}} | {cells} | {{tail}}",
        ),
    ]


CASES = [*product(QUEUES, (SHORT, LONG)), *product(CONDITIONS, range(8))]
SHORT_CASES = [("M/M/1", LONG), (list(CONDITIONS)[1], 0)]
PART = Part("The highest rate that keeps a bound", measured, page, goals, CASES, short=SHORT_CASES)

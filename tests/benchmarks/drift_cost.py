"""What does `tinybench serve --reference` add to a request?

Two servers of one model of digits run beside each other, one of them with a reference. Both get 2,000 requests of one row,
one after the other on one connection, in turn, three times, in an order that is drawn: long enough that what is noted is
handed over, which happens each second, and looked at while its own server is measured. Before the other's turn the rest
is waited for. Processes of one program differ in speed by themselves, as their memory happens to lie, so there are 20
pairs, started anew. Each gives the ratio of the servers' medians (of three), and of their 95th percentiles; told is the
mean over pairs with a 95 % interval (Student t, of logarithms). The requests wait for no others (``--max-wait 0ms``), so
nothing hides what is added.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from tests.benchmarks.drift_digits import gauges, split
from tests.tinybench.servers import served
from tinybench.table import Table

REQUESTS = 2000
MOST = 0.03  # of the median


def round_of(connection: HTTPConnection, body: str, requests: int) -> list[float]:
    """Return the seconds of requests, one after the other."""
    taken = []
    for _ in range(requests):
        started = time.perf_counter()
        connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
        connection.getresponse().read()
        taken.append(time.perf_counter() - started)
    return taken


def measured(short: bool) -> dict[str, Any]:
    """Return of each pair of servers the quantiles without and with."""
    pairs, turns, requests, order = (2, 1, 50, random.Random(0)) if short else (20, 3, REQUESTS, random.Random(0))
    found: dict[str, list[dict[str, float]]] = {"without": [], "with": []}
    with tempfile.TemporaryDirectory() as name:
        model, reference, rows, _ = split(0, Path(name))
        body = json.dumps({"inputs": [rows[0].tolist()]})
        for _ in range(pairs):
            for way, taken in of_pair(model, reference, body, turns, requests, order).items():
                quantiles = np.median(np.quantile(taken, (0.5, 0.95), axis=1), axis=1)
                found[way].append(dict(zip(("p50", "p95"), quantiles.tolist(), strict=True)))
    return {"rounds": found}


def of_pair(
    model: Path, reference: Path, body: str, turns: int, requests: int, order: random.Random
) -> dict[str, list[list[float]]]:
    """Return the seconds of requests by way and turn, of two servers started for it."""
    taken: dict[str, list[list[float]]] = {"without": [], "with": []}
    plain = ("--max-wait", "0ms")
    with served(model, *plain) as one, served(model, *plain, "--reference", str(reference)) as other:
        connections = {"without": HTTPConnection(*one.address), "with": HTTPConnection(*other.address)}
        for connection in connections.values():
            round_of(connection, body, requests)
        for _ in range(turns):
            for way in order.sample(list(taken), 2):
                gauges(other, (1 + len(taken["with"])) * requests)
                taken[way].append(round_of(connections[way], body, requests))
        for connection in connections.values():
            connection.close()
    return taken


def ratio(found: Mapping[str, Any], what: str) -> tuple[float, float, float]:
    """Return the ratio with / without and its interval."""
    logs = [
        np.log(after[what] / before[what])
        for before, after in zip(found["rounds"]["without"], found["rounds"]["with"], strict=True)
    ]
    middle, error = float(np.mean(logs)), float(stats.sem(logs))
    half = float(stats.t.ppf(0.975, len(logs) - 1)) * error
    return float(np.exp(middle)), float(np.exp(middle - half)), float(np.exp(middle + half))


def goals(found: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether the median is all but the same."""
    middle, _, high = ratio(found, "p50")
    return {
        f"the median of a request grows by less than {MOST:.0%}: {middle - 1:+.1%}, at most {high - 1:+.1%}": high
        < 1 + MOST
    }


def page(found: Mapping[str, Any]) -> list[str]:
    """Return a table."""
    rows = []
    for what in ("p50", "p95"):
        middle, low, high = ratio(found, what)
        ms = [1e3 * float(np.median([each[what] for each in found["rounds"][way]])) for way in ("without", "with")]
        rows.append({"of requests": what, "without, ms": f"{ms[0]:.3f}", "with, ms": f"{ms[1]:.3f}", "with / without": f"{middle:.3f} ({low:.3f} to {high:.3f})"})  # fmt: skip
    return [Table(rows).markdown()]

"""Throughput and p99 against ``--max-batch`` and ``--max-wait``: how far does a simulation foretell the real server?

A dense network, one row of which waits for its weights, gets more rows a second in batches. Every setting gets the same
Poisson traffic at some multiples of what the server can do without batches. It is simulated twice: by how long the model
takes for batches of each size in this process (`batch_sweep`), and by how long a batch occupies the server, front,
pipes and JSON included: from the traces of a few overloaded runs, each with another ``--max-batch``. Simulations get
the very arrivals that the server's trace has, and draw from the measured times. p99 is from the first byte of a request
to its answer by that trace; users also feel what the generator and the network add. Throughput is answers a second
while requests come.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tests.benchmarks.formats import grouped, lines
from tests.benchmarks.harness import Part, Record, Records, Trial
from tests.benchmarks.serving import layered, measure, occupied, p99, settled, simulated
from tinybench.latency import as_callable
from tinybench.load import arrivals
from tinybench.scenarios import simulate_batches
from tinybench.support.scenarios.sweeps import batch_sweep
from tinybench.tools.serving.models import load_model

SIZES = (1, 2, 4, 8, 16, 32)
BATCHES, WAITS, LOADS = (1, 4, 32), (0.0, 0.005, 0.02), (0.7, 1.5, 3.0)
REPEATS, LENGTH = 2, 3.0  # of each setting at each load; s
MOST = 1200  # requests a second that front and generator surely carry on two cores
NEAR = 0.25
WHO = {"real": "real", "server": "by the server's batches", "model": "by the model's"}
CASES = [  # without batches there is nothing to wait for
    each for each in product(LOADS, BATCHES, WAITS, range(REPEATS)) if each[1] > 1 or each[2] == WAITS[0]
]

Times = dict[int, list[float]]  # how long batches of each size took


def drawn(times: Times) -> Callable[[int], float]:
    """Return a function that draws how long a batch takes: a quantile, between the measured sizes in a straight line."""
    rng, sizes = np.random.default_rng(0), sorted(times)
    quantiles = np.quantile([times[size] for size in sizes], np.linspace(0, 1, 201), axis=1)
    return lambda size: float(np.interp(size, sizes, quantiles[rng.integers(201)]))


@cache
def times_of(folder: Path, short: bool) -> tuple[np.ndarray, dict[str, Times]]:
    """Return rows, and how long batches of each size take the model alone, and an overloaded server; as many of each."""
    model, rng = layered(folder), np.random.default_rng(0)
    sizes, runs, seconds = ((1, 16), 20, 1.0) if short else (SIZES, 200, 4.0)
    data, call = rng.random((64, 32)).round(4), as_callable(load_model(str(model), 1))
    sweep = batch_sweep(call, data[:1].astype(np.float32), sizes, measurement_runs=runs)
    alone, served = {size: [float(x) for x in found.values] for size, found in sweep.items()}, {}
    for size in sizes:
        due = arrivals(min(MOST, 1.3 * size / median(alone[size])), seconds, seed=size)
        run, _ = measure(model, data, due, *options_of(size, 0.1))
        batch, kept = occupied(run)
        served[size] = rng.choice(kept[batch == size], runs).tolist()
    return data, {"server": served, "model": alone}


def options_of(max_batch: int, max_wait: float) -> list[str]:
    return ["--max-batch", str(max_batch), "--max-wait", f"{1e3 * max_wait:g}ms"]


def figures(who: str, began: np.ndarray, ends: np.ndarray, batch: float) -> Record:
    """Return throughput and p99 of a run, without its beginning; without a steady state the p99 grows with its length."""
    result = simulated(began, ends, float(began[-1]))
    run = settled(result)
    found = {"sent": len(run.ok) / run.seconds, "throughput": run.throughput, "p99": p99(result), "batch": batch}
    return {f"{who} {name}": value for name, value in found.items()}


def measured(trial: Trial) -> Any:
    """Return the medians of batches, or what a real run gave by the server's trace, felt, and is foretold to give."""
    data, times = times_of(trial.folder, trial.short)
    if len(trial.case) == 1:
        return [{"size": size, **{who: median(each[size]) for who, each in times.items()}} for size in times["model"]]
    load, max_batch, max_wait, repeat = trial.case
    rate = load / float(np.mean(times["server"][1]))
    due = arrivals(rate, LENGTH, seed=repeat)
    run, users = measure(layered(trial.folder), data, due, *options_of(max_batch, max_wait))
    began = run.received - run.received[0]
    found = {"rate": rate, "felt": p99(users)}
    found |= figures("real", began, run.finished - run.received[0], len(run) / float(np.sum(1 / run.batch)))
    for who, known in times.items():
        latencies, sizes = simulate_batches(began, drawn(known), max_batch, max_wait)
        found |= figures(who, began, began + latencies, float(np.mean(sizes)))
    return found


def rows_of(found: Records) -> Records:
    """Return the median of each figure over the repeats of a load and setting, and what did not keep up."""
    groups = grouped((record for record in found if "rate" in record), "load", "max_batch", "max_wait").values()
    numbers = [key for key, value in found[-1].items() if isinstance(value, int | float)]
    rows = [{key: median(run[key] for run in runs) for key in numbers} for runs in groups]
    return [{**row, **{f"{who} late": "" if steady(row, who) else ", growing" for who in WHO}} for row in rows]


def steady(row: Record, *who: str) -> bool:
    return all(row[f"{each} throughput"] > 0.97 * row[f"{each} sent"] for each in who)


def goals(found: Records) -> dict[str, bool]:
    rows = rows_of(found)
    beyond = grouped((row for row in rows if row["load"] > 1), "max_batch")
    off = [abs(row["server p99"] / row["real p99"] - 1) for row in rows if steady(row, "real", "server")]
    return {
        "beyond the unbatched capacity, no batches do not keep up and the largest do": (
            not any(steady(row, "real") for row in beyond[1,])
            and all(steady(row, "real") for row in beyond[max(beyond)])
        ),
        "the simulation by the server's own batches says in each setting whether it keeps up": all(
            steady(row, "real") == steady(row, "server") for row in rows
        ),
        f"and where it does, p99 within {NEAR:.0%} (median over the settings)": bool(off) and median(off) <= NEAR,
    }


def page(found: Records) -> list[str]:
    rows = rows_of(found)
    heads, cells = [], []
    for who, name in WHO.items():
        felt = who == "real"
        heads.append(f"{name}: answers/s | {name}: p99 (ms) | {name}: rows a batch{' | p99 felt by users (ms)' * felt}")
        cells.append(f"{{{who} throughput:.0f}} | {{{who} p99:1e3×.1f}}{{{who} late}} | {{{who} batch:.1f}}")
        cells[-1] += " | {felt:1e3×.1f}" * felt
    sizes = [{**row, "rows": row["size"] / row["model"]} for row in found if "size" in row]
    return [
        lines(
            ({**row, "requests": row["size"] / row["server"]} for row in sizes),
            "rows a batch | model alone (ms) | rows/s | occupies the server (ms) | requests/s",
            "{size} | {model:1e3×.2f} | {rows:.0f} | {server:1e3×.2f} | {requests:.0f}",
        ),
        f"Medians over {REPEATS} runs of {LENGTH:g} s each:",
        lines(
            rows,
            f"load | max-batch | max-wait (ms) | {' | '.join(heads)}",
            "{load:g} × unbatched, {rate:.0f}/s | {max_batch:g} | {max_wait:1e3×g} | " + " | ".join(cells),
        ),
    ]


PART = Part(
    "Batches",
    measured,
    page,
    goals,
    [("sizes",), *CASES],
    short=[("sizes",), (1.5, 1, 0.0, 0), (1.5, 16, 0.005, 0)],
    fields=("load", "max_batch", "max_wait"),
)

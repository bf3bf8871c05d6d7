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

import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tests.benchmarks.capacity_servers import Run, layered, measure, settled
from tinybench.latency import as_callable
from tinybench.load import LoadResult, arrivals, batch_sweep, simulate_batches
from tinybench.shell.files import load_model
from tinybench.table import Table

SIZES = (1, 2, 4, 8, 16, 32)
BATCHES, WAITS, LOADS = (1, 4, 32), (0.0, 0.005, 0.02), (0.7, 1.5, 3.0)
MOST = 1200  # requests a second that front and generator surely carry on two cores
BOUND, NEAR = 0.05, 0.25

Record = dict[str, Any]
Seconds = Callable[[int], float]
Times = dict[int, list[float]]  # how long batches of each size took


def drawn(times: Times, seed: int = 0) -> Seconds:
    """Return a function that draws how long a batch takes: a quantile, between the measured sizes in a straight line."""
    rng, sizes = np.random.default_rng(seed), sorted(times)
    quantiles = np.quantile([times[size] for size in sizes], np.linspace(0, 1, 201), axis=1)
    return lambda size: float(np.interp(size, sizes, quantiles[rng.integers(201)]))


def of_model(model: Path, runs: int) -> Times:
    """Return how long the model alone takes for batches of each size."""
    rows = np.random.default_rng(0).random((1, 32), dtype=np.float32)
    sweep = batch_sweep(as_callable(load_model(str(model), 1)), rows, SIZES, measurement_runs=runs)
    return {size: [float(x) for x in found.values] for size, found in sweep.items()}


def occupied(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return the size of each batch, and for how long it kept the server from the next."""
    starts, first = np.unique(run.started, return_index=True)
    written = np.maximum.reduceat(
        run.finished[np.argsort(run.started, kind="stable")], np.searchsorted(np.sort(run.started), starts)
    )
    return run.batch[first], np.minimum(written, np.append(starts[1:], np.inf)) - starts


def of_server(model: Path, data: np.ndarray, alone: Times, seconds: float, samples: int) -> Times:
    """Return how long batches of each size occupy an overloaded server; so many of each."""
    found, rng = {}, np.random.default_rng(0)
    for size in SIZES:
        due = arrivals(min(MOST, 1.3 * size / median(alone[size])), seconds, seed=size)
        batch, kept = occupied(measure(model, data[np.arange(len(due)) % len(data)], due, *options(size, 0.1)))
        found[size] = rng.choice(kept[batch == size], samples).tolist()
    return found


def options(max_batch: int, max_wait: float) -> list[str]:
    return ["--max-batch", str(max_batch), "--max-wait", f"{1e3 * max_wait:g}ms"]


def figures(came: np.ndarray, ends: np.ndarray) -> dict[str, float]:
    """Return throughput and p99 of a run, without its beginning; without a steady state the p99 grows with its length."""
    last = float(came[-1])
    run = settled(LoadResult(came, came, ends, np.ones(len(came), bool), last, {"loop": "open"}))
    return {
        "sent": len(run.ok) / run.seconds,
        "throughput": run.throughput,
        "p99": float(np.quantile(run.latencies, 0.99)),
    }


def foretold(came: np.ndarray, seconds: Seconds, max_batch: int, max_wait: float) -> dict[str, float]:
    """Return the simulated figures of a setting."""
    latencies, sizes = simulate_batches(came, seconds, max_batch, max_wait)
    return {**figures(came, came + latencies), "batch": float(np.mean(sizes))}


def one_run(
    model: Path, data: np.ndarray, due: np.ndarray, setting: tuple[int, float], times: dict[str, Times]
) -> Record:
    """Return the figures of a real run by the server's trace, what its users felt, and what is foretold of it."""
    run = measure(model, data[np.arange(len(due)) % len(data)], due, *options(*setting))
    came, felt = run.received - run.received[0], settled(run.result).latencies
    real = figures(came, run.finished - run.received[0]) | {"batch": len(came) / float(np.sum(1 / run.batch))}
    foretelling = {name: foretold(came, drawn(found), *setting) for name, found in times.items()}
    return {"real": real | {"felt": float(np.quantile(felt, 0.99))}, **foretelling}


def middle(runs: Sequence[Record]) -> Record:
    """Return the median of each figure over some runs."""
    return {who: {key: median(run[who][key] for run in runs) for key in runs[0][who]} for who in runs[0]}


def settings(batches: Sequence[int] = BATCHES, waits: Sequence[float] = WAITS) -> list[tuple[int, float]]:
    """Return all settings; without batches there is nothing to wait for."""
    return [(size, wait) for size, wait in product(batches, waits) if size > 1 or wait == waits[0]]


def measured(short: bool = False) -> Record:
    """Measure the batches, then every setting at every load, simulated and real."""
    grid, loads = ([(1, 0.0), (16, 0.005)], (1.5,)) if short else (settings(), LOADS)
    length, repeats = (3.0, 1) if short else (3.0, 2)
    data, runs = (
        np.random.default_rng(0).random((64, 32)).round(4),
        dict[tuple[float, tuple[int, float]], list[Record]](),
    )
    with tempfile.TemporaryDirectory() as folder:
        model = layered(Path(folder, "layers.onnx"))
        alone = of_model(model, 20 if short else 200)
        served = of_server(model, data, alone, 1.0 if short else 4.0, len(alone[1]))
        unbatched = 1 / float(np.mean(served[1]))
        for number, load, setting in product(range(repeats), loads, grid):
            due = arrivals(load * unbatched, length, seed=number)
            run = one_run(model, data, due, setting, {"server": served, "model": alone})
            runs.setdefault((load, setting), []).append(run)
            print(load, setting, run, file=sys.stderr, flush=True)
    rows = [
        {"load": load, "rate": load * unbatched, "max_batch": max_batch, "max_wait": max_wait, **middle(found)}
        for (load, (max_batch, max_wait)), found in runs.items()
    ]
    return {"alone": medians(alone), "served": medians(served), "rows": rows, "length": length, "repeats": repeats}


def medians(times: Times) -> list[tuple[int, float]]:
    return [(size, median(found)) for size, found in times.items()]


def steady(row: Record, who: str) -> bool:
    """Return whether a setting kept up with the load."""
    return bool(row[who]["throughput"] > 0.97 * row[who]["sent"])


def best(found: Record, who: str) -> list[str]:
    """Return the setting of the shortest p99 at each load, as simulated or as it really was."""
    loads = dict.fromkeys(row["load"] for row in found["rows"])
    at = (min((r for r in found["rows"] if r["load"] == load), key=lambda r: r[who]["p99"]) for load in loads)
    return [f"{row['max_batch']} within {1e3 * row['max_wait']:g} ms" for row in at]


def goals(found: Record) -> dict[str, bool]:
    """Return whether batches carry more than is possible without, and whether the simulation says the same."""
    beyond = [row for row in found["rows"] if row["load"] > 1]
    kept = [row for row in found["rows"] if steady(row, "real") and steady(row, "server")]
    return {
        "beyond the unbatched capacity, no batches do not keep up and the largest do": all(
            steady(row, "real") == (row["max_batch"] > 1)
            for row in beyond
            if row["max_batch"] in (1, max(r["max_batch"] for r in beyond))
        ),
        "the simulation by the server's own batches says in each setting whether it keeps up": all(
            steady(row, "real") == steady(row, "server") for row in found["rows"]
        ),
        f"and where it does, p99 within {NEAR:.0%} (median over the settings)": bool(
            np.median([abs(row["server"]["p99"] / row["real"]["p99"] - 1) for row in kept]) <= NEAR
        ),
    }


def cells(row: Record, who: str) -> dict[str, str]:
    """Return what a run or a simulation gave, as cells."""
    at, name = row[who], {"real": "real", "server": "by the server's batches", "model": "by the model's"}[who]
    late = "" if steady(row, who) else ", growing"
    return {
        f"{name}: answers/s": f"{at['throughput']:.0f}",
        f"{name}: p99 (ms)": f"{1e3 * at['p99']:.1f}{late}",
        f"{name}: rows a batch": f"{at['batch']:.1f}",
        **({"p99 felt by users (ms)": f"{1e3 * at['felt']:.1f}"} if who == "real" else {}),
    }


def page(found: Record) -> list[str]:
    """Return the tables as Markdown."""
    served = dict(found["served"])
    sweep = [
        {
            "rows a batch": f"{size}",
            "model alone (ms)": f"{1e3 * seconds:.2f}",
            "rows/s": f"{size / seconds:.0f}",
            "occupies the server (ms)": f"{1e3 * served[size]:.2f}",
            "requests/s": f"{size / served[size]:.0f}",
        }
        for size, seconds in found["alone"]
    ]
    rows = [
        {
            "load": f"{row['load']:g} × unbatched, {row['rate']:.0f}/s",
            "max-batch": f"{row['max_batch']}",
            "max-wait (ms)": f"{1e3 * row['max_wait']:g}",
            **cells(row, "real"),
            **cells(row, "server"),
            **cells(row, "model"),
        }
        for row in found["rows"]
    ]
    told = "Shortest p99 at each load, of these settings: really {}; simulated by the server's batches {}."
    return [
        Table(sweep).markdown(),
        f"Medians over {found['repeats']} runs of {found['length']:g} s each:",
        Table(rows).markdown(),
        told.format(*(", ".join(best(found, who)) for who in ("real", "server"))),
    ]

"""What else a plan needs to know of the machine: the memory of workers, and what models do to their neighbours."""

from __future__ import annotations

from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tests.benchmarks import capacity_servers as servers
from tests.benchmarks.formats import lines
from tests.benchmarks.harness import Case, Part, Records, Trial
from tests.tinybench.servers import Served, served
from tinybench.load import arrivals

CACHE, WEIGHTS = "computes in its cache", "reads 50 MB of weights"
PAIRS = [(CACHE, CACHE), (WEIGHTS, WEIGHTS), (CACHE, WEIGHTS)]


def memory(folder: Path, workers: int) -> dict[str, float]:
    """Return what so many workers with one model hold, in bytes."""
    model = servers.layered(folder)
    with served(model, "--workers", str(workers), "--max-batch", "1") as server:
        for _ in range(workers):
            servers.warm(server, np.full(32, 0.5))
        own = [process.memory_full_info() for process in server.workers()]
        front = psutil.Process(server.process.pid).memory_full_info()
    mean = {name: sum(getattr(m, name) for m in own) / workers for name in ("rss", "pss", "uss")}
    together = workers * mean["pss"] + front.pss
    return {"workers": workers, **mean, "front": front.uss, "all": together, "file": model.stat().st_size}


def load(server: Served, row: np.ndarray, rate: float, seconds: float) -> dict[str, float]:
    """Return the percentiles at a rate."""
    result = servers.settled(servers.send(server.url, row, arrivals(rate, seconds, seed=1)))
    return {f"p{q}": float(np.percentile(result.latencies, q)) for q in (50, 99)}


def neighbours(folder: Path, names: tuple[str, str], seconds: float) -> Records:
    """Return of two models what each can do alone and beside the other, and its percentiles at half of that."""
    steps = servers.stepping(folder)
    subjects = {
        CACHE: (steps, servers.steps_for(steps, [0.005])),
        WEIGHTS: (servers.layered(folder), np.full((1, 32), 0.5)),
    }
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:

        def start(name: str) -> tuple[Served, np.ndarray]:
            model, row = subjects[name]
            server = stack.enter_context(served(model, *servers.ALONE, *servers.PATIENT))
            servers.warm(server, row[0])
            return server, row

        def rate(one: tuple[Served, np.ndarray]) -> float:
            return servers.two_users(*one, seconds / 4).throughput

        both = [start(name) for name in names]
        most = [rate(one) for one in both]
        together = list(pool.map(rate, both))
        alone = [load(*one, half / 2, seconds) for one, half in zip(both, most, strict=True)]
        beside = list(pool.map(lambda one, half: load(*one, half / 2, seconds), both, most))
    return [
        {
            "model": names[i],
            "beside": names[1 - i] if names[0] != names[1] else "another of its kind",
            "most": most[i],
            "together": together[i],
            "change": together[i] / most[i] - 1,
            **{f"{q} alone": value for q, value in alone[i].items()},
            **{f"{q} beside": value for q, value in beside[i].items()},
        }
        for i in range(len(set(names)))
    ]


def cases(options: Namespace) -> list[Case]:
    """Return numbers of workers, and pairs of models."""
    return [(2,), PAIRS[2]] if options.short else [(1,), (2,), (4,), (8,), *PAIRS]


def measured(trial: Trial) -> Any:
    """Measure the memory of workers, or two models."""
    if len(trial.case) == 1:
        return memory(trial.folder, *trial.case)
    return neighbours(trial.folder, trial.case, 1.5 if trial.short else 12.0)


def goals(found: Records) -> dict[str, bool]:
    """Return whether workers share less than a model: each has weights of its own."""
    held = [row for row in found if "workers" in row]
    return {"each worker has the weights of its model for itself": all(row["uss"] > row["file"] for row in held)}


def page(found: Records) -> list[str]:
    held = [{**row, "shared": row["rss"] - row["uss"]} for row in found if "workers" in row]
    return [
        f"Memory of workers with one model of {held[0]['file'] / 1e6:.0f} MB, after {servers.WARM} requests each:",
        lines(
            held,
            "workers | RSS a worker (MB) | PSS a worker (MB) | USS a worker (MB) | shared of it (MB) | "
            "USS of the front (MB) | all, by PSS (MB)",
            "{workers} | {rss:1e-6×.0f} | {pss:1e-6×.0f} | {uss:1e-6×.0f} | {shared:1e-6×.0f} | {front:1e-6×.0f} | "
            "{all:1e-6×.0f}",
        ),
        "Two models on one machine, each with a worker of its own, at their most and at half of what each can do alone:",
        lines(
            (row for row in found if "model" in row),
            "model | beside | most, alone | most, both at their most | p50 at half of it, alone → beside (ms) | "
            "p99 at half of it, alone → beside (ms)",
            "{model} | {beside} | {most:.0f}/s | {together:.0f}/s ({change:+.0%}) | "
            "{p50 alone:1e3×.1f} → {p50 beside:1e3×.1f} | {p99 alone:1e3×.1f} → {p99 beside:1e3×.1f}",
        ),
    ]


PART = Part("Memory and neighbours", measured, page, goals, cases)

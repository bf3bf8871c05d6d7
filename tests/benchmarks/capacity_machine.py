"""What else a plan needs to know of the machine: the memory of workers, and what models do to their neighbours."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tests.benchmarks import serving
from tests.benchmarks.formats import lines
from tests.benchmarks.harness import Part, Records, Trial
from tests.tinybench.servers import Served, served
from tinybench.load import arrivals

CACHE, WEIGHTS = "computes in its cache", "reads 50 MB of weights"
PAIRS = [(CACHE, CACHE), (WEIGHTS, WEIGHTS), (CACHE, WEIGHTS)]
ROW = np.full(32, 0.5)  # for the model of 50 MB


def memory(folder: Path, workers: int) -> dict[str, float]:
    """Return what so many workers with one model hold, in bytes."""
    model = serving.layered(folder)
    with served(model, "--workers", str(workers), "--max-batch", "1") as server:
        for _ in range(workers):
            serving.warm(server, ROW)
        own = [process.memory_full_info() for process in server.workers()]
        front = psutil.Process(server.process.pid).memory_full_info()
    mean = {name: sum(getattr(m, name) for m in own) / workers for name in ("rss", "pss", "uss")}
    together = workers * mean["pss"] + front.pss
    return {"workers": workers, **mean, "front": front.uss, "all": together, "file": model.stat().st_size}


def percentiles(server: Served, row: np.ndarray, rate: float, seconds: float) -> list[float]:
    """Return p50 and p99 at a rate."""
    result = serving.settled(serving.send(server.url, row, arrivals(rate, seconds, seed=1)))
    found: list[float] = np.percentile(result.latencies, (50, 99)).tolist()
    return found


def neighbours(folder: Path, names: tuple[str, str], seconds: float) -> Records:
    """Return of two models what each can do alone and beside the other, and its percentiles at half of that."""
    steps = serving.stepping(folder)
    subjects = {CACHE: (steps, serving.steps_for(steps, [0.005])), WEIGHTS: (serving.layered(folder), ROW[None])}
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        models, rows = zip(*(subjects[name] for name in names), strict=True)
        servers = [stack.enter_context(served(model, *serving.ALONE, *serving.PATIENT)) for model in models]
        for server, row in zip(servers, rows, strict=True):
            serving.warm(server, row[0])

        def rate(server: Served, row: np.ndarray) -> float:
            return serving.two_users(server, row, seconds / 4).throughput

        most = list(map(rate, servers, rows))
        together = list(pool.map(rate, servers, rows))
        half, times = [each / 2 for each in most], [seconds] * 2
        alone = list(map(percentiles, servers, rows, half, times))
        beside = list(pool.map(percentiles, servers, rows, half, times))
    return [
        {
            "model": names[i],
            "beside": names[1 - i] if names[0] != names[1] else "another of its kind",
            "most": most[i],
            "together": together[i],
            "change": together[i] / most[i] - 1,
            **dict(zip(("p50 alone", "p99 alone"), alone[i], strict=True)),
            **dict(zip(("p50 beside", "p99 beside"), beside[i], strict=True)),
        }
        for i in range(len(set(names)))
    ]


def measured(trial: Trial) -> Any:
    if len(trial.case) == 1:
        return memory(trial.folder, *trial.case)
    return neighbours(trial.folder, trial.case, 1.5 if trial.short else 12.0)


def goals(found: Records) -> dict[str, bool]:
    held = [row for row in found if "workers" in row]
    return {"each worker has the weights of its model for itself": all(row["uss"] > row["file"] for row in held)}


def page(found: Records) -> list[str]:
    held = [{**row, "shared": row["rss"] - row["uss"]} for row in found if "workers" in row]
    return [
        f"Memory of workers with one model of {held[0]['file'] / 1e6:.0f} MB, after {serving.WARM} requests each:",
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


CASES = [(1,), (2,), (4,), (8,), *PAIRS]
PART = Part("Memory and neighbours", measured, page, goals, CASES, short=[(2,), PAIRS[2]])

"""What else a plan needs to know of the machine: the memory of workers, and what models do to their neighbours."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tests.benchmarks.capacity_lindley import ALONE
from tests.benchmarks.capacity_servers import PATIENT, WARM, bodies, layered, send, settled, stepping, steps_for, warm
from tests.tinybench.servers import Served, served
from tinybench.load import arrivals, closed_loop
from tinybench.serving.client import Users, address_of
from tinybench.table import Table


def memory(folder: Path, numbers: Sequence[int]) -> list[dict[str, float]]:
    """Return what so many workers with one model hold, in bytes."""
    model, found = layered(folder / "layers.onnx"), []
    for workers in numbers:
        with served(model, "--workers", str(workers), "--max-batch", "1") as server:
            for _ in range(workers):
                warm(server, [0.5] * 32)
            own = [process.memory_full_info() for process in server.workers()]
            front = psutil.Process(server.process.pid).memory_full_info()
            found.append(
                {
                    "workers": workers,
                    "rss": sum(m.rss for m in own) / workers,
                    "pss": sum(m.pss for m in own) / workers,
                    "uss": sum(m.uss for m in own) / workers,
                    "front": front.uss,
                    "all": sum(m.pss for m in own) + front.pss,
                    "file": model.stat().st_size,
                }
            )
    return found


def closed_rate(server: Served, row: np.ndarray, seconds: float) -> float:
    """Return the answers a second that two users get, of whom one always waits."""
    users = Users(address_of(server.url), bodies(row[None]), 60.0)
    result = closed_loop(users.send, 2, 0.0, seconds)
    users.close()
    return result.throughput


def neighbours(folder: Path, short: bool) -> list[dict[str, Any]]:
    """Return p99 at half of its own capacity, of each model alone and beside a neighbour at half of its."""
    length = 3.0 if short else 12.0
    steps = stepping(folder / "own.onnx")
    subjects = {
        "computes in its cache": (steps, steps_for(steps, [0.005])[0]),
        "reads 50 MB of weights": (layered(folder / "weights.onnx"), np.full(32, 0.5)),
    }

    def load(server: Served, row: np.ndarray, rate: float) -> dict[str, float]:
        due = arrivals(rate, length, seed=1)
        result = settled(send(server.url, bodies(row[None]), due, timeout=60.0))
        return {
            "throughput": result.throughput,
            "p50": float(np.median(result.latencies)),
            "p99": float(np.quantile(result.latencies, 0.99)),
        }

    found, names = [], list(subjects)
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:

        def start(name: str) -> tuple[Served, np.ndarray]:
            model, row = subjects[name]
            server = stack.enter_context(served(model, *ALONE, *PATIENT))
            warm(server, row.tolist())
            return server, row

        pairs = [(names[0], names[0]), (names[1], names[1]), (names[0], names[1])]
        for mine, other in pairs[2:] if short else pairs:
            both = [start(mine), start(other)]
            most = [closed_rate(server, row, length / 4) for server, row in both]
            together = list(pool.map(lambda one: closed_rate(*one, length / 4), both))
            alone = [load(server, row, rate / 2) for (server, row), rate in zip(both, most, strict=True)]
            beside = list(pool.map(lambda one, rate: load(*one, rate / 2), both, most))
            for i in range(1 if mine == other else 2):
                found.append(
                    {"model": (mine, other)[i], "beside": (other, mine)[i], "most": most[i], "most_beside": together[i],
                     "alone": alone[i], "loaded": beside[i]}
                )  # fmt: skip
                print(found[-1], file=sys.stderr, flush=True)
    return found


def measured(short: bool = False) -> dict[str, Any]:
    """Measure both."""
    with tempfile.TemporaryDirectory() as name:
        held = memory(Path(name), (1, 2) if short else (1, 2, 4, 8))
        return {"memory": held, "neighbours": neighbours(Path(name), short)}


def goals(found: dict[str, Any]) -> dict[str, bool]:
    """Return whether workers share less than a model: each has weights of its own."""
    return {
        "each worker has the weights of its model for itself": all(row["uss"] > row["file"] for row in found["memory"])
    }


def page(found: dict[str, Any]) -> list[str]:
    """Return the tables as Markdown."""
    held = [
        {
            "workers": f"{row['workers']}",
            **{f"{name} a worker (MB)": f"{row[name.lower()] / 1e6:.0f}" for name in ("RSS", "PSS", "USS")},
            "shared of it (MB)": f"{(row['rss'] - row['uss']) / 1e6:.0f}",
            "USS of the front (MB)": f"{row['front'] / 1e6:.0f}",
            "all, by PSS (MB)": f"{row['all'] / 1e6:.0f}",
        }
        for row in found["memory"]
    ]
    beside = [
        {
            "model": row["model"],
            "beside": row["beside"] if row["beside"] != row["model"] else "another of its kind",
            "most, alone": f"{row['most']:.0f}/s",
            "most, both at their most": f"{row['most_beside']:.0f}/s ({row['most_beside'] / row['most'] - 1:+.0%})",
            **{
                f"{q} at half of it, alone → beside (ms)": f"{1e3 * row['alone'][q]:.1f} → {1e3 * row['loaded'][q]:.1f}"
                for q in ("p50", "p99")
            },
        }
        for row in found["neighbours"]
    ]
    return [
        f"Memory of workers with one model of {found['memory'][0]['file'] / 1e6:.0f} MB, after {WARM} requests each:",
        Table(held).markdown(),
        "Two models on one machine, each with a worker of its own, at their most and at half of what each can do alone:",
        Table(beside).markdown(),
    ]

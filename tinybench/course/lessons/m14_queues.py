"""Helpers for module 14: a network that benefits from batches, queues inside this process, and the memory of models."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.support.basics.child_process import ChildProcess
from tinybench.support.traffic.batching import aside
from tinybench.support.traffic.request_times import wait_until

if TYPE_CHECKING:
    from tinybench.load import LoadResult
    from tinybench.support.traffic.batching import Batching

INPUTS = 64


def write_network(path: Path, width: int = 2048, layers: int = 4, outputs: int = 10) -> Path:
    """Write an ONNX network of dense layers, and return its path.

    The weights are random, which does not affect the network's speed.
    """
    import onnx
    from onnx import helper, numpy_helper

    rng, sizes = np.random.default_rng(0), [INPUTS, *[width] * layers, outputs]
    nodes, weights, name = [], [], "x"
    for k, (a, b) in enumerate(pairwise(sizes)):
        weights.append(numpy_helper.from_array((rng.normal(size=(a, b)) / np.sqrt(a)).astype(np.float32), f"w{k}"))
        nodes.append(helper.make_node("MatMul", [name, f"w{k}"], [name := f"sum{k}"]))
        if k < layers:
            nodes.append(helper.make_node("Relu", [name], [name := f"layer{k}"]))
    x, y = (
        helper.make_tensor_value_info(label, onnx.TensorProto.FLOAT, ["rows", size])
        for label, size in (("x", INPUTS), (name, outputs))
    )
    graph = helper.make_graph(nodes, "dense", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def load_network(path: Path) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that computes outputs for rows on one thread. During a call, other Python threads can run."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda rows: np.asarray(session.run(None, {"x": rows})[0])


class BatcherPool(Executor):
    """A pool for `open_loop` that runs a batcher in the event loop of a separate thread. `send` must be async.

    Use it as ``with BatcherPool(lambda: Batcher(run)) as pool``, with a `send` that awaits `pool.answer(row)`.
    """

    def __init__(self, make: Callable[[], Batching]) -> None:
        self._make, self._ready, self._error = make, threading.Event(), None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), daemon=True)

    async def _live(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with self._make() as self._batcher:
            self._ready.set()
            await self._end.wait()

    async def answer(self, item: Any) -> Any:
        """Submit an item to the batcher, and return the batcher's answer."""
        return await self._batcher.submit(item)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **keywords: Any) -> Future[Any]:
        """Call an async function in the event loop, and return a future of the function's result."""

        async def call() -> Any:
            return await fn(*args, **keywords)

        return asyncio.run_coroutine_threadsafe(call(), self._loop)

    def __enter__(self) -> BatcherPool:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()


def batches_in_line(
    batcher: Callable[..., Batching],
    run: Callable[[list[Any]], Any],
    rows: np.ndarray,
    sizes: Sequence[int],
    each: int = 15,
) -> dict[int, float]:
    """Return, for each batch size, the median seconds from the start of one full batch to the start of the next.

    These seconds consist of the model's time and of the handover of the batch.
    """

    async def cost(size: int) -> float:
        starts: list[float] = []

        async def noting(items: list[Any]) -> Any:
            starts.append(asyncio.get_running_loop().time())
            return await run(items)

        async with batcher(noting, size, 0.0, max_queue=size * each) as open_batcher:
            await asyncio.gather(*(open_batcher.submit(rows[i % len(rows)]) for i in range(size * each)))
        return float(np.median(np.diff(starts)))

    return {size: aside(partial(asyncio.run, cost(size))) for size in sizes}


def mean_interval(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Return the mean of independent values, and the half-width of the mean's 95 % Student t interval."""
    from scipy.special import stdtrit

    values = np.asarray(values, dtype=float)
    return float(values.mean()), float(stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / np.sqrt(len(values)))


def replicated_waits(
    simulate: Callable[..., np.ndarray],
    rho: float,
    services: Callable[[np.random.Generator, int], np.ndarray],
    replications: int = 20,
    requests: int = 40_000,
    seed: Any = 0,
) -> tuple[float, float]:
    """Simulate Poisson arrivals at one server with a mean service time of 1, at the utilisation `rho`.

    Return the mean wait over all replications, and the half-width of its 95 % interval. The first tenth of the requests
    in each replication is a warm-up.
    """
    rng, means = np.random.default_rng(seed), []
    for _ in range(replications):
        times = np.cumsum(rng.exponential(1 / rho, requests))
        means.append(simulate(times, services(rng, requests))[requests // 10 :].mean())
    return mean_interval(means)


def services_in_line(result: LoadResult) -> np.ndarray:
    """Return each request's service time.

    If the next request had to wait, the service time ends when the next request starts.
    """
    own, following = result.finished - result.started, np.diff(result.started)
    waited = result.intended[1:] <= result.finished[:-1]
    return np.append(np.where(waited, following, own[:-1]), own[-1])


def sleep_exactly(seconds: float) -> None:
    """Sleep like `time.sleep`, but without oversleeping by about 0.1 ms."""
    wait_until(time.perf_counter() + seconds)


def ratio_to_theory(
    simulate: Callable[..., np.ndarray],
    services: np.ndarray,
    rho: float,
    shuffle: bool,
    copies: int = 200,
    seed: int = 0,
) -> float:
    """Return the simulated mean wait divided by the mean wait according to the Pollaczek–Khinchine formula.

    The simulation repeats the measured service times `copies` times. If `shuffle`, each copy is in a random order.
    Otherwise, each copy keeps the order and starts at a random position.
    """
    rng = np.random.default_rng(seed)
    rounds = [
        rng.permutation(services) if shuffle else np.roll(services, rng.integers(len(services))) for _ in range(copies)
    ]
    work = np.concatenate(rounds)
    times = np.cumsum(rng.exponential(services.mean() / rho, len(work)))
    theory = rho / (1 - rho) * (1 + services.var() / services.mean() ** 2) / 2 * services.mean()
    return float(simulate(times, work).mean() / theory)


_NEIGHBOUR = """
import os, sys, threading, time
import numpy as np
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()  # ends with its parent
square = np.ones((700, 700))

def work():
    while True:
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            square @ square
        time.sleep(0.5)

for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
print(flush=True)
threading.Event().wait()
"""


@contextmanager
def neighbour() -> Iterator[None]:
    """Keep two cores busy for 0.3 s in every 0.8 s, by another process that runs as long as the ``with`` block."""
    with ChildProcess([sys.executable, "-c", _NEIGHBOUR], patience=0) as process:
        process.receive()
        yield


_CHILD = """
import json, sys, threading
import numpy as np, onnxruntime, psutil
path, threads, models = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
process = psutil.Process()

def memory():
    full = process.memory_full_info()
    return {"rss": full.rss, "uss": full.uss, "pss": getattr(full, "pss", None)}

def load():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

def work(session, rows):
    for _ in range(3):
        session.run(None, {"x": rows})

def together(session, count):
    rows = np.zeros((64, 64), np.float32)
    running = [threading.Thread(target=work, args=(session, rows)) for _ in range(count)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()

told = {"empty": memory(), "concurrent": {}, "models": {}}
sessions = [load()]
count = 1
while count <= threads:
    together(sessions[0], count)
    told["concurrent"][count] = memory()
    count *= 2
told["models"][1] = memory()
while len(sessions) < models:
    sessions.append(load())
    together(sessions[-1], 1)
    told["models"][len(sessions)] = memory()
print(json.dumps(told), flush=True)
sys.stdin.readline()
print(json.dumps(memory()), flush=True)
"""


def memory_of_models(path: Path, threads: int = 8, models: int = 4, processes: int = 2) -> dict[str, Any]:
    """Run a model in several child processes, which then end. Return the memory of each process in bytes.

    The first process makes 1, 2, 4, … concurrent calls, up to `threads`, and then loads up to `models` copies of the
    model. The other `processes` processes hold one copy each at the same time. In the result, ``uss`` is the memory
    that a single process uses alone. ``pss`` (Linux only) adds the process's part of the memory that it shares with
    other processes.
    """
    with ExitStack() as stack:
        children = []
        for counts in [(threads, models)] + [(1, 1)] * processes:
            command = [sys.executable, "-c", _CHILD, str(path), *map(str, counts)]
            children.append(stack.enter_context(ChildProcess(command, patience=0)))
        memory = [json.loads(child.receive()) for child in children]
        children[0].close()  # the memory of the others is read after this process has ended
        own = []
        for child in children[1:]:
            child.send("")
            own.append(json.loads(child.receive()))
        return {**memory[0], "processes": own}

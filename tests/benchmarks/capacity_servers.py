"""What the parts of `capacity` share: models of known work, a served model under an open loop, and the server's trace."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tests.tinybench.servers import Served, repeating, save_graph, served
from tinybench.latency import measure_latency
from tinybench.load import LoadResult
from tinybench.serving.client import address_of, bodies_of
from tinybench.serving.sender import Sender
from tinybench.shell.files import load_model

PATIENT = ("--timeout", "60s", "--max-queue", "20000")
WARM, SKIP = 30, 0.1  # requests before a run, and the share of it that does not count: the queue begins empty


def stepping(path: Path) -> Path:
    """Write a model of rows of one number, which multiplies a 256 × 256 matrix as many times as the number says."""
    from onnx import helper

    step = [
        helper.make_node("MatMul", ["before", "weights"], ["product"]),
        helper.make_node("Tanh", ["product"], ["after"]),
    ]
    weights = np.random.default_rng(0).normal(0, 0.1, (256, 256))
    return repeating(path, step, begin=np.full((1, 256), 0.5), weights=weights)


def layered(path: Path, width: int = 2048, layers: int = 4) -> Path:
    """Write a dense network of rows of 32 numbers: a single row waits for its weights, many rows share them."""
    from onnx import TensorProto, helper

    rng, sizes = np.random.default_rng(0), [32, *[width] * layers, 10]
    nodes, constants, name = [], [], "x"
    for i, (rows, columns) in enumerate(pairwise(sizes)):
        weights = rng.normal(0, rows**-0.5, (rows, columns)).astype(np.float32)
        constants.append(helper.make_tensor(f"w{i}", TensorProto.FLOAT, weights.shape, weights.tobytes(), raw=True))
        last = i == len(sizes) - 2
        nodes.append(helper.make_node("MatMul", [name, f"w{i}"], ["y" if last else f"m{i}"]))
        if not last:
            nodes.append(helper.make_node("Relu", [f"m{i}"], [f"r{i}"]))
        name = f"r{i}"
    return save_graph(path, nodes, [32], constants=constants)


@cache
def seconds_of_a_step(model: Path) -> float:
    """Return how long one step of a `stepping` model takes here, alone."""
    session = load_model(str(model), 1)
    [short, long] = [
        measure_latency(session, np.full((1, 1), steps, np.float32), measurement_runs=30).median for steps in (100, 600)
    ]
    return (long - short) / 500


def steps_for(model: Path, seconds: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return rows for a `stepping` model that take about so long."""
    return np.maximum(1, np.round(np.asarray(seconds) / seconds_of_a_step(model)))[:, None]


@dataclass
class Run:
    """An open loop, and what the server wrote of each request: its own times in seconds, in the order of arrival."""

    result: LoadResult
    received: np.ndarray
    started: np.ndarray
    finished: np.ndarray
    batch: np.ndarray
    number: np.ndarray  # which of the requests it is

    @property
    def waits(self) -> np.ndarray:
        return self.started - self.received


def bodies(rows: np.ndarray) -> list[bytes]:
    """Return one body a row, however many there are."""
    return [bodies_of(row[None])[0] for row in rows]


def send(url: str, rows: Sequence[bytes], due: np.ndarray, **how: Any) -> LoadResult:
    """Load a server by an open loop, and return all of its requests."""
    with Sender(address_of(url), rows, due, **how) as sender:
        return sender.run()


def settled(result: LoadResult) -> LoadResult:
    """Return a run without its first tenth."""
    kept = result.intended >= SKIP * result.seconds
    times = (x[kept] - SKIP * result.seconds for x in (result.intended, result.started, result.finished))
    return LoadResult(*times, result.ok[kept], (1 - SKIP) * result.seconds, result.metadata)


def warm(server: Served, row: Any) -> None:
    """Ask some times; the trace names these requests."""
    for _ in range(WARM):
        status, answer = server.predict([row], X_Request_Id="warm")
        assert status == 200, answer


@contextmanager
def traced(model: Path, *options: str) -> Iterator[tuple[Served, Path]]:
    """Serve a model that writes a trace."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.csv")
        with served(model, *options, "--trace", str(trace), *PATIENT) as server:
            yield server, trace


def read_trace(trace: Path, result: LoadResult) -> Run:
    """Return a run with what the server's trace says of its requests; read it when the server has ended."""
    with trace.open() as file:
        rows = [row for row in csv.DictReader(file) if row["request_id"] != "warm" and row["code"] == "200"]
    number, received, started, finished, batch = (
        np.array([float(row[name]) for row in rows])
        for name in ("request_id", "received", "started", "finished", "batch")
    )
    order = np.argsort(received, kind="stable")
    columns = [x[order] for x in (received, started, finished, batch, number.astype(int))]
    return Run(result, *columns)


def measure(model: Path, rows: np.ndarray, due: np.ndarray, *options: str) -> Run:
    """Serve a model, send a row at each of the times due, and return both sides of it."""
    data = bodies(rows)
    with traced(model, *options) as (server, trace):
        warm(server, rows[0].tolist())
        result = send(server.url, data, due, timeout=60.0)
        server.process.terminate()
        server.process.wait()
        return read_trace(trace, result)

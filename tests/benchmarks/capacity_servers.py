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

import numpy as np

from tests.tinybench.servers import Served, repeating, save_graph, served
from tinybench.latency import measure_latency
from tinybench.load import LoadResult, closed_loop
from tinybench.tools.serving.client import Users, address_of, bodies_of
from tinybench.tools.serving.models import load_model
from tinybench.tools.serving.sender import Sender

ALONE = ("--max-batch", "1", "--workers", "1")
PATIENT = ("--timeout", "60s", "--max-queue", "20000")
WARM, SKIP = 30, 0.1  # requests before a run, and the share of it that does not count: the queue begins empty


@cache
def stepping(folder: Path) -> Path:
    """Write a model of rows of one number, which multiplies a 256 × 256 matrix as many times as the number says."""
    from onnx import helper

    step = [
        helper.make_node("MatMul", ["before", "weights"], ["product"]),
        helper.make_node("Tanh", ["product"], ["after"]),
    ]
    weights = np.random.default_rng(0).normal(0, 0.1, (256, 256))
    return repeating(folder / "steps.onnx", step, begin=np.full((1, 256), 0.5), weights=weights)


@cache
def layered(folder: Path) -> Path:
    """Write a dense network of rows of 32 numbers: a single row waits for its weights, many rows share them."""
    from onnx import helper, numpy_helper

    rng, nodes, constants, name = np.random.default_rng(0), [], [], "x"
    for i, (rows, columns) in enumerate(pairwise([32, 2048, 2048, 2048, 2048, 10])):
        weights = rng.normal(0, rows**-0.5, (rows, columns)).astype(np.float32)
        constants.append(numpy_helper.from_array(weights, f"w{i}"))
        last = columns == 10
        nodes.append(helper.make_node("MatMul", [name, f"w{i}"], ["y" if last else f"m{i}"]))
        if not last:
            nodes.append(helper.make_node("Relu", [f"m{i}"], [f"r{i}"]))
        name = f"r{i}"
    return save_graph(folder / "layers.onnx", nodes, [32], constants=constants)


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
    """What a server wrote of each request: its own times in seconds, in the order of arrival."""

    received: np.ndarray
    started: np.ndarray
    finished: np.ndarray
    batch: np.ndarray
    number: np.ndarray  # which of the requests it is

    @property
    def waits(self) -> np.ndarray:
        return self.started - self.received

    @property
    def came(self) -> np.ndarray:
        return self.received - self.received[0]

    def occupied(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the size of each batch, and for how long it kept the server from the next, in seconds."""
        starts, first = np.unique(self.started, return_index=True)
        order = np.argsort(self.started, kind="stable")
        written = np.maximum.reduceat(self.finished[order], np.searchsorted(self.started[order], starts))
        return self.batch[first], np.minimum(written, np.append(starts[1:], np.inf)) - starts


def bodies(rows: np.ndarray) -> list[bytes]:
    """Return one body a row, however many there are."""
    return [bodies_of(row[None])[0] for row in rows]


def send(url: str, rows: np.ndarray, due: np.ndarray) -> LoadResult:
    """Load a server by an open loop that sends rows in turn, and return all of its requests."""
    with Sender(address_of(url), bodies(rows), due, timeout=60.0) as sender:
        return sender.run()


def two_users(server: Served, rows: np.ndarray, seconds: float) -> LoadResult:
    """Load a server by two users, of whom one always waits."""
    users = Users(address_of(server.url), bodies(rows), 60.0)
    result = closed_loop(users.send, 2, 0.0, seconds)
    users.close()
    return result


def settled(result: LoadResult) -> LoadResult:
    """Return a run without its first tenth."""
    kept = result.intended >= SKIP * result.seconds
    times = (x[kept] - SKIP * result.seconds for x in (result.intended, result.started, result.finished))
    return LoadResult(*times, result.ok[kept], (1 - SKIP) * result.seconds, result.metadata)


def p99(result: LoadResult) -> float:
    """Return the 99th percentile of a run without its first tenth."""
    return float(np.quantile(settled(result).latencies, 0.99))


def warm(server: Served, row: np.ndarray) -> None:
    """Ask some times; the trace names these requests."""
    for _ in range(WARM):
        status, answer = server.predict([row.tolist()], X_Request_Id="warm")
        assert status == 200, answer


@contextmanager
def traced(model: Path, *options: str) -> Iterator[tuple[Served, Path]]:
    """Serve a model that writes a trace."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.csv")
        with served(model, *options, "--trace", str(trace), *PATIENT) as server:
            yield server, trace


def ended(server: Served, trace: Path) -> Run:
    """End a server, and return what its trace says of the requests."""
    server.process.terminate()
    server.process.wait()
    with trace.open() as file:
        rows = [row for row in csv.DictReader(file) if row["request_id"] != "warm" and row["code"] == "200"]
    rows.sort(key=lambda row: float(row["received"]))
    columns = (np.array([float(row[name]) for row in rows]) for name in ("received", "started", "finished", "batch"))
    return Run(*columns, np.array([int(row["request_id"]) for row in rows]))


def measure(model: Path, rows: np.ndarray, due: np.ndarray, *options: str) -> tuple[Run, LoadResult]:
    """Serve a model, send rows in turn at the times due, and return both sides of it."""
    with traced(model, *options) as (server, trace):
        warm(server, rows[0])
        result = send(server.url, rows, due)
        return ended(server, trace), result

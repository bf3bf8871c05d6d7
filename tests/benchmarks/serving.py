"""What `capacity` and `load` share: models of known work, served and loaded, and what the server's trace says."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

from tests.tinybench.servers import Served, repeating, served
from tinybench.latency import measure_latency
from tinybench.load import LoadResult, closed_loop
from tinybench.support.basics.layer_networks import initial_layers, save_layers
from tinybench.tools.serving.client import Users, address_of
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
def layered(folder: Path, *sizes: int) -> Path:
    """Write a dense network. One of 50 MB: a single row waits for its weights, many rows share them."""
    return save_layers(initial_layers(sizes or (32, 2048, 2048, 2048, 2048, 10), 0), folder / f"layers{sizes}.onnx")


@cache
def seconds_of_a_step(model: Path) -> float:
    session = load_model(str(model), 1)
    rows = [np.full((1, 1), steps, np.float32) for steps in (100, 600)]
    short, long = (measure_latency(session, row, measurement_runs=30).median for row in rows)
    return (long - short) / 500


def steps_for(model: Path, seconds: Sequence[float] | np.ndarray) -> np.ndarray:
    return np.maximum(1, np.round(np.asarray(seconds) / seconds_of_a_step(model)))[:, None]


def occupied(run: np.recarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the size of each batch, and for how long it kept the server from the next, in seconds."""
    starts, first = np.unique(run.started, return_index=True)
    order = np.argsort(run.started, kind="stable")
    written = np.maximum.reduceat(run.finished[order], np.searchsorted(run.started[order], starts))
    return run.batch[first], np.minimum(written, np.append(starts[1:], np.inf)) - starts


def bodies(rows: np.ndarray) -> list[bytes]:
    return [json.dumps({"inputs": [row]}).encode() for row in rows.tolist()]


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


def simulated(came: np.ndarray, ends: np.ndarray, seconds: float) -> LoadResult:
    """Return a run of so many seconds that was not real."""
    return LoadResult(came, came, ends, np.ones(len(came), bool), seconds, {"loop": "open"})


def settled(result: LoadResult) -> LoadResult:
    kept = result.intended >= SKIP * result.seconds
    times = (x[kept] - SKIP * result.seconds for x in (result.intended, result.started, result.finished))
    return LoadResult(*times, result.ok[kept], (1 - SKIP) * result.seconds, result.metadata)


def p99(result: LoadResult) -> float:
    return float(np.quantile(settled(result).latencies, 0.99))


def warm(server: Served, row: np.ndarray) -> None:
    """Ask some times; the trace names these requests."""
    for _ in range(WARM):
        status, answer = server.predict([row.tolist()], X_Request_Id="warm")
        assert status == 200, answer


@contextmanager
def traced(model: Path, *options: str) -> Iterator[tuple[Served, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.csv")
        with served(model, *options, "--trace", str(trace), *PATIENT) as server:
            yield server, trace


def ended(server: Served, trace: Path) -> np.recarray:
    """End a server, and return what its trace says of the requests that it answered, in the order of arrival.

    Times are the server's own, in seconds.
    """
    server.process.terminate()
    server.process.wait()
    rows = np.genfromtxt(trace, "U40,f8,f8,f8,i8,i8", delimiter=",", names=True, encoding="utf-8")
    rows = rows[(rows["request_id"] != "warm") & (rows["code"] == 200)]
    return np.sort(rows, order="received").view(np.recarray)


def beforehand(model: Path, rows: np.ndarray, seconds: float) -> np.ndarray:
    """Return how long each row of a cycle occupies the server, by two users of whom one always waits: medians."""
    with traced(model, *ALONE) as (server, trace):
        warm(server, rows[0])
        two_users(server, rows, seconds)
        run = ended(server, trace)
    found, which = occupied(run)[1], run.request_id.astype(int) % len(rows)
    return np.array([np.median(found[which == row]) for row in range(len(rows))])  # with a warning if one never came


def measure(model: Path, rows: np.ndarray, due: np.ndarray, *options: str) -> tuple[np.recarray, LoadResult]:
    """Serve a model, send rows in turn at the times due, and return both sides of it."""
    with traced(model, *options) as (server, trace):
        warm(server, rows[0])
        result = send(server.url, rows, due)
        return ended(server, trace), result

"""Leaderboards to test with: an Olympics on a small scale, models that are really made, and scores that are made up."""

from __future__ import annotations

import dataclasses
import random
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import httpx
import numpy as np
import uvicorn
from onnx import TensorProto, helper, numpy_helper

from autograder import time_limits
from autograder.leaderboard import digits
from autograder.leaderboard.entry.validate import check
from autograder.leaderboard.settings import Baseline, Effort, Olympics, Quota, Task, load
from autograder.leaderboard.store import jobs
from autograder.leaderboard.store.store import Store
from autograder.leaderboard.web import connection_timeouts
from autograder.leaderboard.web.app import create_app
from tinybench.course.case_study_data import FEATURES

TOMORROW = datetime.now(UTC) + timedelta(days=1)


def small_olympics(**changes: Any) -> Olympics:
    """The real events, measured with little effort: a real measurement, and a quick one."""
    small = {
        "deadline": TOMORROW,
        "task": Task(public_rows=128, private_rows=128, batch=16),
        "baseline": Baseline(hidden=(32,), iterations=3),
        "referee": Effort(processes=2, rounds=3, widest=1000),  # two processes say next to nothing
        "quota": Quota(per_day=1000),
    }
    return dataclasses.replace(load(), **{**small, **changes})


def dense(hidden: int = 8, seed: int = 0) -> bytes:
    """A valid entry of one hidden layer with random weights: each seed is another file."""
    rng = np.random.default_rng(seed)
    first = rng.normal(0, 0.05, (FEATURES, hidden)).astype(np.float32)
    last = rng.normal(0, 0.5, (hidden, digits.CLASSES)).astype(np.float32)
    return model(
        [
            helper.make_node("MatMul", ["digits", "first"], ["sums"]),
            helper.make_node("Relu", ["sums"], ["units"]),
            helper.make_node("MatMul", ["units", "last"], ["logits"]),
            helper.make_node("Softmax", ["logits"], ["scores"]),
        ],
        [numpy_helper.from_array(first, "first"), numpy_helper.from_array(last, "last")],
    ).SerializeToString()


def model(nodes: Any, constants: Any = (), **changes: Any) -> Any:
    """An ONNX model with the signature of the task."""
    graph = helper.make_graph(
        list(nodes),
        "entry",
        changes.pop("inputs", [helper.make_tensor_value_info("digits", TensorProto.FLOAT, [None, FEATURES])]),
        changes.pop("outputs", [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, digits.CLASSES])]),
        list(constants),
    )
    options: dict[str, Any] = {"opset_imports": [helper.make_opsetid("", 21)], "ir_version": 10, **changes}
    return helper.make_model(graph, **options)


@cache
def trained(hidden: int = 16) -> bytes:
    """A small network that really reads digits."""
    return digits.train_baseline(Baseline((hidden,), 8))


def made_up_scores(rng: random.Random, size: int = 100_000) -> dict[str, Any]:
    """Scores as the referee writes them."""
    skill = rng.random()
    latency, memory = 1.6 ** rng.uniform(-7, 1), 1.5 ** rng.uniform(-4, 1)
    right = round(4320 * (0.78 + 0.17 * skill**0.5 * min(1, 0.8 + latency)))
    return {
        "latency": {"ratio": [latency, latency * 0.97, latency * 1.03], "seconds": latency * 1.9e-3},
        "memory": {
            "ratio": [memory, memory * 0.99, memory * 1.01],
            "bytes": memory * 8.4e6,
            "stages": {"load": memory * 8.4e6, **dict.fromkeys(("first call", "second call", "steady"), memory * 6e6)},
        },
        "size": {"bytes": size, "ratio": size / 2_144_563},
        "accuracy": {"public": [right, 4320], "private": [right - 20, 4320]},
    }


def fill(store: Store, olympics: Olympics, entries: int, students: int) -> None:
    """Put measured entries into a store, the way a worker does, with made-up scores."""
    rng = random.Random(0)
    names = [f"student {number}" for number in range(students)]
    people = [store.student(store.add_token(name, 1)) for name in names]
    for number in range(entries):
        data = dense(1 + number % 7, number)
        event = olympics.events[number % len(olympics.events)].id
        store.enter(people[number % students], event, f"model {number}.onnx", data, check(data), Quota(10_000))
        job = jobs.claim(store, "made up")
        assert job
        jobs.finish(store, job, made_up_scores(rng, len(data)), {})


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an application on a real socket and yield its address."""
    server = uvicorn.Server(connection_timeouts.config(app, port=0, lifespan="off"))
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # who connects before the server runs waits for it
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def wait_until(reached: Callable[[], object], seconds: float = 300) -> None:
    deadline = time.monotonic() + time_limits.wall(seconds)
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def answers(address: str) -> bool:
    """Whether a server has come up."""
    with suppress(httpx.HTTPError):
        return httpx.get(address, timeout=time_limits.wall(5)).is_success
    return False


def main(port: int = 8017, entries_count: int = 5000) -> None:
    """Serve a full board to measure the server with: ``python -m tests.leaderboard.boards``."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        store, olympics = Store(f"sqlite:///{folder}/leaderboard.db"), load()
        fill(store, olympics, entries_count, entries_count)
        print(f"serving {entries_count} entries on port {port}", flush=True)
        uvicorn.Server(connection_timeouts.config(create_app(store, olympics), port=port)).run()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

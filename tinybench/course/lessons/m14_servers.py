"""Servers and users for module 14: a server with planned stalls, simulated users who measure latency, and a figure."""

from __future__ import annotations

import http.client
import json
import math
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from tinybench.course.accessible_figures import OKABE_ITO
from tinybench.support.basics.numbers import number_of
from tinybench.tools.serving.child_servers import serving

BLUE, RED = OKABE_ITO[:2]


class Run(NamedTuple):
    """The intended start time and the latency of each request, in seconds. Latency counts from the intended start."""

    start: np.ndarray
    latency: np.ndarray

    def percentile(self, q: float) -> float:
        """Return the smallest latency within which at least `q` percent of the requests were answered."""
        return float(np.quantile(self.latency, q / 100, method="inverted_cdf"))


@contextmanager
def served_model(model: Path, *options: str, seconds: float = 60.0) -> Iterator[str]:
    """Serve an .onnx file with `tinybench serve` in a subprocess, one row per call, and yield the server's URL.

    If the server is not ready within `seconds`, raise ValueError with the server's output.
    """
    with serving([[str(model), "--max-batch", "1", *options]], seconds) as [url]:
        yield url


@contextmanager
def stalling_server(stall: str = "", seconds: float = 60.0) -> Iterator[str]:
    """Serve a small model, and yield the server's URL. ``stall="0.3s/3s"`` stops the server for 0.3 s in every 3 s."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, n]) for name, n in (("x", 4), ("y", 3)))
    weights = numpy_helper.from_array(np.eye(4, 3, dtype=np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "small", [x], [y], [weights])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "small.onnx"
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
        with served_model(path, *(["--stall", stall] if stall else []), seconds=seconds) as url:
            yield url


class RowSender:
    """A client that sends one row to a server's `/predict`. Each thread has its own connection."""

    def __init__(self, url: str, timeout: float = 10.0) -> None:
        self.address, self.timeout, self.mine = urlsplit(url).netloc, timeout, threading.local()
        self.body = json.dumps({"inputs": [[1.0, 2.0, 3.0, 4.0]]}).encode()
        self.connections: list[http.client.HTTPConnection] = []

    def __call__(self, _: int = 0) -> bool:
        """Send one request, and return True if the server answered with status 200."""
        if not hasattr(self.mine, "connection"):
            self.mine.connection = http.client.HTTPConnection(self.address, timeout=self.timeout)
            self.connections.append(self.mine.connection)
        self.mine.connection.request("POST", "/predict", self.body, {"Content-Type": "application/json"})
        with self.mine.connection.getresponse() as answer:
            answer.read()
            return bool(answer.status == 200)

    def __enter__(self) -> RowSender:
        self()  # a warm-up: the first answer is the slowest
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.connections:
            connection.close()


def one_user(send: Callable[[], Any], seconds: float, think: float = 0.009) -> Run:
    """Simulate one user, who sends a request, waits for the answer, thinks for `think` seconds, and sends again."""
    rows, begin = [], time.perf_counter()
    while (start := time.perf_counter() - begin) < seconds:
        send()
        rows.append((start, time.perf_counter() - begin - start))
        time.sleep(think)
    return Run(*np.array(rows).T)


def many_users(send: Callable[[], Any], seconds: float, rate: float = 100.0, seed: int = 0) -> Run:
    """Send requests at independent random times, whether or not earlier requests have been answered."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds)))
    latency, begin = np.full(len(start), math.inf), time.perf_counter() + 0.1

    def ask(i: int) -> None:
        send()
        latency[i] = time.perf_counter() - begin - start[i]

    with ThreadPoolExecutor(200) as users:
        for i, moment in enumerate(start):
            time.sleep(max(0.0, begin + moment - time.perf_counter()))
            users.submit(ask, i)
    return Run(start, latency)


def side_by_side(stall: str = "0.3s/3s", seconds: float = 6.0) -> tuple[Run, Run]:
    """Measure two servers with the same stalls at the same time, one with one user, one with many. Return both runs."""
    with (
        stalling_server(stall) as first, stalling_server(stall) as second,
        RowSender(first) as alone, RowSender(second) as crowd, ThreadPoolExecutor(1) as aside,
    ):  # fmt: skip
        waiting = aside.submit(one_user, alone, seconds)
        many = many_users(crowd, seconds)
        return waiting.result(), many


def figure_of_omission(one: Run, many: Run) -> dict[str, Any]:
    """Return arguments for `show_figure`: all latencies over time, and the p99, for one user and for many users."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(7, 3.3), sharex=True, sharey=True, layout="constrained")
    for axes, name, run, color, marker in zip(
        panels, ("one user, who waits", "many users"), (one, many), (BLUE, RED), "os", strict=True
    ):
        axes.plot(run.start, run.latency * 1e3, marker, color=color, markersize=3, alpha=0.6)
        axes.axhline(run.percentile(99) * 1e3, color="black", linestyle="--")
        place = {"xy": (0.03, run.percentile(99) * 1e3), "xycoords": ("axes fraction", "data")}
        axes.annotate(f"p99 {run.percentile(99) * 1e3:.3g} ms", **place, xytext=(0, 4), textcoords="offset points")
        axes.set(title=name, xlabel="time (s)", yscale="log")
    highest = 1e3 * max(run.latency.max() for run in (one, many))
    panels[0].set(ylabel="latency (ms)", ylim=(None, 3 * highest))  # room for the text above a line
    slow = [int(np.sum(run.latency > 0.02)) for run in (one, many)]
    p99 = [run.percentile(99) * 1e3 for run in (one, many)]
    counts = [len(run.latency) for run in (one, many)]
    told = (
        f"{slow[0]} of {number_of(counts[0], 'request')} of the one user took more than 20 ms, "
        f"and {slow[1]} of {counts[1]} of the many users."
    )
    return {
        "figure": figure,
        "alt": f"Latency over time, on a logarithmic axis. {told} "
        f"The p99 is {p99[0]:.3g} ms on the left and {p99[1]:.3g} ms on the right.",
        "caption": f"{told} So one reports a p99 of {p99[0]:.3g} ms and the other of {p99[1]:.3g} ms, "
        "though both servers stop alike.",
        "data": {"who": ["one user", "many users"], "requests": counts, "slower than 20 ms": slow, "p99 (ms)": p99},
    }


def simulated_stall(seconds: float = 10_000.0, stall: float = 1.0, period: float = 10.0) -> tuple[Run, Run]:
    """Simulate one user and many users of a server that stalls for `stall` seconds in every `period` seconds.

    The server takes 1 ms for a request. The one user thinks for 9 ms after each answer. The many users send 100
    requests a second. Return both runs. All times are computed, not measured.
    """
    rng = np.random.default_rng(0)

    def served(moment: float) -> float:
        left = period - moment % period
        return moment + (left if left <= stall else 0.0) + 0.001

    alone, moment = [], 0.0
    while moment < seconds:
        alone.append((moment, served(moment) - moment))
        moment += alone[-1][1] + 0.009
    arrivals, free = np.sort(rng.uniform(0, seconds, rng.poisson(100 * seconds))), 0.0
    latency = np.empty(len(arrivals))
    for i, moment in enumerate(arrivals.tolist()):
        free = served(max(free, moment))
        latency[i] = free - moment
    return Run(*np.array(alone).T), Run(arrivals, latency)


class Desk:
    """A server inside this process. It serves one request at a time and takes `service` seconds for each."""

    def __init__(self, service: float) -> None:
        self.service, self.free = service, threading.Lock()

    def __call__(self, _: int = 0) -> None:
        """Wait until no other request is being served, then serve this one."""
        with self.free:
            time.sleep(self.service)


class Stage:
    """A simulated clock and thread pool, to test a load generator's loop without waiting.

    Only `sleep` and `submit` advance the clock. Each sleep lasts `oversleeps` seconds too long, and each `submit` takes
    `busy` seconds. A loop that reads the clock `patience` times while it stands still would never end, and gets an
    AssertionError.
    """

    patience = 200

    def __init__(self, oversleeps: float = 0.0, busy: float = 0.0) -> None:
        self.now, self.oversleeps, self.busy = 50.0, oversleeps, busy
        self.sent: list[tuple[int, float]] = []
        self.read, self.readings = self.now, 0  # the latest reading, and how often it was read

    def clock(self) -> float:
        """Return the simulated time in seconds."""
        self.readings = self.readings + 1 if self.now == self.read else 1
        self.read = self.now
        assert self.readings < self.patience, (
            f"your loop read the clock {self.patience} times while it stood still at {self.now:g} s: it waits by"
            " reading the clock (busy waiting), which takes a core from the server that it measures; use sleep(pause)"
        )
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the clock by `seconds` plus `oversleeps`."""
        assert seconds >= 0, f"you sleep for {seconds:.3g} s: a start that has passed is no reason to sleep"
        self.now += seconds + self.oversleeps

    def submit(self, function: Callable[[int], Any], i: int) -> Future[Any]:
        """Record the time of sending, run the function at once, and return its result as a future."""
        self.sent.append((i, self.now))
        answer: Future[Any] = Future()
        try:
            answer.set_result(function(i))
        except Exception as error:
            answer.set_exception(error)
        self.now += self.busy
        return answer


def queue_latencies(rng: np.random.Generator, rate: float, number: int, service: float = 1.0) -> np.ndarray:
    """Simulate Poisson arrivals at one server with exponential service times. Return the steady-state latencies."""
    gaps = rng.exponential(1 / rate, number + 2000)
    work = rng.exponential(service, number + 2000)
    ahead = np.concatenate([[0.0], np.cumsum(work[:-1] - gaps[1:])])
    return np.asarray((ahead - np.minimum.accumulate(ahead) + work)[2000:])


def coverage(
    intervals: Sequence[Callable[[np.ndarray, float], tuple[float, float]]], rate: float, runs: int, number: int
) -> list[tuple[float, int]]:
    """Return a pair for each method: the proportion of its p99 intervals that contain the true p99, and their number.

    `intervals` are functions that compute a confidence interval from simulated latencies. A function that raises
    ValueError gives no interval for that run.
    """
    rng, truth = np.random.default_rng(1), math.log(100) / (1 - rate)
    found: list[list[bool]] = [[] for _ in intervals]
    for _ in range(runs):
        latencies = queue_latencies(rng, rate, number)
        for interval, held in zip(intervals, found, strict=True):
            try:
                low, high = interval(latencies, 99)
            except ValueError:
                continue
            held.append(low <= truth <= high)
    return [(float(np.mean(held)) if held else math.nan, len(held)) for held in found]


class GaugedLine(ThreadPoolExecutor):
    """A pool with one thread, which acts as a queue with one server, and a gauge of the requests inside it.

    A separate thread reads the gauge about every millisecond. It knows nothing of the times of requests.
    """

    def __init__(self) -> None:
        super().__init__(1)
        self._inside, self._lock, self._over = 0, threading.Lock(), threading.Event()
        self.readings: list[int] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _count(self, change: int) -> None:
        with self._lock:
            self._inside += change

    def _read(self) -> None:
        while not self._over.wait(1e-3):
            self.readings.append(self._inside)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **keywords: Any) -> Future[Any]:
        """Count a request until it is answered."""
        self._count(1)
        future = super().submit(fn, *args, **keywords)
        future.add_done_callback(lambda _: self._count(-1))
        return future

    def shutdown(self, *args: Any, **keywords: Any) -> None:
        """Stop the gauge when the last request is answered."""
        super().shutdown(*args, **keywords)
        self._over.set()
        self._reader.join()

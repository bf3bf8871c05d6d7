"""Servers and users for module 14: a server that stops by order, those who measure it, and what they report."""

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

from tinybench.course.figures import OKABE_ITO
from tinybench.support.basics.numbers import number_of
from tinybench.tools.serving.child_servers import serving

BLUE, RED = OKABE_ITO[:2]


class Run(NamedTuple):
    """When requests were meant to start, and how long their users waited, in seconds."""

    start: np.ndarray
    latency: np.ndarray

    def percentile(self, q: float) -> float:
        """Return the smallest latency that at least `q` percent of the requests do not exceed."""
        return float(np.quantile(self.latency, q / 100, method="inverted_cdf"))


@contextmanager
def served_model(model: Path, *options: str, seconds: float = 60.0) -> Iterator[str]:
    """Run `tinybench serve` with an .onnx file in a process of its own, one row a call, and yield its URL.

    ValueError with the server's message if it is not ready within `seconds`.
    """
    with serving([[str(model), "--max-batch", "1", *options]], seconds) as [url]:
        yield url


@contextmanager
def stalling_server(stall: str = "", seconds: float = 60.0) -> Iterator[str]:
    """Serve a small model, and give its URL; `stall`, such as ``"0.3s/3s"``, stops it so long in every so long."""
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
    """Sends one row to a server's `/predict`, and says whether it was answered; each thread has its connection."""

    def __init__(self, url: str, timeout: float = 10.0) -> None:
        self.address, self.timeout, self.mine = urlsplit(url).netloc, timeout, threading.local()
        self.body = json.dumps({"inputs": [[1.0, 2.0, 3.0, 4.0]]}).encode()
        self.connections: list[http.client.HTTPConnection] = []

    def __call__(self, _: int = 0) -> bool:
        """Send one request; return True if the server answered 200."""
        if not hasattr(self.mine, "connection"):
            self.mine.connection = http.client.HTTPConnection(self.address, timeout=self.timeout)
            self.connections.append(self.mine.connection)
        self.mine.connection.request("POST", "/predict", self.body, {"Content-Type": "application/json"})
        with self.mine.connection.getresponse() as answer:
            answer.read()
            return bool(answer.status == 200)

    def __enter__(self) -> RowSender:
        self()  # the first answer is the slowest
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.connections:
            connection.close()


def one_user(send: Callable[[], Any], seconds: float, think: float = 0.009) -> Run:
    """Send, wait for the answer, think, and send again."""
    rows, begin = [], time.perf_counter()
    while (start := time.perf_counter() - begin) < seconds:
        send()
        rows.append((start, time.perf_counter() - begin - start))
        time.sleep(think)
    return Run(*np.array(rows).T)


def many_users(send: Callable[[], Any], seconds: float, rate: float = 100.0, seed: int = 0) -> Run:
    """Send when users come who know nothing of each other, whether or not the others have their answers."""
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
    """Return what one user sees of a server that stops by order, and what many see of another one."""
    with (
        stalling_server(stall) as first, stalling_server(stall) as second,
        RowSender(first) as alone, RowSender(second) as crowd, ThreadPoolExecutor(1) as aside,
    ):  # fmt: skip
        waiting = aside.submit(one_user, alone, seconds)
        many = many_users(crowd, seconds)
        return waiting.result(), many


def figure_of_omission(one: Run, many: Run) -> dict[str, Any]:
    """Return what `show_figure` takes: every latency over time, and the p99 of either."""
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
    panels[0].set(ylabel="latency (ms)", ylim=(None, 3 * highest))  # room for what stands above a line
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
    """Return what one user (9 ms of thinking) and many (100 a second) would see of a server that takes 1 ms and stalls.

    A simulation: nobody measures, and nothing disturbs.
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
    """A server inside this process: one request at a time, each for so many seconds."""

    def __init__(self, service: float) -> None:
        self.service, self.free = service, threading.Lock()

    def __call__(self, _: int = 0) -> None:
        """Wait for the requests before this one, then serve this one."""
        with self.free:
            time.sleep(self.service)


class Stage:
    """A clock that only sleeping and sending move, and a pool that sends at once: for looking at a loop.

    Each sleep takes `oversleeps` more than asked, and handing over takes `busy` seconds.
    """

    def __init__(self, oversleeps: float = 0.0, busy: float = 0.0) -> None:
        self.now, self.oversleeps, self.busy = 50.0, oversleeps, busy
        self.sent: list[tuple[int, float]] = []

    def clock(self) -> float:
        """Return the simulated time in seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Move the clock on by `seconds` and by what the sleep takes too long."""
        assert seconds >= 0, f"you sleep for {seconds:.3g} s: a start that has passed is no reason to sleep"
        self.now += seconds + self.oversleeps

    def submit(self, function: Callable[[int], Any], i: int) -> Future[Any]:
        """Run the function at once, note when it was sent, and return its result as a future."""
        self.sent.append((i, self.now))
        answer: Future[Any] = Future()
        try:
            answer.set_result(function(i))
        except Exception as error:
            answer.set_exception(error)
        self.now += self.busy
        return answer


def queue_latencies(rng: np.random.Generator, rate: float, number: int, service: float = 1.0) -> np.ndarray:
    """Return simulated latencies of Poisson arrivals at one server with exponential service, from a steady start on."""
    gaps = rng.exponential(1 / rate, number + 2000)
    work = rng.exponential(service, number + 2000)
    ahead = np.concatenate([[0.0], np.cumsum(work[:-1] - gaps[1:])])
    return np.asarray((ahead - np.minimum.accumulate(ahead) + work)[2000:])


def coverage(
    intervals: Sequence[Callable[[np.ndarray, float], tuple[float, float]]], rate: float, runs: int, number: int
) -> list[tuple[float, int]]:
    """Return for some kinds of intervals for p99 how often they hold the truth, and how often they answer at all."""
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

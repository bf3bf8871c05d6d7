"""Helpers for module 16: a real server that receives shifted digits, simulated incidents, and false drift alarms."""

from __future__ import annotations

import http.client
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np

from tinybench.course.cache import cached_fit
from tinybench.course.lessons.m14_servers import served_model

SIDE = 8
QUESTIONS = {
    "requests / s": "sum(rate(tinybench_requests_total[5s]))",
    "p99 (s)": "histogram_quantile(0.99, sum by (le) (rate(tinybench_request_seconds_bucket[5s])))",
}
PHASES = ("as in training", "1 pixel to the right", "2 pixels to the right")


class Digits(NamedTuple):
    """A network trained on 600 digits, and two further sets of digits.

    `reference` is the set with which later requests are compared. `X` are the digits that users send, with the labels
    `y`.
    """

    network: Any
    reference: np.ndarray
    X: np.ndarray
    y: np.ndarray

    def save(self, path: Path) -> None:
        """Write the network as an .onnx file with ten probabilities as its output."""
        import onnx
        from skl2onnx import to_onnx

        model = to_onnx(self.network, self.X[:1], options={"zipmap": False})
        del model.graph.output[0]  # removes the labels, because the probabilities contain more
        onnx.save(model, path)


def digits_in_production() -> Digits:
    """Return a network trained on 600 digits, 397 other digits for the reference, and 800 others for the users."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(X))
    X, y = (X[order] / 16).astype(np.float32), y[order]
    network = MLPClassifier((64,), batch_size=50, max_iter=60, learning_rate_init=3e-3, random_state=0)
    return Digits(cached_fit(network, X[:600], y[:600]), X[600:997], X[997:], y[997:])


def moved_right(rows: np.ndarray, pixels: int) -> np.ndarray:
    """Return the digits, moved to the right by `pixels` pixels. Pixels that leave the picture are lost."""
    moved = np.zeros_like(rows).reshape(-1, SIDE, SIDE)
    moved[:, :, pixels:] = rows.reshape(-1, SIDE, SIDE)[:, :, : SIDE - pixels]
    return moved.reshape(rows.shape)


class Sent(NamedTuple):
    """The times and answers of requests, and the server's own measurements. Times are in seconds.

    ``phase`` is the number of pixels by which the digit of each request is shifted. ``probabilities`` are the answers,
    or NaN if there was no answer. ``reference`` holds the probabilities for the digits of the reference, and
    ``metrics`` the text of /metrics. ``truth`` holds the duration of every request, as recorded by the server.
    """

    start: np.ndarray
    latency: np.ndarray
    phase: np.ndarray
    probabilities: np.ndarray
    y: np.ndarray
    reference: np.ndarray
    metrics: str
    truth: np.ndarray

    @property
    def right(self) -> np.ndarray:
        """Whether each answer is right: whether its most probable class is the true label."""
        return np.asarray(self.probabilities.argmax(axis=1) == self.y)

    @property
    def answered(self) -> np.ndarray:
        """Whether each request was answered."""
        return np.asarray(~np.isnan(self.probabilities[:, 0]))

    @property
    def confidence(self) -> np.ndarray:
        """The largest probability of each answer."""
        return np.asarray(self.probabilities.max(axis=1))


class Client:
    """A client of a server's /predict. Each thread has its own connection."""

    def __init__(self, url: str) -> None:
        self.address, self.mine = urlsplit(url).netloc, threading.local()

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return the server's probabilities for some rows, or NaN if the request fails."""
        if not hasattr(self.mine, "connection"):
            self.mine.connection = http.client.HTTPConnection(self.address, timeout=10)
        try:
            self.mine.connection.request(
                "POST", "/predict", json.dumps({"inputs": rows.tolist()}), {"Content-Type": "application/json"}
            )
            with self.mine.connection.getresponse() as answer:
                return np.array(json.loads(answer.read())["outputs"], dtype=float)
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            self.mine.connection.close()
            return np.full((len(rows), 10), np.nan)


def send(client: Client, rows: np.ndarray, rate: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Send each row as one request at random (Poisson) times, on average `rate` requests a second.

    Return the intended start times, the latencies and the probabilities.
    """
    start = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, len(rows)))
    latency, probabilities = np.empty(len(rows)), np.empty((len(rows), 10))
    begin = time.perf_counter()

    def ask(i: int) -> None:
        probabilities[i] = client(rows[i : i + 1])[0]
        latency[i] = time.perf_counter() - begin - start[i]

    with ThreadPoolExecutor(32) as users:
        for i, moment in enumerate(start):
            time.sleep(max(0.0, begin + moment - time.perf_counter()))
            users.submit(ask, i)
    return start, latency, probabilities


def serve_and_shift(digits: Digits, rate: float = 130.0) -> Sent:
    """Serve the network with `tinybench serve`. Send 240 digits unchanged, 180 moved by 1 pixel, and 180 moved by 2."""
    phase = np.repeat([0, 1, 2], [240, 180, 180])
    X, y = digits.X[: len(phase)], digits.y[: len(phase)]
    rows = np.select([(phase == k)[:, None] for k in range(3)], [moved_right(X, k) for k in range(3)])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path, trace = Path(folder) / "digits.onnx", Path(folder) / "trace.csv"
        digits.save(path)
        with served_model(path, "--trace", str(trace)) as url:
            client = Client(url)
            reference = np.concatenate([client(digits.reference[i : i + 1]) for i in range(len(digits.reference))])
            start, latency, probabilities = send(client, rows, rate)
            metrics = urlopen(f"{url}/metrics").read().decode()
        received, finished = np.loadtxt(trace, delimiter=",", skiprows=1, usecols=(1, 3)).T
    return Sent(start, latency, phase, probabilities, y, reference, metrics, finished - received)


def buckets(metrics: str, name: str) -> tuple[list[float], list[float]]:
    """Return the upper bounds and cumulative counts of the buckets of the histogram `name` in the text of /metrics."""
    from prometheus_client.parser import text_string_to_metric_families

    samples = [sample for family in text_string_to_metric_families(metrics) for sample in family.samples]
    found = {float(s.labels["le"]): s.value for s in samples if s.name == f"{name}_bucket"}
    return list(found), list(found.values())


def ask_prometheus(digits: Digits, seconds: float = 2.5) -> Iterator[tuple[str, str, str]]:
    """Serve the network, send 100 requests a second while Prometheus scrapes the server, and yield query results.

    Two results are yielded, each as a tuple of a name, a Prometheus query and the value of the query. If Prometheus is
    not installed, yield a note about this first, and compute the values from /metrics, read before and after the
    requests.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "digits.onnx"
        digits.save(path)
        with served_model(path) as url, ExitStack() as stack:
            if shutil.which("prometheus") is None:
                yield "no Prometheus", "is installed here, so /metrics is read before and after", ""
                ask = _own_reader(url)
            else:
                from tinybench.tools.watching.prometheus_server import ScrapeTarget, start_prometheus

                prometheus = stack.enter_context(start_prometheus([ScrapeTarget(url)], interval=0.2))
                prometheus.wait_for("tinybench_requests_total")
                ask = prometheus.query
            send(Client(url), digits.X[: int(100 * seconds)], 100.0, seed=2)
            if shutil.which("prometheus"):
                prometheus.wait_for(f"{QUESTIONS['requests / s']} > 0")
            for name, question in QUESTIONS.items():
                found = ask(question)
                yield name, question, f"{found[0][1]:.3g}" if found else "nothing yet"


def _own_reader(url: str) -> Callable[[str], list[tuple[dict[str, str], float]]]:
    """Read /metrics, and return a substitute for Prometheus's `query` that compares a later reading with this one."""

    def look() -> tuple[float, str]:
        return time.monotonic(), urlopen(f"{url}/metrics").read().decode()

    begin, before = look()

    def ask(question: str) -> list[tuple[dict[str, str], float]]:
        end, after = look()
        (bounds, old), (_, new) = (buckets(text, "tinybench_request_seconds") for text in (before, after))
        grown = np.subtract(new, old)
        if "histogram_quantile" in question:
            return [({}, float(np.interp(0.99 * grown[-1], [0, *grown[:-1]], [0, *bounds[:-1]])))]
        return [({}, float(grown[-1] / (end - begin)))]

    return ask


def incidents(seed: int = 0) -> tuple[list[float], list[float]]:
    """Simulate six hours with two incidents. Return the minutely readings of two counters: failed and all requests.

    About 1000 requests arrive each minute, and usually 0.05 % of the requests fail. In minute 60, 25 % fail. From
    minute 150 to minute 190, 3 % fail.
    """
    rng, share = np.random.default_rng(seed), np.full(360, 0.0005)
    share[60], share[150:190] = 0.25, 0.03
    requests = rng.poisson(1000, 360)
    failed = rng.binomial(requests, share)
    return ([0.0, *np.cumsum(failed).astype(float).tolist()], [0.0, *np.cumsum(requests).astype(float).tolist()])


def binned_statistics(reference: np.ndarray, windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the population stability index (PSI) and the Kolmogorov–Smirnov (KS) distance of each window.

    Both compare a window with the reference. The arrays hold bin counts along the last axis. In the PSI, an empty bin
    counts as a proportion of 0.0001, as in most tools.
    """
    p, q = (counts / counts.sum(axis=-1, keepdims=True) for counts in (reference, windows))
    distance = np.abs(np.cumsum(p - q, axis=-1)).max(axis=-1)
    p, q = (np.maximum(share, 1e-4) for share in (p, q))
    return np.sum((p - q) * np.log(p / q), axis=-1), distance


def alarms_on_equal(sizes: Sequence[int], trials: int = 400, permutations: int = 99, m: int = 10_000) -> dict[str, Any]:
    """Return the false-alarm rates of four drift rules if the reference and the window have the same distribution.

    There is a rate for each window size in `sizes`. The reference has `m` values in ten bins.
    """
    rng, even = np.random.default_rng(3), np.full(10, 0.1)
    rates: dict[str, list[float]] = {name: [] for name in ("PSI > 0.1", "PSI > 0.2", "PSI, permuted", "KS, permuted")}
    for n in sizes:
        references, windows = rng.multinomial(m, even, trials), rng.multinomial(n, even, trials)
        found = binned_statistics(references, windows)
        as_much = np.ones((2, trials))
        for trial, pooled in enumerate(references + windows):
            drawn = rng.multivariate_hypergeometric(pooled, n, permutations, method="marginals")
            for row, values in enumerate(binned_statistics(pooled - drawn, drawn)):
                as_much[row, trial] += np.sum(values >= found[row][trial] - 1e-12)
        called = [found[0] > 0.1, found[0] > 0.2, *(as_much / (permutations + 1) <= 0.05)]
        for name, alarms in zip(rates, called, strict=True):
            rates[name].append(float(np.mean(alarms)))
    return {"n": list(sizes), "trials": trials, "rates": rates}


def looking_again(
    alarm: Callable[..., Any], ks: Callable[[Any, Any], float], streams: int = 300, length: int = 300,
) -> dict[str, list[int]]:  # fmt: skip
    """Return, for each method and each stream without drift, the number of values until the first alarm, or 0 for none.

    `alarm` creates a `DriftAlarm` from a reference of 100 independent values. One method runs a KS test once, at the
    end of the stream. Another runs a KS test on all values so far after every 20th value. Both use the 5 % threshold of
    a single test. The third method is the alarm.
    """
    rng = np.random.default_rng(4)
    first: dict[str, list[int]] = {"one KS test at the end": [], "a KS test every 20 values": [], "DriftAlarm": []}
    for _ in range(streams):
        reference, stream = rng.normal(size=100), rng.normal(size=length)
        looks = range(20, length + 1, 20)
        above = [n for n in looks if ks(reference, stream[:n]) > 1.358 * np.sqrt((100 + n) / (100 * n))]
        first["one KS test at the end"].append(length if length in above else 0)
        first["a KS test every 20 values"].append(above[0] if above else 0)
        betting = alarm(reference, spacing=1)
        rang = [i for i, value in enumerate(stream, 1) if betting.add(value)]
        first["DriftAlarm"].append(rang[0] if rang else 0)
    return first

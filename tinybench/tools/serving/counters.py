"""The server's counters as plain numbers, which prometheus_client formats as text only when /metrics is read."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

SECONDS = [m * 10.0**e for e in range(-4, 1) for m in (1.0, 2.5, 5.0)] + [10.0]
SIZES = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]


class Histogram:
    """A histogram: the number of values in each bucket, and the sum of all values."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Add a value to the histogram."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """Return Prometheus's cumulative buckets: pairs of an upper bound and the number of values up to that bound."""
        found, count = [], 0
        for bound, more in zip([*map(str, self.bounds), "+Inf"], self.counts, strict=True):
            count += more
            found.append((bound, float(count)))
        return found


class Metrics:
    """The metrics of a server: requests to /predict, batches, model times, worker restarts, and gauges."""

    def __init__(self, gauges: Mapping[str, Callable[[], int]], restarts: Callable[[], int]) -> None:
        # Prometheus would miss the first increase of a code that is not exported as 0 from the start
        self.codes = Counter({200: 0, 499: 0, 500: 0, 503: 0})
        self.started = time.time()
        self.request, self.batch, self.model = Histogram(SECONDS), Histogram(SIZES), Histogram(SECONDS)
        self.gauges, self.restarts = gauges, restarts
        self.more: list[Callable[[], Iterator[Any]]] = []  # functions that yield further metrics

    def on_batch(self, size: int, seconds: float) -> None:
        """Record the size of a batch that a worker has answered, and the seconds that the model took."""
        self.batch.add(size)
        self.model.add(seconds)

    def collect(self) -> Iterator[Any]:
        """Yield all metrics. prometheus_client calls this method."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        requests = CounterMetricFamily(
            "tinybench_requests", "Requests to /predict by status; 499: the client left before", labels=["code"]
        )
        for code, count in sorted(self.codes.items()):
            requests.add_metric([str(code)], count)
        yield requests
        for name, about, histogram in (
            ("tinybench_request_seconds", "From the request to the answer, of those answered with 200", self.request),
            ("tinybench_batch_size", "Requests in one call of a worker", self.batch),
            ("tinybench_model_seconds", "Seconds of the model itself in one call of a worker", self.model),
        ):
            family = HistogramMetricFamily(name, about)
            family.add_metric([], histogram.buckets(), histogram.total)
            yield family
        for about, gauge in self.gauges.items():
            name, _, about = about.partition(": ")
            yield GaugeMetricFamily(f"tinybench_{name}", about, gauge())
        yield GaugeMetricFamily("process_start_time_seconds", "When it began to count", self.started)
        yield CounterMetricFamily("tinybench_worker_restarts", "Workers that died", self.restarts())
        for collect in self.more:
            yield from collect()

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

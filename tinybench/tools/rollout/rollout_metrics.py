"""The rollout's own metrics, served at /metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tinybench.tools.rollout.tally import Tally

__all__ = ["own_metrics"]


class _Collector:
    def __init__(self, tally: Tally, share: Callable[[], float]) -> None:
        self.tally, self.share = tally, share

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        tally = self.tally
        yield CounterMetricFamily("tinybench_shadow_compared", "Mirrored requests compared", tally.compared)
        yield CounterMetricFamily("tinybench_shadow_disagreed", "Of these, answered differently", tally.disagreed)
        labelled = CounterMetricFamily("tinybench_labelled", "Answers whose label has come", labels=["correct"])
        labelled.add_metric(["true"], tally.right)
        labelled.add_metric(["false"], tally.wrong)
        yield labelled
        yield GaugeMetricFamily("tinybench_rollout_share", "Share of users with the new version", self.share())


@contextmanager
def own_metrics(tally: Tally, share: Callable[[], float]) -> Iterator[str]:
    """Serve the rollout's own metrics on a free port of this machine during the block. Yield the URL."""
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    registry.register(_Collector(tally, share))
    server, thread = start_http_server(0, "127.0.0.1", registry)
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

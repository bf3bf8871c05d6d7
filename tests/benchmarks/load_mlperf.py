"""MLPerf's LoadGen in front of a server: ``python -m tests.benchmarks.load_mlperf URL BODY RATE SECONDS FOLDER``."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import mlperf_loadgen as lg

THREADS = 512  # as many may wait in a stall of a second at 500 requests a second


def main(url: str, body: Path, rate: float, seconds: float, folder: Path) -> None:
    """Send Poisson arrivals, each from the next free thread on a connection of its own that stays open."""
    own, text, server = threading.local(), body.read_bytes(), urlsplit(url)

    def ask(query: Any) -> None:
        if not hasattr(own, "connection"):
            own.connection = HTTPConnection(server.hostname or "", server.port)
        own.connection.request("POST", "/predict", text, {"Content-Type": "application/json"})
        answer = own.connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        lg.QuerySamplesComplete([lg.QuerySampleResponse(query.id, 0, 0)])

    settings, logs = lg.TestSettings(), lg.LogSettings()
    settings.scenario, settings.mode = lg.TestScenario.Server, lg.TestMode.PerformanceOnly
    settings.server_target_qps, settings.server_target_latency_ns = rate, 10**9
    settings.min_duration_ms, settings.min_query_count = round(seconds * 1e3), round(rate * seconds)
    settings.server_target_latency_percentile = 0.99
    logs.log_output.outdir = str(folder)
    with ThreadPoolExecutor(THREADS) as pool:
        asked = lg.ConstructSUT(lambda queries: [pool.submit(ask, query) for query in queries] and None, lambda: None)
        library = lg.ConstructQSL(1, 1, lambda _: None, lambda _: None)
        lg.StartTestWithLogSettings(asked, library, settings, logs)
        lg.DestroyQSL(library)
        lg.DestroySUT(asked)


if __name__ == "__main__":
    address, file, *numbers, where = sys.argv[1:]
    main(address, Path(file), float(numbers[0]), float(numbers[1]), Path(where))

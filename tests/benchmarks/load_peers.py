"""Load generators side by side: each returns the p99 that it reports, in seconds, and the rate it came to."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.benchmarks.processes import child, in_child, printed
from tinybench.load import LoadResult

BODY = json.dumps({"inputs": [[5.1, 3.5, 1.4, 0.2]]})
THINK = 0.009  # s, of the users of closed loops: of about 100 requests a second each
THREADS = 512  # of MLPerf's LoadGen: as many may wait in a stall of a second at 500 requests a second
UNIT = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
JSON = {"Content-Type": "application/json"}
WRK = f"""wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = [==[{BODY}]==]
function delay() return {round(THINK * 1e3)} end
"""
LOCUST = f"""from locust import FastHttpUser, constant, task

class Person(FastHttpUser):
    wait_time = constant({THINK})

    @task
    def predict(self):
        self.client.post("/predict", data={BODY!r}, headers={JSON})
"""


class Report(NamedTuple):
    """What a tool says of a run; `rows` are those of an open loop that has each request's intended start."""

    p99: float | None
    rate: float
    rows: LoadResult | None = None
    why: str = ""


def search(pattern: str, text: str) -> str:
    """Return what a pattern finds, which must be there."""
    found = re.search(pattern, text)
    assert found, text
    return found[1]


def users(rate: float) -> int:
    return max(1, round(rate / 100))


def wrk(url: str, rate: float, seconds: float, folder: Path) -> Report:
    """Run wrk on one thread; its script makes each connection wait before every request."""
    (script := folder / "wrk.lua").write_text(WRK)
    how = ("-t1", f"-c{users(rate)}", "-d", f"{max(1, round(seconds))}s", "--timeout", "30s", "--latency")
    text = printed("wrk", *how, "-s", script, f"{url}/predict")
    assert "Non-2xx" not in text, text
    p99 = float(search(r"99%\s+([\d.]+)", text)) * UNIT[search(r"99%\s+[\d.]+(us|ms|s|m)\b", text)]
    return Report(p99, float(search(r"Requests/sec:\s+([\d.]+)", text)))


def hey(url: str, rate: float, seconds: float, folder: Path) -> Report:
    """Run hey with workers that are limited to 100 requests a second each."""
    limit = rate / users(rate)
    how = ("-z", f"{seconds:g}s", "-c", users(rate), "-q", f"{limit:g}", "-t", 30)
    text = printed("hey", *how, "-m", "POST", "-T", JSON["Content-Type"], "-d", BODY, f"{url}/predict")
    assert re.findall(r"\[(\d+)\]\s+\d+ responses", text) == ["200"], text
    return Report(float(search(r"99%+ in ([\d.]+) secs", text)), float(search(r"Requests/sec:\s+([\d.]+)", text)))


def locust(url: str, rate: float, seconds: float, folder: Path) -> Report:
    """Run locust without its page, with its faster client."""
    (file := folder / "locustfile.py").write_text(LOCUST)
    how = ("--headless", "-u", users(rate), "-r", users(rate), "-t", f"{max(1, round(seconds))}s", "--host", url)
    child("-m", "locust", "-f", file, *how, "--only-summary", "--csv", folder / "locust")
    with (folder / "locust_stats.csv").open(newline="") as table:
        total = next(row for row in csv.DictReader(table) if row["Name"] == "Aggregated")
    return Report(float(total["99%"]) / 1e3, float(total["Requests/s"]))


def mlperf(url: str, rate: float, seconds: float, folder: Path) -> Report:
    """Run MLPerf's LoadGen, scenario Server, in a process of its own; requests wait in threads."""
    in_child(generate, url, rate, seconds, str(folder))
    text = (folder / "mlperf_log_summary.txt").read_text()
    p99 = int(search(r"99.00 percentile latency \(ns\)\s*:\s*(\d+)", text)) / 1e9
    return Report(p99, float(search(r"Completed samples per second\s*:\s*([\d.]+)", text)))


def generate(url: str, rate: float, seconds: float, folder: str) -> None:
    """Send Poisson arrivals, each from the next free thread on a connection of its own that stays open."""
    import mlperf_loadgen as lg

    own, server = threading.local(), urlsplit(url)

    def ask(query: Any) -> None:
        if not hasattr(own, "connection"):
            own.connection = HTTPConnection(server.hostname or "", server.port)
        own.connection.request("POST", "/predict", BODY, JSON)
        answer = own.connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        lg.QuerySamplesComplete([lg.QuerySampleResponse(query.id, 0, 0)])

    settings, logs = lg.TestSettings(), lg.LogSettings()
    settings.scenario, settings.mode = lg.TestScenario.Server, lg.TestMode.PerformanceOnly
    settings.server_target_qps, settings.server_target_latency_ns = rate, 10**9
    settings.min_duration_ms, settings.min_query_count = round(seconds * 1e3), round(rate * seconds)
    settings.server_target_latency_percentile = 0.99
    logs.log_output.outdir = folder
    with ThreadPoolExecutor(THREADS) as pool:
        asked = lg.ConstructSUT(lambda queries: [pool.submit(ask, query) for query in queries] and None, lambda: None)
        library = lg.ConstructQSL(1, 1, lambda _: None, lambda _: None)
        lg.StartTestWithLogSettings(asked, library, settings, logs)
        lg.DestroyQSL(library)
        lg.DestroySUT(asked)


def ours(url: str, rate: float, seconds: float, folder: Path, *how: object) -> Report:
    """Run `tinybench load`; exit code 3 is that it refuses its percentile."""
    file = folder / "rows.csv"
    command = [sys.executable, "-m", "tinybench", "load", url, "--seconds", seconds, "--format", "json", "--save", file]
    command += how or ["--rate", rate, "--connections", 8000, "--timeout", "60s", "--seed", hash(str(folder)) % 1000]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    tail = found["latency"]["p99"]
    rows = None if how else LoadResult.load(file)
    return Report(tail["value"], found["rate_sent"], rows, "" if tail["value"] else tail["why"])


def ours_closed(url: str, rate: float, seconds: float, folder: Path) -> Report:
    return ours(url, rate, seconds, folder, "--closed", users(rate), "--think", f"{THINK * 1e3:g}ms")


OURS, CLOSED = "tinybench load", "tinybench load --closed"
TOOLS: dict[str, Callable[[str, float, float, Path], Report]] = {  # of address, rate, seconds, and an empty folder
    "wrk": wrk,
    "hey": hey,
    "locust": locust,
    CLOSED: ours_closed,
    "mlcommons_loadgen": mlperf,
    OURS: ours,
}
LOOPS = dict.fromkeys(TOOLS, "closed") | {"mlcommons_loadgen": "open", OURS: "open"}

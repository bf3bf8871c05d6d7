"""Load generators side by side: each returns the p99 that it reports, in seconds, and the rate it came to."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinybench.load import LoadResult

THINK = 0.009  # s, of the users of closed loops: of about 100 requests a second each

UNIT = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
WRK = """wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = [==[{body}]==]
function delay() return {think} end
"""
LOCUST = """from locust import FastHttpUser, constant, task

class Person(FastHttpUser):
    wait_time = constant({think})

    @task
    def predict(self):
        self.client.post("/predict", data={body!r}, headers={{"Content-Type": "application/json"}})
"""


@dataclass
class Report:
    """What a tool says of a run; `rows` are those of an open loop that has each request's intended start."""

    p99: float | None
    rate: float
    rows: LoadResult | None = None
    why: str = ""


Tool = Callable[[str, bytes, float, float, Path], Report]  # address, body, rate, seconds, an empty folder


def run(*command: object) -> str:
    """Return what a program prints; it must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{command[0]}: {done.stderr[-2000:]}{done.stdout[-2000:]}"
    return done.stdout


def users(rate: float) -> int:
    return max(1, round(rate / 100))


def wrk(url: str, body: bytes, rate: float, seconds: float, folder: Path) -> Report:
    """Run wrk on one thread; its script makes each connection wait before every request."""
    script = folder / "wrk.lua"
    script.write_text(WRK.format(body=body.decode(), think=round(THINK * 1e3)))
    length = f"{max(1, round(seconds))}s"
    text = run(
        "wrk", "-t1", f"-c{users(rate)}", "-d", length, "--timeout", "30s", "--latency", "-s", script, f"{url}/predict"
    )
    found = re.search(r"99%\s+([\d.]+)(us|ms|s|m)\b", text)
    reached = re.search(r"Requests/sec:\s+([\d.]+)", text)
    assert found, text
    assert reached, text
    assert "Non-2xx" not in text, text
    return Report(float(found[1]) * UNIT[found[2]], float(reached[1]))


def hey(url: str, body: bytes, rate: float, seconds: float, folder: Path) -> Report:
    """Run hey with so many workers, each limited to 100 requests a second."""
    file = folder / "body.json"
    file.write_bytes(body)
    limit = rate / users(rate)
    what = ("-z", f"{seconds:g}s", "-c", users(rate), "-q", f"{limit:g}", "-t", 30)
    text = run("hey", *what, "-m", "POST", "-T", "application/json", "-D", file, f"{url}/predict")
    assert re.findall(r"\[(\d+)\]\s+\d+ responses", text) == ["200"], text
    found = re.search(r"99%+ in ([\d.]+) secs", text)
    reached = re.search(r"Requests/sec:\s+([\d.]+)", text)
    assert found, text
    assert reached, text
    return Report(float(found[1]), float(reached[1]))


def locust(url: str, body: bytes, rate: float, seconds: float, folder: Path) -> Report:
    """Run locust without its page, with its faster client."""
    file = folder / "locustfile.py"
    file.write_text(LOCUST.format(think=THINK, body=body.decode()))
    people = users(rate)
    how = ("--headless", "-u", people, "-r", people, "-t", f"{max(1, round(seconds))}s", "--host", url)
    run(sys.executable, "-m", "locust", "-f", file, *how, "--only-summary", "--csv", folder / "locust")
    with (folder / "locust_stats.csv").open(newline="") as table:
        total = next(row for row in csv.DictReader(table) if row["Name"] == "Aggregated")
    return Report(float(total["99%"]) / 1e3, float(total["Requests/s"]))


def mlperf(url: str, body: bytes, rate: float, seconds: float, folder: Path) -> Report:
    """Run MLPerf's LoadGen, scenario Server, in a process of its own; requests wait in threads."""
    (folder / "body.json").write_bytes(body)
    run(sys.executable, "-m", "tests.benchmarks.load_mlperf", url, folder / "body.json", rate, seconds, folder)
    text = (folder / "mlperf_log_summary.txt").read_text()
    found = re.search(r"99.00 percentile latency \(ns\)\s*:\s*(\d+)", text)
    reached = re.search(r"Completed samples per second\s*:\s*([\d.]+)", text)
    assert found, text
    assert reached, text
    return Report(int(found[1]) / 1e9, float(reached[1]))


def ours(url: str, body: bytes, rate: float, seconds: float, folder: Path, *how: object) -> Report:
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


def ours_closed(url: str, body: bytes, rate: float, seconds: float, folder: Path) -> Report:
    """Run `tinybench load --closed`."""
    return ours(url, body, rate, seconds, folder, "--closed", users(rate), "--think", f"{THINK * 1e3:g}ms")


OURS, CLOSED = "tinybench load", "tinybench load --closed"
TOOLS: dict[str, Tool] = {
    "wrk": wrk,
    "hey": hey,
    "locust": locust,
    CLOSED: ours_closed,
    "mlcommons_loadgen": mlperf,
    OURS: ours,
}
LOOPS = dict.fromkeys(TOOLS, "closed") | {"mlcommons_loadgen": "open", OURS: "open"}

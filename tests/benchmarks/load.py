"""Which p99 do load generators report, and which would users suffer who do not wait for each other?

A real `tinybench serve` (one worker, no batches) answers each tool, a new process for every run. It stalls by order for
1 s in every 10 s, or not at all, and writes a trace: when each request was received and answered. The truth for
`tinybench load` joins it, by X-Request-Id, with the intended starts that were saved: from these until the server handed
the answers over. Others do not say when a request was meant to start. Their truth is what users would suffer who arrive
independently of each other at the tool's own rate: Poisson arrivals replayed through the service times of this run and
its stalls (`tinybench.load.simulate_queue`; a stall is a job that takes as long). The service time of a request is what
the server spent on it alone: from when it was received, or the answer before it was out, until its answer was out.

Beside them stands the p99 of the requests that the tool did send, as the server saw them. wrk reports more than that:
after the run it adds requests that were never sent, as if each connection had gone on at its mean pace (`stats_correct`
in its source, after Tene's HdrHistogram). Needs Debian's wrk and hey.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks.formats import bullets, grouped, ranged, table
from tests.benchmarks.harness import ONNX_RUNTIME, Benchmark, Case, Part, Record, Records, Trial
from tests.benchmarks.processes import child, in_child, printed
from tests.benchmarks.serving import ALONE, ended, layered, traced
from tinybench.load import LoadResult, simulate_queue
from tinybench.tools.serving.client import Users, address_of

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

    clients = Users(address_of(url), [BODY.encode()], 60.0)

    def ask(query: Any) -> None:
        assert clients.send(query.id), clients.outcomes
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


def ours(url: str, rate: float, seconds: float, folder: Path, closed: bool = False) -> Report:
    """Run `tinybench load`; exit code 3 is that it refuses its percentile."""
    file = folder / "rows.csv"
    command = [sys.executable, "-m", "tinybench", "load", url, "--seconds", seconds, "--format", "json", "--save", file]
    how = ["--rate", rate, "--connections", 8000, "--timeout", "60s", "--seed", hash(str(folder)) % 1000]
    command += ["--closed", users(rate), "--think", f"{THINK * 1e3:g}ms"] if closed else how
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    tail = found["latency"]["p99"]
    rows = None if closed else LoadResult.load(file)
    return Report(tail["value"], found["rate_sent"], rows, "" if tail["value"] else tail["why"])


OURS, CLOSED = "tinybench load", "tinybench load --closed"
TOOLS: dict[str, Callable[[str, float, float, Path], Report]] = {  # of address, rate, seconds, and an empty folder
    "wrk": wrk,
    "hey": hey,
    "locust": locust,
    CLOSED: partial(ours, closed=True),
    "mlcommons_loadgen": mlperf,
    OURS: ours,
}
LOOPS = dict.fromkeys(TOOLS, "closed") | {"mlcommons_loadgen": "open", OURS: "open"}


STALL, BRIEF_STALL = (1.0, 10.0), (0.2, 2.0)  # s in every s; a run lasts two periods
REPLAYS = 30  # as many runs of other users
TOLERANCE = 0.05
CASES: list[Case] = [(tool, *how) for how in ((100.0, STALL), (500.0, STALL), (100.0, None)) for tool in TOOLS]
CASES += [(OURS, 500.0, None), *((OURS, rate, stall) for rate in (1000.0, 2000.0) for stall in (STALL, None))]

p99 = partial(np.quantile, q=0.99, method="inverted_cdf")


def services_of(trace: np.recarray, stall: Sequence[float] | None) -> tuple[np.ndarray, np.ndarray]:
    trace = trace[np.argsort(trace.finished)]
    service = trace.finished - np.maximum(trace.received, np.append(-np.inf, trace.finished[:-1]))
    stalled = service > (stall[0] / 2 if stall else np.inf)
    return service[~stalled], trace.finished[stalled]


def joined(trace: np.recarray, rows: LoadResult) -> float:
    """Return the p99 from the intended start until the server had answered."""
    sent = trace[trace.received >= rows.metadata["began"]]  # before that the generator tried how fast it is
    intended = rows.metadata["began"] + rows.intended[sent.request_id.astype(int)]
    assert len(sent) == len(rows.intended)
    return float(p99(sent.finished - intended))


def replayed(
    trace: np.recarray, rate: float, seconds: float, stall: Sequence[float] | None, rng: np.random.Generator
) -> float:
    """Return the p99 of users who arrive at this rate, whatever the server does: the median of some runs."""
    services, ends = services_of(trace, stall)
    length, starts, found = 0.0, np.array([]), []
    if stall:
        length, period = stall
        phase = float(np.median((ends - ends[0] + period / 2) % period)) - period / 2 + ends[0]
        starts = np.arange((phase - length) % period, seconds, period)
    for _ in range(REPLAYS):
        times = np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds)))
        work = np.roll(np.resize(services, len(times)), rng.integers(len(services)))  # neighbours stay neighbours
        order = np.argsort(np.append(times, starts), kind="stable")
        jobs = np.append(work, np.full(len(starts), length))[order]
        waits = simulate_queue(np.append(times, starts)[order], jobs)
        found.append(p99((waits + jobs)[order < len(times)]))
    return float(median(found))


def measured(trial: Trial) -> Record:
    tool, rate, stall = trial.case
    seconds = 2 * (stall or STALL)[1]
    options = ["--stall", f"{stall[0]:g}s/{stall[1]:g}s"] if stall else []
    with traced(layered(trial.folder, 4, 3), *ALONE, *options) as (server, file):
        found = TOOLS[tool](server.url, rate, seconds, file.parent)
        trace = ended(server, file)
    if found.rows is not None:
        truth = joined(trace, found.rows)
    else:
        truth = replayed(trace, found.rate, seconds, stall, np.random.default_rng(trial.round))
    about = {"stalled": stall is not None, "rate": found.rate, "reported": found.p99, "why": found.why}
    return {**about, "truth": truth, "own": float(p99(trace.finished - trace.received))}


def row(tool: str, asked: float, stalled: bool, records: Records) -> dict[str, str]:
    told = [each for each in records if each["reported"]]

    def milliseconds(key: str, records: Records) -> str:
        return ranged([1e3 * each[key] for each in records], "{:.3g}")

    off = [1e6 * (each["reported"] - each["truth"]) for each in told]
    return {
        "asked": f"{asked:g}/s",
        "tool": tool,
        "loop": LOOPS[tool],
        "sent": f"{median(each['rate'] for each in records):.4g}/s",
        "p99 reported, ms": milliseconds("reported", told),
        "its requests by the server, ms": milliseconds("own", records),
        "true p99, ms": milliseconds("truth", records),
        "error": ranged([each["reported"] / each["truth"] - 1 for each in told], "{:+.1%}"),
        **({} if stalled else {"error, µs": f"{median(off):+.0f}" if off else "–"}),
        "refused": f"{len(records) - len(told)} of {len(records)}",
    }


def goals(found: Records) -> dict[str, bool]:
    met, ours = {}, [each for each in found if each["tool"] == OURS and each["reported"]]
    for (rate, stalled), records in grouped(ours, "asked", "stalled").items():
        errors = [abs(each["reported"] / each["truth"] - 1) for each in records]
        each = f"{median(errors):.2%} in the median of {len(errors)} runs, {max(errors):.2%} in the worst"
        what = f"{OURS} at {rate:g}/s {'with' if stalled else 'without'} stalls"
        met[f"{what} is within {TOLERANCE:.0%} of the true p99: off by {each}"] = median(errors) <= TOLERANCE
    return met


def page(found: Records) -> list[str]:
    rows: dict[bool, list[dict[str, str]]] = {True: [], False: []}
    for (stalled, asked, tool), records in grouped(found, "stalled", "asked", "tool").items():
        rows[stalled].append(row(tool, asked, stalled, records))
    refused = sorted({f"{each['tool']} at {each['asked']:g}/s: {each['why']}" for each in found if each["why"]})
    return [
        "A server that stalls for 1 s in every 10 s; median over runs, and range:",
        table(rows[True]),
        "The same server without stalls:",
        table(rows[False]),
        *(["Refused:", bullets(refused)] if refused else []),
    ]


BRIEF = [(tool, 200.0, BRIEF_STALL) for tool in TOOLS]
BENCHMARK = Benchmark(
    "The p99 that is reported, and the p99 that is suffered",
    {"tools": Part("", measured, page, goals, CASES, short=BRIEF, fields=("tool", "asked"))},
    algebra=ONNX_RUNTIME,
    rounds=3,
)

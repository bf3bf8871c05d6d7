"""How many instances does a peak take, and what does the machine say when they run behind haproxy?

An instance is `tinybench serve` with one worker. Its service times are measured beforehand, as in `capacity_lindley`;
`instances_needed` replays them. Then that many, and one fewer, stand behind Debian's haproxy (``leastconn``), with one
queue in haproxy (``maxconn 1``), which is what the plan assumes, and with a queue in each instance. An open loop sends
the peak some times, as a single burst of other work on the machine spoils the p99 of a run. The work is real, so two
cores carry two instances and no more: haproxy, the fronts and the generator need some of them, and a plan for three
could not be checked here.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from tests.benchmarks.capacity_lindley import ALONE, beforehand, occupied
from tests.benchmarks.capacity_servers import Run, bodies, read_trace, send, settled, stepping, steps_for, traced, warm
from tests.needs import HAPROXY
from tinybench.load import LoadResult, arrivals, cost_per_million, instances_needed, rule_of_thumb, simulate_queue
from tinybench.table import Table

SERVICE, HOURLY = 0.012, 0.05  # s; what an instance costs an hour, in dollars
PEAKS = ((25.0, 0.04), (40.0, 0.08), (50.0, 0.05))  # requests a second, and the bound of p99 in seconds
FOLLOWED = 0.15
WAYS = {"one queue": "maxconn 1", "a queue each": ""}


def free_port() -> int:
    """Return a port that is free now; haproxy takes a fixed one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def balanced(ports: Sequence[int], more: str) -> Iterator[str]:
    """Run haproxy in front of some instances, and give its address."""
    port = free_port()
    backends = "\n".join(f"  server s{i} 127.0.0.1:{one} {more}" for i, one in enumerate(ports))
    text = (
        "global\n  maxconn 2000\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 90s\n  timeout server 90s\n"
        f"  timeout queue 90s\nfrontend peak\n  bind 127.0.0.1:{port}\n  default_backend all\n"
        f"backend all\n  balance leastconn\n{backends}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "haproxy.cfg")
        config.write_text(text, encoding="utf-8")
        with subprocess.Popen([str(HAPROXY), "-db", "-f", str(config)], stderr=subprocess.DEVNULL) as process:
            try:
                _wait_for(port, process)
                yield f"http://127.0.0.1:{port}"
            finally:
                process.terminate()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if process.poll() is not None:
            raise RuntimeError(f"haproxy ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("haproxy does not listen")


def peak(
    model: Path, rows: np.ndarray, instances: int, way: str, rate: float, seconds: float, repeats: int = 1
) -> dict[str, Any]:
    """Return the p99 of open loops at the peak before so many instances; and what it is by the service times they had."""
    results, runs = [], list[Run]()
    with ExitStack() as stack:
        servers = [stack.enter_context(traced(model, *ALONE)) for _ in range(instances)]
        for server, _ in servers:
            warm(server, rows[0].tolist())
        url = stack.enter_context(balanced([urlsplit(server.url).port or 80 for server, _ in servers], WAYS[way]))
        for number in range(repeats):
            due = arrivals(rate, seconds, seed=number)
            results.append(send(url, bodies(rows[np.arange(len(due)) % len(rows)]), due, timeout=60.0))
        for server, trace in servers:
            server.process.terminate()
            server.process.wait()
            runs.append(read_trace(trace, results[0]))
    starts = np.concatenate([run.started for run in runs])
    services = np.concatenate([occupied(run) for run in runs])[np.argsort(starts)]
    ends = np.cumsum([len(result.ok) for result in results])
    replayed = []
    for result, work in zip(results, np.split(services, ends[:-1]), strict=True):
        done = result.intended + simulate_queue(result.intended, work, instances) + work
        replayed.append(settled(LoadResult(result.intended, result.intended, done, result.ok, result.seconds)))
    return {
        "p99": [float(np.quantile(settled(result).latencies, 0.99)) for result in results],
        "replayed": [float(np.quantile(result.latencies, 0.99)) for result in replayed],
        "service": float(services.mean()),
        "requests": int(ends[-1]),
        "failed": sum(int(np.sum(~result.ok)) for result in results),
    }


def foretold(services: np.ndarray, instances: int, rate: float) -> float:
    """Return the p99 of as many requests as `instances_needed` replays; infinite where more come than can be served."""
    if rate * services.mean() >= instances:
        return float("inf")
    rng = np.random.default_rng(0)
    times = np.sort(rng.uniform(0, 20_000 / rate, 20_000))
    work = rng.choice(services, len(times))
    return float(np.quantile(simulate_queue(times, work, instances) + work, 0.99))


def plans(folder: Path, short: bool) -> dict[str, Any]:
    """Plan for each peak, and check the plan and one instance fewer."""
    cycle, seconds, repeats = (30, 5.0, 1) if short else (100, 6.0, 5)
    model, rng = stepping(folder / "steps.onnx"), np.random.default_rng(16)
    rows = steps_for(model, SERVICE * rng.gamma(8, 1 / 8, cycle))
    services = beforehand(model, rows, 5 * cycle * SERVICE + 1)  # a few times each: neighbours' bursts fall out
    found = []
    for rate, bound in PEAKS[1:2] if short else PEAKS:
        needed = instances_needed(rate, services, bound)
        row = {
            "rate": rate,
            "bound": bound,
            "needed": needed,
            "thumb": rule_of_thumb(rate, float(services.mean())),
            "runs": [],
        }
        for instances in range(max(1, needed - 1), needed + 1):
            for way in list(WAYS)[:1] if short or instances == 1 else WAYS:
                run = {"instances": instances, "way": way, "foretold": foretold(services, instances, rate)}
                row["runs"].append(run | peak(model, rows, instances, way, rate, seconds, repeats))
                print(rate, bound, needed, row["runs"][-1], file=sys.stderr, flush=True)
        found.append(row)
    return {
        "service": float(services.mean()),
        "cv2": float(services.var() / services.mean() ** 2),
        "seconds": seconds,
        "peaks": found,
    }


def measured(short: bool = False) -> dict[str, Any]:
    """Plan, and check the plans."""
    with tempfile.TemporaryDirectory() as name:
        return plans(Path(name), short)


def goals(found: dict[str, Any]) -> dict[str, bool]:
    """Return whether the plans hold, and are not too large."""
    runs = [(row, run) for row in found["peaks"] for run in row["runs"] if run["way"] == "one queue"]
    return {
        "with as many instances as planned, behind one queue, the median p99 keeps the bound": all(
            median(run["p99"]) <= row["bound"] for row, run in runs if run["instances"] == row["needed"]
        ),
        "with one fewer it does not": all(
            median(run["p99"]) > row["bound"] for row, run in runs if run["instances"] < row["needed"]
        ),
        f"the run's own service times give the real p99 within {FOLLOWED:.0%} (median over the runs)": (
            median(abs(a / b - 1) for _, run in runs for a, b in zip(run["replayed"], run["p99"], strict=True))
            <= FOLLOWED
        ),
        "no request fails": all(run["failed"] == 0 for _, run in runs),
    }


def page(found: dict[str, Any]) -> list[str]:
    """Return the tables as Markdown."""
    rows = [
        {
            "peak": f"{row['rate']:g}/s",
            "p99 at most": f"{1e3 * row['bound']:g} ms",
            "planned": f"{row['needed']}",
            "rule of thumb": f"{row['thumb']}",
            "run with": f"{run['instances']}, {run['way']}" if run["instances"] > 1 else "1",
            "busy": f"{row['rate'] * found['service'] / run['instances']:.0%}",
            "p99, planned (ms)": f"{1e3 * run['foretold']:.0f}" if run["way"] == "one queue" else "–",
            "by the run's own service times (ms)": f"{1e3 * median(run['replayed']):.0f}"
            if run["way"] == "one queue"
            else "–",
            "p99, real, median (all) (ms)": f"{1e3 * median(run['p99']):.0f} "
            f"({', '.join(f'{1e3 * one:.0f}' for one in sorted(run['p99']))})",
            "service in the run": f"{run['service'] / found['service'] - 1:+.0%}",
            "kept": f"{sum(one <= row['bound'] for one in run['p99'])} of {len(run['p99'])}",
            "$ for a million": f"{cost_per_million(run['instances'] * HOURLY, row['rate']):.2f}",
        }
        for row in found["peaks"]
        for run in row["runs"]
    ]
    return [
        f"Service {1e3 * found['service']:.1f} ms, squared coefficient of variation {found['cv2']:.2f}; runs of {found['seconds']:g} s of "
        f"Poisson traffic each. An instance costs {HOURLY:g} $ an hour, which is an example and no offer; always busy, it would "
        f"answer a million requests for {cost_per_million(HOURLY, 1 / found['service']):.2f} $.",
        Table(rows).markdown(),
    ]

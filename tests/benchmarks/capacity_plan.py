"""How many instances does a peak take, and what does the machine say when they run behind haproxy?

An instance is `tinybench serve` with one worker. Its service times are measured beforehand, as in `capacity_lindley`;
`instances_needed` replays them. Then that many, and one fewer, stand behind Debian's haproxy (``leastconn``), with one
queue in haproxy (``maxconn 1``), which is what the plan assumes, and with a queue in each instance. An open loop sends
the peak some times, as a single burst of other work on the machine spoils the p99 of a run. The work is real, so two
cores carry two instances and no more: haproxy, the fronts and the generator need some of them, and a plan for three
could not be checked here.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tests.benchmarks import serving
from tests.benchmarks.formats import lines
from tests.benchmarks.harness import Part, Record, Records, Trial
from tests.benchmarks.serving import p99, stepping
from tests.leaderboard.boards import answers, free_port, wait_until
from tests.needs import HAPROXY
from tinybench.load import arrivals, cost_per_million, instances_needed, rule_of_thumb, simulate_queue

SERVICE, HOURLY = 0.012, 0.05  # s; what an instance costs an hour, in dollars
PEAKS = ((25.0, 0.04), (40.0, 0.08), (50.0, 0.05))  # requests a second, and the bound of p99 in seconds
FOLLOWED = 0.15
SECONDS, REPEATS = 6.0, 5  # of a run, and how many runs
WAYS = {"one queue": "maxconn 1", "a queue each": ""}
CONFIG = """defaults
  mode http
  timeout connect 5s
  timeout client 90s
  timeout server 90s
  timeout queue 90s
listen peak
  bind 127.0.0.1:{port}
  balance leastconn
{servers}
"""


@contextmanager
def balanced(folder: Path, ports: Sequence[int], more: str) -> Iterator[str]:
    """Run haproxy in front of some instances, and give its address."""
    port, config = free_port(), folder / "haproxy.cfg"
    servers = "\n".join(f"  server s{i} 127.0.0.1:{one} {more}" for i, one in enumerate(ports))
    config.write_text(CONFIG.format(port=port, servers=servers))
    with subprocess.Popen([str(HAPROXY), "-db", "-f", str(config)], stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: answers(f"http://127.0.0.1:{port}/health"))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def peak(folder: Path, rows: np.ndarray, instances: int, way: str, rate: float, seconds: float, repeats: int) -> Record:
    """Return the p99 of open loops at the peak before so many instances; and what it is by the service times they had."""
    with ExitStack() as stack:
        servers = [stack.enter_context(serving.traced(stepping(folder), *serving.ALONE)) for _ in range(instances)]
        for server, _ in servers:
            serving.warm(server, rows[0])
        url = stack.enter_context(balanced(folder, [server.address[1] for server, _ in servers], WAYS[way]))
        results = [serving.send(url, rows, arrivals(rate, seconds, seed=number)) for number in range(repeats)]
        runs = [serving.ended(*each) for each in servers]
    services = np.concatenate([serving.occupied(run)[1] for run in runs])
    services = services[np.argsort(np.concatenate([run.started for run in runs]))]
    ends, replayed = np.cumsum([len(result.ok) for result in results]), []
    for result, work in zip(results, np.split(services, ends[:-1]), strict=True):
        done = result.intended + simulate_queue(result.intended, work, instances) + work
        replayed.append(p99(serving.simulated(result.intended, done, result.seconds)))
    failed = sum(int(np.sum(~result.ok)) for result in results)
    return {"p99": list(map(p99, results)), "replayed": replayed, "really": float(services.mean()), "failed": failed}


def foretold(services: np.ndarray, instances: int, rate: float) -> float:
    """Return the p99 of as many requests as `instances_needed` replays."""
    times = arrivals(rate, 20_000 / rate, seed=0)
    work = np.random.default_rng(0).choice(services, len(times))
    return float(np.quantile(simulate_queue(times, work, instances) + work, 0.99))


@cache
def instance(folder: Path, cycle: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a cycle of requests and how long each occupies an instance, of a few times: neighbours' bursts fall out."""
    rows = serving.steps_for(stepping(folder), SERVICE * np.random.default_rng(16).gamma(8, 1 / 8, cycle))
    return rows, serving.beforehand(stepping(folder), rows, 5 * cycle * SERVICE + 1)


def measured(trial: Trial) -> Any:
    """Plan for a peak, and check the plan or one instance fewer; a single one has one queue."""
    (rate, bound), fewer, way = trial.case
    rows, services = instance(trial.folder, 30 if trial.short else 100)
    mean, needed = float(services.mean()), instances_needed(rate, services, bound)
    instances = needed - fewer
    if instances < 1 or (instances == 1 and way != "one queue"):
        return []
    run = peak(trial.folder, rows, instances, way, rate, *((2.0, 1) if trial.short else (SECONDS, REPEATS)))
    about = {"rate": rate, "bound": bound, "instances": instances, "needed": needed, "service": mean}
    about |= {"thumb": rule_of_thumb(rate, mean), "foretold": foretold(services, instances, rate)}
    return {**about, **run, "cv2": float(services.var() / mean**2), "slower": run["really"] / mean - 1}


def goals(found: Records) -> dict[str, bool]:
    runs = [run for run in found if run["way"] == "one queue"]
    off = [abs(a / b - 1) for run in runs for a, b in zip(run["replayed"], run["p99"], strict=True)]
    return {
        "with as many instances as planned, behind one queue, the median p99 keeps the bound": all(
            median(run["p99"]) <= run["bound"] for run in runs if run["instances"] == run["needed"]
        ),
        "with one fewer it does not": all(
            median(run["p99"]) > run["bound"] for run in runs if run["instances"] < run["needed"]
        ),
        f"the run's own service times give the real p99 within {FOLLOWED:.0%} (median over the runs)": (
            median(off) <= FOLLOWED
        ),
        "no request fails": all(run["failed"] == 0 for run in runs),
    }


def row_of(run: Record) -> Record:
    """Return a run as it stands in the table; plans are for one queue."""
    n, planned = run["instances"], {} if run["way"] == "one queue" else {"foretold": None, "replayed": None}
    return {
        **run,
        "with": f"{n}, {run['way']}" if n > 1 else "1",
        "busy": run["rate"] * run["service"] / n,
        "replayed": median(run["replayed"]),
        "middle": median(run["p99"]),
        "all": ", ".join(f"{1e3 * one:.0f}" for one in sorted(run["p99"])),
        "kept": f"{sum(one <= run['bound'] for one in run['p99'])} of {len(run['p99'])}",
        "cost": cost_per_million(n * HOURLY, run["rate"]),
        **planned,
    }


def page(found: Records) -> list[str]:
    service, cv2 = found[0]["service"], found[0]["cv2"]
    return [
        f"Service {1e3 * service:.1f} ms, squared coefficient of variation {cv2:.2f}; runs of {SECONDS:g} s of "
        f"Poisson traffic each. An instance costs {HOURLY:g} $ an hour, which is an example and no offer; always busy, it would "
        f"answer a million requests for {cost_per_million(HOURLY, 1 / service):.2f} $.",
        lines(
            map(row_of, found),
            "peak | p99 at most | planned | rule of thumb | run with | busy | p99, planned (ms) | by the run's own service "
            "times (ms) | p99, real, median (all) (ms) | service in the run | kept | $ for a million",
            "{rate:g}/s | {bound:1e3×g} ms | {needed} | {thumb} | {with} | {busy:.0%} | {foretold:1e3×.0f} | "
            "{replayed:1e3×.0f} | {middle:1e3×.0f} ({all}) | {slower:+.0%} | {kept} | {cost:.2f}",
        ),
    ]


CASES = list(product(PEAKS, (1, 0), WAYS))
SHORT = [(PEAKS[1], 0, "one queue")]
PART = Part("Instances for a peak", measured, page, goals, CASES, short=SHORT, fields=("peak", "fewer", "way"))

# Written by "autograder export" from modules/14_load/14_load.ipynb: edit the notebook, not this file.

"""Load and capacity: arrivals, load tests, queues, scenarios, batches, and the number of instances needed."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult
from tinybench.support.basics.arguments import check_least, check_numbers, check_percentile, check_positive, check_share
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.support.traffic.batching import Batching, in_virtual_time, rehearsal
from tinybench.support.traffic.load_checks import (
    Numbers,
    Rate,
    RequestTimes,
    Waiting,
    check_arrivals,
    check_load,
    judge_of_rates,
    objections,
    sorted_latencies,
    thread_pool,
)
from tinybench.support.traffic.queue_runs import CapacityPlan, redrawn, tail_of_runs
from tinybench.support.traffic.request_files import read_rows, write_rows


def arrivals(rate: float, seconds: float, process: str = "poisson", seed: int | None = None) -> np.ndarray:
    """Return the intended starts of requests, in seconds from 0 to `seconds`, sorted.

    Parameters
    ----------
    rate
        Requests per second, on average.
    seconds
        Length of time in which requests arrive.
    process
        ``"poisson"``: independent users, gaps vary; ``"constant"``: a request every ``1 / rate`` seconds, from 0 on.
    seed
        The same seed gives the same arrivals.

    Raises ValueError if `rate` or `seconds` is not a finite number above 0, or if `process` is unknown.
    """
    check_positive(rate=rate, seconds=seconds)
    if process not in ("poisson", "constant"):
        raise ValueError(f"process is {process!r}; it is 'poisson' or 'constant'")
    if process == "constant":
        return np.arange(round(rate * seconds)) / rate
    rng = np.random.default_rng(seed)
    return np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds)))


@dataclass(eq=False)
class LoadResult:
    """The outcomes of all requests of a load test, one row for each, with times in seconds from the start of the test.

    Attributes
    ----------
    intended, started, finished
        The times at which each request should start, did start, and was answered or given up; sorted by `intended`.
    ok
        Whether the request was answered and did not fail.
    seconds
        Length of time in which requests were sent.
    metadata
        Further facts that JSON can store; ``"loop"`` is ``"open"`` or ``"closed"``.
    """

    intended: np.ndarray
    started: np.ndarray
    finished: np.ndarray
    ok: np.ndarray
    seconds: float
    metadata: dict[str, Any] = field(default_factory=dict)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_positive(seconds=self.seconds)
        self.intended = check_arrivals(self.intended)
        self.started, self.finished = (np.asarray(x, dtype=float) for x in (self.started, self.finished))
        self.ok = np.asarray(self.ok, dtype=bool)
        for name in ("started", "finished", "ok"):
            if getattr(self, name).shape != self.intended.shape:
                raise ValueError(
                    f"{name} has {getattr(self, name).size} rows, intended {self.intended.size}; give one each"
                )

    @property
    def throughput(self) -> float:
        """The number of answers per second, while requests were sent."""
        return float(np.sum(self.ok & (self.finished <= self.seconds)) / self.seconds)

    def goodput(self, bound: float) -> float:
        """Return the requests per second that were answered within `bound` seconds of their intended start."""
        check_least(bound=bound)
        return float(np.sum(self.latencies <= bound) / self.seconds)

    def backlog(self, at: Any) -> np.ndarray:
        """Return the number of requests that were due and not yet answered at each of the times `at`, in seconds."""
        due, done = np.sort(self.intended), np.sort(self.finished)
        return np.asarray(np.searchsorted(due, at, side="right") - np.searchsorted(done, at, side="right"))

    def percentile(self, q: float) -> float:
        """Return the q-th percentile of latencies in s. Raise ValueError, with the reason, if it is unknown."""
        if found := objections(self, q):
            raise ValueError("; ".join(found))
        return float(np.quantile(self.latencies, q / 100, method="inverted_cdf"))

    def percentile_ci(self, q: float, confidence: float = 0.95) -> tuple[float, float]:
        """Return the `tail_interval` of the q-th percentile, in seconds. Raise ValueError as `percentile` does."""
        self.percentile(q)
        return tail_interval(self.latencies, q, confidence)

    def latency(self) -> BenchmarkResult:
        """Return the latencies of the answered requests as a result."""
        return BenchmarkResult(
            "latency", self.latencies[self.ok].tolist(), {"failed": int(np.sum(~self.ok)), **self.metadata}, unit="s"
        )

    def save(self, path: str | Path) -> None:
        """Write a CSV file: a first line with the metadata, then one row for each request."""
        write_rows(self, path)

    @classmethod
    def load(cls, path: str | Path) -> LoadResult:
        """Return the result in a file that `save` wrote. Raise ValueError for any other file."""
        (intended, started, finished, ok), known = read_rows(path)
        return cls(intended, started, finished, ok > 0, known.pop("seconds"), known)

    @property
    def latencies(self) -> np.ndarray:
        """The latency of each request from its intended start, in seconds; infinite if it failed."""
        return np.asarray(np.where(self.ok, self.finished - self.intended, math.inf))

    @property
    def lateness(self) -> np.ndarray:
        """The delay with which the generator itself started each request, in seconds."""
        return np.asarray(self.started - self.intended)


def open_loop(
    send: Callable[[int], Any],
    arrivals: Numbers,
    *,
    pool: Executor | None = None,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> LoadResult:
    """Return the outcomes of requests sent at their intended starts, whether or not earlier ones were answered.

    Latencies count from the intended start, so that a request that starts late does not look fast.

    Parameters
    ----------
    send
        A function that sends request number i and returns its answer. A request that raises, or returns False, failed.
    arrivals
        The intended starts, in seconds from now, sorted.
    pool
        Executor in which requests wait for their answers; by default 256 threads.
    clock, sleep
        A function that returns the time in s, and one that waits.
    """
    times, notes = check_arrivals(arrivals), machine_notes()
    due = times if pool is None else None  # the default threads wait for the intended start themselves
    with thread_pool(pool) as pool:
        record = RequestTimes(send, len(times), clock, due)
        for i, intended in enumerate(times.tolist()):
            pause = record.begin + intended - clock()
            if pause > 0:
                sleep(pause)
            record.submit(pool, i)
        record.wait()
    end = max(float(times[-1]), 1e-9)
    return LoadResult(times, record.started, record.finished, record.ok, end, {"loop": "open", **notes})


def closed_loop(
    send: Callable[[int], Any],
    users: int = 1,
    think: float = 0.0,
    seconds: float = 10.0,
    *,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> LoadResult:
    """Simulate users who send a request, wait for the answer, think, and send again. Most load generators do this.

    The intended start is the actual start, because a waiting user cannot be late. So requests that a stall delays are
    not counted ("coordinated omission": Tene, "How NOT to Measure Latency", Strange Loop 2015).

    `send` is as in `open_loop`; requests of all users are numbered together. After an answer, users wait for `think`
    seconds before the next request. They stop after `seconds`.
    """
    check_positive(users=users, seconds=seconds)
    rows: list[tuple[float, float, bool]] = []
    notes = {"loop": "closed", "users": users, "think": think, **machine_notes()}
    begin, numbers = clock(), iter(range(10**12))

    def user(_: int) -> None:
        while (start := clock() - begin) < seconds:
            try:
                ok = send(next(numbers)) is not False
            except Exception:
                ok = False
            rows.append((start, clock() - begin, ok))
            if think:
                sleep(think)

    with ThreadPoolExecutor(users) as pool:
        list(pool.map(user, range(users)))
    started, finished, ok = np.array(sorted(rows)).T
    return LoadResult(started, started, finished, ok > 0, seconds, notes)


def tail_interval(values: Numbers, q: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval for the q-th percentile of values that are in order of time, and may be autocorrelated.

    The values are divided into ten consecutive batches. The fractions of values beyond the percentile in each batch
    give the standard error of this fraction, which is at least the binomial error of independent values. A Student's t
    interval (9 degrees of freedom) for the logarithm of the fraction is converted to values. Batch means: Law,
    "Simulation Modeling and Analysis" (2015), section 9.5.

    Raises ValueError if fewer than 8 of the 10 batches hold a value beyond the percentile: the run is too short.
    """
    from scipy.special import stdtrit

    batches, beyond = 10, 1 - q / 100
    check_percentile(q)
    check_share(confidence=confidence)
    ordered = sorted_latencies(values, batches)
    over = np.asarray(values, dtype=float) >= np.quantile(ordered, q / 100, method="inverted_cdf")
    shares = np.array([part.mean() for part in np.array_split(over, batches)])
    if np.count_nonzero(shares) < 8:
        raise ValueError(
            f"the highest {beyond:.3g} of the values come from {np.count_nonzero(shares)} of 10 stretches of the run; "
            f"an interval for p{q:g} takes 8: measure longer"
        )
    error = max(math.sqrt(beyond * (1 - beyond) / len(ordered)), shares.std(ddof=1) / math.sqrt(batches))
    reach = stdtrit(batches - 1, 0.5 + confidence / 2) * error / beyond
    low, high = np.quantile(ordered, 1 - np.minimum(1, beyond * np.exp([reach, -reach])), method="inverted_cdf")
    return float(low), float(high)


def littles_law(rate: float, seconds: float) -> float:
    """Return the mean number of requests in a system if they arrive at `rate` and stay for `seconds` on average.

    Little, Operations Research 9 (1961). The law holds for any order, any distributions and any number of servers.
    """
    check_least(rate=rate, seconds=seconds)
    return rate * seconds


def utilisation(rate: float, service: float, servers: int = 1) -> float:
    """Return the fraction of time servers are busy, if requests arrive at `rate` and take `service` seconds each."""
    check_least(rate=rate, service=service)
    check_positive(servers=servers)
    return rate * service / servers


def mg1(rate: float, service: float, cv2: float) -> float:
    """Return the mean wait in the queue in seconds, with Poisson arrivals and one server.

    Parameters
    ----------
    rate, service
        Requests per second; the mean service time in seconds.
    cv2
        The variance of the service times divided by their squared mean: 0 if all are equal, 1 if exponential.

    Raises
    ------
    ValueError
        If the utilisation is 1 or more, or a number is negative or not finite.

    References
    ----------
    Pollaczek and Khinchine; Harchol-Balter, "Performance Modeling and Design of Computer Systems" (2013), chapter 23.
    """
    check_least(cv2=cv2)
    rho = check_load(rate, service)
    return rho / (1 - rho) * (1 + cv2) / 2 * service


def mmc(rate: float, service: float, servers: int) -> float:
    """Return the mean wait in the queue, in s, for Poisson arrivals, exponential service times and several servers.

    Raises ValueError as `mg1` does, or if `servers` is not a whole number. Erlang C: Harchol-Balter (2013), chapter 14.
    """
    rho = check_load(rate, service, servers)
    blocked = 1.0  # Erlang B, by its recursion: powers and factorials would overflow
    for k in range(1, servers + 1):
        blocked = rate * service * blocked / (k + rate * service * blocked)
    waits = blocked / (1 - rho * (1 - blocked))  # Erlang C: the share of requests that wait
    return waits * service / (servers * (1 - rho))


def mm1(rate: float, service: float) -> float:
    """Return the mean wait in s for Poisson arrivals and exponential service times. Raise ValueError as `mg1` does."""
    return mg1(rate, service, 1.0)


def md1(rate: float, service: float) -> float:
    """Return the mean wait in s for Poisson arrivals and a constant service time. Raise ValueError as `mg1` does."""
    return mg1(rate, service, 0.0)


def kingman(rate: float, service: float, cv2_gaps: float, cv2: float) -> float:
    """Return an upper bound of the mean wait in s, for one server and independent gaps with any distribution.

    `cv2_gaps` and `cv2` are the variances of gaps and service times, each divided by the squared mean. Raises
    ValueError as `mg1` does. Kingman, Biometrika 49 (1962): the sum of both variances × rate / (2 (1 − ρ)).
    """
    check_least(cv2_gaps=cv2_gaps, cv2=cv2)
    rho = check_load(rate, service)
    return rate * (cv2_gaps / rate**2 + cv2 * service**2) / (2 * (1 - rho))


def waits_of_one(times: np.ndarray, work: np.ndarray) -> np.ndarray:
    """Return the waits of requests at one server, first come first served, without a loop.

    Lindley, Mathematical Proceedings of the Cambridge Philosophical Society 48 (1952).
    """
    ahead = np.concatenate([[0.0], np.cumsum(work[:-1] - np.diff(times))])
    return np.asarray(ahead - np.minimum.accumulate(ahead))


def waits_of_several(times: np.ndarray, work: np.ndarray, servers: int) -> np.ndarray:
    """Return the waits at several servers with one queue. Each request goes to the server that is free first."""
    free, waits = [-math.inf] * servers, list[float]()  # free is a heap: free[0] is the smallest
    for arrived, needed in zip(times.tolist(), work.tolist(), strict=True):
        start = max(free[0], arrived)
        heapq.heapreplace(free, start + needed)
        waits.append(start - arrived)
    return np.array(waits)


def simulate_queue(arrivals: Numbers, services: Numbers, servers: int = 1) -> np.ndarray:
    """Return the wait of each request before its service begins, first come first served, in seconds.

    Parameters
    ----------
    arrivals
        Times at which requests arrive, in seconds, sorted.
    services
        Service time of each request, in seconds: measured, or drawn at random.
    servers
        Number of servers that share the one queue.

    Raises
    ------
    ValueError
        If arrivals are not sorted, or services are negative, not finite, or not one for each arrival.
    """
    times, work = check_arrivals(arrivals), np.asarray(services, dtype=float)
    if work.shape != times.shape or not np.isfinite(work).all() or (work < 0).any():
        raise ValueError(f"services are {len(times)} finite times ≥ 0, one for each arrival; got {work.size}")
    check_positive(servers=servers)
    return waits_of_one(times, work) if servers == 1 else waits_of_several(times, work, servers)


def single_stream(send: Callable[[int], Any], seconds: float = 10.0, **clocks: Any) -> LoadResult:
    """Send one request after another. MLPerf Inference judges this scenario by the p90.

    Reddi and others, "MLPerf Inference Benchmark", ISCA 2020. `send`, `clock` and `sleep` are as in `closed_loop`.
    """
    result = closed_loop(send, 1, 0.0, seconds, **clocks)
    result.metadata |= {"scenario": "single_stream", "q": 90}
    return result


def multi_stream(send: Callable[[int], Any], seconds: float = 10.0, samples: int = 8, **clocks: Any) -> LoadResult:
    """Send queries in turn, each of `samples` requests at once, timed up to its last answer. MLPerf judges the p99."""
    with ThreadPoolExecutor(samples) as pool:

        def query(i: int) -> bool:
            return all(ok is not False for ok in pool.map(send, range(i * samples, (i + 1) * samples)))

        result = closed_loop(query, 1, 0.0, seconds, **clocks)
    result.metadata |= {"scenario": "multi_stream", "q": 99, "samples": samples}
    return result


def offline(run: Callable[[range], Any], samples: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the throughput, in samples per second, if all samples arrive at once. `run` receives their indices."""
    check_positive(samples=samples)
    begin = clock()
    run(range(samples))
    seconds = clock() - begin
    check_positive(**{"the time by this clock": seconds})
    return samples / seconds


def server(
    run: Callable[[float], LoadResult],
    bound: float,
    low: float,
    high: float,
    q: float = 99.0,
    tolerance: float = 0.05,
    repeats: int = 4,
) -> Rate:
    """Return the highest rate of Poisson arrivals at which the q-th percentile is within a bound (MLPerf's "Server").

    Parameters
    ----------
    run
        A function that measures one rate, in requests per second, by an open loop.
    bound
        Largest latency allowed, in seconds.
    low, high
        A rate that keeps the bound, and a rate that does not; else ValueError is raised.
    q, tolerance, repeats
        The percentile; relative distance of `low` and `high` at which to stop; maximum of measurements of one rate.
    """
    check_positive(bound=bound, low=low, high=high, tolerance=tolerance, repeats=repeats)
    judge = judge_of_rates(run, bound, low, high, q, repeats)
    ends = []
    for needed in (1, 0, -1):  # surely kept, rather kept, not surely broken
        kept, broken = low, high
        while broken > kept * (1 + tolerance):
            rate = math.sqrt(kept * broken)
            if judge(rate) >= needed:
                kept = rate
            else:
                broken = rate
        ends.append((kept, broken))
    return Rate(math.sqrt(ends[1][0] * ends[1][1]), ends[0][0], ends[2][1])


def simulate_batches(
    arrivals: Numbers, batch_seconds: Callable[[int], float], max_batch: int, max_wait: float
) -> tuple[np.ndarray, list[int]]:
    """Return the latency of each request in seconds, and the sizes of all batches, for one worker with a `Batcher`.

    Parameters
    ----------
    batch_seconds
        A function that returns the measured seconds of a batch of a given size.
    max_batch, max_wait
        A free worker starts a batch once it is full, or once its oldest request has waited `max_wait` seconds.
    """
    check_positive(max_batch=max_batch)
    check_least(max_wait=max_wait)
    times, latencies, sizes, free, i = check_arrivals(arrivals).tolist(), list[float](), list[int](), -math.inf, 0
    while i < len(times):  # i: oldest request without an answer; free: time at which the worker is free
        full = times[i + max_batch - 1] if i + max_batch <= len(times) else math.inf
        start = max(free, min(full, times[i] + max_wait))
        end = bisect_right(times, start, i, min(i + max_batch, len(times)))
        seconds = batch_seconds(end - i)
        check_least(**{f"batch_seconds({end - i})": seconds})
        free = start + seconds
        latencies += [free - arrived for arrived in times[i:end]]
        sizes.append(end - i)
        i = end
    return np.array(latencies), sizes


class Batcher(Batching):
    """A batcher of single requests, in front of a model that is faster with many rows at once.

    Use it as ``async with Batcher(run) as batcher: answer = await batcher.submit(row)``. Accepted requests are answered
    before the block ends. `submit` raises the error of its batch, or asyncio.QueueFull if too many wait.

    Parameters
    ----------
    run
        An async function from a list of inputs to the list of their answers, in order.
    max_batch, max_wait
        A batch is closed when it is full, or `max_wait` seconds after its oldest request arrived.
    workers
        Number of batches that run at the same time.
    max_queue
        Largest number of requests that wait.
    """

    async def gather(self) -> list[Waiting]:
        """Return the next batch from `self.queue`: full, or smaller once its oldest request has waited `max_wait`.

        Requests that are already waiting are taken even if the oldest one is late. No request that was taken is lost.
        """
        batch = [await self.queue.get()]
        try:
            async with asyncio.timeout_at(batch[0].arrived + self.max_wait):
                while len(batch) < self.max_batch:
                    batch.append(await self.queue.get())
        except TimeoutError:
            pass
        return batch


def rehearse(
    arrivals: Numbers, batch_seconds: Callable[[int], float], max_batch: int, max_wait: float
) -> tuple[np.ndarray, list[int]]:
    """Return what `simulate_batches` returns, by running the `Batcher`, with a clock that jumps instead of waiting."""
    times = check_arrivals(arrivals)
    program = rehearsal(lambda run: Batcher(run, max_batch, max_wait, max_queue=len(times)), times, batch_seconds)
    return in_virtual_time(program)


def batch_sweep(
    call: Callable[[np.ndarray], Any], rows: np.ndarray, sizes: Sequence[int] = (1, 2, 4, 8, 16, 32, 64), **how: Any
) -> dict[int, BenchmarkResult]:
    """Return the latency of batches of each size. The options `how` are passed to `measure_latency`."""
    from tinybench.latency import measure_latency

    return {size: measure_latency(call, np.resize(rows, (size, *rows.shape[1:])), **how) for size in sizes}


def throughput(sweep: Mapping[int, BenchmarkResult]) -> dict[int, float]:
    """Return the rows per second at each batch size of a `batch_sweep`. Raise ValueError if a median is 0."""
    check_positive(**{f"the median at batch size {size}": result.median for size, result in sweep.items()})
    return {size: size / result.median for size, result in sweep.items()}


def best_setting(
    arrivals: Numbers,
    batch_seconds: Callable[[int], float],
    bound: float,
    max_batches: Sequence[int] = (1, 2, 4, 8, 16, 32),
    max_waits: Sequence[float] = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02),
    q: float = 99.0,
) -> tuple[int, float]:
    """Return the `max_batch` and `max_wait` that keep a bound with the least work: the smallest sum of batch times.

    Parameters
    ----------
    bound, q
        The q-th percentile of simulated latencies is at most `bound` seconds. Raises ValueError if no pair keeps it.
    max_batches, max_waits
        Values to try, in all pairs. Of equally good pairs, the first is returned.
    """
    check_percentile(q)
    best, least = None, math.inf
    for pair in itertools.product(max_batches, max_waits):
        latencies, sizes = simulate_batches(arrivals, batch_seconds, *pair)
        work = sum(map(batch_seconds, sizes))
        if np.quantile(latencies, q / 100) <= bound and work < least:
            best, least = pair, work
    if best is None:
        raise ValueError(f"no pair keeps p{q:g} within {bound:g} s: send less, allow more, or add machines")
    return best


def instances_needed(
    peak_qps: float,
    services: Numbers,
    bound: float,
    q: float = 99.0,
    most: int = 64,
    seed: int | None = 0,
    longest: int = 2**21,
    simulate: Callable[[np.ndarray, np.ndarray, int], np.ndarray] | None = None,
) -> CapacityPlan:
    """Return the fewest instances behind one queue that keep the q-th percentile of latency within a bound at a peak.

    Parameters
    ----------
    peak_qps, bound
        Requests per second at the peak, with Poisson arrivals; the largest latency allowed, in seconds.
    services
        Measured service times in seconds, in their order. The interval does not count their own error.
    most, longest, simulate
        Largest number of instances (if these are too few, raises ValueError), and of requests in a run: if it cannot
        tell, the plan is not `sure`; a function as `simulate_queue`, the default.
    """
    check_positive(peak_qps=peak_qps, bound=bound, longest=longest)
    check_numbers(services=services)
    check_percentile(q)
    measured, simulate = np.asarray(services, dtype=float), simulate or simulate_queue
    busy = round(peak_qps * float(measured.mean()), 9)  # instances busy on average; further digits are rounding noise

    def run(instances: int, requests: int) -> np.ndarray:
        """Return the latencies of about this number of requests, without the first tenth."""
        times = arrivals(peak_qps, requests / peak_qps, seed=seed)
        work = redrawn(measured, len(times), seed)
        return np.asarray(simulate(times, work, instances) + work)[len(times) // 10 :]

    tail = tail_of_runs(run, tail_interval, busy, measured, bound, q, longest)
    for instances in range(math.floor(busy) + 1, most + 1):
        low, high = tail(instances)
        if low <= bound:
            return CapacityPlan(instances, high <= bound, low, high)
    alone = np.quantile(measured, q / 100)
    raise ValueError(f"{most} instances cannot bring p{q:g} within {bound:g} s: the service alone takes {alone:g} s")

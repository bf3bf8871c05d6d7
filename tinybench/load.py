# Written by "autograder export" from modules/14_load/14_load.ipynb: edit the notebook, not this file.

"""Load and capacity: arrivals, load tests, queues, and the number of instances needed."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import numpy as np

from tinybench.support.basics.arguments import check_least, check_positive, check_share
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.support.traffic.load_checks import Numbers, check_arrivals, check_load, check_queue, slow_shares
from tinybench.support.traffic.queue_runs import CapacityPlan, planned, redrawn, tail_of_runs, too_few
from tinybench.support.traffic.request_rows import RequestRows
from tinybench.support.traffic.request_times import recorded, users_in_turn


def arrivals(rate: float, seconds: float, process: str = "poisson", seed: int | None = None) -> np.ndarray:
    """Return the intended starts of requests, in seconds from 0 to `seconds`, sorted.

    `rate` is the mean number of requests per second. With the process ``"poisson"``, users are independent and gaps
    vary; with ``"constant"``, a request comes every ``1 / rate`` seconds, from 0 on. The same seed gives the same
    arrivals.

    Raises ValueError if `rate` or `seconds` is not a finite number above 0, or if `process` is unknown.
    """
    check_positive(rate=rate, seconds=seconds)
    if process not in ("poisson", "constant"):
        raise ValueError(f"process is {process!r}; it is 'poisson' or 'constant'")
    if process == "constant":
        return np.arange(round(rate * seconds)) / rate
    rng = np.random.default_rng(seed)
    return np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds)))


class LoadResult(RequestRows):
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

    def percentile_ci(self, q: float, confidence: float = 0.95) -> tuple[float, float]:
        """Return the `tail_interval` of the q-th percentile, in seconds. Raise ValueError as `percentile` does."""
        self.percentile(q)
        return tail_interval(self.latencies, q, confidence)

    @property
    def latencies(self) -> np.ndarray:
        """The latency of each request from its intended start, in seconds; infinite if it failed."""
        return np.asarray(np.where(self.ok, self.finished - self.intended, math.inf))


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
    with recorded(send, times, pool, clock) as (pool, record):
        for i, intended in enumerate(times.tolist()):
            pause = record.begin + intended - clock()
            if pause > 0:
                sleep(pause)
            record.submit(pool, i)
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
    notes = {"loop": "closed", "users": users, "think": think, **machine_notes()}
    started, finished, ok = users_in_turn(send, users, think, seconds, clock, sleep)
    return LoadResult(started, started, finished, ok, seconds, notes)


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
    check_share(confidence=confidence)
    ordered, shares = slow_shares(values, q, batches)  # sorted values, and the share beyond in each batch
    error = max(math.sqrt(beyond * (1 - beyond) / len(ordered)), shares.std(ddof=1) / math.sqrt(batches))
    reach = stdtrit(batches - 1, 0.5 + confidence / 2) * error / beyond
    low, high = np.quantile(ordered, 1 - np.minimum(1, beyond * np.exp([reach, -reach])), method="inverted_cdf")
    return float(low), float(high)


def mg1(rate: float, service: float, cv2: float) -> float:
    """Return the mean wait in the queue in seconds, with Poisson arrivals and one server.

    `rate` is in requests per second, `service` is the mean in seconds, and `cv2` is the variance of the service times
    divided by their squared mean. Raises ValueError if the utilisation is 1 or more, or a number is negative or not
    finite. Pollaczek and Khinchine: Harchol-Balter, "Performance Modeling and Design of Computer Systems" (2013).
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
    times, work = check_queue(arrivals, services, servers)
    return waits_of_one(times, work) if servers == 1 else waits_of_several(times, work, servers)


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
    measured, busy = planned(peak_qps, services, bound, q, longest)  # `busy`: instances that are busy on average
    simulate = simulate or simulate_queue

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
    raise too_few(most, measured, bound, q)

"""What `tinybench.load` leans on: checked numbers, requests recorded, a run's objections, and verdicts on a bound."""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from tinybench.support.basics.arguments import check_percentile, check_positive, check_share
from tinybench.support.basics.numbers import number_of, plural

Numbers = Sequence[float] | np.ndarray
HEAD_START = 1e-3  # seconds by which our own threads get a request early: waking one up takes some 0.1 ms


class LoadRun(Protocol):
    """What is read of a `tinybench.load.LoadResult`."""

    intended: np.ndarray
    started: np.ndarray
    finished: np.ndarray
    ok: np.ndarray
    seconds: float
    metadata: dict[str, Any]

    @property
    def latencies(self) -> np.ndarray:
        """Return the seconds of each answered request."""

    def backlog(self, times: Any) -> np.ndarray:
        """Return how many requests are under way at each time."""


def check_arrivals(arrivals: Numbers) -> np.ndarray:
    """Return arrivals as an array; ValueError if there are none, or they are no finite, sorted times."""
    times: np.ndarray = np.asarray(arrivals, dtype=float)
    if times.ndim != 1 or not times.size or not np.isfinite(times).all():
        raise ValueError("arrivals are a list of finite times in seconds, at least one")
    if (back := np.flatnonzero(np.diff(times) < 0)).size:
        i = int(back[0]) + 1
        raise ValueError(
            f"arrivals are not sorted: arrivals[{i}] is {times[i]:g} s, after {times[i - 1]:g} s; sort them"
        )
    return times


def check_load(rate: float, service: float, servers: int = 1) -> float:
    """Return the utilisation; ValueError if it is 1 or more, with the growth of the queue."""
    check_positive(rate=rate, service=service, servers=servers)
    if servers != int(servers):
        raise ValueError(f"servers is {servers}; give a whole number")
    rho = rate * service / servers
    if rho >= 1:
        raise ValueError(
            f"utilisation is {rho:.3g}: {number_of(f'{rate:g}', 'request')} a second arrive, and the most that can be "
            f"served is {servers / service:g}; the "
            f"queue grows by {rate - servers / service:.3g} a second and has no mean: send less or add servers"
        )
    return rho


def wait_until(moment: float) -> None:
    """Come back at a moment of `time.perf_counter`: asleep until 0.2 ms before, as sleep takes some 0.1 ms too long."""
    let_others = getattr(os, "sched_yield", partial(time.sleep, 0))  # sleep(0) takes 0.07 ms on Linux
    while (left := moment - time.perf_counter()) > 0:
        if left > 2e-4:
            time.sleep(left - 2e-4)
        else:
            let_others()


class RequestTimes:
    """Notes when requests start and finish, in whatever thread or event loop they run.

    Times count from `zero`. With `due`, the intended starts, `begin` lies a head start before it: whoever runs a
    request then waits for its moment.
    """

    def __init__(
        self, send: Callable[[int], Any], number: int, clock: Callable[[], float], due: np.ndarray | None = None
    ) -> None:
        self.send, self.clock, self.submitted = send, clock, 0
        self.started, self.finished = np.full((2, number), math.nan)
        self.ok = np.zeros(number, dtype=bool)
        self.answered = threading.Semaphore(0)
        self.due = due if clock is time.perf_counter else None
        self.begin = clock()
        self.zero = self.begin + (0.0 if self.due is None else HEAD_START)

    def submit(self, pool: Executor, i: int) -> None:
        """Have request number `i` sent by `pool`, and come back at once."""
        self.submitted += 1
        pool.submit(self._request, i).add_done_callback(partial(self._finish, i))

    def _request(self, i: int) -> Any:
        if self.due is not None:
            wait_until(self.zero + self.due[i])
        self.started[i] = self.clock() - self.zero
        return self.send(i)

    def _finish(self, i: int, future: Future[Any]) -> None:
        try:
            self.finished[i] = self.clock() - self.zero
            self.ok[i] = not future.cancelled() and future.exception() is None and future.result() is not False
        finally:
            self.answered.release()

    def wait(self) -> None:
        """Wait for the answers to all that was submitted."""
        for _ in range(self.submitted):
            self.answered.acquire()
        self.submitted = 0


@contextmanager
def thread_pool(pool: Executor | None, most: int = 256) -> Iterator[Executor]:
    """Give the pool that is asked for, or threads that end with the block."""
    if pool is not None:
        yield pool
        return
    with ThreadPoolExecutor(most) as own:
        yield own


class Waiting(NamedTuple):
    """A request in the queue of a `Batcher`: its input, when it came on the event loop's clock, and its answer."""

    item: Any
    arrived: float
    answer: asyncio.Future[Any]


def growth(result: LoadRun) -> float:
    """Return by how many requests a second the backlog grew: 0 where it came back to a few, as in a steady state.

    A few are as many as there were before, or as a queue that comes and goes may leave by chance.
    """
    parts = np.linspace((0.25, 0.75), (0.5, 1), 200, axis=1) * result.seconds
    before, last = result.backlog(parts)
    few = max(2 * math.sqrt(len(result.intended)), 1.2 * float(before.mean()))
    steady = result.metadata.get("loop") == "closed" or last.min() <= few
    return 0.0 if steady else float(last.mean() / (0.875 * result.seconds))


def objections(result: LoadRun, q: float) -> list[str]:
    """Return the reasons why a run cannot give its q-th percentile, or an empty list."""
    check_percentile(q)
    found, allowed = [], 1 - q / 100
    if grown := growth(result):
        found.append(
            f"the backlog grew by {number_of(f'{grown:.3g}', 'request')} a second and never came back: there is no "
            "steady state, and the "
            "longer you measure the worse it gets; send less"
        )
    failed = float(np.mean(~result.ok))
    if failed > allowed:
        found.append(f"{failed:.1%} of the requests failed, so p{q:g} is infinite; find out why")
    if len(result.ok) * allowed < 5:
        sent = len(result.ok)
        few = f"{number_of(sent, 'request')} {plural(sent, 'is', 'are')} too few"
        found.append(f"{few} for p{q:g}: send {math.ceil(5 / allowed):,} or more")
    if result.ok.any() and result.metadata.get("loop") != "closed":
        since_intended, since_started = (
            np.quantile((result.finished - since)[result.ok], q / 100) for since in (result.intended, result.started)
        )
        if since_intended > 1.05 * since_started:
            found.append(
                f"the load generator itself started requests late: p{q:g} is {since_intended * 1e3:.3g} ms from when "
                f"they were due, {since_started * 1e3:.3g} ms from when they were sent, so it would be its own, not "
                "the server's; ask for a lower rate, or send from another machine"
            )
    return found


def sorted_latencies(latencies: Numbers, least: int = 0) -> np.ndarray:
    """Return latencies in ascending order; ValueError if there are fewer than `least`, or one is NaN."""
    ordered: np.ndarray = np.sort(np.asarray(latencies, dtype=float))
    if len(ordered) < least:
        had = f"{number_of(len(ordered), 'value')} {plural(len(ordered), 'is', 'are')}"
        raise ValueError(f"{had} too few; give {least} or more")
    if np.isnan(ordered).any():
        raise ValueError("a latency is nan; give a number, or infinity for a failed request")
    return ordered


def early_stopping(latencies: Numbers, q: float, confidence: float = 0.99) -> float:
    """Return the latency that MLPerf reports for the q-th percentile: with `confidence` it is not below the truth.

    Of n queries the t slowest are dropped, for the largest t whose chance is at most 1 − `confidence`; ValueError with
    the number that it takes if there are too few: 64 for p90, 662 for p99. Queries are taken as independent.
    Reddi and others, "MLPerf Inference Benchmark", ISCA 2020; the rule is in its LoadGen, ``early_stopping.cc``.
    """
    from scipy.special import bdtr

    check_percentile(q)
    check_share(confidence=confidence)
    ordered, n = sorted_latencies(latencies), len(latencies)
    dropped = int(np.sum(bdtr(np.arange(n), n, 1 - q / 100) <= 1 - confidence)) - 1
    if dropped < 1:
        needed = next(m for m in range(n + 1, 10**7) if bdtr(1, m, 1 - q / 100) <= 1 - confidence)
        raise ValueError(f"p{q:g} takes at least {number_of(needed, 'query')}, got {n}")
    return float(ordered[n - dropped])


class Rate(NamedTuple):
    """The highest rate that keeps a bound: an estimate, the highest that surely kept it, the lowest that did not."""

    best: float
    kept: float
    broken: float


def evidence(runs: Sequence[LoadRun], bound: float, q: float = 99.0, confidence: float = 0.95) -> float:
    """Return how surely runs of one rate keep their q-th percentile within a bound: 1 or more surely, −1 or less not.

    The share of requests beyond the bound is compared with what is allowed, in units of the error of the comparison:
    by ten batches of each run in the order of time, at the bound and at the percentile that was measured, and the
    binomial error at least. A run in which nothing was slow proves little if its slowest requests came together. A run
    with fewer than ten requests proves nothing: 0.
    """
    from scipy.special import stdtrit

    check_positive(bound=bound, runs=len(runs))
    check_percentile(q)
    check_share(confidence=confidence)
    if any(growth(run) for run in runs):
        return -math.inf
    if min(len(run.ok) for run in runs) < 10:
        return 0.0
    latencies, allowed = [run.latencies.round(9) for run in runs], 1 - q / 100  # below 1 ns there is only rounding
    everything = np.concatenate(latencies)
    measured = np.quantile(everything, q / 100, method="inverted_cdf")
    error = math.sqrt(allowed * (1 - allowed) / everything.size)
    for beyond in ([x >= measured for x in latencies], [x > bound for x in latencies]):
        shares = np.array([part.mean() for over in beyond for part in np.array_split(over, 10)])
        error = max(error, float(shares.std(ddof=1)) / math.sqrt(shares.size))
    reach = stdtrit(shares.size - 1, 0.5 + confidence / 2) * error
    return float((allowed - np.mean(everything > bound)) / reach)


def keeps_bound(result: LoadRun, bound: float, q: float = 99.0, confidence: float = 0.95) -> bool | None:
    """Return whether the q-th percentile of a run is at most `bound` seconds; None if the run is too short to tell."""
    sure = evidence([result], bound, q, confidence)
    return None if abs(sure) < 1 else sure > 0


def judge_of_rates(
    run: Callable[[float], LoadRun], bound: float, low: float, high: float, q: float, repeats: int
) -> Callable[[float], float]:
    """Return a function that tells the `evidence` of a rate: measured once, and again while it is too close to call.

    ValueError if `low` does not surely keep the bound, or `high` may keep it.
    """

    @cache
    def judge(rate: float) -> float:
        runs: list[LoadRun] = []
        sure = 0.0
        while abs(sure) < 1 and len(runs) < repeats:
            runs.append(run(rate))
            sure = evidence(runs, bound, q, confidence=0.98)  # several looks, and each may err
        return sure

    if high <= low:
        raise ValueError(
            f"low is {low:g} and high is {number_of(f'{high:g}', 'request')} a second; high is the larger one"
        )
    for rate, fits, does in ((low, judge(low) >= 1, "keeps"), (high, judge(high) <= -1, "breaks")):
        if not fits:
            raise ValueError(
                f"the search needs a rate that surely {does} the bound of {bound:g} s at p{q:g}, and "
                f"{number_of(f'{rate:g}', 'request')} "
                f"a second does not: take a {'lower' if does == 'keeps' else 'higher'} one, or longer runs"
            )
    return judge

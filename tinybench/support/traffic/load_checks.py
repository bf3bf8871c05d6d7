"""Helpers of `tinybench.load`: checks of arguments, and of a run against a latency bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from tinybench.support.basics.arguments import check_percentile, check_positive, check_share
from tinybench.support.basics.numbers import number_of, plural

Numbers = Sequence[float] | np.ndarray


class LoadRun(Protocol):
    """The attributes of a `tinybench.load.LoadResult` that are used here."""

    intended: np.ndarray
    started: np.ndarray
    finished: np.ndarray
    ok: np.ndarray
    seconds: float
    metadata: dict[str, Any]

    @property
    def latencies(self) -> np.ndarray:
        """The latency of each request in seconds, infinite if it failed."""

    def backlog(self, times: Any) -> np.ndarray:
        """Return the number of requests in flight at each time."""


def check_arrivals(arrivals: Numbers) -> np.ndarray:
    """Return arrival times as an array. Raise ValueError unless they are finite, sorted and at least one."""
    times: np.ndarray = np.asarray(arrivals, dtype=float)
    if times.ndim != 1 or not times.size or not np.isfinite(times).all():
        raise ValueError("arrivals are a list of finite times in seconds, at least one")
    if (back := np.flatnonzero(np.diff(times) < 0)).size:
        i = int(back[0]) + 1
        raise ValueError(
            f"arrivals are not sorted: arrivals[{i}] is {times[i]:g} s, after {times[i - 1]:g} s; sort them"
        )
    return times


def check_queue(arrivals: Numbers, services: Numbers, servers: int) -> tuple[np.ndarray, np.ndarray]:
    """Return arrival and service times as arrays. Raise ValueError unless each request has one finite service ≥ 0."""
    times, work = check_arrivals(arrivals), np.asarray(services, dtype=float)
    if work.shape != times.shape or not np.isfinite(work).all() or (work < 0).any():
        raise ValueError(f"services are {len(times)} finite times ≥ 0, one for each arrival; got {work.size}")
    check_positive(servers=servers)
    return times, work


def check_load(rate: float, service: float, servers: int = 1) -> float:
    """Return the utilisation. If it is 1 or more, raise ValueError with the growth rate of the queue."""
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


def growth(result: LoadRun) -> float:
    """Return the growth of the backlog in requests per second, or 0 if the run is in a steady state.

    The backlog is the number of requests in flight. The run is in a steady state if the smallest backlog in its last
    quarter is at most 1.2 times the mean backlog in its second quarter, or so small that it may be due to chance.
    A closed loop is always in a steady state.
    """
    parts = np.linspace((0.25, 0.75), (0.5, 1), 200, axis=1) * result.seconds
    before, last = result.backlog(parts)
    few = max(2 * math.sqrt(len(result.intended)), 1.2 * float(before.mean()))
    steady = result.metadata.get("loop") == "closed" or last.min() <= few
    return 0.0 if steady else float(last.mean() / (0.875 * result.seconds))


def objections(result: LoadRun, q: float) -> list[str]:
    """Return the reasons why the q-th latency percentile of a run is invalid. If it is valid, return an empty list."""
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
    """Return latencies in ascending order. If there are fewer than `least`, or any is NaN, raise ValueError."""
    ordered: np.ndarray = np.sort(np.asarray(latencies, dtype=float))
    if len(ordered) < least:
        had = f"{number_of(len(ordered), 'value')} {plural(len(ordered), 'is', 'are')}"
        raise ValueError(f"{had} too few; give {least} or more")
    if np.isnan(ordered).any():
        raise ValueError("a latency is nan; give a number, or infinity for a failed request")
    return ordered


def slow_shares(values: Numbers, q: float, batches: int) -> tuple[np.ndarray, np.ndarray]:
    """Return values in ascending order, and the share of values beyond the q-th percentile in each batch of the run.

    The batches are consecutive. If hardly any of them holds a value beyond the percentile, the run is too short, and
    ValueError is raised.
    """
    check_percentile(q)
    ordered = sorted_latencies(values, batches)
    over = np.asarray(values, dtype=float) >= np.quantile(ordered, q / 100, method="inverted_cdf")
    shares = np.array([part.mean() for part in np.array_split(over, batches)])
    if np.count_nonzero(shares) < 0.8 * batches:
        raise ValueError(
            f"the highest {1 - q / 100:.3g} of the values come from {np.count_nonzero(shares)} of {batches} stretches "
            f"of the run; an interval for p{q:g} takes {0.8 * batches:g}: measure longer"
        )
    return ordered, shares


def early_stopping(latencies: Numbers, q: float, confidence: float = 0.99) -> float:
    """Return MLPerf's estimate of the q-th percentile: with probability `confidence`, it is not below the true value.

    The estimate is the t-th slowest of n latencies. To find t, compute for each number the probability that at most
    this number of n independent latencies exceed the true percentile. Then t is the largest number with a probability
    of at most 1 − `confidence`. If there are too few queries, raise ValueError with the required number: 64 for p90,
    662 for p99. See Reddi and others, "MLPerf Inference Benchmark", ISCA 2020, and MLPerf's ``early_stopping.cc``.
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
    """The result of a search for the highest rate of requests that keeps a latency bound.

    `best` is an estimate of this rate, `kept` the highest rate that certainly kept the bound, and `broken` the lowest
    rate that certainly broke the bound.
    """

    best: float
    kept: float
    broken: float


def evidence(runs: Sequence[LoadRun], bound: float, q: float = 99.0, confidence: float = 0.95) -> float:
    """Return how certain it is that runs at one rate keep their q-th percentile within a bound.

    At 1 or more, the runs certainly keep the bound. At −1 or less, they certainly break it. The value is a difference
    divided by the half-width of its confidence interval. The difference is the allowed fraction of late requests minus
    the measured fraction. Its standard error is the largest of three: the binomial error, the error from the scatter of
    the fraction of late requests between batches (ten of each run), and the same for requests at or above the measured
    percentile. The last one is needed because a run without late requests proves little if its slowest requests came
    together. If a run has fewer than ten requests, the value is 0. If the backlog of a run grows, the value is −∞.
    """
    from scipy.special import stdtrit

    check_positive(bound=bound, runs=len(runs))
    check_percentile(q)
    check_share(confidence=confidence)
    if any(growth(run) for run in runs):
        return -math.inf
    if min(len(run.ok) for run in runs) < 10:
        return 0.0
    latencies, allowed = [run.latencies.round(9) for run in runs], 1 - q / 100  # digits below 1 ns are rounding noise
    everything = np.concatenate(latencies)
    measured = np.quantile(everything, q / 100, method="inverted_cdf")
    error = math.sqrt(allowed * (1 - allowed) / everything.size)
    for beyond in ([x >= measured for x in latencies], [x > bound for x in latencies]):
        shares = np.array([part.mean() for over in beyond for part in np.array_split(over, 10)])
        error = max(error, float(shares.std(ddof=1)) / math.sqrt(shares.size))
    reach = stdtrit(shares.size - 1, 0.5 + confidence / 2) * error
    return float((allowed - np.mean(everything > bound)) / reach)


def keeps_bound(result: LoadRun, bound: float, q: float = 99.0, confidence: float = 0.95) -> bool | None:
    """Return whether the q-th percentile of a run is at most `bound` seconds, or None if the run is too short."""
    sure = evidence([result], bound, q, confidence)
    return None if abs(sure) < 1 else sure > 0


def judge_of_rates(
    run: Callable[[float], LoadRun], bound: float, low: float, high: float, q: float, repeats: int
) -> Callable[[float], float]:
    """Return a function that measures the `evidence` at a rate, in up to `repeats` runs until the evidence is decisive.

    Raise ValueError unless `low` certainly keeps the bound and `high` certainly breaks it.
    """

    @cache
    def judge(rate: float) -> float:
        runs: list[LoadRun] = []
        sure = 0.0
        while abs(sure) < 1 and len(runs) < repeats:
            runs.append(run(rate))
            sure = evidence(runs, bound, q, confidence=0.98)  # above 0.95 because each of several tests may err
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

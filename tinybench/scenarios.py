# Written by "autograder export" from modules/14_scenarios/14_scenarios.ipynb: edit the notebook, not this file.

"""MLPerf's scenarios, dynamic batches in front of a model, and the best setting of batches for a bound."""

from __future__ import annotations

import asyncio
import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np

from tinybench.load import LoadResult
from tinybench.support.basics.arguments import check_least, check_percentile, check_positive
from tinybench.support.traffic.batching import Batching, Waiting, in_virtual_time, rehearsal
from tinybench.support.traffic.load_checks import Numbers, Rate, check_arrivals, judge_of_rates


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

"""Hidden checks for the optional module 14_scenarios, with simulated servers, and batches simulated event by event."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from autograder.checks import judges
from autograder.checks.check_helpers import *
from tinybench import load
from tinybench.support.traffic.load_checks import judge_of_rates


@judges("server")
def the_highest_rate_is_found(student: Any) -> None:
    """Check that `server` finds the highest rate that a simulated server sustains, in few runs.

    The result must lie between a rate that surely kept the latency bound and a rate that surely broke it. The check
    uses p75 and p50, because these percentiles need only a few requests, and every request is sent to the sandbox.
    """
    rng = draw()
    for q, powers in ((75.0, (2, 12)), (50.0, (4, 9))):
        border, size = float(rng.uniform(50, 500)), 200
        low, high = border * float(rng.uniform(0.1, 0.3)), border * float(rng.uniform(3, 8))
        bound = 2 / border  # few requests are in the server at once, at any rate
        asked: list[float] = []

        def run(
            rate: Any, kind: Any = student, border: float = border, powers: Any = powers, q: float = q,
            asked: list[float] = asked, bound: float = bound, size: int = size,
        ) -> Any:  # fmt: skip
            rate = float(number(rate, "a rate"))
            asked.append(rate)
            due, slow = np.arange(size) / rate, min(1.0, (1 - q / 100) * (rate / border) ** powers[rate > border])
            late = np.diff(np.floor(np.arange(size + 1) * slow)) > 0
            times = due + bound * np.where(late, 2.0, 0.1)
            return kind.LoadResult(due, due, times, np.full(size, True), size / rate, {"loop": "open"})

        found = numbers(student.server(run, bound, low, high, q=q, tolerance=0.01, repeats=1), "server", 3)
        best, kept, broken = map(float, found)
        what = f"server between {low:.4g} and {high:.4g}, with the border at {border:.4g}"
        told = f"{what}: got best {best:.4g}, kept {kept:.4g}, broken {broken:.4g}"
        measured = sorted(set(asked))
        expect(len(measured) <= 45, f"{what}: {len(measured)} rates were measured; halving takes some 25")
        expect(low <= kept <= best <= broken <= high, f"{told}; expected low ≤ kept ≤ best ≤ broken ≤ high")
        expect(abs(best / border - 1) < 0.02, f"{told}; expected the best within the tolerance of the border")
        expect({kept, broken} <= set(measured), f"{told}; `kept` and `broken` are rates that were measured")
        judge = judge_of_rates(partial(run, kind=load), bound, low, high, q, 1)
        expect(judge(kept) >= 1, f"{told}; `kept` is a rate that surely kept the bound: judge(rate) ≥ 1")
        expect(judge(broken) <= -1, f"{told}; `broken` is a rate that surely broke it: judge(rate) < −1")
        for end, sign, does in ((kept, 1, "kept"), (broken, -1, "broke")):
            nearer = end * 1.07**sign
            near = sign * judge(nearer) < 1
            expect(near, f"{told}; {nearer:.4g} surely {does} the bound, too: go on until the tolerance")


def answer_stopping(student: Any) -> None:
    """Check that the requests needed are the smallest n with 0.99^n ≤ 0.01 for p99, and with 0.9^n ≤ 0.01 for p90."""
    same(student.requests_for_p99(), 459, "requests for p99", "0.99^n is at most 0.01")
    same(student.requests_for_p90(), 44, "requests for p90", "0.9^n is at most 0.01")


def batches_by_events(
    times: list[float], seconds: Callable[[int], float], max_batch: int, max_wait: float
) -> tuple[list[float], list[int]]:
    """Return latencies and batch sizes from a discrete-event simulation.

    An event is an arrival, the end of a batch, or the moment at which the oldest request has waited `max_wait`.
    """
    coming, waiting, latencies, sizes = list(times), list[float](), list[float](), list[int]()
    now = free = times[0]
    while coming or waiting:
        while coming and coming[0] <= now:
            waiting.append(coming.pop(0))
        if waiting and free <= now and (len(waiting) >= max_batch or now >= waiting[0] + max_wait):
            batch, waiting = waiting[:max_batch], waiting[max_batch:]
            free = now + seconds(len(batch))
            latencies += [free - arrived for arrived in batch]
            sizes.append(len(batch))
            continue
        events = [*coming[:1], free, *(arrived + max_wait for arrived in waiting[:1])]
        now = min(event for event in events if event > now)
    return latencies, sizes


def batch_costs(first: float, more: float) -> Callable[[int], float]:
    """Return a function from batch size to seconds.

    The function looks up a table that is copied to the sandbox, so that calls cost no messages.
    """
    return tuple(first + more * size for size in range(100)).__getitem__


def drawn_batches(rng: np.random.Generator) -> Any:
    """Return random arrivals, a batch-cost function and batch settings, from almost no load to heavy overload."""
    times = np.cumsum(rng.exponential(1, int(rng.integers(20, 60)))) / rng.choice([0.5, 3, 20])
    first, more = float(rng.uniform(0.1, 1)), float(rng.uniform(0.001, 0.1))
    return (
        times.tolist(),
        batch_costs(first, more),
        int(rng.integers(1, 10)),
        float(rng.choice([0, rng.uniform(0, 3)])),
    )


@judges("simulate_batches")
def batches_event_by_event(student: Any) -> None:
    """Check that `simulate_batches` agrees with an independent discrete-event simulation."""
    rng = draw()
    for _ in range(12):
        times, seconds, max_batch, max_wait = drawn_batches(rng)
        truth = batches_by_events(times, seconds, max_batch, max_wait)
        what = f"simulate_batches of {len(times)} arrivals, max_batch={max_batch}, max_wait={max_wait:.3g}"
        latencies, sizes = items(student.simulate_batches(times, seconds, max_batch, max_wait), what, 2)
        same(sizes, truth[1], f"{what}: the sizes", "full, or the oldest has waited, but not before the worker is free")
        same(latencies, truth[0], f"{what}: the latencies", "from arrival to the end of the batch", abs=1e-9)


@judges("Batcher.gather")
def gather_on_a_virtual_clock(student: Any) -> None:
    """Check that `Batcher.gather`, on a virtual clock, agrees with a discrete-event simulation.

    No request may be lost when a batch closes, and `gather` must end when it is cancelled.
    """
    rng = draw()
    for _ in range(8):
        times, seconds, max_batch, max_wait = drawn_batches(rng)
        truth = batches_by_events(times, seconds, max_batch, max_wait)
        what = f"{len(times)} requests to a Batcher, max_batch={max_batch}, max_wait={max_wait:.3g}"
        latencies, sizes = items(student.rehearse(times, seconds, max_batch, max_wait), what, 2)
        same(sizes, truth[1], f"{what}: the sizes", "full, or max_wait after the oldest *arrived*; late: what waits")
        same(latencies, truth[0], f"{what}: the latencies", "from arrival to the answer", abs=1e-6)
    step = 2.0 ** -int(rng.integers(2, 6))  # requests arrive exactly when a batch closes
    times = [step * k for k in range(40)]
    latencies, sizes = items(student.rehearse(times, batch_costs(step / 4, 0), 50, 3 * step), "the rehearsal", 2)
    total = sum(numbers(sizes, "the sizes"))
    expect(total == 40, f"40 requests, some at the moment a batch closes: all in one batch or the next, got {total:g}")
    waits = numbers(latencies, "the latencies", 40)
    expect(
        max(waits) < 3.26 * step, f"nobody waits longer than max_wait for a worker that is free, got {max(waits):g} s"
    )
    for taken in (0, 1, 3):
        batcher = student.Batcher(print, 4, 50.0)
        for item in range(taken):
            batcher.queue.put_nowait(student.Waiting(item, 0.0, None))
        stopped = student.asyncio.wait_for(batcher.gather(), 5.0)
        cause = "whoever cancels gather wants it to end: let CancelledError through"
        what = f"gather, cancelled with {taken} requests taken,"
        refuses(student.in_virtual_time, stopped, error=TimeoutError, cause=cause, what=what)


@judges("best_setting")
def best_setting_of_all(student: Any) -> None:
    """Check that `best_setting` returns the setting with the least work among those that keep the latency bound.

    The check simulates all pairs of batch size and waiting time.
    """
    rng = draw()
    for power in (1, 3) * 3:  # with the third power, fewer batches can be more work
        times = (np.cumsum(rng.integers(1, 24, 40)) / 64).tolist()
        first, more = int(rng.integers(4, 20)) / 64, int(rng.integers(1, 4)) / 512
        seconds = tuple(first + more * size**power for size in range(100)).__getitem__
        sizes, waits = rng.choice([1, 2, 3, 4, 6, 8], 3, False).tolist(), (rng.choice(40, 3, False) / 64).tolist()
        tried = []
        for pair in product(sizes, waits):
            latencies, batches = batches_by_events(times, seconds, *pair)
            tried.append((float(np.quantile(latencies, 0.75)), sum(map(seconds, batches)), pair))
        bound = float(rng.choice([p for p, _, _ in tried])) + 1e-6
        truth = min((work, place, pair) for place, (p, work, pair) in enumerate(tried) if p <= bound)[2]
        what = f"best_setting among {sizes} and {shown(waits)} within {bound:.4g} s at q=75"
        found = student.best_setting(times, seconds, bound, sizes, waits, 75.0)
        same(found, truth, what, "the least sum of batch times among those that keep the bound; of equals the first")
    refuses(student.best_setting, (times, seconds, min(p for p, _, _ in tried) * 0.99, sizes, waits, 75.0))


def answer_understanding(student: Any) -> None:
    """Check that a million requests cost 0.025 €: an hour costs 0.18 € and serves 7.2 million requests."""
    same(student.euros_a_million(), 0.025, "the cost", "half of 4,000 requests a second, 3,600 seconds an hour")

"""Hidden checks for module 14, with counted arrivals, servers simulated on a fake clock, and queues of known waits."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy import optimize, stats

from autograder.checks import judges
from autograder.checks.check_helpers import *
from autograder.checks.plain_answers import array
from tinybench import load
from tinybench.support.traffic.load_checks import judge_of_rates


@judges("arrivals")
def arrivals_are_poisson(student: Any) -> None:
    """Check that `arrivals` draws a Poisson process: Poisson counts, uniform times and exponential gaps.

    Constant arrivals must be evenly spaced.
    """
    rng, arrivals = draw(), student.arrivals
    spread, every, edges = 0.0, 0, np.zeros(2)
    for _ in range(3):
        rate, seconds = float(rng.uniform(90, 300)), float(rng.uniform(1.3, 4))
        seeds = rng.choice(2**31, 30, replace=False).tolist()
        given = [rate] * 30, [seconds] * 30, ["poisson"] * 30, seeds
        drawn = [array(times, "arrivals") for times in each(student, arrivals, *given)]
        mean, what = rate * seconds, f"arrivals({rate:.4g}, {seconds:.4g})"
        counts, moments = np.array([len(times) for times in drawn]), np.concatenate(drawn)
        in_order = [times.ndim == 1 and bool(np.all(np.diff(times) >= 0)) for times in drawn]
        expect(all(in_order), f"{what}: expected one array of moments in ascending order")
        expect(
            bool(moments.min() >= 0 and moments.max() <= seconds), f"{what}: expected moments from 0 to {seconds:.4g} s"
        )
        error = math.sqrt(mean / len(counts))
        expect(abs(counts.mean() - mean) < 5 * error, f"{what}: expected {mean:.4g} requests on average")
        spread, every = spread + float(np.sum((counts - mean) ** 2)) / mean, every + len(counts)
        low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], every)
        expect(low < spread < high, f"{what}: the number of requests varies as a Poisson number does")
        uniform = stats.kstest(moments, "uniform", (0, seconds)).pvalue
        expect(uniform > 1e-6, f"{what}: expected moments that are as likely early as late")
        edges += [sum(edge) * rate for edge in zip(*[(times[0], seconds - times[-1]) for times in drawn], strict=True)]
        gaps = np.concatenate([np.diff(times) for times in drawn]) * rate
        expect(bool(abs(gaps.std() - 1) < 0.2 and abs(np.mean(gaps < 0.1) - 0.1) < 0.03), f"{what}: exponential gaps")
        again = array(arrivals(rate, seconds, seed=seeds[0]), "arrivals")
        expect(
            np.array_equal(again, drawn[0]),
            f"{what}: the same seed should give the same arrivals: np.random.default_rng(seed)",
        )
        expect(
            len({times.tobytes() for times in drawn}) == 30,
            f"{what}: another seed should give other arrivals: np.random.default_rng(seed)",
        )
        count = int(rng.integers(2, 40))
        same(
            arrivals(rate, count / rate, "constant"), [i / rate for i in range(count)],
            f"arrivals({rate:.4g}, {count / rate:.4g}, 'constant')", "one every 1 / rate, from 0 on",
        )  # fmt: skip
    for gap, what in zip(edges / every, ("before the first request", "after the last request"), strict=True):
        expect(0.4 < gap < 1.7, f"expected a gap of 1 / rate {what}, on average; got {gap:.3f} / rate")


def answer_arrivals(student: Any) -> None:
    """Check that the share of gaps below 2 ms is 0 with a metronome, and 1 − e^(−0.2) with Poisson arrivals."""
    same(student.close_behind_with_a_metronome(), 0, "with a metronome", "all gaps are 10 ms")
    same(student.close_behind_with_poisson(), -math.expm1(-0.2), "with Poisson arrivals", "1 − e^(−0.2)", rel=0.03)


@judges("LoadResult.latencies", "LoadResult.lateness")
def latency_counts_from_the_intended_start(student: Any) -> None:
    """Check that `latencies` and `lateness` of `LoadResult` count from the intended start of a request.

    Some requests start late. Some fail, and their latency is infinite.
    """
    rng = draw()
    for size in (1, 7, 40):
        intended = np.sort(rng.uniform(0, 9, size))
        started = intended + rng.exponential(0.2, size)
        finished = started + rng.exponential(0.5, size)
        ok = rng.random(size) < 0.7
        result = student.LoadResult(intended, started, finished, ok, 10.0)
        truth = np.where(ok, finished - intended, math.inf)
        same(result.latencies, truth.tolist(), "latencies", "from the intended start; inf where it failed", abs=1e-12)
        same(result.lateness, (started - intended).tolist(), "lateness", "started − intended", abs=1e-12)


def answer_omission(student: Any) -> None:
    """Check that stops of 2 s give a p99 of 1.8 s for many users, but one slow request in 1,800 for a single user."""
    same(student.p99_of_many(), 1.8, "the p99", "nine tenths of those in a stop wait less than 1.8 s", rel=0.01)
    same(student.slow_percent_of_one(), 100 / 1800, "the share", "18 s / 10 ms are 1,800 requests", rel=0.02)


class Answered:
    """A finished request with a result or an error. It has the methods of a future."""

    def __init__(self, function: Callable[[int], Any], i: int) -> None:
        try:
            self.outcome, self.error = function(i), None
        except Exception as error:
            self.outcome, self.error = None, error

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        callback(self)

    def cancelled(self) -> bool:
        return False

    def exception(self) -> str | None:
        return None if self.error is None else str(self.error)

    def result(self) -> Any:
        return self.outcome


class WatchedClock(FakeClock):
    """A clock that ends a loop which waits by reading it: the clock stands still, so such a loop would never end."""

    def __init__(self, now: float) -> None:
        super().__init__(now)
        self.read, self.readings = now, 0  # the latest reading, and how often it was read

    @property
    def standing(self) -> None:  # every reading has to be counted
        return None

    def __call__(self) -> float:
        self.readings = self.readings + 1 if self.now == self.read else 1
        self.read = self.now
        expect(self.readings < 100, "the loop waits by reading the clock, which stands still: wait with sleep(pause)")
        return self.now


class Pool:
    """A pool that runs each request at once. Submitting request i moves the clock by `busy[i]` seconds."""

    def __init__(self, clock: FakeClock, busy: list[float]) -> None:
        self.clock, self.busy = clock, busy
        self.sent: list[tuple[int, float]] = []

    def submit(self, function: Callable[[int], Any], *numbers: Any) -> Answered:
        i = int(number(numbers[0], "the number of a request"))
        self.sent.append((i, self.clock.now))
        answer = Answered(function, i)
        self.clock.now += self.busy[i]
        return answer


@judges("open_loop")
def open_loop_keeps_to_its_times(student: Any) -> None:
    """Check that `open_loop` starts requests on time, on a clock that only sleeping and submitting move.

    Some sleeps and some submissions take too long, and some requests fail.
    """
    rng = draw()
    for oversleeps, slow in ((0.03125, 0.0), (0.0, 0.5), (0.0625, 0.25)):
        size = int(rng.integers(5, 9))
        due = (rng.integers(0, 6, size).cumsum() / 8).tolist()
        busy = (slow * rng.integers(0, 4, size)).tolist()
        begin, failing = float(rng.integers(1, 900)), set(rng.choice(size, 2, replace=False).tolist())
        clock = WatchedClock(begin)
        pool = Pool(clock, busy)

        def sleep(seconds: Any, clock: FakeClock = clock, oversleeps: float = oversleeps) -> None:
            asked = float(number(seconds, "what it sleeps"))
            expect(asked >= 0, f"it sleeps for {asked:.4g} s: a moment that has passed is no reason to sleep")
            clock.now += asked + oversleeps

        fine = [i not in failing for i in range(size)]
        now, starts = 0.0, list[float]()
        for moment, cost in zip(due, busy, strict=True):
            now = moment + oversleeps if moment > now else now
            starts.append(now)
            now += cost
        send = tuple(fine).__getitem__  # a table, which is copied to the sandbox, so that calls cost no messages
        result = student.open_loop(send, due, pool=pool, clock=clock, sleep=sleep)
        cause = "each request starts at its intended start, or at once if that has passed"
        same([i for i, _ in pool.sent], list(range(size)), "the requests handed over", "each once, in their order")
        same([moment - begin for _, moment in pool.sent], starts, "when they were handed over", cause)
        same(result.started, starts, "started", cause)
        same([flag(x, "ok") for x in items(result.ok, "ok", size)], fine, "ok")


@judges("tail_interval")
def tail_interval_knows_jams(student: Any) -> None:
    """Check that `tail_interval` agrees with an independent formula, with and without jams.

    A jam makes the requests in one stretch of the run slow. A run whose slow requests lie in too few stretches must be
    refused.
    """
    rng = draw()
    for q, confidence, jam in ((50, 0.95, 0), (90, 0.95, 3), (90, 0.8, 9), (99, 0.95, 1), (75, 0.999, 20)):
        size = int(rng.integers(300, 500)) * 10
        late = np.repeat(rng.integers(0, jam + 1, 10), size // 10) * size // 20
        values = rng.permutation(size) + late + np.arange(size) / (2 * size)  # no ties
        ordered, p = np.sort(values), 1 - q / 100
        cut = ordered[math.ceil(round(size * q / 100, 6)) - 1]
        shares = [float(np.mean(part >= cut)) for part in values.reshape(10, -1)]
        if sum(share > 0 for share in shares) < 8:
            refuses(student.tail_interval, (values, q), what="tail_interval of a run with two or three jams")
            continue
        error = max(stats.sem(shares), math.sqrt(p * (1 - p) / size))
        factor = math.exp(stats.t.ppf(0.5 + confidence / 2, 9) * error / p)
        ends = [1 - min(1.0, p * factor), 1 - p / factor]
        low, high = numbers(student.tail_interval(values, q, confidence), "tail_interval", 2)
        for value, end, name in ((low, ends[0], "lower"), (high, ends[1], "upper")):
            place, true = int(np.searchsorted(ordered, value)), end * size - 1
            what = f"the {name} end of the interval for p{q} at {confidence:.4g}, by its rank among {size} values"
            expect(abs(place - max(true, 0)) <= 1.5, f"{what}: expected {true:.1f}, got {place}")
    refuses(student.tail_interval, (np.arange(1000.0), 99), what="tail_interval of a run whose slowest come last")


def answer_averages(student: Any) -> None:
    """Check that the mean of the p99s is 109 ms, whereas the p99 of all requests is 1000 ms."""
    same(student.mean_of_p99s(), 109, "the mean of the p99s", "(9 · 10 + 1000) / 10")
    same(student.p99_of_all(), 1000, "the p99 of all requests", "a tenth of all requests take 1000 ms")


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


# ---- queues
def waits_by_events(times: list[float], work: list[float], servers: int) -> list[float]:
    """Return the waiting time of each request. The server that is free first serves the next request."""
    free, waits = [0.0] * servers, []  # free: in ascending order
    for arrived, needed in zip(times, work, strict=True):
        first = free.pop(0)
        start = first if first > arrived else arrived
        waits.append(start - arrived)
        insort(free, start + needed)
    return waits


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


def erlang_c_wait(rate: float, service: float, servers: int) -> float:
    """Return the mean waiting time by the explicit sum of the Erlang C formula, by the logarithms of its terms."""
    work = rate * service
    *terms, last = (k * math.log(work) - math.lgamma(k + 1) for k in range(servers + 1))
    last += math.log(servers / (servers - work))
    waits = 1 / (1 + math.fsum(math.exp(term - last) for term in terms))
    return waits * service / (servers - work)


@judges("littles_law", "utilisation")
def laws_of_averages(student: Any) -> None:
    """Check that `littles_law` and `utilisation` agree with exact fractions."""
    rng = draw()
    law, shared, alone = list[Any](), list[Any](), list[Any]()
    for _ in range(8):
        rate, seconds, servers = float(rng.uniform(1, 900)), float(rng.uniform(0.001, 3)), int(rng.integers(1, 40))
        inside, busy = Fraction(rate) * Fraction(seconds), Fraction(rate) * Fraction(seconds) / servers
        law.append(((rate, seconds), float(inside)))
        shared.append(((rate, seconds, servers), float(busy)))
        alone.append(((rate, seconds), float(inside)))
    agree_at_once(student, student.littles_law, law, "L = rate × time")
    agree_at_once(student, student.utilisation, shared, "the servers share the work")
    agree_at_once(student, student.utilisation, alone, "one server by default")


@judges("mg1")
def one_server_waits(student: Any) -> None:
    """Check that `mg1` agrees with the other form of the Pollaczek–Khinchine formula: λ E[S²] / (2 (1 − ρ))."""
    rng, mg1 = draw(), student.mg1
    for cv2 in (0.0, 1.0, *rng.uniform(0, 9, 6).tolist()):
        service, rho = float(rng.uniform(0.001, 2)), rng.uniform()
        rate = float(rho) / service
        truth = rate * service**2 * (1 + cv2) / (2 * (1 - rate * service))
        agrees(mg1, truth, [(rate, service, cv2)], "ρ / (1 − ρ) × (1 + cv2) / 2 × service")
    rate = float(rng.integers(2, 90))
    refuses(mg1, (rate, 1.001 / rate, 1.0), (rate, 3 / rate, 0.0), mentions="utilisation")


@judges("mmc")
def several_servers_wait(student: Any) -> None:
    """Check that `mmc` agrees with the explicit sum of the Erlang C formula.

    Some pools have so many servers that the terms of the sum overflow floats.
    """
    rng = draw()
    for servers in (1, 2, 3, *rng.integers(4, 60, 6).tolist(), int(rng.integers(250, 350))):
        service = float(2 ** rng.uniform(-10, 1))
        rate = float(rng.uniform(0.3, 0.98)) * servers / service
        truth = erlang_c_wait(rate, service, servers)
        agrees(student.mmc, truth, [(rate, service, servers)], "by the recursion for B, then C, then W", rel=1e-7)
    refuses(student.mmc, (20.0, 0.5, 10), (21.0, 0.5, 10), mentions="utilisation")


def answer_waiting(student: Any) -> None:
    """Check that the mean waits at ρ = 0.9 are those for exponential (M/M/1) and for constant service times (M/D/1)."""
    same(student.wait_if_exponential(), 90, "the wait if exponential", "ρ / (1 − ρ) × 10 ms")
    same(student.wait_if_constant(), 45, "the wait if constant", "half of the exponential one")


@judges("waits_of_one", "waits_of_several")
def queues_event_by_event(student: Any) -> None:
    """Check that `waits_of_one` and `waits_of_several` agree with serving the requests one by one.

    The servers are idle or overloaded, and requests arrive alone or many at once.
    """
    rng = draw()
    for busy in (0.3, 0.8, 1.0, 1.5):
        for servers in (1, 2, 3, int(rng.integers(4, 12))):
            number = int(rng.integers(1, 200))
            times = np.cumsum(rng.exponential(1, number)) + rng.uniform(0, 50)
            work = rng.exponential(busy * servers, number)
            if busy == 1.0:  # whole numbers, so that many arrive at once
                times, work = np.floor(times / 3), np.floor(work)
            truth = waits_by_events(times.tolist(), work.tolist(), servers)
            what = f"the waits of {number} requests at {servers} servers"
            same(student.waits_of_several(times, work, servers), truth, what, "whoever is free first", abs=1e-9)
            if servers == 1:
                cause = "the wait before + the service before − the gap, never below 0"
                same(student.waits_of_one(times, work), truth, what, cause, abs=1e-9)


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


def latency_quantile(rate: float, service: float, servers: int, q: float) -> float:
    """Return the q-th percentile of latency in M/M/c: the sum of an exponential service and an Erlang C wait."""
    left = (servers - rate * service) / service  # the rate at which a queue drains
    waits = erlang_c_wait(rate, service, servers) * left

    def later(seconds: float) -> float:
        alone, behind = math.exp(-seconds / service), math.exp(-seconds * left)
        return (1 - waits) * alone + waits * (behind - left * service * alone) / (1 - left * service)

    return float(optimize.brentq(lambda seconds: later(seconds) - 1 + q / 100, 0, 1e3 * (service + 1 / left)))


@judges("instances_needed")
def instances_by_replay(student: Any) -> None:
    """Check that `instances_needed` returns the fewest instances that keep the latency bound, or says that it may not.

    The truth is that of M/M/c in closed form, for bounds that are far from it. Then waits are made up: a slow start,
    which does not count, and an interval that holds the bound. Arrivals must be a Poisson process.
    """
    rng, needed = draw(), student.instances_needed
    shares = (np.arange(2000) + 0.5) / 2000
    for servers in (1, 2):
        service, q = float(rng.uniform(0.005, 0.05)), float(rng.choice([75, 90]))
        services = rng.permutation(-np.log(shares)) * service
        peak = float(rng.uniform(0.55, 0.75)) * servers / service
        border = latency_quantile(peak, service, servers, q)
        for factor, truth in ((1.6, servers), (1e3, servers)) if servers > 1 else ((1.6, 1), (0.6, 2)):
            what = f"instances_needed({peak:.4g}, …, {border * factor:.4g}, q={q:g})"
            plan = items(needed(peak, services, border * factor, q, 64, int(rng.integers(99)), 2**15), what, 4)
            same(
                int(number(plan[0], what)), truth, what, "the fewest whose percentile of wait + service keeps the bound"
            )
            expect(flag(plan[1], what), f"{what}: sure, as the whole interval keeps the bound")
        refuses(needed, (peak, services, float(np.quantile(services, q / 100)) * 0.8, q, servers + 1, 0, 2**13))

    service = float(rng.uniform(0.1, 0.7))
    peak, services = 1.2 / service, service * (1 + rng.permutation(400) / 1e6)
    seen: list[tuple[np.ndarray, float]] = []

    def played(waits: Callable[[np.ndarray], np.ndarray], bound: float) -> list[Any]:
        def simulate(times: Any, work: Any, instances: Any) -> np.ndarray:
            seen.append((array(times, "arrivals"), float(array(work, "service times")[0])))
            place = np.arange(len(seen[-1][0]))
            return waits(place / len(place)) + place * 37 % 100 / 100

        plan = needed(peak, services, service + bound, 90, 9, int(rng.integers(10**6)), 400, simulate)
        return [plain(each) for each in items(plan, "instances_needed", 4)[:2]]

    for _ in range(20):
        plan = played(lambda place: np.where(place < 0.08, 50.0, 0.0), 2.0)
        same(plan, [2, True], "instances_needed, if only the first 8 % are slow,", "the first tenth does not count")
    off = [(len(times) - peak * times[-1]) ** 2 / len(times) for times, _ in seen]
    low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], len(seen))
    expect(low < sum(off) < high, "instances_needed: expected Poisson arrivals, whose number varies")
    lengths = float(np.mean([len(times) for times, _ in seen])) / 400
    expect(
        abs(lengths - 1) < 0.1, f"instances_needed: a run has {lengths:.3g} times the requests that `tail` asked for"
    )
    for column, what in (([times[-1] for times, _ in seen], "arrivals"), ([first for _, first in seen], "services")):
        expect(len(set(column)) > 1, f"instances_needed: other seeds draw other {what}; these are always the same")
    plan = played(np.zeros_like, float(rng.uniform(0.9, 0.91)))
    same(plan, [2, False], "instances_needed, if the interval holds the bound,", "cannot tell")

    def two_jams(place: np.ndarray) -> np.ndarray:
        inside = ((place > 0.3) & (place < 0.35)) | ((place > 0.66) & (place < 0.71))
        return np.where(inside & (np.arange(len(place)) % 2 == 0), 50.0, 0.0)

    plan = played(two_jams, 2.0)
    same(plan, [2, False], "instances_needed, if the slow ones come in two jams,", "cannot tell: use `tail_interval`")
    plan = items(needed(1 / service, [service] * 30, 1e6 * service, 90, 9, 0, 400), "instances_needed", 4)
    same(plain(plan[0]), 2, "instances_needed, if one would be busy all the time", "begin with utilisation below 1")


def answer_understanding(student: Any) -> None:
    """Check that the wait is ρ²/(1 − ρ²) × 9 ms (M/M/2), and that a million requests cost 0.025 €.

    An hour costs 0.18 € and serves 7.2 million requests.
    """
    same(student.wait_together(), 16, "the wait together", "M/M/2: ρ² / (1 − ρ²) × service")
    same(student.euros_a_million(), 0.025, "the cost", "half of 4,000 requests a second, 3,600 seconds an hour")

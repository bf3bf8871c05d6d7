"""Hidden checks for module 14, with counted arrivals, servers simulated on a fake clock, and queues of known waits."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize, stats

from autograder.checks import judges
from autograder.checks.check_helpers import *
from autograder.checks.plain_answers import array


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
    """Check that the share of gaps below 2 ms is 1 − e^(−0.2) with Poisson arrivals."""
    same(student.close_behind_with_poisson(), -math.expm1(-0.2), "with Poisson arrivals", "1 − e^(−0.2)", rel=0.03)


@judges("LoadResult.latencies")
def latency_counts_from_the_intended_start(student: Any) -> None:
    """Check that `latencies` of `LoadResult` count from the intended start of a request.

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
    """Check that the p99 of all requests is 1000 ms."""
    same(student.p99_of_all(), 1000, "the p99 of all requests", "a tenth of all requests take 1000 ms")


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


def erlang_c_wait(rate: float, service: float, servers: int) -> float:
    """Return the mean waiting time by the explicit sum of the Erlang C formula, by the logarithms of its terms."""
    work = rate * service
    *terms, last = (k * math.log(work) - math.lgamma(k + 1) for k in range(servers + 1))
    last += math.log(servers / (servers - work))
    waits = 1 / (1 + math.fsum(math.exp(term - last) for term in terms))
    return waits * service / (servers - work)


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
    """Check that the mean waits are ρ²/(1 − ρ²) × 9 ms (M/M/2), and half of the exponential one (M/D/1)."""
    same(student.wait_together(), 16, "the wait together", "M/M/2: ρ² / (1 − ρ²) × service")
    same(student.wait_if_constant(), 45, "the wait if constant", "ρ / (1 − ρ) / 2 × 10 ms")

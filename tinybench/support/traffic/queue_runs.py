"""Plans from simulated queues: services drawn again, runs that grow until they decide, the rule of thumb, and costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tinybench.support.basics.arguments import check_least, check_numbers, check_percentile, check_positive
from tinybench.support.basics.numbers import with_digits
from tinybench.support.traffic.load_checks import Numbers

FIRST, GROWTH = 2**13, 4  # requests of the first run, and by how much each further run is longer
CONFIDENCE = 0.98  # above 0.95 because each of several runs may err
LOWER = (95.0, 90.0, 75.0, 50.0)  # percentiles that may show a broken bound where jams are too few for the higher one


class CapacityPlan(NamedTuple):
    """The fewest instances that may keep a latency bound, and an interval for the percentile of latency with them.

    Fewer instances break the bound. If `sure` is True, the interval from `low` to `high`, in seconds, lies within the
    bound. If it is False, the longest run cannot tell whether this number is enough.
    """

    instances: int
    sure: bool
    low: float
    high: float

    def __str__(self) -> str:
        width = self.high - self.low
        ends = f"{with_digits(self.low, width)} s or more"
        if math.isfinite(width):
            ends = f"{with_digits(self.low, width)} to {with_digits(self.high, width)} s"
        told = str(self.instances) if self.sure else f"cannot tell between {self.instances} and {self.instances + 1}"
        return f"{told} ({ends} with {self.instances})"


def planned(peak_qps: float, services: Numbers, bound: float, q: float, longest: int) -> tuple[np.ndarray, float]:
    """Check the arguments of a plan. Return the service times as an array, and the mean number of busy instances."""
    check_positive(peak_qps=peak_qps, bound=bound, longest=longest)
    check_numbers(services=services)
    check_percentile(q)
    measured = np.asarray(services, dtype=float)
    return measured, round(peak_qps * float(measured.mean()), 9)  # further digits are rounding noise


def too_few(most: int, services: np.ndarray, bound: float, q: float) -> ValueError:
    """Return the error that the largest number of instances allowed breaks the bound."""
    alone = np.quantile(services, q / 100)
    return ValueError(f"{most} instances cannot bring p{q:g} within {bound:g} s: the service alone takes {alone:g} s")


def block_length(services: np.ndarray) -> int:
    """Return the number of service times that are drawn together: √n of n measurements."""
    return max(1, math.isqrt(len(services)))


def redrawn(services: np.ndarray, number: int, seed: int | None) -> np.ndarray:
    """Return `number` service times, drawn from a measured series in blocks that begin at random places.

    Within a block the order is kept, so that slow requests that come together stay together. If the whole series were
    repeated instead, each repetition would take the same time, and near saturation the queue would be too short. Moving
    blocks: Künsch, Annals of Statistics 17 (1989).
    """
    size = block_length(services)
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])  # independent of arrivals with this seed
    starts = rng.integers(len(services), size=-(-number // size))
    places = (starts[:, None] + np.arange(size)).ravel()[:number]
    return np.asarray(services[places % len(services)])


def settled_after(rho: float, services: np.ndarray) -> float:
    """Return the number of requests after which a simulated run at this utilisation shows the steady state.

    A queue forgets its start, and each jam, after some 4 / (1 − ρ)² requests, if gaps and services are exponential. The
    factor is the mean of their squared variations. A run of 25 times this length has a first tenth to drop and ten
    stretches that hardly depend on each other. Whitt, "Planning queueing simulations", Management Science 35 (1989).
    """
    if rho >= 1:
        return math.inf
    size = block_length(services)
    blocks = services[: len(services) // size * size].reshape(-1, size).mean(axis=1)
    variation = max(services.var(), size * blocks.var()) / services.mean() ** 2  # the second where slow ones cluster
    return float(100 * (1 + variation) / 2 / (1 - rho) ** 2)


def tail_of_runs(
    run: Callable[[int, int], np.ndarray],
    interval: Callable[[np.ndarray, float, float], tuple[float, float]],
    load: float,
    services: np.ndarray,
    bound: float,
    q: float,
    longest: int,
) -> Callable[[int], tuple[float, float]]:
    """Return a function from a number of instances to an interval for the q-th percentile of latency.

    Runs grow until the interval lies on one side of the bound. A queue that begins empty is shorter than in its steady
    state, so a run that has not settled can break a bound, but not keep it: its upper end is infinite. So is that of a
    run with too few jams. A lower percentile is then the lower end, as the q-th one lies above it.

    Parameters
    ----------
    run
        A function that simulates a number of instances and of requests, and returns latencies without the warm-up.
    interval
        A function as `tinybench.load.tail_interval`.
    load, services
        The number of instances that are busy on average, and the measured service times.
    longest
        Largest number of requests in a run.

    Raises ValueError if a service is shorter than 0, or all are 0.
    """
    check_least(**{"the shortest service": float(services.min())})
    check_positive(**{"the mean service": float(services.mean())})

    def judged(latencies: np.ndarray) -> tuple[float, float]:
        for lower in (q, *(each for each in LOWER if each < q)):
            try:
                low, high = interval(latencies, lower, CONFIDENCE)
            except ValueError:
                continue
            return low, high if lower == q else math.inf
        return 0.0, math.inf

    def tail(instances: int) -> tuple[float, float]:
        settled, requests = settled_after(load / instances, services), min(FIRST, longest)
        while True:
            low, high = judged(run(instances, requests))
            high = math.inf if requests < settled else high
            if low > bound or high <= bound or requests * GROWTH > longest:
                return low, high
            requests *= GROWTH

    return tail


def rule_of_thumb(peak_qps: float, service: float, safety: float = 1.5, most_busy: float = 0.7) -> int:
    """Return the number of instances by the usual rule of thumb. It ignores the bound and the variation."""
    check_positive(peak_qps=peak_qps, service=service, safety=safety, most_busy=most_busy)
    return math.ceil(peak_qps * service * safety / most_busy)


def cost_per_million(hourly: float, rate: float) -> float:
    """Return the cost of a million requests, if all instances cost `hourly` together and answer `rate` per second."""
    check_least(hourly=hourly)
    check_positive(rate=rate)
    return hourly / (rate * 3600) * 1e6

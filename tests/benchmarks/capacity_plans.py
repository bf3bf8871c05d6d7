"""Is `instances_needed` right near saturation, and how often can it not tell?

Each case is a peak, a distribution of service times and a bound for p99. The peak keeps a number of instances busy for a
fraction ρ of the time; the bound lies between a third and three times the true p99 with that number, at random. A plan is right if
it is sure of a number that keeps the bound while one fewer does not, by the truth; a plan that cannot tell is right if
fewer than its instances do not. The truth: M/M/c in closed form; M/D/1 by its series; the others, which have no closed
form, and M/D/c, by a long run of another program, 512 queues at once by the recursion of Kiefer and Wolfowitz. The
service times that a plan receives are the quantiles of their distribution, shuffled, so that its own error is the run's.
"""

from __future__ import annotations

import math
from functools import cache, partial
from statistics import fmean
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import gamma

from tests.benchmarks.formats import grouped, lines, share
from tests.benchmarks.harness import Part, Record, Records, Trial
from tinybench.load import instances_needed

RIGHT, RARE, CALM = 0.95, 0.1, 0.9  # right at least so often; cannot tell at most so often, up to this ρ
MEASURED, QUEUES, LATE = 100_000, 512, 0.01
RHOS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)
KINDS: dict[str, tuple[float | None, int, tuple[float, ...]]] = {  # the shape of services, the most servers, and ρ
    "M/M/1": (None, 1, RHOS),
    "M/M/c": (None, 12, RHOS),
    "M/D/1": (math.inf, 1, RHOS),
    "M/G/1": (0.5, 1, RHOS[:-2]),  # a long run at 0.98 or 0.99 would not be long enough
    "M/G/c": (0.5, 4, RHOS[:-2]),
}
CASES = [(kind, rho, number) for kind, (_, _, rhos) in KINDS.items() for rho in rhos for number in range(5)]


def drawn(shape: float | None, rng: np.random.Generator, size: Any) -> np.ndarray:
    """Return service times with mean 1: exponential, all alike, or of a gamma distribution of this shape."""
    if shape == math.inf:
        return np.ones(size)
    return rng.exponential(1, size) if shape is None else rng.gamma(shape, 1 / shape, size)


def services(shape: float | None) -> np.ndarray:
    """Return the quantiles of a distribution with mean 1, shuffled."""
    place = (np.arange(MEASURED) + 0.5) / MEASURED
    times = np.ones(MEASURED) if shape == math.inf else gamma.ppf(place, shape or 1.0)
    return np.asarray(np.random.default_rng(14).permutation(times / times.mean()))


def mmc_later(rho: float, servers: int, seconds: float) -> float:
    """Return the share of requests of M/M/c whose latency is above a number of service times."""
    busy, blocked = rho * servers, 1.0
    for k in range(1, servers + 1):
        blocked = busy * blocked / (k + busy * blocked)
    waits, left = blocked / (1 - rho * (1 - blocked)), servers - busy
    if abs(left - 1) < 1e-9:
        return math.exp(-seconds) * (1 + waits * seconds)
    return math.exp(-seconds) + waits * (math.exp(-left * seconds) - math.exp(-seconds)) / (1 - left)


def md1_later(rho: float, seconds: float) -> float:
    """Return the share of requests of M/D/1 whose latency is above a number of service times, by its decay.

    The share falls by one exponential, but for terms that vanish within a few service times. Tijms, "A First Course in
    Stochastic Models" (2003), section 9.6.
    """
    rate = brentq(lambda x: rho * math.expm1(x) - x, (1 - rho), 60.0)
    return (1 - rho) / (rho * math.exp(rate) - 1) * math.exp(-rate * (seconds - 1))


@cache
def long_run(shape: float | None, rho: float, servers: int) -> float:
    """Return p99 of a long run: of each queue the work ahead at its servers, sorted, by Kiefer and Wolfowitz."""
    rng = np.random.default_rng([7, servers, round(1e4 * rho)])
    settled = round(25 / (1 - rho) ** 2) + 1000
    ahead, found = np.zeros((QUEUES, servers)), []
    for step in range(4 * settled):
        work = drawn(shape, rng, QUEUES)
        if step >= settled and step % (settled // 1000) == 0:
            found.append(ahead[:, 0] + work)
        ahead[:, 0] += work
        ahead -= rng.exponential(1 / (rho * servers), QUEUES)[:, None]
        np.maximum(ahead, 0, out=ahead)
        ahead.sort(axis=1)
    return float(np.quantile(np.concatenate(found), 1 - LATE))


def true_p99(shape: float | None, busy: float, servers: int) -> float:
    """Return the true p99 of latency in service times, infinite if the queue grows for ever."""
    rho = busy / servers
    if rho >= 1:
        return math.inf
    if shape is not None and (shape < math.inf or servers > 1):
        return long_run(shape, rho, servers)
    later = partial(mmc_later, rho, servers) if shape is None else partial(md1_later, rho)
    return float(brentq(lambda seconds: later(seconds) - LATE, 1.0, 10 - 10 * math.log(LATE) / (1 - rho)))


def measured(trial: Trial) -> Record:
    kind, rho, number = trial.case
    shape, most, _ = KINDS[kind]
    rng = np.random.default_rng([number, *map(ord, kind), round(100 * rho)])
    servers = 1 if most == 1 else int(rng.integers(2, most + 1))
    busy, times = rho * servers, services(shape)
    border, alone = true_p99(shape, busy, servers), float(np.quantile(times, 1 - LATE))
    low, high = math.log(max(border / 3, 1.2 * alone)), math.log(3 * border)
    bound = math.exp(rng.uniform(low, high))
    plan = instances_needed(busy, times, bound, seed=number, longest=2**15 if trial.short else 2**21)
    enough = true_p99(shape, busy, plan.instances) <= bound
    fewer = true_p99(shape, busy, plan.instances - 1) > bound if plan.instances > 1 else True
    return {
        "sure": plan.sure,
        "right": fewer and (enough or not plan.sure),
        "instances": plan.instances,
        "bound": bound,
    }


def goals(found: Records) -> dict[str, bool]:
    calm = [plan for plan in found if plan["rho"] <= CALM]
    return {
        f"right, or cannot tell, in {RIGHT:.0%} of the cases or more": fmean(plan["right"] for plan in found) >= RIGHT,
        f"cannot tell in {RARE:.0%} or fewer, up to ρ = {CALM:g}": fmean(not plan["sure"] for plan in calm) <= RARE,
    }


def page(found: Records) -> list[str]:
    rows = [
        {
            "kind": kind,
            "to": " to ".join(dict.fromkeys(f"{end:g}" for end in (plans[0]["rho"], plans[-1]["rho"]))),
            "plans": len(plans),
            "right": share(sum(plan["right"] for plan in plans), len(plans)),
            "unsure": share(sum(not plan["sure"] for plan in plans), len(plans)),
        }
        for kind, plans in [
            *((kind, plans) for (kind,), plans in grouped(found, "kind").items()),
            *(("all", plans) for plans in grouped(sorted(found, key=lambda plan: plan["rho"]), "rho").values()),
        ]
    ]
    return [
        f"{len(found)} peaks and bounds of p99, against closed forms and long runs:",
        lines(
            rows,
            "queue | ρ | plans | right, or cannot tell | cannot tell",
            "{kind} | {to} | {plans} | {right} | {unsure}",
        ),
    ]


PART = Part(
    "Plans near saturation",
    *(measured, page, goals, CASES),
    short=[("M/M/1", 0.5, 0), ("M/D/1", 0.99, 0)],
    fields=("kind", "rho", "number"),
)

"""How much per second something does: measured in shuffled rounds, the best of each."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tinybench.support.basics.short_reprs import short_repr

Clock = Callable[[], float]
ROUNDS = 8
BEST_OF = 2  # at least


@dataclass
class Probe:
    """Something to call again and again: it does `amount` operations, or moves so many bytes, in each call."""

    call: Callable[[], Any]
    amount: float
    metadata: dict[str, Any] = field(default_factory=dict)
    loops: int = 1

    __repr__ = short_repr

    def rate(self, clock: Clock, seconds: float = 0.0) -> float:
        """Return the amount per second, in 10⁹: the best of some measurements in a row, as many as `seconds` allow."""
        times: list[float] = []
        while len(times) < BEST_OF or sum(times) < seconds:
            begin = clock()
            for _ in range(self.loops):
                self.call()
            times.append(max(clock() - begin, 1e-9))
        return self.loops * self.amount / min(times) / 1e9


def call_time(call: Callable[[], Any], clock: Clock, least: float = 1e-3) -> float:
    """Return the seconds of a call, of as many in a row as take `least`, after one that does not count."""
    call()
    loops = 1
    while True:
        begin = clock()
        for _ in range(loops):
            call()
        if (taken := clock() - begin) >= least or loops >= 2**20:
            return max(taken, 1e-9) / loops
        loops *= 2 if taken <= 0 else max(2, min(64, round(least / taken)))


def measure_rates(
    probes: Sequence[Probe], seconds: float, rounds: int = ROUNDS, clock: Clock = time.perf_counter, seed: int = 0
) -> list[list[float]]:
    """Return the rates of each probe in every round, in 10⁹ per second; the probes come in an order drawn each time.

    About `seconds` are spread evenly. In a round each probe is measured several times, for a millisecond or a call, and
    the best counts: what other programs take away is no matter of the machine's.
    """
    for probe in probes:
        probe.loops = max(1, round(1e-3 / call_time(probe.call, clock)))
    rates: list[list[float]] = [[] for _ in probes]
    order, rng = list(range(len(probes))), random.Random(seed)
    for _ in range(rounds):
        rng.shuffle(order)
        for place in order:
            rates[place].append(probes[place].rate(clock, seconds / len(probes) / rounds))
    return rates

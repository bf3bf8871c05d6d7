"""Measurements of rates in shuffled rounds. In each round, the best of several measurements counts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tinybench.support.basics.short_reprs import short_repr

Clock = Callable[[], float]
ROUNDS = 8
BEST_OF = 2  # smallest number of measurements of which the best counts


@dataclass
class Probe:
    """A function to measure by repeated calls, and the number of operations or bytes of each call."""

    call: Callable[[], Any]
    amount: float
    metadata: dict[str, Any] = field(default_factory=dict)
    loops: int = 1

    __repr__ = short_repr

    def rate(self, clock: Clock, seconds: float = 0.0) -> float:
        """Return the rate in 10⁹ operations or bytes per second: the best of several successive measurements.

        The measurements are repeated until they have taken `seconds`, but at least `BEST_OF` times.
        """
        times: list[float] = []
        while len(times) < BEST_OF or sum(times) < seconds:
            begin = clock()
            for _ in range(self.loops):
                self.call()
            times.append(max(clock() - begin, 1e-9))
        return self.loops * self.amount / min(times) / 1e9


def call_time(call: Callable[[], Any], clock: Clock, least: float = 1e-3) -> float:
    """Return the mean time of a call in seconds, measured over enough calls to take at least `least` seconds.

    One warm-up call is made before the measurement.
    """
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
    """Return the rates of each probe in every round, in 10⁹ per second. Each round has its own random order of probes.

    The total time is about `seconds`, divided evenly among all probes and rounds. In a round, each probe is measured
    several times. Each measurement takes about a millisecond, or one call if a call takes longer. The best measurement
    counts, because slowdowns by other programs are not a property of the machine.
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

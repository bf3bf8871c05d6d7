"""The variants of a pipeline that a what-if experiment compares, and the rounds in which it measures them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tinybench.support.basics.arguments import check_numbers, check_positive
from tinybench.support.profiling.what_if_experiment import Run, Stage, in_rounds, prepare_stages
from tinybench.support.profiling.what_if_gains import Gain, Row, WhatIf, gain_interval


class Formulas(NamedTuple):
    """The functions of lesson 15: `slowed_stages`, `virtual_gain` and `slowing_error`."""

    slowed: Callable[..., dict[str, Stage]]
    gain: Gain
    error: Callable[[Any, Any, int], float]


def check_plain(plain: Sequence[float], times: int) -> None:
    """Raise ValueError unless there are finite times of plain runs, and their median and `times` are above 0."""
    check_positive(times=times)
    check_numbers(plain=plain)
    check_positive(**{"the median of plain": float(np.median(plain))})


def repeat_counts(speedup: float) -> tuple[int, int]:
    """Return how often the other stages run and how often one stage runs, to simulate a speed-up of that stage.

    For a speed-up of 1.25 the result is (5, 4): the other stages run five times, and the stage only four times, so it
    is 1.25 times as fast by comparison. The result is the ratio closest to `speedup`, in lowest terms, with a second
    number of at most 10. Raises ValueError unless `speedup` is finite and at least 1.1, because a smaller speed-up is
    too small to detect.
    """
    if not 1.1 <= speedup < math.inf:
        raise ValueError(f"speedup is {speedup}; 2 is twice as fast, and it must be at least 1.1")
    return Fraction(speedup).limit_denominator(10).as_integer_ratio()


def measure_gains(
    run: Run,
    stages: Mapping[str, Stage],
    name: str,
    speedups: Sequence[float],
    formulas: Formulas,
    *,
    once: Collection[str],
    beside: Mapping[str, Mapping[str, Stage]],
    rounds: int,
    max_seconds: float,
    method: str | None,
    clock: Callable[[], float],
) -> WhatIf:
    """Return the gains from a faster stage. `tinybench.bottleneck.what_if` describes the other parameters."""
    plan = prepare_stages(run, stages, name, once, clock)
    counts = {speedup: repeat_counts(speedup) for speedup in speedups}
    stood = plan.stand_in if method != "repeats" else None
    arms = {"plain": formulas.slowed(plan.stages, 1), **beside}
    trios = {}
    for speedup, (p, q) in counts.items():
        if stood:
            trios[speedup] = "plain", "stand-in", f"stand-in {speedup:g}×", 1
            arms["stand-in"] = {**plan.stages, name: stood}
            arms[trios[speedup][2]] = {**plan.stages, name: stood.faster(speedup)}
        else:
            trios[speedup] = "plain", f"all {p} times", f"all {p} times, {name} {q}", p
            arms[trios[speedup][1]] = formulas.slowed(plan.stages, p)
            arms[trios[speedup][2]] = formulas.slowed(plan.stages, p, name, q)

    def found(seconds: Mapping[str, Sequence[float]], resamples: int = 400) -> WhatIf:
        rows, share = [], plan.trial.share(name, float(np.median(seconds["plain"])))
        for speedup, (*names, p) in trios.items():
            plain, slowed, spared = (seconds[each] for each in names)
            low, high = gain_interval(formulas.gain, plain, slowed, spared, p, resamples)
            gain, error = formulas.gain(plain, slowed, spared, p), formulas.error(plain, slowed, p)
            rows.append(Row(speedup, gain, low, high, share * (1 - 1 / speedup), error))
        return WhatIf(name, tuple(rows), plan.trial, "stand-in" if stood else "repeats", seconds, plan.metadata)

    def enough(seconds: Mapping[str, Sequence[float]]) -> bool:
        return found(seconds, 100).narrow(beside)

    return found(in_rounds(run, arms, rounds, max_seconds=max_seconds, enough=enough, clock=clock))

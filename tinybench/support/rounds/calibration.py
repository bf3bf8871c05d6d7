"""The number of calls in one measurement: large enough for the clock, and equal for models of similar duration."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from tinybench.support.rounds.checked_calls import Clock

if TYPE_CHECKING:
    from tinybench.support.rounds.subject import Subject


def clock_step(clock: Clock, seconds: float = 0.02) -> float:
    """Return the step of a coarse clock in seconds, or 0.0 if the clock is fine or stands still.

    For a clock with the attribute `simulated`, return 0.0 at once, because such a clock moves only when a model runs.
    """
    if getattr(clock, "simulated", False) is True:
        return 0.0
    readings = [clock() for _ in range(200)]
    steps = {after - before for before, after in pairwise(readings)}
    if steps != {0.0}:  # a fine clock moves between any two readings
        return min(steps - {0.0}) if 0.0 in steps and min(steps - {0.0}) > 5e-7 else 0.0
    began, until = readings[-1], time.perf_counter() + seconds
    while clock() == began and time.perf_counter() < until:
        pass
    if clock() == began:
        return 0.0
    moments = [clock()]
    while len(moments) < 5:  # the first reading lies somewhere within a step
        if (now := clock()) != moments[-1]:
            moments.append(now)
    return min(after - before for before, after in pairwise(moments[1:]))


def share_calibration(subjects: Sequence[Subject], step: float = 0.0) -> None:
    """Set equal `loops` for subjects of similar duration, and equal `overhead` for all subjects, to compare fairly.

    A subject is a model to be timed. `loops` is the number of calls in one measurement. A measurement lasts at least
    10 µs and, if the clock moves in steps of `step` seconds, at least 20 steps.
    """
    warm, least = [subject for subject in subjects if subject.metadata["warmup"]], max(10e-6, 20 * step)
    for subject in warm:
        median = subject.metadata["warmup"]["median"]
        if step:
            subject.loops = next_size(math.ceil(least / max(median, 1e-9)) - 1)
        elif subject.setup or median < least:
            _lengthen(subject, least)
    for group in _alike(sorted(warm, key=_warm_median)):
        loops = max(subject.loops for subject in group)
        for subject in group:
            subject.loops = loops
    overhead = min(subject.metadata["timer_overhead"] for subject in subjects)
    for subject in subjects:
        subject.overhead = overhead
        subject.metadata |= {"loops": subject.loops, "timer_overhead": overhead}


def _warm_median(subject: Subject) -> float:
    return max(float(subject.metadata["warmup"]["median"]), 1e-9)


def _alike(subjects: Sequence[Subject]) -> list[Sequence[Subject]]:
    """Split subjects, sorted by duration, into groups of similar duration.

    In a group, successive durations differ at most by a factor of 3, and the first and the last by a factor of 10.
    """
    if len(subjects) < 2:
        return [subjects] if subjects else []
    medians = [_warm_median(subject) for subject in subjects]
    gaps = [after / before for before, after in pairwise(medians)]
    if max(gaps) <= 3 and medians[-1] <= 10 * medians[0]:
        return [subjects]
    cut = gaps.index(max(gaps)) + 1
    return _alike(subjects[:cut]) + _alike(subjects[cut:])


def _lengthen(subject: Subject, least: float) -> None:
    """Raise the number of calls until a measurement lasts `least` s or, if the clock proves coarse, 20 clock steps."""
    seen: list[float] = []
    while subject.loops <= 10_000_000:
        took = [elapsed * subject.loops for elapsed in subject.times(3)]
        seen += [elapsed for elapsed in took if elapsed > 0]
        if 0.0 in took and seen:
            least = max(least, 20 * min(seen))
        if min(took) >= least:
            return
        subject.loops = next_size(subject.loops)
    raise RuntimeError(
        f"10 million calls of {subject.name or 'the model'} took less than {least:.3g} s by this clock, whose steps "
        "are too coarse for them, or which stands still; use time.perf_counter"
    )


def next_size(loops: int) -> int:
    """Return the smallest of the numbers 1, 2, 5, 10, 20, 50, … that is larger than `loops`."""
    power = 1
    while 10 * power <= loops:
        power *= 10
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power > loops)


def runs_within(seconds: float, per_call: float) -> int:
    """Return the number of calls, each of `per_call` seconds, that fill `seconds`: at least 1, at most 10 000."""
    return max(1, min(10_000, round(seconds / max(per_call, 1e-9))))

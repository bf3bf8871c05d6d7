# Written by "autograder export" from modules/15_bottleneck/15_bottleneck.ipynb: edit the notebook, not this file.

"""Bottlenecks of inference: profiles, what-if experiments and the roofline."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tinybench.sampler import Sampler
from tinybench.support.basics.arguments import check_numbers, check_pairs, check_positive
from tinybench.support.profiling.roofline_model import Work, attainable
from tinybench.support.profiling.stacks import Profile, Ticks, ticking
from tinybench.support.profiling.what_if_arms import Formulas, check_plain, measure_gains
from tinybench.support.profiling.what_if_experiment import Repeated, Stage, WhatIf


def profile(call: Callable[[], Any], seconds: float = 2.0, interval: float = 0.01) -> Profile:
    """Call a function again and again for `seconds`, and sample the call stack of this thread.

    Samples are triggered by a signal if this is the main thread.

    The sampler's clock counts whole intervals: see `Ticks`.
    """
    ticks = Ticks(interval)
    sampler = Sampler(ticks.clock)
    with ticking(sampler.take, ticks):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            call()
    return Profile(sampler.samples, ticks.how)


def slowed_stages(
    stages: Mapping[str, Stage], times: int, spared: str | None = None, less: int = 0
) -> dict[str, Stage]:
    """Return stages that each run `times` times whenever they are called. The `spared` stage runs only `less` times.

    `Repeated(stage, times)` is a stage that runs `times` times.
    """
    return {name: Repeated(stage, less if name == spared else times) for name, stage in stages.items()}


def virtual_gain(plain: Sequence[float], slowed: Sequence[float], spared: Sequence[float], times: int) -> float:
    """Return the fraction of a run's time that a faster stage would save.

    Parameters
    ----------
    plain
        Seconds of unchanged runs.
    slowed
        Seconds of runs in which everything takes `times` times as long, measured in the same rounds as `spared`.
    spared
        Seconds of runs in which everything except the stage takes `times` times as long.

    Raises ValueError if there are no runs, a time is not finite, `plain` took no time, or `slowed` and `spared` differ
    in length.
    """
    check_plain(plain, times)
    check_pairs(slowed=slowed, spared=spared)
    saved = np.median(np.subtract(slowed, spared)) / times
    return float(saved / np.median(plain))


def slowing_error(plain: Sequence[float], slowed: Sequence[float], times: int) -> float:
    """Return the fraction by which slowed runs take longer than `times` times the plain runs.

    The fraction is negative if the slowed runs take less time than that.

    Raises ValueError if there are no runs, a time is not finite, or `plain` took no time.
    """
    check_plain(plain, times)
    check_numbers(slowed=slowed)
    return float(np.median(slowed) / (times * np.median(plain)) - 1)


def what_if(
    run: Callable[[Mapping[str, Stage]], Any],
    stages: Mapping[str, Stage],
    name: str,
    speedups: Sequence[float] = (1.25, 2, 5),
    *,
    once: Collection[str] = (),
    beside: Mapping[str, Mapping[str, Stage]] | None = None,
    rounds: int = 6,
    max_seconds: float = 60.0,
    method: str | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> WhatIf:
    """Measure the end-to-end gain that a faster stage would bring, before anyone makes the stage faster.

    In a chain of stages, the gain is simulated by repetition: all other stages run p times per call, and the stage in
    question only q times, so that it is p / q times as fast by comparison. If stages run in several threads or
    processes, a stand-in replaces the stage. The stand-in does work of the same kind, at first for as long as the
    stage, then for a shorter time, and returns the recorded answers of the stage. In both cases, everything else must
    take as long as before (or p times as long); otherwise the gain is reported as unknown.

    Parameters
    ----------
    run
        A function that sends all items, 25 or more, through the stages that it receives.
    stages
        Functions by name. They are called repeatedly, and must not change their inputs.
    name
        Name of the stage to make faster.
    speedups
        Factors by which the stage becomes faster, each above 1.
    once
        Names of stages that must not be called twice on the same input. These stages are slowed by a delay instead.
    beside
        Other sets of stages to run in the same rounds, such as one with a stage that really is faster; see `saved`.
    rounds
        Minimum number of rounds.
    max_seconds
        Time in s after which to stop, even if the gains are not yet known to within 1.5 percentage points.
    method
        ``"repeats"`` to repeat the stages in any case; by default, a stand-in is used if possible.
    clock
        A function that returns seconds.

    Returns
    -------
    WhatIf
        For each speed-up, the gain with its interval, or the reason why it is unknown. In addition, the gain expected
        from the fraction of the time that the stage takes.

    Raises
    ------
    StageError
        If a stage ends its thread or process. The message names the stage.
    """
    formulas = Formulas(slowed_stages, virtual_gain, slowing_error)
    how: dict[str, Any] = {"once": once, "beside": beside or {}, "rounds": rounds, "max_seconds": max_seconds}
    return measure_gains(run, stages, name, speedups, formulas, method=method, clock=clock, **how)


def gemm_work(m: int, k: int, n: int, a_bytes: int = 4, b_bytes: int = 4, c_bytes: int = 4) -> Work:
    """Return the work of multiplying an (m, k) matrix by a (k, n) matrix.

    A multiplication and an addition count as two operations. Each number of the three matrices is moved once. A number
    takes `a_bytes` in the first matrix, `b_bytes` in the second, and `c_bytes` in the result.
    """
    return Work(2.0 * m * k * n, float(m * k * a_bytes + k * n * b_bytes + m * n * c_bytes))


def wall(work: Work, seconds: float, peak: float, bandwidth: float, near: float = 0.3) -> str:
    """Return what limits an operator: ``"compute"``, ``"memory"``, or ``"overhead"`` if it is far below the roofline.

    Far below means that the operator reaches less than the fraction `near` of the operations/s attainable at its
    intensity. At the ridge of the roofline, the limit is ``"compute"``. Raises ValueError unless `seconds`, `peak` and
    `bandwidth` are above 0.
    """
    check_positive(seconds=seconds)
    if work.flop / seconds < near * attainable(work.intensity, peak, bandwidth):
        return "overhead"
    return "compute" if work.intensity * bandwidth >= peak else "memory"

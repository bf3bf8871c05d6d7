# Written by "autograder export" from modules/15_bottleneck/15_bottleneck.ipynb: edit the notebook, not this file.

"""Bottlenecks of inference: profiles, what-if experiments, rooflines and scaling."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tinybench.sampler import Sampler
from tinybench.support.basics.arguments import check_least, check_numbers, check_pairs, check_positive, check_serial
from tinybench.support.basics.numbers import number_of
from tinybench.support.profiling.matrix_operators import PRODUCTS
from tinybench.support.profiling.stacks import Profile, Ticks, ticking
from tinybench.support.profiling.what_if_experiment import (
    Repeated,
    Row,
    Stage,
    WhatIf,
    gain_interval,
    in_rounds,
    prepare_stages,
)


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
    check_positive(times=times)
    check_pairs(slowed=slowed, spared=spared)
    check_numbers(plain=plain)
    check_positive(**{"the median of plain": float(np.median(plain))})
    saved = np.median(np.subtract(slowed, spared)) / times
    return float(saved / np.median(plain))


def slowing_error(plain: Sequence[float], slowed: Sequence[float], times: int) -> float:
    """Return the fraction by which slowed runs take longer than `times` times the plain runs.

    The fraction is negative if the slowed runs take less time than that.

    Raises ValueError if there are no runs, a time is not finite, or `plain` took no time.
    """
    check_positive(times=times)
    check_numbers(plain=plain, slowed=slowed)
    check_positive(**{"the median of plain": float(np.median(plain))})
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
    plan = prepare_stages(run, stages, name, once, clock)
    counts = {speedup: repeat_counts(speedup) for speedup in speedups}
    stood = plan.stand_in if method != "repeats" else None
    arms = {"plain": slowed_stages(plan.stages, 1), **(beside or {})}
    trios = {}
    for speedup, (p, q) in counts.items():
        if stood:
            trios[speedup] = "plain", "stand-in", f"stand-in {speedup:g}×", 1
            arms["stand-in"] = {**plan.stages, name: stood}
            arms[trios[speedup][2]] = {**plan.stages, name: stood.faster(speedup)}
        else:
            trios[speedup] = "plain", f"all {p} times", f"all {p} times, {name} {q}", p
            arms[trios[speedup][1]] = slowed_stages(plan.stages, p)
            arms[trios[speedup][2]] = slowed_stages(plan.stages, p, name, q)

    def found(seconds: Mapping[str, Sequence[float]], resamples: int = 400) -> WhatIf:
        rows, share = [], plan.trial.share(name, float(np.median(seconds["plain"])))
        for speedup, (*names, p) in trios.items():
            plain, slowed, spared = (seconds[each] for each in names)
            low, high = gain_interval(virtual_gain, plain, slowed, spared, p, resamples)
            gain, error = virtual_gain(plain, slowed, spared, p), slowing_error(plain, slowed, p)
            rows.append(Row(speedup, gain, low, high, share * (1 - 1 / speedup), error))
        return WhatIf(name, tuple(rows), plan.trial, "stand-in" if stood else "repeats", seconds, plan.metadata)

    def enough(seconds: Mapping[str, Sequence[float]]) -> bool:
        return found(seconds, 100).narrow(beside or ())

    return found(in_rounds(run, arms, rounds, max_seconds=max_seconds, enough=enough, clock=clock))


class Work(NamedTuple):
    """The number of operations on floats or integers, and the least number of bytes that are read and written."""

    flop: float
    bytes: float

    @property
    def intensity(self) -> float:
        """The number of operations per byte."""
        return self.flop / self.bytes


def gemm_work(m: int, k: int, n: int, a_bytes: int = 4, b_bytes: int = 4, c_bytes: int = 4) -> Work:
    """Return the work of multiplying an (m, k) matrix by a (k, n) matrix.

    A multiplication and an addition count as two operations. Each number of the three matrices is moved once. A number
    takes `a_bytes` in the first matrix, `b_bytes` in the second, and `c_bytes` in the result.
    """
    return Work(2.0 * m * k * n, float(m * k * a_bytes + k * n * b_bytes + m * n * c_bytes))


def attainable(intensity: float, peak: float, bandwidth: float) -> float:
    """Return the attainable performance, in operations/s, at an intensity in operations/byte.

    `peak` is in operations/s, and `bandwidth` in bytes/s.
    """
    check_least(intensity=intensity)
    check_positive(bandwidth=bandwidth)
    if not peak > 0:
        raise ValueError(f"peak is {peak}; give operations/s above 0, or infinity if arithmetic is not a limit")
    return min(peak, intensity * bandwidth)


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


def speedup(seconds: Mapping[int, float]) -> dict[int, float]:
    """Return the speed-up over one worker, for each number of workers n.

    Raise ValueError if the time of one worker is missing, or if a time or a worker count is not finite and above 0.
    """
    check_positive(**{f"seconds[{n}]": took for n, took in seconds.items()})
    if 1 not in seconds:
        raise ValueError(f"seconds has {', '.join(map(str, seconds))} workers; a speed-up needs the time of 1, too")
    return {n: seconds[1] / took for n, took in seconds.items()}


def efficiency(seconds: Mapping[int, float]) -> dict[int, float]:
    """Return the speed-up divided by n, for each n. It is 1 if n workers are n times as fast as one."""
    check_least(1, **{f"n = {n}": n for n in seconds})
    return {n: gain / n for n, gain in speedup(seconds).items()}


def amdahl(n: float, serial: float) -> float:
    """Return the speed-up of a fixed task with n workers, if the fraction `serial` of the task runs on one worker."""
    check_serial(n, serial)
    return 1 / (serial + (1 - serial) / n)


def gustafson(n: float, serial: float) -> float:
    """Return the speed-up with n workers of a task that grows with n (Gustafson's law).

    The fraction `serial` of the time with n workers is spent on one worker alone.
    """
    check_serial(n, serial)
    return n - serial * (n - 1)


def usl(n: float, contention: float, crosstalk: float) -> float:
    """Return the speed-up of n workers according to the Universal Scalability Law.

    `contention` and `crosstalk` are the two parameters of the law.
    """
    check_least(1, n=n)
    check_least(contention=contention, crosstalk=crosstalk)
    return n / (1 + contention * (n - 1) + crosstalk * n * (n - 1))


def fit_usl(speedups: Mapping[int, float]) -> tuple[float, float]:
    """Return the contention and the crosstalk, neither below 0, with which the law fits measured speed-ups best.

    The law is the Universal Scalability Law. The fit is by least squares of n / speed-up − 1, which is linear in both
    parameters. Raises ValueError unless at least two worker counts are above 1, and all speed-ups are finite and above
    0.
    """
    from scipy.optimize import nnls

    if sum(n > 1 for n in speedups) < 2:
        raise ValueError(
            f"speed-ups of {number_of(len(speedups), 'number')} of workers; two unknowns take two of them above 1"
        )
    check_positive(**{f"the speed-up of {n}": gain for n, gain in speedups.items()})
    n = np.array([float(workers) for workers in speedups])
    lost = n / np.array(list(speedups.values())) - 1
    contention, crosstalk = nnls(np.stack([n - 1, n * (n - 1)], axis=1), lost)[0]
    return float(contention), float(crosstalk)


def best_workers(contention: float, crosstalk: float) -> float:
    """Return the number of workers with the largest speed-up according to the Universal Scalability Law.

    The number is at least 1, is not rounded, and may be infinite.
    """
    check_least(contention=contention, crosstalk=crosstalk)
    if contention >= 1:
        return 1.0
    return max(1.0, math.sqrt((1 - contention) / crosstalk)) if crosstalk else math.inf


def types_that_ran(events: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the fraction of the time of matrix multiplications that was computed in each type, the largest first.

    The result is empty if there are no matrix multiplications.

    Parameters
    ----------
    events
        Events of an ONNX Runtime trace. A node that ran has ``"cat": "Node"``, a name that ends in ``_kernel_time``,
        its microseconds in ``"dur"``, and in ``"args"`` its ``op_name`` and ``input_type_shape``: for each input a type
        with its shape, such as ``{"float": [32, 64]}``. The keys of `PRODUCTS` are the operators that multiply
        matrices. Its values are their types, or None if the type of the first input counts.
    """
    times: dict[str, float] = {}
    for event in events:
        if (
            event.get("cat") == "Node"
            and event["name"].endswith("_kernel_time")
            and event["args"]["op_name"] in PRODUCTS
        ):
            kind = PRODUCTS[event["args"]["op_name"]] or next(iter(event["args"]["input_type_shape"][0]))
            times[kind] = times.get(kind, 0.0) + event["dur"]
    total = sum(times.values()) or 1.0  # a trace rounds short times to 0 µs
    return {kind: spent / total for kind, spent in sorted(times.items(), key=lambda item: -item[1])}

"""Hidden checks for module 15, with made-up machines, call stacks and pipeline stages of known truth."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from pathlib import PurePosixPath
from statistics import NormalDist, median
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.checks import judges
from autograder.checks.check_helpers import *


@judges("granted_cores", module="machine")
def cores_are_granted(student: Any) -> None:
    """Check that `granted_cores` is quota / period, but at most the number of cores.

    Periods vary in length. Without a limit, or with an empty text, all cores are granted.
    """
    rng, granted_cores = draw(), student.granted_cores
    for _ in range(10):
        period, cores = int(rng.integers(1, 1000)) * 1000, int(rng.integers(1, 65))
        quota = int(rng.integers(1, 100 * period))
        truth = float(min(Fraction(quota, period), Fraction(cores)))
        end = str(rng.choice(["", "\n"]))
        agrees(granted_cores, truth, [(f"{quota} {period}{end}", cores)], "quota / period, at most `cores`")
        agrees(granted_cores, cores, [(f"max {period}{end}", cores), (end, cores)], "no limit: all cores")


def answer_throttled(student: Any) -> None:
    """Check that a call of 60 ms takes 110 ms: it runs for 50 ms, pauses for 50 ms and runs for 10 ms."""
    same(student.first_call(), 110, "the call", "50 ms of work, 50 ms of waiting, 10 ms of work")


# ---- profiles
def drawn_stack(rng: np.random.Generator, depth: int) -> tuple[SimpleNamespace, list[str]]:
    """Return the innermost frame of a made-up call stack, and the names of all its frames, outermost first.

    Some names repeat, as in recursion. The frames are sent to the sandbox as copies, so that following them costs no
    messages.
    """
    names, told, frame = words(rng, 4), list[str](), None
    for _ in range(depth):
        name = f"{names[rng.integers(2)]}.{names[rng.integers(2, 4)]}" if rng.random() < 0.5 else names[rng.integers(4)]
        file = f"/{'/'.join(names[: rng.integers(1, 4)])}.py"
        code = SimpleNamespace(co_qualname=name, co_name=name.rpartition(".")[2], co_filename=file)
        frame = SimpleNamespace(f_code=code, f_back=frame)
        told.append(f"{name} ({PurePosixPath(file).name})")
    assert frame
    return frame, told


@judges("stack_of", module="sampler")
def stacks_are_followed(student: Any) -> None:
    """Check that `stack_of` lists call stacks of one function or many, with methods and recursion."""
    rng = draw()
    for depth in (1, 2, 5, 17):
        frame, names = drawn_stack(rng, depth)
        same(student.stack_of(frame), names, f"a stack of {depth}", "function (file.py), the outermost first")


@judges("Sampler.take", module="sampler")
def samples_cover_the_time(student: Any) -> None:
    """Check that each sample from `Sampler.take` begins where the previous sample ended.

    Samples are taken at random moments of a clock that stands still in between.
    """
    rng = draw()
    for size in (1, 2, 9):
        gaps = (rng.integers(1, 90, size + 1) / 64).tolist()
        begin = float(rng.integers(1, 900))
        clock = FakeClock(begin)
        sampler, stacks = student.Sampler(clock), []
        for gap in gaps[:size]:
            clock.now += gap
            frame, names = drawn_stack(rng, int(rng.integers(1, 4)))
            sampler.take(frame)
            stacks.append(names)
        clock.now += gaps[size]
        starts = [begin + sum(gaps[:k]) for k in range(size)]
        found = [items(sample, "a sample", 3) for sample in items(sampler.samples, "the samples", size)]
        same([items(sample[1], "a stack") for sample in found], stacks, "the stacks", "stack_of(frame)")
        cause = "each sample begins where the last one ended, and ends at the look"
        same([sample[0] for sample in found], starts, "the starts", cause, abs=1e-9)
        same([sample[2] for sample in found], gaps[:size], "the seconds", cause, abs=1e-9)


@judges("self_shares", "total_shares", module="sampler")
def shares_are_of_time(student: Any) -> None:
    """Check that `self_shares` and `total_shares` weight samples by time, and count a recursive function once.

    The largest share must come first.
    """
    rng = draw()
    for size, kinds in ((1, 1), (12, 3), (40, 6)):
        names = words(rng, kinds)
        drawn = [
            (tuple(rng.choice(names, int(rng.integers(1, 7))).tolist()), float(rng.lognormal(0, 2)))
            for _ in range(size)
        ]
        samples = [student.Sample(0.0, stack, seconds) for stack, seconds in drawn]
        total = sum(seconds for _, seconds in drawn)
        own = {name: sum(s for stack, s in drawn if stack[-1] == name) / total for name in names}
        whole = {name: sum(s for stack, s in drawn if name in stack) / total for name in names}
        for function, truth, cause in (
            (student.self_shares, own, "the seconds of the samples in which it is last, by all seconds"),
            (student.total_shares, whole, "the seconds of the samples it is in, once each, by all seconds"),
        ):
            known = {name: share for name, share in truth.items() if share > 0}
            what = f"{text(function.__name__, 'the name')} of {size} samples"
            found = entries(function(samples), what)
            same(found, known, what, cause)
            told = numbers(list(found.values()), what)
            expect(told == sorted(told, reverse=True), f"{what}: expected the largest share first")


def answer_samples(student: Any) -> None:
    """Check that the 95 % interval of a share of 15 % of 2000 samples has the right half-width.

    The interval is the normal approximation.
    """
    truth = 100 * NormalDist().inv_cdf(0.975) * math.sqrt(0.15 * 0.85 / 2000)
    same(
        student.points_to_either_side(), truth, "the interval to either side", "1.96 √(p(1 − p)/n), in points", rel=0.04
    )


# ---- what if
@judges("slowed_stages")
def stages_are_slowed(student: Any) -> None:
    """Check that `slowed_stages` repeats stages as often as requested, under their names and with their answers."""
    rng = draw()
    for size in (1, 2, 5):
        names, calls = words(rng, size), list[str]()

        def stage(x: Any, name: str, calls: list[str] = calls) -> float:
            calls.append(name)
            return float(numbers([x], "what a stage gets")[0]) + 1

        stages = {name: lambda x, name=name, stage=stage: stage(x, name) for name in names}
        times = int(rng.integers(2, 9))
        less, spared = int(rng.integers(1, times)), str(rng.choice(names))
        for how, wanted in (
            ((times,), dict.fromkeys(names, times)),
            ((times, spared, less), dict.fromkeys(names, times) | {spared: less}),
            ((1,), dict.fromkeys(names, 1)),
        ):
            calls.clear()
            slowed = entries(student.slowed_stages(stages, *how), "slowed_stages")
            same(list(slowed), names, "the names of the slowed stages", "all stages, in their order")
            answers = [slowed[name](k) for k, name in enumerate(names)]
            same(answers, [k + 1 for k in range(size)], "what slowed stages answer", "as the stage itself does")
            counted = {name: calls.count(name) for name in names}
            same(counted, wanted, f"how often stages run, times and spared {how}", "all `times`, the spared one `less`")


@judges("virtual_gain", "slowing_error")
def gains_are_foreseen(student: Any) -> None:
    """Check that `virtual_gain` and `slowing_error` agree with medians that the check computes itself.

    The times are random, and some rounds are disturbed.
    """
    rng = draw()
    for size in (3, 8, 15):
        times, worth = int(rng.integers(2, 12)), float(rng.uniform(-0.2, 0.9))
        drift = rng.lognormal(0, 0.4, size)
        plain, slowed = rng.lognormal(0, 0.1, size), times * drift * rng.lognormal(0, 0.05, size)
        spared = slowed - times * worth * rng.lognormal(0, 0.3, size)
        plain[0], slowed[-1] = 50 * plain[0], 20 * slowed[-1]
        rows = [series.tolist() for series in (plain, slowed, spared)]
        saved = median(a - b for a, b in zip(rows[1], rows[2], strict=True)) / times
        cause = "the median of slowed − spared, by `times` and by the median of plain"
        agrees(student.virtual_gain, saved / median(rows[0]), [(*rows, times)], cause, what="virtual_gain")
        error = median(rows[1]) / times / median(rows[0]) - 1
        cause = "the median of slowed, by `times` the median of plain, less 1"
        agrees(student.slowing_error, error, [(*rows[:2], times)], cause, what="slowing_error", abs=1e-12)


def answer_amdahl(student: Any) -> None:
    """Check that the overall speed-up is 1 / (0.75 + 0.25 / 5) for a stage five times as fast."""
    same(student.whole_if_five_times(), 1.25, "the whole", "1 / (0.75 + 0.25 / 5)")


# ---- roofline


@judges("gemm_work")
def work_of_products(student: Any) -> None:
    """Check that `gemm_work` returns the right operations and bytes.

    The check counts the operations one by one. The bytes follow from the sizes of the matrices and the bytes per
    number.
    """
    rng, gemm_work = draw(), student.gemm_work
    for _ in range(8):
        m, k, n = rng.integers(1, 7, 3).tolist()
        lengths = rng.choice([1, 2, 4, 8], 3).tolist()
        flop = sum(2 for _ in product(range(m), range(k), range(n)))
        sizes = [np.empty(shape, np.uint8).size for shape in ((m, k), (k, n), (m, n))]
        for given in ((), lengths):
            moved = sum(size * length for size, length in zip(sizes, given or (4, 4, 4), strict=True))
            what = f"gemm_work({', '.join(map(str, (m, k, n, *given)))})"
            truths = {"flop": flop, "bytes": moved, "intensity": flop / moved}
            holds(gemm_work(m, k, n, *given), truths, what, "2 m k n operations; each number is moved once")


def answer_batch(student: Any) -> None:
    """Check the intensity of one row, and the size of the smallest batch whose intensity is at least 16.

    One row has 2 · 1024² operations on 1024² + 2 · 1024 numbers of four bytes.
    """
    same(student.intensity_of_one_row(), 0.499, "the intensity of one row", "two operations per weight", rel=0.01)
    first = next(n for n in range(1, 1024) if 2 * n * 1024**2 >= 16 * 4 * (1024**2 + 2 * 1024 * n))
    same(student.first_batch_at_the_peak(), first, "the first batch at the peak", "input and output are moved, too")


@judges("wall")
def walls_of_operators(student: Any) -> None:
    """Check that `wall` is right to the left of the roofline's ridge, to its right, and on it.

    Peaks and bandwidths are whole powers of two, so that times are exact.
    """
    rng, wall = draw(), student.wall
    for near, beyond in product((0.3, *rng.uniform(0.05, 0.95, 3).tolist()), (-5, -1, 0, 1, 5)):
        peak, bandwidth, moved = (2.0 ** int(e) for e in rng.integers(2, 12, 3))
        flop = moved * peak / bandwidth * 2.0**beyond
        shortest = max(flop / peak, moved / bandwidth)
        stands = "compute" if flop / peak >= moved / bandwidth else "memory"
        work = student.Work(flop, moved)
        for factor, truth in ((0.99, stands), (1.01, "overhead")):
            seconds = factor * shortest / near
            what = (
                f"wall({flop:g} operations, {moved:g} bytes, {seconds:.4g} s, {peak:g}, {bandwidth:g}, near={near:.3g})"
            )
            cause = f"it reaches {near / factor:.3g} of the roof there"
            same(wall(work, seconds, peak, bandwidth, near), truth, what, cause)
            if near == 0.3:
                same(wall(work, seconds, peak, bandwidth), truth, f"{what} by default", cause)


def answer_understanding(student: Any) -> None:
    """Check that the answer is the fraction of the attainable operations/s that was achieved."""
    reached = 2 * 64 * 512**2 / 1e-3
    same(student.share_of_the_roof(), reached / 200e9, "the share", "operations/s over those attainable", rel=0.03)

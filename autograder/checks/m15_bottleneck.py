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
from tinybench.support.profiling.matrix_operators import PRODUCTS


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
    """Check that one call on an idle container takes 110 ms at worst, and each of many calls in a row 120 ms.

    The worst single call runs for 50 ms, pauses for 50 ms and runs for 10 ms. Each of many calls does 60 ms of work at
    half a core.
    """
    same(student.worst_call(), 110, "the worst call", "50 ms of work, 50 ms of waiting, 10 ms of work")
    same(student.mean_call(), 120, "a call on average", "60 ms of work by half a core")


@judges("stolen_share", module="machine")
def time_is_stolen(student: Any) -> None:
    """Check that `stolen_share` is the stolen fraction of all time between two readings of the counters.

    None, some or all of the time is stolen, or no time has passed.
    """
    rng = draw()
    for busy in (0, 1, 50, 10**6):
        before, spent = rng.integers(0, 10**9, 10), rng.integers(0, 1000, 10)
        spent[7] = rng.integers(0, busy + 1)
        spent[8:] = np.minimum(spent[8:], spent[:2])
        truth = float(Fraction(int(spent[7]), int(spent[:8].sum())))
        lines = [f"cpu  {' '.join(map(str, counts.tolist()))}" for counts in (before, before + spent)]
        cause = "steal by the sum of the first eight, each the difference of both looks"
        agrees(student.stolen_share, truth, [tuple(lines)], cause, what="stolen_share")
        agrees(student.stolen_share, 0, [(lines[0], lines[0])], "no time has passed", what="stolen_share")


@judges("judge", module="machine")
def findings_are_judged(student: Any) -> None:
    """Check that `judge` reports broken rules first, then rules on unknown facts, then rules that hold.

    Some facts are missing, None or 0.
    """
    rng = draw()
    for size in (0, 1, 7, 15):
        names, texts = words(rng, size), words(rng, 2 * size)
        limits = rng.integers(1, 9, size).tolist()
        rules = [
            student.Rule(name, f"fact of {name}", lambda x, most=most: x < most, lambda x: f"seen: {x}", why, do)
            for name, most, why, do in zip(names, limits, texts[:size], texts[size:], strict=True)
        ]
        facts: dict[str, Any] = {"another": 3}
        wanted: dict[str, list[tuple[str, ...]]] = {"warn": [], "unknown": [], "ok": []}
        for name, most, why, do in zip(names, limits, texts[:size], texts[size:], strict=True):
            value = int(rng.integers(0, 10)) if rng.random() < 0.7 else None
            if value is not None or rng.random() < 0.5:
                facts[f"fact of {name}"] = value
            if value is None:
                wanted["unknown"].append((name, "unknown", "not known here", "", ""))
            elif value < most:
                wanted["ok"].append((name, "ok", f"seen: {value}", "", ""))
            else:
                wanted["warn"].append((name, "warn", f"seen: {value}", why, do))
        what = f"judge of {size} rules"
        found = items(student.judge(rules, facts), what)
        truth = [finding for level in wanted.values() for finding in level]
        same([finding[0] for finding in map(items_of, found)], [t[0] for t in truth], what, "warnings, unknown, ok")
        for finding, true in zip(found, truth, strict=True):
            same(
                items_of(finding), list(true), f"the finding about {true[0]}", "only a warning says why and what to do"
            )


def items_of(finding: Any) -> list[Any]:
    return items(finding, "a finding", 5)


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
    """Check that the share is 15 % (300 of 2000 samples), and that its 95 % interval has the right half-width.

    The interval is the normal approximation.
    """
    same(student.share_in_percent(), 15, "the share", "300 of 2000, in percent")
    truth = 100 * NormalDist().inv_cdf(0.975) * math.sqrt(0.15 * 0.85 / 2000)
    same(
        student.points_to_either_side(), truth, "the interval to either side", "1.96 √(p(1 − p)/n), in points", rel=0.04
    )


# ---- what if
@judges("repeat_counts", "slowed_stages")
def stages_are_slowed(student: Any) -> None:
    """Check that `repeat_counts` finds the closest ratio, and `slowed_stages` repeats stages as often as requested.

    The second number of the ratio is at most 10. Speed-ups that are too small or not finite must be refused.
    """
    rng = draw()
    for speedup in (1.1, 2.0, 1.9999, *rng.uniform(1.1, 12, 12).tolist()):
        truth = min(
            (Fraction(round(speedup * q), q) for q in range(1, 11)),
            key=lambda ratio: (abs(ratio - Fraction(speedup)), ratio.denominator),
        )
        cause = "the closest ratio with a second number of at most 10, in lowest terms"
        agrees(student.repeat_counts, [truth.numerator, truth.denominator], [speedup], cause)
    refuses(student.repeat_counts, 1, 1.0499, 0.0, -3.0, math.inf, -math.inf, math.nan)
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
    """Check that the overall speed-up is 1 / (0.75 + 0.25 / 5) for a stage five times as fast, and at best 1 / 0.75."""
    same(student.whole_if_five_times(), 1.25, "the whole", "1 / (0.75 + 0.25 / 5)")
    same(student.whole_at_best(), 4 / 3, "the whole at best", "1 / 0.75", rel=0.003)


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


@judges("attainable", "wall")
def walls_of_operators(student: Any) -> None:
    """Check that `attainable` and `wall` are right to the left of the roofline's ridge, to its right, and on it.

    Peaks and bandwidths are whole powers of two, so that times are exact.
    """
    rng, attainable, wall = draw(), student.attainable, student.wall
    for near, beyond in product((0.3, *rng.uniform(0.05, 0.95, 3).tolist()), (-5, -1, 0, 1, 5)):
        peak, bandwidth, moved = (2.0 ** int(e) for e in rng.integers(2, 12, 3))
        flop = moved * peak / bandwidth * 2.0**beyond
        shortest = max(flop / peak, moved / bandwidth)
        roof = (flop / moved, peak, bandwidth)
        agrees(attainable, flop / shortest, [roof], "whatever takes longer, operations or bytes, is the limit")
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


@judges("speedup", "efficiency")
def speedups_of_drawn_times(student: Any) -> None:
    """Check that `speedup` and `efficiency` are right for random times.

    If the time of one worker is missing, `speedup` must raise an error.
    """
    rng = draw()
    for _ in range(10):
        counts = [1, *(2 + rng.choice(60, 4, False)).tolist()]
        times = {n: float(rng.uniform(0.1, 9)) for n in rng.permutation(counts).tolist()}
        gains = {n: times[1] / took for n, took in times.items()}
        agrees(student.speedup, gains, [(times,)], "the time of one over the time of n")
        agrees(student.efficiency, {n: gain / n for n, gain in gains.items()}, [(times,)], "the speed-up per worker")
        del times[1]
        refuses(student.speedup, (times,), cause="the time of one worker is missing")


@judges("amdahl", "gustafson", "usl")
def laws_of_scaling(student: Any) -> None:
    """Check that `amdahl`, `gustafson` and `usl` agree with exact fractions.

    Each law is the time of one worker divided by the time of n workers.
    """
    rng = draw()
    for _ in range(20):
        n, serial = int(rng.integers(1, 200)), float(rng.choice([0, 1, rng.uniform()]))
        one, rest = Fraction(serial), 1 - Fraction(serial)
        agrees(student.amdahl, float(1 / (one + rest / n)), [(n, serial)], "the rest alone is divided by n")
        agrees(student.gustafson, float(one + rest * n), [(n, serial)], "the rest of the time does the work of n")
        pairs = Fraction(float(rng.choice([0, rng.uniform(0, 0.1)])))
        lost = one * (n - 1) + pairs * 2 * math.comb(n, 2)
        agrees(student.usl, float(n / (1 + lost)), [(n, serial, float(pairs))], "σ (n − 1) + κ n (n − 1)")


def answer_serial(student: Any) -> None:
    """Check that the speed-up limit is 1/s, and that the efficiency is 50 % at the n for which 1 + s (n − 1) is 2.

    s is the serial fraction, 5 %.
    """
    same(student.most_speedup(), 20, "the speed-up that is never exceeded", "the 5 % alone remain")
    same(student.workers_at_half(), 21, "the workers at half the efficiency", "1 + s (n − 1) = 2")


def least_squares(counts: np.ndarray, lost: np.ndarray) -> list[float]:
    """Return the least-squares fit of contention and crosstalk, both at least 0.

    Four fits are tried: both parameters free, either one fixed at 0, or both fixed at 0. The normal equations give the
    free parameters. The best fit without a negative parameter is returned.
    """
    columns = np.stack([counts - 1, counts * (counts - 1)], axis=1)
    tried = []
    for free in ([0, 1], [0], [1], []):
        found = np.zeros(2)
        if free:
            part = columns[:, free]
            found[free] = np.linalg.solve(part.T @ part, part.T @ lost)
        if (found >= 0).all():
            tried.append((float(np.sum((columns @ found - lost) ** 2)), found.tolist()))
    return list(min(tried)[1])


@judges("fit_usl", "best_workers")
def usl_is_found_again(student: Any) -> None:
    """Check that `fit_usl` recovers random parameters from speed-ups, with and without noise.

    With noise, `least_squares` supplies the expected parameters. `best_workers` must agree with the largest value found
    by a search on the law's curve.
    """
    rng = draw()
    for trial in range(24):
        counts = np.array([1.0, *np.sort(2 + rng.choice(40, 5, False))])
        contention, crosstalk = float(rng.uniform(0.01, 0.5)), float(rng.uniform(0.0005, 0.02))
        contention, crosstalk = ((contention, crosstalk), (contention, 0.0), (0.0, crosstalk), (-0.01, 0.0))[trial % 4]
        gains = counts / (1 + contention * (counts - 1) + crosstalk * counts * (counts - 1))
        if noisy := trial >= 8:
            gains[1:] *= rng.normal(1, 0.05, 5)
        told = {int(n): float(gain) for n, gain in zip(counts, gains, strict=True)}
        truth = least_squares(counts, counts / gains - 1) if noisy else [max(0.0, contention), crosstalk]
        what = f"fit_usl of speed-ups {'with noise' if noisy else 'by the law'}"
        cause = "the least squares of n / speed-up − 1, neither below 0"
        same(student.fit_usl(told), truth, what, cause, rel=1e-5, abs=1e-7)
    for _ in range(12):
        contention, crosstalk = float(rng.uniform(0, 0.95)), float(10 ** rng.uniform(-4, 0.3))
        workers = np.geomspace(1, 200, 100_001)
        law = workers / (1 + contention * (workers - 1) + crosstalk * workers * (workers - 1))
        top = float(workers[law.argmax()])
        agrees(student.best_workers, top, [(contention, crosstalk)], "where the law is largest, 1 or more", rel=1e-3)
        agrees(student.best_workers, math.inf, [(contention, 0.0)], "without crosstalk the law always rises")
        agrees(student.best_workers, 1, [(1 + contention, 0.0), (1 + contention, crosstalk)], "the law never rises")


@judges("types_that_ran")
def types_by_time(student: Any) -> None:
    """Check that `types_that_ran` returns each data type's share of the kernel time of matrix multiplications.

    The traces are random.
    """
    rng = draw()
    products, others = sorted(PRODUCTS), ["Cast", "Relu", "QuantizeLinear", "DynamicQuantizeLinear", "Softmax"]
    kinds = ["float", "float16", "bfloat16", "uint8", "int8"]
    for size in (0, 3, 40):
        events: list[dict[str, Any]] = [{"cat": "Session", "name": "model_run", "dur": 10**6, "ts": 0}]
        times: dict[str, int] = {}
        for place in range(size):
            op = str(rng.choice(products if rng.random() < 0.6 else others))
            ending, took = str(rng.choice(["_kernel_time", "_kernel_time", "_fence_before"])), int(rng.integers(1, 999))
            inputs = [{kind: [4, 4]} for kind in rng.choice(kinds, 3).tolist()]
            told = {"op_name": op, "input_type_shape": inputs}
            events.append({"cat": "Node", "name": f"node{place}{ending}", "dur": took, "ts": place, "args": told})
            if op in PRODUCTS and ending == "_kernel_time":
                kind = PRODUCTS[op] or next(iter(inputs[0]))
                times[kind] = times.get(kind, 0) + took
        found, what = student.types_that_ran(events), f"types_that_ran of {len(events)} events"
        truth = {kind: float(Fraction(took, sum(times.values()))) for kind, took in times.items()}
        same(found, truth, what, "kernel times of products, by type")
        order = [float(number(share, "a share")) for share in entries(found, what).values()]
        expect(order == sorted(order, reverse=True), f"{what}: expected the largest share first")


def answer_understanding(student: Any) -> None:
    """Check that one answer is the fraction of the attainable operations/s that was achieved.

    The other is the largest speed-up that the scaling law allows.
    """
    reached = 2 * 64 * 512**2 / 1e-3
    same(student.share_of_the_roof(), reached / 200e9, "the share", "operations/s over those attainable", rel=0.03)
    same(student.speedup_at_the_top(), 10 / 2.305, "the speed-up at the top", "the law at n = 10", rel=0.02)

"""Hidden checks of module 02: against clocks and collectors whose every reading is known."""

from __future__ import annotations

import itertools
import math
from functools import partial
from statistics import median
from typing import Any

from autograder.checks import FakeClock, close, draw, expect, judges, raises, words

TICK = 2.0**-20  # sums and differences of such steps are exact in floating point


class ShownClock:
    """A clock that shows given readings one after the other, and counts them."""

    def __init__(self, *readings: float) -> None:
        self.readings, self.reads = readings, 0

    def __call__(self) -> float:
        self.reads += 1
        expect(
            self.reads <= len(self.readings),
            "the clock was read too often; once before and once after the block is enough",
        )
        return self.readings[self.reads - 1]


class Work:
    """Work of known length, with its clock; reads and calls are counted."""

    def __init__(self, seconds: float, per_read: float = 0.0) -> None:
        self.seconds, self.per_read = seconds, per_read
        self.now, self.calls, self.reads = 1000.0, 0, 0

    def __call__(self) -> None:
        self.now, self.calls = self.now + self.seconds, self.calls + 1

    def clock(self) -> float:
        self.now, self.reads = self.now + self.per_read, self.reads + 1
        return self.now


class Collector:
    """A garbage collector that only remembers whether it is on."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def isenabled(self) -> bool:
        return self.on

    def enable(self) -> None:
        self.on = True

    def disable(self) -> None:
        self.on = False


class BlockFailed(Exception):
    """What a measured block raises here."""


def _failing_block(manager: Any) -> None:
    with manager:
        raise BlockFailed


def _empty_block(manager: Any) -> None:
    with manager:
        pass


@judges("precise_timer.__init__")
def timer_is_made(student: Any) -> None:
    """It keeps its clock unread, is not running and has nothing to show; only functions are clocks."""
    rng = draw()
    first, then = (int(ticks) * TICK for ticks in rng.integers(1, 2**30, 2))
    clock = ShownClock(first, first + then)
    timer = student.precise_timer(clock)
    expect(
        clock.reads == 0,
        "__init__ read the clock; it is read when the block begins: keep the function, without parentheses",
    )
    raises(RuntimeError, lambda: timer.elapsed, "elapsed of a timer that was never used")
    _empty_block(timer)
    what = f"a block from {first} to {first + then} s"
    close(timer.elapsed, then, what, cause="keep the clock that was handed in")
    _empty_block(student.precise_timer(clock=ShownClock(0.0, 1.0)))
    by_default = student.precise_timer()
    _empty_block(by_default)
    expect(by_default.elapsed >= 0, "a timer without a clock uses time.perf_counter, the default of the parameter")
    for bad in (12.5, None, "perf_counter", int(rng.integers(100, 10**6)), *words(rng, 1)):
        raises(TypeError, partial(student.precise_timer, bad), f"precise_timer({bad!r})", mentions=[repr(bad)])


@judges("precise_timer.__enter__")
def timer_starts(student: Any) -> None:
    """One reading, the last act; the old measurement is gone by then, and a running timer stays untouched."""
    for start, end in draw().integers(0, 2**30, (5, 2)):
        low, high = sorted((int(start) * TICK, int(end) * TICK))
        clock = ShownClock(low, high)
        timer = student.precise_timer(clock)
        with timer as handed:
            expect(handed is timer, "__enter__ should return self: it is what stands after `as`")
            expect(clock.reads == 1, f"__enter__ should read the clock once, not {clock.reads} times")
        close(timer.elapsed, high - low, "elapsed")

    stale = []

    def watching_clock() -> float:
        try:
            stale.append(timer.elapsed)
        except RuntimeError:
            stale.append(None)
        return float(len(stale))

    timer = student.precise_timer(watching_clock)
    _empty_block(timer)
    _empty_block(timer)
    expect(
        stale[2] is None,
        "at the second use __enter__ read the clock while the first measurement was still there: forget it first, "
        "the clock is read last",
    )

    timer = student.precise_timer(ShownClock(1.0, 6.0, 7.0, 9.0))

    def nested() -> None:
        with timer, timer:
            pass

    raises(RuntimeError, nested, "starting a timer that is running")
    close(
        timer.elapsed,
        5.0,
        "the outer block after a refused inner start",
        cause="refuse before touching the clock or _start",
    )
    _empty_block(timer)
    close(timer.elapsed, 2.0, "the next use after a refused start")


@judges("precise_timer.__exit__")
def timer_stops(student: Any) -> None:
    """The first act is one reading; exceptions pass, also over a clock that ran backwards, and the timer can go on."""
    for start, end in draw().integers(0, 2**30, (5, 2)):
        low, high = sorted((int(start) * TICK, int(end) * TICK))
        clock = ShownClock(low, high, low, high)
        timer = student.precise_timer(clock)
        _empty_block(timer)
        expect(clock.reads == 2, f"a block takes two readings of the clock, not {clock.reads}")
        close(timer.elapsed, high - low, f"a block from {low} to {high} s", cause="elapsed is end − start, in seconds")
        raises(BlockFailed, partial(_failing_block, timer), "a block that fails", cause="return nothing from __exit__")
        close(timer.elapsed, high - low, "elapsed of a block that failed", cause="set it also when the block raises")

    running = []

    def watching_clock() -> float:
        running.append(timer._start is not None)
        return float(len(running))

    timer = student.precise_timer(watching_clock)
    _empty_block(timer)
    expect(running == [False, True], "__exit__ did its books before it read the clock: read the clock first")

    timer = student.precise_timer(ShownClock(50.25, 48.75, 60.0, 61.0, 70.5, 69.5, 80.0, 84.0))
    raises(
        RuntimeError,
        lambda: _empty_block(timer),
        "a clock that runs backwards",
        mentions=["50.25", "48.75", "monotonic"],
    )
    raises(
        RuntimeError, lambda: timer.elapsed, "elapsed after the clock ran backwards", cause="there is no measurement"
    )
    _empty_block(timer)
    close(
        timer.elapsed,
        1.0,
        "the next use after a clock that ran backwards",
        cause="set _start back to None in every case",
    )
    cause = "the block's own exception comes first: look at exc_type"
    raises(BlockFailed, lambda: _failing_block(timer), "a block that fails while the clock runs backwards", cause=cause)
    raises(RuntimeError, lambda: timer.elapsed, "elapsed after both", cause="there is no measurement")
    _empty_block(timer)
    close(timer.elapsed, 4.0, "the next use after both")
    still = student.precise_timer(ShownClock(3.0, 3.0))
    _empty_block(still)
    close(still.elapsed, 0.0, "a block shorter than the clock's step", cause="equal readings are 0 s, not an error")


def answer_clock(student: Any) -> None:
    """Reading = 5 s of work + what the clock was set by."""
    close(student.reading_set_back_by_twelve(), 5 - 12, "case (a)", cause="5 s pass, and 12 s are taken away")
    close(student.reading_set_back_by_two(), 5 - 2, "case (b)", cause="5 s pass, and 2 s are taken away")
    expect(list(student.noticed()) == [True, False], "the timer notices only a second reading below the first")


@judges("clock_resolution")
def resolution_is_smallest_step(student: Any) -> None:
    """The smallest step forward of irregular clocks that repeat readings and step back."""
    rng = draw()
    for unit in (1, 7, 200):
        steps = rng.choice([unit, 2 * unit, 5 * unit, -unit / 2, 0], size=40_000, p=[0.25, 0.15, 0.1, 0.1, 0.4])
        shown = itertools.chain([512.0], 512.0 + steps.cumsum() * TICK)
        got = student.clock_resolution(iter(shown).__next__, steps=60, max_reads=30_000)
        close(got, unit * TICK, "the resolution of a clock with uneven steps", cause="keep the smallest step forward")

    late = iter([0.0, 8.0, *([8.0] * 50), 12.0, 13.0, *itertools.repeat(13.0, 3000)])
    close(
        student.clock_resolution(late.__next__, steps=3),
        1.0,
        "the smallest of 3 steps",
        cause="`steps` counts steps, not readings",
    )
    slow = (float(i // 100) for i in itertools.count())
    close(
        student.clock_resolution(slow.__next__, steps=1000, max_reads=500),
        1.0,
        "a clock with few steps in max_reads readings",
    )
    reads = Work(0.0)
    raises(RuntimeError, lambda: student.clock_resolution(reads.clock, max_reads=200), "a clock that stands still")
    expect(reads.reads <= 450, f"max_reads = 200, but a clock that stands still was read {reads.reads} times")
    back = Work(0.0, per_read=-1.0)
    raises(
        RuntimeError, lambda: student.clock_resolution(back.clock, max_reads=200), "a clock that only runs backwards"
    )


def answer_resolution(student: Any) -> None:
    """Duration = step / 1 %."""
    close(student.shortest_with_coarse_clock(), 0.0156 / 0.01, "case (a)", cause="15.6 ms / 1 %, in seconds", rel=0.01)
    close(student.shortest_with_fine_clock(), 50e-9 / 0.01, "case (b)", cause="50 ns / 1 %, in seconds", rel=0.01)


@judges("timer_overhead")
def overhead_is_median_of_nothing(student: Any) -> None:
    """The median difference of pairs of readings, whatever lies between the pairs."""
    rng = draw()
    for unit in (3, 50):
        # most measurements cost one unit; some less, some far more, one is set back
        costs = rng.choice([unit, 0, 400 * unit, -5 * unit], size=4000, p=[0.6, 0.15, 0.24, 0.01]).tolist()

        def clock(costs: list[int] = costs, state: list[float] = [512.0, 0]) -> float:  # noqa: B006
            index, second = divmod(int(state[1]), 2)
            state[0] += (costs[index % len(costs)] if second else 1000 + index % 7) * TICK
            state[1] += 1
            return state[0]

        expect(median(costs[:101]) == unit, "this check drew a bad sample")
        cause = "two fresh readings for each empty measurement, and the median of their differences"
        close(student.timer_overhead(clock, samples=101), unit * TICK, "the overhead", cause=cause)

    counting = Work(0.0, per_read=TICK)
    close(
        student.timer_overhead(counting.clock, samples=31),
        TICK,
        "the overhead of a regular clock",
        cause="in seconds, per measurement",
    )
    expect(62 <= counting.reads <= 80, f"samples = 31 takes 62 readings of the clock, yours made {counting.reads}")
    close(student.timer_overhead(FakeClock(7.0)), 0.0, "the overhead by a clock too coarse to show it")
    raises(ValueError, lambda: student.timer_overhead(lambda: 7.0, samples=0), "samples = 0", mentions=["0"])
    back = Work(0.0, per_read=-1.0)
    raises(
        RuntimeError,
        lambda: student.timer_overhead(back.clock, samples=51),
        "a clock that runs backwards",
        mentions=["monotonic"],
    )


def answer_overhead(student: Any) -> None:
    """Bias = overhead / duration, on both sides of a ratio."""
    close(student.bias_in_percent(), 2.0, "case (a)", cause="1 µs / 50 µs, in percent", rel=0.01)
    close(student.shortest_for_one_percent(), 80e-9 / 0.01, "case (b)", cause="80 ns / 1 %, in seconds", rel=0.01)
    close(student.measured_ratio(), 17 / 15, "case (c)", cause="(12 + 5) / (10 + 5)", rel=0.01)


def _one_two_five() -> list[int]:
    return [digit * 10**power for power in range(8) for digit in (1, 2, 5)]


@judges("calibrate_loops")
def loops_fill_the_batch(student: Any) -> None:
    """The first of 1, 2, 5, 10, … whose batch is long enough, read twice per batch; everything hopeless ends."""
    rng = draw()
    cases = [
        (int(cost), int(target))
        for cost, target in zip(rng.integers(10, 300, 12), rng.integers(1, 6_000, 12), strict=True)
    ]
    for cost, target in [*cases, (10, 1000), (7, 7), (8, 7), (1, 200)]:
        truth = next(loops for loops in _one_two_five() if loops * cost >= target)
        work = Work(cost * TICK)
        got = student.calibrate_loops(work, target * TICK, clock=work.clock, max_loops=200_000)
        cause = "the first of 1, 2, 5, 10, 20, 50, … whose batch lasts at least min_time"
        close(got, truth, f"loops for calls of {cost} ticks and a batch of {target}", cause=cause)
        tried = [loops for loops in _one_two_five() if loops <= truth]
        expect(
            work.reads <= 2 * len(tried) + 2,
            f"{len(tried)} batches take {2 * len(tried)} readings of the clock, yours made {work.reads}: "
            "read it once before and once after a batch, not for each call",
        )
        expect(work.calls <= sum(tried) + 3, f"batches {tried} are {sum(tried)} calls, yours made {work.calls}")
    raises(TypeError, lambda: student.calibrate_loops(3.0, 1.0), "a func that is no function")
    for bad in (0, -0.5, math.nan, math.inf):
        work = Work(1.0)
        raises(
            ValueError,
            partial(student.calibrate_loops, work, bad, clock=work.clock, max_loops=100),
            f"min_time = {bad}",
        )
    for seconds, per_read in ((0.0, 0.0), (0.0, TICK)):
        work = Work(seconds, per_read)
        raises(
            RuntimeError,
            partial(student.calibrate_loops, work, 1.0, clock=work.clock, max_loops=200),
            "a clock on which batches never grow",
            mentions=["200"],
        )
        expect(
            work.calls <= 388 + 3,
            f"max_loops = 200 allows batches up to 200, 388 calls in all; yours made {work.calls}",
        )
    work = Work(1.0)
    close(
        student.calibrate_loops(work, 20.0, clock=work.clock, max_loops=20),
        20,
        "the loops when max_loops just suffices",
        cause="a batch of max_loops calls is still allowed",
    )
    back = Work(-1.5)
    raises(
        RuntimeError,
        lambda: student.calibrate_loops(back, 1.0, clock=back.clock, max_loops=100),
        "a clock that runs backwards",
        mentions=["1000.0", "998.5", "monotonic"],
    )

    def fails() -> None:
        raise BlockFailed

    raises(BlockFailed, lambda: student.calibrate_loops(fails, 1.0), "a func that fails", cause="let its error through")


@judges("gc_paused")
def collector_is_restored(student: Any) -> None:
    """Off inside; afterwards as before, whether it was on or off, nested, failing, or meddled with."""
    for on in (True, False):
        was = "on" if on else "off"
        collector = Collector(on)
        with student.gc_paused(collector):
            expect(not collector.on, "inside the block the collector should be off")
            with student.gc_paused(collector):
                expect(not collector.on, "inside a nested block the collector should be off")
            expect(not collector.on, "the end of an inner block switched the collector on: restore what was before")
        expect(collector.on is on, f"the collector was {was} before the block and should be {was} after it")
        raises(BlockFailed, partial(_failing_block, student.gc_paused(collector)), "a block that fails")
        expect(collector.on is on, f"the collector was {was} before a block that failed and should be {was} after it")
        with student.gc_paused(collector):
            collector.enable()
        expect(
            collector.on is on,
            f"the block itself switched the collector on; it was {was} before and should be {was} after it",
        )

    rng = draw()

    def nest(depth: int, collector: Collector) -> None:
        """Go through blocks in blocks, each of which may switch the collector on before or after the inner one."""
        before = collector.on
        with student.gc_paused(collector):
            expect(not collector.on, "inside each of several nested blocks the collector should be off")
            for inner in (depth - 1, 0):
                if rng.random() < 0.5:
                    collector.enable()
                if inner > 0:
                    nest(inner, collector)
        was = "on" if before else "off"
        expect(collector.on is before, f"the collector was {was} before a nested block and should be {was} after it")

    for _ in range(3):
        nest(int(rng.integers(2, 6)), Collector(bool(rng.random() < 0.5)))


def answer_understanding(student: Any) -> None:
    """Counted out."""
    loops = next(n for n in _one_two_five() if n * 3 >= 10_000)
    close(
        student.loops_for_ten_milliseconds(),
        loops,
        "question 1",
        cause="3334 calls last 10 ms; the next of 1, 2, 5, 10, …",
    )
    close(
        student.calls_in_all(), sum(n for n in _one_two_five() if n <= loops), "question 2", cause="add up all batches"
    )
    close(student.batch_reports(), (999 * 2 + 202) / 1000, "question 3", cause="(999 · 2 ms + 202 ms) / 1000", rel=0.01)

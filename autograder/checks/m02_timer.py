"""Hidden checks for module 02, with fake clocks whose behaviour is fully known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from autograder.checks import judges
from autograder.checks.check_helpers import *

TICK = 2.0**-20  # sums and differences of multiples of TICK are exact in floating point
ENOUGH = 20_000  # limit on calls and clock readings, so that no check hangs; ten times what any check here needs


class ShownClock:
    """A fake clock that returns the given readings one after the other, and counts how often it is read."""

    def __init__(self, *readings: float) -> None:
        self.readings, self.reads = readings, 0

    def __call__(self) -> float:
        self.reads += 1
        enough = "once before and once after the block is enough"
        expect(self.reads <= len(self.readings), f"the clock was read too often; {enough}")
        return self.readings[self.reads - 1]


class Work:
    """A function whose calls take a known time on its own clock. It counts its calls and the clock's readings."""

    def __init__(self, seconds: float, per_read: float = 0.0) -> None:
        self.seconds, self.per_read = seconds, per_read
        self.now, self.calls, self.reads = 1000.0, 0, 0

    def __call__(self) -> None:
        self.now, self.calls = self.now + self.seconds, self.calls + 1
        expect(self.calls <= ENOUGH, f"func was called {self.calls} times, and there is no end")

    def clock(self) -> float:
        self.now, self.reads = self.now + self.per_read, self.reads + 1
        expect(self.reads <= ENOUGH, f"the clock was read {self.reads} times, and there is no end")
        return self.now


class BlockFailed(Exception):
    """The exception that a measured block raises in these checks."""


def _fails() -> None:
    raise BlockFailed


def _block(manager: Any, inside: Callable[[], Any] = lambda: None) -> None:
    with manager:
        inside()


def _elapsed(timer: Any) -> Any:
    """Run an empty block under a timer, and return the timer's `elapsed`."""
    _block(timer)
    return timer.elapsed


def _has_nothing(timer: Any, when: str) -> None:
    refuses(lambda: timer.elapsed, error=RuntimeError, what=f"elapsed {when}", cause="there is no measurement")


def _drawn_blocks() -> list[list[float]]:
    """Return random pairs of clock readings, one at the start and one at the end of a block."""
    return [sorted(ticks * TICK for ticks in pair) for pair in draw().integers(0, 2**30, (5, 2)).tolist()]


@judges("precise_timer.__enter__")
def timer_starts(student: Any) -> None:
    """Check that `precise_timer.__enter__` clears the old measurement and then reads the clock once.

    Starting a timer that is already running must raise an error and change nothing.
    """
    for low, high in ([0.0, 1.0], *_drawn_blocks()):
        clock = ShownClock(low, high)
        timer = student.precise_timer(clock)
        expect(timer.__enter__() is timer, "__enter__ should return self: it is what stands after `as`")
        same(clock.reads, 1, "the readings of the clock by __enter__")
        same(timer._start, low, "_start", "the clock's reading, in seconds")
        _has_nothing(timer, "of a timer that runs")
        refuses(timer.__enter__, error=RuntimeError, what="starting a timer that is running")
        same(clock.reads, 1, "the readings of the clock after a refused start", "refuse before you touch the clock")
        same(timer._start, low, "_start after a refused start", "leave the running measurement as it is")

    stale = list[Any]()

    def watching_clock() -> float:
        stale.append(timer._elapsed)
        return 7.0

    timer = student.precise_timer(watching_clock)
    timer._elapsed = 2.0  # as an earlier block leaves it
    timer.__enter__()
    cause = "forget the first measurement before reading the clock, which comes last"
    same(stale, [None], "_elapsed while __enter__ reads the clock for the second use", cause)
    same(timer._start, 7.0, "_start of the second use")


@judges("precise_timer.__exit__")
def timer_stops(student: Any) -> None:
    """Check that `precise_timer.__exit__` reads the clock first and lets the block's exceptions through.

    The exceptions must pass even if the clock ran backwards. After every error, the timer must be usable again.
    """

    def lets_through(what: str, cause: str) -> None:
        refuses(_block, (timer, _fails), error=BlockFailed, what=f"a block that fails{what}", cause=cause)

    for low, high in _drawn_blocks():
        clock = ShownClock(low, high, low, high)
        timer = student.precise_timer(clock)
        same(_elapsed(timer), high - low, f"a block from {low} to {high} s", "elapsed is end − start, in seconds")
        same(clock.reads, 2, "the readings of the clock by a block")
        lets_through("", "return nothing from __exit__")
        same(timer.elapsed, high - low, "elapsed of a block that failed", "set it also when the block raises")

    running = list[Any]()

    def watching_clock() -> float:
        running.append(timer._start)
        return float(len(running))

    timer = student.precise_timer(watching_clock)
    _block(timer)
    same(running, [None, 1.0], "_start at the two readings of the clock", "__exit__ reads it before it does other work")
    timer = student.precise_timer(ShownClock(1.0, 6.0, 7.0, 9.0))
    refuses(partial(_block, timer, partial(_block, timer)), error=RuntimeError, what="a timer in its own block")
    same(timer.elapsed, 5.0, "the outer block after a refused inner start")
    same(_elapsed(timer), 2.0, "the next use after a refused start")

    timer = student.precise_timer(ShownClock(50.25, 48.75, 60.0, 61.0, 70.5, 69.5, 80.0, 84.0))
    backwards = ["50.25", "48.75", "monotonic"]
    refuses(_block, timer, error=RuntimeError, mentions=backwards, what="a clock that runs backwards")
    _has_nothing(timer, "after the clock ran backwards")
    same(_elapsed(timer), 1.0, "the next use after a clock that ran backwards", "set _start back to None in every case")
    lets_through(" while the clock runs backwards", "the block's own exception comes first: look at exc_type")
    _has_nothing(timer, "after both")
    same(_elapsed(timer), 4.0, "the next use after both")
    still = student.precise_timer(ShownClock(3.0, 3.0))
    same(_elapsed(still), 0.0, "a block shorter than the clock's step", "equal readings are 0 s, not an error")


def answer_clock(student: Any) -> None:
    """Check that only the setback that puts the second reading below the first is noticed."""
    same(student.noticed(), [True, False], "noticed", "only a second reading below the first")


@judges("clock_resolution")
def resolution_is_smallest_step(student: Any) -> None:
    """Check that `clock_resolution` returns the smallest forward step of a clock.

    The fake clocks have uneven steps, repeat readings and step back.
    """
    rng, resolution = draw(), student.clock_resolution
    for unit in (1, 7, 200):
        steps = rng.choice([unit, 2 * unit, 5 * unit, -unit / 2, 0], size=30_000, p=[0.25, 0.15, 0.1, 0.1, 0.4])
        ahead = (steps > 0).nonzero()[0]
        steps[ahead[[0, *range(18, 23)]]], steps[ahead[7]] = 5 * unit, unit  # the minimum is neither first nor last
        shown = itertools.chain([512.0], 512.0 + steps.cumsum() * TICK)
        got = resolution(iter(shown).__next__, steps=20, max_reads=25_000)
        same(got, unit * TICK, "the resolution of a clock with uneven steps", "keep the smallest step forward")

    late = iter([0.0, 8.0, *([8.0] * 50), 12.0, 13.0, *itertools.repeat(13.0, 3000)])
    same(resolution(late.__next__, steps=3), 1.0, "the smallest of 3 steps", "`steps` counts steps, not readings")
    slow = (float(i // 20) for i in itertools.count())
    got = resolution(slow.__next__, steps=1000, max_reads=100)
    same(got, 1.0, "a clock with few steps in max_reads readings")
    for work, what in ((Work(0.0), "stands still"), (Work(0.0, per_read=-1.0), "only runs backwards")):
        refuses(partial(resolution, work.clock, max_reads=40), error=RuntimeError, what=f"a clock that {what}")
        expect(work.reads <= 90, f"max_reads = 40, but a clock that {what} was read {work.reads} times")


def answer_resolution(student: Any) -> None:
    """Check that the shortest duration measured to within 1 % is the clock's step divided by 0.01."""
    same(student.shortest_with_coarse_clock(), 0.0156 / 0.01, "the duration", "15.6 ms / 1 %, in seconds", rel=0.03)


@judges("timer_overhead")
def overhead_is_median_of_nothing(student: Any) -> None:
    """Check that `timer_overhead` returns the median difference between the two clock readings of a pair.

    The time between one pair and the next must not matter.
    """
    rng = draw()
    for unit in (3, 50):
        # of 41 measurements, 21 take one unit, 8 take no time, and 10 far longer; in 2 the clock is set back
        costs = rng.permutation([unit] * 21 + [0] * 8 + [400 * unit] * 10 + [-5 * unit] * 2).tolist()

        def clock(costs: list[int] = costs, state: list[float] = [512.0, 0]) -> float:  # noqa: B006
            index, second = divmod(int(state[1]), 2)
            state[0] += (costs[index % len(costs)] if second else 1000 + index % 7) * TICK
            state[1] += 1
            return state[0]

        cause = "two fresh readings for each empty measurement, and the median of their differences"
        same(student.timer_overhead(clock, samples=41), unit * TICK, "the overhead", cause)

    counting, back = Work(0.0, per_read=TICK), Work(0.0, per_read=-1.0)
    got = student.timer_overhead(counting.clock, samples=31)
    same(got, TICK, "the overhead of a regular clock", "in seconds, per measurement")
    expect(62 <= counting.reads <= 80, f"samples = 31 takes 62 readings of the clock, yours made {counting.reads}")
    same(student.timer_overhead(FakeClock(7.0)), 0.0, "the overhead by a clock too coarse to show it")
    refuses(partial(student.timer_overhead, lambda: 7.0), {"samples": 0}, mentions="0")
    backwards = partial(student.timer_overhead, back.clock, samples=11)
    refuses(backwards, error=RuntimeError, mentions="monotonic", what="a clock that runs backwards")


def answer_overhead(student: Any) -> None:
    """Check that the bias is overhead / duration, and that the overhead is added to both durations of a ratio."""
    same(student.bias_in_percent(), 1.0, "case (a)", "0.5 µs / 50 µs, in percent", rel=0.01)
    same(student.measured_ratio(), 17 / 15, "case (b)", "(12 + 5) / (10 + 5)", rel=0.01)


def _one_two_five() -> list[int]:
    return [digit * 10**power for power in range(8) for digit in (1, 2, 5)]


@judges("calibrate_loops")
def loops_fill_the_batch(student: Any) -> None:
    """Check that `calibrate_loops` returns the first of 1, 2, 5, 10, … calls that last at least `min_time`.

    The clock should be read twice per batch of calls. If batches never get longer or the clock runs backwards, an error
    must be raised.
    """
    rng = draw()
    costs, calls = rng.integers(10, 300, 7).tolist(), [*rng.uniform(0.2, 20, 6), rng.uniform(60, 190)]
    drawn = [(cost, math.ceil(cost * often)) for cost, often in zip(costs, calls, strict=True)]
    for cost, target in [*drawn, (10, 100), (7, 7), (8, 7), (1, 20)]:  # few cases, because each call costs a message
        truth = next(loops for loops in _one_two_five() if loops * cost >= target)
        work = Work(cost * TICK)
        got = student.calibrate_loops(work, target * TICK, clock=work.clock, max_loops=200_000)
        cause = "the first of 1, 2, 5, 10, 20, 50, … whose batch lasts at least min_time"
        same(got, truth, f"loops for calls of {cost} ticks and a batch of {target}", cause)
        tried = [loops for loops in _one_two_five() if loops <= truth]
        often = f"{len(tried)} batches take {2 * len(tried)} readings of the clock, yours made {work.reads}"
        expect(work.reads <= 2 * len(tried) + 2, f"{often}: read it around each batch, not for each call")
        expect(work.calls <= sum(tried) + 3, f"batches {tried} are {sum(tried)} calls, yours made {work.calls}")

    def calibrate(work: Work, min_time: float = 1.0, max_loops: int = 100) -> Any:
        return student.calibrate_loops(work, min_time, clock=work.clock, max_loops=max_loops)

    refuses(student.calibrate_loops, (3.0, 1.0), error=TypeError)
    for bad in (0, -0.5, math.nan, math.inf):
        refuses(calibrate, (Work(1.0), bad), what=f"min_time = {bad}")
    for work in (Work(0.0), Work(0.0, TICK)):
        never = "a clock on which batches never grow"
        refuses(calibrate, (work, 1.0, 50), error=RuntimeError, mentions="50", what=never)
        expect(work.calls <= 88 + 3, f"batches up to max_loops = 50 are 88 calls in all; yours made {work.calls}")
    same(calibrate(Work(1.0), 20.0, 20), 20, "loops when max_loops just suffices", "such a batch is still allowed")
    backwards = ["1000.0", "998.5", "monotonic"]
    refuses(calibrate, Work(-1.5), error=RuntimeError, mentions=backwards, what="a clock that runs backwards")
    cause = "let its error through"
    refuses(student.calibrate_loops, (_fails, 1.0), error=BlockFailed, what="a failing func", cause=cause)


def answer_understanding(student: Any) -> None:
    """Check that the answers are the loops for a batch of 10 ms, and the mean of a batch."""
    loops = next(n for n in _one_two_five() if n * 3 >= 10_000)
    same(student.loops_for_ten_milliseconds(), loops, "question 1", "3334 calls last 10 ms; the next of 1, 2, 5, 10, …")
    same(student.batch_reports(), (999 * 2 + 202) / 1000, "question 2", "(999 · 2 ms + 202 ms) / 1000", rel=0.01)

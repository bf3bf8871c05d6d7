# Written by "autograder export" from modules/02_timer/02_timer.ipynb: edit the notebook, not this file.

"""A precise stopwatch, and functions that measure the resolution and the overhead of a clock."""

from __future__ import annotations

import gc
import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from tinybench.support.basics.numbers import number_of


def _ran_backwards(start: float, end: float) -> RuntimeError:
    return RuntimeError(
        f"the clock ran backwards, from {start!r} to {end!r}; use a monotonic clock such as time.perf_counter"
    )


class precise_timer:
    """A stopwatch for the duration of a ``with`` block.

    A timer can be used again, but it cannot be nested inside itself: an inner block needs its own timer.

    Parameters
    ----------
    clock
        A function that returns the time in seconds. The clock must be monotonic: it must never go back during the
        block.

    Attributes
    ----------
    elapsed : float
        Seconds between the clock's readings at the start and at the end of the block. It is also set if the block
        raises an exception.

    Raises
    ------
    TypeError
        If `clock` cannot be called.
    RuntimeError
        If the timer is started while it runs, the clock runs backwards, or `elapsed` is read before a block
        has ended.

    Examples
    --------
    >>> with precise_timer() as timer:
    ...     total = sum(range(1000))
    >>> timer.elapsed > 0
    True
    """

    __slots__ = ("_clock", "_elapsed", "_start")
    _clock: Callable[[], float]
    _start: Any  # seconds; None while the timer is not running
    _elapsed: float | None  # None while there is no measurement

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """Store the clock, a function that returns seconds."""
        if not callable(clock):
            raise TypeError(f"clock is {clock!r}; pass the function, such as time.perf_counter, not its reading")
        self._clock = clock
        self._start = None
        self._elapsed = None

    @property
    def elapsed(self) -> float:
        """The duration of the last block in seconds."""
        if self._elapsed is None:
            raise RuntimeError("there is no measurement yet; read elapsed after the with block has ended")
        return self._elapsed

    def __enter__(self) -> precise_timer:
        """Discard the last measurement, then read the clock."""
        if self._start is not None:
            raise RuntimeError("this timer is already running; give the inner block a precise_timer of its own")
        self._elapsed = None
        self._start = self._clock()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Read the clock, then set the attributes. An exception raised in the block propagates to the caller."""
        end = self._clock()
        start, self._start = self._start, None
        if end >= start:
            self._elapsed = end - start
        elif exc_type is None:
            raise _ran_backwards(start, end)


def clock_resolution(
    clock: Callable[[], float] = time.perf_counter, steps: int = 1000, max_reads: int = 1_000_000
) -> float:
    """Return the smallest step, in s, by which a clock moves forward.

    The smallest step is at least as long as one reading of the clock takes. The function observes `steps` steps, or as
    many as occur within `max_reads` readings. Raises RuntimeError if the clock never moves forward.
    """
    forward: list[float] = []
    now = clock()
    for _ in range(max_reads // 2):
        before, start, now = now, clock(), clock()  # two readings in a row: nothing lies between them
        forward += [step for step in (start - before, now - start) if step > 0]
        if len(forward) >= steps:
            break
    if not forward:
        raise RuntimeError(
            f"the clock never moved forward in {number_of(max_reads, 'reading')} and shows {now!r}; use "
            "time.perf_counter"
        )
    return min(forward)


def timer_overhead(clock: Callable[[], float] = time.perf_counter, samples: int = 1001) -> float:
    """Return the duration, in s, between two readings in a row, as in ``t0 = clock(); t1 = clock()``.

    The result is the median of `samples` repetitions. Every measurement is too long by this bias. The result is 0.0 if
    the clock is too coarse to show the bias. A `precise_timer` has a larger bias, because entering and leaving the
    block also takes time. Raises ValueError if `samples` is below 1, and RuntimeError if even the median is negative.
    """
    if samples < 1:
        raise ValueError(f"samples is {samples}; it takes at least 1 empty measurement")
    empty = []
    for _ in range(samples):
        start = clock()
        end = clock()
        empty.append(end - start)
    overhead = statistics.median(empty)
    if overhead < 0:
        raise _ran_backwards(start, end)
    return overhead


def calibrate_loops(
    func: Callable[[], Any],
    min_time: float,
    clock: Callable[[], float] = time.perf_counter,
    max_loops: int = 10_000_000,
) -> int:
    """Return the first number of calls among 1, 2, 5, 10, 20, 50, … that together last at least `min_time` seconds.

    The caller should call `func` a few times beforehand, because a slow first call looks like a long batch. Raises
    TypeError if `func` cannot be called, ValueError if `min_time` is not positive and finite, and RuntimeError if the
    clock runs backwards or no batch of up to `max_loops` calls lasts long enough.
    """
    if not callable(func):
        raise TypeError(f"func is {func!r}; pass the function itself, not the result of calling it")
    if not (math.isfinite(min_time) and min_time > 0):
        raise ValueError(f"min_time is {min_time}; a batch lasts a positive number of seconds, such as 0.005")
    sizes: Iterator[int] = (digit * 10**power for power in itertools.count() for digit in (1, 2, 5))
    longest = 0.0
    for loops in sizes:
        if loops > max_loops:
            break
        batch = itertools.repeat(None, loops)
        start = clock()
        for _ in batch:
            func()
        end = clock()
        if end < start:
            raise _ran_backwards(start, end)
        if end - start >= min_time:
            return loops
        longest = max(longest, end - start)
    raise RuntimeError(
        f"no batch of up to {number_of(max_loops, 'call')} lasted {min_time} s, the longest took {longest} s by this "
        "clock: if it stands still, use time.perf_counter, otherwise lower min_time or raise max_loops"
    )


@contextmanager
def gc_paused(collector: Any = gc) -> Iterator[None]:
    """Switch the garbage collector off for a ``with`` block, and restore its earlier state afterwards.

    Reference cycles are not freed during the block. So collect garbage between measurements, and note in the metadata
    of a result that the collector was off. `collector` is an object with the functions ``isenabled``, ``enable`` and
    ``disable``, like the module `gc`.
    """
    was_enabled = collector.isenabled()
    collector.disable()
    try:
        yield
    finally:
        if was_enabled:
            collector.enable()
        else:
            collector.disable()

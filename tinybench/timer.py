# Written by "autograder export" from modules/02_timer/02_timer.ipynb: edit the notebook, not this file.

"""A stopwatch at the floor of what Python allows, and how fine and how costly its clock is."""

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


def _ran_backwards(start: float, end: float) -> RuntimeError:
    return RuntimeError(
        f"the clock ran backwards, from {start!r} to {end!r}; use a monotonic clock such as time.perf_counter"
    )


class precise_timer:
    """Time a ``with`` block.

    A timer can be used again, but not inside itself: an inner block needs its own timer.

    Parameters
    ----------
    clock
        A function that returns seconds; monotonic, so that nobody can set it back during the block.

    Attributes
    ----------
    elapsed : float
        Seconds between the two readings of the clock; set also when the block raises.

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
    _elapsed: float | None  # None while there is nothing to read

    @property
    def elapsed(self) -> float:
        """Seconds that the last block took."""
        if self._elapsed is None:
            raise RuntimeError("there is no measurement yet; read elapsed after the with block has ended")
        return self._elapsed

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """Keep the clock, a function that returns seconds, in `_clock`; `_start` and `_elapsed` are None.

        Raise a TypeError that names what was passed if it cannot be called.
        """
        if not callable(clock):
            raise TypeError(f"clock is {clock!r}; pass the function, such as time.perf_counter, not its reading")
        self._clock = clock
        self._start = None
        self._elapsed = None

    def __enter__(self) -> precise_timer:
        """Forget the last measurement and read the clock, in this order."""
        if self._start is not None:
            raise RuntimeError("this timer is already running; give the inner block a precise_timer of its own")
        self._elapsed = None
        self._start = self._clock()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Read the clock, then set the attributes; an exception of the block is passed on."""
        end = self._clock()
        start, self._start = self._start, None
        if end >= start:
            self._elapsed = end - start
        elif exc_type is None:
            raise _ran_backwards(start, end)


def clock_resolution(
    clock: Callable[[], float] = time.perf_counter, steps: int = 1000, max_reads: int = 1_000_000
) -> float:
    """Return the smallest step in s by which a clock was seen to move forward, at least the cost of a reading.

    Watches `steps` steps, or as many as `max_reads` readings show. RuntimeError if the clock never moved forward.
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
            f"the clock never moved forward in {max_reads} readings and shows {now!r}; use time.perf_counter"
        )
    return min(forward)


def timer_overhead(clock: Callable[[], float] = time.perf_counter, samples: int = 1001) -> float:
    """Return what ``t0 = clock(); t1 = clock()`` reads, the bias of each measurement in s: median of `samples` of them.

    0.0 for a clock too coarse to show it; a `precise_timer` reads more: entering and leaving the block also
    costs. ValueError if `samples` is below 1, RuntimeError if even the median runs backwards.
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
    """Return how many calls make a batch of at least `min_time` seconds: the first of 1, 2, 5, 10, 20, 50, … that does.

    Call `func` a few times beforehand: a slow first call looks like a long batch. TypeError if it cannot be called,
    ValueError if `min_time` is not positive and finite, RuntimeError if the clock runs backwards or `max_loops` calls
    are too short.
    """
    if not callable(func):
        raise TypeError(f"func is {func!r}; pass the function itself, not the result of calling it")
    if not (math.isfinite(min_time) and min_time > 0):
        raise ValueError(f"min_time is {min_time}; a batch lasts a positive number of seconds, such as 0.005")
    longest = 0.0
    sizes: Iterator[int] = (digit * 10**power for power in itertools.count() for digit in (1, 2, 5))
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
        f"no batch of up to {max_loops} calls lasted {min_time} s, the longest took {longest} s by this clock: "
        "if it stands still, use time.perf_counter, otherwise lower min_time or raise max_loops"
    )


@contextmanager
def gc_paused(collector: Any = gc) -> Iterator[None]:
    """Switch the garbage collector off for a ``with`` block, and restore its earlier state afterwards.

    Reference cycles are not freed meanwhile: collect between measurements, and say so in a result's metadata.
    `collector` has ``isenabled``, ``enable`` and ``disable``, as the module `gc` has.
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

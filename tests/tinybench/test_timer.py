"""The stopwatch and what is known about its clock, against clocks whose every reading is given."""

from __future__ import annotations

import doctest
import gc
import itertools
import math
import time
from collections.abc import Callable, Iterator
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinybench.timer
from tinybench.timer import calibrate_loops, clock_resolution, gc_paused, precise_timer, timer_overhead

TICK = 2.0**-20  # sums of ticks are exact in floating point
ticks = st.integers(0, 2**40)


def shown(*readings: float) -> Callable[[], float]:
    return iter(readings).__next__


def is_empty_but_works(timer: precise_timer) -> None:
    with pytest.raises(RuntimeError, match="no measurement"):
        _ = timer.elapsed
    with timer:
        pass
    assert timer.elapsed == 1.0


class Work:
    """Work of known length in ticks, with its clock."""

    def __init__(self, cost: int, per_read: int = 0) -> None:
        self.cost, self.per_read, self.now, self.batches, self.calls = cost, per_read, 0, [], 0

    def __call__(self) -> None:
        self.now += self.cost
        self.calls += 1

    def clock(self) -> float:
        self.now += self.per_read
        self.batches.append(self.calls)
        return self.now * TICK


class TestPreciseTimer:
    @given(start=ticks, length=ticks)
    def test_elapsed_is_the_difference_of_two_readings(self, start: int, length: int) -> None:
        with precise_timer(shown(start * TICK, (start + length) * TICK)) as timer:
            pass
        assert timer.elapsed == length * TICK

    def test_default_clock_is_perf_counter(self) -> None:
        before = time.perf_counter()
        with precise_timer() as timer:
            inside = time.perf_counter()
        assert 0 < timer.elapsed <= time.perf_counter() - before
        assert inside - before <= time.perf_counter() - before

    @pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
    def test_elapsed_is_set_when_the_block_raises(self, error: type[BaseException]) -> None:
        timer = precise_timer(shown(1.0, 3.5))
        with pytest.raises(error, match="the model failed"), timer:
            raise error("the model failed")
        assert timer.elapsed == 2.5

    def test_every_use_starts_afresh(self) -> None:
        timer = precise_timer(shown(1.0, 2.0, 5.0, 9.0))
        with timer:
            pass
        with timer, pytest.raises(RuntimeError, match="no measurement yet"):
            _ = timer.elapsed
        assert timer.elapsed == 4.0

    def test_unused_timer_has_nothing_to_read(self) -> None:
        with pytest.raises(RuntimeError, match="read elapsed after the with block"):
            _ = precise_timer().elapsed

    def test_running_timer_refuses_a_second_start_and_keeps_the_first(self) -> None:
        timer = precise_timer(shown(1.0, 6.0, 7.0, 9.0))
        with pytest.raises(RuntimeError, match=r"already running.*precise_timer of its own"), timer, timer:
            pass
        assert timer.elapsed == 5.0
        with timer:
            pass
        assert timer.elapsed == 2.0

    def test_two_timers_nest(self) -> None:
        clock = shown(0.0, 1.0, 3.0, 7.0)
        with precise_timer(clock) as outer, precise_timer(clock) as inner:
            pass
        assert (outer.elapsed, inner.elapsed) == (7.0, 2.0)

    @given(start=st.floats(-1e9, 1e9), back=st.floats(1e-3, 1e9))
    def test_clock_that_runs_backwards_is_named(self, start: float, back: float) -> None:
        end = start - back
        timer = precise_timer(shown(start, end, 0.0, 1.0))
        why = r"backwards.*monotonic clock such as time\.perf_counter"
        with pytest.raises(RuntimeError, match=why) as caught, timer:
            pass
        assert repr(start) in str(caught.value)
        assert repr(end) in str(caught.value)
        is_empty_but_works(timer)

    def test_clock_that_runs_backwards_never_masks_the_exception(self) -> None:
        timer = precise_timer(shown(5.0, 4.0, 0.0, 1.0))
        with pytest.raises(KeyError, match="the model failed") as caught, timer:
            raise KeyError("the model failed")
        assert caught.value.__context__ is None
        is_empty_but_works(timer)

    def test_reading_that_is_not_a_number_is_refused(self) -> None:
        with pytest.raises(RuntimeError, match="nan"), precise_timer(shown(1.0, math.nan)):
            pass

    def test_clock_is_read_last_on_the_way_in_and_first_on_the_way_out(self) -> None:
        states = []

        def clock() -> float:
            states.append((timer._start is not None, timer._elapsed))
            return float(len(states))

        timer = precise_timer(clock)
        for _ in range(2):
            with timer:
                pass
        assert states == [(False, None), (True, None)] * 2

    def test_slots(self) -> None:
        timer = precise_timer()
        assert not hasattr(timer, "__dict__")
        for name in ("elapsd", "elapsed"):
            with pytest.raises(AttributeError):
                setattr(timer, name, 1.0)


class TestClockResolution:
    @given(st.lists(st.integers(-5, 50), min_size=3, max_size=300).filter(lambda steps: max(steps) > 0))
    def test_smallest_step_forward(self, steps: list[int]) -> None:
        readings = [100 * TICK + step * TICK for step in itertools.accumulate(steps, initial=0)]
        readings += [readings[-1]] * (len(readings) % 2 + 1)
        found = clock_resolution(shown(*readings), steps=10**6, max_reads=len(readings) - 1)
        assert found == min(b - a for a, b in itertools.pairwise(readings) if b > a)

    def test_stops_after_enough_steps(self) -> None:
        reads = itertools.count()
        assert clock_resolution(lambda: float(next(reads)), steps=10) == 1.0
        assert next(reads) <= 12

    def test_coarse_clock(self) -> None:
        reads = itertools.count()
        assert clock_resolution(lambda: next(reads) // 5000 / 64, steps=3) == 1 / 64

    @pytest.mark.parametrize("name", ["perf_counter", "monotonic"])
    def test_real_clocks_have_one(self, name: str) -> None:
        assert 0 < clock_resolution(getattr(time, name)) < math.inf


class TestTimerOverhead:
    @given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.integers(0, 1000))
    def test_median_of_pairs(self, costs: list[int], gap: int) -> None:
        def readings() -> Iterator[float]:
            now = 0
            for cost in costs:
                yield now * TICK
                yield (now + cost) * TICK
                now += cost + gap

        assert timer_overhead(readings().__next__, samples=len(costs)) == median(costs) * TICK

    def test_one_step_back_does_not_matter(self) -> None:
        assert timer_overhead(shown(0, 2, 10, 3, 20, 22), samples=3) == 2

    def test_coarse_clock_shows_none(self) -> None:
        assert timer_overhead(lambda: 7.0) == 0.0


class TestCalibrateLoops:
    @given(cost=st.integers(1, 10**6), target=st.integers(1, 10**6))
    def test_first_sufficient_of_one_two_five(self, cost: int, target: int) -> None:
        target = min(target, 2000 * cost)
        work = Work(cost)
        loops = calibrate_loops(work, target * TICK, clock=work.clock)
        sizes = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000]
        assert loops == next(size for size in sizes if size * cost >= target)
        starts = [0, *itertools.accumulate(sizes[: sizes.index(loops) + 1])]
        assert work.batches == [calls for pair in itertools.pairwise(starts) for calls in pair]

    @pytest.mark.parametrize("per_read", [0, 3])
    def test_batches_that_never_grow_end(self, per_read: int) -> None:
        work = Work(0, per_read)
        with pytest.raises(RuntimeError, match=r"no batch of up to 1000 calls lasted 2\.0 s.*use time\.perf_counter"):
            calibrate_loops(work, 2.0, clock=work.clock, max_loops=1000)
        assert work.calls == 1888

    def test_real_clock(self) -> None:
        assert str(calibrate_loops(lambda: None, 1e-4)).rstrip("0") in {"1", "2", "5"}


class TestGcPaused:
    @pytest.fixture(params=[True, False], ids=["on", "off"])
    def collector_on(self, request: pytest.FixtureRequest) -> Iterator[bool]:
        before = gc.isenabled()
        (gc.enable if request.param else gc.disable)()
        yield request.param
        (gc.enable if before else gc.disable)()

    def test_off_inside_and_restored(self, collector_on: bool) -> None:
        with gc_paused():
            assert not gc.isenabled()
            with gc_paused():
                assert not gc.isenabled()
            assert not gc.isenabled()
        assert gc.isenabled() is collector_on

    def test_restored_after_an_exception(self, collector_on: bool) -> None:
        with pytest.raises(KeyError), gc_paused():
            raise KeyError
        assert gc.isenabled() is collector_on

    def test_restored_when_the_block_meddles(self, collector_on: bool) -> None:
        with gc_paused():
            gc.enable()
        assert gc.isenabled() is collector_on

    def test_serves_as_a_decorator(self, collector_on: bool) -> None:
        assert gc_paused()(gc.isenabled)() is False
        assert gc.isenabled() is collector_on


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: precise_timer(12.5), TypeError, "clock is 12.5; pass the function"),
        (lambda: precise_timer(None), TypeError, "clock is None; pass the function"),
        (lambda: precise_timer("perf_counter"), TypeError, "clock is 'perf_counter'; pass the function"),
        (
            lambda: clock_resolution(lambda: 7.0, max_reads=500),
            RuntimeError,
            r"never moved forward in 500 readings and shows 7\.0",
        ),
        (
            lambda: clock_resolution(map(float, itertools.count(0, -1)).__next__, max_reads=500),
            RuntimeError,
            "never moved forward",
        ),
        (lambda: timer_overhead(samples=0), ValueError, "samples is 0; it takes at least 1"),
        (lambda: timer_overhead(shown(9.0, 8.0, 4.0, 3.0), samples=2), RuntimeError, r"from 4\.0 to 3\.0.*monotonic"),
        (lambda: calibrate_loops(int, 1.0, clock=lambda: 5.0), RuntimeError, r"the longest took 0\.0 s"),
        (lambda: calibrate_loops(int, 1.0, clock=shown(5.0, 3.0)), RuntimeError, r"from 5\.0 to 3\.0.*monotonic"),
        (lambda: calibrate_loops(int, 0), ValueError, "min_time is 0; a batch lasts a positive number"),
        (lambda: calibrate_loops(int, -1.0), ValueError, "min_time is -1.0; a batch lasts a positive number"),
        (lambda: calibrate_loops(int, math.nan), ValueError, "min_time is nan; a batch lasts a positive number"),
        (lambda: calibrate_loops(int, math.inf), ValueError, "min_time is inf; a batch lasts a positive number"),
        (lambda: calibrate_loops(3.0, 1.0), TypeError, r"func is 3\.0; pass the function itself"),
        (lambda: calibrate_loops(lambda: 1 / 0, 1.0), ZeroDivisionError, "division by zero"),
    ],
)
def test_bad_input_is_named(use: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        use()


def test_examples_in_the_documentation() -> None:
    assert doctest.testmod(tinybench.timer).failed == 0

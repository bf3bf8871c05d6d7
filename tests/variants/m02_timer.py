"""Honest solutions of module 02 that are written otherwise."""

VARIANTS = {
    "timer_enter": [
        ("enter_else", "", '''
def _begin(timer):
    if timer._start is None:
        timer._elapsed = None
        timer._start = timer._clock()
    else:
        raise RuntimeError("this timer runs already")
    return timer


precise_timer.__enter__ = lambda self: _begin(self)
'''),
        ("enter_without_hints", "def __enter__(self) -> precise_timer:", "def __enter__(timer, *, self=None):\n    self = timer"),
    ],
    "timer_exit": [
        ("exit_by_star", "", '''
@add_to_class(precise_timer)
def __exit__(self, *error):
    """Stop."""
    end = self._clock()
    start = self._start
    self._start = None
    if start <= end:
        self._elapsed = float(end - start)
        return False
    if error == (None, None, None):
        raise _ran_backwards(start, end)
    return None
'''),
        ("exit_with_finally", "", '''
@add_to_class(precise_timer)
def __exit__(self, kind, error, traceback):
    end = self._clock()
    try:
        took = end - self._start
        if took < 0 and kind is None:
            raise RuntimeError(f"from {self._start} back to {end}: take a monotonic clock")
        self._elapsed = None if took < 0 else took
    finally:
        self._start = None
'''),
    ],
    "answer_clock": [
        ("answer_clock_as_list", "return True, False", "return [np.True_, np.False_]"),
    ],
    "clock_resolution": [
        ("resolution_by_pairs", "", '''
def clock_resolution(clock=time.perf_counter, steps=1000, max_reads=1_000_000):
    readings, forward = itertools.islice(iter(clock, None), max_reads), []
    for before, after in itertools.pairwise(readings):
        if after > before:
            forward.append(after - before)
            if len(forward) == steps:
                break
    if forward:
        return sorted(forward)[0]
    raise RuntimeError("the clock stands still")
'''),
        ("resolution_by_while", "", '''
def clock_resolution(clock=time.perf_counter, steps=1000, max_reads=1_000_000):
    smallest, seen, reads, last = math.inf, 0, 1, clock()
    while seen < steps and reads < max_reads:
        reads += 1
        if (step := -(last - (last := clock()))) > 0:
            seen, smallest = seen + 1, min(smallest, step)
    if math.isinf(smallest):
        raise RuntimeError(f"no step in {reads} readings")
    return np.float64(smallest)
'''),
    ],
    "answer_resolution": [("answer_resolution_computed", "return 1.56", "return 15.6e-3 / 0.01"),
                          ("answer_resolution_decimal", "return 1.56", "import decimal\n\n    return decimal.Decimal('1.56')")],
    "timer_overhead": [
        ("overhead_by_numpy", "", '''
def timer_overhead(clock=time.perf_counter, samples=1001):
    if samples <= 0:
        raise ValueError(f"{samples} samples are none")
    starts, ends = np.empty(samples), np.empty(samples)
    for i in range(samples):
        starts[i] = clock()
        ends[i] = clock()
    found = np.median(ends - starts)
    if found < 0:
        raise RuntimeError("use a monotonic clock")
    return found
'''),
        ("overhead_by_comprehension", "", '''
def timer_overhead(clock=time.perf_counter, samples=1001):
    if not samples >= 1:
        raise ValueError(samples)
    empty = sorted(-(clock() - clock()) for _ in range(samples))
    middle = statistics.median(empty)
    if middle < 0:
        raise RuntimeError("this clock is not monotonic")
    return middle
'''),
    ],
    "answer_overhead": [("answer_overhead_fraction", "return (12 + 5) / (10 + 5)", "import fractions\n\n    return fractions.Fraction(17, 15)")],
    "calibrate_loops": [
        ("loops_by_recursion", "", '''
def _next(loops):
    return loops * 5 // 2 if str(loops).startswith("2") else loops * 2


def calibrate_loops(func, min_time, clock=time.perf_counter, max_loops=10_000_000, loops=1):
    if not callable(func):
        raise TypeError(f"{func} is no function")
    if not 0 < min_time < math.inf:
        raise ValueError("min_time must be positive")
    if loops > max_loops:
        raise RuntimeError(f"even {max_loops} calls are too short")
    begin = clock()
    for _ in range(loops):
        func()
    took = (end := clock()) - begin
    if took < 0:
        raise RuntimeError(f"from {begin!r} to {end!r}: this clock is not monotonic")
    return loops if took >= min_time else calibrate_loops(func, min_time, clock, max_loops, _next(loops))
'''),
        ("loops_with_timer", "", '''
def calibrate_loops(func, min_time, clock=time.perf_counter, max_loops=10_000_000):
    if not callable(func):
        raise TypeError(type(func).__name__)
    if math.isnan(min_time) or math.isinf(min_time) or min_time <= 0:
        raise ValueError(min_time)
    for power in range(100):
        for loops in (10**power, 2 * 10**power, 5 * 10**power):
            if loops > max_loops:
                raise RuntimeError(f"stopped at max_loops = {max_loops}")
            with precise_timer(clock) as timer:
                [func() for _ in range(loops)]
            if timer.elapsed >= min_time:
                return np.int64(loops)
'''),
    ],
    "answer_understanding": [
        ("answers_by_functions", "", '''
def loops_for_ten_milliseconds():
    return 5e3


def batch_reports():
    return np.mean([2] * 999 + [202])
'''),
    ],
}  # fmt: skip

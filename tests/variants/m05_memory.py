"""Honest solutions of module 05 that are written otherwise."""

VARIANTS = {
    "peak_added": [
        ("peak_by_if", '''    before = read_status(proc)["VmRSS"]
    call(x)
    return max(0, read_status(proc)["VmHWM"] - before)
''', '''    status = read_status(proc)
    call(x)
    rise = read_status(proc)["VmHWM"] - status["VmRSS"]
    if rise < 0:
        return 0
    return float(rise)
'''),
    ],
    "python_peak": [
        ("python_peak_in_two_ways", "", '''
def _peak_beyond(call, x):
    tracemalloc.reset_peak()
    held, _ = tracemalloc.get_traced_memory()
    call(x)
    _, peak = tracemalloc.get_traced_memory()
    return max(0, peak - held)


def python_peak(call, x):
    if tracemalloc.is_tracing():
        return _peak_beyond(call, x)
    tracemalloc.start(1)
    try:
        return _peak_beyond(call, x)
    finally:
        tracemalloc.stop()
'''),
        ("python_peak_by_context", "", '''
from contextlib import contextmanager


@contextmanager
def _tracing():
    mine = not tracemalloc.is_tracing()
    if mine:
        tracemalloc.start()
    try:
        yield
    finally:
        if mine:
            tracemalloc.stop()


def python_peak(call, x) -> float:
    with _tracing():
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        call(x)
        return float(tracemalloc.get_traced_memory()[1] - before)
'''),
    ],
    "measure_memory": [
        ("memory_by_comprehension", '''    values = []
    with young_heap():
        for _ in range(measurement_runs):
            free_heap()
            values.append(float(peak_added(call, x, proc)))
''', '''    def one():
        free_heap()
        return peak_added(call, x, proc)

    with young_heap():
        values = [one() for _ in range(measurement_runs)]
'''),
        ("memory_warm_up_by_loop", "    warmups = [peak_added(call, x, proc) for _ in range(warmup_runs)]\n", '''    warmups = []
    while len(warmups) < warmup_runs:
        warmups.append(peak_added(call, x, proc))
'''),
    ],
    "model_size": [
        ("size_by_walk", '''    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
''', '''    import os

    if os.path.isdir(path):
        total = 0
        for folder, _, files in os.walk(path):
            for file in files:
                total += os.path.getsize(os.path.join(folder, file))
        return total
'''),
        ("size_by_two_sums", "    return sum(file.stat().st_size for file in [path, *external_files(path)])\n", '''    beside = sum(other.stat().st_size for other in external_files(path))
    return float(path.stat().st_size + beside)
'''),
    ],
    "resident_growth": [
        ("growth_by_numpy", '''    rates = [(after - before) / calls for before, after in pairwise(resident)]
''', '''    rates = np.diff(resident) / calls
'''),
        ("growth_of_lower_end", '    result.metadata["growing"] = result.ci_lower > 0\n', '''    low, high = result.ci_lower, result.ci_upper
    result.metadata["growing"] = True if 0 < low <= high else False
'''),
    ],
    "capacity": [
        ("capacity_by_division", "    return max(0, math.floor((available - shared) / per_instance))\n", '''    left = available - shared
    return left // per_instance if left > 0 else 0
'''),
        ("pressure_by_product", "    return memory * throughput\n", "    return math.prod([memory, throughput])\n"),
    ],
    "answer_understanding": [
        ("answers_computed", "return 64\n", "return max_concurrent(4000, 60, shared=120)\n"),
        ("answers_as_numpy", "return False", "return np.bool_(False)"),
        ("answers_by_formula", "return 32.0\n", "return 4096 * 2048 * 4 / 2**20\n"),
    ],
}  # fmt: skip

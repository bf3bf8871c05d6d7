"""Honest solutions of module 05 that are written otherwise."""

VARIANTS = {
    "read_status": [
        ("status_by_pattern", "", '''
import os
import re


def read_status(proc="/proc"):
    status = (Path(proc) / "self" / "status").read_text()
    found = dict(re.findall(r"^(VmRSS|VmHWM):\\s*(\\d+) kB", status, flags=re.MULTILINE))
    try:
        return {name: 1024 * int(found[name]) for name in ("VmHWM", "VmRSS")}
    except KeyError as missing:
        raise OSError(f"no {missing} in status") from missing


def reset_peak(proc="/proc"):
    with open(os.path.join(proc, "self", "clear_refs"), "w") as file:
        print(5, file=file)
'''),
        ("status_by_open", '''    for line in Path(proc, "self", "status").read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(":")
        if name in ("VmRSS", "VmHWM"):
            found[name] = int(rest.split()[0]) * 1024
''', '''    with open(f"{proc}/self/status") as lines:
        for line in lines:
            match line.split():
                case [("VmRSS:" | "VmHWM:") as name, kib, "kB"]:
                    found[name[:-1]] = np.int64(kib) * 1024
'''),
        ("status_as_default_dict", "    found = {}\n", "    from collections import defaultdict\n\n    found = defaultdict(int)\n"),
    ],
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
        ("memory_by_comprehension", '''    values, freed = [], False
    with young_heap():
        for _ in range(measurement_runs):
            freed = free_heap()
            values.append(float(peak_added(call, x, proc)))
''', '''    freed = False

    def one():
        nonlocal freed
        freed = free_heap()
        return peak_added(call, x, proc)

    with young_heap():
        values = [one() for _ in range(measurement_runs)]
'''),
        ("memory_first_by_if", '        "first_call": (warmups or values)[0],\n', '        "first_call": warmups[0] if len(warmups) > 0 else int(values[0]),\n'),
    ],
    "answer_batch": [("answer_batch_computed", "return 32.0", "return 4096 * 2048 * 4 / 2**20"), ("answer_batch_whole", "return 16.0", "return 16")],
    "memory_stages": [
        ("stages_by_name", '''            "retained": [numbers["retained"] for numbers in found],
            "resident": [numbers["resident"] for numbers in found],
''', '''            **{kind: tuple(numbers[kind] for numbers in found) for kind in ("retained", "resident")},
'''),
        ("stages_by_loop", "    answers = [launch(task) for _ in range(repeats)]\n", '''    answers = []
    while len(answers) < repeats:
        answers.append(launch(dict(task)))
'''),
    ],
    "model_size": [
        ("size_error_in_other_words", "; save it and pass the path", "; write it to a file and give me that"),
        ("size_by_walk", '''        if path.is_dir():
            return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
''', '''        import os

        if os.path.isdir(path):
            total = 0
            for folder, _, files in os.walk(path):
                for file in files:
                    total += os.path.getsize(os.path.join(folder, file))
            return total
'''),
        ("size_by_dumps", '''    counter = ByteCounter()
    try:
        pickle.dump(model, counter, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise TypeError(f"{type(model).__name__} cannot be pickled ({error}); save it and pass the path") from None
    return counter.count
''', '''    try:
        return float(len(pickle.dumps(model, -1)))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError("save the model, and give its path") from error
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
        ("answers_by_function", "return 2.0\n", "return memory_pressure(8e6, 250) / 1e9\n"),
    ],
}  # fmt: skip

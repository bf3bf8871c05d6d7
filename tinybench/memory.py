# Written by "autograder export" from modules/05_memory/05_memory.ipynb: edit the notebook, not this file.

"""Memory of models: the peak of one inference, size on disk, leaks, and how many instances fit."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from tinybench.latency import check_runs
from tinybench.result import BenchmarkResult
from tinybench.support.basics.arguments import check_least, check_positive
from tinybench.support.footprint.first_calls import in_fresh_processes
from tinybench.support.footprint.freed_memory import WithoutArenas, free_heap, young_heap
from tinybench.support.footprint.high_water_mark import can_reset, read_status, reset_peak, settled_memory
from tinybench.support.footprint.memory_results import call_of, checked_blocks, note_growth_seen, peak_result, tracing
from tinybench.support.footprint.stored_models import external_files, pickled_size, stored_form


def peak_added(call: Callable[[Any], Any], x: Any, proc: str | Path = "/proc") -> int:
    """Return the number of bytes, at least 0, by which one call raises the resident memory at its peak.

    Memory that the process takes for other work at the same time is included. Raises OSError as `read_status` and
    `reset_peak` do.
    """
    reset_peak(proc)
    before = read_status(proc)["VmRSS"]
    call(x)
    return max(0, read_status(proc)["VmHWM"] - before)


def python_peak(call: Callable[[Any], Any], x: Any) -> int:
    """Return the peak of Python's own allocations during one call, in bytes, as measured by tracemalloc.

    It counts from the memory that was traced before the call. Memory of C libraries is not included. Tracing makes the
    call several times slower than usual.
    """
    with tracing():
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        call(x)
        return tracemalloc.get_traced_memory()[1] - before


def measure_memory(
    model: Any, inputs: Any, warmup_runs: int = 2, measurement_runs: int = 10, proc: str | Path = "/proc"
) -> BenchmarkResult:
    """Measure the peak resident memory that one inference adds, native allocations included.

    Parameters
    ----------
    model, inputs
        Any model that `as_callable` accepts, and the input of one call. An ONNX Runtime session is replaced by a twin
        session without an arena, because an arena would hide the memory of an inference; see `WithoutArenas`.
    warmup_runs, measurement_runs
        Number of calls before the measured ones, at least 0; number of measured calls, at least 1.
    proc
        Folder of the Linux proc file system.

    Returns
    -------
    BenchmarkResult
        Peak memory in bytes above the resident memory before the call, with one value for each run. The metadata holds
        the ``method``, the peak of the ``first_call``, the peak of Python's own allocations (``python_peak``), and
        whether the memory was ``seen``, which means that it exceeds the ``resolution``. If it was not seen, a value of
        0 does not mean that no memory was used: ``at_most`` is an upper bound, and ``caution`` gives the reason.

    Raises
    ------
    TypeError
        If this system keeps no high-water mark and the model cannot be sent to a fresh process.
    """
    check_runs("warmup_runs", warmup_runs, 0)
    check_runs("measurement_runs", measurement_runs, 1)
    plain, x = call_of(model, inputs)
    if not can_reset(proc):
        return in_fresh_processes(model, inputs, measurement_runs, proc, python_peak)
    call = WithoutArenas(plain)
    warmups = [peak_added(call, x, proc) for _ in range(warmup_runs)]
    values = []
    with young_heap():
        for _ in range(measurement_runs):
            free_heap()
            values.append(float(peak_added(call, x, proc)))
    first = (warmups or values)[0]
    notes = {"first_call": first, "python_peak": python_peak(call, x), "warmup_runs": warmup_runs}
    return peak_result(values, notes, call, x, lambda: peak_added(call, x, proc), proc)


def model_size(model_or_path: Any) -> int:
    """Return the size of a model on disk, in bytes.

    Parameters
    ----------
    model_or_path
        The path of a file (external weights of an ONNX model are added), the path of a folder (all its files count), an
        `OnnxModel` or ONNX Runtime session (the file or bytes that it was loaded from), an ``onnx.ModelProto``, or any
        model that can be pickled.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    FileNotFoundError
        If the path does not exist.
    TypeError
        If the model is a function, or cannot be pickled. In this case save the model and pass the path.
    """
    model = stored_form(model_or_path)
    if not isinstance(model, str | Path):
        return len(model) if isinstance(model, bytes) else pickled_size(model)
    path = Path(model)
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return sum(file.stat().st_size for file in [path, *external_files(path)])


def resident_growth(
    model: Any, inputs: Any, runs: int = 200, blocks: int = 10, warmup_runs: int = 20, proc: str | Path = "/proc"
) -> BenchmarkResult:
    """Measure how much the resident memory grows with each call, to find leaks.

    Parameters
    ----------
    model, inputs
        Any model that `as_callable` accepts, and the input of each call.
    runs, blocks
        Number of calls; number of equal blocks to divide them into, at least 2 for an interval. Each gives one rate.
    warmup_runs
        Number of calls before the blocks, at least 0, in which caches and arenas may fill.
    proc
        Folder of the proc file system; see `settled_memory`.

    Returns
    -------
    BenchmarkResult
        The growth in bytes per call, one rate for each block. The mean of the rates is the slope.
        ``metadata["growing"]`` says whether the whole interval lies above 0; ``resident`` is the resident memory before
        the first block and after each block. Growth below the ``resolution``, in bytes per call, is not ``seen``.

    Raises
    ------
    ValueError
        If a number is too small, or `runs` is not a multiple of `blocks`.
    """
    call, x = checked_blocks(model, inputs, runs, blocks, warmup_runs)
    calls = runs // blocks
    for _ in range(warmup_runs):
        call(x)
    with young_heap():
        resident = [settled_memory(proc)]
        for _ in range(blocks):
            for _ in range(calls):
                call(x)
            resident.append(settled_memory(proc))
    rates = [(after - before) / calls for before, after in pairwise(resident)]
    result = BenchmarkResult("resident growth", rates, {"resident": resident}, unit="B")
    result.metadata["growing"] = result.ci_lower > 0
    return note_growth_seen(result, x, runs, warmup_runs, proc)


def max_concurrent(available: float, per_instance: float, shared: float = 0.0) -> int:
    """Return the number of instances, each of `per_instance` bytes at its peak, that fit into `available` bytes.

    In addition, `shared` bytes are needed once for all instances together. The result is at least 0. Raises ValueError
    if `per_instance` is not positive, another argument is negative, or an argument is not finite.
    """
    check_positive(per_instance=per_instance)
    check_least(available=available, shared=shared)
    return max(0, math.floor((available - shared) / per_instance))


def memory_pressure(memory: float, throughput: float) -> float:
    """Return the rate at which inferences write their working memory, in B/s: `memory` per inference × `throughput`.

    It is not the traffic of the memory bus: small working memory stays in the processor's cache, and reading weights
    adds traffic. Both arguments must refer to the same batch. Raises ValueError if an argument is negative or not
    finite, or if `memory` is 0, which means that it was not detected; see ``metadata["at_most"]`` of `measure_memory`.
    """
    check_positive(memory=memory)
    check_least(throughput=throughput)
    return memory * throughput

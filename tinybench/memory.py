# Written by "autograder export" from modules/05_memory/05_memory.ipynb: edit the notebook, not this file.

"""Memory of models: the peak of one inference, the stages of a fresh process, size on disk, and leaks."""

from __future__ import annotations

import inspect
import io
import math
import mmap
import pickle
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import psutil

from tinybench.latency import as_callable
from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.type_checks import describe
from tinybench.support.footprint.freed_memory import WithoutArenas, free_heap, young_heap
from tinybench.support.footprint.memory_visibility import count_error, exact_memory, note_memory_seen, touched_memory
from tinybench.support.footprint.stages import PEAK_METHOD, STAGES, run_fresh_stages
from tinybench.support.rounds.checked_calls import fed_by_name, plain_call
from tinybench.support.rounds.fresh_processes import fresh_task
from tinybench.support.rounds.input_notes import as_input, check_runs, describe_input


def read_status(proc: str | Path = "/proc") -> dict[str, int]:
    """Return the current resident memory (``VmRSS``) and its high-water mark (``VmHWM``), in bytes.

    Both are read from ``self/status`` in `proc`. Raises OSError if there is no such file, or if one of the two values
    is missing in it. This happens on systems other than Linux and in some sandboxes.
    """
    found = {}
    for line in Path(proc, "self", "status").read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(":")
        if name in ("VmRSS", "VmHWM"):
            found[name] = int(rest.split()[0]) * 1024
    if len(found) < 2:
        raise OSError(f"{proc}/self/status shows no VmRSS and VmHWM; this system does not keep a high-water mark")
    return found


def reset_peak(proc: str | Path = "/proc") -> None:
    """Set the high-water mark to the current resident memory, through ``self/clear_refs`` in `proc`.

    This also resets the maximum that `resource.getrusage` reports; see the manual page proc_pid_clear_refs(5). Raises
    OSError if the system does not allow it.
    """
    Path(proc, "self", "clear_refs").write_text("5", encoding="utf-8")


def peak_added(call: Callable[[Any], Any], x: Any, proc: str | Path = "/proc") -> int:
    """Return the number of bytes, at least 0, by which one call raises the resident memory at its peak.

    The resolution is a page of 4 KiB. Memory that the process takes for other work at the same time is included. Raises
    OSError as `read_status` and `reset_peak` do.
    """
    reset_peak(proc)
    before = read_status(proc)["VmRSS"]
    call(x)
    return max(0, read_status(proc)["VmHWM"] - before)


def python_peak(call: Callable[[Any], Any], x: Any) -> int:
    """Return the peak of Python's own allocations during one call, as measured by tracemalloc.

    The peak is in bytes, and counts from the memory that was traced before the call. Memory of C libraries is not
    included. Tracing makes the call several times slower than usual.
    """
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        call(x)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not was_tracing:
            tracemalloc.stop()


def can_reset(proc: str | Path = "/proc") -> bool:
    """Return whether this process can reset and read its high-water mark."""
    try:
        reset_peak(proc)
        read_status(proc)
    except OSError:
        return False
    return True


def resident_memory(proc: str | Path = "/proc") -> tuple[int, str]:
    """Return the current resident memory in bytes, and the name of the method by which it was found.

    The first of these methods that works is used: a count page by page, Linux's own count, and psutil.
    """
    try:
        return exact_memory("Rss", proc), "Rss of smaps_rollup"
    except OSError:
        pass
    try:
        return read_status(proc)["VmRSS"], "VmRSS"
    except OSError:
        return int(psutil.Process().memory_info().rss), "resident size (psutil)"


def call_of(model: Any, inputs: Any) -> tuple[Callable[[Any], Any], Any]:
    """Return a model as a function of one argument, and that argument. For `inputs` see `measure_latency`."""
    x = as_input(inputs)
    by_name = isinstance(x, dict) and callable(getattr(model, "get_inputs", None))
    return plain_call(fed_by_name(model) if by_name else as_callable(model), x, None, None)


class _Pickler(cloudpickle.Pickler):
    """A pickler that also handles the functions and classes of a notebook, and the sessions of ONNX Runtime.

    Functions and classes that a notebook or script defines are stored by value. A session is stored as the file or the
    bytes that it was loaded from.
    """

    sessions = 0

    def reducer_override(self, obj: Any) -> Any:
        if not callable(getattr(obj, "get_session_options", None)) or isinstance(obj, type):
            return super().reducer_override(obj)
        self.sessions += 1
        options = obj.get_session_options()
        kept = ("intra_op_num_threads", "inter_op_num_threads", "graph_optimization_level")
        settings = {name: getattr(options, name) for name in kept}
        source = obj._model_path or obj._model_bytes
        return _session_without_arena, (type(obj), source, type(options), settings, obj.get_providers())


def _session_without_arena(kind: Any, source: Any, options_kind: Any, settings: Any, providers: Any) -> Any:
    options = options_kind()
    for name, value in {**settings, "enable_cpu_mem_arena": False}.items():
        setattr(options, name, value)
    return kind(source, options, providers=providers)


def in_fresh_processes(model: Any, x: Any, runs: int, proc: str | Path = "/proc") -> BenchmarkResult:
    """Measure the memory peak of a model's first call, once in each of `runs` fresh processes.

    The model is pickled and sent to these processes. Raises TypeError if the model cannot be pickled.
    """
    pickler = _Pickler(packed := io.BytesIO())
    try:
        pickler.dump(model)
    except Exception as error:
        raise TypeError(
            f"without /proc/self/clear_refs the model must travel to a fresh process, and cannot ({error}); "
            "use memory_stages with a function that loads it"
        ) from None

    def launch(task: Mapping[str, Any]) -> Mapping[str, Any]:
        return run_fresh_stages({**task, "proc": str(proc)})

    stages = memory_stages(pickle.loads, x, runs, args=(packed.getvalue(),), steady_calls=1, launch=launch)
    result = stages["first_call"]
    note_memory_seen(result, result.values[0])
    result.metadata |= {
        "first_call": result.values[0],
        "python_peak": python_peak(as_callable(model), x),
        "warmup_runs": 0,
        "heap_freed": False,
        "arena": "off in a twin session" if pickler.sessions else "none",
    }
    return result


def note_stages(results: dict[str, BenchmarkResult], first_answer: Mapping[str, Any]) -> dict[str, BenchmarkResult]:
    """Note for each stage whether its memory was ``seen`` (detected).

    For stages that call the model, the note also depends on how much memory the first call added.
    """
    for stage, result in results.items():
        if stage in ("import", "load") or "first_call" not in results:
            note_memory_seen(result, 0.0)
        else:
            note_memory_seen(result, results["first_call"].median, *first_answer.get("touched", ()))
    return results


def complete(result: BenchmarkResult, call: WithoutArenas, x: Any, proc: str | Path) -> BenchmarkResult:
    """Measure the runs again in which a session without an arena was built. Return the corrected result.

    The metadata of the result notes whether arenas were used, and whether the memory was ``seen`` (detected).
    """
    values, notes = list(result.values), {**result.metadata, "arena": call.arena}
    for number in sorted(set(call.late)):
        if number == 0:
            call.renew()
        free_heap()
        peak, run = peak_added(call, x, proc), number - notes["warmup_runs"]
        if number == 0:
            notes["first_call"] = peak
        if 0 <= run < len(values):
            values[run] = float(peak)
    result = BenchmarkResult(result.metric_name, values, notes, unit=result.unit)
    note_memory_seen(result, notes["first_call"], *touched_memory(call, x, proc))
    if psutil.Process().children():
        result.metadata |= {"at_most": None, "not_counted": "child processes"}
    return result


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
        return in_fresh_processes(model, inputs, measurement_runs, proc)
    call = WithoutArenas(plain)
    warmups = [peak_added(call, x, proc) for _ in range(warmup_runs)]
    values, freed = [], False
    with young_heap():
        for _ in range(measurement_runs):
            freed = free_heap()
            values.append(float(peak_added(call, x, proc)))
    metadata = {
        **describe_input(x),
        "method": PEAK_METHOD,
        "native": True,
        "first_call": (warmups or values)[0],
        "python_peak": python_peak(call, x),
        "warmup_runs": warmup_runs,
        "heap_freed": freed,
    }
    result = BenchmarkResult("memory", values, metadata, unit="B")
    return complete(result, call, x, proc)


def memory_stages(
    factory: Any, inputs: Any, repeats: int = 3, args: Sequence[Any] = (), steady_calls: int = 20,
    launch: Callable[[Mapping[str, Any]], Mapping[str, Any]] = run_fresh_stages,
) -> dict[str, BenchmarkResult]:  # fmt: skip
    """Measure the memory that a model takes in a fresh process, stage by stage.

    Parameters
    ----------
    factory, inputs, args
        A function that loads and returns the model, see `fresh_processes.portable_factory`; the input of each call;
        picklable arguments of the factory, such as the model's path.
    repeats, steady_calls
        Number of fresh processes, and number of calls after the second one in each process.
    launch
        A function that runs the stages in one fresh process; see `run_fresh_stages`.

    Returns
    -------
    dict of str to BenchmarkResult
        For each stage in `STAGES`, the peak in bytes above the resident memory at the beginning of the stage, with one
        value for each process. The metadata holds ``retained`` (bytes that the stage did not release) and ``resident``
        (bytes of the whole process) of each process, the ``method``, and whether the memory was ``seen``. Memory that
        an arena keeps appears in ``resident`` only.

    Raises
    ------
    TypeError, RuntimeError
        If the factory cannot be sent to a fresh process, or fails there.
    """
    check_runs("repeats", repeats, 1)
    check_runs("steady_calls", steady_calls, 1)
    x = as_input(inputs)
    task = fresh_task(factory, x, args, steady_calls)
    answers = [launch(task) for _ in range(repeats)]
    results = {}
    for stage in STAGES:
        found = [answer["stages"][stage] for answer in answers]
        metadata = {
            **describe_input(x),
            "stage": stage,
            "method": answers[0]["method"],
            "native": True,
            "processes": repeats,
            "retained": [numbers["retained"] for numbers in found],
            "resident": [numbers["resident"] for numbers in found],
        }
        results[stage] = BenchmarkResult("memory", [numbers["peak"] for numbers in found], metadata, unit="B")
    return note_stages(results, answers[0])


def stored_form(model: Any) -> Any:
    """Return the path or the bytes that a model was loaded from, or else the model itself.

    An `OnnxModel` or an ONNX Runtime session has such a source; an ``onnx.ModelProto`` is serialised. Raises TypeError
    for a function or a class, because pickle would write only its name.
    """
    session = getattr(model, "session", model)
    if callable(getattr(session, "get_session_options", None)):
        return getattr(session, "_model_path", None) or getattr(session, "_model_bytes", None) or model
    if callable(getattr(model, "SerializeToString", None)):
        return model.SerializeToString()
    if (
        model is None
        or isinstance(model, type | np.ufunc)
        or (inspect.isroutine(model) and not inspect.ismethod(model))
    ):
        raise TypeError(
            f"the model is {describe(model)}, which has no size of its own; save what it uses and pass the path"
        )
    return model


def external_files(path: Path) -> list[Path]:
    """Return the additional files in which an ONNX model stores weights outside its own file.

    The package ``onnx`` is needed only if the model has such files.
    """
    if b"location" not in path.read_bytes():
        return []
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    places = {
        entry.value
        for tensor in graph.initializer
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return [path.parent / place for place in sorted(places)]


class ByteCounter:
    """A file that only counts the bytes written to it."""

    def __init__(self) -> None:
        self.count = 0

    def write(self, data: Any) -> int:
        """Count the bytes without storing them, and return their number."""
        size = memoryview(data).nbytes
        self.count += size
        return size


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
    if isinstance(model, bytes):
        return len(model)
    if isinstance(model, str | Path):
        path = Path(model)
        if path.is_dir():
            return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        beside = external_files(path) if path.suffix == ".onnx" else []
        return sum(file.stat().st_size for file in [path, *beside])
    counter = ByteCounter()
    try:
        pickle.dump(model, counter, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise TypeError(f"{type(model).__name__} cannot be pickled ({error}); save it and pass the path") from None
    return counter.count


def _blocks_checked(
    model: Any, inputs: Any, runs: int, blocks: int, warmup_runs: int
) -> tuple[Callable[[Any], Any], Any]:
    check_runs("blocks", blocks, 2)
    check_runs("runs", runs, blocks)
    check_runs("warmup_runs", warmup_runs, 0)
    if runs % blocks:
        raise ValueError(f"{number_of(runs, 'run')} cannot be divided into {blocks} equal blocks")
    return call_of(model, inputs)


def note_growth_seen(result: BenchmarkResult, runs: int, proc: str | Path) -> BenchmarkResult:
    """Note in the metadata how memory was read (``method``), its ``resolution``, and whether growth was ``seen``.

    The resolution is in bytes per call. Growth below it is not seen.
    """
    method = resident_memory(proc)[1]
    error = mmap.PAGESIZE if "smaps_rollup" in method else count_error()
    result.metadata |= {"method": method, "resolution": error / runs, "seen": abs(result.mean) * runs >= error}
    if not result.metadata["seen"]:
        result.metadata["caution"] = (
            f"no growth was seen: it is below {error / runs:.3g} B a call, in {number_of(runs, 'call')}"
        )
    return result


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
        Folder of the proc file system; see `resident_memory`.

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
    call, x = _blocks_checked(model, inputs, runs, blocks, warmup_runs)
    calls = runs // blocks
    for _ in range(warmup_runs):
        call(x)
    with young_heap():
        free_heap()
        resident = [resident_memory(proc)[0]]
        for _ in range(blocks):
            for _ in range(calls):
                call(x)
            free_heap()
            resident.append(resident_memory(proc)[0])
    rates = [(after - before) / calls for before, after in pairwise(resident)]
    metadata = {**describe_input(x), "calls_per_block": calls, "warmup_runs": warmup_runs, "resident": resident}
    result = BenchmarkResult("resident growth", rates, metadata, unit="B")
    result.metadata["growing"] = result.ci_lower > 0
    return note_growth_seen(result, runs, proc)


def max_concurrent(available: float, per_instance: float, shared: float = 0.0) -> int:
    """Return the number of instances, each of `per_instance` bytes at its peak, that fit into `available` bytes.

    In addition, `shared` bytes are needed once for all instances together. The result is at least 0. Raises ValueError
    if `per_instance` is not positive, another argument is negative, or an argument is not finite.
    """
    for name, value in (("available", available), ("per_instance", per_instance), ("shared", shared)):
        if not math.isfinite(value) or value < 0 or (name == "per_instance" and value == 0):
            raise ValueError(f"{name} is {value}; give bytes, and an instance takes more than none")
    return max(0, math.floor((available - shared) / per_instance))


def memory_pressure(memory: float, throughput: float) -> float:
    """Return the working memory that inference uses per second, in bytes: `memory` per inference × `throughput`.

    Every byte that an inference adds is written at least once, so this is a lower bound of its memory traffic. Reading
    weights, and reading any data repeatedly, adds to the traffic. Both arguments must refer to the same batch. Raises
    ValueError if an argument is negative or not finite, or if `memory` is 0. A memory of 0 means that it was not
    detected; see ``metadata["at_most"]`` of `measure_memory`.
    """
    for name, value in (("memory", memory), ("throughput", throughput)):
        if not math.isfinite(value) or value < 0 or (name == "memory" and value == 0):
            raise ValueError(
                f"{name} is {value}; give at least 0, and bytes that were seen: 0 B are not seen, not none"
            )
    return memory * throughput

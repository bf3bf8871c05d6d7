# Written by "autograder export" from modules/05_memory/05_memory.ipynb: edit the notebook, not this file.

"""Memory that one inference takes, native allocations included; the stages of a fresh process; size and leaks."""

from __future__ import annotations

import copy
import ctypes
import gc
import io
import math
import pickle
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import cloudpickle
import psutil

from tinybench.latency import as_callable, as_input, check_runs, describe_input, fresh_process, fresh_task
from tinybench.result import BenchmarkResult

PEAK_METHOD = "VmHWM after a reset through clear_refs"


def read_status(proc: str | Path = "/proc") -> dict[str, int]:
    """Return what is resident now, and the high-water mark.

    Parameters
    ----------
    proc
        Where the proc file system is; ``self/status`` is read there.

    Returns
    -------
    dict of str to int
        ``VmRSS`` and ``VmHWM`` in bytes.

    Raises
    ------
    OSError
        If there is no such file, or it lacks one of the two lines: not Linux, or not all of it.
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
    """Set the high-water mark to what is resident now; `resource.getrusage` loses its maximum as well.

    Parameters
    ----------
    proc
        Where the proc file system is; ``self/clear_refs`` is written there.

    Raises
    ------
    OSError
        If the file is not there or may not be written.

    References
    ----------
    The manual page proc_pid_clear_refs(5).
    """
    Path(proc, "self", "clear_refs").write_text("5", encoding="utf-8")


def peak_added(call: Callable[[Any], Any], x: Any, proc: str | Path = "/proc") -> int:
    """Return by how much one call raises the resident memory at its highest moment.

    Parameters
    ----------
    call
        Function of one argument, called once.
    x
        Its argument.
    proc
        Where the proc file system is.

    Returns
    -------
    int
        Bytes, at least 0, in pages of usually 4 KiB. Whatever else the process does meanwhile is included.

    Raises
    ------
    OSError
        See `read_status` and `reset_peak`.
    """
    reset_peak(proc)
    before = read_status(proc)["VmRSS"]
    call(x)
    return max(0, read_status(proc)["VmHWM"] - before)


def python_peak(call: Callable[[Any], Any], x: Any) -> int:
    """Return the peak of Python's own allocations during one call, as tracemalloc sees it.

    Parameters
    ----------
    call
        Function of one argument, called once; several times slower than usual.
    x
        Its argument.

    Returns
    -------
    int
        Bytes above what was traced before. Memory of C libraries is not in it.
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


def free_heap() -> bool:
    """Collect garbage, and return the C heap's free pages to the system.

    Returns
    -------
    bool
        Whether the C library could: glibc can.
    """
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return False
    return True


@contextmanager
def young_heap() -> Iterator[None]:
    """Set aside what is there already, so that collecting garbage within the block costs almost nothing."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def without_arena(model: Any) -> tuple[Any, str]:
    """Return a model whose ONNX Runtime sessions keep no arena, and what was done.

    A session with an arena, given itself or as an attribute of `model`, is replaced by a twin from the same file or
    bytes; the model given stays as it is.

    Parameters
    ----------
    model
        Any model.

    Returns
    -------
    model
        The model or its twin.
    str
        ``"none"``; ``"off in a twin session"``; or ``"on, and hides memory"`` where a session cannot be built again.
    """
    parts = {"": model, **getattr(model, "__dict__", {})}
    sessions = {name: part for name, part in parts.items() if _has_arena(part)}
    if not sessions:
        return model, "none"
    try:
        twins = {name: _arena_free_twin(part) for name, part in sessions.items()}
    except Exception:  # a session from a source that is gone, or with custom operators
        return model, "on, and hides memory"
    if "" in twins:
        return twins[""], "off in a twin session"
    twin = copy.copy(model)
    twin.__dict__.update(twins)
    return twin, "off in a twin session"


def _has_arena(part: Any) -> bool:
    options = getattr(part, "get_session_options", None)
    return callable(options) and bool(getattr(options(), "enable_cpu_mem_arena", False))


def _arena_free_twin(session: Any) -> Any:
    options = session.get_session_options()  # the session's own object, so it is put back as it was
    options.enable_cpu_mem_arena = False
    try:
        return type(session)(session._model_path or session._model_bytes, options, providers=session.get_providers())
    finally:
        options.enable_cpu_mem_arena = True


def can_reset(proc: str | Path = "/proc") -> bool:
    """Whether this process can reset and read its high-water mark."""
    try:
        reset_peak(proc)
        read_status(proc)
    except OSError:
        return False
    return True


def resident_memory(proc: str | Path = "/proc") -> tuple[int, str]:
    """Return what is resident now, in bytes, and by which method: Linux's own word, on other systems psutil's."""
    try:
        return read_status(proc)["VmRSS"], "VmRSS"
    except OSError:
        return int(psutil.Process().memory_info().rss), "resident size (psutil)"


class _Pickler(cloudpickle.Pickler):
    """Takes functions and classes of a notebook or script by value, an ONNX Runtime session as its file or bytes."""

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
    """Return the peaks of first calls, each in a fresh process to which the model travels pickled.

    Raises
    ------
    TypeError
        If the model cannot be pickled.
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
    result.metadata |= {
        "first_call": result.values[0],
        "python_peak": python_peak(as_callable(model), x),
        "warmup_runs": 0,
        "heap_freed": False,
        "arena": "off in a twin session" if pickler.sessions else "none",
    }
    return result


def measure_memory(
    model: Any, inputs: Any, warmup_runs: int = 2, measurement_runs: int = 10, proc: str | Path = "/proc"
) -> BenchmarkResult:
    """Measure the peak resident memory that one inference adds, native allocations included.

    Parameters
    ----------
    model
        Anything that `as_callable` takes. An ONNX Runtime session with an arena is measured by a twin without one,
        see `without_arena`: a warm arena hides what an inference needs.
    inputs
        The input of one call.
    warmup_runs
        Calls before the measured ones, at least 0.
    measurement_runs
        Measured calls, at least 1.
    proc
        Where the proc file system is.

    Returns
    -------
    BenchmarkResult
        Bytes above what was resident before, one value for each run. The metadata says by which ``method``, holds the
        peak of the very ``first_call``, the peak of Python's own allocations (``python_peak``), whether the
        C heap was freed before each run (``heap_freed``), and what was done about an ``arena``.

    Raises
    ------
    ValueError
        If a number of runs is too small, or the input is empty.
    TypeError
        If this system keeps no high-water mark and the model cannot travel to a fresh process.
    """
    check_runs("warmup_runs", warmup_runs, 0)
    check_runs("measurement_runs", measurement_runs, 1)
    x = as_input(inputs)
    if not can_reset(proc):
        return in_fresh_processes(model, x, measurement_runs, proc)
    subject, arena = without_arena(model)
    call = as_callable(subject)
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
        "arena": arena,
    }
    return BenchmarkResult("memory", values, metadata, unit="B")


STAGES = ("import", "load", "first_call", "second_call", "steady")
_CHILD = """
import base64, builtins, json, pickle, sys
task = json.load(open(sys.argv[1]))
sys.path[:] = task["path"]
plain_import, depth, stages = builtins.__import__, 0, {}

def status():
    global source
    try:
        with open(task["proc"] + "/self/status") as file:
            fields = dict(line.split(":", 1) for line in file)
        source = "VmHWM"
        return [int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM")]
    except (OSError, KeyError):
        memory = plain_import("psutil").Process().memory_info()
    if hasattr(memory, "peak_wset"):  # Windows
        source = "the peak working set (psutil)"
        return [memory.rss, memory.peak_wset]
    resource = plain_import("resource")
    source = "the maximum resident size (getrusage)"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return [memory.rss, peak if sys.platform == "darwin" else peak * 1024]

def reset():
    try:
        with open(task["proc"] + "/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return False
    return True

status()
resettable = reset()

def begin(stage):
    global current, base, start
    current = stages.setdefault(stage, {"peak": 0, "retained": 0, "resident": 0})
    reset()
    base, start = status()

def end():
    resident, peak = status()
    # a mark that cannot be reset and did not rise was set by an earlier stage
    rise = peak - base if resettable or peak > start else resident - base
    current["peak"] = max(current["peak"], current["retained"] + rise)
    current["retained"] += resident - base
    current["resident"] = resident

def staged_import(*args, **kwargs):
    global depth
    depth += 1
    if depth == 1:
        end()
        begin("import")
    try:
        return plain_import(*args, **kwargs)
    finally:
        depth -= 1
        if depth == 0:
            end()
            begin("load")

def loads(text):
    return pickle.loads(base64.b64decode(text))

def run():
    begin("import")
    end()
    begin("load")
    builtins.__import__ = staged_import
    if task["source"]:
        space = {"__name__": "factory"}
        exec(task["source"], space)
        factory = space[task["name"]]
    else:
        factory = loads(task["factory"])
    model = factory(*loads(task["args"]))
    builtins.__import__ = plain_import
    end()
    from tinybench.latency import as_callable
    call, x = as_callable(model), loads(task["inputs"])
    for stage, calls in (("first_call", 1), ("second_call", 1), ("steady", task["steady_calls"])):
        begin(stage)
        for _ in range(calls):
            call(x)
        end()
    method = task["method"] if resettable else "growth of " + source
    return {"stages": stages, "method": method}

try:
    answer = run()
except Exception as error:
    answer = {"error": f"{type(error).__name__}: {error}"}
json.dump(answer, open(sys.argv[2], "w"))
"""


def run_fresh_stages(task: Mapping[str, Any]) -> dict[str, Any]:
    """Run the stages once in a fresh Python process.

    Parameters
    ----------
    task
        See `tinybench.latency.fresh_task`.

    Returns
    -------
    dict
        ``method``, and ``stages``: for each stage its ``peak``, ``retained`` and ``resident``, in bytes.

    Raises
    ------
    RuntimeError
        If the factory or the model failed there; the message has the error.
    """
    # a process begins with the ru_maxrss of the one that starts it, so a small one starts it
    small = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
    return fresh_process(_CHILD, {"proc": "/proc", "method": PEAK_METHOD, **task}, sys.executable, "-c", small)


def memory_stages(
    factory: Any,
    inputs: Any,
    repeats: int = 3,
    args: Sequence[Any] = (),
    steady_calls: int = 20,
    launch: Callable[[Mapping[str, Any]], Mapping[str, Any]] = run_fresh_stages,
) -> dict[str, BenchmarkResult]:
    """Measure what a model takes in a fresh process, stage by stage.

    Parameters
    ----------
    factory
        Loads and returns the model: a function, or ``"module:function"``; see `tinybench.latency.portable_factory`.
    inputs
        The input of each call.
    repeats
        Number of fresh processes.
    args
        Arguments for the factory, such as the path of the model; they must be picklable.
    steady_calls
        Calls after the second one.
    launch
        Runs the stages in one fresh process; see `run_fresh_stages`.

    Returns
    -------
    dict of str to BenchmarkResult
        ``import``, ``load``, ``first_call``, ``second_call`` and ``steady``: peak bytes above what was resident when
        the stage began, one value for each process. The metadata holds ``retained`` (bytes not given back by the stage)
        and ``resident`` (bytes of the whole process after it) of each process, and the ``method``.

    Raises
    ------
    TypeError
        If the factory cannot travel to a fresh process.
    ValueError
        If `repeats` or `steady_calls` is no whole number of at least 1, or the input is empty.
    RuntimeError
        If the factory or the model fails there.
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
    return results


def external_files(path: Path) -> list[Path]:
    """Return the files in which an ONNX model keeps weights outside of its own file.

    Needs the package ``onnx`` only if the file mentions such a location.
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
    """A file that only counts what is written to it."""

    def __init__(self) -> None:
        self.count = 0

    def write(self, data: Any) -> int:
        """Count the bytes, and forget them."""
        size = memoryview(data).nbytes
        self.count += size
        return size


def model_size(model_or_path: Any) -> int:
    """Return how many bytes a model takes on disk.

    Parameters
    ----------
    model_or_path
        A file (with an ONNX model's external weights), a folder (all files in it), an ONNX Runtime session (the file or
        bytes it came from), an ``onnx.ModelProto``, or any model that can be pickled.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    FileNotFoundError
        If the path does not exist.
    TypeError
        If a model cannot be pickled; save it and pass the path.
    """
    model = model_or_path
    if callable(getattr(model, "get_session_options", None)):
        model = getattr(model, "_model_path", None) or getattr(model, "_model_bytes", None) or model
    if isinstance(model, bytes):
        return len(model)
    if callable(getattr(model, "SerializeToString", None)):
        return len(model.SerializeToString())
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


def resident_growth(
    model: Any, inputs: Any, runs: int = 200, blocks: int = 10, warmup_runs: int = 20, proc: str | Path = "/proc"
) -> BenchmarkResult:
    """Measure by how much resident memory grows with each call: a leak check.

    Parameters
    ----------
    model
        Anything that `as_callable` takes.
    inputs
        The input of each call.
    runs
        Calls in all, a multiple of `blocks`.
    blocks
        How many rates to take, at least 2; their scatter gives the interval.
    warmup_runs
        Calls before, at least 0, in which caches and arenas may fill.
    proc
        Where the proc file system is; see `resident_memory`.

    Returns
    -------
    BenchmarkResult
        Bytes per call, one rate for each block: the mean is the slope, ``ci_lower`` and ``ci_upper`` its interval.
        ``metadata["growing"]`` says whether the whole interval lies above 0; ``metadata["resident"]`` holds what was
        resident before the first and after each block, ``metadata["calls_per_block"]`` how many calls a block has,
        ``metadata["method"]`` by which method it was read.
        Growth below one page (usually 4 KiB) in all runs is not seen.

    Raises
    ------
    ValueError
        If the numbers of runs and blocks do not fit.
    """
    check_runs("blocks", blocks, 2)
    check_runs("runs", runs, blocks)
    check_runs("warmup_runs", warmup_runs, 0)
    if runs % blocks:
        raise ValueError(f"{runs} runs do not divide into {blocks} equal blocks")
    call, x, calls = as_callable(model), as_input(inputs), runs // blocks
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
    result.metadata["method"] = resident_memory(proc)[1]
    return result


def max_concurrent(available: float, per_instance: float, shared: float = 0.0) -> int:
    """Return how many instances fit into memory.

    Parameters
    ----------
    available
        Memory there is, in bytes.
    per_instance
        What each instance takes at its peak, in bytes.
    shared
        What is paid once for all of them, in bytes.

    Returns
    -------
    int
        Whole instances, at least 0.

    Raises
    ------
    ValueError
        If `per_instance` is not positive, another is negative, or one is not finite.
    """
    for name, value in (("available", available), ("per_instance", per_instance), ("shared", shared)):
        if not math.isfinite(value) or value < 0 or (name == "per_instance" and value == 0):
            raise ValueError(f"{name} is {value}; give bytes, and an instance takes more than none")
    return max(0, math.floor((available - shared) / per_instance))


def memory_pressure(memory: float, throughput: float) -> float:
    """Return the working memory that inference turns over each second.

    Every byte an inference adds is written at least once, so this is a lower bound of its memory traffic; weights and
    whatever is read again come on top.

    Parameters
    ----------
    memory
        Peak memory that one inference adds, in bytes, as `measure_memory` gives it.
    throughput
        Inferences per second; of the same batch as `memory`.

    Returns
    -------
    float
        Bytes per second.

    Raises
    ------
    ValueError
        If one of them is negative or not finite.
    """
    for name, value in (("memory", memory), ("throughput", throughput)):
        if not math.isfinite(value) or value < 0:
            raise ValueError(f"{name} is {value}; it must be a number of at least 0")
    return memory * throughput

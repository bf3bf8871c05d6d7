"""The memory of a model in fresh processes: stage by stage, and the first call where there is no high-water mark."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cloudpickle

from tinybench.latency import as_callable, as_input, check_runs, describe_input
from tinybench.result import BenchmarkResult
from tinybench.support.footprint.memory_visibility import note_memory_seen
from tinybench.support.footprint.stages import STAGES, run_fresh_stages
from tinybench.support.rounds.fresh_processes import fresh_task


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


def memory_stages(
    factory: Any,
    inputs: Any,
    repeats: int = 3,
    args: Sequence[Any] = (),
    steady_calls: int = 20,
    launch: Callable[[Mapping[str, Any]], Mapping[str, Any]] = run_fresh_stages,
) -> dict[str, BenchmarkResult]:
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


def in_fresh_processes(
    model: Any, x: Any, runs: int, proc: str | Path, python_peak: Callable[[Any, Any], int]
) -> BenchmarkResult:
    """Return the memory peaks of a model's first call, measured once in each of `runs` fresh processes.

    The model is pickled and sent to these processes. `python_peak` measures Python's own allocations in one call of
    this process. Raises TypeError if the model cannot be pickled.
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

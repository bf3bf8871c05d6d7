"""The parts of a memory measurement that surround its calls: the call itself, tracing, and the metadata."""

from __future__ import annotations

import mmap
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tinybench.latency import as_callable, as_input, check_runs, describe_input
from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import number_of
from tinybench.support.footprint.freed_memory import WithoutArenas, free_heap
from tinybench.support.footprint.high_water_mark import resident_memory
from tinybench.support.footprint.memory_visibility import count_error, note_memory_seen, touched_memory
from tinybench.support.footprint.stages import PEAK_METHOD
from tinybench.support.rounds.checked_calls import fed_by_name, plain_call


def call_of(model: Any, inputs: Any) -> tuple[Callable[[Any], Any], Any]:
    """Return a model as a function of one argument, and that argument. For `inputs` see `measure_latency`."""
    x = as_input(inputs)
    by_name = isinstance(x, dict) and callable(getattr(model, "get_inputs", None))
    return plain_call(fed_by_name(model) if by_name else as_callable(model), x, None, None)


@contextmanager
def tracing() -> Iterator[None]:
    """Run the block with tracemalloc on. Tracing that was on before stays on, and tracing that was off is stopped."""
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        yield
    finally:
        if not was_tracing:
            tracemalloc.stop()


def peak_result(
    values: list[float],
    notes: Mapping[str, Any],
    call: WithoutArenas,
    x: Any,
    peak: Callable[[], int],
    proc: str | Path,
) -> BenchmarkResult:
    """Return the result of `measure_memory` from the peaks of the measured runs, in bytes.

    `peak` measures one more call. It replaces the runs in which a session without an arena was built, because building
    takes memory, too. `notes` holds ``first_call``, ``python_peak`` and ``warmup_runs``. The other metadata is added,
    such as whether arenas were used, and whether the memory was ``seen`` (detected).
    """
    measured = {"method": PEAK_METHOD, "native": True, "heap_freed": free_heap(), "arena": call.arena}
    values, metadata = list(values), {**describe_input(x), **measured, **notes}
    for number in sorted(set(call.late)):
        if number == 0:
            call.renew()
        free_heap()
        again, run = peak(), number - metadata["warmup_runs"]
        if number == 0:
            metadata["first_call"] = again
        if 0 <= run < len(values):
            values[run] = float(again)
    result = BenchmarkResult("memory", values, metadata, unit="B")
    note_memory_seen(result, metadata["first_call"], *touched_memory(call, x, proc))
    if psutil.Process().children():
        result.metadata |= {"at_most": None, "not_counted": "child processes"}
    return result


def checked_blocks(
    model: Any, inputs: Any, runs: int, blocks: int, warmup_runs: int
) -> tuple[Callable[[Any], Any], Any]:
    """Return a model as in `call_of`. Raise ValueError if the runs cannot be divided into equal blocks."""
    check_runs("blocks", blocks, 2)
    check_runs("runs", runs, blocks)
    check_runs("warmup_runs", warmup_runs, 0)
    if runs % blocks:
        raise ValueError(f"{number_of(runs, 'run')} cannot be divided into {blocks} equal blocks")
    return call_of(model, inputs)


def note_growth_seen(result: BenchmarkResult, x: Any, runs: int, warmup_runs: int, proc: str | Path) -> BenchmarkResult:
    """Note in the metadata how memory was read (``method``), its ``resolution``, and whether growth was ``seen``.

    The resolution is in bytes per call. Growth below it is not seen.
    """
    method = resident_memory(proc)[1]
    error = mmap.PAGESIZE if "smaps_rollup" in method else count_error()
    result.metadata |= {**describe_input(x), "calls_per_block": runs // result.count, "warmup_runs": warmup_runs}
    result.metadata |= {"method": method, "resolution": error / runs, "seen": abs(result.mean) * runs >= error}
    if not result.metadata["seen"]:
        result.metadata["caution"] = (
            f"no growth was seen: it is below {error / runs:.3g} B a call, in {number_of(runs, 'call')}"
        )
    return result

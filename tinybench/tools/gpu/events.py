"""How long a GPU works on a call, by events that the GPU itself stamps with its clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinybench.latency import as_callable, check_runs, describe_input, warm_up
from tinybench.result import BenchmarkResult


def gpu_latency(
    model: Any, inputs: Any, warmup_runs: int = 5, measurement_runs: int = 10, *, event: Callable[[], Any] | None = None
) -> BenchmarkResult:
    """Return the time in s from a call's first work on the GPU to its last, for each of several calls.

    An event is a mark in the stream of the GPU's work. The time between two events contains no wait of the host for the
    result, but it does contain gaps in which the GPU waits for the host to launch the next kernel. Use
    ``measure_latency(..., sync=torch.cuda.synchronize)`` for the time that a user waits.

    Parameters
    ----------
    model, inputs, warmup_runs, measurement_runs
        As in `tinybench.measure_latency`; the inputs should be in the GPU's memory.
    event
        A function that makes an event with ``record()``, ``synchronize()`` and ``elapsed_time(later)`` in ms. With
        None, events of PyTorch's current stream.

    Returns
    -------
    BenchmarkResult
        The metric is ``gpu_latency``.

    Raises
    ------
    ImportError, RuntimeError
        If `event` is None and PyTorch is missing or sees no GPU; if the events saw no work at all.
    """
    check_runs("measurement_runs", measurement_runs, 1)
    check_runs("warmup_runs", warmup_runs, 0)
    call, event = as_callable(model), event or torch_events()
    if warmup_runs:
        warm_up(lambda x: _seconds(call, x, event), inputs, min_calls=warmup_runs)
    values = [_seconds(call, inputs, event) for _ in range(measurement_runs)]
    if not max(values) > 0:
        raise RuntimeError("between the events the GPU did nothing: does the model run on the GPU, in this stream?")
    notes = {**describe_input(inputs), "warmup_runs": warmup_runs, "clock": "events of the GPU"}
    return BenchmarkResult("gpu_latency", values, notes, unit="s")


def _seconds(call: Callable[[Any], Any], inputs: Any, event: Callable[[], Any]) -> float:
    before, after = event(), event()
    before.record()
    call(inputs)
    after.record()
    after.synchronize()
    return float(before.elapsed_time(after)) / 1e3


def torch_events() -> Callable[[], Any]:
    """Return a function that makes PyTorch's events."""
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch sees no GPU; torch.cuda.is_available() is False")
    return lambda: torch.cuda.Event(enable_timing=True)

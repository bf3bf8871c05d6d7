"""ONNX Runtime's traces: recording one, the durations of its nodes, and the shares of operators as a table."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import facts


def kernel_events(
    events: Sequence[Mapping[str, Any]], skip_runs: int, too_few: float
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name of the node and the event for each kernel that started in run `skip_runs` or later.

    Runs are counted from 0. If the trace has too few runs, `too_few` is the first time that counts.
    """
    starts = sorted(event["ts"] for event in events if event.get("name") == "model_run")
    begin = starts[skip_runs] if skip_runs < len(starts) else too_few
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time") and event["ts"] >= begin:
            yield event["name"].removesuffix("_kernel_time"), event


def node_durations(events: Sequence[Mapping[str, Any]], skip_runs: int = 0) -> dict[tuple[str, str], list[float]]:
    """Return the durations of each node in µs, by the names of its operator and of the node.

    Raises ValueError if no node ran after the skipped runs.

    Parameters
    ----------
    events
        Events of an ONNX Runtime trace, in any order.
    skip_runs
        Number of runs to skip at the beginning. Nodes that start before run number `skip_runs` (counted from 0) are
        left out.
    """
    durations: dict[tuple[str, str], list[float]] = {}
    for node, event in kernel_events(events, skip_runs, too_few=math.inf if skip_runs else 0):
        durations.setdefault((event["args"]["op_name"], node), []).append(event["dur"])
    if not any(map(sum, durations.values())):
        raise ValueError(f"no operator ran after the first {number_of(skip_runs, 'run')}; record more runs")
    return durations


def record_trace(profiled: Callable[[Path], Any], X: Any, runs: int, kept: Path | None) -> list[dict[str, Any]]:
    """Run a model on X under the profiler, and return the events of its trace.

    Parameters
    ----------
    profiled
        A function that returns the model, from the beginning of the path of its trace.
    X, runs
        One batch, and the number of runs.
    kept
        Where to keep the trace; None to drop it.
    """
    with tempfile.TemporaryDirectory() as folder:
        model = profiled(Path(folder, "trace"))
        for _ in range(runs):
            model.forward(X)
        written = model.end_profiling()
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(written, kept)
        events: list[dict[str, Any]] = json.loads(written.read_text(encoding="utf-8"))
        return events


@dataclass(frozen=True)
class OperatorProfile:
    """The fraction of the time that each operator takes, the largest first. The profiler distorts absolute times."""

    shares: dict[str, float]
    batch_size: int
    runs: int
    trace: Path | None

    __repr__ = short_repr

    def __str__(self) -> str:
        """Return one line for each operator."""
        lines = [f"{name:28}{share:7.1%}" for name, share in self.shares.items()]
        return "\n".join([f"shares of operators, batch {self.batch_size}, {number_of(self.runs, 'run')}", *lines])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        caption = f"share of the operators' time, batch {self.batch_size}, {number_of(self.runs, 'run')}"
        table = facts({name: f"{share:.1%}" for name, share in self.shares.items()}, caption)
        return {"text/plain": str(self), "text/html": table.html()}

"""What every operator of an ONNX graph does, counted from the shapes of a run, and the wall at which it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.conditions.notes import machine_notes
from tinybench.graphs import load_graph
from tinybench.latency import timed_calls
from tinybench.onnx import OnnxModel
from tinybench.reprs import short_repr
from tinybench.result import BenchmarkResult
from tinybench.roofline.formulas import WHY_NOT, type_of, work_of
from tinybench.roofline.roofs import Roofs
from tinybench.roofline.traced_graph import (
    Traced,
    as_feeds,
    inferred_shapes,
    nodes_of,
    own_name,
    run_traced,
    stored_tensors,
)
from tinybench.table import Table

Wall = Callable[..., str]
DO = {
    "memory": "bytes are what it waits for: smaller weights, a larger batch, or operators fused into one help",
    "compute": "operations are what it waits for: a smaller layer, a faster type, or more cores help",
    "overhead": "neither is what it waits for: fewer and larger operators, or a larger batch help",
}


@dataclass(frozen=True)
class Counted:
    """What an operator does in one run.

    Attributes
    ----------
    name, op, dtype
        Its name in the graph that ran, its kind, and in which type it computed.
    flop, bytes
        Operations, and bytes moved at least; 0 where they are not known.
    working_set
        Bytes that pass through the caches between two of its runs: with stored weights those of the whole graph, else
        its own, which the operator before has just written.
    checked
        Whether ONNX infers the same shapes for what it returns; False where it infers none.
    why
        Why it was left out; "" if it was counted.
    """

    name: str
    op: str
    dtype: str
    flop: float = 0.0
    bytes: float = 0.0
    working_set: float = 0.0
    checked: bool = False
    why: str = ""
    __repr__ = short_repr

    @property
    def intensity(self) -> float:
        """Operations for each byte; 0 where nothing is moved."""
        return self.flop / self.bytes if self.bytes else 0.0


def counted(traced: Traced, source: Any) -> list[Counted]:
    """Return the work of every operator of a run; `source` is the graph before it was optimised."""
    nodes = nodes_of(traced)
    inferred = inferred_shapes(source, traced.inputs) | inferred_shapes(traced.graph, traced.inputs)
    stored = stored_tensors(traced.graph.graph)
    everything = {name: tensor for name, tensor in (stored | traced.inputs).items() if tensor.dtype != "string"}
    whole = sum(tensor.bytes for tensor in everything.values())
    whole += sum(tensor.bytes for node in nodes for tensor in node.outputs if tensor.dtype != "string")
    found = []
    for node, proto, title in zip(nodes, traced.graph.graph.node, traced.titles, strict=True):
        names = [name for name in proto.output if name]
        try:
            if len(node.outputs) != len(names) and node.op not in WHY_NOT:
                raise LookupError("its shapes are not in the trace")
            for name, tensor in zip(names, node.outputs, strict=False):
                if inferred.get(name, tensor.shape) != tensor.shape:
                    raise LookupError(f"the runtime made {tensor.shape} of {name!r}, and ONNX infers {inferred[name]}")
            flop, moved = work_of(node)
        except LookupError as error:
            found.append(Counted(title, node.op, type_of(node), why=str(error.args[0])))
            continue
        working_set = whole if any(name in stored and len(stored[name].shape) > 1 for name in proto.input) else moved
        checked = all(name in inferred for name in names)
        found.append(Counted(title, node.op, type_of(node), flop, moved, working_set, checked))
    return found


def count_work(model: OnnxModel | str | Path, X: Any) -> list[Counted]:
    """Return what each operator of a model does, in the graph that really ran, in its order.

    Shapes are those of the run, from the runtime's trace, and are checked against those that ONNX infers. What has no
    formula is left out, and says why.

    Parameters
    ----------
    model
        A loaded model, or the path of an ``.onnx`` file.
    X
        One batch: an array, or arrays by input.

    Raises
    ------
    ValueError
        If the batch does not fit the inputs.
    """
    traced = run_traced(model, X)
    return counted(traced, load_graph(model.path if isinstance(model, OnnxModel) else model))


@dataclass(frozen=True)
class Place:
    """An operator in the picture of the roofs.

    Attributes
    ----------
    work, seconds
        What it does, and in how many s: the lower quartile of its runs, as other programs only add to it.
    peak, bandwidth, level
        Operations/s and bytes/s of the roofs above it, and where its working set lies.
    wall
        ``"compute"``, ``"memory"`` or ``"overhead"``.
    """

    work: Counted
    seconds: float
    peak: float
    bandwidth: float
    level: str
    wall: str
    __repr__ = short_repr

    @property
    def rate(self) -> float:
        """Operations/s."""
        return self.work.flop / self.seconds

    @property
    def least(self) -> float:
        """Seconds that the roofs allow."""
        return max(self.work.flop / self.peak, self.work.bytes / self.bandwidth)

    @property
    def of_roof(self) -> float:
        """Which share of what the roofs allow it reaches."""
        return self.least / self.seconds


@dataclass(frozen=True)
class Placed:
    """All operators of a model, those that could not be placed, and its time with and without a trace."""

    places: list[Place]
    left_out: list[Counted]
    plain: BenchmarkResult
    traced: float
    left_out_seconds: float = 0.0
    __repr__ = short_repr

    @property
    def sentences(self) -> list[str]:
        """What to do, the wall with the most time first, and what to know of the times."""
        total = sum(place.seconds for place in self.places) + self.left_out_seconds
        by_wall: dict[str, float] = {}
        for place in self.places:
            by_wall[place.wall] = by_wall.get(place.wall, 0.0) + place.seconds
        told = [
            f"{wall}: {spent / total:.0%} of the operators' time; {DO[wall]}"
            for wall, spent in sorted(by_wall.items(), key=lambda item: -item[1])
        ]
        if self.left_out:
            names = "; ".join(dict.fromkeys(f"{each.op} ({each.why})" for each in self.left_out))
            told.append(f"left out, {self.left_out_seconds / total:.0%} of the time: {names}")
        if above := sum(place.of_roof > 1.1 for place in self.places):
            told.append(
                f"{above} of {len(self.places)} operators are more than a tenth faster than their roof: it was "
                "measured in a busier moment, or their bytes come from a nearer cache"
            )
        share = self.traced / quick(self.plain.values)
        told.append(
            f"the operators' times in the trace add up to {share:.2f} of the model's time without a trace; a "
            "trace counts whole µs and adds its own, so times of a few µs are too long"
        )
        return told

    def table(self) -> Table:
        """Return a row for each operator that does something."""
        total = sum(place.seconds for place in self.places) + self.left_out_seconds
        rows = [
            {
                "operator": place.work.op,
                "type": place.work.dtype,
                "time": f"{place.seconds * 1e6:.3g} µs",
                "share": f"{place.seconds / total:.0%}",
                "operations": f"{place.work.flop:,.0f}",
                "bytes": f"{place.work.bytes:,.0f}",
                "per byte": f"{place.work.intensity:.3g}",
                "10⁹ operations/s": f"{place.rate / 1e9:{',.0f' if place.rate >= 1e11 else '.3g'}}",
                "level": place.level,
                "of its roof": f"{place.of_roof:.0%}",
                "wall": place.wall,
            }
            for place in self.places
        ]
        return Table(rows, "Operators at the roofs of this machine")

    def __str__(self) -> str:
        """Return the table and the sentences."""
        return "\n\n".join([str(self.table()), *self.sentences])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        told = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)
        return {"text/plain": str(self), "text/html": self.table().html() + told}


def quick(times: Sequence[float]) -> float:
    """Return the lower quartile."""
    return float(np.quantile(times, 0.25))


def the_students_wall() -> Wall:
    """Return `tinybench.bottleneck.wall`, or say that it is still to be written."""
    try:
        from tinybench.bottleneck import wall
    except ImportError as error:
        raise ImportError("tinybench.bottleneck is not built yet: module 15 writes `wall`, which names it") from error
    return wall


def place(work: Counted, seconds: float, roofs: Roofs, wall: Wall) -> Place:
    """Return where an operator stands; LookupError where no roof is known for its type."""
    level, bandwidth = roofs.level(work.working_set), roofs.bandwidth(work.working_set)
    measured = roofs.peaks
    if " × " in work.dtype and work.dtype not in measured:
        raise LookupError(f"no product of {work.dtype} was measured")
    peak = roofs.peak(work.dtype if work.dtype in measured else "float32")
    if work.flop:
        found = wall(work, seconds, peak, bandwidth)
    else:  # bytes are all it has; those moved per second stand in for operations, under the bandwidth alone
        moved = Counted(work.name, work.op, work.dtype, work.bytes, work.bytes)
        found = wall(moved, seconds, float("inf"), bandwidth)
    return Place(work, seconds, peak, bandwidth, level, found)


def place_operators(
    model: OnnxModel | str | Path,
    X: Any,
    roofs: Roofs,
    *,
    runs: int = 30,
    warmup_runs: int = 5,
    wall: Wall | None = None,
) -> Placed:
    """Measure where each operator of a model stands under the roofs of this machine.

    Parameters
    ----------
    model, X
        See `count_work`.
    roofs
        See `tinybench.roofline.roofs.measure_roofs`.
    runs, warmup_runs
        Runs whose lower quartile counts, and runs before them.
    wall
        Names the wall of a work, its seconds, peak and bandwidth; by default the one of `tinybench.bottleneck`.
    """
    wall = wall or the_students_wall()
    model = model if isinstance(model, OnnxModel) else OnnxModel(model)
    traced = run_traced(model, X, runs, warmup_runs)
    feeds = as_feeds(model.session, X)
    timed_calls(lambda x: model.session.run(None, x), feeds, max(1, warmup_runs))
    untraced = timed_calls(lambda x: model.session.run(None, x), feeds, runs)
    plain = BenchmarkResult("latency", untraced, {"model": model.name, **machine_notes()}, unit="s")
    places, left_out, left_seconds, total = [], [], 0.0, 0.0
    for number, work in enumerate(counted(traced, load_graph(model.path))):
        times = [event["dur"] / 1e6 for event in traced.events.get(own_name(number), [])]
        seconds = max(quick(times), 5e-7) if times else 0.0  # below 1 µs the trace says 0
        total += seconds
        try:
            if work.why:
                raise LookupError(work.why)
            if work.bytes and seconds:
                places.append(place(work, seconds, roofs, wall))
        except LookupError as error:
            left_seconds += seconds
            left_out.append(Counted(work.name, work.op, work.dtype, why=str(error.args[0])))
    return Placed(places, left_out, plain, total, left_seconds)

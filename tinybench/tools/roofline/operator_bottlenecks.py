"""The bottleneck of each operator of an ONNX graph: its work and time compared with the roofs of this machine.

The roofs are the machine's maximum operations/s and bytes/s. The wall of an operator is what limits its speed:
arithmetic, memory traffic, or the fixed cost of a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.bottleneck import wall
from tinybench.latency import timed_calls
from tinybench.onnx import OnnxModel
from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import number_of, plural
from tinybench.support.basics.onnx_files import load_graph
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import Table
from tinybench.support.profiling.roofline_model import Work
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.tools.roofline.onnx_trace import as_feeds, own_name, run_traced
from tinybench.tools.roofline.operator_work import Counted, counted_operators
from tinybench.tools.roofline.roofs import Roofs

ADVICE = {
    "memory": "memory traffic is the limit; try smaller weights, a larger batch, or fused operators",
    "compute": "arithmetic is the limit; try a smaller layer, a faster type, or more cores",
    "overhead": "the fixed cost of each operator is the limit; try fewer and larger operators, or a larger batch",
}


@dataclass(frozen=True)
class Place:
    """An operator placed on the roofline.

    Attributes
    ----------
    work, seconds
        The operator's work, and its time in s. The time is the lower quartile over all runs, because other programs can
        only make a run slower.
    peak, bandwidth, level
        The maximum operations/s and bytes/s for this operator, and the memory level that holds its working set.
    wall
        What limits the operator: ``"compute"``, ``"memory"`` or ``"overhead"``.
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
        """The rate in operations/s that the operator reaches."""
        return self.work.flop / self.seconds

    @property
    def least(self) -> float:
        """The shortest time in s in which the roofs allow the operator to run."""
        return max(self.work.flop / self.peak, self.work.bytes / self.bandwidth)

    @property
    def of_roof(self) -> float:
        """The fraction of the roofs' limit that the operator reaches."""
        return self.least / self.seconds


@dataclass(frozen=True)
class Unplaced:
    """An operator that could not be placed on the roofline, with its time in s. `work.why` is the reason."""

    work: Counted
    seconds: float
    __repr__ = short_repr


@dataclass(frozen=True)
class Placed:
    """The operators of a model that were placed on the roofline, and the operators that could not be placed.

    `plain` holds the model's times without tracing, and `traced` the total time of all operators in the trace, in s.
    """

    places: list[Place]
    left_out: list[Unplaced]
    plain: BenchmarkResult
    traced: float
    __repr__ = short_repr

    @property
    def operators(self) -> list[Place | Unplaced]:
        """All operators: first the placed operators, then the operators that could not be placed."""
        return [*self.places, *self.left_out]

    @property
    def seconds(self) -> float:
        """The total time of all operators in s."""
        return sum(each.seconds for each in self.operators)

    @property
    def sentences(self) -> list[str]:
        """Advice for each wall, beginning with the wall that takes the most time, and cautions about the times."""
        total = self.seconds or 1.0
        by_wall: dict[str, float] = {}
        for place in self.places:
            by_wall[place.wall] = by_wall.get(place.wall, 0.0) + place.seconds
        told = [
            f"{wall}: {spent / total:.0%} of the operators' time; {ADVICE[wall]}"
            for wall, spent in sorted(by_wall.items(), key=lambda item: -item[1])
        ]
        if self.left_out:
            names = "; ".join(dict.fromkeys(f"{each.work.op} ({each.work.why})" for each in self.left_out))
            spent = sum(each.seconds for each in self.left_out)
            told.append(
                f"without a place under the roofs, {spent / total:.0%} of the time: {names}; the table has their times"
            )
        elif not self.places:
            told.append("no operator of this model computes or moves anything, so the table is empty")
        if above := sum(place.of_roof > 1.1 for place in self.places):
            told.append(
                f"{above} of {number_of(len(self.places), 'operator')} {plural(above, 'is', 'are')} more than a tenth "
                "faster than the roof. The roof was measured while the machine was busier, or their bytes come from a "
                "faster cache"
            )
        share = self.traced / quick(self.plain.values)
        told.append(
            f"the operators' times in the trace add up to {share:.2f} of the model's time without a trace; a "
            "trace rounds to whole µs and adds overhead, so times of a few µs are too long"
        )
        return told

    def table(self) -> Table:
        """Return a table with one row for each operator that computes or moves something.

        The operators that could not be placed come last.
        """
        rows = [_row(each, self.seconds or 1.0) for each in self.operators]
        return Table(rows, "Operators at the roofs of this machine" if self.places else "Times of the operators")

    def __str__(self) -> str:
        """Return the table of operators followed by the explanatory sentences."""
        return "\n\n".join([str(self.table()), *self.sentences])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        told = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)
        return {"text/plain": str(self), "text/html": self.table().html() + told}


def _row(each: Place | Unplaced, total: float) -> dict[str, str]:
    """Return the table row of an operator, with a dash for each unknown value."""
    work, known = each.work, each.work.bytes > 0
    row = {
        "operator": work.op,
        "type": work.dtype,
        "time": f"{each.seconds * 1e6:.3g} µs",
        "share": f"{each.seconds / total:.0%}",
        "operations": f"{work.flop:,.0f}" if known else "–",
        "bytes": f"{work.bytes:,.0f}" if known else "–",
        "per byte": f"{work.intensity:.3g}" if known else "–",
    }
    if isinstance(each, Unplaced):
        return row | dict.fromkeys(("10⁹ operations/s", "level", "of its roof", "wall"), "–")
    return row | {
        "10⁹ operations/s": f"{each.rate / 1e9:{',.0f' if each.rate >= 1e11 else '.3g'}}",
        "level": each.level,
        "of its roof": f"{each.of_roof:.0%}",
        "wall": each.wall,
    }


def quick(times: Sequence[float]) -> float:
    """Return the lower quartile of the times."""
    return float(np.quantile(times, 0.25))


def place(work: Counted, seconds: float, roofs: Roofs) -> Place:
    """Return the position of an operator on the roofline. Raise LookupError if no roof is known for its type."""
    level, bandwidth = roofs.level(work.working_set), roofs.bandwidth(work.working_set)
    measured = roofs.peaks
    if " × " in work.dtype and work.dtype not in measured:
        raise LookupError(f"no product of {work.dtype} was measured")
    peak = roofs.peak(work.dtype if work.dtype in measured else "float32")
    if work.flop:
        found = wall(Work(work.flop, work.bytes), seconds, peak, bandwidth)
    else:  # without operations, bytes are counted instead, and the bandwidth is the only roof
        found = wall(Work(work.bytes, work.bytes), seconds, float("inf"), bandwidth)
    return Place(work, seconds, peak, bandwidth, level, found)


def place_operators(
    model: OnnxModel | str | Path, X: Any, roofs: Roofs, *, runs: int = 30, warmup_runs: int = 5
) -> Placed:
    """Measure the operators of a model and compare each with the roofs of this machine.

    Parameters
    ----------
    model, X
        See `count_work`.
    roofs
        See `tinybench.tools.roofline.roofs.measure_roofs`.
    runs, warmup_runs
        The number of measured runs, of which the lower quartile counts, and the number of warm-up runs before them.
    """
    model = model if isinstance(model, OnnxModel) else OnnxModel(model)
    traced = run_traced(model, X, runs, warmup_runs)
    feeds = as_feeds(model.session, X)
    timed_calls(lambda x: model.session.run(None, x), feeds, max(1, warmup_runs))
    plain = BenchmarkResult(
        "latency",
        timed_calls(lambda x: model.session.run(None, x), feeds, runs),
        {"model": model.name, **machine_notes()},
        unit="s",
    )
    places, left_out, total = [], [], 0.0
    for number, work in enumerate(counted_operators(traced, load_graph(model.path))):
        times = [event["dur"] / 1e6 for event in traced.events.get(own_name(number), [])]
        seconds = max(quick(times), 5e-7) if times else 0.0  # the trace has 0 for times below 1 µs
        total += seconds
        try:
            if work.why:
                raise LookupError(work.why)
            if work.bytes and seconds:
                places.append(place(work, seconds, roofs))
        except LookupError as error:
            left_out.append(Unplaced(replace(work, why=str(error.args[0])), seconds))
    return Placed(places, left_out, plain, total)

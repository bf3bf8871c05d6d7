"""The roofline of a whole model: its rate at each batch size, and the predicted and measured gain from INT8.

The roofs of a machine are its maximum rates: operations/s for each type, and bytes/s for each size of working set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from tinybench.comparison import median_ratio
from tinybench.onnx import OnnxModel
from tinybench.result import BenchmarkResult
from tinybench.support.basics.table import Table
from tinybench.support.comparisons.ratio_words import gain_text
from tinybench.support.rounds.checked_calls import ONNX_DTYPES
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.tools.roofline.best_rates import ROUNDS, Probe, measure_rates
from tinybench.tools.roofline.matrix_products import TYPES
from tinybench.tools.roofline.operator_work import Counted, count_work
from tinybench.tools.roofline.roofs import Roofs, measure_roofs

BATCHES = tuple(2**power for power in range(11))


class BatchPoint(NamedTuple):
    """A model at one batch size: the operations and bytes of one call, and each round's rate in 10⁹ operations/s."""

    batch: int
    flop: float
    bytes: float
    rate: BenchmarkResult

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flop / self.bytes

    @property
    def seconds(self) -> list[float]:
        """The seconds that a call took in each round."""
        return [self.flop / rate / 1e9 for rate in self.rate.values]


def model_input(model: OnnxModel, batch: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return an array for each input of a model, by name: random floats, or zeros for integers.

    An axis without a fixed size gets the size `batch`.
    """
    rng, feeds = np.random.default_rng(seed), {}
    for node in model.session.get_inputs():
        if node.type not in ONNX_DTYPES or node.type == "tensor(string)":
            raise ValueError(f"input {node.name!r} is a {node.type}, for which no numbers can be drawn; pass your own")
        shape = [size if isinstance(size, int) else batch for size in node.shape]
        values = rng.uniform(size=shape) if "float" in node.type or "double" in node.type else np.zeros(shape)
        feeds[node.name] = values.astype(ONNX_DTYPES[node.type])
    return feeds


def roofs_for(model: OnnxModel, X: Any, seconds: float = 4.0) -> Roofs:
    """Measure the roofs for a model: with its number of threads, and for the types in which its operators ran.

    The roof for float32 is always measured.
    """
    ran = {each.dtype for each in count_work(model, X)} & set(TYPES)
    return measure_roofs(["float32", *sorted(ran - {"float32"})], seconds, model.threads, kinds=["read"])


def batch_walk(
    models: Mapping[str, OnnxModel],
    X: Any,
    batches: Sequence[int] = BATCHES,
    seconds: float = 3.0,
    rounds: int = ROUNDS,
) -> dict[str, list[BatchPoint]]:
    """Measure the rate in operations/s of whole calls, by model and batch size, in shuffled rounds.

    Parameters
    ----------
    models
        Loaded models with the same input, by name. All are measured under the same conditions.
    X
        Rows of input. They are repeated for batches that need more rows.
    batches
        The batch sizes.
    seconds, rounds
        The total seconds for all measurements, and the number of measurements of each model at each batch size.
    """
    rows = np.resize(np.asarray(X), (max(batches), *np.shape(X)[1:]))
    probes, work = [], []
    for name, model in models.items():
        for batch in batches:
            each = _known(count_work(model, rows[:batch]))
            work.append((name, batch, sum(c.flop for c in each), sum(c.bytes for c in each)))
            probes.append(Probe(_call(model, rows[:batch].copy()), work[-1][2]))
    rates = measure_rates(probes, seconds, rounds)
    notes, walks = machine_notes(), {name: list[BatchPoint]() for name in models}
    for (name, batch, flop, moved), values in zip(work, rates, strict=True):
        result = BenchmarkResult("rate", values, {"model": name, "batch_size": batch, **notes}, unit="10⁹ operations/s")
        walks[name].append(BatchPoint(batch, flop, moved, result))
    return walks


def _call(model: OnnxModel, rows: np.ndarray) -> Any:
    return lambda: model.forward(rows)


def _known(each: Sequence[Counted]) -> list[Counted]:
    known = [counted for counted in each if not counted.why]
    if not any(counted.flop for counted in known):
        raise ValueError(f"no operator of this model can be counted: {', '.join(f'{c.op} ({c.why})' for c in each)}")
    return known


def least_seconds(work: Sequence[Counted], roofs: Roofs) -> float:
    """Return the shortest time in s in which the roofs allow all counted operators to run one after another."""
    total = 0.0
    for each in _known(work):
        peak = roofs.peak(each.dtype if " × " in each.dtype or each.dtype in roofs.peaks else "float32")
        total += max(each.flop / peak, each.bytes / roofs.bandwidth(each.working_set))
    return total


@dataclass(frozen=True)
class Gain:
    """The speed-up of the second of two models over the first at one batch size: predicted by the roofs, and measured.

    Attributes
    ----------
    batch, predicted
        The batch size, and the predicted speed-up: the ratio of the shortest times that the roofs allow.
    measured, interval
        The median of the measured speed-ups of all rounds, and its interval.
    shares
        For each model, the shortest time that the roofs allow as a fraction of its measured time. The measured speed-up
        is about the predicted speed-up times the second fraction, divided by the first.
    """

    batch: int
    predicted: float
    measured: float
    interval: tuple[float, float]
    shares: tuple[float, float]


def int8_gains(
    walks: Mapping[str, Sequence[BatchPoint]], models: Mapping[str, OnnxModel], X: Any, roofs: Roofs
) -> list[Gain]:
    """Return the speed-up of the second model over the first at each batch size, predicted and measured."""
    (first, a), (second, b) = models.items()
    found = []
    for slow, fast in zip(walks[first], walks[second], strict=True):
        rows = np.resize(np.asarray(X), (slow.batch, *np.shape(X)[1:]))
        least = [least_seconds(count_work(model, rows), roofs) for model in (a, b)]
        ratio, low, high = median_ratio(slow.seconds, fast.seconds)
        shares = (least[0] / median(slow.seconds), least[1] / median(fast.seconds))
        found.append(Gain(slow.batch, least[0] / least[1], ratio, (low, high), shares))
    return found


def gains_table(gains: Sequence[Gain], caption: str = "Times faster than FP32") -> Table:
    """Return a table of predicted and measured speed-ups.

    The table also shows the fraction of the roofs' limit that each model reaches.
    """
    rows = [
        {
            "batch": str(gain.batch),
            "by the roofs": f"{gain.predicted:.2f}",
            "measured (95 % CI)": gain_text(gain.measured, gain.interval),
            "FP32 of its roofs": f"{gain.shares[0]:.0%}",
            "INT8 of its roofs": f"{gain.shares[1]:.0%}",
        }
        for gain in gains
    ]
    return Table(rows, caption)

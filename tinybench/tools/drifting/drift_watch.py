"""Drift detection that compares every row with a reference and is valid at any time.

The detectors bet on conformal p-values: each p-value is the relative rank of a new value among the reference and all
earlier values. If the values are independent and there is no drift, the p-values are uniform, and no bet is expected to
win.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinybench.tools.drifting.capital import BLOCK, Capital
from tinybench.tools.drifting.new_rows import Batch, NewRows
from tinybench.tools.drifting.reference import Feature, Reference


def bets(p: np.ndarray) -> np.ndarray:
    """Return the factors by which each p-value multiplies the stakes of all bets.

    The factor of a bet is a function of p whose mean from 0 to 1 is 1, so without drift no bet is expected to win.

    Slopes win if the values become larger or smaller. Powers win if values leave the range of the reference upward or
    downward. Parabolas win if the spread of the values grows or shrinks.
    """
    p = np.clip(p, 1e-9, 1 - 1e-9)
    slopes = [1 + slope * (p - 0.5) for slope in (-1.8, -0.9, 0.9, 1.8)]
    powers = [power * q ** (power - 1) for power in (0.2, 0.5) for q in (p, 1 - p)]
    parabolas = [1 + bend * (12 * (p - 0.5) ** 2 - 1) for bend in (-0.45, 0.8)]
    return np.stack([*slopes, *powers, *parabolas], axis=-1)


BETS = bets(np.zeros(1)).shape[1]
SHOWN = 3  # number of features that are named


class Ranks:
    """Counts of values by feature and bin, which include the reference and all later values."""

    def __init__(self, features: Sequence[np.ndarray], rng: np.random.Generator) -> None:
        self.width, self.rng = max(len(counts) for counts in features), rng
        self.counts = np.array([np.pad(counts, (0, self.width - len(counts))) for counts in features])
        self.total = int(self.counts[0].sum())

    def p_values(self, bins: np.ndarray) -> np.ndarray:
        """Return the conformal p-values of n rows, given the bin of each value (n × features).

        Each value is ranked among itself and all earlier values of its feature, as in
        `tinybench.support.basics.conformal.conformal_p`. Values in the same bin are ties, whose order is random. If the
        rows are independent and have the same distribution as the reference, the p-values of each feature are uniform
        and independent.
        """
        n, features = bins.shape
        columns = np.arange(features)
        upward = self.counts[:, ::-1].cumsum(axis=1)[:, ::-1]
        equal, at_least = self.counts[columns, bins], upward[columns, bins]
        earlier = np.tri(n, k=-1, dtype=bool)[:, :, None]
        larger = at_least - equal + ((bins[None] > bins[:, None]) & earlier).sum(axis=1)
        ties = equal + ((bins[None] == bins[:, None]) & earlier).sum(axis=1) + 1
        all_so_far = self.total + np.arange(1, n + 1)[:, None]
        np.add.at(self.counts, (np.broadcast_to(columns, bins.shape), bins), 1)
        self.total += n
        return np.asarray((larger + self.rng.random(bins.shape) * ties) / all_so_far)


class Stream:
    """A drift test of the columns of a table of bins against reference counts.

    In each column, a bettor bets against "no drift" (see `Capital`). The evidence is the mean capital of all bettors.
    """

    def __init__(self, counts: Sequence[np.ndarray], level: float, rng: np.random.Generator) -> None:
        self.ranks, self.capital, self.level = Ranks(counts, rng), Capital(len(counts), BETS), level
        self.first: int | None = None  # number of the row that raised the alarm, counted from 1

    @property
    def evidence(self) -> float:
        """The e-value against "nothing has changed"."""
        return float(self.capital.evidence.mean())

    @property
    def alarm(self) -> bool:
        """Whether the evidence has ever reached 1 / level."""
        return self.first is not None

    def add(self, bins: np.ndarray, numbers: np.ndarray) -> bool:
        """Process the bins of the rows with these numbers (n × columns). Return True if the alarm is on."""
        for begin in range(0, len(bins), BLOCK):
            path = self.capital.add(bets(self.ranks.p_values(bins[begin : begin + BLOCK]))).mean(axis=1)
            over = np.flatnonzero(path >= 1 / self.level)
            if self.first is None and len(over):
                self.first = int(numbers[begin + over[0]])
        return self.alarm


class DriftWatch:
    """A drift detector for a model's inputs and, if the reference has predicted labels, for its predictions.

    The alarms can be read after any number of rows. If nothing has changed since the reference, the probability that
    the alarm for inputs is ever raised is at most `level`. The same holds for the alarm for predictions.

    This holds exactly if the rows that count are independent, and nearly if they are nearly independent. So not every
    row counts (see `NewRows`). For that, either the order of the reference's rows must show how rows of the stream
    depend on one another, or each row must come with its user. Otherwise, false alarms may be frequent.

    Parameters
    ----------
    reference
        The reference, created from rows in the order of their arrival.
    level
        The allowed probability of a false alarm.
    seed
        Seed of the order of ties and of the choice of rows.

    Attributes
    ----------
    streams
        A `Stream` for ``"inputs"`` and one for ``"predictions"``, each with ``evidence``, ``alarm`` and ``first``.
    """

    def __init__(self, reference: Reference, level: float = 0.05, seed: int = 0) -> None:
        if not 0 < level < 1:
            raise ValueError(f"level is {level}; it lies between 0 and 1")
        self.new_rows, rng = NewRows(reference, seed), np.random.default_rng(seed)
        self.inputs: Sequence[Feature] = reference.inputs
        self.streams = {"inputs": Stream([feature.counts for feature in self.inputs], level, rng)}
        if reference.labels:
            self.streams["predictions"] = Stream([np.array(list(reference.labels.values()))], level, rng)

    def add(self, rows: Any, outputs: Any = None, users: Sequence[str | None] | None = None) -> bool:
        """Add rows and, if given, the model's outputs and the user for each. Return True if any alarm is on."""
        return self.compare(self.new_rows.batch(rows, outputs, users))

    def compare(self, batch: Batch) -> bool:
        """Compare rows that count with the reference. Return True if any alarm is on."""
        self.streams["inputs"].add(batch.bins, batch.numbers)
        if "predictions" in self.streams:
            self.streams["predictions"].add(batch.places, batch.numbers)
        return self.alarm

    @property
    def alarm(self) -> bool:
        """Whether any alarm is on."""
        return any(stream.alarm for stream in self.streams.values())

    @property
    def evidence(self) -> dict[str, float]:
        """The e-value of each stream."""
        return {name: stream.evidence for name, stream in self.streams.items()}

    @property
    def alarms(self) -> dict[str, bool]:
        """Whether the alarm of each stream is on."""
        return {name: stream.alarm for name, stream in self.streams.items()}

    @property
    def features(self) -> dict[str, float]:
        """The names of the features with the strongest evidence of drift, the strongest first, and the e-values."""
        evidence = self.streams["inputs"].capital.evidence
        return {self.inputs[i].name: float(evidence[i]) for i in np.argsort(evidence)[::-1][:SHOWN]}

"""Every row against the reference, valid at any time: conformal p values, and bets on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinybench.tools.drifting.capital import BLOCK, Capital
from tinybench.tools.drifting.reference import Feature, Reference, labels_of


def bets(p: np.ndarray) -> np.ndarray:
    """Return the factors of all bets at p values: functions of mean 1 over the numbers from 0 to 1.

    Slopes win where values become larger or smaller; the powers where they leave the reference upward or downward;
    the parabolas where they spread or shrink.
    """
    p = np.clip(p, 1e-9, 1 - 1e-9)
    slopes = [1 + slope * (p - 0.5) for slope in (-1.8, -0.9, 0.9, 1.8)]
    powers = [power * q ** (power - 1) for power in (0.2, 0.5) for q in (p, 1 - p)]
    parabolas = [1 + bend * (12 * (p - 0.5) ** 2 - 1) for bend in (-0.45, 0.8)]
    return np.stack([*slopes, *powers, *parabolas], axis=-1)


BETS = bets(np.zeros(1)).shape[1]


class Ranks:
    """How many values of each feature lie in each bin, the reference's and all that came since."""

    def __init__(self, features: Sequence[np.ndarray], rng: np.random.Generator) -> None:
        self.width, self.rng = max(len(counts) for counts in features), rng
        self.counts = np.array([np.pad(counts, (0, self.width - len(counts))) for counts in features])
        self.total = int(self.counts[0].sum())

    def p_values(self, bins: np.ndarray) -> np.ndarray:
        """Return the p value of each of n × features bins among all before it and itself, as `conformal_p` does.

        Ties, which are values in the same bin, are drawn. Where the values come from where the reference's do, the
        p values of a feature are uniform and independent.
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
    """Columns of bins against their counts; the evidence of all together is the mean of the columns' capitals."""

    def __init__(self, counts: Sequence[np.ndarray], level: float, rng: np.random.Generator) -> None:
        self.ranks, self.capital, self.level = Ranks(counts, rng), Capital(len(counts), BETS), level
        self.first: int | None = None  # the value at which the alarm went on

    @property
    def evidence(self) -> float:
        """An e value of "nothing has changed"."""
        return float(self.capital.evidence.mean())

    @property
    def alarm(self) -> bool:
        """Whether the evidence has ever reached 1 / level."""
        return self.first is not None

    def add(self, bins: np.ndarray) -> bool:
        """Take in n × columns bins; return whether the alarm is on."""
        for begin in range(0, len(bins), BLOCK):
            before = self.capital.n
            path = self.capital.add(bets(self.ranks.p_values(bins[begin : begin + BLOCK]))).mean(axis=1)
            over = np.flatnonzero(path >= 1 / self.level)
            if self.first is None and len(over):
                self.first = before + int(over[0]) + 1
        return self.alarm


class DriftWatch:
    """Watches inputs and, where the reference has them, predictions; may be asked at any time.

    Where rows come from where the reference's do, in any order, the alarm about inputs is ever on with a probability of
    at most `level`, and so is that about predictions.

    Attributes
    ----------
    streams
        By ``"inputs"`` and ``"predictions"``, a `Stream` with ``evidence``, ``alarm`` and ``first``.
    """

    def __init__(self, reference: Reference, level: float = 0.05, seed: int = 0) -> None:
        if not 0 < level < 1:
            raise ValueError(f"level is {level}; it lies between 0 and 1")
        self.reference, rng = reference, np.random.default_rng(seed)
        self.features: Sequence[Feature] = reference.inputs
        self.streams = {"inputs": Stream([feature.counts for feature in self.features], level, rng)}
        if reference.labels:
            self.streams["predictions"] = Stream([np.array(list(reference.labels.values()))], level, rng)

    def add(self, rows: Any, outputs: Any = None) -> bool:
        """Take in rows, and what the model answered to them; return whether any alarm is on."""
        self.streams["inputs"].add(self.reference.bins(rows))
        if outputs is not None and "predictions" in self.streams:
            self.streams["predictions"].add(self.reference.places(labels_of(outputs)))
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

    def worst(self, most: int = 3) -> list[tuple[str, float]]:
        """Return the features with the most evidence, and how much."""
        evidence = self.streams["inputs"].capital.evidence
        return [(self.features[i].name, float(evidence[i])) for i in np.argsort(evidence)[::-1][:most]]

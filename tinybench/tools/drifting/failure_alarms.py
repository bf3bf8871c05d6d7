"""Alarms for failure rates, valid at any time: disagreement between two versions, and accuracy by late labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from tinybench.tools.drifting.capital import Capital

ODDS = np.array([1.2, 1.5, 2.0, 4.0, 10.0, 40.0, 200.0])  # each bet's odds of a failure over the allowed odds


class RateAlarm:
    """Evidence that failures are more frequent than allowed, whenever the increase began.

    Each value multiplies the stake of a bet by a likelihood ratio: the value's probability at the bet's failure rate,
    divided by that at the allowed rate. If each value is a failure with a probability of at most `allowed`, given all
    earlier values, `alarm` is ever raised with a probability of at most `level`.

    Parameters
    ----------
    allowed
        The largest acceptable share of failures, between 0 and 1, both excluded.

    Attributes
    ----------
    total, bad
        The number of values, and the number of failures among them.
    alarm
        Whether the evidence has ever reached 1 / level.
    """

    def __init__(self, allowed: float, level: float = 0.05) -> None:
        for name, value in (("allowed", allowed), ("level", level)):
            if not 0 < value < 1:
                raise ValueError(f"{name} is {value}; it lies between 0 and 1")
        self.allowed, self.level = allowed, level
        shares = ODDS * allowed / (1 - allowed + ODDS * allowed)
        self._factors = np.array([(1 - shares) / (1 - allowed), shares / allowed])
        self._capital = Capital(1, len(ODDS))
        self.total, self.bad, self.alarm = 0, 0, False

    @property
    def evidence(self) -> float:
        """The capital, which is an e-value: 1 at first, small if failures are rare."""
        return float(self._capital.evidence[0])

    def add(self, failed: bool | Iterable[bool]) -> bool:
        """Add one outcome or several, True for a failure. Return True if the alarm is on.

        Raise ValueError for an outcome that is neither True nor False.
        """
        seen = np.atleast_1d(np.asarray(failed if isinstance(failed, bool | np.ndarray) else list(failed)))
        if not np.isin(seen, (0, 1)).all():
            raise ValueError(f"{seen[~np.isin(seen, (0, 1))][0]} is not a failure or a success; give True or False")
        values = seen.astype(int)
        self.total, self.bad = self.total + len(values), self.bad + int(values.sum())
        path = self._capital.add(self._factors[values][:, None, :])
        self.alarm = self.alarm or bool((path >= 1 / self.level).any())
        return self.alarm


class Parity(RateAlarm):
    """Evidence that two versions disagree on the same requests more often than allowed.

    Parameters
    ----------
    allowed
        The acceptable share of rows on which the versions disagree.
    tolerance
        Labels agree if they are equal. Numbers agree if they differ by at most this.
    """

    def __init__(self, allowed: float = 0.01, level: float = 0.05, tolerance: float = 1e-3) -> None:
        super().__init__(allowed, level)
        self.tolerance = tolerance

    def compare(self, old: Any, new: Any) -> bool:
        """Compare the outputs of both versions for the same rows, one output a row. Return True if the alarm is on.

        If shapes or kinds differ, every row counts as a disagreement. NaN disagrees with everything.
        """
        return self.add(disagreements(old, new, self.tolerance))


def disagreements(old: Any, new: Any, tolerance: float = 1e-3) -> np.ndarray:
    """Return for each row whether two versions disagree on its label or its number.

    A row of several numbers holds scores. Two such rows agree if their largest scores have the same index.
    """
    a, b = (_array(outputs) for outputs in (old, new))
    if a is None or b is None or a.shape != b.shape or (a.dtype.kind in "US") != (b.dtype.kind in "US"):
        return np.ones(max(len(old), len(new)), dtype=bool)
    if a.dtype.kind in "US" or not a.size:
        return np.asarray((a != b).reshape(len(a), -1).any(axis=1))
    a, b = (array.reshape(len(array), -1).astype(float) for array in (a, b))
    if a.shape[1] > 1:
        broken = ~(np.isfinite(a) & np.isfinite(b)).all(axis=1)
        return np.asarray((a.argmax(axis=1) != b.argmax(axis=1)) | broken)
    return np.asarray(~(np.abs(a - b) <= tolerance)[:, 0])


def _array(outputs: Any) -> np.ndarray | None:
    """Return outputs as an array of numbers or text, or None for other outputs, such as rows of different lengths."""
    try:
        array = np.asarray(outputs)
    except ValueError:
        return None
    return array if array.dtype.kind in "fiubUS" else None


class LabelsSeen(NamedTuple):
    """Running counts of correct and wrong predictions.

    Attributes
    ----------
    labelled, right
        The number of predictions whose label has arrived, and of correct ones among them.
    waiting, overdue
        The number of predictions without a label, and of those among them that have waited longer than `patience`.
    lowest, highest
        Bounds of the accuracy: the share of correct predictions if every missing label shows an error, or if none does.
    evidence, alarm
        The e-value and the alarm, from the labels that have arrived. A missing label counts neither as right nor as
        wrong.
    verdict
        ``"wrong too often"``, ``"labels are missing"`` (some are overdue), ``"no labels yet"`` or ``"no alarm"``.
    """

    labelled: int
    right: int
    waiting: int
    overdue: int
    lowest: float
    highest: float
    evidence: float
    alarm: bool
    verdict: str


class Labels:
    """The accuracy of a model, measured by labels that may arrive late, in any order, twice, or never.

    Parameters
    ----------
    least
        The lowest acceptable accuracy.
    patience
        Seconds after which a label is overdue.
    clock
        A function that returns seconds and never goes back, such as `time.monotonic`.
    most
        The largest number of predictions to keep without a label. Beyond it, the oldest predictions are dropped and
        always count as overdue.
    """

    def __init__(
        self, least: float, patience: float, clock: Callable[[], float], level: float = 0.05, most: int = 1_000_000
    ) -> None:
        self.wrong, self.patience, self.clock, self.most = RateAlarm(1 - least, level), patience, clock, most
        self._waiting: dict[Hashable, tuple[Any, float]] = {}
        self.given_up = self.unknown = 0

    def predicted(self, key: Hashable, label: Any) -> None:
        """Record the model's answer to a request."""
        if key in self._waiting:
            raise ValueError(f"request {key!r} was answered before; each needs a key of its own")
        self._waiting[key] = label, self.clock()
        if len(self._waiting) > self.most:
            del self._waiting[next(iter(self._waiting))]
            self.given_up += 1

    def came(self, key: Hashable, label: Any) -> bool:
        """Record a true label. Return True if the alarm is on.

        A label without a waiting prediction is only counted in `unknown`. Such a label came before, came too late, or
        belongs to a request that was never recorded.
        """
        if key not in self._waiting:
            self.unknown += 1
            return self.wrong.alarm
        answered, _ = self._waiting.pop(key)
        return self.wrong.add(bool(answered != label))

    def seen(self) -> LabelsSeen:
        """Return the current counts, the bounds of the accuracy and the verdict."""
        now, labelled = self.clock(), self.wrong.total
        right, waiting = labelled - self.wrong.bad, len(self._waiting) + self.given_up
        overdue = self.given_up
        for _, since in self._waiting.values():  # oldest first
            if now - since <= self.patience:
                break
            overdue += 1
        total = max(1, labelled + waiting)
        alarm = self.wrong.alarm
        quiet = "labels are missing" if overdue else "no alarm" if labelled else "no labels yet"
        ends = (right / total, (right + waiting) / total) if labelled + waiting else (0.0, 1.0)
        verdict = "wrong too often" if alarm else quiet
        return LabelsSeen(labelled, right, waiting, overdue, *ends, self.wrong.evidence, alarm, verdict)

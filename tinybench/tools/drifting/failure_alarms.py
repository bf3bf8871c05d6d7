"""Alarms about a share of failures, valid however often one looks: parity in shadow, and labels that come late."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from tinybench.tools.drifting.capital import Capital

ODDS = np.array([1.2, 1.5, 2.0, 4.0, 10.0, 40.0, 200.0])  # how many times more than allowed the bets expect


class RateAlarm:
    """Evidence that failures are more frequent than allowed, whenever that began.

    Each value multiplies the stake of a bet by how much likelier it is at the bet's share than at the allowed one. If
    each value is a failure with a probability of at most `allowed`, given all before it, `alarm` is ever on with a
    probability of at most `level`.

    Parameters
    ----------
    allowed
        Largest share of failures that is all right, between 0 and 1 without the ends.

    Attributes
    ----------
    total, bad
        How many values there were, and how many of them failures.
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
        """The capital, an e value: 1 at first, small where failures are rare."""
        return float(self._capital.evidence[0])

    def add(self, failed: bool | Iterable[bool]) -> bool:
        """Add the outcome of one value or of several, True for a failure. Return whether the alarm is on.

        ValueError for what is neither True nor False.
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
    """Do two versions answer the same requests alike? Evidence that they disagree more often than allowed.

    Parameters
    ----------
    allowed
        Share of rows in which they may disagree.
    tolerance
        Labels are alike if they are equal, numbers if no two differ by more than this.
    """

    def __init__(self, allowed: float = 0.01, level: float = 0.05, tolerance: float = 1e-3) -> None:
        super().__init__(allowed, level)
        self.tolerance = tolerance

    def compare(self, old: Any, new: Any) -> bool:
        """Take in what both answered to the same rows, one output a row; return whether the alarm is on.

        Where shapes or kinds differ, each row disagrees; so does NaN with everything.
        """
        return self.add(disagreements(old, new, self.tolerance))


def disagreements(old: Any, new: Any, tolerance: float = 1e-3) -> np.ndarray:
    """Return in which rows two versions disagree: by the label with the most score, else by the numbers.

    Rows of several numbers are scores: they agree if their largest stand at the same place.
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
    """Return outputs as an array of numbers or of text; None for what is neither, such as rows of several lengths."""
    try:
        array = np.asarray(outputs)
    except ValueError:
        return None
    return array if array.dtype.kind in "fiubUS" else None


class LabelsSeen(NamedTuple):
    """What labels say by now.

    Attributes
    ----------
    labelled, right
        How many predictions have their label, and how many of them are right.
    waiting, overdue
        How many wait for theirs, and how many of these for longer than `patience`.
    lowest, highest
        Share of right ones among all, if every missing label were one against the model, or for it.
    evidence, alarm
        Of the labels that came alone: a missing label is neither right nor wrong.
    verdict
        ``"wrong too often"``; ``"labels are missing"`` where some are overdue; ``"no labels yet"``; ``"no alarm"``.
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
    """Accuracy by labels that come late, in any order, twice, or never.

    Parameters
    ----------
    least
        Accuracy that is all right.
    patience
        Seconds after which a label is overdue.
    clock
        Seconds, never going back: `time.monotonic`.
    most
        Predictions that are kept waiting; the oldest give way, and count as overdue for good.
    """

    def __init__(
        self, least: float, patience: float, clock: Callable[[], float], level: float = 0.05, most: int = 1_000_000
    ) -> None:
        self.wrong, self.patience, self.clock, self.most = RateAlarm(1 - least, level), patience, clock, most
        self._waiting: dict[Hashable, tuple[Any, float]] = {}
        self.given_up = self.unknown = 0

    def predicted(self, key: Hashable, label: Any) -> None:
        """Note what the model answered to a request."""
        if key in self._waiting:
            raise ValueError(f"request {key!r} was answered before; each needs a key of its own")
        self._waiting[key] = label, self.clock()
        if len(self._waiting) > self.most:
            del self._waiting[next(iter(self._waiting))]
            self.given_up += 1

    def came(self, key: Hashable, label: Any) -> bool:
        """Note a true label, and return whether the alarm is on.

        One that nobody waits for (it came before, or too late, or is of no request of ours) is counted in `unknown`.
        """
        if key not in self._waiting:
            self.unknown += 1
            return self.wrong.alarm
        answered, _ = self._waiting.pop(key)
        return self.wrong.add(bool(answered != label))

    def seen(self) -> LabelsSeen:
        """Return what is known by now."""
        now, labelled = self.clock(), self.wrong.total
        right, waiting = labelled - self.wrong.bad, len(self._waiting) + self.given_up
        overdue = self.given_up
        for _, since in self._waiting.values():  # in the order of time
            if now - since <= self.patience:
                break
            overdue += 1
        total = max(1, labelled + waiting)
        alarm = self.wrong.alarm
        quiet = "labels are missing" if overdue else "no alarm" if labelled else "no labels yet"
        ends = (right / total, (right + waiting) / total) if labelled + waiting else (0.0, 1.0)
        verdict = "wrong too often" if alarm else quiet
        return LabelsSeen(labelled, right, waiting, overdue, *ends, self.wrong.evidence, alarm, verdict)

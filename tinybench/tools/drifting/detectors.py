"""Drift detectors that `tinybench serve --reference` can run.

Other packages add detectors through the entry-point group ``tinybench.detectors``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from tinybench.support.basics.plugins import find_entry
from tinybench.tools.drifting.drift_watch import DriftWatch
from tinybench.tools.drifting.reference import Reference

__all__ = ["DETECTORS", "Detector", "make_detector"]


class Detector(Protocol):
    """A detector of drift, made from a reference and the false-alarm rate that it may have as long as it runs.

    What it watches has names, such as ``"inputs"`` and ``"predictions"``, which `tinybench serve` shows on /metrics.
    """

    @property
    def evidence(self) -> Mapping[str, float]:
        """The evidence of drift by name, as an e-value: the alarm belongs at 1 / level.

        It should change with the rows: `tinybench watch` reports a value that stands still as a detector that stopped.
        """

    @property
    def alarms(self) -> Mapping[str, bool]:
        """Whether drift was ever detected, by name. An alarm that is on stays on."""

    def add(self, rows: np.ndarray, outputs: Sequence[str], /) -> bool:
        """Process rows of shape (n, features) and the label that the model predicted for each row.

        Return True if any alarm is on.
        """


DETECTORS: dict[str, Callable[[Reference, float], Detector]] = {"conformal": DriftWatch}


def make_detector(name: str, reference: Reference, level: float) -> Detector:
    """Return a new detector by its name. If the name is unknown, raise ValueError."""
    return find_entry("tinybench.detectors", DETECTORS, name)(reference, level)

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
    """A drift detector, created from a reference and the false-alarm rate that is allowed."""

    @property
    def evidence(self) -> Mapping[str, float]:
        """The evidence of drift in each watched stream, by the name of the stream, such as ``"inputs"``."""

    @property
    def alarms(self) -> Mapping[str, bool]:
        """Whether the alarm of each watched stream is on, by the name of the stream."""

    def add(self, rows: np.ndarray, outputs: Sequence[str], /) -> bool:
        """Process rows of shape (n, features) and the label that the model predicted for each row.

        Return True if any alarm is on.
        """


DETECTORS: dict[str, Callable[[Reference, float], Detector]] = {"conformal": DriftWatch}


def make_detector(name: str, reference: Reference, level: float) -> Detector:
    """Return a new detector by its name. If the name is unknown, raise ValueError."""
    return find_entry("tinybench.detectors", DETECTORS, name)(reference, level)

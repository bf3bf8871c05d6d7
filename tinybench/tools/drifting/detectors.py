"""Detectors that `tinybench serve --reference` can run.

Other packages add detectors through the group ``tinybench.detectors`` of entry points.
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
    """A detector of drift, made from a reference and the false-alarm rate that it may have."""

    @property
    def evidence(self) -> Mapping[str, float]:
        """The evidence of drift by what is watched, such as ``"inputs"``."""

    @property
    def alarms(self) -> Mapping[str, bool]:
        """Whether the alarm is on, by what is watched."""

    def add(self, rows: np.ndarray, outputs: Sequence[str], /) -> bool:
        """Process rows, of shape (n, features), and the label that the model gave to each; return any alarm."""


DETECTORS: dict[str, Callable[[Reference, float], Detector]] = {"conformal": DriftWatch}


def make_detector(name: str, reference: Reference, level: float) -> Detector:
    """Return a new detector; ValueError if the name is unknown."""
    return find_entry("tinybench.detectors", DETECTORS, name)(reference, level)

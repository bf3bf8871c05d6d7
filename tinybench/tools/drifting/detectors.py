"""Drift detectors that `tinybench serve --reference` can run.

Other packages add detectors through the entry-point group ``tinybench.detectors``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from tinybench.support.basics.plugins import find_entry
from tinybench.tools.drifting.drift_watch import DriftWatch
from tinybench.tools.drifting.new_rows import Batch
from tinybench.tools.drifting.reference import Reference

__all__ = ["DETECTORS", "Detector", "make_detector"]


class Detector(Protocol):
    """A detector of drift, created from a reference and `level`, the allowed probability of a false alarm.

    The probability is that of at least one false alarm of a test, however long it runs. A detector can run several
    tests. Each has a name, such as ``"inputs"``, which `tinybench serve` shows on /metrics.
    """

    @property
    def evidence(self) -> Mapping[str, float]:
        """The evidence of drift by name of the test. It is an e-value, so the alarm is raised at 1 / level.

        The value should change with every row that counts. If it stays the same, `tinybench watch` reports that the
        detector has stopped.
        """

    @property
    def alarms(self) -> Mapping[str, bool]:
        """Whether drift was ever detected, by name of the test. An alarm that is on stays on."""

    @property
    def features(self) -> Mapping[str, float]:
        """The features that moved most, and the evidence of each. Empty if the detector does not tell them apart."""

    def compare(self, batch: Batch, /) -> bool:
        """Compare rows that count with the reference. Return True if any alarm is on.

        The server chooses these rows, so they are nearly independent.
        """


DETECTORS: dict[str, Callable[[Reference, float], Detector]] = {"conformal": DriftWatch}


def make_detector(name: str, reference: Reference, level: float) -> Detector:
    """Return a new detector by its name. If the name is unknown, raise ValueError."""
    return find_entry("tinybench.detectors", DETECTORS, name)(reference, level)

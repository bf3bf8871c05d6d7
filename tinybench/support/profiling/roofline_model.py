"""The roofline: the work of an operator, and the operations/s that a machine allows at its intensity."""

from __future__ import annotations

from typing import NamedTuple

from tinybench.support.basics.arguments import check_least, check_positive


class Work(NamedTuple):
    """The number of operations on floats or integers, and the least number of bytes that are read and written."""

    flop: float
    bytes: float

    @property
    def intensity(self) -> float:
        """The number of operations per byte."""
        return self.flop / self.bytes


def attainable(intensity: float, peak: float, bandwidth: float) -> float:
    """Return the attainable performance, in operations/s, at an intensity in operations/byte.

    `peak` is in operations/s, and `bandwidth` in bytes/s.
    """
    check_least(intensity=intensity)
    check_positive(bandwidth=bandwidth)
    if not peak > 0:
        raise ValueError(f"peak is {peak}; give operations/s above 0, or infinity if arithmetic is not a limit")
    return min(peak, intensity * bandwidth)

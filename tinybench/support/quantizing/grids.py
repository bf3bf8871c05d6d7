"""Quantisation grids, and which tensors can be put on one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tinybench.support.basics.short_reprs import short_repr


@dataclass(frozen=True)
class QuantParams:
    """A quantisation grid, which states which real number each integer stands for.

    Attributes
    ----------
    scale : numpy.ndarray
        Step of the grid; of shape () for one scale, else of a shape that broadcasts against the tensor.
    zero_point : numpy.ndarray
        The integer that stands for 0, int64, of the same shape.
    bits : int
        Width of the integers.
    signed : bool
        Whether the integers are signed and symmetric around 0. Otherwise they start at 0.
    """

    scale: np.ndarray
    zero_point: np.ndarray
    bits: int = 8
    signed: bool = False

    __repr__ = short_repr

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest integer of the grid."""
        return (1 - 2 ** (self.bits - 1), 2 ** (self.bits - 1) - 1) if self.signed else (0, 2**self.bits - 1)


def check_tensor(x: Any, bits: int = 8) -> np.ndarray:
    """Return a tensor as float64. Raise ValueError if it cannot be quantised."""
    tensor = np.asarray(x, np.float64)
    if not tensor.size or not np.isfinite(tensor).all():
        raise ValueError("the tensor is empty, or holds NaN or infinite values: there is no range to put on a grid")
    if not 2 <= bits <= 16:
        raise ValueError(f"bits is {bits}; a grid has 2 to 16 bits")
    return tensor

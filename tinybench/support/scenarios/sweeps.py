"""The latency and throughput of batches of several sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tinybench.latency import measure_latency
from tinybench.result import BenchmarkResult
from tinybench.support.basics.arguments import check_positive


def batch_sweep(
    call: Callable[[np.ndarray], Any], rows: np.ndarray, sizes: Sequence[int] = (1, 2, 4, 8, 16, 32, 64), **how: Any
) -> dict[int, BenchmarkResult]:
    """Return the latency of batches of each size. The options `how` are passed to `measure_latency`."""
    return {size: measure_latency(call, np.resize(rows, (size, *rows.shape[1:])), **how) for size in sizes}


def throughput(sweep: Mapping[int, BenchmarkResult]) -> dict[int, float]:
    """Return the rows per second at each batch size of a `batch_sweep`. Raise ValueError if a median is 0."""
    check_positive(**{f"the median at batch size {size}": result.median for size, result in sweep.items()})
    return {size: size / result.median for size, result in sweep.items()}

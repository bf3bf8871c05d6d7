"""The choice among batch sizes: the sizes that are valid, and how certain the chosen rate is."""

from __future__ import annotations

from collections.abc import Mapping

from tinybench.result import BenchmarkResult, percentile_interval


def check_batches(latencies: Mapping[int, BenchmarkResult]) -> None:
    """Raise ValueError without any batch size, for a size that is not a positive whole number, or a time of 0.

    True does not count as a number, although it is an int in Python.
    """
    if not latencies:
        raise ValueError("no batch size; pass some, such as batch_sizes=(1, 8, 64)")
    for size, result in latencies.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"batch size {size!r} is not a positive whole number")
        if result.min_val <= 0:
            raise ValueError(
                f"a call of batch size {size} took {result.min_val} s by this clock; time more calls at once"
            )


def confidence_of_choice(rates: Mapping[int, list[float]], best: int, confidence: float = 0.95) -> float:
    """Return the confidence at which to compute the interval of the best rate.

    The confidence is raised because the best rate was chosen from the same measurements.

    Every rate whose interval reaches up to the interval of the best rate might have been chosen instead. Bonferroni's
    correction is applied for the number of these rates, so that the interval still holds.
    """

    def ends(values: list[float]) -> tuple[float, float]:
        try:
            return percentile_interval(values, 50, confidence)
        except ValueError:  # too few for an interval
            return float("-inf"), float("inf")

    lowest = ends(rates[best])[0]
    rivals = sum(ends(values)[1] >= lowest for values in rates.values())
    return 1 - (1 - confidence) / rivals

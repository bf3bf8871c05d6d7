"""Checks of numbers that a caller passes. Each error names the argument, its value, and a valid value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tinybench.support.basics.numbers import number_of, plural


def check_positive(**values: float) -> None:
    """Raise ValueError for the first named value that is not a finite number above 0."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value}; give a finite number above 0")


def check_least(least: float = 0.0, **values: float) -> None:
    """Raise ValueError for the first named value that is not a finite number of at least `least`."""
    for name, value in values.items():
        if not (math.isfinite(value) and value >= least):
            raise ValueError(f"{name} is {value}; give a finite number of at least {least:g}")


def check_share(**values: float) -> None:
    """Raise ValueError for the first named value that does not lie between 0 and 1, both excluded."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} is {value}; it must lie between 0 and 1, both excluded")


def check_confidence(confidence: float) -> None:
    """Raise ValueError unless 0 < `confidence` ≤ 1. An interval with confidence 1 is unbounded."""
    if not 0 < confidence <= 1:
        raise ValueError(f"confidence is {confidence}; it must lie between 0 and 1, such as 0.95")


def check_numbers(least: int = 1, **samples: Sequence[float] | np.ndarray) -> None:
    """Raise ValueError for the first named sample with fewer than `least` values, or a value that is not finite."""
    for name, values in samples.items():
        if len(values) < least:
            found, verb = number_of(len(values), "value"), plural(least, "is", "are")
            raise ValueError(f"{name} has {found}; at least {least} {verb} needed: measure more")
        finite = np.isfinite(np.asarray(values, dtype=float))
        if not finite.all():
            index = int(np.argmin(finite))
            raise ValueError(f"{name}[{index}] is {values[index]}; drop or repeat that measurement")


def check_counts(**histograms: Sequence[float]) -> None:
    """Raise ValueError for the first named histogram that is empty or has a negative or non-finite count."""
    for name, counts in histograms.items():
        if len(counts) == 0:
            raise ValueError(f"{name} has no bins; give the count of each bin")
        fine = [math.isfinite(count) and count >= 0 for count in counts]
        if not all(fine):
            index = fine.index(False)
            raise ValueError(f"{name}[{index}] is {counts[index]}; a count is a finite number of at least 0")
        if not any(counts):
            raise ValueError(f"{name} has only counts of 0; an empty histogram cannot be compared")


def check_buckets(q: float, bounds: Sequence[float], counts: Sequence[float]) -> None:
    """Raise ValueError unless `q` is a quantile, and the bounds and cumulative counts form a valid histogram."""
    if not 0 <= q <= 1:
        raise ValueError(f"q is {q}; a quantile is a number from 0 to 1 (p95 is 0.95)")
    if len(bounds) < 2 or len(bounds) != len(counts):
        raise ValueError(
            f"{number_of(len(bounds), 'bound')} and {number_of(len(counts), 'count')}; "
            f"give one count for each of two bounds or more"
        )
    if not (all(b < c for b, c in pairwise([0.0, *bounds])) and bounds[-1] == math.inf):
        raise ValueError(f"bounds are {list(bounds)}; they must increase from above 0, and the last one is infinite")
    check_least(**{f"counts[{i}]": count for i, count in enumerate(counts)})
    for i, (before, after) in enumerate(pairwise(counts), 1):
        if after < before * (1 - 1e-9):
            raise ValueError(
                f"counts[{i}] is {after}, after {before}: counts are cumulative; add up those of all lower buckets"
            )


def check_pairs(least: int = 1, **samples: Sequence[float] | np.ndarray) -> None:
    """Raise ValueError under the same conditions as `check_numbers`, or if the samples have different lengths."""
    check_numbers(least, **samples)
    if len({len(values) for values in samples.values()}) > 1:
        counts = " and ".join(str(len(values)) for values in samples.values())
        raise ValueError(f"{counts} values do not pair; measure both in the same rounds")


def check_percentile(q: float) -> None:
    """Raise ValueError unless `q` is a percentile between 0 and 100, both excluded."""
    if not 0 < q < 100:
        raise ValueError(f"q is {q}; a percentile lies between 0 and 100, both excluded (p95 is 95)")


def check_serial(n: float, serial: float) -> None:
    """Raise ValueError unless `n`, the worker count, is at least 1 and `serial`, a fraction, is from 0 to 1."""
    check_least(1, n=n)
    if not 0 <= serial <= 1:
        raise ValueError(f"serial is {serial}; the share that runs on one worker is a number from 0 to 1")

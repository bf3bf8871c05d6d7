"""Measured numbers as text: readable units, intervals, and deviations; and metadata that JSON can store."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinybench.support.basics.numbers import with_digits

_PREFIXES = {"s": "nµm", "B": "kMGT", "J": "nµm", "W": "nµm", "Hz": "kMG"}
_POWERS = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def scale_unit(size: float, unit: str) -> tuple[float, str]:
    """Return a divisor for `size`, and the resulting unit. They are chosen so that the quotient is easy to read.

    For 0.0123 s, the result is ``(0.001, "ms")``.
    """
    choices = sorted([(1.0, ""), *((_POWERS[prefix], prefix) for prefix in _PREFIXES.get(unit, ""))])
    fitting = [choice for choice in choices if abs(size) >= choice[0]]
    factor, prefix = (1.0, "") if size == 0 else fitting[-1] if fitting else choices[0]
    return factor, prefix + unit


def json_safe(value: Any, where: str = "metadata") -> Any:
    """Return a value in a form that JSON can store. NumPy values become numbers and lists.

    Raises ValueError if a part of the value has no such form. The message gives the position of that part; `where` is
    the name of the whole value.
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): json_safe(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"{where} is {value!r}, which JSON cannot hold; use numbers, text, lists and dictionaries")


def no_scatter(count: int, unit: str) -> str:
    """Return a caution for a result that has only one value, or only equal values."""
    constant = unit in ("", "B")  # fractions and sizes can be constants
    if count == 1:
        enough = "which is enough for a constant, such as the size of a file, and for nothing else"
        return f"one value says nothing about scatter, {enough if constant else 'measure at least 6 times'}"
    cause = "they are a constant, or their counter is" if constant else "the clock or counter is"
    cure = "" if constant else "; put more calls into one measurement"
    return f"all {count} values are equal: {cause} too coarse to show scatter{cure}"


def is_interval(low: float, high: float) -> bool:
    """Return whether two ends form an interval: both are finite, and they differ by more than rounding errors."""
    return math.isfinite(high - low) and high - low > 1e-12 * max(abs(low), abs(high))


def format_interval(middle: float, low: float, high: float, unit: str, named: str) -> str:
    """Return ``"12.1 ms (95 % CI 11.9–12.4)"``, with as many digits as the width of the interval justifies.

    If both ends are equal, as for one value or with a coarse clock, there is no interval, and only the number and its
    unit are returned.
    """
    factor, name = scale_unit(middle or max(abs(low), abs(high)), unit)
    middle, low, high = middle / factor, low / factor, high / factor
    if not is_interval(low, high):
        return f"{middle:.{4 if abs(middle) < 1e4 else 15}g} {name}".rstrip()
    shown, lower, upper = (with_digits(value, high - low) for value in (middle, low, high))
    ends = f"{lower}{' to ' if lower.startswith('−') else '–'}{upper}"
    return f"{f'{shown} {name}'.rstrip()} ({named} {ends})"


def format_measurement(mean: float, std: float, unit: str) -> str:
    """Return ``"12.3 ± 0.8 ms"`` for a mean of 0.0123 s and a deviation of 0.0008 s; units as in `scale_unit`.

    The deviation has one significant digit, or two if it begins with a 1. It is never rounded to the left of the
    decimal point (``"123 ± 55 B"``). The mean is rounded to the same decimal place. A deviation of 0 comes from one
    value, or from equal values, and does not show any scatter. In this case return only the mean, formatted by ``.4g``:
    ``"1.5 s"``.
    """
    factor, name = scale_unit(mean or std, unit)
    mean, std = mean / factor, std / factor
    if std == 0:
        return f"{mean:.4g} {name}".rstrip()
    place = math.floor(math.log10(std))
    decimals = max(0, -place + (1 if std < 2 * 10**place else 0))
    return f"{mean:.{decimals}f} ± {std:.{decimals}f} {name}".rstrip()

# Written by "autograder export" from modules/01_result/01_result.ipynb: edit the notebook, not this file.

"""A benchmark result: every measurement of one metric of one model, and how far its summary can be trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from tinybench.support.basics.dependence import batch_means
from tinybench.support.basics.result_report import ResultReport
from tinybench.support.basics.result_text import json_safe
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.type_checks import check_kinds


def check_values(values: Iterable[Any]) -> list[float]:
    """Return the measurements as a list of finite floats, in the same order.

    Raises ValueError if there are no measurements, or if a measurement is not a finite number. The message then
    contains the index of the first such measurement. Booleans and text do not count as numbers.
    """
    values = list(values)
    if not values:
        raise ValueError("values is empty; a result needs at least one measurement")
    checked = []
    for index, value in enumerate(values):
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            raise ValueError(f"values[{index}] is {value!r}, not a number")
        if not math.isfinite(value):
            raise ValueError(f"values[{index}] is {value}; drop or repeat that measurement")
        checked.append(float(value))
    return checked


def mean_and_std(values: list[float]) -> tuple[float, float]:
    """Return the mean and the standard deviation (with the divisor n − 1) of one or more finite numbers.

    A single number does not show any scatter, so its standard deviation is 0.0 by convention. The checks of the course
    also accept NaN.
    """
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return mean, 0.0
    # the corrected two-pass algorithm: Chan, Golub, LeVeque, The American Statistician 37 (1983)
    residuals = [value - mean for value in values]
    # the second term removes the error that the rounding of the mean adds to the first
    squares = math.fsum(r * r for r in residuals) - math.fsum(residuals) ** 2 / n
    return mean, math.sqrt(max(0.0, squares) / (n - 1))


def t_interval(values: list[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return Student's t interval for the mean of some values, as ``(lower, upper)``.

    The values are assumed to be independent. `confidence` is the coverage, between 0 and 1. A single value has no
    interval, so both ends are then that value, by convention. The checks of the course also accept NaN for both ends.
    """
    from scipy.special import stdtrit

    n = len(values)
    mean, std = mean_and_std(values)
    if n == 1:
        return mean, mean
    half_width = float(stdtrit(n - 1, 0.5 + confidence / 2)) * std / math.sqrt(n)
    return mean - half_width, mean + half_width


def required_runs(std: float, half_width: float, confidence: float = 0.95) -> int:
    """Return the smallest number of runs for which the t interval of the mean is no wider than ± `half_width`.

    The number is at least 2.

    Parameters
    ----------
    std, half_width
        Standard deviation of single measurements, estimated from a pilot run; the half-width to reach, in the same
        unit.
    confidence
        Coverage of the interval.

    Raises
    ------
    ValueError
        If `std` is negative, `half_width` is not positive, or `confidence` is not between 0 and 1.
    """
    from scipy.special import ndtri, stdtrit

    if not (math.isfinite(std) and std >= 0):
        raise ValueError(f"std is {std}; a standard deviation is a number ≥ 0")
    if not (math.isfinite(half_width) and half_width > 0):
        raise ValueError(f"half_width is {half_width}; it must be positive, no number of runs reaches 0")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must lie between 0 and 1, such as 0.95")
    probability = 0.5 + confidence / 2
    runs = max(2, math.ceil((float(ndtri(probability)) * std / half_width) ** 2))
    while float(stdtrit(runs - 1, probability)) * std / math.sqrt(runs) > half_width:
        runs += 1
    return runs


def runs_for_percentile(q: float, confidence: float = 0.95) -> int:
    """Return the smallest number of measurements from which a two-sided interval for the q-th percentile exists.

    At a confidence of 95 %, the number is 6 for the median, 36 for p90, 368 for p99 and 3688 for p99.9. Raises
    ValueError unless 1 ≤ `q` < 100 and 0 < `confidence` < 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must lie between 0 and 1, such as 0.95")
    if not 1 <= q < 100:
        raise ValueError(f"q is {q}; a percentile with an interval lies from 1 to below 100 (p95 is 95, not 0.95)")
    # the probability that no measurement lies beyond the percentile is at most (1 - confidence) / 2
    return math.ceil(math.log((1 - confidence) / 2) / math.log(max(q, 100 - q) / 100))


def percentile_interval(values: list[float], q: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval for the q-th percentile that is valid for any distribution, from order statistics.

    Both ends are measured values. The percentile lies below the lower end with a probability of at most half of 1 −
    `confidence`, and above the upper end with a probability of at most the other half. Raises ValueError if there are
    too few values. The message contains the number of values needed. David, Nagaraja, "Order Statistics" (2003),
    section 7.1.
    """
    from scipy.special import bdtr, bdtrc

    n, needed = len(values), runs_for_percentile(q, confidence)
    if n < needed:
        raise ValueError(f"a {confidence:.0%} interval for percentile {q:g} takes at least {needed} values, got {n}")
    ordered, tail, below = sorted(values), (1 - confidence) / 2, np.arange(n)
    lower = int(np.sum(bdtr(below, n, q / 100) <= tail)) - 1
    upper = n - int(np.sum(bdtrc(below, n, q / 100) <= tail))
    return ordered[lower], ordered[upper]


def bootstrap_interval(
    values: list[float],
    statistic: Callable[[np.ndarray], float],
    confidence: float = 0.95,
    seed: int | None = 0,
    resamples: int = 2000,
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a statistic.

    `statistic` is any function of a one-dimensional array, such as ``np.median``.

    The same seed gives the same interval. If all resamples give the same number, as for a single value, the scatter is
    unknown and the interval is (NaN, NaN). Efron, Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13.
    """
    rng = np.random.default_rng(seed)
    data = np.asarray(values)
    replicas = [float(statistic(data[rng.integers(len(data), size=len(data))])) for _ in range(resamples)]
    tail = 100 * (1 - confidence) / 2
    lower, upper = np.percentile(replicas, [tail, 100 - tail])
    return (float(lower), float(upper)) if min(replicas) < max(replicas) else (math.nan, math.nan)


def tukey_outliers(values: list[float]) -> list[float]:
    """Return the values more than 1.5 interquartile ranges below the first or above the third quartile, in their order.

    Quartiles are interpolated linearly, as in NumPy. Tukey, "Exploratory Data Analysis" (1977), chapter 2.
    """
    first, third = np.percentile(values, [25, 75])
    reach = 1.5 * (third - first)
    return [value for value in values if value < first - reach or value > third + reach]


@dataclass
class BenchmarkResult(ResultReport):
    """All measurements of one metric of one model, with their summary.

    Parameters
    ----------
    metric_name
        What was measured, such as ``"latency"``.
    values
        The measurements, one or more finite numbers in `unit`.
    metadata
        How the values were obtained: any data that JSON can store. ``metadata["measured"]`` is False for an estimate.
    unit
        SI unit of the values: ``"s"``, ``"B"``, ``"J"``, ``"W"``, or ``""`` for a fraction.
    confidence
        Coverage of the intervals.

    Attributes
    ----------
    mean, std, median, min_val, max_val : float
        Summary in `unit`; `std` has the divisor n − 1. For one value, `std` is 0.0 by convention, which carries no
        information.
    count : int
        Number of measurements.
    ci_lower, ci_upper : float
        Student's t interval for the mean. For one value, both ends equal the mean, by the same convention.
    dependence : dict
        The autocorrelation of the values, the effective number of independent values, and the number of batches.
    scattered : bool
        Whether at least two values differ. If not, neither a deviation nor an interval is known.
    cautions : list of str
        Sentences on why the values or intervals may mislead, for example because equal values show no scatter.

    Raises
    ------
    ValueError
        If a value is not a finite number (the message has its index), `metadata` cannot be written as JSON, or
        `confidence` is not between 0 and 1.

    Examples
    --------
    >>> nine = [0.0119, 0.0121, 0.0250, 0.0120, 0.0123, 0.0118, 0.0124, 0.0120, 0.0122]
    >>> print(BenchmarkResult("latency", nine, unit="s"))
    latency: median 12.1 ms (95 % CI 11.9–12.4), n = 9
    >>> print(f"{BenchmarkResult('latency', [0.0115, 0.0123, 0.0131], unit='s'):sd}")
    latency: 12.3 ± 0.8 ms (mean ± sd), n = 3, too few for an interval
    """

    metric_name: str
    values: list[float]
    metadata: dict[str, Any] = field(default_factory=dict)
    unit: str = ""
    confidence: float = 0.95
    mean: float = field(init=False)
    std: float = field(init=False)
    median: float = field(init=False)
    min_val: float = field(init=False)
    max_val: float = field(init=False)
    count: int = field(init=False)
    ci_lower: float = field(init=False)
    ci_upper: float = field(init=False)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Check the input and compute the summary."""
        kinds = {
            "metric_name": "str",
            "unit": "str",
            "values": "Iterable[Any]",
            "metadata": "Mapping[str, Any]",
            "confidence": "float",
        }
        check_kinds(kinds, {name: getattr(self, name) for name in kinds})
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence is {self.confidence}; it must lie between 0 and 1, such as 0.95")
        self.metadata = json_safe(dict(self.metadata))
        self.values = list(check_values(self.values))
        self.count = len(self.values)
        self.mean, self.std = mean_and_std(self.values)
        self.median = float(np.median(self.values))
        self.min_val, self.max_val = min(self.values), max(self.values)
        self.ci_lower, self.ci_upper = t_interval(self.values, self.confidence)
        # For one value these are a convention that other code relies on. They carry no information, see `undetermined`.
        if self.count == 1:
            self.std, self.ci_lower, self.ci_upper = 0.0, self.mean, self.mean

    @property
    def runs_for_median(self) -> int:
        """The smallest number of values that give an interval of the median."""
        return runs_for_percentile(50, self.confidence)

    def mean_ci(self) -> tuple[float, float]:
        """Return the t interval for the mean. If the values are autocorrelated, it is computed from means of batches.

        Raise ValueError if there is only one value or all values are equal, because their scatter is then unknown.
        """
        if not self.scattered:
            found = "one value" if self.count == 1 else f"{self.count} equal values"
            raise ValueError(f"{found} cannot tell how far the mean may be off; measure more often, or more finely")
        length = self.count // len(self.independent_values)
        return t_interval(batch_means(self.values, length), self.confidence)

    def outliers(self) -> list[float]:
        """Return the outliers by Tukey's rule; see `tukey_outliers`."""
        return tukey_outliers(self.values)

    @property
    def cv(self) -> float:
        """The coefficient of variation, std / abs(mean), or NaN if the mean is 0."""
        return self.std / abs(self.mean) if self.mean else math.nan

    def percentile(self, q: float) -> float:
        """Return the q-th percentile, interpolated linearly. Raise ValueError unless `q` is 0 or from 1 to 100."""
        if not (q == 0 or 1 <= q <= 100):
            raise ValueError(f"q is {q}; a percentile is 0, or from 1 to 100 (p95 is 95, not 0.95)")
        return float(np.percentile(self.values, q))

    def median_ci(self) -> tuple[float, float]:
        """Return the interval of the median of `self.independent_values`.

        Raise ValueError if there are fewer than 6 values (at a confidence of 95 %).
        """
        return percentile_interval(self.independent_values, 50, self.confidence)

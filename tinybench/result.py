# Written by "autograder export" from modules/01_result/01_result.ipynb: edit the notebook, not this file.

"""A benchmark result: every measurement of one metric of one model, and how far its summary can be trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from tinybench.support.basics.dependence import (
    autocorrelation,
    batch_means,
    batch_medians,
    caution,
    effective_count,
    is_dependent,
)
from tinybench.support.basics.numbers import with_digits
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import facts
from tinybench.support.basics.type_checks import check_kinds


def check_values(values: Iterable[Any]) -> list[float]:
    """Return the measurements as a list of finite floats, in the same order.

    Raises ValueError if there are no measurements, or if a measurement is not a finite number. The message then
    contains the index of the first such measurement. Booleans and text do not count as numbers.
    """
    checked = []
    for index, value in enumerate(values):
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            raise ValueError(f"values[{index}] is {value!r}, not a number")
        if not math.isfinite(value):
            raise ValueError(f"values[{index}] is {value}; drop or repeat that measurement")
        checked.append(float(value))
    if not checked:
        raise ValueError("values is empty; a result needs at least one measurement")
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

    Parameters
    ----------
    std, half_width
        Standard deviation of single measurements, estimated from a pilot run; the half-width to reach, in the same
        unit.
    confidence
        Coverage of the interval.

    Returns
    -------
    int
        The smallest sufficient number, at least 2.

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


def bca_interval(
    values: list[float],
    statistic: Callable[[np.ndarray], float],
    confidence: float = 0.95,
    seed: int | None = 0,
    resamples: int = 2000,
) -> tuple[float, float]:
    """Return the bias-corrected and accelerated bootstrap interval of a statistic.

    `statistic` is any function of a one-dimensional array.

    If all resamples give the same number, the scatter is unknown and the interval is (NaN, NaN).

    Efron, Journal of the American Statistical Association 82 (1987). For small samples, the interval is widened just as
    a t interval is wider than a normal interval: Hesterberg, The American Statistician 69 (2015), section 3.3.
    """
    from scipy.special import ndtr, ndtri, stdtrit

    rng = np.random.default_rng(seed)
    data = np.asarray(values, dtype=float)
    n, found = len(data), float(statistic(data))
    replicas = np.array([float(statistic(data[rng.integers(n, size=n)])) for _ in range(resamples)])
    if np.ptp(replicas) == 0:
        return math.nan, math.nan
    below = (np.mean(replicas < found) + np.mean(replicas <= found)) / 2
    bias = ndtri(min(max(below, 0.5 / resamples), 1 - 0.5 / resamples))
    # if there are many values, whole groups are left out: the same acceleration in less time
    left_out = np.array_split(np.arange(n), min(n, 500))
    pull = np.array([float(statistic(np.delete(data, group))) for group in left_out])
    pull = pull.mean() - pull
    scale = 6 * float(np.sum(pull**2)) ** 1.5
    acceleration = float(np.sum(pull**3)) / scale if scale else 0.0
    reach = math.sqrt(n / (n - 1)) * float(stdtrit(n - 1, 0.5 + confidence / 2))
    ends = bias + reach * np.array([-1, 1])
    lower, upper = np.quantile(replicas, ndtr(bias + ends / (1 - acceleration * ends)))
    return float(lower), float(upper)


def tukey_outliers(values: list[float]) -> list[float]:
    """Return the values more than 1.5 interquartile ranges below the first or above the third quartile, in their order.

    Quartiles are interpolated linearly, as in NumPy. Tukey, "Exploratory Data Analysis" (1977), chapter 2.
    """
    first, third = np.percentile(values, [25, 75])
    reach = 1.5 * (third - first)
    return [value for value in values if value < first - reach or value > third + reach]


FILE_FIELDS = (  # attributes of a result that are written to its file
    *("metric_name", "unit", "confidence", "metadata", "count", "mean", "std", "median", "min_val", "max_val"),
    *("ci_lower", "ci_upper", "dependence", "cautions", "values"),
)
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


@dataclass
class BenchmarkResult:
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
        self._summarise()
        # For one value these are a convention that other code relies on. They carry no information, see `undetermined`.
        if getattr(self, "count", 0) == 1:
            self.std, self.ci_lower, self.ci_upper = 0.0, self.mean, self.mean

    def _summarise(self) -> None:
        """Check the values, and set count, mean, std, median, min_val, max_val, ci_lower and ci_upper."""
        self.values = check_values(self.values)
        self.count = len(self.values)
        self.mean, self.std = mean_and_std(self.values)
        self.median = float(np.median(self.values))
        self.min_val, self.max_val = min(self.values), max(self.values)
        self.ci_lower, self.ci_upper = t_interval(self.values, self.confidence)

    @property
    def cv(self) -> float:
        """The coefficient of variation, std / abs(mean), or NaN if the mean is 0.

        A coefficient of about 0.05 means that the measurements are stable; 0.30 means that they are not.

        For one value the coefficient is 0.0, because `std` is 0.0 by convention. This carries no information.
        """
        return self.std / abs(self.mean) if self.mean else math.nan

    def percentile(self, q: float) -> float:
        """Return the q-th percentile, interpolated linearly. Raise ValueError unless `q` is 0 or from 1 to 100."""
        if not (q == 0 or 1 <= q <= 100):
            raise ValueError(f"q is {q}; a percentile is 0, or from 1 to 100 (p95 is 95, not 0.95)")
        return float(np.percentile(self.values, q))

    @property
    def scattered(self) -> bool:
        """Whether at least two values differ. If not, neither a deviation nor an interval is known."""
        rounding = 1e-9 * abs(self.max_val) if self.unit == "s" else 0.0  # rounding of clock readings
        return self.max_val - self.min_val > rounding

    @property
    def undetermined(self) -> tuple[str, ...]:
        """The names of the attributes whose values are only a convention. In their place, `to_dict` writes None."""
        if self.count == 1:
            return "std", "ci_lower", "ci_upper"
        return () if self.scattered else ("ci_lower", "ci_upper")

    @property
    def dependence(self) -> dict[str, float | None]:
        """The autocorrelation, the effective number of independent values, and the number of batches."""
        alike = autocorrelation(self.values) if self.scattered else None
        count, batches = effective_count(self.values), len(self.independent_values)
        return {"autocorrelation": alike, "effective_count": count, "batches": batches}

    @property
    def independent_values(self) -> list[float]:
        """The values, or, if they are autocorrelated, the medians of nearly independent batches."""
        if "round_starts" in self.metadata:  # rounds that began at random times of a session need no batches
            return self.values
        return batch_medians(self.values, runs_for_percentile(50, self.confidence))

    def mean_ci(self) -> tuple[float, float]:
        """Return the t interval for the mean. If the values are autocorrelated, it is computed from means of batches.

        Raise ValueError if there is only one value or all values are equal, because their scatter is then unknown.
        """
        if not self.scattered:
            found = "one value" if self.count == 1 else f"{self.count} equal values"
            raise ValueError(f"{found} cannot tell how far the mean may be off; measure more often, or more finely")
        length = self.count // len(self.independent_values)
        return t_interval(batch_means(self.values, length), self.confidence)

    @property
    def how_many(self) -> str:
        """The number of values as text, such as ``n = 30``, with remarks such as "all equal" or "in 7 batches"."""
        least, batches = runs_for_percentile(50, self.confidence), len(self.independent_values)
        text = f"n = {self.count}"
        if self.count > 1 and not self.scattered:
            text += ", all equal"
        elif self.count < least:
            text += ", too few for an interval"
        elif batches < self.count:
            text += f" in {batches} batches"
        elif "round_starts" not in self.metadata and is_dependent(self.values):
            text += ", which depend on one another: too narrow"
        return (
            text
            + ("" if self.metadata.get("seen", True) else ", not seen")
            + ("" if self.measured else ", an estimate")
        )

    @property
    def measured(self) -> bool:
        """Whether the values were measured; False for an estimate."""
        return bool(self.metadata.get("measured", True))

    @property
    def cautions(self) -> list[str]:
        """Sentences on why the values or intervals may mislead, due to the meter, the machine's state or the values."""
        said = [self.metadata["caution"]] if self.metadata.get("caution") else []
        machine = self.metadata.get("machine")  # see `tinybench.support.rounds.machine_state`
        if isinstance(machine, dict) and self.unit not in ("", "B"):  # fractions and bytes hardly depend on its state
            said += machine.get("warnings", [])
        counted = "wilson_interval" in self.metadata or {"correct", "total"} <= self.metadata.keys()
        if counted or not self.metadata.get("seen", True):  # the interval comes from counts, or nothing was detected
            return said
        if not self.scattered:
            return [*said, no_scatter(self.count, self.unit)]
        least = runs_for_percentile(50, self.confidence)
        if self.count < least:
            said = [
                *said,
                f"{self.count} values are too few for an interval of the median, which takes at least {least}",
            ]
        found = [] if "round_starts" in self.metadata else [caution(self.values, least)]
        scale = self.std or math.inf  # tiny values may differ, and yet their squares underflow to 0
        skewness = sum(((value - self.mean) / scale) ** 3 for value in self.values) / self.count
        if skewness > max(1.0, 0.15 * math.sqrt(self.count)):
            found.append("values are skewed: intervals of their mean cover less than they say, use median_ci()")
        elif any(found) and not is_dependent(self.values):
            found[0] += " or are skewed"  # too few values to distinguish the two
        return said + [sentence for sentence in found if sentence]

    def median_ci(self) -> tuple[float, float]:
        """Return the interval of the median of `self.independent_values`.

        Raise ValueError if there are fewer than 6 values (at a confidence of 95 %).
        """
        return percentile_interval(self.independent_values, 50, self.confidence)

    def bootstrap_ci(
        self, statistic: Callable[[np.ndarray], float] = np.median, seed: int | None = 0, resamples: int = 2000
    ) -> tuple[float, float]:
        """Return the bootstrap interval of a statistic, as computed by `bca_interval`."""
        return bca_interval(self.values, statistic, self.confidence, seed, resamples)

    def outliers(self) -> list[float]:
        """Return the outliers by Tukey's rule; see `tukey_outliers`."""
        return tukey_outliers(self.values)

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes that `FILE_FIELDS` lists, as plain data for ``json.dumps``.

        Attributes in `self.undetermined` are None: one value does not determine a deviation or an interval.
        """
        known = {name: None if name in self.undetermined else getattr(self, name) for name in FILE_FIELDS}
        return json_safe(known, "result")  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BenchmarkResult:
        """Return a result made from the output of `to_dict`. The summary is computed again from the values.

        Raises ValueError if ``metric_name`` or ``values`` is missing, or a value is not a finite number.
        """
        for name in ("metric_name", "values"):
            if name not in data:
                raise ValueError(f"{name!r} is missing; a result is written by BenchmarkResult.to_dict()")
        given = {name: data[name] for name in ("metadata", "unit", "confidence") if name in data}
        return cls(data["metric_name"], data["values"], **given)

    def __str__(self) -> str:
        """Return a line such as ``latency: median 12.1 ms (95 % CI 11.9–12.4), n = 30``.

        If there are too few values for an interval, the brackets contain the range instead: ``(range 11.5–13.1)``.

        `format_interval` formats the numbers. The line ends with `self.how_many`.
        """
        named = f"{100 * self.confidence:.3g} % CI"
        if "wilson_interval" in self.metadata:  # an accuracy, from rows that are right or wrong: module 04
            low, high = self.metadata["wilson_interval"]
            share, rows = self.metadata["accuracy"], "{correct} of {total}".format(**self.metadata)
            if "design_effect" in self.metadata:  # rows that depend on each other, such as copies
                rows += " in {groups} groups, design effect {design_effect:.3g}".format(**self.metadata)
            return f"{self.metric_name}: {format_interval(share, low, high, '', named)}, {rows}"
        try:
            low, high = self.median_ci()
        except ValueError:
            low, high, named = self.min_val, self.max_val, "range"
        return (
            f"{self.metric_name}: median {format_interval(self.median, low, high, self.unit, named)}, {self.how_many}"
        )

    def __format__(self, form: str) -> str:
        """Return the text of ``str``. The format ``sd`` gives mean and standard deviation instead of the median.

        Use it as in ``f"{result:sd}"``.
        """
        if form != "sd":
            return format(str(self), form)
        what = "mean ± sd" if self.scattered else "mean"
        return f"{self.metric_name}: {format_measurement(self.mean, self.std, self.unit)} ({what}), {self.how_many}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the result as an accessible HTML table and as text."""
        factor, unit = scale_unit(self.mean or self.std, self.unit)
        level = f"{100 * self.confidence:.3g} % CI"
        if self.scattered:
            try:
                middle = format_interval(self.median, *self.median_ci(), self.unit, level)
            except ValueError:
                middle = f"{self.median / factor:.4g} {unit} (too few values for an interval)"
            rows = {
                "median": middle,
                "mean": format_interval(self.mean, *self.mean_ci(), self.unit, level),
                "standard deviation": f"{self.std / factor:.3g} {unit} (cv {self.cv:.1%})",
                "range": f"{self.min_val / factor:.4g} to {self.max_val / factor:.4g} {unit}",
                "measurements": f"{self.count}, {len(self.outliers())} of them outliers",
            }
        else:
            value = format_measurement(self.mean, 0.0, self.unit)
            rows = {"value": value, "measurements": f"{self.count}{', all equal' if self.count > 1 else ''}"}
        if "wilson_interval" in self.metadata:
            rows = {"of all rows": str(self).partition(": ")[2], **rows}
        if not self.measured:
            rows["measured"] = "no, an estimate"
        if self.cautions:
            rows["take care"] = "; ".join(self.cautions)
        return {"text/plain": str(self), "text/html": facts(rows, self.metric_name).html()}

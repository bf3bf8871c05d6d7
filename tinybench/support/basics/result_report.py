"""The given part of a `BenchmarkResult`: cautions, dependence between values, text, tables and JSON."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np

from tinybench.support.basics.bootstrap import bca_interval
from tinybench.support.basics.dependence import autocorrelation, batch_medians, caution, effective_count, is_dependent
from tinybench.support.basics.result_text import format_interval, format_measurement, json_safe, no_scatter, scale_unit
from tinybench.support.basics.table import facts

FILE_FIELDS = (  # attributes of a result that are written to its file
    *("metric_name", "unit", "confidence", "metadata", "count", "mean", "std", "median", "min_val", "max_val"),
    *("ci_lower", "ci_upper", "dependence", "cautions", "values"),
)


class ResultReport(Protocol):
    """Properties and outputs of a result. The class that inherits them computes the summary and the intervals."""

    metric_name: str
    values: list[float]
    metadata: dict[str, Any]
    unit: str
    confidence: float
    mean: float
    std: float
    median: float
    min_val: float
    max_val: float
    count: int

    @property
    def cv(self) -> float:
        """The coefficient of variation."""

    @property
    def runs_for_median(self) -> int:
        """The smallest number of values that give an interval of the median."""

    def median_ci(self) -> tuple[float, float]:
        """Return the interval of the median. Raise ValueError if there are too few values."""

    def mean_ci(self) -> tuple[float, float]:
        """Return the interval of the mean. Raise ValueError if the values show no scatter."""

    def outliers(self) -> list[float]:
        """Return the outliers by Tukey's rule."""

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
        return batch_medians(self.values, self.runs_for_median)

    def bootstrap_ci(
        self, statistic: Callable[[np.ndarray], float] = np.median, seed: int | None = 0, resamples: int = 2000
    ) -> tuple[float, float]:
        """Return the bootstrap interval of a statistic, as computed by `bca_interval`."""
        return bca_interval(self.values, statistic, self.confidence, seed, resamples)

    @property
    def how_many(self) -> str:
        """The number of values as text, such as ``n = 30``, with remarks such as "all equal" or "in 7 batches"."""
        least, batches = self.runs_for_median, len(self.independent_values)
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
        least = self.runs_for_median
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

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes that `FILE_FIELDS` lists, as plain data for ``json.dumps``.

        Attributes in `self.undetermined` are None: one value does not determine a deviation or an interval.
        """
        known = {name: None if name in self.undetermined else getattr(self, name) for name in FILE_FIELDS}
        data: dict[str, Any] = json_safe(known, "result")
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return a result made from the output of `to_dict`. The summary is computed again from the values.

        Raises ValueError if ``metric_name`` or ``values`` is missing, or a value is not a finite number.
        """
        for name in ("metric_name", "values"):
            if name not in data:
                raise ValueError(f"{name!r} is missing; a result is written by BenchmarkResult.to_dict()")
        given = {name: data[name] for name in ("metadata", "unit", "confidence") if name in data}
        make: Any = cls
        found: Self = make(data["metric_name"], data["values"], **given)
        return found

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

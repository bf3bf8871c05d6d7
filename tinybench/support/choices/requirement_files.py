"""Limits on the metrics of a model: where they are read from, and the number that each one limits."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from tinybench.result import BenchmarkResult
from tinybench.support.choices.ranked_values import central, nearest
from tinybench.support.choices.weighted_sums import UNITS, check_units
from tinybench.support.metric_tests import is_detected


@dataclass(frozen=True)
class ModelLimits:
    """The limits that `Requirements` documents, read from a dictionary or a YAML file."""

    latency_p95_ms: float | None = None
    accuracy_min: float | None = None
    memory_max_mb: float | None = None
    throughput_min_qps: float | None = None
    energy_budget_mj: float | None = None

    def __post_init__(self) -> None:
        for name, limit in self.limits().items():
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit < math.inf:
                raise ValueError(f"{name} is {limit!r}; give a number ≥ 0 without a unit, the name holds it")
        if self.accuracy_min is not None and self.accuracy_min > 1:
            raise ValueError(
                f"accuracy_min is {self.accuracy_min}; give a fraction, such as {self.accuracy_min / 100:g}"
            )

    def limits(self) -> dict[str, float]:
        """Return the limits that are set."""
        given = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        return {name: limit for name, limit in given.items() if limit is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the requirements that a mapping of names to limits describes.

        Raise ValueError for a name without a limit, or an unknown name. For an unknown name, the message suggests the
        nearest known name.
        """
        if empty := [name for name, limit in data.items() if limit is None]:
            raise ValueError(f"{empty[0]} has no limit; write a number behind it, or leave the line out")
        valid = [spec.name for spec in fields(cls)]
        for name in data:
            if name not in valid:
                raise ValueError(f"there is no requirement {str(name)!r}; did you mean {nearest(str(name), valid)!r}?")
        return cls(**data)

    @classmethod
    def from_yaml(cls, source: str | Path) -> Self:
        """Return the requirements in a YAML file. `source` is the path of the file, or its text.

        Raises ValueError if the text holds anything but names with limits, and as `from_dict` does.
        """
        import yaml

        is_path = isinstance(source, Path) or not re.search(r"\n|:\s|:$|^\w+:[\d.]|^\s*$", source)
        text = Path(source).read_text(encoding="utf-8") if is_path else str(source)
        data = yaml.safe_load(text)
        if not isinstance(data, dict):
            raise ValueError(f"requirements are lines such as 'accuracy_min: 0.95', not {text.strip()!r}")
        return cls.from_dict(data)


def observed(row: Mapping[str, Any], requirement: str, name: str = "the row") -> float:
    """Return the value in a row that a field of `Requirements` limits, in the unit of that field.

    A row holds results, or numbers in SI units. The 95th percentile of the latency may be given as ``"latency_p95"``.
    Raises ValueError, with `name` in the message, if the metric is missing, if a single number stands where a
    percentile is needed, or if a result was not detected and has no ``at_most``.
    """
    metric = requirement.partition("_")[0]
    value = row.get("latency_p95", row.get("latency")) if metric == "latency" else row.get(metric)
    if value is None:
        raise ValueError(f"{name} has no {metric!r}, which {requirement} limits; measure it")
    check_units(metric, [row])
    if metric == "latency" and not isinstance(value, BenchmarkResult) and "latency_p95" not in row:
        raise ValueError(f"{name}: one number has no 95th percentile; give all latencies as a result, or 'latency_p95'")
    if not is_detected(value):
        value = value.metadata.get("at_most")
        if value is None:
            raise ValueError(
                f"{name}: {metric} was not seen, it is below what its meter resolves; {requirement} is open"
            )
    if isinstance(value, BenchmarkResult):
        of_result = {"latency": value.percentile(95), "memory": value.max_val, "energy": value.mean}
        value = of_result.get(metric, central(value))
    return float(value) / UNITS.get(metric, ("", 1.0))[1]

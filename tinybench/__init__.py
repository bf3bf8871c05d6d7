# Written by "autograder export": the public names of every exported module.

"""Benchmarks of machine-learning inference that can be trusted."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinybench.result import BenchmarkResult as BenchmarkResult
    from tinybench.result import bootstrap_interval as bootstrap_interval
    from tinybench.result import check_values as check_values
    from tinybench.result import format_measurement as format_measurement
    from tinybench.result import json_safe as json_safe
    from tinybench.result import mean_and_std as mean_and_std
    from tinybench.result import percentile_interval as percentile_interval
    from tinybench.result import required_runs as required_runs
    from tinybench.result import runs_for_percentile as runs_for_percentile
    from tinybench.result import scale_unit as scale_unit
    from tinybench.result import t_interval as t_interval
    from tinybench.result import tukey_outliers as tukey_outliers

__version__ = "0.1.0"

_HOMES = {
    "BenchmarkResult": "result",
    "bootstrap_interval": "result",
    "check_values": "result",
    "format_measurement": "result",
    "json_safe": "result",
    "mean_and_std": "result",
    "percentile_interval": "result",
    "required_runs": "result",
    "runs_for_percentile": "result",
    "scale_unit": "result",
    "t_interval": "result",
    "tukey_outliers": "result",
}

__all__ = [
    "BenchmarkResult",
    "bootstrap_interval",
    "check_values",
    "format_measurement",
    "json_safe",
    "mean_and_std",
    "percentile_interval",
    "required_runs",
    "runs_for_percentile",
    "scale_unit",
    "t_interval",
    "tukey_outliers",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tinybench' has no attribute {name!r}")
    return getattr(import_module(f"tinybench.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

# Written by "autograder export": the public names of every exported module.

"""Benchmarks of machine-learning inference that can be trusted."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinybench.latency import ONNX_DTYPES as ONNX_DTYPES
    from tinybench.latency import Call as Call
    from tinybench.latency import Clock as Clock
    from tinybench.latency import as_callable as as_callable
    from tinybench.latency import as_input as as_input
    from tinybench.latency import check_runs as check_runs
    from tinybench.latency import describe_input as describe_input
    from tinybench.latency import hot_median as hot_median
    from tinybench.latency import inputs_by_model as inputs_by_model
    from tinybench.latency import latency_summary as latency_summary
    from tinybench.latency import measure_cold_start as measure_cold_start
    from tinybench.latency import measure_latencies as measure_latencies
    from tinybench.latency import measure_latency as measure_latency
    from tinybench.latency import measure_session_latency as measure_session_latency
    from tinybench.latency import portable_factory as portable_factory
    from tinybench.latency import prepare as prepare
    from tinybench.latency import round_orders as round_orders
    from tinybench.latency import run_fresh as run_fresh
    from tinybench.latency import runs_within as runs_within
    from tinybench.latency import session_call as session_call
    from tinybench.latency import session_starts as session_starts
    from tinybench.latency import timed_calls as timed_calls
    from tinybench.latency import warm_up as warm_up
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
    from tinybench.timer import calibrate_loops as calibrate_loops
    from tinybench.timer import clock_resolution as clock_resolution
    from tinybench.timer import gc_paused as gc_paused
    from tinybench.timer import precise_timer as precise_timer
    from tinybench.timer import timer_overhead as timer_overhead

__version__ = "0.1.0"

_HOMES = {
    "BenchmarkResult": "result",
    "Call": "latency",
    "Clock": "latency",
    "ONNX_DTYPES": "latency",
    "as_callable": "latency",
    "as_input": "latency",
    "bootstrap_interval": "result",
    "calibrate_loops": "timer",
    "check_runs": "latency",
    "check_values": "result",
    "clock_resolution": "timer",
    "describe_input": "latency",
    "format_measurement": "result",
    "gc_paused": "timer",
    "hot_median": "latency",
    "inputs_by_model": "latency",
    "json_safe": "result",
    "latency_summary": "latency",
    "mean_and_std": "result",
    "measure_cold_start": "latency",
    "measure_latencies": "latency",
    "measure_latency": "latency",
    "measure_session_latency": "latency",
    "percentile_interval": "result",
    "portable_factory": "latency",
    "precise_timer": "timer",
    "prepare": "latency",
    "required_runs": "result",
    "round_orders": "latency",
    "run_fresh": "latency",
    "runs_for_percentile": "result",
    "runs_within": "latency",
    "scale_unit": "result",
    "session_call": "latency",
    "session_starts": "latency",
    "t_interval": "result",
    "timed_calls": "latency",
    "timer_overhead": "timer",
    "tukey_outliers": "result",
    "warm_up": "latency",
}

__all__ = [
    "BenchmarkResult",
    "Call",
    "Clock",
    "ONNX_DTYPES",
    "as_callable",
    "as_input",
    "bootstrap_interval",
    "calibrate_loops",
    "check_runs",
    "check_values",
    "clock_resolution",
    "describe_input",
    "format_measurement",
    "gc_paused",
    "hot_median",
    "inputs_by_model",
    "json_safe",
    "latency_summary",
    "mean_and_std",
    "measure_cold_start",
    "measure_latencies",
    "measure_latency",
    "measure_session_latency",
    "percentile_interval",
    "portable_factory",
    "precise_timer",
    "prepare",
    "required_runs",
    "round_orders",
    "run_fresh",
    "runs_for_percentile",
    "runs_within",
    "scale_unit",
    "session_call",
    "session_starts",
    "t_interval",
    "timed_calls",
    "timer_overhead",
    "tukey_outliers",
    "warm_up",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tinybench' has no attribute {name!r}")
    return getattr(import_module(f"tinybench.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

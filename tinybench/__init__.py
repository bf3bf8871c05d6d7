# Written by "autograder export": the public names of the package.

"""Benchmarks of machine-learning inference that can be trusted."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinybench.accuracy import balanced_accuracy, mcnemar, measure_accuracy, parity
    from tinybench.benchmark import Benchmark, system_info
    from tinybench.bottleneck import what_if
    from tinybench.comparison import compare, compare_live, regression_gate
    from tinybench.compress import low_rank, prune_units, prune_weights
    from tinybench.energy import best_meter, measure_energy
    from tinybench.latency import (
        latency_summary,
        measure_cold_start,
        measure_latencies,
        measure_latency,
        measure_session_latency,
    )
    from tinybench.load import LoadResult, open_loop, simulate_queue
    from tinybench.machine import machine_check
    from tinybench.memory import measure_memory, model_size, resident_growth
    from tinybench.onnx import OnnxModel, check_parity, operator_profile, to_onnx
    from tinybench.pareto import Requirements, pareto_frontier
    from tinybench.quantize import quantize_dynamic_int8, quantize_static_int8
    from tinybench.result import BenchmarkResult, required_runs
    from tinybench.suite import BenchmarkSuite
    from tinybench.support.comparisons.verdict import Comparison, Gate
    from tinybench.support.footprint.first_calls import memory_stages
    from tinybench.support.profiling.what_if_experiment import in_order
    from tinybench.support.reports.frontier_figure import plot_pareto_frontier
    from tinybench.support.rounds.checked_calls import arguments
    from tinybench.timer import precise_timer
    from tinybench.toolbox import compare_all
    from tinybench.tools.study.int8_study import tradeoff_study

__version__ = "0.1.0"

__all__ = [
    "Benchmark",
    "BenchmarkResult",
    "BenchmarkSuite",
    "Comparison",
    "Gate",
    "LoadResult",
    "OnnxModel",
    "Requirements",
    "arguments",
    "balanced_accuracy",
    "best_meter",
    "check_parity",
    "compare",
    "compare_all",
    "compare_live",
    "in_order",
    "latency_summary",
    "low_rank",
    "machine_check",
    "mcnemar",
    "measure_accuracy",
    "measure_cold_start",
    "measure_energy",
    "measure_latencies",
    "measure_latency",
    "measure_memory",
    "measure_session_latency",
    "memory_stages",
    "model_size",
    "open_loop",
    "operator_profile",
    "pareto_frontier",
    "parity",
    "plot_pareto_frontier",
    "precise_timer",
    "prune_units",
    "prune_weights",
    "quantize_dynamic_int8",
    "quantize_static_int8",
    "regression_gate",
    "required_runs",
    "resident_growth",
    "simulate_queue",
    "system_info",
    "to_onnx",
    "tradeoff_study",
    "what_if",
]

_HOMES = {
    "accuracy": ("balanced_accuracy", "mcnemar", "measure_accuracy", "parity"),
    "benchmark": ("Benchmark", "system_info"),
    "bottleneck": ("what_if",),
    "comparison": ("compare", "compare_live", "regression_gate"),
    "compress": ("low_rank", "prune_units", "prune_weights"),
    "energy": ("best_meter", "measure_energy"),
    "latency": (
        "latency_summary",
        "measure_cold_start",
        "measure_latencies",
        "measure_latency",
        "measure_session_latency",
    ),
    "load": ("LoadResult", "open_loop", "simulate_queue"),
    "machine": ("machine_check",),
    "memory": ("measure_memory", "model_size", "resident_growth"),
    "onnx": ("OnnxModel", "check_parity", "operator_profile", "to_onnx"),
    "pareto": ("Requirements", "pareto_frontier"),
    "quantize": ("quantize_dynamic_int8", "quantize_static_int8"),
    "result": ("BenchmarkResult", "required_runs"),
    "suite": ("BenchmarkSuite",),
    "support.comparisons.verdict": ("Comparison", "Gate"),
    "support.footprint.first_calls": ("memory_stages",),
    "support.profiling.what_if_experiment": ("in_order",),
    "support.reports.frontier_figure": ("plot_pareto_frontier",),
    "support.rounds.checked_calls": ("arguments",),
    "timer": ("precise_timer",),
    "toolbox": ("compare_all",),
    "tools.study.int8_study": ("tradeoff_study",),
    "shell.magic": ("load_ipython_extension",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            from tinybench.support.basics.type_checks import checked  # late: `import tinybench` loads no NumPy

            return checked(getattr(import_module(f"tinybench.{home}"), name))
    raise AttributeError(f"module 'tinybench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]

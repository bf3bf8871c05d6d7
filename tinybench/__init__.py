# Written by "autograder export": the public names of every exported module.

"""Benchmarks of machine-learning inference that can be trusted."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinybench.accuracy import McNemarResult as McNemarResult
    from tinybench.accuracy import ParityResult as ParityResult
    from tinybench.accuracy import balanced_accuracy as balanced_accuracy
    from tinybench.accuracy import checked_labels as checked_labels
    from tinybench.accuracy import checked_outputs as checked_outputs
    from tinybench.accuracy import counted as counted
    from tinybench.accuracy import difference_interval as difference_interval
    from tinybench.accuracy import known_classes as known_classes
    from tinybench.accuracy import mcnemar as mcnemar
    from tinybench.accuracy import measure_accuracy as measure_accuracy
    from tinybench.accuracy import named_datasets as named_datasets
    from tinybench.accuracy import output_kind as output_kind
    from tinybench.accuracy import parity as parity
    from tinybench.accuracy import predicted_labels as predicted_labels
    from tinybench.accuracy import recall_per_class as recall_per_class
    from tinybench.accuracy import wilson_interval as wilson_interval
    from tinybench.benchmark import Benchmark as Benchmark
    from tinybench.benchmark import best_throughput as best_throughput
    from tinybench.benchmark import clock_rate as clock_rate
    from tinybench.benchmark import cpu_elsewhere as cpu_elsewhere
    from tinybench.benchmark import cpu_info as cpu_info
    from tinybench.benchmark import integer_kernels as integer_kernels
    from tinybench.benchmark import library_versions as library_versions
    from tinybench.benchmark import name_models as name_models
    from tinybench.benchmark import system_info as system_info
    from tinybench.benchmark import thread_settings as thread_settings
    from tinybench.comparison import Comparison as Comparison
    from tinybench.comparison import Gate as Gate
    from tinybench.comparison import anova as anova
    from tinybench.comparison import anytime_interval as anytime_interval
    from tinybench.comparison import average_ranks as average_ranks
    from tinybench.comparison import check_comparable as check_comparable
    from tinybench.comparison import cohens_d as cohens_d
    from tinybench.comparison import cohens_d_paired as cohens_d_paired
    from tinybench.comparison import compare as compare
    from tinybench.comparison import compare_all as compare_all
    from tinybench.comparison import compare_live as compare_live
    from tinybench.comparison import decide as decide
    from tinybench.comparison import holm as holm
    from tinybench.comparison import measurement_conditions as measurement_conditions
    from tinybench.comparison import median_interval as median_interval
    from tinybench.comparison import median_ratio as median_ratio
    from tinybench.comparison import permutation_test as permutation_test
    from tinybench.comparison import regression_gate as regression_gate
    from tinybench.comparison import runs_to_decide as runs_to_decide
    from tinybench.comparison import sign_e_value as sign_e_value
    from tinybench.comparison import sign_test as sign_test
    from tinybench.comparison import vargha_delaney_a12 as vargha_delaney_a12
    from tinybench.comparison import welch_intervals as welch_intervals
    from tinybench.comparison import welch_test as welch_test
    from tinybench.comparison import wilcoxon_test as wilcoxon_test
    from tinybench.compress import VERDICTS as VERDICTS
    from tinybench.compress import AccuracyChange as AccuracyChange
    from tinybench.compress import Entry as Entry
    from tinybench.compress import Journal as Journal
    from tinybench.compress import Layer as Layer
    from tinybench.compress import accuracy_change as accuracy_change
    from tinybench.compress import activations as activations
    from tinybench.compress import adam_step as adam_step
    from tinybench.compress import changes as changes
    from tinybench.compress import check_layers as check_layers
    from tinybench.compress import decided as decided
    from tinybench.compress import distillation_gradient as distillation_gradient
    from tinybench.compress import distillation_loss as distillation_loss
    from tinybench.compress import factorise as factorise
    from tinybench.compress import initial_layers as initial_layers
    from tinybench.compress import layers_of as layers_of
    from tinybench.compress import low_rank as low_rank
    from tinybench.compress import parameters as parameters
    from tinybench.compress import prune_units as prune_units
    from tinybench.compress import prune_weights as prune_weights
    from tinybench.compress import save_layers as save_layers
    from tinybench.compress import seed_verdict as seed_verdict
    from tinybench.compress import softmax as softmax
    from tinybench.compress import train as train
    from tinybench.compress import zipped_size as zipped_size
    from tinybench.energy import CpuTimeMeter as CpuTimeMeter
    from tinybench.energy import RaplMeter as RaplMeter
    from tinybench.energy import best_meter as best_meter
    from tinybench.energy import counter_difference as counter_difference
    from tinybench.energy import cpu_utilisation as cpu_utilisation
    from tinybench.energy import energy_reading as energy_reading
    from tinybench.energy import idle_power as idle_power
    from tinybench.energy import measure_energy as measure_energy
    from tinybench.energy import package_domains as package_domains
    from tinybench.energy import read_counter as read_counter
    from tinybench.energy import usable_cores as usable_cores
    from tinybench.latency import Call as Call
    from tinybench.latency import Clock as Clock
    from tinybench.latency import as_callable as as_callable
    from tinybench.latency import as_input as as_input
    from tinybench.latency import check_runs as check_runs
    from tinybench.latency import describe_input as describe_input
    from tinybench.latency import fresh_process as fresh_process
    from tinybench.latency import fresh_task as fresh_task
    from tinybench.latency import hot_median as hot_median
    from tinybench.latency import inputs_by_model as inputs_by_model
    from tinybench.latency import latency_summary as latency_summary
    from tinybench.latency import measure_cold_start as measure_cold_start
    from tinybench.latency import measure_latencies as measure_latencies
    from tinybench.latency import measure_latency as measure_latency
    from tinybench.latency import measure_session_latency as measure_session_latency
    from tinybench.latency import portable_factory as portable_factory
    from tinybench.latency import prepare as prepare
    from tinybench.latency import ran_backwards as ran_backwards
    from tinybench.latency import round_orders as round_orders
    from tinybench.latency import run_fresh as run_fresh
    from tinybench.latency import runs_within as runs_within
    from tinybench.latency import session_call as session_call
    from tinybench.latency import session_starts as session_starts
    from tinybench.latency import timed_calls as timed_calls
    from tinybench.latency import warm_up as warm_up
    from tinybench.memory import PEAK_METHOD as PEAK_METHOD
    from tinybench.memory import STAGES as STAGES
    from tinybench.memory import ByteCounter as ByteCounter
    from tinybench.memory import can_reset as can_reset
    from tinybench.memory import external_files as external_files
    from tinybench.memory import free_heap as free_heap
    from tinybench.memory import in_fresh_processes as in_fresh_processes
    from tinybench.memory import max_concurrent as max_concurrent
    from tinybench.memory import measure_memory as measure_memory
    from tinybench.memory import memory_pressure as memory_pressure
    from tinybench.memory import memory_stages as memory_stages
    from tinybench.memory import model_size as model_size
    from tinybench.memory import peak_added as peak_added
    from tinybench.memory import python_peak as python_peak
    from tinybench.memory import read_status as read_status
    from tinybench.memory import reset_peak as reset_peak
    from tinybench.memory import resident_growth as resident_growth
    from tinybench.memory import resident_memory as resident_memory
    from tinybench.memory import run_fresh_stages as run_fresh_stages
    from tinybench.memory import without_arena as without_arena
    from tinybench.memory import young_heap as young_heap
    from tinybench.onnx import OnnxModel as OnnxModel
    from tinybench.onnx import OperatorProfile as OperatorProfile
    from tinybench.onnx import check_parity as check_parity
    from tinybench.onnx import convert as convert
    from tinybench.onnx import integer_products as integer_products
    from tinybench.onnx import load_graph as load_graph
    from tinybench.onnx import load_session as load_session
    from tinybench.onnx import new_session as new_session
    from tinybench.onnx import numpy_baseline as numpy_baseline
    from tinybench.onnx import operator_profile as operator_profile
    from tinybench.onnx import operator_shares as operator_shares
    from tinybench.onnx import operators as operators
    from tinybench.onnx import pipeline_stages as pipeline_stages
    from tinybench.onnx import refuse_bad_weights as refuse_bad_weights
    from tinybench.onnx import refuse_existing as refuse_existing
    from tinybench.onnx import save_graph as save_graph
    from tinybench.onnx import session_options as session_options
    from tinybench.onnx import tidy_opsets as tidy_opsets
    from tinybench.onnx import time_breakdown as time_breakdown
    from tinybench.onnx import to_onnx as to_onnx
    from tinybench.onnx import weights as weights
    from tinybench.pareto import DEFAULT_WEIGHTS as DEFAULT_WEIGHTS
    from tinybench.pareto import DIRECTIONS as DIRECTIONS
    from tinybench.pareto import LATENCY_ACCURACY as LATENCY_ACCURACY
    from tinybench.pareto import Requirements as Requirements
    from tinybench.pareto import as_rows as as_rows
    from tinybench.pareto import central as central
    from tinybench.pareto import check_units as check_units
    from tinybench.pareto import check_weights as check_weights
    from tinybench.pareto import composite_score as composite_score
    from tinybench.pareto import dominates as dominates
    from tinybench.pareto import frontier_2d as frontier_2d
    from tinybench.pareto import frontier_nd as frontier_nd
    from tinybench.pareto import hypervolume_2d as hypervolume_2d
    from tinybench.pareto import interval as interval
    from tinybench.pareto import membership_probability as membership_probability
    from tinybench.pareto import nearest as nearest
    from tinybench.pareto import objective_values as objective_values
    from tinybench.pareto import observed as observed
    from tinybench.pareto import pareto_frontier as pareto_frontier
    from tinybench.pareto import plot_pareto_frontier as plot_pareto_frontier
    from tinybench.pareto import refuse_mixing as refuse_mixing
    from tinybench.pareto import replicate as replicate
    from tinybench.pareto import row_name as row_name
    from tinybench.pareto import staircase as staircase
    from tinybench.quantize import CalibrationRows as CalibrationRows
    from tinybench.quantize import QuantParams as QuantParams
    from tinybench.quantize import TradeoffStudy as TradeoffStudy
    from tinybench.quantize import Variant as Variant
    from tinybench.quantize import calibration_input as calibration_input
    from tinybench.quantize import check_tensor as check_tensor
    from tinybench.quantize import claim_verdict as claim_verdict
    from tinybench.quantize import clipped_share as clipped_share
    from tinybench.quantize import clipping_shares as clipping_shares
    from tinybench.quantize import dequantize as dequantize
    from tinybench.quantize import int8_matmul as int8_matmul
    from tinybench.quantize import int8_pays as int8_pays
    from tinybench.quantize import integer_operators as integer_operators
    from tinybench.quantize import load_variant as load_variant
    from tinybench.quantize import prepare_for_static as prepare_for_static
    from tinybench.quantize import probe as probe
    from tinybench.quantize import quantization_params as quantization_params
    from tinybench.quantize import quantization_types as quantization_types
    from tinybench.quantize import quantization_verdict as quantization_verdict
    from tinybench.quantize import quantize as quantize
    from tinybench.quantize import quantize_dynamic_int8 as quantize_dynamic_int8
    from tinybench.quantize import quantize_file as quantize_file
    from tinybench.quantize import quantize_static_int8 as quantize_static_int8
    from tinybench.quantize import quiet_log as quiet_log
    from tinybench.quantize import saturating_matmul as saturating_matmul
    from tinybench.quantize import sqnr as sqnr
    from tinybench.quantize import study_accuracy as study_accuracy
    from tinybench.quantize import study_batch as study_batch
    from tinybench.quantize import study_claims as study_claims
    from tinybench.quantize import study_decision as study_decision
    from tinybench.quantize import study_energy as study_energy
    from tinybench.quantize import study_gains as study_gains
    from tinybench.quantize import study_memory as study_memory
    from tinybench.quantize import study_requirements as study_requirements
    from tinybench.quantize import study_variants as study_variants
    from tinybench.quantize import throughput_and_bandwidth as throughput_and_bandwidth
    from tinybench.quantize import tradeoff_study as tradeoff_study
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
    from tinybench.suite import BenchmarkSuite as BenchmarkSuite
    from tinybench.suite import Results as Results
    from tinybench.suite import Section as Section
    from tinybench.suite import best_by_dimension as best_by_dimension
    from tinybench.suite import compare_pair as compare_pair
    from tinybench.suite import comparison_rows as comparison_rows
    from tinybench.suite import csv_text as csv_text
    from tinybench.suite import dashboard_rows as dashboard_rows
    from tinybench.suite import draw_frontier as draw_frontier
    from tinybench.suite import html_report as html_report
    from tinybench.suite import merge_results as merge_results
    from tinybench.suite import plot_metric as plot_metric
    from tinybench.suite import report_sections as report_sections
    from tinybench.suite import rows_right as rows_right
    from tinybench.suite import run_rows as run_rows
    from tinybench.suite import summary_rows as summary_rows
    from tinybench.suite import write_text as write_text
    from tinybench.timer import calibrate_loops as calibrate_loops
    from tinybench.timer import clock_resolution as clock_resolution
    from tinybench.timer import gc_paused as gc_paused
    from tinybench.timer import precise_timer as precise_timer
    from tinybench.timer import timer_overhead as timer_overhead

__version__ = "0.1.0"

_HOMES = {
    "AccuracyChange": "compress",
    "Benchmark": "benchmark",
    "BenchmarkResult": "result",
    "BenchmarkSuite": "suite",
    "ByteCounter": "memory",
    "CalibrationRows": "quantize",
    "Call": "latency",
    "Clock": "latency",
    "Comparison": "comparison",
    "CpuTimeMeter": "energy",
    "DEFAULT_WEIGHTS": "pareto",
    "DIRECTIONS": "pareto",
    "Entry": "compress",
    "Gate": "comparison",
    "Journal": "compress",
    "LATENCY_ACCURACY": "pareto",
    "Layer": "compress",
    "McNemarResult": "accuracy",
    "OnnxModel": "onnx",
    "OperatorProfile": "onnx",
    "PEAK_METHOD": "memory",
    "ParityResult": "accuracy",
    "QuantParams": "quantize",
    "RaplMeter": "energy",
    "Requirements": "pareto",
    "Results": "suite",
    "STAGES": "memory",
    "Section": "suite",
    "TradeoffStudy": "quantize",
    "VERDICTS": "compress",
    "Variant": "quantize",
    "accuracy_change": "compress",
    "activations": "compress",
    "adam_step": "compress",
    "anova": "comparison",
    "anytime_interval": "comparison",
    "as_callable": "latency",
    "as_input": "latency",
    "as_rows": "pareto",
    "average_ranks": "comparison",
    "balanced_accuracy": "accuracy",
    "best_by_dimension": "suite",
    "best_meter": "energy",
    "best_throughput": "benchmark",
    "bootstrap_interval": "result",
    "calibrate_loops": "timer",
    "calibration_input": "quantize",
    "can_reset": "memory",
    "central": "pareto",
    "changes": "compress",
    "check_comparable": "comparison",
    "check_layers": "compress",
    "check_parity": "onnx",
    "check_runs": "latency",
    "check_tensor": "quantize",
    "check_units": "pareto",
    "check_values": "result",
    "check_weights": "pareto",
    "checked_labels": "accuracy",
    "checked_outputs": "accuracy",
    "claim_verdict": "quantize",
    "clipped_share": "quantize",
    "clipping_shares": "quantize",
    "clock_rate": "benchmark",
    "clock_resolution": "timer",
    "cohens_d": "comparison",
    "cohens_d_paired": "comparison",
    "compare": "comparison",
    "compare_all": "comparison",
    "compare_live": "comparison",
    "compare_pair": "suite",
    "comparison_rows": "suite",
    "composite_score": "pareto",
    "convert": "onnx",
    "counted": "accuracy",
    "counter_difference": "energy",
    "cpu_elsewhere": "benchmark",
    "cpu_info": "benchmark",
    "cpu_utilisation": "energy",
    "csv_text": "suite",
    "dashboard_rows": "suite",
    "decide": "comparison",
    "decided": "compress",
    "dequantize": "quantize",
    "describe_input": "latency",
    "difference_interval": "accuracy",
    "distillation_gradient": "compress",
    "distillation_loss": "compress",
    "dominates": "pareto",
    "draw_frontier": "suite",
    "energy_reading": "energy",
    "external_files": "memory",
    "factorise": "compress",
    "format_measurement": "result",
    "free_heap": "memory",
    "fresh_process": "latency",
    "fresh_task": "latency",
    "frontier_2d": "pareto",
    "frontier_nd": "pareto",
    "gc_paused": "timer",
    "holm": "comparison",
    "hot_median": "latency",
    "html_report": "suite",
    "hypervolume_2d": "pareto",
    "idle_power": "energy",
    "in_fresh_processes": "memory",
    "initial_layers": "compress",
    "inputs_by_model": "latency",
    "int8_matmul": "quantize",
    "int8_pays": "quantize",
    "integer_kernels": "benchmark",
    "integer_operators": "quantize",
    "integer_products": "onnx",
    "interval": "pareto",
    "json_safe": "result",
    "known_classes": "accuracy",
    "latency_summary": "latency",
    "layers_of": "compress",
    "library_versions": "benchmark",
    "load_graph": "onnx",
    "load_ipython_extension": "shell.magic",
    "load_session": "onnx",
    "load_variant": "quantize",
    "low_rank": "compress",
    "max_concurrent": "memory",
    "mcnemar": "accuracy",
    "mean_and_std": "result",
    "measure_accuracy": "accuracy",
    "measure_cold_start": "latency",
    "measure_energy": "energy",
    "measure_latencies": "latency",
    "measure_latency": "latency",
    "measure_memory": "memory",
    "measure_session_latency": "latency",
    "measurement_conditions": "comparison",
    "median_interval": "comparison",
    "median_ratio": "comparison",
    "membership_probability": "pareto",
    "memory_pressure": "memory",
    "memory_stages": "memory",
    "merge_results": "suite",
    "model_size": "memory",
    "name_models": "benchmark",
    "named_datasets": "accuracy",
    "nearest": "pareto",
    "new_session": "onnx",
    "numpy_baseline": "onnx",
    "objective_values": "pareto",
    "observed": "pareto",
    "operator_profile": "onnx",
    "operator_shares": "onnx",
    "operators": "onnx",
    "output_kind": "accuracy",
    "package_domains": "energy",
    "parameters": "compress",
    "pareto_frontier": "pareto",
    "parity": "accuracy",
    "peak_added": "memory",
    "percentile_interval": "result",
    "permutation_test": "comparison",
    "pipeline_stages": "onnx",
    "plot_metric": "suite",
    "plot_pareto_frontier": "pareto",
    "portable_factory": "latency",
    "precise_timer": "timer",
    "predicted_labels": "accuracy",
    "prepare": "latency",
    "prepare_for_static": "quantize",
    "probe": "quantize",
    "prune_units": "compress",
    "prune_weights": "compress",
    "python_peak": "memory",
    "quantization_params": "quantize",
    "quantization_types": "quantize",
    "quantization_verdict": "quantize",
    "quantize": "quantize",
    "quantize_dynamic_int8": "quantize",
    "quantize_file": "quantize",
    "quantize_static_int8": "quantize",
    "quiet_log": "quantize",
    "ran_backwards": "latency",
    "read_counter": "energy",
    "read_status": "memory",
    "recall_per_class": "accuracy",
    "refuse_bad_weights": "onnx",
    "refuse_existing": "onnx",
    "refuse_mixing": "pareto",
    "regression_gate": "comparison",
    "replicate": "pareto",
    "report_sections": "suite",
    "required_runs": "result",
    "reset_peak": "memory",
    "resident_growth": "memory",
    "resident_memory": "memory",
    "round_orders": "latency",
    "row_name": "pareto",
    "rows_right": "suite",
    "run_fresh": "latency",
    "run_fresh_stages": "memory",
    "run_rows": "suite",
    "runs_for_percentile": "result",
    "runs_to_decide": "comparison",
    "runs_within": "latency",
    "saturating_matmul": "quantize",
    "save_graph": "onnx",
    "save_layers": "compress",
    "scale_unit": "result",
    "seed_verdict": "compress",
    "session_call": "latency",
    "session_options": "onnx",
    "session_starts": "latency",
    "sign_e_value": "comparison",
    "sign_test": "comparison",
    "softmax": "compress",
    "sqnr": "quantize",
    "staircase": "pareto",
    "study_accuracy": "quantize",
    "study_batch": "quantize",
    "study_claims": "quantize",
    "study_decision": "quantize",
    "study_energy": "quantize",
    "study_gains": "quantize",
    "study_memory": "quantize",
    "study_requirements": "quantize",
    "study_variants": "quantize",
    "summary_rows": "suite",
    "system_info": "benchmark",
    "t_interval": "result",
    "thread_settings": "benchmark",
    "throughput_and_bandwidth": "quantize",
    "tidy_opsets": "onnx",
    "time_breakdown": "onnx",
    "timed_calls": "latency",
    "timer_overhead": "timer",
    "to_onnx": "onnx",
    "tradeoff_study": "quantize",
    "train": "compress",
    "tukey_outliers": "result",
    "usable_cores": "energy",
    "vargha_delaney_a12": "comparison",
    "warm_up": "latency",
    "weights": "onnx",
    "welch_intervals": "comparison",
    "welch_test": "comparison",
    "wilcoxon_test": "comparison",
    "wilson_interval": "accuracy",
    "without_arena": "memory",
    "write_text": "suite",
    "young_heap": "memory",
    "zipped_size": "compress",
}

__all__ = [
    "DEFAULT_WEIGHTS",
    "DIRECTIONS",
    "LATENCY_ACCURACY",
    "PEAK_METHOD",
    "STAGES",
    "VERDICTS",
    "AccuracyChange",
    "Benchmark",
    "BenchmarkResult",
    "BenchmarkSuite",
    "ByteCounter",
    "CalibrationRows",
    "Call",
    "Clock",
    "Comparison",
    "CpuTimeMeter",
    "Entry",
    "Gate",
    "Journal",
    "Layer",
    "McNemarResult",
    "OnnxModel",
    "OperatorProfile",
    "ParityResult",
    "QuantParams",
    "RaplMeter",
    "Requirements",
    "Results",
    "Section",
    "TradeoffStudy",
    "Variant",
    "accuracy_change",
    "activations",
    "adam_step",
    "anova",
    "anytime_interval",
    "as_callable",
    "as_input",
    "as_rows",
    "average_ranks",
    "balanced_accuracy",
    "best_by_dimension",
    "best_meter",
    "best_throughput",
    "bootstrap_interval",
    "calibrate_loops",
    "calibration_input",
    "can_reset",
    "central",
    "changes",
    "check_comparable",
    "check_layers",
    "check_parity",
    "check_runs",
    "check_tensor",
    "check_units",
    "check_values",
    "check_weights",
    "checked_labels",
    "checked_outputs",
    "claim_verdict",
    "clipped_share",
    "clipping_shares",
    "clock_rate",
    "clock_resolution",
    "cohens_d",
    "cohens_d_paired",
    "compare",
    "compare_all",
    "compare_live",
    "compare_pair",
    "comparison_rows",
    "composite_score",
    "convert",
    "counted",
    "counter_difference",
    "cpu_elsewhere",
    "cpu_info",
    "cpu_utilisation",
    "csv_text",
    "dashboard_rows",
    "decide",
    "decided",
    "dequantize",
    "describe_input",
    "difference_interval",
    "distillation_gradient",
    "distillation_loss",
    "dominates",
    "draw_frontier",
    "energy_reading",
    "external_files",
    "factorise",
    "format_measurement",
    "free_heap",
    "fresh_process",
    "fresh_task",
    "frontier_2d",
    "frontier_nd",
    "gc_paused",
    "holm",
    "hot_median",
    "html_report",
    "hypervolume_2d",
    "idle_power",
    "in_fresh_processes",
    "initial_layers",
    "inputs_by_model",
    "int8_matmul",
    "int8_pays",
    "integer_kernels",
    "integer_operators",
    "integer_products",
    "interval",
    "json_safe",
    "known_classes",
    "latency_summary",
    "layers_of",
    "library_versions",
    "load_graph",
    "load_session",
    "load_variant",
    "low_rank",
    "max_concurrent",
    "mcnemar",
    "mean_and_std",
    "measure_accuracy",
    "measure_cold_start",
    "measure_energy",
    "measure_latencies",
    "measure_latency",
    "measure_memory",
    "measure_session_latency",
    "measurement_conditions",
    "median_interval",
    "median_ratio",
    "membership_probability",
    "memory_pressure",
    "memory_stages",
    "merge_results",
    "model_size",
    "name_models",
    "named_datasets",
    "nearest",
    "new_session",
    "numpy_baseline",
    "objective_values",
    "observed",
    "operator_profile",
    "operator_shares",
    "operators",
    "output_kind",
    "package_domains",
    "parameters",
    "pareto_frontier",
    "parity",
    "peak_added",
    "percentile_interval",
    "permutation_test",
    "pipeline_stages",
    "plot_metric",
    "plot_pareto_frontier",
    "portable_factory",
    "precise_timer",
    "predicted_labels",
    "prepare",
    "prepare_for_static",
    "probe",
    "prune_units",
    "prune_weights",
    "python_peak",
    "quantization_params",
    "quantization_types",
    "quantization_verdict",
    "quantize",
    "quantize_dynamic_int8",
    "quantize_file",
    "quantize_static_int8",
    "quiet_log",
    "ran_backwards",
    "read_counter",
    "read_status",
    "recall_per_class",
    "refuse_bad_weights",
    "refuse_existing",
    "refuse_mixing",
    "regression_gate",
    "replicate",
    "report_sections",
    "required_runs",
    "reset_peak",
    "resident_growth",
    "resident_memory",
    "round_orders",
    "row_name",
    "rows_right",
    "run_fresh",
    "run_fresh_stages",
    "run_rows",
    "runs_for_percentile",
    "runs_to_decide",
    "runs_within",
    "saturating_matmul",
    "save_graph",
    "save_layers",
    "scale_unit",
    "seed_verdict",
    "session_call",
    "session_options",
    "session_starts",
    "sign_e_value",
    "sign_test",
    "softmax",
    "sqnr",
    "staircase",
    "study_accuracy",
    "study_batch",
    "study_claims",
    "study_decision",
    "study_energy",
    "study_gains",
    "study_memory",
    "study_requirements",
    "study_variants",
    "summary_rows",
    "system_info",
    "t_interval",
    "thread_settings",
    "throughput_and_bandwidth",
    "tidy_opsets",
    "time_breakdown",
    "timed_calls",
    "timer_overhead",
    "to_onnx",
    "tradeoff_study",
    "train",
    "tukey_outliers",
    "usable_cores",
    "vargha_delaney_a12",
    "warm_up",
    "weights",
    "welch_intervals",
    "welch_test",
    "wilcoxon_test",
    "wilson_interval",
    "without_arena",
    "write_text",
    "young_heap",
    "zipped_size",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tinybench' has no attribute {name!r}")
    return getattr(import_module(f"tinybench.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _Package(ModuleType):
    """A package in which importing a module does not hide the function of the same name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and _HOMES.get(name) == name):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

# Written by "autograder export" from modules/11_onnx/11_onnx.ipynb: edit the notebook, not this file.

"""Models in ONNX: conversion, sessions, parity checks, a NumPy baseline, and the time of operators and stages."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tinybench.accuracy import ParityResult, parity
from tinybench.latency import session_call
from tinybench.result import BenchmarkResult
from tinybench.support.basics.onnx_files import load_graph
from tinybench.support.basics.type_checks import check_kinds
from tinybench.support.engines.network_layers import other_ending, relu_layers
from tinybench.support.engines.operator_trace import OperatorProfile, node_durations, record_trace
from tinybench.support.engines.parity_rows import both_answers, likely_cause, row_gaps
from tinybench.support.engines.saved_conversion import save_converted
from tinybench.support.engines.sessions import fresh_options, load_session
from tinybench.support.engines.timed_stages import stage_results, warm_stages
from tinybench.support.rounds.checked_calls import Clock
from tinybench.support.rounds.input_notes import check_runs, describe_input


def operators(source: Any) -> dict[str, int]:
    """Return how often each operator occurs in a graph (see `load_graph`), in order of first use."""
    counts: dict[str, int] = {}
    for node in load_graph(source).graph.node:
        counts[node.op_type] = counts.get(node.op_type, 0) + 1
    return counts


def convert(model: Any, sample: Any) -> Any:
    """Return a fitted scikit-learn model as an ONNX graph that takes float32, without ZipMap.

    A classifier's outputs are the labels, then one array of probabilities. ZipMap would turn this array into
    dictionaries.

    Parameters
    ----------
    model
        A fitted classifier, regressor, transformer or pipeline.
    sample
        At least one row of its input, of shape (n, features), of any dtype.
    """
    import skl2onnx
    from sklearn.base import is_classifier

    row = np.asarray(sample)[:1]
    options = {"zipmap": False} if is_classifier(model) else None  # others do not know the option
    return skl2onnx.to_onnx(model, row.astype(np.float32), options=options)


def to_onnx(model: Any, sample: Any, path: str | Path, *, overwrite: bool = False) -> Path:
    """Convert a fitted scikit-learn model and save it as an ``.onnx`` file.

    Parameters
    ----------
    model, sample
        See `convert`.
    path
        Path of the new file.
    overwrite
        Whether an existing file may be replaced.

    Returns
    -------
    Path
        Path of the file. The file's metadata holds the class labels, if there are any.

    Raises
    ------
    FileExistsError
        If the file exists and `overwrite` is not set.
    TypeError
        If the model cannot be converted.
    ValueError
        If a weight is NaN or infinite.
    """
    return save_converted(convert, model, sample, path, overwrite)


def session_options(threads: int = 1, optimization: str = "all", trace: str | Path | None = None) -> Any:
    """Return options for an ONNX Runtime session. With these options, operators run one after another.

    Parameters
    ----------
    threads
        Threads inside one operator, a whole number of at least 1.
    optimization
        ``"off"``, ``"basic"``, ``"extended"`` or ``"all"``.
    trace
        Beginning of the path at which to write a profile; None for no profile.
    """
    options, level = fresh_options(threads, optimization)  # `level` is the runtime's value for `optimization`
    options.enable_profiling = trace is not None
    if trace is not None:
        options.profile_file_prefix = str(trace)
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = level
    return options


class OnnxModel:
    """A loaded ``.onnx`` file with fixed session options. All of tinybench accepts it as a model.

    Parameters
    ----------
    path
        The file.
    threads, optimization
        See `session_options`.
    profile
        Whether to write a trace of all runs, or the beginning of the path of that trace. `end_profiling` returns the
        full path. Profiling slows the model down, often by a factor of several.

    Attributes
    ----------
    name : str
        The file's name without its suffix.
    classes_ : numpy.ndarray
        Labels of the columns, if the file has them.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the runtime cannot load the file. The message contains the file's IR version and opset, which may be too new.
    """

    def __init__(
        self, path: str | Path, threads: int = 1, optimization: str = "all", profile: bool | str | Path = False
    ) -> None:
        check_kinds({"path": "str | Path", "optimization": "str"}, {"path": path, "optimization": optimization})
        self.path, self.threads, self.optimization = Path(path), threads, optimization
        self.name = self.path.stem
        trace = Path(tempfile.mkdtemp(), "trace") if profile is True else profile or None
        self.session = load_session(self.path, session_options(threads, optimization, trace))
        self._call = session_call(self.session)
        labels = self.session.get_modelmeta().custom_metadata_map.get("classes")
        if labels is not None:
            self.classes_ = np.array(json.loads(labels))

    def forward(self, X: Any) -> Any:
        """Return the model's last output. For a classifier, these are the probabilities.

        An array whose dtype is not that of the graph is cast first, which takes time in every call.
        """
        return self._call(X)

    def end_profiling(self) -> Path:
        """Stop the profile and return the path of the trace."""
        return Path(self.session.end_profiling())

    def __repr__(self) -> str:
        """Return a text with path, threads and optimisation level."""
        return f"OnnxModel({str(self.path)!r}, threads={self.threads}, optimization={self.optimization!r})"


def check_parity(model: Any, onnx_model: Any, X: Any, tolerance: float = 1e-4) -> ParityResult:
    """Compare the outputs of a converted model with the original's. Raise ValueError if they differ too much.

    Parameters
    ----------
    model, onnx_model
        The original and the converted model; see `as_callable`.
    X
        Rows to compare on, of shape (n, features): a few hundred rows, similar to the rows that the model gets in use.
    tolerance
        Largest difference of scores to accept.

    Returns
    -------
    ParityResult
        See `parity`: largest and mean difference, and the fraction of rows with the same label.

    Raises
    ------
    ValueError
        If a row differs by more than `tolerance`; the message names the row that differs most, as ``row 2``.
    """
    original, converted = both_answers(model, onnx_model, X)  # in one shape
    found = parity(original, converted)
    gaps = row_gaps(original, converted)
    worst = int(gaps.argmax())
    if gaps[worst] > tolerance:
        what = f"row {worst} differs most, by {gaps[worst]:.3g} (tolerance {tolerance:g})"
        raise ValueError(f"{what}; {likely_cause(found)}")
    return found


def numpy_baseline(model: Any) -> Callable[[Any], np.ndarray]:
    """Return a plain NumPy function that computes, in float32, what a fitted network computes.

    The function takes an array of shape (n, features). For a classifier, it returns probabilities of shape (n,
    classes); for a regressor, values of shape (n,) or (n, outputs).

    Parameters
    ----------
    model
        A fitted ``MLPClassifier`` or ``MLPRegressor`` with ReLU units. Any other model raises TypeError.
    """
    layers = relu_layers(model)  # pairs (W, b)
    kind = model.out_activation_  # "softmax", or another output activation

    def forward(X: Any) -> np.ndarray:
        a: np.ndarray = np.asarray(X, np.float32)
        for W, b in layers[:-1]:
            a = np.maximum(a @ W + b, 0)
        a = a @ layers[-1][0] + layers[-1][1]
        if kind != "softmax":
            return other_ending(a, kind)
        a = np.exp(a - a.max(axis=1, keepdims=True))  # the largest becomes 0, so that nothing overflows
        a /= a.sum(axis=1, keepdims=True)
        return a

    return forward


def operator_shares(events: Sequence[Mapping[str, Any]], skip_runs: int = 0) -> dict[str, float]:
    """Return the fraction of the time of all operators that each operator takes, the largest first.

    The time of a node is the median of its runs. The time of an operator is the sum over its nodes. Raises ValueError
    if no operator ran.

    Parameters
    ----------
    events, skip_runs
        Events of an ONNX Runtime trace, and the number of runs to leave out; see `node_durations`.
    """
    durations = node_durations(events, skip_runs)  # {("Gemm", "node 0"): [31, 29, …], …}: operator and node, µs
    times: dict[str, float] = {}
    for (operator, _), values in durations.items():
        times[operator] = times.get(operator, 0.0) + median(values)
    total = sum(times.values())
    return {operator: time / total for operator, time in sorted(times.items(), key=lambda item: -item[1])}


def operator_profile(
    onnx_model: OnnxModel, X: Any, runs: int = 50, warmup_runs: int = 10, trace: str | Path | None = None
) -> OperatorProfile:
    """Measure the fraction of the time that each operator takes, from a trace that ONNX Runtime writes.

    Parameters
    ----------
    onnx_model
        The model. It is loaded a second time with the same options, and with profiling.
    X
        One batch, of shape (n, features).
    runs, warmup_runs
        Number of runs that count, and of runs before them that do not count.
    trace
        Where to keep the trace, a ``.json`` file that opens at https://ui.perfetto.dev; None to drop it.

    Returns
    -------
    OperatorProfile

    Raises
    ------
    ValueError
        If a number of runs is not a whole number, or no operator is left to count.
    """
    check_runs("runs", runs, 1)
    check_runs("warmup_runs", warmup_runs, 0)
    kept = None if trace is None else Path(trace)

    def profiled(prefix: Path) -> OnnxModel:
        return OnnxModel(onnx_model.path, onnx_model.threads, onnx_model.optimization, prefix)

    shares = operator_shares(record_trace(profiled, X, warmup_runs + runs, kept), warmup_runs)
    return OperatorProfile(shares, describe_input(X)["batch_size"], runs, kept)


def time_breakdown(
    pipeline: Any, X: Any, runs: int = 50, warmup_runs: int = 5, clock: Clock = time.perf_counter
) -> dict[str, BenchmarkResult]:
    """Measure the time that each stage takes in calls of a whole pipeline.

    Returns the seconds of each stage by name, and ``total``, the sum of the stages in each call. The time of each stage
    includes one reading of the clock.

    Parameters
    ----------
    pipeline
        A pipeline as in `pipeline_stages`, or a mapping of stage names to functions. Each function is called with the
        result of the function before it.
    X
        One batch, of shape (n, features).
    runs, warmup_runs
        Number of measured calls, and minimum number of warm-up calls before them.
    """
    stages = warm_stages(pipeline, X, runs, warmup_runs, clock)
    times: dict[str, list[float]] = {name: [] for name in [*stages, "total"]}  # to be filled, a value for each run
    for _ in range(runs):
        value, marks = X, [clock()]
        for stage in stages.values():
            value = stage(value)
            marks.append(clock())
        for name, start, end in zip(stages, marks, marks[1:], strict=False):
            times[name].append(end - start)
        times["total"].append(marks[-1] - marks[0])
    return stage_results(times, X, warmup_runs)

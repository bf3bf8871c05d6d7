# Written by "autograder export" from modules/11_onnx/11_onnx.ipynb: edit the notebook, not this file.

"""Models in ONNX: conversion, sessions, parity checks, a NumPy baseline, and the time of operators and stages."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tinybench.accuracy import ParityResult, parity
from tinybench.latency import as_callable, session_call, warm_up
from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.onnx_files import load_graph, refuse_existing, save_graph, tidy_opsets
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import facts
from tinybench.support.basics.type_checks import check_kinds, describe
from tinybench.support.rounds.checked_calls import Clock
from tinybench.support.rounds.input_notes import check_runs, describe_input


def operators(source: Any) -> dict[str, int]:
    """Return how often each operator occurs in a graph (see `load_graph`), in order of first use."""
    counts: dict[str, int] = {}
    for node in load_graph(source).graph.node:
        counts[node.op_type] = counts.get(node.op_type, 0) + 1
    return counts


def weights(source: Any) -> dict[str, np.ndarray]:
    """Return all numbers that a model contains (see `load_graph`), as arrays by name.

    Initializers keep their names, shapes and dtypes. Trees and linear classifiers store their numbers as lists of
    floats among a node's attributes. These are named ``"node name/attribute name"``.
    """
    from onnx import numpy_helper

    graph = load_graph(source).graph
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.floats:
                found[f"{node.name}/{attribute.name}"] = np.array(attribute.floats, np.float32)
    return found


def refuse_bad_weights(source: Any) -> None:
    """Raise ValueError if a number in a model (see `load_graph`) is NaN or infinite.

    The message contains the name of the tensor, and how many of its values are bad.
    """
    for name, values in weights(source).items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            bad = int((~np.isfinite(values)).sum())
            raise ValueError(f"{bad} of {values.size} values in {name!r} are NaN or infinite: the training went wrong")


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
    if not callable(getattr(model, "fit", None)):
        raise TypeError(f"model is {describe(model)}; it must be a fitted scikit-learn model")
    path = Path(path)
    refuse_existing(path, overwrite)
    try:
        graph = convert(model, sample)
    except NotImplementedError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise TypeError(
            f"skl2onnx cannot convert {type(model).__name__}: {reason} … Keep that step in Python, or use another model"
        ) from None
    tidy_opsets(graph)
    refuse_bad_weights(graph)
    if hasattr(model, "classes_"):
        graph.metadata_props.add(key="classes", value=json.dumps(np.asarray(model.classes_).tolist()))
    save_graph(graph, path)
    return path


def fresh_options(threads: int, optimization: str) -> tuple[Any, Any]:
    """Return default options for an ONNX Runtime session, and the runtime's own value for the level `optimization`.

    Raises ValueError if `threads` is not a whole number of at least 1, or `optimization` is not a known level.
    """
    import onnxruntime

    levels = onnxruntime.GraphOptimizationLevel
    known = {
        "off": levels.ORT_DISABLE_ALL,
        "basic": levels.ORT_ENABLE_BASIC,
        "extended": levels.ORT_ENABLE_EXTENDED,
        "all": levels.ORT_ENABLE_ALL,
    }
    check_runs("threads", threads, 1)
    if optimization not in known:
        raise ValueError(f"optimization is {optimization!r}; it must be one of {', '.join(known)}")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    return options, known[optimization]


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
    options, level = fresh_options(threads, optimization)
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = level
    if trace is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(trace)
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


def new_session(source: str | bytes, options: Any = None) -> Any:
    """Return an ONNX Runtime session that runs on the CPU, by default with one thread.

    `source` is the path of a model, or its bytes.
    """
    import onnxruntime

    return onnxruntime.InferenceSession(source, options or session_options(), providers=["CPUExecutionProvider"])


def load_session(path: Path, options: Any) -> Any:
    """Return an ONNX Runtime session for a file.

    Raise FileNotFoundError if the file does not exist, and ValueError if it cannot be loaded.
    """
    import onnxruntime

    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; to_onnx writes one")
    try:
        return new_session(str(path), options)
    except Exception as error:
        graph = load_graph(path)
        opsets = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in graph.opset_import)
        raise ValueError(
            f"ONNX Runtime {onnxruntime.__version__} cannot load {path}, which has IR version {graph.ir_version} and "
            f"opset {opsets}; if one is too new, export with IR 10 and opset 21. It says: {str(error)[-300:]}"
        ) from None


def both_answers(model: Any, onnx_model: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the outputs of both models for all rows.

    If both outputs have the same size, the second is reshaped to the shape of the first.
    """
    rows = np.asarray(X)
    first, second = np.asarray(as_callable(model)(rows)), np.asarray(as_callable(onnx_model)(rows))
    return first, second.reshape(first.shape) if second.size == first.size else second


def row_gaps(original: np.ndarray, converted: np.ndarray) -> np.ndarray:
    """Return, for each row, the largest difference between the scores of two models.

    If the outputs are labels, the difference of a row is 0 if its two labels agree, else infinity.
    """
    if parity(original, converted).max_difference is None:
        return np.where(original == converted, 0.0, np.inf)
    gaps: np.ndarray = np.abs(original.astype(float) - converted.astype(float)).reshape(len(original), -1).max(axis=1)
    return gaps


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
    original, converted = both_answers(model, onnx_model, X)
    gaps = row_gaps(original, converted)
    found = parity(original, converted)
    worst = int(gaps.argmax())
    if gaps[worst] > tolerance:
        raise ValueError(
            f"row {worst} differs most, by {gaps[worst]:.3g} (tolerance {tolerance:g}); {found.label_agreement:.2%} "
            f"of {found.rows} rows keep their label. Look for a missing preprocessing step or a float64 model"
        )
    return found


def relu_layers(model: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the weights and biases of each layer of a fitted multilayer perceptron with ReLU.

    Raise TypeError for any other model.
    """
    if not hasattr(model, "coefs_") or getattr(model, "activation", "") != "relu":
        raise TypeError(f"{type(model).__name__} is no fitted multilayer perceptron with ReLU; there is no NumPy twin")
    layers = [
        (np.ascontiguousarray(W, np.float32), np.asarray(b, np.float32))
        for W, b in zip(model.coefs_, model.intercepts_, strict=True)
    ]
    if model.out_activation_ == "logistic" and len(layers[-1][1]) > 1:
        raise TypeError("a multi-label network has no NumPy twin here")
    return layers


def other_ending(a: np.ndarray, kind: str) -> np.ndarray:
    """Return the outputs of a network that does not end with softmax, from the values `a` of its output layer.

    The outputs are two probabilities per row if `kind` is ``"logistic"``, else the values of a regressor.
    """
    if kind == "logistic":
        p = 0.5 + 0.5 * np.tanh(a / 2)  # never overflows
        return np.hstack([1 - p, p])
    return a[:, 0] if a.shape[1] == 1 else a


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
    if no operator is left.

    Parameters
    ----------
    events
        Events of an ONNX Runtime trace, in any order.
    skip_runs
        Number of runs to skip at the beginning. Operators that start before run number `skip_runs` (counted from 0) are
        left out.
    """
    starts = sorted(event["ts"] for event in events if event.get("name") == "model_run")
    begin = starts[skip_runs] if skip_runs < len(starts) else (float("inf") if skip_runs else 0)
    durations: dict[tuple[str, str], list[float]] = {}
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time") and event["ts"] >= begin:
            durations.setdefault((event["args"]["op_name"], event["name"]), []).append(event["dur"])
    times: dict[str, float] = {}
    for (name, _), values in durations.items():
        times[name] = times.get(name, 0.0) + median(values)
    total = sum(times.values())
    if not total:
        raise ValueError(f"no operator ran after the first {skip_runs} runs; record more runs")
    return {name: time / total for name, time in sorted(times.items(), key=lambda item: -item[1])}


@dataclass(frozen=True)
class OperatorProfile:
    """The fraction of the time that each operator takes, the largest first. The profiler distorts absolute times."""

    shares: dict[str, float]
    batch_size: int
    runs: int
    trace: Path | None

    __repr__ = short_repr

    def __str__(self) -> str:
        """Return one line for each operator."""
        lines = [f"{name:28}{share:7.1%}" for name, share in self.shares.items()]
        return "\n".join([f"shares of operators, batch {self.batch_size}, {number_of(self.runs, 'run')}", *lines])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        caption = f"share of the operators' time, batch {self.batch_size}, {number_of(self.runs, 'run')}"
        table = facts({name: f"{share:.1%}" for name, share in self.shares.items()}, caption)
        return {"text/plain": str(self), "text/html": table.html()}


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
    with tempfile.TemporaryDirectory() as folder:
        profiled = OnnxModel(onnx_model.path, onnx_model.threads, onnx_model.optimization, Path(folder, "trace"))
        for _ in range(warmup_runs + runs):
            profiled.forward(X)
        written = profiled.end_profiling()
        shares = operator_shares(json.loads(written.read_text(encoding="utf-8")), warmup_runs)
        if trace is not None:
            Path(trace).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(written, trace)
    return OperatorProfile(shares, describe_input(X)["batch_size"], runs, None if trace is None else Path(trace))


def pipeline_stages(pipeline: Any) -> dict[str, Callable[[Any], Any]]:
    """Return the stages of a fitted scikit-learn classifier pipeline as functions: preprocess, model and postprocess.

    ``preprocess`` runs all steps but the last (for a classifier without a pipeline, it does nothing). ``model`` returns
    the probabilities. ``postprocess`` returns the label of the largest probability in each row. Raises TypeError if the
    last step has no ``predict_proba``.
    """
    steps = [step for _, step in getattr(pipeline, "steps", [("model", pipeline)])]
    model = steps[-1]
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"{type(model).__name__} has no predict_proba; pass three functions instead of the pipeline")
    transformers = [step for step in steps[:-1] if step not in (None, "passthrough")]

    def preprocess(X: Any) -> Any:
        for step in transformers:
            X = step.transform(X)
        return X

    def postprocess(scores: Any) -> Any:
        return model.classes_[np.argmax(scores, axis=1)]

    return {"preprocess": preprocess, "model": model.predict_proba, "postprocess": postprocess}


def warm_stages(pipeline: Any, X: Any, runs: int, warmup_runs: int, clock: Clock) -> dict[str, Callable[[Any], Any]]:
    """Warm up a whole pipeline. Return its stages as functions by name.

    `pipeline` is a scikit-learn pipeline, or a mapping that already holds the stages.
    """
    check_runs("runs", runs, 1)
    check_runs("warmup_runs", warmup_runs, 0)
    stages = dict(pipeline) if isinstance(pipeline, Mapping) else pipeline_stages(pipeline)

    def whole(x: Any) -> Any:
        for stage in stages.values():
            x = stage(x)
        return x

    if warmup_runs:
        warm_up(whole, X, min_calls=warmup_runs, clock=clock)
    return stages


def stage_results(times: Mapping[str, list[float]], X: Any, warmup_runs: int) -> dict[str, BenchmarkResult]:
    """Return the times of each stage as results, with one value in seconds for each call."""
    shared = {**describe_input(X), "warmup_runs": warmup_runs, "order": "stages of one call"}
    return {
        name: BenchmarkResult("latency", values, {**shared, "stage": name}, unit="s") for name, values in times.items()
    }


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

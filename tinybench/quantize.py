# Written by "autograder export" from modules/12_quantize/12_quantize.ipynb: edit the notebook, not this file.

"""Eight bits: quantisation by hand, with ONNX Runtime, and the study of what it gains and costs."""

from __future__ import annotations

import html
import io
import json
import logging
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tinybench.accuracy import difference_interval, mcnemar, recall_per_class, wilson_interval
from tinybench.benchmark import system_info
from tinybench.comparison import Comparison, compare
from tinybench.energy import best_meter, energy_reading, idle_power
from tinybench.latency import Call, as_input, measure_latencies, round_orders
from tinybench.memory import memory_pressure, memory_stages, model_size
from tinybench.onnx import (
    OnnxModel,
    check_parity,
    integer_products,
    load_graph,
    load_session,
    numpy_baseline,
    operator_profile,
    operators,
    refuse_bad_weights,
    refuse_existing,
    save_graph,
    session_options,
    tidy_opsets,
    to_onnx,
    weights,
)
from tinybench.pareto import Requirements
from tinybench.result import BenchmarkResult, json_safe
from tinybench.suite import csv_text, write_text


@dataclass(frozen=True)
class QuantParams:
    """A grid: which real numbers the integers stand for.

    Attributes
    ----------
    scale : numpy.ndarray
        Step of the grid; of shape () for one scale, else of a shape that broadcasts against the tensor.
    zero_point : numpy.ndarray
        The integer that stands for 0, int64, of the same shape.
    bits : int
        Width of the integers.
    signed : bool
        Whether they are symmetric around 0, or start at 0.
    """

    scale: np.ndarray
    zero_point: np.ndarray
    bits: int = 8
    signed: bool = False

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest integer."""
        return (1 - 2 ** (self.bits - 1), 2 ** (self.bits - 1) - 1) if self.signed else (0, 2**self.bits - 1)


def check_tensor(x: Any, bits: int = 8) -> np.ndarray:
    """Return a tensor as float64, or raise ValueError where it cannot be quantised."""
    tensor = np.asarray(x, np.float64)
    if not tensor.size or not np.isfinite(tensor).all():
        raise ValueError("the tensor is empty, or holds NaN or infinite values: there is no range to put on a grid")
    if not 2 <= bits <= 16:
        raise ValueError(f"bits is {bits}; a grid has 2 to 16 bits")
    return tensor


def quantization_params(x: Any, symmetric: bool = False, bits: int = 8, axis: int | None = None) -> QuantParams:
    """Return the grid that spans a tensor.

    Parameters
    ----------
    x
        Finite numbers.
    symmetric
        Zero point 0 and signed integers, as for weights; else affine and unsigned, as for activations.
    bits
        Width of the integers, 2 to 16.
    axis
        The axis of the channels, each of which gets its own scale; None for one scale.

    Returns
    -------
    QuantParams

    Raises
    ------
    ValueError
        If there are no numbers, one is not finite, or `bits` is out of range.

    References
    ----------
    Jacob and others, "Quantization and training of neural networks for efficient integer-arithmetic-only inference",
    CVPR 2018.
    """
    tensor = check_tensor(x, bits)
    others = tuple(i for i in range(tensor.ndim) if axis is not None and i != axis % tensor.ndim)
    reduce: dict[str, Any] = {"axis": others, "keepdims": True} if axis is not None else {}
    if symmetric:
        scale = np.abs(tensor).max(**reduce) / (2 ** (bits - 1) - 1)
        low = np.zeros_like(scale)
    else:
        low = np.minimum(tensor.min(**reduce), 0)
        scale = (np.maximum(tensor.max(**reduce), 0) - low) / (2**bits - 1)
    scale = np.where(scale > 0, scale, 1.0)
    zero_point = np.rint(-low / scale).astype(np.int64)
    return QuantParams(scale, zero_point, bits, symmetric)


def quantize(x: Any, params: QuantParams) -> np.ndarray:
    """Return the integers nearest to real numbers.

    Parameters
    ----------
    x
        Real numbers; beyond the grid they become its ends.
    params
        The grid.

    Returns
    -------
    numpy.ndarray
        Integers, int8 or uint8 where the width is at most 8 bits, else int32. Halves round to even, as in ONNX.
    """
    low, high = params.limits
    steps = np.rint(np.asarray(x, np.float64) / params.scale) + params.zero_point
    kind = np.int32 if params.bits > 8 else np.int8 if params.signed else np.uint8
    integers: np.ndarray = np.clip(steps, low, high).astype(kind)
    return integers


def dequantize(q: Any, params: QuantParams) -> np.ndarray:
    """Return the real numbers, in float64, that integers stand for."""
    numbers: np.ndarray = (np.asarray(q, np.int64) - params.zero_point) * params.scale
    return numbers


def sqnr(x: Any, params: QuantParams) -> float:
    """Return the ratio of signal to quantisation noise, in dB; infinite where nothing is lost.

    Parameters
    ----------
    x
        Real numbers, not all 0.
    params
        The grid to put them on.
    """
    tensor = check_tensor(x)
    noise = float(np.sum((tensor - dequantize(quantize(tensor, params), params)) ** 2))
    return 10 * float(np.log10(np.sum(tensor**2) / noise)) if noise else float("inf")


def int8_matmul(a: np.ndarray, a_params: QuantParams, w: np.ndarray, w_params: QuantParams) -> np.ndarray:
    """Return the product of two quantised matrices, computed in integers.

    Parameters
    ----------
    a
        Integers of shape (n, k), with one scale and zero point.
    a_params
        Their grid.
    w
        Integers of shape (k, m), with one scale, or one for each column.
    w_params
        Their grid.

    Returns
    -------
    numpy.ndarray
        Real numbers of shape (n, m), float64. The sums are INT32.
    """
    left = a.astype(np.int32) - a_params.zero_point.astype(np.int32)
    right = w.astype(np.int32) - w_params.zero_point.astype(np.int32)
    sums = left @ right
    product: np.ndarray = sums * (a_params.scale * w_params.scale)
    return product


_INTEGER_OPERATORS = frozenset(
    [
        "ConvInteger",
        "DynamicQuantizeMatMul",
        "MatMulInteger",
        "MatMulIntegerToFloat",
        "QGemm",
        "QLinearConv",
        "QLinearMatMul",
    ]
)
_LINEAR_OPERATORS = frozenset(["Conv", "FusedGemm", "FusedMatMul", "Gemm", "MatMul"])


def integer_operators(source: Any) -> dict[str, int]:
    """Return the products that a graph computes in integers, activations included, with their numbers.

    Parameters
    ----------
    source
        An ONNX graph; see `load_graph`.

    Returns
    -------
    dict of str to int
        By operator; empty where there is none.
    """
    graph = load_graph(source).graph
    made_by = {output: node for node in graph.node for output in node.output}
    counts: dict[str, int] = {}

    def maker(name: str) -> Any:
        """Return the node that makes a tensor, None for weights and inputs."""
        return made_by.get(name)

    for node in graph.node:
        real = node.op_type in _INTEGER_OPERATORS
        if node.op_type in _LINEAR_OPERATORS:
            first, second = (maker(name) for name in node.input[:2])
            both = all(n is not None and n.op_type == "DequantizeLinear" for n in (first, second))
            before = maker(first.input[0]) if both else None
            real = before is not None and before.op_type == "QuantizeLinear"
        if real:
            counts[node.op_type] = counts.get(node.op_type, 0) + 1
    return counts


def quantization_verdict(original: Any, quantized: Any) -> str:
    """Return in a few words what quantising has done.

    Parameters
    ----------
    original, quantized
        ONNX graphs; see `load_graph`.

    Returns
    -------
    str
        ``"3 integer operators"``, ``"no integer operators: identical graph"`` if operators and numbers are as before,
        or ``"no integer operators: only the weights are stored in fewer bits"``.
    """
    count = sum(integer_operators(quantized).values())
    if count:
        return f"{count} integer operators"
    before, after = weights(original), weights(quantized)
    same = operators(original) == operators(quantized) and before.keys() == after.keys()
    if same and all(np.array_equal(before[name], after[name]) for name in before):
        return "no integer operators: identical graph"
    return "no integer operators: only the weights are stored in fewer bits"


@contextmanager
def quiet_log() -> Iterator[None]:
    """Keep the advice and reports of ONNX Runtime's tools out of log and output."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def quantize_file(
    path: str | Path, out: str | Path | None, overwrite: bool, kind: str, work: Callable[[Path, Path], Any]
) -> Path:
    """Have `work` quantise a copy of a model, check what came out, and put it in its place.

    Warns if it has no integer operators. See `quantize_dynamic_int8` for the errors.
    """
    path = Path(path)
    out = path.with_name(f"{path.stem}-int8-{kind}.onnx") if out is None else Path(out)
    refuse_existing(out, overwrite)
    graph = load_graph(path)
    refuse_bad_weights(graph)
    tidy_opsets(graph)
    with tempfile.TemporaryDirectory() as folder, quiet_log():
        source, target = Path(folder, "original.onnx"), Path(folder, "quantized.onnx")
        source.write_bytes(graph.SerializeToString())
        try:
            work(source, target)
        except NotImplementedError:
            raise
        except Exception as error:
            raise ValueError(f"ONNX Runtime cannot quantise {path}: {str(error)[:300]}") from error
        save_graph(load_graph(target), out)
    verdict = quantization_verdict(path, out)
    if verdict.startswith("no"):
        warnings.warn(f"{out.name}: {verdict}; its latency is that of the original", stacklevel=3)
    return out


def quantization_types(activation_type: str, weight_type: str, reduce_range: bool | None) -> tuple[Any, Any, bool]:
    """Return ONNX Runtime's names of two types, and whether weights keep 7 bits only.

    If that is left open (None), they do where this machine's product of the two types saturates; see
    `integer_products`.

    Raises
    ------
    ValueError
        If a type has another name, or ONNX Runtime does not quantise to this pair.
    """
    from onnxruntime.quantization import QuantType

    kinds = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}
    for what, name in (("activation_type", activation_type), ("weight_type", weight_type)):
        if name not in kinds:
            raise ValueError(f"{what} is {name!r}; it must be one of {', '.join(kinds)}")
    if (activation_type, weight_type) == ("int8", "uint8"):
        raise ValueError("ONNX Runtime has no int8 activations with uint8 weights; take int8 weights")
    if reduce_range is None:
        reduce_range = integer_products()[f"{activation_type} × {weight_type}"] == "saturating"
    return kinds[activation_type], kinds[weight_type], reduce_range


def quantize_dynamic_int8(
    path: str | Path,
    out: str | Path | None = None,
    *,
    weight_type: str = "int8",
    per_channel: bool = False,
    reduce_range: bool | None = None,
    overwrite: bool = False,
) -> Path:
    """Quantise a model to INT8: weights now, activations (to uint8) in every call.

    Parameters
    ----------
    path
        An ``.onnx`` file in float32.
    out
        Where to save the result; by default beside it, as ``name-int8-dynamic.onnx``.
    weight_type
        ``"int8"`` or ``"uint8"``.
    per_channel
        One scale for each column of a matrix instead of one for all.
    reduce_range
        Keep 7 bits of each weight, so that no processor's product saturates; by default only where this machine's does
        (`integer_products`). Set it for a file that also goes to other machines.
    overwrite
        Whether a file that is there may be replaced.

    Returns
    -------
    Path
        Of the quantised file.

    Warns
    -----
    UserWarning
        If it has no integer operators, as with trees.

    Raises
    ------
    FileNotFoundError, FileExistsError
        If there is no model, or already a result.
    ValueError
        If it is no ONNX model, a weight is NaN or infinite, a type has another name, or ONNX Runtime cannot quantise
        it.
    """
    from onnxruntime.quantization import quantize_dynamic

    _, kind, reduce_range = quantization_types("uint8", weight_type, reduce_range)

    def work(source: Path, target: Path) -> None:
        quantize_dynamic(source, target, weight_type=kind, per_channel=per_channel, reduce_range=reduce_range)

    return quantize_file(path, out, overwrite, "dynamic", work)


def saturating_matmul(a: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return a product of integers as processors with AVX2 but without VNNI make it in ONNX Runtime.

    Parameters
    ----------
    a
        uint8 of shape (n, k).
    w
        int8 of shape (k, m).

    Returns
    -------
    numpy.ndarray
        int64 of shape (n, m): products 0 and 1, 2 and 3, … along k are added in pairs, each pair clipped to 16 bits;
        the sum of the pairs is exact. Where k is odd, the last product stands alone.

    References
    ----------
    Intel, "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2, PMADDUBSW.
    """
    left, right = a.astype(np.int64), w.astype(np.int64)
    sums = np.zeros((len(a), w.shape[1]), np.int64)
    for k in range(0, a.shape[1], 2):
        sums += np.clip(left[:, k : k + 2] @ right[k : k + 2], -(2**15), 2**15 - 1)
    return sums


def clipped_share(x: Any, params: QuantParams) -> float:
    """Return the share of numbers that a grid clips: those beyond its ends by more than half a step.

    Parameters
    ----------
    x
        Real numbers.
    params
        The grid.
    """
    low, high = (dequantize(np.array(limit), params) for limit in params.limits)
    tensor = check_tensor(x)
    return float(np.mean((tensor < low - params.scale / 2) | (tensor > high + params.scale / 2)))


class CalibrationRows:
    """Hands calibration rows to ONNX Runtime, batch by batch.

    Parameters
    ----------
    rows
        Array of shape (n, features).
    name
        Name of the model's input.
    batch
        Rows in each batch; the last may be shorter.
    """

    def __init__(self, rows: np.ndarray, name: str, batch: int = 64) -> None:
        self.rows, self.name, self.batch, self.start = rows, name, batch, 0

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Return the next batch as ``{name: rows}`` in float32, None after the last."""
        rows = self.rows[self.start : self.start + self.batch]
        self.start += self.batch
        return {self.name: np.asarray(rows, np.float32)} if len(rows) else None


def quantize_static_int8(
    path: str | Path,
    calibration: Any,
    out: str | Path | None = None,
    *,
    method: str = "minmax",
    activation_type: str = "uint8",
    weight_type: str = "int8",
    per_channel: bool = False,
    reduce_range: bool | None = None,
    check: Any = None,
    overwrite: bool = False,
) -> Path:
    """Quantise a model to INT8: weights, and activations by ranges from calibration data.

    Parameters
    ----------
    path
        An ``.onnx`` file in float32.
    calibration
        Rows that look like those in use, of shape (n, features); a few hundred.
    out
        Where to save the result; by default beside it, as ``name-int8-static.onnx``.
    method
        Which ranges to take: ``"minmax"``; ``"percentile"``, which gives up 0.001 % at the ends; or ``"entropy"``,
        which loses least of the values' distribution.
    activation_type, weight_type
        ``"uint8"`` or ``"int8"``; not int8 activations with uint8 weights.
    per_channel, reduce_range
        See `quantize_dynamic_int8`.
    check
        Rows in use, to measure on them how much the calibrated ranges clip.
    overwrite
        Whether a file that is there may be replaced.

    Returns
    -------
    Path
        Of the quantised file, in QDQ form. Only matrix products and ReLU are quantised.

    Warns
    -----
    UserWarning
        If there are no integer operators, or more than 1 % of a tensor's values are clipped on the rows of `check`.

    Raises
    ------
    FileNotFoundError, FileExistsError
        If there is no model, or already a result.
    ValueError
        If the calibration data has another shape than the input or is not finite, the method or a type has another
        name, a weight is NaN or infinite, or ONNX Runtime cannot quantise the model.

    References
    ----------
    Migacz, "8-bit inference with TensorRT", GPU Technology Conference 2017: ranges by entropy.
    """
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    methods = {
        "minmax": CalibrationMethod.MinMax,
        "percentile": CalibrationMethod.Percentile,
        "entropy": CalibrationMethod.Entropy,
    }
    if method not in methods:
        raise ValueError(f"method is {method!r}; it must be one of {', '.join(methods)}")
    activations, kind, reduce_range = quantization_types(activation_type, weight_type, reduce_range)
    name, rows = calibration_input(path, calibration)

    def work(source: Path, target: Path) -> None:
        merged = source.with_name("merged.onnx")
        try:  # merging MatMul and Add into Gemm saves a step, but does not know every operator of scikit-learn
            quant_pre_process(source, merged, skip_symbolic_shape=True)
        except Exception:
            merged = source
        prepare_for_static(merged)
        quantize_static(
            merged,
            target,
            CalibrationRows(rows, name),
            quant_format=QuantFormat.QDQ,
            activation_type=activations,
            weight_type=kind,
            per_channel=per_channel,
            reduce_range=reduce_range,
            op_types_to_quantize=["Gemm", "MatMul", "Relu"],
            calibrate_method=methods[method],
        )

    made = quantize_file(path, out, overwrite, "static", work)
    if check is not None:
        tensor, share = max(clipping_shares(made, check).items(), key=lambda item: item[1], default=("", 0.0))
        if share > 0.01:
            warnings.warn(
                f"{made.name}: the calibrated range clips {share:.0%} of the values of {tensor!r} on the rows in use; "
                "calibrate with rows of the same scale",
                stacklevel=2,
            )
    return made


def calibration_input(path: str | Path, calibration: Any) -> tuple[str, np.ndarray]:
    """Return the name of a model's input, and rows for it; raise ValueError where they do not fit."""
    rows = np.asarray(as_input(calibration), np.float32)
    if not np.isfinite(rows).all():
        raise ValueError("the calibration data holds NaN or infinite values")
    graph = load_graph(path).graph
    constants = {tensor.name for tensor in graph.initializer}
    node = next(node for node in graph.input if node.name not in constants)
    wanted = [axis.dim_value for axis in node.type.tensor_type.shape.dim]
    if rows.ndim != len(wanted) or any(w and w != got for w, got in zip(wanted[1:], rows.shape[1:], strict=False)):
        shape = ", ".join(["n", *(str(w or "any") for w in wanted[1:])])
        raise ValueError(f"the calibration data has shape {rows.shape}; the input {node.name!r} takes ({shape})")
    return str(node.name), rows


def probe(model: Any, tensors: Iterable[str]) -> Any:
    """Return a session of a graph that also gives out the named inner tensors."""
    probed = load_graph(model.SerializeToString())
    for tensor in {*tensors} - {output.name for output in probed.graph.output}:
        probed.graph.output.add(name=tensor)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "probe.onnx")
        save_graph(probed, file)
        return load_session(file, session_options(optimization="off"))


def prepare_for_static(path: Path) -> None:
    """Write the type of each inner tensor of floats into a file, and its biases in one dimension.

    ONNX Runtime quantises no activation whose type it cannot infer, and that is all that comes behind an operator from
    outside ONNX's own domain, such as the scaler of scikit-learn. And it stumbles over biases of shape (1, n) where
    each column has its own scale.
    """
    from onnx import TensorProto, helper

    model = load_graph(path)
    biases = {node.input[2] for node in model.graph.node if node.op_type == "Gemm" and len(node.input) > 2}
    for tensor in model.graph.initializer:
        if tensor.name in biases and len(tensor.dims) == 2 and tensor.dims[0] == 1:
            del tensor.dims[0]
    known = {value.name for value in [*model.graph.value_info, *model.graph.output]}
    inner = [name for node in model.graph.node for name in node.output if name and name not in known]
    for found in probe(model, inner).get_outputs():
        if found.name in inner and found.type == "tensor(float)":
            model.graph.value_info.append(helper.make_tensor_value_info(found.name, TensorProto.FLOAT, None))
    save_graph(model, path)


def clipping_shares(path: str | Path, X: Any) -> dict[str, float]:
    """Return for each activation that a static model quantises, which share of its values the grid clips.

    Where the grid of an inner tensor begins at 0 it does the work of a ReLU, and values below 0 do not count.

    Parameters
    ----------
    path
        A model in QDQ form.
    X
        Rows in use, of shape (n, features).

    Returns
    -------
    dict of str to float
        By name of the tensor; empty for a model without such nodes.
    """
    model = load_graph(path)
    numbers = weights(model)
    nodes = [n for n in model.graph.node if n.op_type == "QuantizeLinear" and n.input[0] not in numbers]
    inner = [n.input[0] for n in nodes if n.input[0] not in {i.name for i in model.graph.input}]
    if not nodes:
        return {}
    session, rows = probe(model, inner), np.asarray(X, np.float32)
    feed = session.get_inputs()[0].name
    values = dict(zip(inner, session.run(inner, {feed: rows}) if inner else [], strict=True)) | {feed: rows}
    shares = {}
    for node in nodes:
        scale, zero = numbers[node.input[1]], numbers[node.input[2]]
        grid = QuantParams(scale.astype(float), zero.astype(np.int64), 8 * zero.itemsize, zero.dtype.kind == "i")
        found = values[node.input[0]]
        is_relu = node.input[0] in inner and int(grid.zero_point) == grid.limits[0]
        shares[str(node.input[0])] = clipped_share(np.maximum(found, 0) if is_relu else found, grid)
    return shares


def int8_pays(
    loss_ci: tuple[float, float], ratio_ci: tuple[float, float], max_loss: float = 0.01, min_gain: float = 0.20
) -> str:
    """Apply the rule: INT8 pays if accuracy falls by less than `max_loss` and latency by more than `min_gain`.

    Parameters
    ----------
    loss_ci
        Interval of accuracy of FP32 minus accuracy of INT8, as fractions.
    ratio_ci
        Interval of time of INT8 over time of FP32.
    max_loss, min_gain
        The limits, as fractions.

    Returns
    -------
    str
        ``"pays"``, ``"does not pay"`` or ``"undecided"``.
    """
    if loss_ci[1] < max_loss and ratio_ci[1] < 1 - min_gain:
        return "pays"
    if loss_ci[0] >= max_loss or ratio_ci[0] >= 1 - min_gain:
        return "does not pay"
    return "undecided"


def claim_verdict(interval: tuple[float, float], low: float, high: float) -> str:
    """Set the interval of a measurement against a claimed range.

    Returns
    -------
    str
        ``"as claimed"`` if the interval lies within the range, ``"more than claimed"`` or ``"less than claimed"`` if it
        lies wholly above or below it, else ``"cannot tell"``.
    """
    if low <= interval[0] and interval[1] <= high:
        return "as claimed"
    if interval[0] > high:
        return "more than claimed"
    return "less than claimed" if interval[1] < low else "cannot tell"


def throughput_and_bandwidth(latency: float, batch_size: int, weight_bytes: int, row_bytes: int) -> tuple[float, float]:
    """Return rows a second, and effective bandwidth in bytes a second.

    Parameters
    ----------
    latency
        Seconds of one call with the whole batch.
    batch_size
        Rows in the batch.
    weight_bytes
        Bytes of the model, read once in a call.
    row_bytes
        Bytes of input and output of one row.

    Returns
    -------
    tuple of float
        ``(throughput, bandwidth)``. The bandwidth is a lower bound: what is read again does not count.
    """
    return batch_size / latency, (weight_bytes + batch_size * row_bytes) / latency


SKLEARN, NUMPY, FP32 = "scikit-learn", "NumPy", "ONNX FP32"
DYNAMIC, STATIC, PER_CHANNEL = "INT8 dynamic", "INT8 static", "INT8 dynamic, per channel"
_FULL_RANGE = {DYNAMIC: "INT8 dynamic, full range", PER_CHANNEL: "INT8 dynamic, per channel, full range"}


@dataclass(frozen=True)
class Variant:
    """One form of a model in a study.

    Attributes
    ----------
    call : callable
        Function of an array.
    file : Path
        What is stored of it.
    precision : str
        Type of its arithmetic.
    note : str
        ``"3 integer operators"`` and the like for INT8, else empty.
    saturates : bool
        Whether its products saturate on this machine; see `integer_products`.
    """

    call: Call
    file: Path
    precision: str
    note: str = ""
    saturates: bool = False

    @property
    def fake(self) -> bool:
        """Whether it is called INT8 and computes no product in integers."""
        return self.note.startswith("no")


def load_variant(path: str) -> Any:
    """Load what a study saved, an ``.onnx`` file or a scikit-learn model, in a process that has imported nothing."""
    if path.endswith(".onnx"):
        from tinybench.onnx import OnnxModel

        return OnnxModel(path)
    import joblib  # type: ignore[import-untyped]

    return joblib.load(path)


def study_variants(
    model: Any, X: np.ndarray, calibration: np.ndarray, folder: Path, threads: int, notes: list[str]
) -> dict[str, Variant]:
    """Return all forms of a model; what cannot be made is left out and noted.

    Parameters
    ----------
    model
        A fitted scikit-learn classifier or pipeline.
    X, calibration
        Rows for parity and clipping, and rows to calibrate static INT8 with; float32.
    folder
        Where the files go.
    threads
        Threads of ONNX Runtime.
    notes
        Takes a sentence for each thing worth knowing.

    Raises
    ------
    TypeError
        If the model has no ``predict_proba``, or skl2onnx cannot convert it.
    ValueError
        If a weight is NaN, or the converted model does not answer as the original.
    """
    import joblib

    if not hasattr(model, "predict_proba"):
        raise TypeError(f"{type(model).__name__} has no predict_proba; the study takes a fitted classifier")
    path = to_onnx(model, X, folder / "fp32.onnx", overwrite=True)
    fp32 = OnnxModel(path, threads)
    check_parity(model, fp32, X[:512])
    joblib.dump(model, folder / "scikit-learn.joblib")
    dtype = str(np.asarray(model.predict_proba(X[:1])).dtype)
    variants = {SKLEARN: Variant(model.predict_proba, folder / "scikit-learn.joblib", dtype)}
    if dtype != "float32":
        notes.append(f"scikit-learn answers in {dtype}: part of ONNX's gain is the change of precision, not of engine")
    try:
        variants[NUMPY] = Variant(numpy_baseline(model), folder / "numpy.npz", "float32")
        np.savez(folder / "numpy.npz", *[np.asarray(a, np.float32) for a in [*model.coefs_, *model.intercepts_]])
    except TypeError:
        notes.append("no NumPy baseline: it is written for multilayer perceptrons alone")
    variants[FP32] = Variant(fp32.forward, path, "float32")
    saturating = integer_products()["uint8 × int8"] == "saturating"
    makers: dict[str, Callable[[], Path]] = {
        DYNAMIC: lambda: quantize_dynamic_int8(path, overwrite=True),
        STATIC: lambda: quantize_static_int8(path, calibration, check=X, overwrite=True),
        PER_CHANNEL: lambda: quantize_dynamic_int8(
            path, folder / "fp32-int8-dynamic-per-channel.onnx", per_channel=True, overwrite=True
        ),
    }
    for name, full in _FULL_RANGE.items() if saturating else ():
        makers[full] = partial(
            quantize_dynamic_int8,
            path,
            folder / f"fp32-int8-dynamic{'-per-channel' if name == PER_CHANNEL else ''}-full-range.onnx",
            per_channel=name == PER_CHANNEL,
            reduce_range=False,
            overwrite=True,
        )
    for name, make in makers.items():
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                made = make()
        except ValueError as error:
            notes.append(f"{name} could not be made: {error}")
            continue
        notes += [f"{name}: {warning.message}" for warning in caught if warning.category is UserWarning]
        verdict = quantization_verdict(path, made)
        precision = "float32" if verdict.startswith("no") else "int8"
        saturates = precision == "int8" and name in _FULL_RANGE.values()
        variants[name] = Variant(OnnxModel(made, threads).forward, made, precision, verdict, saturates)
    if any(variant.precision == "int8" for variant in variants.values()):
        notes.append(
            "on this processor ONNX Runtime's product of uint8 by int8 saturates (pairs of products are added in 16 "
            "bits): the INT8 files keep 7 bits of each weight (reduce_range), those of full range are here to compare"
            if saturating
            else "on this processor ONNX Runtime's integer products are exact; on others (AVX2 without VNNI) those of "
            "these files may saturate: for a file that goes there set reduce_range=True"
        )
    return variants


def study_accuracy(
    variants: Mapping[str, Variant], X: np.ndarray, y: np.ndarray, classes: np.ndarray, noise: float, seed: int
) -> dict[str, dict[str, Any]]:
    """Return for each variant its accuracy, by class and under noise, and how it differs from FP32.

    ``loss_ci`` is the interval of the accuracy lost, ``largest_difference`` that of any two probabilities.
    """
    rng = np.random.default_rng(seed)
    noisy = X + rng.normal(0, noise, X.shape).astype(np.float32) * X.std(axis=0)
    outputs = {name: np.asarray(variant.call(X)) for name, variant in variants.items()}
    labels = {name: classes[scores.argmax(axis=1)] for name, scores in outputs.items()}
    found = {}
    for name, variant in variants.items():
        right = int(np.sum(labels[name] == y))
        pair = mcnemar(y, labels[FP32], labels[name])
        found[name] = {
            "accuracy": right / len(y),
            "accuracy_ci": list(wilson_interval(right, len(y))),
            "recall_by_class": {str(c): r for c, r in recall_per_class(y, labels[name]).items()},
            "accuracy_with_noise": float(np.mean(classes[np.asarray(variant.call(noisy)).argmax(axis=1)] == y)),
            "loss": pair.difference,
            "loss_ci": list(difference_interval(pair.only_a, pair.only_b, pair.rows)),
            "label_agreement": float(np.mean(labels[name] == labels[FP32])),
            "largest_difference": float(np.abs(outputs[name] - outputs[FP32]).max()),
        }
    return found


def study_energy(
    calls: Mapping[str, Call], x: Any, latencies: Mapping[str, float], rounds: int, seconds: float, seed: int
) -> tuple[dict[str, BenchmarkResult], dict[str, float]]:
    """Measure energy (or processor time) and the share of a core, all variants in shuffled rounds.

    Returns
    -------
    energy : dict of str to BenchmarkResult
        Joules per call where a counter can be read, else processor seconds, labelled as no measurement of energy.
    busy : dict of str to float
        Median number of cores kept busy.
    """
    meter = best_meter()
    energy: dict[str, list[float]] = {name: [] for name in calls}
    busy: dict[str, list[float]] = {name: [] for name in calls}
    for order in round_orders(list(calls), rounds, seed):
        idle = idle_power(meter, seconds, time.perf_counter, time.sleep) if meter.measured else 0.0
        for name in order:
            loops = max(1, round(seconds / latencies[name]))
            used = time.process_time()
            joules, wall = energy_reading(calls[name], x, loops, meter, time.perf_counter)
            busy[name].append((time.process_time() - used) / wall)
            energy[name].append((joules - idle * wall) / loops)
    metric = "energy" if meter.unit == "J" else "cpu_time"
    shared = {**meter.details, "measured": meter.measured, "pairing": uuid.uuid4().hex}
    results = {n: BenchmarkResult(metric, v, {**shared, "model": n}, unit=meter.unit) for n, v in energy.items()}
    return results, {name: median(values) for name, values in busy.items()}


def study_memory(variant: Variant, x: Any, repeats: int) -> dict[str, float | None]:
    """Return the memory of each stage in a fresh process, of the whole process, and of the model in it, in bytes.

    None for the NumPy variant, and where nothing was seen: what an arena took before, a later stage does not add.
    """
    names = ("import", "load", "first_call", "steady")
    if variant.file.suffix == ".npz":
        return dict.fromkeys([*(f"memory_{name}" for name in names), "memory_process", "memory_model"])
    stages = memory_stages(load_variant, x, repeats, args=(str(variant.file),), steady_calls=5)
    found = {f"memory_{name}": stages[name].median for name in names}
    imported, whole = (median(stages[name].metadata["resident"]) for name in ("import", "steady"))
    found |= {"memory_process": whole, "memory_model": whole - imported}
    return {name: value if value > 0 else None for name, value in found.items()}


def study_batch(
    variants: Mapping[str, Variant], x: np.ndarray, rounds: int, threads: int, seed: int
) -> tuple[dict[str, dict[str, Any]], dict[str, BenchmarkResult], dict[str, BenchmarkResult]]:
    """Measure all variants at one batch size.

    Returns
    -------
    columns : dict of str to dict
        What goes into the table, by variant.
    latency, energy : dict of str to BenchmarkResult
        Paired by round.
    """
    calls = {name: variant.call for name, variant in variants.items()}
    latency = measure_latencies(calls, x, measurement_runs=rounds, mode="hot", seed=seed)
    whole_round = sum(result.median for result in latency.values())
    served = measure_latencies(calls, x, 0, max(20, min(100, round(2 / whole_round))), seed=seed)
    medians = {name: result.median for name, result in latency.items()}
    energy, busy = study_energy(calls, x, medians, max(6, rounds // 3), 0.02, seed)
    columns = {}
    for name, variant in variants.items():
        shares = None
        if variant.file.suffix == ".onnx":
            shares = operator_profile(OnnxModel(variant.file, threads), x, runs=20).shares
        size = model_size(variant.file) if name != SKLEARN else model_size(variants[FP32].file)
        rate, bandwidth = throughput_and_bandwidth(
            medians[name], len(x), size, 4 * (x.shape[1] + np.asarray(variant.call(x[:1])).shape[1])
        )
        columns[name] = {
            "latency": medians[name],
            "latency_ci": list(latency[name].median_ci()),
            "latency_p95": served[name].percentile(95),
            "throughput": rate,
            "effective_bandwidth": bandwidth,
            "energy": energy[name].median if energy[name].unit == "J" else None,
            "cpu_time": energy[name].median if energy[name].unit == "s" else None,
            "energy_is_measured": energy[name].measured,
            "cpu_share": busy[name],
            "operator_shares": shares,
        }
    return columns, latency, energy


def study_gains(
    batch: int, latency: Mapping[str, BenchmarkResult], energy: Mapping[str, BenchmarkResult]
) -> list[dict[str, Any]]:
    """Return every gain at one batch size: how many times less time and energy a variant takes than each baseline."""
    gains = []
    for baseline in (SKLEARN, NUMPY, FP32):
        for name in latency:
            if baseline in latency and name != baseline and name not in (SKLEARN, NUMPY):
                for metric, results in (("latency", latency), (energy[name].metric_name, energy)):
                    positive = min(results[baseline].min_val, results[name].min_val) > 0
                    found = compare(results[baseline], results[name], names=(baseline, name)) if positive else None
                    gains.append(
                        {
                            "batch_size": batch,
                            "variant": name,
                            "baseline": baseline,
                            "metric": metric,
                            "gain": found.ratio if found else None,
                            "gain_ci": list(found.ratio_ci) if found else None,
                            "p_value": found.p_value if found else None,
                            "rounds": results[name].count,
                            "measured": results[name].measured,
                        }
                    )
    return gains


def study_decision(
    batch: int,
    variants: Mapping[str, Variant],
    latency: Mapping[str, BenchmarkResult],
    accuracy: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Apply the rule at one batch size.

    Returns
    -------
    dict
        ``rule``: for each INT8 variant what `int8_pays` says, with a reason. ``ship``: the variant to ship. A more
        elaborate one replaces a simpler one only where it is established to be faster, and INT8 only where it pays and
        its products do not saturate.
    """
    rule, ship = {}, SKLEARN
    for name, variant in variants.items():
        if name not in (SKLEARN, NUMPY, FP32):
            versus: Comparison = compare(latency[name], latency[FP32], names=(name, FP32))
            low, high = accuracy[name]["loss_ci"]
            verdict = "does not pay" if variant.fake else int8_pays((low, high), versus.ratio_ci)
            why = (
                f"{variant.note}; {versus}; accuracy lost {100 * low:.2f} to {100 * high:.2f} points; probabilities "
                f"differ by up to {accuracy[name]['largest_difference']:.2g}"
            )
            if variant.saturates:
                verdict, why = "saturates", f"its products can saturate on this processor; {why}"
            rule[name] = {"verdict": verdict, "why": why}
            if verdict != "pays":
                continue
        if compare(latency[name], latency[ship]).verdict == "faster":
            ship = name
    return {"batch_size": batch, "ship": ship, "rule": rule}


_CLAIMS = (
    ("ONNX FP32 is 2–3 times as fast as scikit-learn", FP32, SKLEARN, "latency", 2.0, 3.0),
    ("INT8 is 3–5 times as fast as scikit-learn", DYNAMIC, SKLEARN, "latency", 3.0, 5.0),
    ("INT8 takes 28 % less time than FP32", DYNAMIC, FP32, "latency", 1 / 0.77, 1 / 0.67),
    ("INT8 takes 30–50 % less energy than FP32", DYNAMIC, FP32, "energy", 1 / 0.7, 1 / 0.5),
)


def study_claims(
    gains: Sequence[Mapping[str, Any]], sizes: Mapping[str, int], accuracy: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Set widely repeated claims beside what was measured.

    "28 %" is taken as 23 to 33 %, "75 % smaller" as 73 to 77 %. Where no counter measures energy, processor time stands
    in, is named, and decides nothing.
    """
    table = []
    for claim, name, baseline, metric, low, high in _CLAIMS:
        for gain in gains:
            kinds = (DYNAMIC, STATIC) if name == DYNAMIC else (name,)
            same = gain["variant"] in kinds and gain["baseline"] == baseline
            if same and gain["gain"] is not None and (gain["metric"] == "latency") == (metric == "latency"):
                ends = (gain["gain_ci"][0], gain["gain_ci"][1])
                measured = f"{gain['gain']:.2f} times ({ends[0]:.2f} to {ends[1]:.2f})"
                if baseline == FP32:  # these claims say how much less, not how many times
                    less = [f"{100 * (1 - 1 / times):.0f}" for times in (gain["gain"], *ends)]
                    measured = f"{less[0]} % less ({less[1]} to {less[2]})".replace("-", "−")
                condition = f"{gain['variant']}, batch {gain['batch_size']}"
                verdict = claim_verdict(ends, low, high)
                if gain["metric"] == "cpu_time":  # no joules: whatever it is, it says nothing on the claim
                    measured, verdict = f"{measured} processor time", "energy not measured"
                table.append({"claim": claim, "condition": condition, "measured": measured, "verdict": verdict})
    for name in (DYNAMIC, STATIC):
        if name in sizes:
            saved = 1 - sizes[name] / sizes[FP32]
            low, high = accuracy[name]["loss_ci"]
            table += [
                {
                    "claim": "INT8 files are 75 % smaller",
                    "condition": f"{name}, FP32 of {sizes[FP32] / 1e3:.0f} kB",
                    "measured": f"{saved:.1%}",
                    "verdict": claim_verdict((saved, saved), 0.73, 0.77),
                },
                {
                    "claim": "INT8 loses less than 1 point of accuracy",
                    "condition": name,
                    "measured": f"{100 * low:.2f} to {100 * high:.2f} points lost",
                    "verdict": "as claimed" if high < 0.01 else "more than claimed" if low >= 0.01 else "cannot tell",
                },
            ]
    return table


@dataclass(frozen=True)
class TradeoffStudy:
    """What a trade-off study found; ``str`` gives it as text.

    Attributes
    ----------
    rows : list of dict
        One for each variant and batch size, in SI units.
    gains : list of dict
        Times less latency and energy than each baseline, with intervals.
    decisions : list of dict
        For each batch size what to ship by the rule, and why.
    claims : list of dict
        Widely repeated claims beside what was measured.
    requirements : list of dict
        For each batch size which variants meet the user's requirements, the fastest first, and why others do not.
    notes : list of str
        What else to know.
    system : dict
        The machine.
    """

    rows: list[dict[str, Any]]
    gains: list[dict[str, Any]]
    decisions: list[dict[str, Any]]
    claims: list[dict[str, Any]]
    requirements: list[dict[str, Any]]
    notes: list[str]
    system: dict[str, Any]

    def write(self, folder: str | Path) -> list[Path]:
        """Write ``hardware_tradeoffs.csv`` and ``hardware_tradeoffs_summary.json``, and return their paths."""
        folder = Path(folder)
        flat = [{k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()} for row in self.rows]
        parts = ("gains", "decisions", "claims", "requirements", "notes", "system")
        rule = "INT8 pays if accuracy falls by less than 1 point and latency by more than 20 %, both by 95 % intervals"
        summary = json_safe({"rule": rule, **{name: getattr(self, name) for name in parts}}, "study")
        files = {
            folder / "hardware_tradeoffs.csv": csv_text(flat),
            folder / "hardware_tradeoffs_summary.json": json.dumps(summary, indent=1, ensure_ascii=False) + "\n",
        }
        for path, text in files.items():
            write_text(path, text)
        return list(files)

    def tables(self) -> dict[str, list[dict[str, str]]]:
        """Return what a reader wants first, as tables of text by caption."""
        speed = {(g["batch_size"], g["variant"], g["baseline"]): g for g in self.gains if g["metric"] == "latency"}

        def gain(row: Mapping[str, Any], baseline: str) -> str:
            found = speed.get((row["batch_size"], row["variant"], baseline))
            return f"{found['gain']:.2f} ({found['gain_ci'][0]:.2f}–{found['gain_ci'][1]:.2f})" if found else "–"

        measured = [
            {
                "batch": str(row["batch_size"]),
                "variant": row["variant"],
                "latency (µs)": f"{row['latency'] * 1e6:.1f}",
                "× scikit-learn": gain(row, SKLEARN),
                "× ONNX FP32": gain(row, FP32),
                "accuracy": f"{row['accuracy']:.4f}",
                "with noise": f"{row['accuracy_with_noise']:.4f}",
                "largest difference": f"{row['largest_difference']:.2g}",
                "file (kB)": f"{row['file_size'] / 1e3:.0f}",
                "GB/s": f"{row['effective_bandwidth'] / 1e9:.1f}",
            }
            for row in self.rows
        ]
        decided = [
            {"batch": str(d["batch_size"]), "ship": d["ship"], **{n: r["verdict"] for n, r in d["rule"].items()}}
            for d in self.decisions
        ]
        return {"measured": measured, "by the rule": decided, "claims": self.claims}

    def __str__(self) -> str:
        """Return tables, requirements and notes."""
        lines = []
        for caption, rows in self.tables().items():
            lines += [caption, *_text_table(rows), ""]
        for entry in self.requirements:
            lines.append(f"batch {entry['batch_size']}, requirements: {', '.join(entry['meet']) or 'none meets them'}")
            lines += [f"  {name}: {'; '.join(why)}" for name, why in entry["broken"].items()]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)]).rstrip()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the tables as accessible HTML, and all as text."""
        parts = []
        for caption, rows in self.tables().items():
            head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in (rows[0] if rows else {}))
            body = "".join(
                "<tr>" + "".join(f"<td>{html.escape(value)}</td>" for value in row.values()) + "</tr>" for row in rows
            )
            parts.append(
                f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            )
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return {"text/plain": str(self), "text/html": "".join(parts) + (f"<ul>{notes}</ul>" if notes else "")}


def _text_table(rows: Sequence[Mapping[str, str]]) -> list[str]:
    names = list(rows[0]) if rows else []
    widths = [max(len(name), *(len(row.get(name, "")) for row in rows)) for name in names]
    lines = [dict(zip(names, names, strict=True)), *rows]
    return [
        "  " + "  ".join(line.get(n, "").ljust(w) for n, w in zip(names, widths, strict=True)).rstrip()
        for line in lines
    ]


def tradeoff_study(
    model: Any,
    X: Any,
    y: Any,
    *,
    calibration: Any = None,
    batch_sizes: Sequence[int] = (1, 32, 256),
    rounds: int = 25,
    threads: int = 1,
    noise: float = 0.1,
    requirements: Requirements | None = None,
    memory_repeats: int = 1,
    out: str | Path | None = None,
    seed: int = 0,
    progress: Callable[[str], Any] | None = None,
) -> TradeoffStudy:
    """Compare a classifier in scikit-learn, NumPy, ONNX FP32 and INT8: dynamic, static, and per channel.

    Parameters
    ----------
    model
        A fitted scikit-learn classifier or pipeline with ``predict_proba``.
    X, y
        Rows in use of shape (n, features), and their labels; not those it was fitted on.
    calibration
        Rows for static INT8; by default the first quarter of `X`, at most 512, which then do not count for accuracy.
    batch_sizes
        Rows in a call.
    rounds
        Shuffled rounds for each batch size, at least 6.
    threads
        Threads of every engine.
    noise
        For accuracy under noise: its standard deviation over that of each feature.
    requirements
        What the user demands; see `Requirements`.
    memory_repeats
        Fresh processes for the memory of each variant; 0 for no memory.
    out
        Folder for the models and for what `TradeoffStudy.write` writes; None to write nothing.
    seed
        Of orders and noise.
    progress
        Called with a line of text at each step.

    Returns
    -------
    TradeoffStudy

    Raises
    ------
    TypeError
        If the model is no classifier with probabilities, or cannot be converted.
    ValueError
        If the rows do not fit or are not finite, a weight is NaN, or the converted model answers otherwise.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    say = progress or (lambda text: None)
    X, y = np.asarray(as_input(X), np.float32), np.asarray(y)
    if X.ndim != 2 or len(X) != len(y) or not np.isfinite(X).all():
        raise ValueError(f"X of shape {X.shape} and {len(y)} labels: two dimensions, a label a row, no NaN expected")
    if rounds < 6 or not batch_sizes or min(batch_sizes) < 1:
        raise ValueError(
            f"rounds is {rounds} and batch_sizes {batch_sizes}; at least 6 rounds, and batches of 1 or more"
        )
    if calibration is None:
        held = min(512, len(X) // 4)
        calibration, X, y = X[:held], X[held:], y[held:]
    notes: list[str] = []
    rows: list[dict[str, Any]] = []
    gains: list[dict[str, Any]] = []
    decisions: list[dict[str, Any]] = []
    met: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary, threadpool_limits(limits=threads):
        folder = Path(temporary) if out is None else Path(out, "models")
        folder.mkdir(parents=True, exist_ok=True)
        say("converting and quantising")
        variants = study_variants(model, X, np.asarray(calibration, np.float32), folder, threads, notes)
        accuracy = study_accuracy(variants, X, y, np.asarray(model.classes_), noise, seed)
        sizes = {name: model_size(variant.file) for name, variant in variants.items()}
        largest = np.resize(X, (max(batch_sizes), X.shape[1]))
        memory: dict[str, dict[str, Any]] = {name: {} for name in variants}
        for name, variant in variants.items():
            if memory_repeats:
                say(f"memory of {name}, in fresh processes")
                memory[name] = study_memory(variant, largest, memory_repeats)
        for batch in batch_sizes:
            say(f"batch {batch}: {rounds} rounds of {len(variants)} variants")
            columns, latency, energy = study_batch(variants, np.resize(X, (batch, X.shape[1])), rounds, threads, seed)
            for name, variant in variants.items():
                row = {"variant": name, "batch_size": batch, "precision": variant.precision, **columns[name]}
                row |= {**accuracy[name], "file_size": sizes[name], "quantization": variant.note, **memory[name]}
                row["saturates"] = variant.saturates
                working = row.get("memory_model") if batch == max(batch_sizes) else None
                row["memory_pressure"] = (
                    None if working is None else memory_pressure(working, row["throughput"] / batch)
                )
                rows.append(row)
            gains += study_gains(batch, latency, energy)
            decisions.append(study_decision(batch, variants, latency, accuracy))
            if requirements is not None:
                met.append(study_requirements(requirements, [row for row in rows if row["batch_size"] == batch]))
    system = system_info()
    study = TradeoffStudy(rows, gains, decisions, study_claims(gains, sizes, accuracy), met, notes, system)
    if out is not None:
        study.write(out)
    return study


def study_requirements(requirements: Requirements, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return which variants meet the user's requirements, the fastest first, and what the others break."""
    known = ("latency", "latency_p95", "accuracy", "throughput", "energy")
    candidates = []
    for row in rows:
        taken = [row[n] for n in ("memory_import", "memory_load", "memory_first_call") if row.get(n) is not None]
        candidate = {name: row[name] for name in known if row[name] is not None}
        candidates.append({"name": row["variant"], **candidate, **({"memory": sum(taken)} if taken else {})})
    asked = {name.partition("_")[0] for name in requirements.limits()}
    saturating = {row["variant"] for row in rows if row["saturates"]}
    broken = {}
    for candidate in list(candidates):
        missing = [f"its {metric} was not measured" for metric in sorted(asked) if metric not in candidate]
        why = missing or requirements.violations(candidate)
        if candidate["name"] in saturating:
            why = ["its products can saturate on this processor", *why]
        if why:
            broken[candidate["name"]] = why
            candidates.remove(candidate)
    return {
        "batch_size": rows[0]["batch_size"],
        "meet": [row["name"] for row in sorted(candidates, key=lambda row: float(row["latency"]))],
        "broken": broken,
    }

# Written by "autograder export" from modules/12_quantize/12_quantize.ipynb: edit the notebook, not this file.

"""Quantisation to 8 bits: by hand, with ONNX Runtime, and a rule that decides whether it pays."""

from __future__ import annotations

import io
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.onnx import load_session, operators, refuse_bad_weights, session_options, weights
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.onnx_files import load_graph, refuse_existing, save_graph, tidy_opsets
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.conditions.int8_probe import integer_products
from tinybench.support.rounds.input_notes import as_input


@dataclass(frozen=True)
class QuantParams:
    """A quantisation grid, which states which real number each integer stands for.

    Attributes
    ----------
    scale : numpy.ndarray
        Step of the grid; of shape () for one scale, else of a shape that broadcasts against the tensor.
    zero_point : numpy.ndarray
        The integer that stands for 0, int64, of the same shape.
    bits : int
        Width of the integers.
    signed : bool
        Whether the integers are signed and symmetric around 0. Otherwise they start at 0.
    """

    scale: np.ndarray
    zero_point: np.ndarray
    bits: int = 8
    signed: bool = False

    __repr__ = short_repr

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest integer of the grid."""
        return (1 - 2 ** (self.bits - 1), 2 ** (self.bits - 1) - 1) if self.signed else (0, 2**self.bits - 1)


def check_tensor(x: Any, bits: int = 8) -> np.ndarray:
    """Return a tensor as float64. Raise ValueError if it cannot be quantised."""
    tensor = np.asarray(x, np.float64)
    if not tensor.size or not np.isfinite(tensor).all():
        raise ValueError("the tensor is empty, or holds NaN or infinite values: there is no range to put on a grid")
    if not 2 <= bits <= 16:
        raise ValueError(f"bits is {bits}; a grid has 2 to 16 bits")
    return tensor


def quantization_params(x: Any, symmetric: bool = False, bits: int = 8, axis: int | None = None) -> QuantParams:
    """Return the quantisation grid that spans the range of a tensor.

    Parameters
    ----------
    x
        Finite numbers. Raises ValueError if there are no numbers, or if a number is not finite.
    symmetric
        Whether the grid has zero point 0 and signed integers, as for weights; else it is affine and unsigned, as for
        activations.
    bits
        Width of the integers, from 2 to 16. Any other width raises ValueError.
    axis
        Axis of the channels, each of which gets its own scale; None for one scale.
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


def quantize_tensor(x: Any, params: QuantParams) -> np.ndarray:
    """Return the integers nearest to real numbers. Halves are rounded to even, as in ONNX.

    The dtype is int8 or uint8 up to 8 bits, else int32.

    Parameters
    ----------
    x
        Real numbers. Numbers beyond the grid become its nearest end. Raises ValueError for NaN.
    params
        The grid.
    """
    if np.isnan(np.asarray(x, np.float64)).any():
        raise ValueError("the tensor holds NaN, which no integer can represent; find the operation that produced it")
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
    """Return the ratio of signal to quantisation noise, in dB. The ratio is infinite if nothing is lost.

    Parameters
    ----------
    x
        Real numbers, not all 0.
    params
        The grid on which to put these numbers.
    """
    tensor = check_tensor(x)
    noise = float(np.sum((tensor - dequantize(quantize_tensor(tensor, params), params)) ** 2))
    return 10 * float(np.log10(np.sum(tensor**2) / noise)) if noise else float("inf")


def int8_matmul(a: np.ndarray, a_params: QuantParams, w: np.ndarray, w_params: QuantParams) -> np.ndarray:
    """Return the product of two quantised matrices, as float64 of shape (n, m).

    The multiplications and the sums are computed in integers (INT32).

    Parameters
    ----------
    a, a_params
        Integers of shape (n, k), and their grid with one scale and zero point.
    w, w_params
        Integers of shape (k, m), and their grid with one scale, or one for each column.
    """
    left = a.astype(np.int32) - a_params.zero_point.astype(np.int32)
    right = w.astype(np.int32) - w_params.zero_point.astype(np.int32)
    sums = left @ right
    product: np.ndarray = sums * (a_params.scale * w_params.scale)
    return product


INTEGER_OPERATORS = frozenset(
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
LINEAR_OPERATORS = frozenset(["Conv", "FusedGemm", "FusedMatMul", "Gemm", "MatMul"])


def maker_in(graph: Any) -> Callable[[str], tuple[str, str]]:
    """Return a function that maps a tensor's name to the operator that makes it, and the operator's first input.

    For weights and inputs, which no operator makes, both are ``""``.
    """
    made_by = {output: node for node in graph.node for output in node.output}

    def maker(name: str) -> tuple[str, str]:
        node = made_by.get(name)
        return ("", "") if node is None else (str(node.op_type), str(node.input[0]) if node.input else "")

    return maker


def integer_operators(source: Any) -> dict[str, int]:
    """Return how many matrix multiplications and convolutions a graph computes in integers, by operator.

    In these, not only the weights but also the activations are integers.

    The result is empty if the graph has no such operators.

    Parameters
    ----------
    source
        An ONNX graph; see `load_graph`.
    """
    graph = load_graph(source).graph
    maker = maker_in(graph)  # maker(node.input[0]) may be ("DequantizeLinear", "a_quantized"); else ("", "")
    counts: dict[str, int] = {}
    for node in graph.node:
        real = node.op_type in INTEGER_OPERATORS
        if node.op_type in LINEAR_OPERATORS:
            (first, quantized), (second, _) = maker(node.input[0]), maker(node.input[1])
            before, _ = maker(quantized)
            real = (before, first, second) == ("QuantizeLinear", "DequantizeLinear", "DequantizeLinear")
        if real:
            counts[node.op_type] = counts.get(node.op_type, 0) + 1
    return counts


def quantization_verdict(original: Any, quantized: Any) -> str:
    """Return a few words that describe the effect of quantisation on a model.

    The result is, for example, ``"3 integer operators"``; ``"no integer operators: identical graph"`` if operators and
    numbers are unchanged; or ``"no integer operators: only the weights are stored in fewer bits"``.

    Parameters
    ----------
    original, quantized
        ONNX graphs; see `load_graph`.
    """
    count = sum(integer_operators(quantized).values())
    if count:
        return number_of(count, "integer operator")
    before, after = weights(original), weights(quantized)
    same = operators(original) == operators(quantized) and before.keys() == after.keys()
    if same and all(np.array_equal(before[name], after[name]) for name in before):
        return "no integer operators: identical graph"
    return "no integer operators: only the weights are stored in fewer bits"


@contextmanager
def quiet_log() -> Iterator[None]:
    """Suppress the log messages and the output of ONNX Runtime's tools."""
    import onnxruntime

    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    onnxruntime.set_default_logger_severity(3)  # errors only; warnings otherwise
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)
        onnxruntime.set_default_logger_severity(2)


def quantize_file(
    path: str | Path, out: str | Path | None, overwrite: bool, kind: str, work: Callable[[Path, Path], Any]
) -> Path:
    """Quantise a copy of a model with `work`, save the result, and warn if the result has no integer operators."""
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


def write_dynamic(source: Path, target: Path, kind: Any, per_channel: bool, reduce_range: bool) -> None:
    """Write a model with 8-bit weights. Its activations are converted to uint8 in every call.

    Parameters
    ----------
    source, target
        Path of the model in float32, and path of the quantised model.
    kind
        ONNX Runtime's type of the weights.
    per_channel, reduce_range
        Whether each column has its own scale; whether weights are limited to 7 bits.
    """
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(source, target, weight_type=kind, per_channel=per_channel, reduce_range=reduce_range)


def quantization_types(activation_type: str, weight_type: str, reduce_range: bool | None) -> tuple[Any, Any, bool]:
    """Return ONNX Runtime's types of activations and of weights, and whether weights are limited to 7 bits.

    If `reduce_range` is None, weights are limited if multiplications of the two types saturate on this machine (see
    `integer_products`). Raises ValueError for an unknown type, or for a pair that ONNX Runtime does not support.
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
    """Quantise a model to INT8: the weights once and for all, the activations (to uint8) in every call.

    Parameters
    ----------
    path
        An ``.onnx`` file in float32.
    out
        Path of the result; by default ``name-int8-dynamic.onnx`` in the same folder.
    weight_type
        ``"int8"`` or ``"uint8"``.
    per_channel
        Whether each column of a matrix has its own scale instead of one for all.
    reduce_range
        Whether to limit weights to 7 bits, so that multiplications do not saturate on any processor. By default,
        weights are limited only if multiplications saturate on this machine (see `integer_products`). Choose True for a
        file that is also used on other machines.
    overwrite
        Whether an existing file may be replaced.

    Returns
    -------
    Path
        Path of the quantised file.

    Warns
    -----
    UserWarning
        If the file has no integer operators, as is the case for trees.

    Raises
    ------
    FileNotFoundError, FileExistsError
        If the model does not exist, or the result already does.
    ValueError
        If the file is not an ONNX model, a weight is NaN or infinite, a type is unknown, or ONNX Runtime cannot
        quantise the model.
    """
    _, kind, reduce_range = quantization_types("uint8", weight_type, reduce_range)

    work = partial(write_dynamic, kind=kind, per_channel=per_channel, reduce_range=reduce_range)
    return quantize_file(path, out, overwrite, "dynamic", work)


def saturating_matmul(a: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Multiply integer matrices as ONNX Runtime does on processors with AVX2 but without VNNI.

    The products of numbers along k are added in pairs: 0 and 1, 2 and 3, …, and each of these sums is clipped to 16
    bits. The sum over all pairs is exact. If k is odd, the last product is not paired.

    Parameters
    ----------
    a, w
        uint8 of shape (n, k), and int8 of shape (k, m); the product is int64 of shape (n, m).
    """
    # vpmaddubsw, as in Intel's "64 and IA-32 Architectures Software Developer's Manual", volume 2
    left, right = a.astype(np.int64), w.astype(np.int64)
    sums = np.zeros((len(a), w.shape[1]), np.int64)
    for k in range(0, a.shape[1], 2):
        sums += np.clip(left[:, k : k + 2] @ right[k : k + 2], -(2**15), 2**15 - 1)
    return sums


def clipped_share(x: Any, params: QuantParams) -> float:
    """Return the fraction of real numbers that a grid clips because they are more than half a step beyond its ends."""
    low, high = (dequantize(np.array(limit), params) for limit in params.limits)
    tensor = check_tensor(x)
    return float(np.mean((tensor < low - params.scale / 2) | (tensor > high + params.scale / 2)))


class CalibrationRows:
    """A reader that passes calibration rows to ONNX Runtime in batches.

    Parameters
    ----------
    rows, name
        Array of shape (n, features), and the name of the model's input.
    batch
        Number of rows in each batch. The last batch may be shorter.
    """

    def __init__(self, rows: np.ndarray, name: str, batch: int = 64) -> None:
        self.rows, self.name, self.batch, self.start = rows, name, batch, 0

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Return the next batch as ``{name: rows}`` in float32, or None after the last one."""
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
    """Quantise the weights and activations of a model to INT8, with activation ranges from calibration data.

    Parameters
    ----------
    path
        An ``.onnx`` file in float32.
    calibration
        A few hundred rows, of shape (n, features), similar to the rows that the model gets in use.
    out
        Path of the result; by default ``name-int8-static.onnx`` in the same folder.
    method
        How to choose the ranges: ``"minmax"``; ``"percentile"``, which drops 0.001 % of the values at the ends; or
        ``"entropy"``, which changes the distribution of the values as little as possible.
    activation_type, weight_type
        ``"uint8"`` or ``"int8"``; not int8 activations with uint8 weights.
    per_channel, reduce_range
        See `quantize_dynamic_int8`.
    check
        Rows from real use, on which to measure the fraction of values that the calibrated ranges clip.
    overwrite
        Whether an existing file may be replaced.

    Returns
    -------
    Path
        Path of the quantised file, in QDQ form. Only matrix multiplications and ReLU are quantised.

    Warns
    -----
    UserWarning
        If there are no integer operators, or more than 1 % of a tensor's values are clipped on the rows of `check`.

    Raises
    ------
    FileNotFoundError, FileExistsError
        If the model does not exist, or the result already does.
    ValueError
        If the calibration data does not have the shape of the input or is not finite, the method or a type is unknown,
        a weight is NaN or infinite, or ONNX Runtime cannot quantise the model.

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
        try:  # merging MatMul and Add into Gemm saves a step, but fails on some operators of scikit-learn
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
    """Return the name of a model's input, and the rows in float32. Raise ValueError if the rows do not fit it."""
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
    """Return a session for a graph, with the given inner tensors as additional outputs."""
    probed = load_graph(model.SerializeToString())
    for tensor in {*tensors} - {output.name for output in probed.graph.output}:
        probed.graph.output.add(name=tensor)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "probe.onnx")
        save_graph(probed, file)
        return load_session(file, session_options(optimization="off"))


def prepare_for_static(path: Path) -> None:
    """Add the types of inner float tensors to a model file, and make the model's biases one-dimensional."""
    # ONNX Runtime does not quantise activations whose type it cannot infer, as after scikit-learn's scaler. It fails
    # on biases of shape (1, n) if each column has its own scale.
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
    """Return, for each quantised tensor of a static model, the fraction of its values on rows X that its grid clips."""
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
        # a grid that begins at 0 does the work of a ReLU
        is_relu = node.input[0] in inner and int(grid.zero_point) == grid.limits[0]
        shares[str(node.input[0])] = clipped_share(np.maximum(found, 0) if is_relu else found, grid)
    return shares


def int8_pays(
    loss_ci: tuple[float, float], ratio_ci: tuple[float, float], max_loss: float = 0.01, min_gain: float = 0.20
) -> str:
    """Return whether INT8 pays: ``"pays"``, ``"does not pay"`` or ``"undecided"``.

    Parameters
    ----------
    loss_ci
        Interval of the accuracy of FP32 minus the accuracy of INT8, as fractions.
    ratio_ci
        Interval of the time of INT8 divided by the time of FP32.
    max_loss, min_gain
        Fractions. INT8 pays if accuracy falls by less than `max_loss`, and more than `min_gain` of the time is saved.
    """
    if loss_ci[1] < max_loss and ratio_ci[1] < 1 - min_gain:
        return "pays"
    if loss_ci[0] >= max_loss or ratio_ci[0] >= 1 - min_gain:
        return "does not pay"
    return "undecided"

# Written by "autograder export" from modules/12_quantize/12_quantize.ipynb: edit the notebook, not this file.

"""Quantisation to 8 bits: by hand, with ONNX Runtime, and a rule that decides whether it pays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tinybench.support.basics.onnx_files import load_graph
from tinybench.support.quantizing.grids import QuantParams, check_tensor
from tinybench.support.quantizing.inner_tensors import quantized_tensors
from tinybench.support.quantizing.integer_graphs import INTEGER_OPERATORS, LINEAR_OPERATORS, effect_in_words, maker_in
from tinybench.support.quantizing.quantized_files import warn_of, write_dynamic, write_static


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
    return effect_in_words(sum(integer_operators(quantized).values()), original, quantized)


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
    made = write_dynamic(path, out, weight_type, per_channel, reduce_range, overwrite)
    return warn_of(made, quantization_verdict(path, made), {})


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


def clipping_shares(path: str | Path, X: Any) -> dict[str, float]:
    """Return, for each quantised tensor of a static model, the fraction of its values on rows X that its grid clips."""
    return {name: clipped_share(values, grid) for name, values, grid in quantized_tensors(path, X)}


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
    types = activation_type, weight_type
    made = write_static(path, calibration, out, method, types, per_channel, reduce_range, overwrite)
    return warn_of(made, quantization_verdict(path, made), {} if check is None else clipping_shares(made, check))


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

"""ONNX Runtime's functions that quantise a file, with checked arguments, a quiet log, and clear warnings."""

from __future__ import annotations

import io
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.support.basics.onnx_files import load_graph, refuse_bad_weights, refuse_existing, save_graph, tidy_opsets
from tinybench.support.conditions.int8_probe import integer_products
from tinybench.support.quantizing.inner_tensors import prepare_for_static
from tinybench.support.rounds.input_notes import as_input

MOST_CLIPPED = 0.01  # of the values of a tensor; more cause a warning


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
    """Quantise a copy of a model with `work`, save the result, and return its path."""
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
        except Exception as error:
            raise ValueError(f"ONNX Runtime cannot quantise {path}: {str(error)[:300]}") from error
        save_graph(load_graph(target), out)
    return out


def warn_of(made: Path, verdict: str, clipped: dict[str, float]) -> Path:
    """Return a quantised file. Warn if it has no integer operators, or if its grids clip many values of a tensor."""
    if verdict.startswith("no"):
        warnings.warn(f"{made.name}: {verdict}; its latency is that of the original", stacklevel=3)
    tensor, share = max(clipped.items(), key=lambda item: item[1], default=("", 0.0))
    if share > MOST_CLIPPED:
        warnings.warn(
            f"{made.name}: the calibrated range clips {share:.0%} of the values of {tensor!r} on the rows in use; "
            "calibrate with rows of the same scale",
            stacklevel=3,
        )
    return made


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


def write_dynamic(
    path: str | Path, out: str | Path | None, weight_type: str, per_channel: bool, reduce_range: bool | None, over: bool
) -> Path:
    """Write a file whose weights have 8 bits, and whose activations become uint8 in every call. Return its path.

    The arguments are those of `quantize_dynamic_int8`.
    """
    from onnxruntime.quantization import quantize_dynamic

    _, kind, limited = quantization_types("uint8", weight_type, reduce_range)

    def work(source: Path, target: Path) -> None:
        quantize_dynamic(source, target, weight_type=kind, per_channel=per_channel, reduce_range=limited)

    return quantize_file(path, out, over, "dynamic", work)


def write_static(
    path: str | Path,
    calibration: Any,
    out: str | Path | None,
    method: str,
    types: tuple[str, str],
    per_channel: bool,
    reduce_range: bool | None,
    overwrite: bool,
) -> Path:
    """Write a file in QDQ form, with ranges of the activations from calibration data. Return its path.

    The arguments are those of `quantize_static_int8`; `types` holds the types of activations and of weights.
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
    activations, kind, limited = quantization_types(*types, reduce_range)
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
            reduce_range=limited,
            op_types_to_quantize=["Gemm", "MatMul", "Relu"],
            calibrate_method=methods[method],
        )

    return quantize_file(path, out, overwrite, "static", work)


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

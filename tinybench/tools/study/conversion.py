"""Conversion of a fitted classifier into the forms that a study compares, such as NumPy, ONNX FP16 and INT8."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.onnx import OnnxModel, check_parity, to_onnx
from tinybench.quantize import quantization_verdict, quantize_dynamic_int8, quantize_static_int8
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.conditions.int8_probe import integer_products
from tinybench.support.numpy_models import dense_layers, numpy_twin
from tinybench.tools.study.half_precision import product_types, to_half
from tinybench.tools.study.variants import (
    DYNAMIC,
    FP16,
    FP32,
    NUMPY,
    PER_CHANNEL,
    SKLEARN,
    STATIC,
    STATIC_PER_CHANNEL,
    Variant,
)

_LEVELS = {f"ONNX FP32, optimisation {level}": level for level in ("off", "basic", "extended")}
_FULL_RANGE = {DYNAMIC: "INT8 dynamic, full range", PER_CHANNEL: "INT8 dynamic, per channel, full range"}


@dataclass(frozen=True)
class _Source:
    """A fitted classifier and its FP32 ONNX file. All other forms are made from these two."""

    model: Any
    X: np.ndarray
    calibration: np.ndarray
    folder: Path
    threads: int
    path: Path
    layers: list[tuple[np.ndarray, np.ndarray]]  # empty if the model has parts other than dense layers

    __repr__ = short_repr

    def touched(self, itemsize: int, hidden: int) -> dict[str, Any]:
        """Return the minimum bytes that a call moves: for all weights, and for the values of one row.

        The values of a row are its inputs, hidden activations and outputs. `itemsize` is the size of a weight in bytes,
        and `hidden` is the size of a hidden activation. If the model has parts other than dense layers, return an empty
        dict.
        """
        if not self.layers:
            return {}
        *inner, last = [len(b) for _, b in self.layers]
        ends = len(self.layers[0][0]) + last
        stored = sum(W.size + b.size for W, b in self.layers)
        return {"weight_bytes": itemsize * stored, "row_bytes": max(4, itemsize) * ends + hidden * sum(inner)}

    def numpy(self) -> Variant:
        """Return the NumPy form of the model."""
        twin = numpy_twin(self.model)
        check_parity(self.model, twin, self.X[:512])
        np.savez(self.folder / "numpy.npz", *twin.arrays)
        note = f"{', '.join(twin.borrowed)} by scikit-learn" if twin.borrowed else ""
        return Variant(twin, self.folder / "numpy.npz", "float32", note, **self.touched(4, 4))

    def fp32(self, level: str = "all") -> Variant:
        """Return the FP32 form, run at the given level of graph optimisation."""
        call = OnnxModel(self.path, self.threads, level).forward
        return Variant(call, self.path, "float32", optimization=level, **self.touched(4, 4))

    def fp16(self) -> Variant:
        """Return the form with 16-bit weights, and a note on whether the runtime also computes in 16 bits."""
        made = to_half(self.path, self.folder / "fp16.onnx", overwrite=True)
        is_computed = set(product_types(made)) == {"float16"}
        note = "computed in float16" if is_computed else "stored in 16 bits, computed in float32"
        size = 2 if is_computed else 4
        return Variant(OnnxModel(made, self.threads).forward, made, "float16", note, **self.touched(size, size))

    def dynamic(self, file: str, full_range: bool = False, **choices: Any) -> Variant:
        """Return a dynamically quantised INT8 form."""
        return self._int8(partial(quantize_dynamic_int8, self.path), f"dynamic{file}", full_range, choices)

    def static(self, file: str, **choices: Any) -> Variant:
        """Return a statically quantised INT8 form, calibrated on the calibration rows."""
        make = partial(quantize_static_int8, self.path, self.calibration, check=self.X)
        return self._int8(make, f"static{file}", False, choices)

    def _int8(self, make: Callable[..., Path], file: str, full_range: bool, choices: dict[str, Any]) -> Variant:
        choices |= {"reduce_range": False} if full_range else {}
        made = make(out=self.folder / f"fp32-int8-{file}.onnx", overwrite=True, **choices)
        verdict = quantization_verdict(self.path, made)
        fake = verdict.startswith("no")
        sizes = self.touched(4, 4) if fake else self.touched(1, 1)
        precision = "float32" if fake else "int8"
        call = OnnxModel(made, self.threads).forward
        return Variant(call, made, precision, verdict, full_range and not fake, **sizes)


def _makers(source: _Source, saturating: bool) -> dict[str, Callable[[], Variant]]:
    """Return a dict from the name of each form to the function that makes the form. The simplest form comes first.

    If integer arithmetic saturates on this processor (`saturating`), the normal INT8 forms keep only 7 bits of each
    weight. INT8 forms with the full range of 8 bits are then added for comparison.
    """
    makers: dict[str, Callable[[], Variant]] = {NUMPY: source.numpy, FP32: source.fp32}
    makers |= {name: partial(source.fp32, level) for name, level in _LEVELS.items()}
    makers |= {FP16: source.fp16, DYNAMIC: partial(source.dynamic, ""), STATIC: partial(source.static, "")}
    makers |= {
        PER_CHANNEL: partial(source.dynamic, "-per-channel", per_channel=True),
        STATIC_PER_CHANNEL: partial(source.static, "-per-channel", per_channel=True),
    }
    if saturating:
        makers |= {
            _FULL_RANGE[DYNAMIC]: partial(source.dynamic, "-full-range", True),
            _FULL_RANGE[PER_CHANNEL]: partial(source.dynamic, "-per-channel-full-range", True, per_channel=True),
        }
    return makers


def _made(make: Callable[[], Variant], X: np.ndarray) -> tuple[Variant, list[str]]:
    """Make a form, and return the form and its warnings. If an output of the form is not finite, raise ValueError."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = make()
        answers = np.asarray(made.call(X[:512]))
    if not np.isfinite(answers).all():
        raise ValueError(f"{np.mean(~np.isfinite(answers)):.0%} of its answers are NaN or infinite")
    return made, [str(warning.message) for warning in caught if warning.category is UserWarning]


def study_variants(
    model: Any,
    X: np.ndarray,
    calibration: np.ndarray,
    folder: Path,
    threads: int,
    notes: list[str],
    wanted: Sequence[str] = ("*",),
) -> dict[str, Variant]:
    """Make the forms of a classifier and return them by name, with the simplest form first.

    A form that cannot be made is left out, and the reason is added to `notes`. `wanted` holds names or patterns such as
    ``"INT8*"``. scikit-learn and ONNX FP32 are always included.
    """
    import joblib  # type: ignore[import-untyped]

    if not hasattr(model, "predict_proba"):
        raise TypeError(f"{type(model).__name__} has no predict_proba; the study takes a fitted classifier")
    path = to_onnx(model, X, folder / "fp32.onnx", overwrite=True)
    check_parity(model, OnnxModel(path, threads), X[:512])
    joblib.dump(model, folder / "scikit-learn.joblib")
    dtype = np.asarray(model.predict_proba(X[:1])).dtype
    if dtype != np.float32:
        notes.append(f"scikit-learn answers in {dtype}: part of ONNX's gain is the change of precision, not of engine")
    try:
        layers = dense_layers(getattr(model, "steps", [(None, model)])[-1][1])
    except TypeError as error:
        layers = []
        notes.append(f"no bandwidth: {error}, and only dense layers read every weight in every call")
    source = _Source(model, X, calibration, folder, threads, path, layers)
    own = source.touched(dtype.itemsize, dtype.itemsize)
    variants = {SKLEARN: Variant(model.predict_proba, folder / "scikit-learn.joblib", str(dtype), **own)}
    saturating = integer_products()["uint8 × int8"] == "saturating"
    for name, make in _makers(source, saturating).items():
        if name != FP32 and not any(fnmatchcase(name, pattern) for pattern in wanted):
            continue
        try:
            variants[name], warned = _made(make, X)
        except OSError:
            raise
        except Exception as error:  # the runtime's errors have no common class; one variant must not end the study
            notes.append(f"no {name}: {error}")
        else:
            notes.extend(f"{name}: {warning}" for warning in warned)
    if any(variant.precision == "int8" for variant in variants.values()):
        notes.append(_SATURATES if saturating else _EXACT)
    return variants


_SATURATES = (
    "on this processor ONNX Runtime's product of uint8 by int8 saturates (pairs of products are added in 16 bits): the "
    "INT8 files keep 7 bits of each weight (reduce_range), those of full range are here to compare"
)
_EXACT = (
    "on this processor ONNX Runtime's integer products are exact; on others (AVX2 without VNNI) those of these files "
    "may saturate: for a file that goes there set reduce_range=True"
)

# Written by "autograder export" from modules/12_quantize/12_quantize.ipynb: edit the notebook, not this file.

"""The forms of a classifier that a study sets side by side, and how each is made."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.half import product_types, to_half
from tinybench.onnx import OnnxModel, check_parity, to_onnx
from tinybench.quantize import quantization_verdict, quantize_dynamic_int8, quantize_static_int8
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.conditions.integer_arithmetic import integer_products
from tinybench.support.rounds.calls import Call
from tinybench.twins import dense_layers, numpy_twin

SKLEARN, NUMPY, FP32 = "scikit-learn", "NumPy", "ONNX FP32"
FP16, DYNAMIC, STATIC = "ONNX FP16", "INT8 dynamic", "INT8 static"
PER_CHANNEL, STATIC_PER_CHANNEL = "INT8 dynamic, per channel", "INT8 static, per channel"
_LEVELS = {f"ONNX FP32, optimisation {level}": level for level in ("off", "basic", "extended")}
_FULL_RANGE = {DYNAMIC: "INT8 dynamic, full range", PER_CHANNEL: "INT8 dynamic, per channel, full range"}


@dataclass(frozen=True)
class Variant:
    """One form of a model in a study; its note says what it really is, such as how many products are of integers."""

    call: Call
    file: Path
    precision: str
    note: str = ""
    saturates: bool = False
    optimization: str = "all"
    weight_bytes: int | None = None  # that a call reads at least; None where that is not known
    row_bytes: int = 0  # of inputs, activations and outputs of one row

    __repr__ = short_repr

    @property
    def fake(self) -> bool:
        """Whether it is called INT8 and computes no product in integers."""
        return self.note.startswith("no integer")


def load_variant(path: str, optimization: str = "all") -> Any:
    """Return what a study saved: an ``.onnx`` file or a scikit-learn model."""
    if path.endswith(".onnx"):
        from tinybench.onnx import OnnxModel

        return OnnxModel(path, optimization=optimization)
    import joblib  # type: ignore[import-untyped]

    return joblib.load(path)


def _bytes_of_layers(layers: Sequence[Any], itemsize: int, hidden: int) -> dict[str, int]:
    """Return what a call of dense layers touches at least: all weights, inputs and outputs, and what is in between."""
    *inner, last = [len(b) for _, b in layers]
    ends = len(layers[0][0]) + last
    stored = sum(W.size + b.size for W, b in layers)
    return {"weight_bytes": itemsize * stored, "row_bytes": max(4, itemsize) * ends + hidden * sum(inner)}


def study_variants(
    model: Any,
    X: np.ndarray,
    calibration: np.ndarray,
    folder: Path,
    threads: int,
    notes: list[str],
    wanted: Sequence[str] = ("*",),
) -> dict[str, Variant]:
    """Return all forms of a classifier, the simplest first.

    A form that cannot be made is left out, with a sentence in the notes. `wanted` are names or patterns such as
    ``"INT8*"``; scikit-learn and ONNX FP32 are always there.
    """
    import joblib

    if not hasattr(model, "predict_proba"):
        raise TypeError(f"{type(model).__name__} has no predict_proba; the study takes a fitted classifier")
    path = to_onnx(model, X, folder / "fp32.onnx", overwrite=True)
    fp32 = OnnxModel(path, threads)
    check_parity(model, fp32, X[:512])
    joblib.dump(model, folder / "scikit-learn.joblib")
    dtype = str(np.asarray(model.predict_proba(X[:1])).dtype)
    if dtype != "float32":
        notes.append(f"scikit-learn answers in {dtype}: part of ONNX's gain is the change of precision, not of engine")
    try:
        layers = dense_layers(getattr(model, "steps", [(None, model)])[-1][1])
    except TypeError as error:
        layers = []
        notes.append(f"no bandwidth: {error}, and only dense layers read every weight in every call")

    def touched(itemsize: int, hidden: int) -> dict[str, Any]:
        return _bytes_of_layers(layers, itemsize, hidden) if layers else {}

    own = np.dtype(dtype).itemsize
    variants = {SKLEARN: Variant(model.predict_proba, folder / "scikit-learn.joblib", dtype, **touched(own, own))}

    def add(name: str, make: Callable[[], Variant]) -> None:
        if name != FP32 and not any(fnmatchcase(name, pattern) for pattern in wanted):
            return
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                made = make()
                answers = np.asarray(made.call(X[:512]))
            if not np.isfinite(answers).all():
                raise ValueError(f"{np.mean(~np.isfinite(answers)):.0%} of its answers are NaN or infinite")
        except OSError:
            raise
        except Exception as error:  # the runtime's errors share no class; one variant must not end the study
            notes.append(f"no {name}: {error}")
            return
        notes.extend(f"{name}: {warning.message}" for warning in caught if warning.category is UserWarning)
        variants[name] = made

    def numpy_variant() -> Variant:
        twin = numpy_twin(model)
        check_parity(model, twin, X[:512])
        np.savez(folder / "numpy.npz", *twin.arrays)
        note = f"{', '.join(twin.borrowed)} by scikit-learn" if twin.borrowed else ""
        return Variant(twin, folder / "numpy.npz", "float32", note, **touched(4, 4))

    def half() -> Variant:
        made = to_half(path, folder / "fp16.onnx", overwrite=True)
        kinds = product_types(made)
        note = "computed in float16" if set(kinds) == {"float16"} else "stored in 16 bits, computed in float32"
        size = 2 if set(kinds) == {"float16"} else 4
        return Variant(OnnxModel(made, threads).forward, made, "float16", note, **touched(size, size))

    def level(name: str) -> Variant:
        call = OnnxModel(path, threads, name).forward
        return Variant(call, path, "float32", optimization=name, **touched(4, 4))

    def int8(make: Callable[..., Path], file: str, full_range: bool = False, **choices: Any) -> Variant:
        made = make(out=folder / f"fp32-int8-{file}.onnx", overwrite=True, **choices)
        verdict = quantization_verdict(path, made)
        fake = verdict.startswith("no")
        sizes = touched(4, 4) if fake else touched(1, 1)
        precision = "float32" if fake else "int8"
        return Variant(OnnxModel(made, threads).forward, made, precision, verdict, full_range and not fake, **sizes)

    dynamic = partial(int8, partial(quantize_dynamic_int8, path))
    static = partial(int8, partial(quantize_static_int8, path, calibration, check=X))
    saturating = integer_products()["uint8 × int8"] == "saturating"
    add(NUMPY, numpy_variant)
    add(FP32, lambda: Variant(fp32.forward, path, "float32", **touched(4, 4)))
    for name, optimization in _LEVELS.items():
        add(name, partial(level, optimization))
    add(FP16, half)
    add(DYNAMIC, partial(dynamic, "dynamic"))
    add(STATIC, partial(static, "static"))
    add(PER_CHANNEL, partial(dynamic, "dynamic-per-channel", per_channel=True))
    add(STATIC_PER_CHANNEL, partial(static, "static-per-channel", per_channel=True))
    if saturating:
        full: dict[str, Any] = {"full_range": True, "reduce_range": False}
        add(_FULL_RANGE[DYNAMIC], partial(dynamic, "dynamic-full-range", **full))
        add(_FULL_RANGE[PER_CHANNEL], partial(dynamic, "dynamic-per-channel-full-range", per_channel=True, **full))
    if any(variant.precision == "int8" for variant in variants.values()):
        notes.append(
            "on this processor ONNX Runtime's product of uint8 by int8 saturates (pairs of products are added in 16 "
            "bits): the INT8 files keep 7 bits of each weight (reduce_range), those of full range are here to compare"
            if saturating
            else "on this processor ONNX Runtime's integer products are exact; on others (AVX2 without VNNI) those of "
            "these files may saturate: for a file that goes there set reduce_range=True"
        )
    return variants

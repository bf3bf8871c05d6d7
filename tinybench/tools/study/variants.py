"""The forms of a classifier that a study compares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.rounds.checked_calls import Call

SKLEARN, NUMPY, FP32 = "scikit-learn", "NumPy", "ONNX FP32"
FP16, DYNAMIC, STATIC = "ONNX FP16", "INT8 dynamic", "INT8 static"
PER_CHANNEL, STATIC_PER_CHANNEL = "INT8 dynamic, per channel", "INT8 static, per channel"


@dataclass(frozen=True)
class Variant:
    """One form of a model in a study. `note` describes how the form runs, such as how many products use integers."""

    call: Call
    file: Path
    precision: str
    note: str = ""
    saturates: bool = False
    optimization: str = "all"
    weight_bytes: int | None = None  # minimum bytes of weights that a call reads; None if unknown
    row_bytes: int = 0  # bytes of the inputs, activations and outputs of one row

    __repr__ = short_repr

    @property
    def fake(self) -> bool:
        """Whether the variant is called INT8 but computes no matrix multiplication in integers."""
        return self.note.startswith("no integer")


def load_variant(path: str, optimization: str = "all") -> Any:
    """Load a model that a study saved: an ``.onnx`` file or a scikit-learn model."""
    if path.endswith(".onnx"):
        from tinybench.onnx import OnnxModel

        return OnnxModel(path, optimization=optimization)
    import joblib  # type: ignore[import-untyped]

    return joblib.load(path)

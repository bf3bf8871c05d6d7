"""The outputs of two models in one shape, and the difference of each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinybench.accuracy import ParityResult, parity
from tinybench.latency import as_callable
from tinybench.support.basics.numbers import number_of


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


def likely_cause(found: ParityResult) -> str:
    """Return how many rows keep their label, and where to look for the difference."""
    kept = f"{found.label_agreement:.2%} of {number_of(found.rows, 'row')} keep their label"
    return f"{kept}. Look for a missing preprocessing step or a float64 model"

"""Helpers for module 17: shifted digits, real INT8, the journal's rule, and a small problem for the checks."""

from __future__ import annotations

import tempfile
import warnings
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np


def quiet_fit(model: Any, X: Any, y: Any) -> Any:
    """Fit a model without warnings that the training has not converged, and return the model."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def shifted(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return five versions of the digits with their labels: unchanged, and shifted by one pixel in each direction."""
    moves = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]
    pictures = [np.roll(np.reshape(X, (-1, 28, 28)), move, axis=(1, 2)) for move in moves]
    return np.concatenate(pictures).reshape(-1, 784), np.tile(y, len(moves))


def eight_bits(content: bytes) -> bytes:
    """Return the bytes of a model, quantised to INT8; unchanged if the result has no integer operators."""
    from tinybench.quantize import integer_operators, quantize_dynamic_int8

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        path = Path(folder, "entry.onnx")
        path.write_bytes(content)
        quantised = Path(quantize_dynamic_int8(path)).read_bytes()
    return quantised if integer_operators(quantised) else content


def journal_verdict(latency: str, chance: float, kept_chance: float, least_chance: float) -> str:
    """Return the journal's verdict on one change: ``"keep"``, ``"reject"`` or ``"undecided"``.

    `latency` is the verdict of `compare` on the change. The chances are those of the change and of the kept file to
    pass the bar, and the smallest chance to enter with.
    """
    if latency.startswith("undecided"):
        return "undecided"
    better = latency == "faster" or (latency == "equivalent" and chance > kept_chance)
    return "keep" if better and chance >= least_chance else "reject"


@cache
def practice() -> SimpleNamespace:
    """Return a small problem for the checks: digits of 28 × 28 pixels, and a network that classifies them."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    digits = load_digits()
    images = np.pad(np.kron(digits.images / 16, np.ones((3, 3))), ((0, 0), (2, 2), (2, 2)))
    X, y = images.reshape(-1, 784).astype(np.float32), digits.target
    model = quiet_fit(MLPClassifier((256, 128), batch_size=100, max_iter=8, random_state=0), X[:400], y[:400])
    return SimpleNamespace(model=model, X_train=X[:400], y_train=y[:400], X=X[1257:], y=y[1257:])


def session_of(content: Any) -> Any:
    """Return an ONNX Runtime session for model bytes. If they are invalid, raise AssertionError with an explanation."""
    from onnxruntime import InferenceSession

    if not isinstance(content, bytes):
        kind = type(content).__name__
        raise AssertionError(f"bytes expected, got {kind}: SerializeToString() of a graph, read_bytes() of a file")
    try:
        return InferenceSession(content)
    except Exception as error:
        why = f"ONNX Runtime cannot read your bytes ({type(error).__name__})"
        raise AssertionError(f"{why}: is it a pickle, or a file that is not whole?") from None


practice()  # on import, so that a grader makes it once, before it forks a process for each submission

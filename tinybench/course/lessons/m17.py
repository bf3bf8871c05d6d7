"""Helpers for module 17: digits shifted by a pixel, and a small set of digits with a network for the checks."""

from __future__ import annotations

import warnings
from functools import cache
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

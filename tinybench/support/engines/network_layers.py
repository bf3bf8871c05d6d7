"""The layers of a fitted multilayer perceptron in float32, and the last step of networks without softmax."""

from __future__ import annotations

from typing import Any

import numpy as np


def relu_layers(model: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the weights and biases of each layer of a fitted multilayer perceptron with ReLU.

    Raise TypeError for any other model.
    """
    if not hasattr(model, "coefs_") or getattr(model, "activation", "") != "relu":
        raise TypeError(
            f"{type(model).__name__} is not a fitted multilayer perceptron with ReLU; there is no NumPy twin"
        )
    layers = [
        (np.ascontiguousarray(W, np.float32), np.asarray(b, np.float32))
        for W, b in zip(model.coefs_, model.intercepts_, strict=True)
    ]
    if model.out_activation_ == "logistic" and len(layers[-1][1]) > 1:
        raise TypeError("a multi-label network has no NumPy twin here")
    return layers


def other_ending(a: np.ndarray, kind: str) -> np.ndarray:
    """Return the outputs of a network that does not end with softmax, from the values `a` of its output layer.

    The outputs are two probabilities per row if `kind` is ``"logistic"``, else the values of a regressor.
    """
    if kind == "logistic":
        p = 0.5 + 0.5 * np.tanh(a / 2)  # never overflows
        return np.hstack([1 - p, p])
    return a[:, 0] if a.shape[1] == 1 else a

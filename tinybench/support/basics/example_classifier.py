"""An example classifier for studies: a small neural network, and scikit-learn's data set of handwritten digits."""

from __future__ import annotations

from typing import Any


def digits() -> tuple[Any, ...]:
    """Return training rows and labels, then test rows and labels. A row holds 8 × 8 pixels from 0 to 1."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    pixels = (X / 16).astype(np.float32)
    X_train, X_test, y_train, y_test = train_test_split(pixels, y, test_size=540, random_state=0, stratify=y)
    return X_train, y_train, X_test, y_test


def network(layers: tuple[int, ...] = (256, 128), iterations: int = 60) -> Any:
    """Return an untrained network. The random seed is fixed, so the initial weights are always the same."""
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(layers, batch_size=200, max_iter=iterations, random_state=0)

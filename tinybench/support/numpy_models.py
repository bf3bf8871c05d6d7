"""Fitted scikit-learn models as plain NumPy code in float32.

Linear models, multilayer perceptrons, and pipelines that end in such a model are supported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from tinybench.latency import as_callable
from tinybench.onnx import check_parity, numpy_baseline
from tinybench.support.basics.short_reprs import short_repr


def _sigmoid(a: np.ndarray) -> np.ndarray:
    half: np.ndarray = 0.5 + 0.5 * np.tanh(a / 2)  # never overflows
    return half


def _activation(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    known: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "relu": lambda a: np.maximum(a, 0),
        "tanh": np.tanh,
        "logistic": _sigmoid,
        "identity": lambda a: a,
    }
    name = getattr(model, "activation", "identity")
    if name not in known:
        raise TypeError(f"{type(model).__name__} has {name!r} units, which are not written in NumPy here")
    return known[name]


@dataclass(frozen=True)
class NumpyTwin:
    """A fitted model as a NumPy function of rows. `borrowed` names the pipeline steps that still call scikit-learn."""

    steps: list[Callable[[Any], Any]]
    layers: list[tuple[np.ndarray, np.ndarray]]
    arrays: list[np.ndarray]
    borrowed: list[str]

    __repr__ = short_repr

    def __call__(self, X: Any) -> Any:
        """Return the probabilities of a classifier, or the values of a regressor."""
        for step in self.steps:
            X = step(X)
        return X


def numpy_twin(model: Any) -> NumpyTwin:
    """Return a fitted linear model or multilayer perceptron, alone or at the end of a pipeline, as plain NumPy.

    Scalers are rewritten in NumPy; other steps keep their own ``transform``. Before the twin is returned, its results
    are compared with those of the model on random rows. If the model cannot be rewritten, raise TypeError.
    """
    *before, last = [step for _, step in getattr(model, "steps", [("model", model)])]
    steps: list[Callable[[Any], Any]] = []
    arrays: list[np.ndarray] = []
    borrowed = []
    for transformer in before:
        if transformer in (None, "passthrough"):
            continue
        written = _scaler(transformer)
        if written is None:
            borrowed.append(type(transformer).__name__)
            written = transformer.transform, []
        steps.append(written[0])
        arrays += written[1]
    layers = dense_layers(last)
    rows = np.random.default_rng(0).normal(size=(16, int(model.n_features_in_))).astype(np.float32)
    arrays += [array for layer in layers for array in layer]
    twin = NumpyTwin([*steps, *_ending(last, layers)], layers, arrays, borrowed)
    try:
        check_parity(model, twin, rows, 1e-4 * max(1.0, float(np.abs(as_callable(model)(rows)).max())))
    except ValueError:
        raise TypeError(f"{type(last).__name__} computes something else than its weights alone say") from None
    return twin


def dense_layers(model: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the weights and biases of each layer in float32. Weights have the shape (inputs, units).

    A linear model has one layer.
    """
    if hasattr(model, "coefs_"):
        pairs = list(zip(model.coefs_, model.intercepts_, strict=True))
    elif getattr(model, "loss", "") == "modified_huber":
        raise TypeError(f"{type(model).__name__} with the loss modified_huber clips its scores; there is no NumPy twin")
    elif isinstance(getattr(model, "coef_", None), np.ndarray) and hasattr(model, "intercept_"):
        W = np.atleast_2d(model.coef_)
        pairs = [(W.T, np.broadcast_to(np.ravel(model.intercept_), len(W)))]
    else:
        raise TypeError(f"{type(model).__name__} is neither a linear model nor a multilayer perceptron")
    return [(np.ascontiguousarray(W, np.float32), np.asarray(b, np.float32)) for W, b in pairs]


def _ending(model: Any, layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[Callable[[Any], Any]]:
    """Return the functions that turn preprocessed features into predictions, in the order in which they run."""
    act, outputs = _activation(model), len(layers[-1][1])
    hidden: list[Callable[[Any], Any]] = [lambda X: np.asarray(X, np.float32)]
    hidden += [partial(_layer, W, b, act) for W, b in layers[:-1]]
    kind = getattr(model, "out_activation_", None)
    if kind is None:
        kind = "identity" if not hasattr(model, "predict_proba") else "logistic" if outputs == 1 else "softmax"
    if len(layers) == 1 and getattr(model, "loss", "") == "log_loss" and kind == "softmax":  # an SGDClassifier
        return [*hidden, lambda a: _one_against_rest(a @ layers[-1][0] + layers[-1][1])]
    # `numpy_baseline` supports only ReLU in hidden layers, but any activation in the last layer
    all_of_it = getattr(model, "activation", "") == "relu"
    end = list(layers) if all_of_it else [layers[-1]]
    weights_and_biases = {"coefs_": [W for W, _ in end], "intercepts_": [b for _, b in end]}
    network = SimpleNamespace(**weights_and_biases, activation="relu", out_activation_=kind)
    return [*hidden[: 1 if all_of_it else None], numpy_baseline(network)]


def _layer(W: np.ndarray, b: np.ndarray, act: Callable[[np.ndarray], np.ndarray], a: np.ndarray) -> np.ndarray:
    return act(a @ W + b)


def _one_against_rest(scores: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    p: np.ndarray = expit(scores.astype(np.float64))  # in float32 all probabilities of a row could be 0
    shares: np.ndarray = (p / p.sum(axis=1, keepdims=True)).astype(np.float32)
    return shares


def _scaler(step: Any) -> tuple[Callable[[Any], Any], list[np.ndarray]] | None:
    """Return a scikit-learn scaler as a NumPy function, and the arrays of the scaler. For any other step, return None.

    The operations run in the same order as in scikit-learn.
    """
    first, second = {
        "StandardScaler": ((np.subtract, "mean_"), (np.divide, "scale_")),
        "RobustScaler": ((np.subtract, "center_"), (np.divide, "scale_")),
        "MaxAbsScaler": ((np.subtract, ""), (np.divide, "scale_")),
        "MinMaxScaler": ((np.multiply, "scale_"), (np.add, "min_")),
    }.get(type(step).__name__, (None, None))
    if first is None or second is None or getattr(step, "clip", False):
        return None
    centred = getattr(step, "with_mean", True) and getattr(step, "with_centering", True)
    numbers = [getattr(step, first[1], None) if centred else None, getattr(step, second[1], None)]
    offset, unit = (numbers[1], 1.0) if first[0] is np.multiply else numbers
    # An offset far from 0 is kept in float64: rounded to float32, it would shift the rows by part of their spread.
    # Of these four scalers, scikit-learn rounds only the offset of StandardScaler.
    near = offset is None or np.all(np.abs(offset) <= 16 * np.abs(1.0 if unit is None else unit))
    kind = np.float32 if near or type(step).__name__ == "StandardScaler" else np.float64
    found = [(first[0], numbers[0]), (second[0], numbers[1])]
    known = [(operation, np.asarray(values, kind)) for operation, values in found if values is not None]

    def scaled(X: Any) -> np.ndarray:
        a: np.ndarray = np.asarray(X, np.float32)
        for operation, values in known:
            a = operation(a, values, dtype=kind).astype(np.float32, copy=False)
        return a

    return scaled, [values for _, values in known]

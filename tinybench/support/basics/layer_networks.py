"""Neural networks as lists of layers: conversion from scikit-learn, forward pass, parameter count and ONNX export."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tinybench.support.basics.onnx_files import refuse_existing, save_graph


class Layer(NamedTuple):
    """One layer of a network: ``max(x W + b, 0)``, or ``x W + b`` without ReLU.

    Attributes
    ----------
    W, b : numpy.ndarray
        The weights of shape (inputs, units), and the biases of shape (units,).
    relu : bool
        Whether a ReLU follows.
    """

    W: np.ndarray
    b: np.ndarray
    relu: bool = True


def check_layers(layers: Sequence[Layer]) -> list[Layer]:
    """Return the layers as a list. Raise ValueError if they do not fit together or hold NaN or infinite values."""
    layers = list(layers)
    if not layers:
        raise ValueError("there are no layers; layers_of(model) returns those of a fitted network")
    for i, (W, b, _) in enumerate(layers):
        if np.ndim(W) != 2 or np.shape(b) != np.shape(W)[1:] or (i and len(W) != len(layers[i - 1].b)):
            raise ValueError(
                f"layer {i}: weights of shape {np.shape(W)} and biases of shape {np.shape(b)} do not fit together, "
                "or not to the layer before; W is (inputs, units), b is (units,)"
            )
        if not (np.isfinite(W).all() and np.isfinite(b).all()):
            raise ValueError(f"layer {i} holds NaN or infinite weights: the training went wrong")
    return layers


def layers_of(model: Any) -> list[Layer]:
    """Return the layers of a fitted ``MLPClassifier`` with ReLU units and three or more classes, in float32."""
    if not hasattr(model, "coefs_"):
        raise TypeError(f"{type(model).__name__} has no weights; pass a fitted MLPClassifier")
    if model.activation != "relu" or model.out_activation_ != "softmax":
        raise TypeError(f"{model.activation} and {model.out_activation_} are not supported; ReLU and softmax are")
    parts = zip(model.coefs_, model.intercepts_, strict=True)
    last = len(model.coefs_) - 1
    made = [Layer(np.asarray(W, np.float32), np.asarray(b, np.float32), i < last) for i, (W, b) in enumerate(parts)]
    return check_layers(made)


def initial_layers(sizes: Sequence[int], seed: int) -> list[Layer]:
    """Return an untrained network with layers of these sizes, inputs first. Weights are scaled as in He (2015)."""
    rng = np.random.default_rng(seed)
    shapes = list(pairwise(sizes))
    weights = [rng.normal(0, math.sqrt(2 / n), (n, m)).astype(np.float32) for n, m in shapes]
    return [Layer(W, np.zeros(W.shape[1], np.float32), i < len(shapes) - 1) for i, W in enumerate(weights)]


def activations(layers: Sequence[Layer], X: Any) -> list[np.ndarray]:
    """Return the input rows and the output of each layer. The last output holds the scores before any softmax."""
    values = [np.asarray(X, np.float32)]
    for W, b, relu in layers:
        a = values[-1] @ W + b
        values.append(np.maximum(a, 0) if relu else a)
    return values


def parameters(layers: Sequence[Layer]) -> int:
    """Return the number of parameters of a network, including parameters that are zero."""
    return sum(layer.W.size + layer.b.size for layer in layers)


def zipped_size(path: str | Path) -> int:
    """Return the size of a file in bytes after compression with zlib, as for a download."""
    return len(zlib.compress(Path(path).read_bytes()))


def save_layers(layers: Sequence[Layer], path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a network as an ``.onnx`` file that maps rows to probabilities. Return the path."""
    from onnx import TensorProto, helper, numpy_helper

    path = Path(path)
    refuse_existing(path, overwrite)
    layers = check_layers(layers)
    nodes, tensors, x = [], [], "X"
    for i, (W, b, relu) in enumerate(layers):
        tensors += [numpy_helper.from_array(np.asarray(v, np.float32), f"{k}{i}") for k, v in (("W", W), ("b", b))]
        nodes.append(helper.make_node("MatMul", [x, f"W{i}"], [f"product{i}"]))
        nodes.append(helper.make_node("Add", [f"product{i}", f"b{i}"], [x := f"sum{i}"]))
        if relu:
            nodes.append(helper.make_node("Relu", [x], [x := f"relu{i}"]))
    nodes.append(helper.make_node("Softmax", [x], ["probabilities"], axis=1))
    columns = {"X": len(layers[0].W), "probabilities": len(layers[-1].b)}
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, n]) for name, n in columns.items()]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], tensors)
    save_graph(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path

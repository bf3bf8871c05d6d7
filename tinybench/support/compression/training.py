"""The training of a network of layers: Adam with a mask that keeps pruned weights at 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinybench.support.basics.layer_networks import Layer, activations, check_layers
from tinybench.support.basics.numbers import number_of
from tinybench.support.rounds.input_notes import check_runs


def adam_step(part: np.ndarray, slope: np.ndarray, mean: np.ndarray, square: np.ndarray, rate: float) -> None:
    """Change the weights `part` in place by one step of Adam (Kingma, Ba, 2015) against the gradient `slope`.

    The running means `mean` and `square` are updated, too.
    """
    mean += 0.1 * (slope - mean)
    square += 0.001 * (slope * slope - square)
    part -= rate * mean / (np.sqrt(square) + 1e-8)


def train_network(
    gradient: Callable[..., np.ndarray],
    layers: Sequence[Layer],
    X: Any,
    y: Any,
    epochs: int,
    *,
    seed: int,
    teacher: Any = None,
    temperature: float = 4.0,
    share: float = 0.9,
    keep_zeros: bool = True,
    rate: float = 2e-3,
    batch: int = 100,
) -> list[Layer]:
    """Train a network further, in float32, by Adam with a learning rate that falls linearly to 0. Return the result.

    Parameters
    ----------
    gradient
        The gradient of the loss with respect to the scores; see `distillation_gradient`.
    layers
        The network to start from, which is not changed.
    X, y
        Rows of shape (n, inputs), and their labels, from 0 to outputs − 1; else ValueError.
    epochs, batch
        Number of times that each row is used, and number of rows in a step.
    seed
        Seed of the order of the rows.
    teacher, temperature, share
        The teacher's scores, of shape (n, outputs), to learn from; None to learn from labels alone. See
        `distillation_loss`.
    keep_zeros
        Whether weights that are exactly 0 stay 0, so that pruned weights do not grow back.
    rate
        Learning rate of the first step.
    """
    net = [Layer(W.astype(np.float32), b.astype(np.float32), relu) for W, b, relu in check_layers(layers)]
    X, y = np.asarray(X, np.float32), np.asarray(y)
    shape = (len(X), len(net[-1].b))
    check_runs("epochs", epochs, 1)
    check_runs("batch", batch, 1)
    if X.ndim != 2 or not len(X) or X.shape[1] != len(net[0].W) or not np.isfinite(X).all():
        wanted = number_of(len(net[0].W), "finite number")
        raise ValueError(f"X has shape {X.shape}, or holds NaN; rows of {wanted} are expected")
    if y.shape != shape[:1] or not np.isin(y, np.arange(shape[1])).all():
        raise ValueError(f"y needs a label from 0 to {shape[1] - 1} for each of {number_of(len(X), 'row')}")
    if teacher is not None and np.shape(teacher) != shape:
        raise ValueError(f"the teacher's scores have shape {np.shape(teacher)}; {shape} is expected")
    masks = [layer.W != 0 for layer in net]
    moments = [[np.zeros((2, *part.shape), np.float32) for part in (layer.W, layer.b)] for layer in net]
    rng, steps, step = np.random.default_rng(seed), epochs * math.ceil(len(X) / batch), 0
    for _ in range(epochs):
        order = rng.permutation(len(X))
        for start in range(0, len(X), batch):
            rows = order[start : start + batch]
            pace = rate * (1 - step / steps)
            step += 1
            pace *= math.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            values = activations(net, X[rows])
            taught = None if teacher is None else np.asarray(teacher)[rows]
            slope = np.asarray(gradient(values[-1], y[rows], taught, temperature, share), np.float32)
            for i in reversed(range(len(net))):
                W, b, _ = net[i]
                slopes = values[i].T @ slope, slope.sum(axis=0)
                if i:
                    slope = slope @ W.T * (values[i] > 0 if net[i - 1].relu else np.float32(1))
                for part, its_slope, (mean, square) in zip((W, b), slopes, moments[i], strict=True):
                    adam_step(part, its_slope, mean, square, pace)
                if keep_zeros:
                    np.multiply(W, masks[i], out=W)
    return check_layers(net)

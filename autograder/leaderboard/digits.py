"""The task of the Olympics: handwritten digits, distorted; a public split, and private ones from a seed."""

from __future__ import annotations

import secrets
from functools import cache
from typing import Any

import numpy as np

from autograder.leaderboard.settings import Baseline

SIDE, FEATURES, CLASSES = 28, 784, 10
TRAINING_ORIGINALS = 1257
PRIVATE_ORIGINALS = np.arange(TRAINING_ORIGINALS + 1, 1797, 2)
PUBLIC_SEED = 17

Split = tuple[np.ndarray, np.ndarray]


@cache
def _originals() -> tuple[np.ndarray, np.ndarray]:
    """Return the 1797 digits that scikit-learn carries, as 28 × 28 pictures between 0 and 1, with their labels."""
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    digits = load_digits()
    pictures = np.stack([zoom(picture / 16, SIDE / 8, order=1) for picture in digits.images])
    return pictures.astype(np.float32), digits.target.astype(np.int64)


def distorted(originals: np.ndarray, rows: int, seed: int) -> Split:
    """Return digits that nobody has seen: rotated, scaled, sheared, shifted, and noisy.

    Parameters
    ----------
    originals
        Indices of the digits to draw from, shape ``(k,)``.
    rows
        How many to make; each original is used as often as the others, give or take one.
    seed
        The same seed, the same digits.

    Returns
    -------
    tuple of array
        Pictures ``(rows, 784)``, float32 between 0 and 1, and labels ``(rows,)``, int64.
    """
    from scipy.ndimage import affine_transform

    rng = np.random.default_rng(seed)
    pictures, labels = _originals()
    chosen = rng.permutation(np.resize(rng.permutation(originals), rows))
    angle, shear = rng.normal(0, 0.08, rows), rng.normal(0, 0.06, rows)
    scale, shift = rng.uniform(0.92, 1.1, (rows, 2)), rng.normal(0, 0.6, (rows, 2))
    center = (SIDE - 1) / 2
    made = np.empty((rows, SIDE, SIDE), np.float32)
    for row, index in enumerate(chosen):
        cos, sin = np.cos(angle[row]), np.sin(angle[row])
        matrix = np.array([[cos, -sin + shear[row]], [sin, cos]]) * scale[row]
        offset = center - matrix @ np.full(2, center) + shift[row]
        made[row] = affine_transform(pictures[index], matrix, offset, order=1)
    made += rng.normal(0, 0.06, made.shape).astype(np.float32)
    return np.clip(made, 0, 1).reshape(rows, FEATURES), labels[chosen]


@cache
def training_split(rows: int = 10_000) -> Split:
    """Return digits to train on; their originals are in no other split."""
    return distorted(np.arange(TRAINING_ORIGINALS), rows, PUBLIC_SEED + 1)


@cache
def public_split(rows: int) -> Split:
    """Return the digits that everybody may test on."""
    return distorted(np.arange(TRAINING_ORIGINALS, 1797, 2), rows, PUBLIC_SEED)


@cache
def private_split(rows: int, seed: int) -> Split:
    """Return the digits that decide: other originals, distorted by a seed that only the database holds."""
    return distorted(PRIVATE_ORIGINALS, rows, seed)


def fresh_digits(rows: int) -> Split:
    """Return digits made as the private ones are, new ones at each call."""
    return distorted(PRIVATE_ORIGINALS, rows, secrets.randbits(64))


def to_onnx_bytes(model: Any) -> bytes:
    """Return a fitted scikit-learn classifier as the bytes of an entry."""
    from skl2onnx import to_onnx

    sample = np.zeros((1, FEATURES), np.float32)
    return bytes(to_onnx(model, sample, options={"zipmap": False}).SerializeToString())


@cache
def tiny_model() -> bytes:
    """Return the smallest network of the task, which wakes the runtime up and weighs next to nothing."""
    from onnx import TensorProto, helper, numpy_helper

    model = helper.make_model(
        helper.make_graph(
            [
                helper.make_node("MatMul", ["digits", "weights"], ["sums"]),
                helper.make_node("Softmax", ["sums"], ["scores"]),
            ],
            "tiny",
            [helper.make_tensor_value_info("digits", TensorProto.FLOAT, [None, FEATURES])],
            [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, CLASSES])],
            [numpy_helper.from_array(np.ones((FEATURES, CLASSES), np.float32), "weights")],
        ),
        opset_imports=[helper.make_opsetid("", 21)],
        ir_version=10,
    )
    return bytes(model.SerializeToString())


def train_baseline(baseline: Baseline) -> bytes:
    """Train the network that every entry is measured beside, and return it as an entry."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    images, labels = training_split()
    model = MLPClassifier(baseline.hidden, batch_size=200, max_iter=baseline.iterations, random_state=baseline.seed)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of iterations is what the instructor set
        model.fit(images, labels)
    return to_onnx_bytes(model)

"""The task of the Olympics: handwritten digits, distorted; a public split, and private ones from a seed."""

from __future__ import annotations

import secrets
from functools import cache
from typing import Any

import numpy as np

from autograder.leaderboard.settings import Baseline
from tinybench.course.digits import FEATURES, Split, distorted

CLASSES = 10
TRAINING_ORIGINALS = 1257
PRIVATE_ORIGINALS = np.arange(TRAINING_ORIGINALS + 1, 1797, 2)
PUBLIC_SEED = 17


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
    """Train the network that every entry is compared with, and return it as an entry."""
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

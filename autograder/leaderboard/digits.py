"""The task of the Olympics: distorted handwritten digits, in a training split, a public split and private splits.

A secret seed determines a private split.
"""

from __future__ import annotations

import secrets
from functools import cache
from typing import Any

import numpy as np

from autograder.leaderboard.settings import Baseline
from tinybench.course.case_study_data import FEATURES, Split, distorted, originals_of

CLASSES = 10
TRAINING_ORIGINALS = 1257
PUBLIC_ORIGINALS = np.arange(TRAINING_ORIGINALS, 1797, 2)
PRIVATE_ORIGINALS = np.arange(TRAINING_ORIGINALS + 1, 1797, 2)
PUBLIC_SEED = 17


@cache
def training_split(rows: int = 10_000) -> Split:
    """Return digits for training. No other split is made from the same original images."""
    return distorted(np.arange(TRAINING_ORIGINALS), rows, PUBLIC_SEED + 1)


@cache
def public_split(rows: int) -> Split:
    """Return the public digits, which everybody may use for testing."""
    return distorted(PUBLIC_ORIGINALS, rows, PUBLIC_SEED)


def public_originals(rows: int) -> np.ndarray:
    """Return the original of each public digit."""
    return originals_of(PUBLIC_ORIGINALS, rows, PUBLIC_SEED)


@cache
def private_split(rows: int, seed: int) -> Split:
    """Return the private digits, which decide the ranking.

    They are made from different original images than the public digits, and distorted with a secret `seed`.
    """
    return distorted(PRIVATE_ORIGINALS, rows, seed)


def private_originals(rows: int, seed: int) -> np.ndarray:
    """Return the original of each private digit."""
    return originals_of(PRIVATE_ORIGINALS, rows, seed)


def fresh_digits(rows: int) -> Split:
    """Return new digits at each call. They are made like the private digits, but with a random seed."""
    return distorted(PRIVATE_ORIGINALS, rows, secrets.randbits(64))


def to_onnx_bytes(model: Any) -> bytes:
    """Return a fitted scikit-learn classifier as the bytes of an .onnx file that can be entered."""
    from skl2onnx import to_onnx

    sample = np.zeros((1, FEATURES), np.float32)
    return bytes(to_onnx(model, sample, options={"zipmap": False}).SerializeToString())


@cache
def tiny_model() -> bytes:
    """Return a minimal network for the task. It warms up the runtime and takes almost no memory."""
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
    """Train the baseline network, with which every entry is compared.

    Return the network as the bytes of an .onnx file.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    images, labels = training_split()
    model = MLPClassifier(baseline.hidden, batch_size=200, max_iter=baseline.iterations, random_state=baseline.seed)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the instructor sets the iterations
        model.fit(images, labels)
    return to_onnx_bytes(model)

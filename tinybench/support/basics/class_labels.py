"""The labels of a classifier: what kind of output it gives, the label of each row, and labels that can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinybench.support.basics.numbers import number_of


def output_kind(outputs: np.ndarray) -> str:
    """Return the kind of a classifier's outputs: ``"labels"``, ``"probabilities"`` or ``"logits"``.

    The outputs hold one row of scores, or one value, for each row of the input.

    ``"labels"``: one value for each row, and either a dtype that is not floating-point, or only whole numbers.
    ``"probabilities"``: all numbers lie within 0 and 1, and if there are several columns, each row sums to 1 (to within
    0.01, because of low precision). ``"logits"``: any other numbers. Pass the outputs for all rows together, because a
    few logits may happen to lie between 0 and 1.
    """
    columns = 1 if outputs.ndim == 1 else outputs.shape[1]
    if columns == 1 and (outputs.dtype.kind != "f" or np.array_equal(outputs, np.round(outputs))):
        return "labels"
    within = bool(np.all((outputs >= 0) & (outputs <= 1)))
    if within and (columns == 1 or np.allclose(outputs.sum(axis=1), 1, atol=0.01)):
        return "probabilities"
    return "logits"


def predicted_labels(
    outputs: np.ndarray, kind: str, classes: Sequence[Any] | np.ndarray, threshold: float | None = None
) -> np.ndarray:
    """Return one label for each row of a model's outputs. For their `kind` see `output_kind`.

    `classes` are the labels of the columns. A single column of scores stands for two classes, and so has two labels.
    The second of two classes is predicted if its score is at least the threshold. This score is the probability of the
    second class (default threshold 0.5), its logit (default threshold 0.0), or, with two columns of logits, the
    difference of the two. With several columns and no threshold, the largest score decides.
    """
    if kind == "labels":
        return outputs.reshape(-1)
    rows = outputs.reshape(len(outputs), -1)
    columns, labels = rows.shape[1], np.asarray(classes)
    if len(labels) != max(columns, 2):
        raise ValueError(
            f"{number_of(columns, 'column')} of {kind}, but {number_of(len(labels), 'class')}: {labels.tolist()}"
        )
    if columns > 2 and threshold is not None:
        raise ValueError(f"a threshold chooses between two classes, here are {columns}; leave it out")
    if columns > 1 and threshold is None:
        largest: np.ndarray = np.argmax(rows, axis=1)
        return labels.take(largest)
    score = rows[:, -1]
    if columns == 2 and kind == "logits":
        score = rows[:, 1] - rows[:, 0]
    if threshold is None:
        threshold = 0.5 if kind == "probabilities" else 0.0
    return labels.take((score >= threshold).astype(int))


def checked_labels(y: Any, predicted: Any, name: str = "the prediction") -> tuple[np.ndarray, np.ndarray]:
    """Return true and predicted labels as arrays.

    Raises ValueError if there are no labels, the lengths differ, a label is NaN, or only one of `y` and `predicted` is
    text.
    """
    truth, said = np.asarray(y), np.asarray(predicted)
    if truth.ndim != 1 or said.ndim != 1 or len(truth) != len(said):
        raise ValueError(f"{name} has shape {said.shape} and y has {truth.shape}; both need one label a row")
    if len(truth) == 0:
        raise ValueError(f"{name} is empty; there is nothing to compare")
    if (truth.dtype.kind in "US") != (said.dtype.kind in "US"):
        raise ValueError(f"{name} is {said.tolist()[0]!r} where y is {truth.tolist()[0]!r}: text never equals a number")
    for what, labels in (("y", truth), (name, said)):
        if labels.dtype.kind == "f" and np.isnan(labels).any():
            raise ValueError(
                f"{what} is NaN in row {int(np.argmax(np.isnan(labels)))}; NaN is not a class: leave such rows out"
            )
    return truth, said

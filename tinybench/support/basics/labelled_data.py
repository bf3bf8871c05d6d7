"""Datasets of labelled rows: their names, the labels of a model's columns, and which rows a model labels correctly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np

from tinybench.support.basics.class_labels import checked_labels, predicted_labels
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.type_checks import check_kinds, describe


def named_datasets(datasets: Any) -> dict[str, tuple[Any, np.ndarray]]:
    """Check a pair ``(X, y)``, a list of pairs, or a mapping of names to pairs. Return the datasets by name.

    Pairs without a name are called ``dataset 0``, ``dataset 1``, and so on.
    """
    if datasets is not None and not isinstance(datasets, Iterable):
        raise TypeError(
            f"datasets is {describe(datasets)}; it must be a pair (X, y), a list of pairs, or a dictionary of them"
        )
    if isinstance(datasets, Mapping):
        named = {str(name): pair for name, pair in datasets.items()}
    elif isinstance(datasets, tuple) and len(datasets) == 2 and not isinstance(datasets[0], tuple):
        named = {"dataset 0": datasets}
    else:
        named = {f"dataset {index}": pair for index, pair in enumerate(datasets if datasets is not None else ())}
    if not named:
        raise ValueError("no dataset: pass a pair (X, y), a list of pairs, or a dictionary of pairs by name")
    return {name: _checked_dataset(name, pair) for name, pair in named.items()}


def _checked_dataset(name: str, pair: Any) -> tuple[Any, np.ndarray]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ValueError(f"{name} is no pair (X, y) but {type(pair).__name__}")
    if not hasattr(pair[0], "shape") and not isinstance(pair[0], Sized):
        raise TypeError(f"{name}: X is {describe(pair[0])}; it must hold a row for each label")
    check_kinds({}, {"y": pair[1]})
    inputs = np.asarray(pair[0]) if isinstance(pair[0], list | tuple) else pair[0]
    labels = np.asarray(pair[1])
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    rows = inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)
    if labels.ndim != 1:
        raise ValueError(f"{name}: y has shape {labels.shape}; it needs one label a row (one-hot: y.argmax(axis=1))")
    if rows != len(labels):
        raise ValueError(f"{name}: X has {number_of(rows, 'row')}, y has {number_of(len(labels), 'label')}")
    if rows == 0:
        raise ValueError(f"{name} is empty; an accuracy needs at least one row")
    if labels.dtype.kind == "f" and not np.array_equal(labels, np.round(labels)):
        odd = labels[labels != np.round(labels)][0]
        raise ValueError(f"{name}: y holds {odd}, which is no class; accuracy is for labels, not for quantities")
    return inputs, labels


def known_classes(
    model: Any, kind: str, outputs: np.ndarray, named: Mapping[str, tuple[Any, np.ndarray]]
) -> np.ndarray:
    """Return the label of each column of the outputs. If the outputs are labels, return all that the datasets contain.

    The labels of the columns are ``model.classes_``. If the model lacks that attribute, they are the numbers from 0,
    or, for a single column, the two labels that the datasets contain. Raises ValueError if neither choice fits the
    labels of the datasets.
    """
    occurring = np.unique(np.concatenate([labels for _, labels in named.values()]))
    if kind == "labels":
        return occurring
    if hasattr(model, "classes_"):
        return np.asarray(model.classes_)
    columns = 1 if outputs.ndim == 1 else outputs.shape[1]
    numbered = np.arange(max(columns, 2))
    if np.isin(occurring, numbered).all():
        return numbered
    if columns == 1 and len(occurring) == 2:
        return occurring
    some = f"{occurring[:5].tolist()}{'…' if len(occurring) > 5 else ''}"
    raise ValueError(
        f"y holds the labels {some}, but the model has no classes_ and its columns would be 0 to {len(numbered) - 1}; "
        "pass classes=[…], the label of each column"
    )


def right_rows(
    model: Any,
    answers: Mapping[str, np.ndarray],
    named: Mapping[str, tuple[Any, np.ndarray]],
    kind: str,
    classes: Sequence[Any] | np.ndarray | None,
    threshold: float | None,
) -> dict[str, np.ndarray]:
    """Return for each dataset an array that states for each row whether the model's label is right.

    `answers` are the outputs of the model by dataset, all of one `kind`. If `classes` is None, `known_classes` finds
    the labels of the columns.
    """
    if classes is None:
        classes = known_classes(model, kind, np.concatenate(list(answers.values())), named)
    right = {}
    for name, (_, y) in named.items():
        predicted = predicted_labels(answers[name], kind, classes, threshold)
        truth, said = checked_labels(y, predicted, f"{name}: the prediction")
        right[name] = said == truth
    return right

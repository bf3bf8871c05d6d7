# Written by "autograder export" from modules/04_accuracy/04_accuracy.ipynb: edit the notebook, not this file.

"""Accuracy with its uncertainty: intervals, recall per class, and tests of whether two models differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tinybench.latency import as_callable
from tinybench.result import BenchmarkResult
from tinybench.support.basics.arguments import check_share
from tinybench.support.basics.class_labels import checked_labels, output_kind, predicted_labels
from tinybench.support.basics.counted_rows import check_right_rows, packed_rows
from tinybench.support.basics.grouped_rows import group_deviations, named_groups, numbered_groups, sign_flip_p
from tinybench.support.basics.labelled_data import named_datasets as named_datasets
from tinybench.support.basics.labelled_data import right_rows
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.paired_rows import McNemarResult, group_differences
from tinybench.support.basics.paired_rows import ParityResult as ParityResult
from tinybench.support.rounds.machine_state import machine_notes


def wilson_interval(
    correct: float, total: float, confidence: float = 0.95, worth: float | None = None
) -> tuple[float, float]:
    """Return the Wilson score interval for the proportion of `correct` rows among `total` rows, within 0 and 1.

    The interval begins at exactly 0 if no row is correct, and ends at exactly 1 if all rows are correct. Raises
    ValueError if there are no rows, `correct` is not a count from 0 to `total`, or `confidence` is not between 0 and 1.
    `worth` is the number of independent rows that all rows are worth (`effective_rows`), by default `total`.
    """
    check_right_rows(correct, total, confidence, worth)
    if worth is not None:
        correct, total = worth / total * correct, worth / total * total
    from scipy.special import ndtri  # quantiles of the normal distribution

    z = float(ndtri(0.5 + confidence / 2))
    share = correct / total
    middle = share + z**2 / (2 * total)
    reach = z * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    scale = 1 + z**2 / total
    lower = 0.0 if correct == 0 else (middle - reach) / scale
    upper = 1.0 if correct == total else (middle + reach) / scale
    return lower, upper


def design_effect(values: Any, groups: Any) -> float:
    """Return the design effect: the factor by which dependence within groups increases the variance of the mean.

    `groups` holds the group of each value. If all values are equal, the effect cannot be estimated. The
    result is then that of groups whose values always agree. Kish, Survey Sampling (1965), section 8.2.
    """
    values = np.asarray(values, dtype=float)
    sizes, sums = group_deviations(values, groups)  # of each group: its size, and the sum of its deviations
    if np.all(values == values[0]):
        return float(np.sum(sizes**2) / np.sum(sizes))
    squares = np.sum((values - values.mean()) ** 2)
    return float(len(sums) / (len(sums) - 1) * np.sum(sums**2) / squares)


def effective_rows(values: Any, groups: Any, confidence: float = 0.95) -> float:
    """Return the number of independent rows that the rows are worth, for an interval that takes z from `confidence`.

    The result lies between the number of rows and what they are worth if the values of each group always agree.
    Satterthwaite, Biometrics Bulletin 2 (1946); Korn, Graubard, Survey Methodology 24 (1998).
    """
    from scipy.special import ndtri, stdtrit  # quantiles: ndtri(q) is z, stdtrit(degrees of freedom, q) is t

    check_share(confidence=confidence)
    values = np.asarray(values, dtype=float)
    sizes, sums = group_deviations(values, groups)
    least = float(len(values) ** 2 / np.sum(sizes**2))
    if not sums.any():
        return least  # all groups have the same mean, which does not show how much they scatter
    freedom = max(1.0, np.sum(sums**2) ** 2 / np.sum(sums**4) - 1)
    quantile = 0.5 + confidence / 2
    narrower = ndtri(quantile) / stdtrit(freedom, quantile)
    rows = len(values) / design_effect(values, groups) * narrower**2
    return float(min(max(rows, least), len(values)))


def cluster_interval(right: Any, groups: Any, confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval for the accuracy on rows that depend on each other within groups.

    It is Wilson's interval for the number of independent rows that the rows are worth (`effective_rows`). If each row
    is its own group, it equals `wilson_interval`. If the rows of each group agree and all groups have the same size, it
    equals the interval from one row of each group.
    """
    right = np.asarray(right, dtype=bool)
    return wilson_interval(int(right.sum()), len(right), confidence, effective_rows(right, groups, confidence))


def checked_outputs(outputs: Any, rows: int, name: str) -> np.ndarray:
    """Return a model's outputs for `rows` rows as an array of one or two dimensions.

    Raises ValueError if there is not exactly one output for each row, or if an output contains NaN. The message
    contains the name of the dataset, and for NaN the number of the first such row.
    """
    array = np.asarray(outputs)
    if array.ndim not in (1, 2) or len(array) != rows or array.size == 0:
        raise ValueError(f"{name}: {number_of(rows, 'row')} went in, outputs of shape {array.shape} came out")
    if array.dtype.kind == "f":
        broken = np.isnan(array.reshape(rows, -1)).any(axis=1)
        if broken.any():
            raise ValueError(
                f"{name}: the output for row {int(np.argmax(broken))} is NaN ({int(broken.sum())} of {rows} rows)"
            )
    return array


def counted(right: np.ndarray, confidence: float = 0.95, groups: Any = None) -> dict[str, Any]:
    """Return metadata: the counts, the accuracy, its Wilson interval, and which rows are right; see `packed_rows`.

    With `groups`, the interval is the `cluster_interval`, and the metadata also holds the ``design_effect``, the number
    of ``groups``, and ``group_of``, the number of each row's group.
    """
    found = packed_rows(right)
    if groups is None:
        return found | {"wilson_interval": list(wilson_interval(found["correct"], found["total"], confidence))}
    numbers = numbered_groups(groups, len(right))
    found |= {"groups": int(numbers.max()) + 1, "group_of": numbers.tolist()}
    found |= {"design_effect": design_effect(right, numbers)}
    return found | {"wilson_interval": list(cluster_interval(right, numbers, confidence))}


def counted_together(
    right: Mapping[str, np.ndarray], confidence: float, groups: Mapping[str, np.ndarray] | None = None
) -> dict[str, Any]:
    """Return the metadata of all rows together (see `counted`), with the `machine_notes`.

    The key ``datasets`` holds the metadata of each dataset. Rows of different datasets may belong to the same group.
    """
    each = {name: counted(rows, confidence, groups and groups[name]) for name, rows in right.items()}
    every_group = groups and np.concatenate([groups[name] for name in right])
    together = counted(np.concatenate(list(right.values())), confidence, every_group)
    return {**together, "datasets": each, "confidence": confidence, **machine_notes()}


def rows_right(metadata: Mapping[str, Any]) -> np.ndarray | None:
    """Return an array that states for each row whether it was right, or None if this is not known.

    `metadata` is the result of `counted`.
    """
    if "right" not in metadata:
        return None
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(metadata["right"]), np.uint8))
    return bits[: metadata["total"]].astype(bool)


def measure_accuracy(
    model: Any,
    datasets: Any,
    *,
    outputs: str = "auto",
    classes: Sequence[Any] | np.ndarray | None = None,
    threshold: float | None = None,
    confidence: float = 0.95,
    groups: Any = None,
) -> BenchmarkResult:
    """Return the measured fraction of rows that a classifier labels correctly, one value for each dataset.

    The metadata holds the counts (see `counted_together`), the kind of ``outputs``, and the ``threshold``.

    Parameters
    ----------
    model, datasets
        Any model that `as_callable` accepts, whose exceptions are not caught. A pair ``(X, y)``, a sequence of pairs,
        or a mapping of names to pairs.
    outputs
        Kind of the model's outputs: ``"labels"``, ``"probabilities"``, ``"logits"``, or ``"auto"`` for `output_kind`.
    classes, threshold
        The label of each column of the outputs, by default as in `known_classes`; the threshold for choosing between
        two classes, see `predicted_labels`.
    confidence, groups
        Coverage of the Wilson intervals, and ``confidence`` of the result. The group of each row, if rows depend on
        each other, such as copies of one original; for several datasets, a sequence or mapping like ``datasets``.

    Raises
    ------
    ValueError
        If there is no dataset; or if a dataset is empty, has inputs, labels or groups of different lengths, or makes
        the model return NaN or labels that cannot be compared with its own. The message names that dataset.
    """
    if outputs not in ("auto", "labels", "probabilities", "logits"):
        raise ValueError(f"outputs is {outputs!r}; it is 'auto', 'labels', 'probabilities' or 'logits'")
    named, call = named_datasets(datasets), as_callable(model)
    if groups is not None:
        groups = named_groups(groups, {name: len(y) for name, (_, y) in named.items()})
    answers = {name: checked_outputs(call(inputs), len(y), name) for name, (inputs, y) in named.items()}
    kind = output_kind(np.concatenate(list(answers.values()))) if outputs == "auto" else outputs
    right = right_rows(model, answers, named, kind, classes, threshold)
    metadata = {**counted_together(right, confidence, groups), "outputs": kind, "threshold": threshold}
    values = [float(np.mean(rows)) for rows in right.values()]
    return BenchmarkResult("accuracy", values, metadata, confidence=confidence)


def recall_per_class(y: Any, predicted: Any) -> dict[Any, float]:
    """Return the recall of each class in `y`: the fraction of the rows of that class that were recognised.

    The classes are sorted by label. Raises ValueError if there are no labels, the lengths differ, or text is compared
    with numbers.
    """
    truth, said = checked_labels(y, predicted)
    return {label: float(np.mean(said[truth == label] == label)) for label in np.unique(truth).tolist()}


def balanced_accuracy(y: Any, predicted: Any) -> float:
    """Return the mean of the recalls of all classes, from 0 to 1.

    Random guessing gives 1 / number of classes, even if some classes are rare.

    Parameters
    ----------
    y, predicted
        True and predicted labels, of the same length. For the exceptions see `recall_per_class`.

    References
    ----------
    Brodersen, Ong, Stephan, Buhmann, "The balanced accuracy and its posterior distribution", ICPR 2010.
    """
    recalls = recall_per_class(y, predicted)
    return math.fsum(recalls.values()) / len(recalls)


def mcnemar_by_groups(y: Any, pred_a: Any, pred_b: Any, groups: Any) -> McNemarResult:
    """Return the result of `mcnemar` if groups, not rows, are independent. The p value is that of `sign_flip_p`."""
    rowwise = mcnemar(y, pred_a, pred_b)
    gaps, numbers, differences = group_differences(y, pred_a, pred_b, groups)
    p_value, exact = sign_flip_p(differences)
    worth = effective_rows(gaps, numbers)
    return replace(rowwise, p_value=p_value, exact=exact, groups=len(differences), worth=worth)


def mcnemar(y: Any, pred_a: Any, pred_b: Any, groups: Any = None) -> McNemarResult:
    """Test whether two models are equally accurate, from their labels on the same rows.

    Parameters
    ----------
    y, pred_a, pred_b
        True labels, and the labels that each model predicted.
    groups
        The group of each row, if rows depend on each other. The p value then comes from random signs of
        the differences of groups, see `mcnemar_by_groups`.

    Returns
    -------
    McNemarResult
        The two-sided p value, and both counts of discordant rows. A row is discordant if only one of the models gets it
        right. For fewer than 25 discordant rows, the p value is exact; otherwise it comes from the chi-squared
        distribution with continuity correction. Raises ValueError if there are no labels, or if the labels cannot be
        compared.

    References
    ----------
    McNemar, Psychometrika 12 (1947). Edwards, the same journal, 13 (1948), for the correction.
    """
    from scipy.special import bdtr, chdtrc

    if groups is not None:
        return mcnemar_by_groups(y, pred_a, pred_b, groups)
    truth, said_a = checked_labels(y, pred_a, "pred_a")
    truth, said_b = checked_labels(y, pred_b, "pred_b")
    right_a, right_b = said_a == truth, said_b == truth
    only_a, only_b = int(np.sum(right_a & ~right_b)), int(np.sum(right_b & ~right_a))
    discordant = only_a + only_b
    exact = discordant < 25
    if exact:
        p_value = min(1.0, 2 * float(bdtr(min(only_a, only_b), discordant, 0.5)))
    else:
        p_value = float(chdtrc(1, (abs(only_a - only_b) - 1) ** 2 / discordant))
    return McNemarResult(p_value, only_a, only_b, len(truth), exact)


def parity(pred_a: Any, pred_b: Any, threshold: float | None = None) -> ParityResult:
    """Compare the outputs of two models on the same rows, by the differences of scores and the agreement of labels.

    Parameters
    ----------
    pred_a, pred_b
        Probabilities, logits or labels of each model, both of the same shape.
    threshold
        Threshold for choosing between two classes; see `predicted_labels`.

    Returns
    -------
    ParityResult
        The differences are None if the outputs are labels. Raises ValueError if the shapes differ, there are no rows,
        an output is NaN, or only one of `pred_a` and `pred_b` is text.
    """
    a, b = np.atleast_1d(pred_a), np.atleast_1d(pred_b)
    if a.shape != b.shape:
        raise ValueError(f"pred_a has shape {a.shape} and pred_b has {b.shape}; give both the same rows")
    a, b = checked_outputs(a, len(a), "pred_a"), checked_outputs(b, len(b), "pred_b")
    kind = output_kind(np.concatenate([a, b]))
    classes = range(max(2, a[0].size))
    label_a, label_b = (predicted_labels(x, kind, classes, threshold) for x in (a, b))
    label_a, label_b = checked_labels(label_a, label_b, "pred_b")
    agreement = float(np.mean(label_a == label_b))
    if kind == "labels":
        return ParityResult(None, None, agreement, len(a))
    with np.errstate(invalid="ignore"):
        gap = np.where(a == b, 0.0, np.abs(a.astype(float) - b.astype(float)))  # equal infinities do not differ
    return ParityResult(float(gap.max()), float(gap.mean()), agreement, len(a))

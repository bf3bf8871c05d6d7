# Written by "autograder export" from modules/04_accuracy/04_accuracy.ipynb: edit the notebook, not this file.

"""Accuracy with its uncertainty: intervals, recall per class, and tests of whether two models differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinybench.latency import as_callable
from tinybench.result import BenchmarkResult
from tinybench.support.basics.arguments import check_least, check_share
from tinybench.support.basics.grouped_rows import group_deviations, named_groups, numbered_groups, sign_flip_p
from tinybench.support.basics.numbers import number_of, p_text
from tinybench.support.basics.type_checks import check_kinds, describe
from tinybench.support.rounds.machine_state import machine_notes


def wilson_interval(
    correct: float, total: float, confidence: float = 0.95, worth: float | None = None
) -> tuple[float, float]:
    """Return the Wilson score interval for the proportion of `correct` rows among `total` rows, within 0 and 1.

    The interval begins at exactly 0 if no row is correct, and ends at exactly 1 if all rows are correct. Raises
    ValueError if there are no rows, `correct` is not a count from 0 to `total`, or `confidence` is not between 0 and 1.
    `worth` is the number of independent rows that all rows are worth (`effective_rows`), by default `total`.
    """
    if not 1 <= total < math.inf or total != int(total):
        raise ValueError(f"total is {total}; an accuracy needs at least one row")
    if not 0 <= correct <= total or correct != int(correct):
        raise ValueError(f"correct is {correct} of {total}; it is a count of rows, not a share")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must lie between 0 and 1, such as 0.95")
    if worth is not None:
        if not 0 < worth <= total:
            raise ValueError(
                f"worth is {worth}; {number_of(int(total), 'row')} are worth more than 0 rows, and at most {total:g}"
            )
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


def counted(right: np.ndarray, confidence: float = 0.95, groups: Any = None) -> dict[str, Any]:
    """Return metadata: the counts, the accuracy, its Wilson interval, and which rows are right.

    Which rows are right is stored as hexadecimal digits, with one bit for each row. With `groups`, the interval is the
    `cluster_interval`, and the metadata also holds the ``design_effect``, the number of ``groups``, and ``group_of``,
    the number of each row's group.
    """
    correct, total = int(np.sum(right)), len(right)
    found: dict[str, Any] = {"correct": correct, "total": total, "accuracy": correct / total}
    found |= {"right": np.packbits(right).tobytes().hex()}
    if groups is None:
        return found | {"wilson_interval": list(wilson_interval(correct, total, confidence))}
    numbers = numbered_groups(groups, total)
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
    everything = np.concatenate(list(answers.values()))
    kind = output_kind(everything) if outputs == "auto" else outputs
    if classes is None:
        classes = known_classes(model, kind, everything, named)
    right = {}
    for name, (_, y) in named.items():
        predicted = predicted_labels(answers[name], kind, classes, threshold)
        y, predicted = checked_labels(y, predicted, f"{name}: the prediction")
        right[name] = predicted == y
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


@dataclass(frozen=True)
class McNemarResult:
    """The result of McNemar's test.

    Attributes
    ----------
    p_value : float
        Probability that discordant rows are divided between the models at least as unevenly as observed, if both models
        are equally good. A row is discordant if only one of the models gets it right.
    only_a, only_b : int
        Number of rows that only the first model gets right, and number that only the second model gets right.
    rows : int
        Number of all rows.
    exact : bool
        Whether the p value is exact, from the binomial distribution or from all signs, and not an approximation.
    groups : int or None
        Number of groups of rows that depend on each other; None if rows are independent.
    worth : float or None
        Number of independent rows that the rows are worth for the difference; see `effective_rows`.
    """

    p_value: float
    only_a: int
    only_b: int
    rows: int
    exact: bool
    groups: int | None = None
    worth: float | None = None

    @property
    def difference(self) -> float:
        """Accuracy of the first model minus accuracy of the second."""
        return (self.only_a - self.only_b) / self.rows

    @property
    def difference_ci(self) -> tuple[float, float]:
        """The 95 % interval of the difference, which holds 0 unless the p value is below 5 %."""
        lower, upper = difference_interval(self.only_a, self.only_b, self.rows, worth=self.worth)
        return (min(lower, 0.0), max(upper, 0.0)) if self.groups and self.p_value >= 0.05 else (lower, upper)

    def __str__(self) -> str:
        """Return the result as a sentence."""
        method = "exact" if self.exact else "chi-squared"
        few = (
            number_of(self.only_a + self.only_b, "discordant row")
            if self.exact and not min(self.only_a, self.only_b)
            else ""
        )
        rows, test = number_of(self.rows, "row"), f"McNemar, {method}"
        if self.groups:
            rows, few, test = f"{rows} in {number_of(self.groups, 'group')}", "", f"signs of groups, {method}"
        return (
            f"{100 * self.difference:+.2f} points for a over b on {rows}: only a right {self.only_a}, "
            f"only b right {self.only_b}, {p_text(self.p_value, few)} ({test})"
        )


def mcnemar_by_groups(y: Any, pred_a: Any, pred_b: Any, groups: Any) -> McNemarResult:
    """Return the result of `mcnemar` if groups, not rows, are independent. The p value is that of `sign_flip_p`."""
    rowwise = mcnemar(y, pred_a, pred_b)
    truth, said_a, said_b = np.asarray(y), np.asarray(pred_a), np.asarray(pred_b)
    gaps = (said_a == truth).astype(int) - (said_b == truth)
    numbers = numbered_groups(groups, len(gaps))
    differences = np.rint(np.bincount(numbers, weights=gaps)).astype(int)
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


def count_interval(count: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact interval for the mean of a Poisson distribution, from the `count` of observed events.

    Garwood, Biometrika 28 (1936).
    """
    from scipy.special import gammaincinv

    check_least(count=count)
    check_share(confidence=confidence)
    tail = (1 - confidence) / 2
    return float(gammaincinv(count, tail)) if count else 0.0, float(gammaincinv(count + 1, 1 - tail))


def exact_p(only_a: float, only_b: float) -> float:
    """Return the two-sided p value of an exact McNemar test.

    `only_a` and `only_b` are the numbers of rows that only the first or only the second model gets right. Raise
    ValueError if an argument is not a count.
    """
    from scipy.special import betainc

    check_least(only_a=only_a, only_b=only_b)
    return min(1.0, 2 * float(betainc(max(only_a, only_b), min(only_a, only_b) + 1, 0.5)))


def difference_interval(
    only_a: float, only_b: float, rows: float, confidence: float = 0.95, worth: float | None = None
) -> tuple[float, float]:
    """Return an interval for the difference between two accuracies on the same rows, within −1 and 1.

    `only_a` and `only_b` are the numbers of rows that only the first or only the second model gets right. The true
    difference lies beyond each end with a probability of at most half of 1 − `confidence`. The number 0 lies outside
    the interval only if `exact_p` is below 1 − `confidence`. Raises ValueError if a count is negative, or their sum
    exceeds `rows`. `worth` is the number of independent rows that all rows are worth (`effective_rows`), by default
    `rows`. Zou, Donner, Statistics in Medicine 27 (2008).
    """
    if not (only_a >= 0 and only_b >= 0 and only_a + only_b <= rows and 1 <= rows < math.inf):
        raise ValueError(
            f"only_a is {only_a}, only_b is {only_b} and rows is {rows}; give counts ≥ 0 whose sum is at most rows"
        )
    if worth is not None:
        if not 0 < worth <= rows:
            raise ValueError(f"worth is {worth}; it must lie above 0, and be at most rows, {rows:g}")
        only_a, only_b, rows = worth / rows * only_a, worth / rows * only_b, worth
    low_a, high_a = count_interval(only_a, confidence)
    low_b, high_b = count_interval(only_b, confidence)
    lower = only_a - only_b - math.hypot(only_a - low_a, high_b - only_b)
    upper = only_a - only_b + math.hypot(high_a - only_a, only_b - low_b)
    if exact_p(only_a, only_b) >= 1 - confidence:
        lower, upper = min(lower, 0.0), max(upper, 0.0)
    return max(-1.0, lower / rows), min(1.0, upper / rows)


@dataclass(frozen=True)
class ParityResult:
    """The agreement of the outputs of two models.

    Attributes
    ----------
    max_difference, mean_difference : float or None
        Largest and mean absolute difference between the scores of the two models; None if the outputs are labels.
    label_agreement : float
        Fraction of the rows to which both models give the same label.
    rows : int
        Number of rows compared.
    """

    max_difference: float | None
    mean_difference: float | None
    label_agreement: float
    rows: int


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

"""A reference for drift tests: the data on which a model was tested, stored as counts by bin.

The counts take little space and contain no individual rows. The drift tests need nothing else.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.spacing import SpacedChoice, independent_spacing

FINEST = 100  # largest number of intervals between the edges of a feature
COARSE = 10  # approximate number of groups of bins, for the drift measures PSI and χ²
MOST_TO_CHOOSE = 2000  # largest number of rows from which the bins are chosen
OTHER = "other"  # stands for labels that do not occur in the rows from which the bins are chosen


@dataclass(frozen=True)
class Feature:
    """The bins of one feature, and the number of reference values in each bin.

    Each edge has a bin of its own, for values that are equal to the edge. Each interval below, between or above the
    edges is a bin, too. So a constant feature has a single edge, and any other value falls into another bin. The last
    bin is for NaN.

    Attributes
    ----------
    name
        The name of the feature.
    edges
        The edges of the bins, sorted, without repetitions.
    groups
        The group of each bin, for tests that need fewer bins. Group 0 holds the bins that contain none of the values
        from which the bins were chosen.
    counts
        The number of reference values in each bin. The counted values are not those from which the edges were chosen.
    """

    name: str
    edges: np.ndarray
    groups: np.ndarray
    counts: np.ndarray

    __repr__ = short_repr

    @property
    def constant(self) -> bool:
        """Whether all values of the reference fall into one bin."""
        return int(np.count_nonzero(self.counts)) == 1

    def bins(self, values: np.ndarray) -> np.ndarray:
        """Return the index of the bin into which each value falls."""
        found = np.searchsorted(self.edges, values, side="left") + np.searchsorted(self.edges, values, side="right")
        return np.where(np.isnan(values), 2 * len(self.edges) + 1, found)

    def histogram(self, values: np.ndarray) -> np.ndarray:
        """Return the number of values in each bin."""
        return np.bincount(self.bins(values), minlength=len(self.counts))

    def grouped(self, counts: np.ndarray) -> np.ndarray:
        """Return the sum of the counts in each group of bins."""
        return np.bincount(self.groups, weights=counts, minlength=int(self.groups.max()) + 1).astype(int)


def _feature(name: str, choose: np.ndarray, count: np.ndarray) -> Feature:
    """Return a feature whose bins are chosen from the values `choose` and whose counts come from the values `count`.

    The two sets of values are different, so that the bins do not depend on the values that are counted.
    """
    known = np.unique(choose[~np.isnan(choose)])
    finest = min(FINEST, max(1, len(choose) // 5))
    if len(known) > finest:  # otherwise values repeat, and each distinct value becomes an edge
        shares = np.linspace(0, 1, finest + 1)
        known = np.unique(np.quantile(choose[~np.isnan(choose)], shares, method="inverted_cdf"))
    empty = Feature(name, known, np.zeros(2 * len(known) + 2, dtype=int), np.zeros(2 * len(known) + 2, dtype=int))
    seen = empty.histogram(choose)
    groups, group, filled, share = np.zeros(len(seen), dtype=int), 1, 0, len(choose) / COARSE
    for i in np.flatnonzero(seen):
        if filled and (filled + seen[i] / 2 > share or i == len(seen) - 1):  # NaN gets its own group
            group, filled = group + 1, 0
        groups[i], filled = group, filled + seen[i]
    return Feature(name, known, groups, empty.histogram(count))


@dataclass(frozen=True)
class Reference:
    """A reference for drift tests: the input features and, if known, the labels that the model predicted.

    Rows of a stream often depend on one another: one user sends similar rows, and so do the users of a busy hour. So
    only nearly independent rows are counted, and a drift test has to choose the new rows in the same way (`NewRows`).

    Attributes
    ----------
    inputs
        One `Feature` for each number of a row.
    labels
        The number of times that the model predicted each label. Labels that do not occur in the rows from which the
        bins are chosen are counted together as ``"other"``. Empty if no labels are known.
    spacing
        The least distance between two counted rows. It is 1 if the rows do not depend on one another.
    one_for_each_user
        Whether only the first row of each user was counted.
    """

    inputs: tuple[Feature, ...]
    labels: Mapping[str, int]
    spacing: int = 1
    one_for_each_user: bool = False

    __repr__ = short_repr

    @classmethod
    def of(
        cls, rows: Any, outputs: Any = None, names: Sequence[str] | None = None, seed: int = 0, users: Any = None
    ) -> Reference:
        """Create a reference from rows that were not used to train the model.

        Parameters
        ----------
        rows
            An array of n × features in the order of arrival, with n ≥ 200. Rows that were shuffled do not show how rows
            of the stream depend on one another. The bins are chosen from the first fifth of the rows, and nearly
            independent rows of the rest are counted.
        outputs
            The model's outputs for the rows: n labels, or n × classes scores.
        names
            The names of the features.
        seed
            Seed of the random choice of the counted rows.
        users
            The user of each row. Only the first row of each user is used.

        Raises ValueError if there are too few rows to measure their dependence, or if too few of them are independent.
        """
        table = as_table(rows)
        names = names if names is not None else [f"x{i}" for i in range(table.shape[1])]
        if len(names) != table.shape[1]:
            raise ValueError(f"{number_of(len(names), 'name')} for {number_of(table.shape[1], 'feature')}")
        labels = np.array([] if outputs is None else labels_of(outputs))
        for what, values in (("output", outputs), ("user", users)):
            if values is not None and len(values) != len(table):
                raise ValueError(f"{number_of(len(values), what)} for {number_of(len(table), 'row')}")
        if users is not None:
            first = np.sort(np.unique(np.asarray(users), return_index=True)[1])
            table, labels = table[first], labels[first] if len(labels) else labels
        spacing = _spacing(table, labels)
        fifth, choice = len(table) // 5, SpacedChoice(spacing, random.Random(seed))
        choose = np.linspace(0, fifth - 1, min(MOST_TO_CHOOSE, fifth)).astype(int)
        count = np.array([row for row in range(fifth, len(table)) if choice.takes()])
        inputs = tuple(_feature(n, table[choose, i], table[count, i]) for i, n in enumerate(names))
        return cls(inputs, _label_counts(labels, choose, count), spacing, users is not None)

    @property
    def rows(self) -> int:
        """The number of rows that were counted."""
        return int(self.inputs[0].counts.sum())

    @property
    def constants(self) -> list[str]:
        """The names of the constant features.

        In these features, only the first change away from the constant value can be detected.
        """
        return [feature.name for feature in self.inputs if feature.constant]

    def table(self, rows: Any) -> np.ndarray:
        """Return the rows as an n × features array. Raise ValueError if the number of features does not match."""
        table = as_table(rows)
        if table.shape[1] != len(self.inputs):
            raise ValueError(f"rows of {number_of(table.shape[1], 'number')}; the reference has {len(self.inputs)}")
        return table

    def bins(self, rows: Any) -> np.ndarray:
        """Return the bins of all values in the rows, as an array of shape (n, features)."""
        columns = zip(self.inputs, self.table(rows).T, strict=True)
        return np.stack([feature.bins(column) for feature, column in columns], axis=1)

    def places(self, labels: Sequence[str]) -> np.ndarray:
        """Return the index of each label in the reference's list of labels, as an array of shape (n, 1)."""
        known = {label: place for place, label in enumerate(self.labels)}
        other = known.get(OTHER, 0)
        return np.array([known.get(label, other) for label in labels], dtype=int).reshape(-1, 1)

    @classmethod
    def load(cls, path: str | Path) -> Reference:
        """Read a reference from a .json file, or create one from an .npz file.

        The .npz file holds the rows ``X`` and, optionally, ``outputs`` and ``users``.
        """
        from tinybench.support.basics.array_files import load_arrays

        path = Path(path)
        if path.suffix == ".npz":
            arrays = load_arrays(path)
            return cls.of(arrays["X"], arrays.get("outputs"), users=arrays.get("users"))
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            inputs = tuple(
                Feature(str(each["name"]), np.array(list(map(float, each["edges"]))), *_integers(each))
                for each in said["inputs"]
            )
            labels = {str(label): int(count) for label, count in said["labels"].items()}
            if not inputs or any({len(f.counts), len(f.groups)} != {2 * len(f.edges) + 2} for f in inputs):
                raise ValueError("counts and edges do not belong together")
            return cls(inputs, labels, int(said["spacing"]), bool(said["one_for_each_user"]))
        except FileNotFoundError:
            raise FileNotFoundError(f"{path}: no such file") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is no reference: {error}; make one with Reference.of(rows).save(file)") from None

    def save(self, path: str | Path) -> None:
        """Write the reference as JSON. Infinite edges become strings, because JSON has no infinite numbers."""
        inputs = [
            {
                "name": feature.name,
                "edges": [edge if np.isfinite(edge) else str(edge) for edge in feature.edges.tolist()],
                "groups": feature.groups.tolist(),
                "counts": feature.counts.tolist(),
            }
            for feature in self.inputs
        ]
        found: dict[str, Any] = {"inputs": inputs, "labels": dict(self.labels), "spacing": self.spacing}
        found["one_for_each_user"] = self.one_for_each_user
        text = json.dumps(found, allow_nan=False, ensure_ascii=False)
        Path(path).write_text(text + "\n", encoding="utf-8")


def _spacing(table: np.ndarray, labels: np.ndarray) -> int:
    """Return the distance at which rows, and their labels if there are any, are nearly independent."""
    codes = np.unique(labels, return_inverse=True)[1].reshape(-1, 1)
    try:
        return independent_spacing(np.hstack([table, codes]) if len(labels) else table)
    except ValueError as error:
        raise ValueError(f"the rows cannot be a reference for drift: {error}") from None


def _label_counts(labels: np.ndarray, choose: np.ndarray, count: np.ndarray) -> dict[str, int]:
    """Return how often each label of the rows `choose` occurs in the rows `count`. Real numbers give no labels."""
    if not len(labels):
        return {}
    counts = Counter(labels[count].tolist())
    known = {label: counts[label] for label in np.unique(labels[choose]).tolist() if label != OTHER}
    return {**known, OTHER: len(count) - sum(known.values())} if known else {}


def _integers(each: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(each["groups"], dtype=int), np.array(each["counts"], dtype=int)


def as_table(rows: Any) -> np.ndarray:
    """Return the rows as an n × features array of floats."""
    array = np.asarray(rows)
    if array.dtype.kind not in "fiub" or array.ndim == 0:
        raise ValueError(f"rows are numbers, one row after the other, not {array.dtype} of shape {array.shape}")
    return array.reshape(len(array), -1 if array.size else int(np.prod(array.shape[1:]))).astype(float)


def labels_of(outputs: Any) -> list[str]:
    """Return the label of each output as text: the output itself, or the index of its largest score.

    An output that is NaN, infinite or a number with a fractional part is not a label. Its label becomes ``"other"``.
    """
    array = np.asarray(outputs)
    if array.ndim > 1 and array[0].size > 1:
        return list(map(str, array.reshape(len(array), -1).argmax(axis=1).tolist()))
    flat = array.reshape(len(array))
    if flat.dtype.kind == "f":
        whole = np.isfinite(flat) & (flat == np.round(flat))
        return [str(int(value)) if yes else OTHER for value, yes in zip(flat.tolist(), whole.tolist(), strict=True)]
    return list(map(str, flat.tolist()))

"""Groups of rows that depend on each other, such as the copies of one original or the requests of one user."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinybench.support.basics.numbers import number_of

EXACT = 10_000  # largest sum of absolute differences for which the p-value is exact; above it, chi-squared is used


def numbered_groups(groups: Any, rows: int, name: str = "groups") -> np.ndarray:
    """Return the number of each row's group, counted from 0.

    Raises ValueError if there is not one group for each row, a group is missing (NaN or None), or all rows are in the
    same group. `name` stands for `groups` in the message.
    """
    ids = np.asarray(groups)
    if ids.shape != (rows,):
        raise ValueError(f"{name} has shape {ids.shape} for {number_of(rows, 'row')}; give one group for each row")
    absent = [row for row, each in enumerate(ids.tolist()) if each is None or each != each]
    if absent:
        raise ValueError(f"{name}: row {absent[0]} has no group; give a row that depends on no other its own group")
    numbers: np.ndarray = np.unique(ids, return_inverse=True)[1]
    if len(numbers) == 0 or numbers.max() == 0:
        raise ValueError(f"{name}: all rows are in one group; an interval by groups needs two or more")
    return numbers


def group_deviations(values: np.ndarray, groups: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the size of each group, and the sum of the deviations of its values from the mean of all values."""
    numbers = numbered_groups(groups, len(values))
    sizes = np.bincount(numbers)
    sums = np.bincount(numbers, weights=values)
    return sizes, (sums * len(values) - sizes * values.sum()) / len(values)  # exactly 0 where whole numbers agree


def named_groups(groups: Any, rows: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Return the groups of each dataset, given as `measure_accuracy` takes them.

    `rows` holds the number of rows of each dataset by name. Raises ValueError if the groups do not fit the datasets.
    """
    if isinstance(groups, Mapping):
        each = {str(name): ids for name, ids in groups.items()}
    elif len(rows) == 1 and len(groups) == next(iter(rows.values())):
        each = dict.fromkeys(rows, groups)
    else:
        each = dict(zip(rows, groups, strict=False)) if len(groups) == len(rows) else {}
    if set(each) != set(rows):
        raise ValueError(f"groups do not fit the datasets {', '.join(rows)}; give a group for each row of each")
    for name, ids in each.items():
        numbered_groups(ids, rows[name], f"groups of {name}")
    return {name: np.asarray(each[name]) for name in rows}


def check_same_groups(each: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError if the metadata of accuracies on equally many rows do not name the same groups of rows."""
    named = {(found["total"], str(found.get("group_of"))) for found in each if "total" in found}
    if len(named) > len({total for total, _ in named}):
        raise ValueError("the accuracies name different groups of rows, or some name none; give all the same groups=")


def sign_flip_p(differences: np.ndarray) -> tuple[float, bool]:
    """Return the two-sided p-value of the sum of differences between groups, and whether it is exact.

    If neither model is better, each difference has either sign with the same probability. The p-value is the
    probability that random signs give a sum at least as far from 0. For groups of one row, it equals that of the exact
    McNemar's test. If the absolute differences add up to more than 10,000, it comes from the chi-squared distribution.
    Fisher, The Design of Experiments (1935), section 21.
    """
    from scipy.special import chdtrc

    steps = np.abs(differences[differences != 0]).astype(int)
    far, most = abs(int(differences.sum())), int(steps.sum())
    if most > EXACT:
        return float(chdtrc(1, max(far - 1, 0) ** 2 / math.fsum(steps.astype(float) ** 2))), False
    chances = np.ones(1)
    for step in steps:
        chances = (np.pad(chances, (2 * step, 0)) + np.pad(chances, (0, 2 * step))) / 2
    sums = np.arange(len(chances)) - most
    return min(1.0, float(chances[np.abs(sums) >= far].sum())), True

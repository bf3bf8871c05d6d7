"""Two models on the same rows: exact intervals of counts, the difference of accuracies, and what tests report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinybench.support.basics.arguments import check_least, check_share
from tinybench.support.basics.grouped_rows import numbered_groups
from tinybench.support.basics.numbers import number_of, p_text


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


def group_differences(y: Any, pred_a: Any, pred_b: Any, groups: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the difference of two models in each row (1, 0 or −1), each row's group number, and the sum by group."""
    truth, said_a, said_b = np.asarray(y), np.asarray(pred_a), np.asarray(pred_b)
    gaps = (said_a == truth).astype(int) - (said_b == truth)
    numbers = numbered_groups(groups, len(gaps))
    return gaps, numbers, np.rint(np.bincount(numbers, weights=gaps)).astype(int)

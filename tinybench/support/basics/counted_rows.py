"""Counts of right rows: whether they are counts, and their form in the metadata of an accuracy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinybench.support.basics.numbers import number_of


def check_right_rows(correct: float, total: float, confidence: float, worth: float | None = None) -> None:
    """Raise ValueError unless `correct` of `total` rows are counts, and `confidence` and `worth` are possible."""
    if not 1 <= total < math.inf or total != int(total):
        raise ValueError(f"total is {total}; an accuracy needs at least one row")
    if not 0 <= correct <= total or correct != int(correct):
        raise ValueError(f"correct is {correct} of {total}; it is a count of rows, not a share")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must lie between 0 and 1, such as 0.95")
    if worth is not None and not 0 < worth <= total:
        rows = number_of(int(total), "row")
        raise ValueError(f"worth is {worth}; {rows} are worth more than 0 rows, and at most {total:g}")


def packed_rows(right: np.ndarray) -> dict[str, Any]:
    """Return the number of right rows, of all rows, and their ratio, and which rows are ``right``.

    Which rows are right is stored as hexadecimal digits, with one bit for each row.
    """
    correct, total = int(np.sum(right)), len(right)
    bits = np.packbits(right).tobytes().hex()
    return {"correct": correct, "total": total, "accuracy": correct / total, "right": bits}

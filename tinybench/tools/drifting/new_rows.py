"""The rows of a stream that count as evidence: those that are nearly independent of one another."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.spacing import SpacedChoice
from tinybench.tools.drifting.reference import Reference, labels_of

MOST_USERS = 10_000  # number of users that are remembered; after that many others, a user counts again


class Batch(NamedTuple):
    """Rows of a stream that were chosen, sorted into the bins of a reference.

    ``numbers`` are the places of the rows in the stream, counted from 1, and ``rows`` the rows themselves (n ×
    features). ``bins`` holds the bin of each of their values. ``labels`` are the predicted labels, and ``places`` their
    indices in the reference's list of labels (n × 1). Both are empty if the labels are not known.
    """

    numbers: np.ndarray
    rows: np.ndarray
    labels: Sequence[str]
    bins: np.ndarray
    places: np.ndarray


class NewRows:
    """A choice of the rows of a stream, made as the rows of a reference were chosen.

    The first row of each user counts, if users are known. Of these rows, neighbours are as far apart as the reference's
    spacing demands. If the reference has one row for each user, a row without a user does not count.
    """

    def __init__(self, reference: Reference, seed: int = 0) -> None:
        self.reference, self.choice = reference, SpacedChoice(reference.spacing, random.Random(seed))
        self.users: dict[str, None] = {}  # in the order in which they came
        self.total = 0

    def batch(self, rows: Any, outputs: Any = None, users: Sequence[str | None] | None = None) -> Batch:
        """Return those of the next rows that count.

        Parameters
        ----------
        rows
            The next rows of the stream, n × features.
        outputs
            The model's outputs for the rows, if known.
        users
            The user of each row, or None where the user is not known.
        """
        table = self.reference.table(rows)
        labels = None if outputs is None else labels_of(outputs)
        if users is None:
            users = [None] * len(table)
        for what, values in (("output", labels), ("user", users)):
            if values is not None and len(values) != len(table):
                raise ValueError(f"{number_of(len(values), what)} for {number_of(len(table), 'row')}")
        chosen = np.array([row for row, user in enumerate(users) if self._counts(user)], dtype=int)
        numbers, self.total = self.total + 1 + chosen, self.total + len(table)
        kept = [labels[row] for row in chosen.tolist()] if labels else []
        return Batch(numbers, table[chosen], kept, self.reference.bins(table[chosen]), self.reference.places(kept))

    def _counts(self, user: str | None) -> bool:
        if user is None:
            return not self.reference.one_for_each_user and self.choice.takes()
        if user in self.users:
            return False
        self.users[user] = None
        if len(self.users) > MOST_USERS:
            del self.users[next(iter(self.users))]
        return self.choice.takes()

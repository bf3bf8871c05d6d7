"""The likeness of each pair of submissions in one cell, and the likeness that is usual in this cell.

Likeness is measured by the overlap coefficient (Szymkiewicz 1934, Simpson 1943): the size of the common part divided by
the size of the shorter submission. So code added around a copy cannot hide the copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy import sparse

from autograder.grading.similar.similarity_prints import Print

# Two submissions count as one solution if the fraction ALL_THROUGH of their code is in cells with likeness >= SAME.
SAME, ALL_THROUGH = 0.7, 0.85
# If too few solutions are known, the usual likeness is assumed to be 1 in cells of up to SHORT grams (see `syntax`). In
# longer cells, it falls to LEAST_USUAL.
SHORT, LEAST_USUAL = 40, 0.4
FEW = 3  # the median over pairs is used if there are at least this many pairs


@dataclass(frozen=True)
class Base:
    """The usual likeness of correct solutions in one cell.

    `usual` is the median likeness over all pairs of solutions that are not copies of each other (see `distinct`), and
    `to_reference` is the median over those of these pairs that include the reference. If there are fewer than `FEW`
    pairs, `usual` is estimated from the cell's length, and `assumed` is True. `weight` is the weight of the cell in the
    comparison of whole submissions.
    """

    cell: str
    usual: float
    to_reference: float | None
    assumed: bool
    weight: float


@dataclass
class Compared:
    """A comparison of one cell in each pair of submissions: the size of the common part and of the shorter cell."""

    name: str
    shared: np.ndarray
    shorter: np.ndarray  # size of the shorter submission in each pair, 0 if either submission is empty

    @classmethod
    def of(cls, name: str, prints: Sequence[Print]) -> Compared:
        """Compare one cell in every pair of submissions. `prints` holds each submission's fingerprints of this cell."""
        both = _shared([each.tree or frozenset() for each in prints])
        broken = np.array([each.tree is None for each in prints])
        if broken.any():  # a pair in which some code does not parse is compared by tokens
            by_tokens = _shared([each.tokens for each in prints])
            both = np.where(broken[:, None] | broken, by_tokens, both)
        return cls(name, *both)

    @property
    def likeness(self) -> np.ndarray:
        """For each pair, the fraction of the shorter submission's cell that both submissions share, from 0 to 1."""
        found: np.ndarray = self.shared / np.maximum(self.shorter, 1)
        return found

    def base(self, ways: Sequence[int]) -> Base:
        """Return the usual likeness of solutions in this cell.

        It is computed from solutions that are not copies of each other. `ways` holds the row numbers of these
        solutions, as returned by `distinct`: the first is the reference's.
        """
        lengths = np.diag(self.shorter)
        size = float(np.median(lengths[lengths > 0])) if lengths.any() else 0.0
        square = np.ix_(ways, ways)
        among = self.likeness[square][np.triu(self.shorter[square] > 0, 1)]
        assumed = among.size < FEW
        guess = min(1.0, max(LEAST_USUAL, SHORT / max(size, 1)))
        usual = min([guess, *among]) if assumed else float(np.median(among))
        wrote = [row for row in ways[1:] if self.shorter[0, row]]
        to_reference = round(float(np.median(self.likeness[0, wrote])), 3) if wrote else None
        return Base(self.name, round(usual, 3), to_reference, assumed, round((1 - max(usual, LEAST_USUAL)) * size, 1))


def _shared(sets: Sequence[frozenset[int]]) -> np.ndarray:
    """Return the number of common members and the size of the smaller set, for each pair of sets.

    A very small set is contained in many large sets by chance. So the smaller size counts as at least half of the
    median size, but not more than the size of the larger set.
    """
    sizes = np.array([len(each) for each in sets])
    members = np.fromiter(chain.from_iterable(sets), dtype=np.int64)
    names, columns = np.unique(members, return_inverse=True)
    parts = np.ones(len(members), dtype=np.float32), columns, np.cumsum([0, *sizes])
    table = sparse.csr_array(parts, shape=(len(sets), max(1, len(names))))
    shared = (table @ table.T).toarray()
    least = np.median(sizes[sizes > 0]) / 2 if sizes.any() else 0
    smaller, larger = np.minimum.outer(sizes, sizes), np.maximum.outer(sizes, sizes)
    shorter = np.where(smaller > 0, np.maximum(smaller, np.minimum(larger, least)), 0)
    return np.stack([shared, shorter]).astype(np.float32)  # float32 saves memory: a large class has many pairs


def whole(cells: Sequence[Compared], rows: int) -> Compared:
    """Return one comparison of all cells together. A cell counts only for pairs in which both submissions fill it."""
    none = np.zeros((rows, rows))
    shared, shorter = sum((cell.shared for cell in cells), none), sum((cell.shorter for cell in cells), none)
    return Compared("all together", shared, shorter)


def distinct(cells: Sequence[Compared], rows: int, correct: Iterable[int]) -> list[int]:
    """Return the row numbers of correct solutions that are not copies of each other, the reference first.

    A solution counts as a copy if nearly all of its code is like the code of a solution that is already in the list.
    """
    agree = [Compared(cell.name, cell.shorter * (cell.likeness >= SAME), cell.shorter) for cell in cells]
    copied = whole(agree, rows).likeness
    ways = [0]
    for row in correct:
        if copied[row, row] and max(copied[row, ways]) < ALL_THROUGH:
            ways.append(row)
    return ways

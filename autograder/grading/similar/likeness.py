"""How much of one cell each of a class has in common with each, and how much of that is usual.

The overlap coefficient (Szymkiewicz 1934, Simpson 1943): what two share by the shorter of them, so that nothing put
around a copy hides it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy import sparse

from autograder.grading.similar.similarity_prints import Print

SAME, ALL_THROUGH = 0.7, 0.85  # so alike in so much of all work, two are one way to write the assignment
SHORT, LEAST_USUAL = 40, 0.4  # where too few ways are known: up to so many grams there is one way, then ever more
FEW = 3  # pairs, from which on their median counts


@dataclass(frozen=True)
class Base:
    """What correct solutions of one cell share anyway: two of them, and one of them and the reference, in the median.

    It is `assumed` from the cell's length where no two ways to write the assignment are known. `weight` is the cell's
    part in the comparison.
    """

    cell: str
    usual: float
    to_reference: float | None
    assumed: bool
    weight: float


@dataclass
class Compared:
    """How much of one cell each has in common with each."""

    name: str
    shared: np.ndarray
    shorter: np.ndarray  # length of the shorter of a pair, 0 where one wrote nothing

    @classmethod
    def of(cls, name: str, prints: Sequence[Print]) -> Compared:
        """Compare one cell of all submissions, each with each, by the fingerprints `prints`."""
        both = _shared([each.tree or frozenset() for each in prints])
        broken = np.array([each.tree is None for each in prints])
        if broken.any():  # what does not parse is compared by its tokens
            by_tokens = _shared([each.tokens for each in prints])
            both = np.where(broken[:, None] | broken, by_tokens, both)
        return cls(name, *both)

    @property
    def likeness(self) -> np.ndarray:
        """The part of the shorter cell that a pair has in common, from 0 to 1, for each pair."""
        found: np.ndarray = self.shared / np.maximum(self.shorter, 1)
        return found

    def base(self, ways: Sequence[int]) -> Base:
        """Return what is usual among some rows, the first being the reference."""
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
    """Return for each two sets how many members they share, and how many the smaller has.

    A set much smaller than usual would be in many a large one: it counts as half of the median one, if the other does.
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
    return np.stack([shared, shorter]).astype(np.float32)  # a large class has many pairs


def whole(cells: Sequence[Compared], rows: int) -> Compared:
    """Return all cells as if they were one; in a pair, those that both wrote."""
    none = np.zeros((rows, rows))
    shared, shorter = sum((cell.shared for cell in cells), none), sum((cell.shorter for cell in cells), none)
    return Compared("all together", shared, shorter)


def distinct(cells: Sequence[Compared], rows: int, correct: Iterable[int]) -> list[int]:
    """Return the rows that are no copies of each other, the reference first: in long work, copies agree all through."""
    agree = [Compared(cell.name, cell.shorter * (cell.likeness >= SAME), cell.shorter) for cell in cells]
    copied = whole(agree, rows).likeness
    ways = [0]
    for row in correct:
        if copied[row, row] and max(copied[row, ways]) < ALL_THROUGH:
            ways.append(row)
    return ways

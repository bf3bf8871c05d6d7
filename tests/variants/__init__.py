"""Honest solutions that are written otherwise: other types, styles, libraries, helper cells. They earn full marks.

A module's `VARIANTS` are tables of (name, old, new) under the id of the solution cell in which `old` becomes `new`; the
whole cell, where `old` is empty. A fourth entry is what the check says to those that it may refuse.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import zip_longest

from nbformat import NotebookNode

from autograder.course.notebook import cells_of


@dataclass(frozen=True)
class Variant:
    """One honest solution: in solution cell `cell`, `old` becomes `new`; `said` is the message if it may fail."""

    name: str
    cell: str
    old: str
    new: str
    said: str = ""

    def apply(self, notebook: NotebookNode) -> str:
        """Change the notebook, and return the id of the check that judges it: the next one."""
        cells = cells_of(notebook)
        position = [cell.id for cell in cells].index(self.cell)
        cell = cells[position]
        if self.old:
            assert cell.source.count(self.old) == 1, f"{self.name}: {self.old!r} is not exactly once in {self.cell}"
        cell.node.source = cell.source.replace(self.old, self.new) if self.old else self.new
        return next(after.id for after in cells[position:] if after.is_check)


def variants(module: str) -> list[Variant]:
    """Return the variants of a module such as ``"03_latency"``, none where none are written."""
    name = f"tests.variants.m{module}"
    tables = import_module(name).VARIANTS if find_spec(name) else {}
    return [Variant(row[0], cell, *row[1:]) for cell, rows in tables.items() for row in rows]


def students(module: str, reference: NotebookNode) -> Iterator[tuple[NotebookNode, dict[str, list[Variant]]]]:
    """Yield notebooks that hold as many variants as fit, one of each cell, and the variants by the check of each."""
    by_cell: dict[str, list[Variant]] = {}
    for variant in variants(module):
        by_cell.setdefault(variant.cell, []).append(variant)
    for row in zip_longest(*by_cell.values()):
        notebook, judged = copy.deepcopy(reference), dict[str, list[Variant]]()
        for variant in filter(None, row):
            judged.setdefault(variant.apply(notebook), []).append(variant)
        yield notebook, judged

"""Seeded wrong solutions: what students get wrong, and what the checks must catch.

A module's `MUTANTS` are tables of (name, old, new) under the id of the solution cell in which `old` becomes `new`. A
student sees at once what is wrong with them, but for those in `HIDDEN`, by name, with the reason why not.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from nbformat import NotebookNode

from autograder.course.notebook import cells_of


@dataclass(frozen=True)
class Mutant:
    """One wrong solution: in solution cell `cell`, `old` becomes `new` (once)."""

    name: str
    cell: str
    old: str
    new: str
    hidden: str = ""

    def apply(self, notebook: NotebookNode) -> str:
        """Change the notebook, and return the id of the check that has to notice: the next one."""
        cells = cells_of(notebook)
        position = [cell.id for cell in cells].index(self.cell)
        cell = cells[position]
        assert cell.source.count(self.old) == 1, f"{self.name}: {self.old!r} is not exactly once in {self.cell}"
        cell.node.source = cell.source.replace(self.old, self.new)
        return next(after.id for after in cells[position:] if after.is_check)


def mutants(module: str) -> list[Mutant]:
    """Return the mutants of a module such as ``"03_latency"``, none where none are written."""
    name = f"tests.mutants.m{module}"
    if not find_spec(name):
        return []
    written = import_module(name)
    hidden = dict(getattr(written, "HIDDEN", {}))
    rows = [(cell, *row) for cell, rows in written.MUTANTS.items() for row in rows]
    found = [Mutant(name, cell, old, new, hidden.pop(name, "")) for cell, name, old, new in rows]
    assert not hidden, f"{module}: HIDDEN names what is no mutant: {sorted(hidden)}"
    return found

"""Seeded wrong solutions: what students get wrong, and what the checks must catch."""

from __future__ import annotations

from dataclasses import dataclass

from nbformat import NotebookNode

from autograder.course.notebook import cells_of


@dataclass(frozen=True)
class Mutant:
    """One wrong solution: in solution cell `cell`, `old` becomes `new` (once)."""

    name: str
    cell: str
    old: str
    new: str

    def apply(self, notebook: NotebookNode) -> str:
        """Change the notebook, and return the id of the check that has to notice: the next one."""
        cells = cells_of(notebook)
        position = [cell.id for cell in cells].index(self.cell)
        cell = cells[position]
        assert cell.source.count(self.old) == 1, f"{self.name}: {self.old!r} is not exactly once in {self.cell}"
        cell.node.source = cell.source.replace(self.old, self.new)
        return next(after.id for after in cells[position:] if after.is_check)

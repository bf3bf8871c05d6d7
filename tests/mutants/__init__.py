"""Seeded wrong solutions: what students get wrong, and what the checks must catch."""

from __future__ import annotations

from dataclasses import dataclass

from nbformat import NotebookNode

from autograder.course.notebook import is_check, label


@dataclass(frozen=True)
class Mutant:
    """One wrong solution: in solution cell `cell`, `old` becomes `new` (once)."""

    name: str
    cell: str
    old: str
    new: str

    def apply(self, notebook: NotebookNode) -> str:
        """Change the notebook, and return the id of the check that has to notice: the next one."""
        ids = [label(cell, index) for index, cell in enumerate(notebook.cells)]
        position = ids.index(self.cell)
        cell = notebook.cells[position]
        assert cell.source.count(self.old) == 1, f"{self.name}: {self.old!r} is not exactly once in {self.cell}"
        cell.source = cell.source.replace(self.old, self.new)
        return next(ids[i] for i in range(position, len(ids)) if is_check(notebook.cells[i]))

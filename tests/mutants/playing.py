"""Play one wrong solution in this process, as fast as a verdict allows."""

from __future__ import annotations

import copy
import time
import traceback
from collections.abc import MutableMapping

from nbformat import NotebookNode

from autograder.course.module_build import needed_cells
from autograder.course.notebook import cells_of
from tests.mutants import Mutant

SPEECHLESS = "no diagnosis: "  # the check itself raises, or says nothing


def played(reference: NotebookNode, mutant: Mutant, seen: set[str]) -> tuple[str, NotebookNode]:
    """Return the check that must fail, and the notebook with the mutant and the checks to run.

    Only the first mutant of a cell, which `seen` remembers, runs later checks too: whom it costs points depends on the cell.
    """
    notebook = copy.deepcopy(reference)
    check = mutant.apply(notebook)
    later, kept = False, []
    for cell in cells_of(notebook):
        later = later or (cell.id == mutant.cell and mutant.cell not in seen)
        if not cell.is_check or cell.id == check or later:
            kept.append(cell.node)
    notebook.cells = kept
    seen.add(mutant.cell)
    return check, notebook


def verdicts(
    notebook: NotebookNode, seconds: MutableMapping[str, float] | None = None
) -> tuple[dict[str, str], list[str]]:
    """Return what the visible part of each failing check says, and the checks that fail in any part.

    `seconds` gets what the cells, and the visible and hidden parts of checks, took.
    """
    space: dict[str, object] = {"__name__": "__main__"}
    visibly, failed = dict[str, str](), list[str]()
    for cell in needed_cells(notebook):
        parts = [cell.visible, cell.source[len(cell.visible) :]] if cell.is_check else [cell.source]
        for number, part in enumerate(parts):
            started = time.perf_counter()
            try:
                exec(compile(part, f"<{cell.id}>", "exec"), space)
            except Exception as error:
                if not cell.is_check:
                    raise
                failed.append(cell.id)
                if number == 0:
                    visibly[cell.id] = f"{type(error).__name__}: {error}"
                    where = traceback.extract_tb(error.__traceback__)[-1].filename
                    speechless = where == f"<{cell.id}>" and not (isinstance(error, AssertionError) and str(error))
                    if speechless:
                        visibly[cell.id] = SPEECHLESS + visibly[cell.id]
            if seconds is not None:
                what = ("hidden checks" if number else "visible checks") if cell.is_check else "cells"
                seconds[what] = seconds.get(what, 0.0) + time.perf_counter() - started
    return visibly, failed

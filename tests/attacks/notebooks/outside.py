"""Attacks by the file: cells edited, removed, doubled, disguised, and files that are no notebooks."""

from __future__ import annotations

import copy
import json

import nbformat
from nbformat import NotebookNode

from tests.attacks.notebooks import Attack, cell_of, marked, raw


def _empty_check(cell: NotebookNode) -> None:
    cell.source = "pass"


def _all_checks(notebook: NotebookNode, change: object) -> None:
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            change(cell)  # type: ignore[operator]


def _deleted(notebook: NotebookNode) -> None:
    notebook.cells = [cell for cell in notebook.cells if not cell.metadata.get("nbgrader", {}).get("grade")]


def _duplicated(notebook: NotebookNode) -> None:
    twin = copy.deepcopy(cell_of(notebook, "check_values_guard"))
    twin.source, twin.id = "1.0", "twin"
    notebook.cells.insert(1, twin)


def _moved(notebook: NotebookNode) -> None:
    cell = cell_of(notebook, "check_values_guard")
    notebook.cells.remove(cell)
    notebook.cells.insert(1, cell)


def _copied_id(notebook: NotebookNode) -> None:
    marks = cell_of(notebook, "check_moments").metadata
    notebook.cells.insert(1, nbformat.v4.new_markdown_cell("done", metadata=marks))


def _foreign_id(notebook: NotebookNode) -> None:
    marks = {"grade": True, "grade_id": "bonus", "locked": False, "points": 200}
    marks |= {"schema_version": 3, "solution": False, "task": False}
    notebook.cells.append(nbformat.v4.new_code_cell("200.0", metadata={"nbgrader": marks}))


def _solution_made_markdown(notebook: NotebookNode) -> None:
    cell = cell_of(notebook, "check_values")
    position = notebook.cells.index(cell)
    notebook.cells[position] = nbformat.v4.new_markdown_cell("nothing", metadata=cell.metadata)


def _markdown_script(notebook: NotebookNode) -> None:
    script = "<img src=x onerror=LEAKED()> <script>LEAKED()</script> [x](javascript:LEAKED()) [y][1]\n\n[1]: javascript:LEAKED()"
    cell_of(notebook, "written_answer").source = script


def _attachments(notebook: NotebookNode) -> None:
    cell = nbformat.v4.new_markdown_cell("![x](attachment:x.svg)")
    cell.attachments = {"x.svg": {"image/svg+xml": "PHN2ZyBvbmxvYWQ9IkxFQUtFRCgpIi8+"}}
    notebook.cells.insert(1, cell)
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {"LEAKED()": 1}}}


def _forged_outputs(notebook: NotebookNode) -> None:
    data = {"text/plain": "2.0", "text/html": "<script>LEAKED()</script>"}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = 1
            cell.outputs = [nbformat.v4.new_output("execute_result", data=data, execution_count=1)]


ATTACKS = [
    Attack("skip_execution", "Tag every check `skip-execution`", lambda n: _all_checks(n, lambda c: c.metadata.update(tags=["skip-execution", "raises-exception"]))),
    Attack("check_edited", "Empty a check", marked(_empty_check), flagged=True),
    Attack("all_checks_edited", "Empty all checks", lambda n: _all_checks(n, _empty_check), flagged=True),
    Attack("checks_deleted", "Delete all checks", _deleted, flagged=True),
    Attack("check_duplicated", "A second check of the same `grade_id`, worth its points", _duplicated, flagged=True),
    Attack("check_moved", "Move a check before what it checks", _moved, flagged=True),
    Attack("grade_id_copied", "A Markdown cell with a check's marks", _copied_id, flagged=True),
    Attack("cell_with_own_points", "A graded cell of one's own, worth 200", _foreign_id, flagged=True),
    Attack("points_changed", "Make a check worth 1000", marked(lambda c: c.metadata.nbgrader.update(points=1000)), flagged=True),
    Attack("check_made_a_solution", "Declare a check a solution, so that it may be edited", marked(lambda c: c.metadata.nbgrader.update(solution=True, locked=False)), flagged=True),
    Attack("solution_made_markdown", "Turn a solution cell into text", _solution_made_markdown, flagged=True),
    Attack("script_in_markdown", "Script in the written answer, for the instructor's browser", _markdown_script),
    Attack("attachments_and_widgets", "Script in an attachment and in the state of widgets", _attachments),
    Attack("forged_stored_outputs", "Hand in stored outputs that claim points, with script", _forged_outputs),
    Attack("not_json", "A shell script", lambda n: b"#!/bin/sh\nrm -rf ~\n", reason="not JSON"),
    Attack("empty", "An empty file", lambda n: b"", reason="not JSON"),
    Attack("truncated", "A notebook cut off", lambda n: nbformat.writes(n).encode()[:-2000], reason="not JSON"),
    Attack("wrong_encoding", "A notebook in UTF-16", lambda n: nbformat.writes(n).encode("utf-16"), reason="not UTF-8"),
    Attack("deep_nesting", "JSON nested five million deep", lambda n: b"[" * 5_000_000, reason="nested|not JSON"),
    Attack("nbformat_99", "A notebook of format 99", raw(lambda d: d.update(nbformat=99)), reason="version 4"),
    Attack("nbformat_text", "SQL as the format's number", raw(lambda d: d.update(nbformat="4; DROP TABLE grade")), reason="version 4"),
    Attack("cells_not_a_list", "A dict for the list of cells", raw(lambda d: d.update(cells={"a": 1})), reason="version 4"),
    Attack("cell_not_a_cell", "Numbers for cells", raw(lambda d: d.update(cells=[1, None, "x"])), reason="not a cell"),
    Attack("no_cells", "No cells at all", raw(lambda d: d.update(cells=[])), flagged=True),
    Attack("a_hundred_thousand_cells", "100,000 cells", lambda n: json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": "1"}] * 100_000}).encode(), reason="cells"),
    Attack("three_hundred_megabytes", "A file of 300 MB", lambda n: b" " * 300_000_000, reason="MB"),
    Attack("half_a_surrogate", "Text that cannot be written as UTF-8", raw(lambda d: d["cells"].insert(2, {"cell_type": "code", "source": "print('\ud800')"}))),  # type: ignore[attr-defined]
    Attack("marks_of_wrong_type", "nbgrader's marks of wrong types", raw(lambda d: [c.update(metadata={"nbgrader": {"grade_id": ["x"], "points": "NaN"}}) for c in d["cells"]]), flagged=True),  # type: ignore[attr-defined]
    Attack("huge_numbers", "Points of 1e999", lambda n: nbformat.writes(n).replace('"points": 2', '"points": 1e999', 1).encode(), flagged=True),
]  # fmt: skip

"""Which submissions are more alike than is usual for their class: a hint where to look, never a mark."""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from nbformat import NotebookNode
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]
from pygments.token import Comment, Name, String, Whitespace  # type: ignore[import-untyped]
from rapidfuzz import process
from rapidfuzz.distance import Indel

from autograder.course.config import MODULES
from autograder.course.notebook import is_solution, label, read_notebook, without_solution_markers
from autograder.course.release import stub_solutions
from autograder.grading.batch import submissions
from autograder.grading.submission import Refused, parse_submission

MAX_CELL = 5_000  # of which the lexer takes a second at worst
REFERENCE = ""  # counts as one more of the class, and is in no pair
TELLING = 0.5  # from here on a cell is named


@dataclass(frozen=True)
class Pair:
    """Two submissions.

    Attributes
    ----------
    alike
        0 if they are as alike as two of the class usually are, 1 if they are the same under other names.
    cells
        Where they are much alike, the most telling first.
    """

    one: str
    other: str
    alike: float
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """The pairs of a class that are most alike, how many submissions were compared, and whose could not be read."""

    assignment: str
    pairs: tuple[Pair, ...]
    compared: int
    unread: tuple[str, ...]


def similarity(root: Path, assignment: str, top: int = 10) -> Report:
    """Compare the solutions of a class, each with each.

    Parameters
    ----------
    root
        The course.
    assignment
        Such as ``"03_latency"``.
    top
        How many pairs to report.

    Raises
    ------
    NotebookError
        If nothing was submitted.

    Notes
    -----
    Solutions of one cell are compared as sequences of tokens in which every name is the same, by their longest common
    subsequence. Some functions can hardly be written in two ways: so what counts is how far a pair is above the median
    pair of the class, the reference being one of it, and a cell that all write alike does not count at all.
    """
    source = read_notebook(root / MODULES / assignment / f"{assignment}.ipynb")
    written, unread = {REFERENCE: _solutions(source, None)}, []
    for student, content in submissions(root, assignment).items():
        try:
            if isinstance(content, Refused):
                raise content
            cells = parse_submission(content)
            written[student] = _solutions(source, {str(c["marks"].get("grade_id")): c["source"] for c in cells})
        except Refused:
            unread.append(student)
    return Report(assignment, tuple(_pairs(written, top)), len(written) - 1, tuple(unread))


def _solutions(source: NotebookNode, theirs: Mapping[str, str] | None) -> dict[str, str]:
    """Return for each solution cell what was written there, a character for each token; the reference by default."""
    found = {}
    for index, cell in enumerate(source.cells):
        if is_solution(cell):
            name = label(cell, index)
            text = without_solution_markers(cell.source) if theirs is None else theirs.get(name, "")
            given = {line.strip() for line in stub_solutions(cell.source, name).splitlines()}
            own = [line for line in text[:MAX_CELL].splitlines() if line.strip() not in given]
            found[name] = "".join(_tokens("\n".join(own)))
    return found


def _tokens(code: str) -> Iterator[str]:
    """Yield a character for each token, the same for all names; none for comments, docstrings and layout."""
    for kind, text in PythonLexer().get_tokens(code):
        if kind in Comment or kind in String.Doc or kind in Whitespace or not text.strip():
            continue
        if kind in String or (kind in Name and kind not in Name.Builtin):
            text = "text" if kind in String else "name"
        yield chr(zlib.crc32(text.encode()) % 0x110000)


def _pairs(written: Mapping[str, Mapping[str, str]], top: int) -> Iterator[Pair]:
    """Yield the pairs that are most alike, these first."""
    students = list(written)
    excess: dict[str, np.ndarray] = {}
    weights = {}
    for cell in written[REFERENCE]:
        texts = [written[student][cell] for student in students]
        there = np.array([bool(text) for text in texts])
        both = np.triu(np.outer(there, there), 1)
        if not both.any():
            continue
        alike = process.cdist(texts, texts, scorer=Indel.normalized_similarity, workers=-1)
        usual = float(np.median(alike[both]))
        if usual < 1:
            excess[cell] = np.where(both, np.clip((alike - usual) / (1 - usual), 0, 1), 0)
            weights[cell] = (1 - usual) * np.median([len(text) for text in texts if text])
    total = sum(weights[cell] * excess[cell] for cell in excess) / (sum(weights.values()) or 1)
    rows, columns = np.triu_indices(len(students), 1)
    keep = rows > 0  # the reference is the first
    rows, columns = rows[keep], columns[keep]
    values = np.broadcast_to(total, (len(students),) * 2)[rows, columns]
    for at in np.argsort(-values, kind="stable")[:top]:
        i, j = rows[at], columns[at]
        by_weight = sorted(excess, key=lambda cell: -weights[cell] * excess[cell][i, j])
        telling = tuple(cell for cell in by_weight if excess[cell][i, j] >= TELLING)
        yield Pair(students[i], students[j], round(float(values[at]), 3), telling)


def table(report: Report) -> Iterator[str]:
    """Yield the lines of a report for people."""
    width = max([len(f"{pair.one}, {pair.other}") for pair in report.pairs], default=8)
    yield f"alike  {'students':<{width}}  much alike in"
    for pair in report.pairs:
        both = f"{pair.one}, {pair.other}"
        yield f"{pair.alike:>5.0%}  {both:<{width}}  {', '.join(pair.cells)}".rstrip()
    unread = f"; not read: {', '.join(report.unread)}" if report.unread else ""
    yield f"\n{report.compared} submissions of {report.assignment} compared{unread}."
    yield "0% is as alike as two of this class usually are, 100% the same code under other names."
    yield "A hint where to look, never a mark: read these cells of both side by side, and have both explained to you."


def as_csv(report: Report) -> str:
    """Return the pairs as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["assignment", "student", "other", "alike", "cells"])
    for pair in report.pairs:
        writer.writerow([report.assignment, pair.one, pair.other, pair.alike, " ".join(pair.cells)])
    return text.getvalue()

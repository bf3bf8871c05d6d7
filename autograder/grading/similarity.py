"""Which submissions are more alike than usual in their class: a hint where to look, never a mark."""

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
from autograder.course.notebook import cells_of, read_notebook, without_solution_markers
from autograder.course.release import stub_solutions
from autograder.grading.batch import submissions
from autograder.grading.submission import UnusableSubmission, parse_submission
from tinybench.table import Table

MAX_CELL = 5_000  # of which the lexer takes a second at worst
REFERENCE = ""  # counts as one more of the class, and is in no pair
TELLING = 0.5  # from here on a cell is named


@dataclass(frozen=True)
class Pair:
    """Two submissions, from 0 as alike as two of the class usually are to 1 the same under other names."""

    one: str
    other: str
    alike: float
    cells: tuple[str, ...]  # where they are much alike, the most telling first


@dataclass(frozen=True)
class Report:
    """The most similar pairs of a class, how many submissions were compared, and which could not be read."""

    assignment: str
    pairs: tuple[Pair, ...]
    compared: int
    unread: tuple[str, ...]


def most_alike(root: Path, assignment: str, top: int = 10) -> Report:
    """Compare the solutions of a class, each with each, and report the `top` pairs.

    Solutions of one cell are compared as sequences of tokens in which every name is the same, by their longest common
    subsequence. Some functions can hardly be written in two ways: so what counts is how far a pair is above the median
    pair of the class, the reference being one of it, and a cell that all write alike does not count at all.
    """
    source = read_notebook(root / MODULES / assignment / f"{assignment}.ipynb")
    written, unread = {REFERENCE: _solutions(source, None)}, []
    for student, content in submissions(root, assignment).items():
        try:
            if isinstance(content, UnusableSubmission):
                raise content
            cells = parse_submission(content)
            written[student] = _solutions(source, {cell.id: cell.source for cell in cells})
        except UnusableSubmission:
            unread.append(student)
    return Report(assignment, tuple(_pairs(written, top)), len(written) - 1, tuple(unread))


def _solutions(source: NotebookNode, theirs: Mapping[str, str] | None) -> dict[str, str]:
    """Return what was written in each solution cell, by default the reference; a character for each token."""
    found = {}
    for cell in cells_of(source):
        if cell.is_solution:
            text = without_solution_markers(cell.source) if theirs is None else theirs.get(cell.id, "")
            given = {line.strip() for line in stub_solutions(cell.source, cell.id).splitlines()}
            own = [line for line in text[:MAX_CELL].splitlines() if line.strip() not in given]
            found[cell.id] = "".join(_tokens("\n".join(own)))
    return found


def _tokens(code: str) -> Iterator[str]:
    """Yield a character for each token, the same for all names, none for comments, docstrings and whitespace."""
    for kind, text in PythonLexer().get_tokens(code):
        if kind in Comment or kind in String.Doc or kind in Whitespace or not text.strip():
            continue
        if kind in String or (kind in Name and kind not in Name.Builtin):
            text = "text" if kind in String else "name"
        yield chr(zlib.crc32(text.encode()) % 0x110000)


def _pairs(written: Mapping[str, Mapping[str, str]], top: int) -> Iterator[Pair]:
    """Yield the most similar pairs, in order."""
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


def report_lines(report: Report) -> Iterator[str]:
    """Yield the lines of a report for people."""
    yield Table(
        {"alike": f"{pair.alike:.0%}", "students": f"{pair.one}, {pair.other}", "much alike in": ", ".join(pair.cells)}
        for pair in report.pairs
    ).text()
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

"""A search for submissions that are more alike than usual in their class. The result is a hint, never a mark."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from autograder.course.nbgrader_settings import MODULES
from autograder.course.notebook import NotebookError, cells_of, read_notebook, without_solution_markers
from autograder.course.release import stub_solutions
from autograder.grading.batch_verdicts import submissions
from autograder.grading.killable import each, useful_workers
from autograder.grading.sanitize import safe_line
from autograder.grading.similar.likeness import LEAST_USUAL, Base, Compared, distinct, whole
from autograder.grading.similar.similarity_prints import Given, Print, fingerprints, fingerprints_of
from autograder.grading.submission import UnusableSubmission, read_submission
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.table import Table

REFERENCE = "the reference"
TELLING = 0.5  # pairs and cells with at least this value are listed as much alike
ONE_WAY = 0.95
START = 20  # starting a worker takes as long as reading this many notebooks
LITTLE = 0.02  # a cell that adds less than this fraction of the total weight is not listed
SECONDS, MEMORY, OUTPUT = 10, 2**29, 2**24  # limits for reading one submission, on a typical machine
Content = bytes | UnusableSubmission


@dataclass(frozen=True)
class Pair:
    """Two submissions, or a submission and the reference, with their similarity.

    Attributes
    ----------
    alike
        The similarity beyond what is usual. It is 0 if the two are as alike as correct solutions of this class usually
        are, and 1 if they are the same code with other names.
    likeness
        The fraction of the shorter submission that the longer one also contains. The usual likeness is not subtracted.
    cells
        The cells in which the two are much alike, the strongest evidence first.
    """

    one: str
    other: str
    alike: float
    likeness: float
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """The most similar pairs of a class, the usual likeness, and the reasons why some submissions could not be read."""

    assignment: str
    pairs: tuple[Pair, ...]
    telling: int  # the number of pairs that are much alike, including unlisted ones
    cells: tuple[Base, ...]
    whole: Base
    compared: int
    earlier: int
    ways: int  # the number of correct solutions that are not copies of each other, from which `cells` is computed
    unread: Mapping[str, str]


def most_alike(root: Path, assignment: str, top: int = 10, earlier: Sequence[Path] = ()) -> Report:
    """Compare the solutions of a class with each other, with the reference and with `earlier` years.

    Two solutions of one cell are compared by the pq-grams of their normalised syntax trees (see `syntax`). Their
    likeness is the fraction of the shorter solution's grams that the other solution also has. Some functions can hardly
    be written in two ways. So pairs are ranked by how far their likeness exceeds the median over pairs of correct
    solutions. For this median, the reference is one of the correct solutions, and copies count only once.
    """
    source = cells_of(read_notebook(root / MODULES / assignment / f"{assignment}.ipynb"))
    stubs = {cell.id: stub_solutions(cell.source, cell.id) for cell in source if cell.is_solution}
    given = Given(stubs, frozenset(cell.id for cell in source) - stubs.keys())
    reference = [replace(cell, source=without_solution_markers(cell.source)) for cell in source]
    now, before = submissions(root, assignment), _earlier_submissions(root, earlier, assignment)
    written, unread = _written({**now, **before}, given)
    students, others = ([name for name in names if name in written] for names in (now, before))
    rows = [fingerprints(reference, given), *(written[name] for name in [*students, *others])]
    cells = [Compared.of(name, [row[name] for row in rows]) for name in stubs]
    right = _without_mistakes(root, assignment)
    correct = [number for number, name in enumerate(students, start=1) if name in right]
    ways = distinct(cells, len(rows), correct if len(correct) > 1 else range(1, len(students) + 1))
    bases, total = tuple(cell.base(ways) for cell in cells), whole(cells, len(rows))
    pairs, telling = _pairs(cells, bases, total, [REFERENCE, *students, *others], len(students), top)
    found = pairs, telling, bases, total.base(ways), len(students), len(others), len(ways) - 1, unread
    return Report(assignment, *found)


def _earlier_submissions(root: Path, folders: Iterable[Path], assignment: str) -> dict[str, Content]:
    """Return the submissions of earlier years. A folder may be a course, or contain students' folders or notebooks."""
    found: dict[str, Content] = {}
    own, notebook = (root / "course" / "submitted").resolve(), f"{assignment}/{assignment}.ipynb"
    for folder in folders:
        below = folder.resolve()
        patterns = (f"course/submitted/*/{notebook}", f"submitted/*/{notebook}", f"*/{notebook}")
        paths = next(filter(None, (sorted(below.glob(pattern)) for pattern in patterns)), [])
        theirs = {path: path.parent.parent.name for path in paths if not path.is_relative_to(own)}
        theirs = theirs if paths else {path: path.stem for path in sorted(below.glob("*.ipynb"))}
        if not theirs:
            why = f"--with {folder} holds no earlier submission; name a course, a folder of STUDENT/{notebook}, or one "
            raise NotebookError(assignment, None, why + "of notebooks named after students")
        for path, student in theirs.items():
            try:
                found[f"{folder}/{student}"] = read_submission(path, below)
            except UnusableSubmission as why_not:
                found[f"{folder}/{student}"] = why_not
    return found


def _written(contents: Mapping[str, Content], given: Given) -> tuple[dict[str, dict[str, Print]], dict[str, str]]:
    """Return each student's fingerprints, and the reasons why some submissions could not be read.

    Submissions are read in subprocesses that can be killed.
    """
    unread = {name: str(content) for name, content in contents.items() if isinstance(content, UnusableSubmission)}
    written: dict[str, dict[str, Print]] = {}
    tasks = [(name, (content, given)) for name, content in contents.items() if isinstance(content, bytes)]
    workers = useful_workers(len(tasks), START)
    for name, result in each(fingerprints_of, tasks, seconds=SECONDS, workers=workers, memory=MEMORY, output=OUTPUT):
        if isinstance(result, Exception):
            unread[name] = str(result) or type(result).__name__
        else:
            written[name] = result
    return written, dict(sorted(unread.items()))


def _without_mistakes(root: Path, assignment: str) -> set[str]:
    """Return the names of the students whose verdict reports no problem."""
    right = set()
    for file in (root / "course" / "verdicts" / assignment).glob("*.json"):
        with suppress(ValueError, OSError, KeyError, TypeError):  # a damaged verdict is ignored
            verdict = json.loads(file.read_bytes())
            if not verdict["failure"] and not any(verdict["verdicts"].values()):
                right.add(file.stem)
    return right


def _pairs(
    cells: Sequence[Compared], bases: Sequence[Base], whole: Compared, names: Sequence[str], students: int, top: int
) -> tuple[tuple[Pair, ...], int]:
    """Return the `top` pairs by `Pair.alike`, highest first, and the number of all pairs that reach `TELLING`.

    Every pair includes a student of this class.
    """
    excess = {
        base: np.clip((cell.likeness - least) / (1 - least), 0, 1) * (cell.shorter > 0)
        for cell, base in zip(cells, bases, strict=True)
        if base.weight and (least := max(base.usual, LEAST_USUAL))
    }
    total = sum(base.weight for base in excess)
    none, likeness = np.zeros((len(names),) * 2), whole.likeness
    alike = sum((base.weight / total * found for base, found in excess.items()), none)
    one, other = np.triu_indices(len(names), 1)
    # pairs with a student of this class; the reference is not paired with an earlier year
    ours = (one <= students) & ((one > 0) | (other <= students))
    one, other = one[ours], other[ours]
    values = alike[one, other]
    pairs = []
    for at in np.argsort(-values, kind="stable")[:top]:
        i, j = one[at], other[at]
        telling = {base.cell: base.weight * found[i, j] for base, found in excess.items() if found[i, j] >= TELLING}
        named = tuple(
            sorted((cell for cell in telling if telling[cell] >= LITTLE * total), key=lambda cell: -telling[cell])
        )
        pairs.append(Pair(names[i], names[j], round(float(values[at]), 3), round(float(likeness[i, j]), 3), named))
    return tuple(pairs), int(np.sum(values >= TELLING))


def report_lines(report: Report) -> Iterator[str]:
    """Yield the lines of the report to print."""
    yield Table(
        {
            "alike": f"{pair.alike:.0%}",
            "students": safe_line(f"{pair.one}, {pair.other}"),
            "much alike in": _some(pair.cells),
        }
        for pair in report.pairs
    ).text()
    if more := report.telling - sum(pair.alike >= TELLING for pair in report.pairs):
        yield f"and {more} more from {TELLING:.0%} on; --top {report.telling} lists them all"
    yield f"\nWhat correct solutions share anyway, in the median ({report.ways} are no copies of each other):\n"
    yield Table(
        {
            "cell": base.cell,
            "two of this class": f"{base.usual:.0%}{' (assumed)' if base.assumed else ''}",
            "one and the reference": "–" if base.to_reference is None else f"{base.to_reference:.0%}",
        }
        for base in [*(base for base in report.cells if base.usual < ONE_WAY), report.whole]
    ).text()
    if any(base.assumed for base in report.cells):
        yield "\nAssumed: from the cell's length, as too few are no copies of the reference or of each other."
    if alike := [base.cell for base in report.cells if base.usual >= ONE_WAY]:
        yield f"\nThere is hardly more than one way to write {', '.join(alike)}."
    others = f", and with {report.earlier} of earlier years" if report.earlier else ""
    yield (
        f"\n{number_of(report.compared, 'submission')} of {report.assignment} compared with "
        f"each other and the reference{others}."
    )
    if report.unread:
        yield "Not read: " + "; ".join(safe_line(f"{name} ({why})", 300) for name, why in report.unread.items())
    yield "0% is as alike as two of this class usually are, 100% the same code under other names."
    yield "A hint where to look, never a mark: read these cells of both side by side, and have both explained to you."


def _some(cells: Sequence[str], most: int = 4) -> str:
    return ", ".join(cells[:most]) + (f" and {len(cells) - most} more" if len(cells) > most else "")


def as_csv(report: Report) -> str:
    """Return the pairs as CSV, each with the usual likeness in the assignment."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["assignment", "student", "other", "alike", "likeness", "usual", "usual_to_reference", "cells"])
    for pair in report.pairs:
        usual = report.whole.usual, report.whole.to_reference
        likeness = pair.alike, pair.likeness, *usual
        writer.writerow([report.assignment, pair.one, pair.other, *likeness, " ".join(pair.cells)])
    return text.getvalue()

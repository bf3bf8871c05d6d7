"""Fingerprints of a submission's solution cells, as sets of numbers that can be compared. The submission is untrusted.

Code that was already in the released notebook is left out, as in MOSS: Schleimer, Wilkerson, Aiken, "Winnowing: Local
Algorithms for Document Fingerprinting", SIGMOD 2003.
"""

from __future__ import annotations

import ast
import copy
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from autograder.course.notebook import Cell
from autograder.grading.similar.syntax import aliases, defined, parsed, token_grams, tree_grams, used
from autograder.grading.submission import UnusableSubmission, parse_submission

MAX_CODE = 500_000  # characters; the largest module has 42,000


@dataclass(frozen=True)
class Print:
    """The fingerprints of the code that a student wrote for one cell, without the code of the released notebook."""

    tree: frozenset[int] | None  # None if the code does not parse
    tokens: frozenset[int]


@dataclass(frozen=True)
class Given:
    """The released notebook: the source of its solution cells by name, and the names of its other cells."""

    stubs: Mapping[str, str]
    others: frozenset[str]


def fingerprints_of(content: bytes, given: Given) -> dict[str, Print]:
    """Return the fingerprints of a submitted notebook's cells.

    Raise UnusableSubmission if the notebook cannot be read.
    """
    with warnings.catch_warnings(action="ignore"):  # the parser's warnings about the student's code
        return fingerprints(parse_submission(content), given)


def fingerprints(cells: Iterable[Cell], given: Given) -> dict[str, Print]:
    """Return the fingerprints of each solution cell.

    They include the helper functions and variables in the student's own cells that the solution cell uses.
    """
    code = [cell for cell in cells if cell.is_code and cell.id not in given.others]
    if sum(len(cell.source) for cell in code) > MAX_CODE:
        raise UnusableSubmission(f"the notebook has more than {MAX_CODE:,} characters of code")
    texts: dict[str, list[str]] = {name: [] for name in given.stubs}
    own = list[ast.stmt]()
    for cell in code:
        if cell.id in texts:
            texts[cell.id].append(cell.source)
        else:
            own += parsed(cell.source) or []
    nodes = [node for statement in own for node in ast.walk(statement)]
    helpers: dict[str, list[ast.stmt]] = {}
    for statement in (node for node in nodes if isinstance(node, ast.stmt)):
        for name in defined(statement):
            helpers.setdefault(name, []).append(statement)
    imported = aliases(nodes)
    return {name: _print("\n".join(texts[name]), stub, helpers, imported) for name, stub in given.stubs.items()}


def _print(text: str, stub: str, helpers: Mapping[str, Sequence[ast.stmt]], imported: Mapping[str, str]) -> Print:
    names, given_tree, given_tokens = _given(stub)
    tree = None
    if (statements := parsed(text)) is not None:
        moved = names - {name for statement in statements for name in defined(statement)}
        with suppress(RecursionError):
            whole = _with_helpers(statements, moved, helpers)
            tree = _kept(tree_grams(whole, imported), given_tree)
    return Print(tree, _kept(token_grams(text), given_tokens))


@lru_cache
def _given(stub: str) -> tuple[set[str], Counter[int], Counter[int]]:
    """Return the names that a released cell defines, its tree grams, and its token grams."""
    statements = parsed(stub) or []
    names = {name for statement in statements for name in defined(statement)}
    return names, tree_grams(statements, {}), token_grams(stub)


def _with_helpers(
    statements: Sequence[ast.stmt], wanted: set[str], helpers: Mapping[str, Sequence[ast.stmt]]
) -> list[ast.stmt]:
    """Return the statements of a cell, followed by the helpers that they need, directly or through other helpers.

    `helpers` holds the statements in the student's own cells, keyed by the names that they define. A helper is needed
    if its name is used, or is in `wanted`: the names that the released cell defines, but the submitted cell does not.
    """
    whole, done = list(statements), set[str]()
    wanted = wanted | used(statements)
    while wanted := (wanted - done) & helpers.keys():
        found = [copy.deepcopy(helper) for name in sorted(wanted) for helper in helpers[name]]
        done |= wanted
        whole += found
        wanted = used(found)
    return whole


def _kept(grams: Counter[int], given: Counter[int]) -> frozenset[int]:
    """Return a set of hashes of the grams that remain after the `given` grams are subtracted.

    If a gram remains several times, its repetitions are numbered, so that each has a hash of its own.
    """
    return frozenset(
        zlib.crc32(f"{gram} {number}".encode()) for gram, count in (grams - given).items() for number in range(count)
    )

"""What reads a stranger's text takes time in proportion to it: four times the text, about four times the time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import nbformat
import pytest

from autograder.course import notebook as of_notebook
from autograder.course.assignment import Assignment
from autograder.course.execute import error_output
from autograder.course.notebook import MAX_BYTES, parse_notebook, read_notebook
from autograder.grading import sanitize, worker_pools
from autograder.grading.grade import grade_assignment
from autograder.grading.sanitize import Allowance, safe_line, safe_markdown, safe_outputs
from autograder.grading.submission import UnusableSubmission, parse_submission, prepare
from autograder.grading.verdict import Graded, packed
from tests.quick import cpu_seconds, within
from tests.tiny_course import NAME, ROOT, hand_in, solved

# what repeats, and what may follow so that the whole does not match after all
PIECES = [
    "\n", " ", "\t", "[", "[a", "[\n", "\n[", "\n [", "\n- [", "\\[", "\\\n[", "]", "](", "]( ", "][", "[]:", "[a]:", "[a]: #",
    "a]: ", "!", "<", "<a ", "<a a", "<a a=", '<a a="', "<a a='", "</", "<!-", "<!--", "&", "&#", "&#1", "&a", "&a;", "~", "~ ",
    "\\", "\\href", "\\hre", "width", "width:", "width :", "margin-", "margin-a", "margin-a:", "margin:-", "max-width: ", "- ", "-.",
    "-.1", "1", ".", ")", "(", ">", "* ", "attachmen", "\u200b", "\x00", "\u2028", "a", "é", "-",
    "### BEGIN HIDDEN TESTS", "### BEGIN HIDDEN TESTS\n", "### END HIDDEN TESTS", " ### BEGIN",
]  # fmt: skip
ENDS = ["", "\n", "]", "]:", ";", "x", '"', "<"]
SMALL = 3000


def patterns() -> dict[str, re.Pattern[str]]:
    """Return every compiled pattern of the modules that read what students wrote."""
    modules = (sanitize, of_notebook)
    return {
        f"{module.__name__}.{name}": value
        for module in modules for name, value in vars(module).items() if isinstance(value, re.Pattern)
    }  # fmt: skip


def grows(do: Callable[[str], object], piece: str, end: str, size: int) -> float:
    """Return how many times longer four times the text takes; texts of which all take no time at all grow by 0."""
    small, large = (piece * (n // len(piece)) + end for n in (size, 4 * size))
    long = cpu_seconds(lambda: do(large))
    return 0 if long < 0.005 else long / max(cpu_seconds(lambda: do(small)), 1e-4)


def searched(pattern: re.Pattern[str]) -> Callable[[str], object]:
    return lambda text: pattern.sub("", text)


@pytest.mark.parametrize("name", patterns())
def test_patterns_are_linear(name: str) -> None:
    """One that takes the square of the text would need 16 times as long for four times the text."""
    slow = {}
    pattern = patterns()[name]
    if name.endswith(".LENGTH"):  # is asked about a text of limited length only
        within(0.01, lambda: pattern.sub("", ("margin-" * sanitize.MAX_STYLE)[: sanitize.MAX_STYLE]))
        return
    for piece in PIECES:
        for end in ENDS:
            if (times := grows(searched(pattern), piece, end, SMALL)) > 9:
                slow[piece, end] = times
    # what looks slow once may have been a busy machine
    assert not {case: again for case in slow if (again := grows(searched(pattern), *case, 4 * SMALL)) > 9}


def test_the_measure_finds_what_is_quadratic() -> None:
    pattern = re.compile(r"^[\s>*+\-\d.)]*\[[^\]]+\]:", re.M)  # as it was
    assert grows(searched(pattern), "\n", "x", SMALL) > 9


HTML = {
    "open": "<b>", "distinct": "<b class=x%d>", "mixed": "<b></p>", "adopted": "<a><p></a>", "fostered": "<table><b>",
    "deep": "<div>", "lists": "<ul><li>", "closed": "<div></div>", "escaped": "<b title=%d><table><td></b></td></table>",
    "ends": "</b>", "comments": "<!--", "attributes": "<p a%d b c d e f g h i j k l m n o p q r s t>",
    "entities": "&amp;", "numbers": "&#49;", "text": "words ", "quotes": "\"'", "slashes": "<p/>",
    "styles": '<p style="width: 1px; margin: 1px">', "cells": "<td>%d</td>", "foreign": "<svg><math>",
}  # fmt: skip


@pytest.mark.parametrize("name", HTML)
def test_cleaning_all_that_a_notebook_may_show_takes_seconds(name: str) -> None:
    piece = HTML[name]

    def page(length: int) -> str:
        text, number = "", 0
        while len(text) < length:
            text, number = text + (piece % number if "%" in piece else piece), number + 1
        return text

    pages = [page(length) for length in (1000, 2000, 4000, 10_000, 15_000, 30_000, 60_000)] * 20

    def clean() -> None:
        allowance = Allowance()
        for each in pages:
            safe_outputs([{"data": {"text/html": each}}], allowance)

    within(15, clean)


def test_a_submission_shows_no_more_outputs_than_are_soon_written() -> None:
    def write() -> None:
        allowance = Allowance()
        shown = [nbformat.from_dict(x) for _ in range(200) for x in safe_outputs([{"text": "x"}] * 200, allowance)]
        assert len(shown) == Allowance().outputs
        cells = [
            nbformat.v4.new_code_cell("x", outputs=shown),
            *(nbformat.v4.new_code_cell("y" * 9000) for _ in range(1999)),
        ]
        parse_notebook(nbformat.writes(nbformat.v4.new_notebook(cells=cells)).encode(), "a verdict")

    within(10, write)


@pytest.mark.parametrize(
    "page",
    ["<p " + "a " * 100_000 + ">", "&#" + "1" * 1_000_000, "<p a='" * 100_000, "&" * 2**20, '<p a="' + ">" * 10**5],
)
def test_cleaning_what_is_odd_takes_no_time(page: str) -> None:
    assert safe_outputs([{"data": {"text/html": page}}]) == []
    within(1, lambda: safe_outputs([{"data": {"text/html": page}}]))


@pytest.mark.parametrize("piece", PIECES)
def test_text_takes_no_time(piece: str) -> None:
    text = piece * (2 * 2**20 // len(piece))
    within(3, lambda: [safe_markdown(text), safe_line(text), error_output("Error", text[:5000])])


def stalling() -> bytes:
    """Return a notebook of nearly the allowed size, of what was slow."""
    sources = ["\n" * 100_000 + "x"] * 90 + ["[\n" * 50_000, "### BEGIN HIDDEN TESTS " * 60_000]
    cells = [{"cell_type": "markdown", "metadata": {}, "source": source} for source in sources]
    return json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"[" * MAX_BYTES,
        b'{"nbformat": 4, "cells": [' + b"[]," * (MAX_BYTES // 3 - 20) + b"[]]}",
        b'{"nbformat": 4, "cells": [' + b"1" * (MAX_BYTES - 100) + b"]}",
        b'{"nbformat": ' + b"4" * (MAX_BYTES - 100) + b"}",
        json.dumps({"nbformat": 4, "cells": [{"cell_type": "markdown", "source": ["\n"] * 2_000_000}]}).encode(),
        json.dumps({"nbformat": 4, "cells": [{"cell_type": "raw", "source": "[\n"}] * 2000}).encode(),
        stalling(),
    ],
    ids=["nested", "empties", "number", "version", "lines", "cells", "stalling"],
)  # fmt: skip
def test_parsing_takes_seconds(content: bytes) -> None:
    source = read_notebook(ROOT / "modules" / NAME / f"{NAME}.ipynb")
    assert len(content) <= MAX_BYTES

    def read() -> None:
        with suppress(UnusableSubmission):
            prepare(parse_submission(content), source)

    within(10, read)


@pytest.mark.slow
def test_what_stalls_the_grader_costs_its_author_only(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is done: here by a pattern that is slow."""
    hand_in(released, "ada", solved(released))
    hand_in(released, "mallory", stalling())
    hand_in(released, "zoe", solved(released))
    monkeypatch.setattr(worker_pools, "SECONDS", 1)
    monkeypatch.setattr(worker_pools, "grade_bytes", stalled)
    monkeypatch.setattr("autograder.grading.grade.available", lambda: None)
    outcomes = {outcome.student: outcome for outcome in grade_assignment(released, NAME, workers=2, progress=False)}
    assert {name: outcome.score for name, outcome in outcomes.items()} == {"ada": 4, "mallory": 0, "zoe": 4}
    assert "longer than 1 s" in outcomes["mallory"].note
    assert grade_assignment(released, NAME, progress=False) == list(outcomes.values()), "it is not tried forever"


def stalled(assignment: Assignment, content: bytes, *_: object) -> bytes:
    """In place of grading: stall, or give full marks."""
    if len(content) > MAX_BYTES // 2:
        re.search("(a|a)*b", "a" * 200)
    notebook = prepare(parse_submission(content), parse_notebook(assignment.notebook, NAME)).notebook
    return packed(Graded(nbformat.writes(notebook).encode(), {}))

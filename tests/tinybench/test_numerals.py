"""Numbers in text: a count agrees with its noun, and a p-value says when it is at its floor, wherever they are printed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.course.export import EXPORTED
from autograder.course.notebook import cells_of, course_notebooks, read_notebook
from tests.house import PACKAGES, ROOT, files
from tinybench.support.basics.numbers import number_of, p_text, plural

# words in s that may follow a value and are no plural nouns
NO_NOUNS = """
as has is its was this does less plus across always perhaps thus yes towards besides unless ms µs us
begins belongs breaks brings cannot carries clips comes computes declares decides differs divides
draws ends exists fails falls finds gives goes grows holds keeps lacks lasts leaves lies makes misses moves
needs passes prefers proves reads refuses rejects returns says sees shows stands starts takes tells varies waits
wants works yields
""".split()  # noqa: SIM905
ALIKE = ["times", "points", "series"]  # "1 times as long" is a factor, "0.5 points" a difference, "1 series" a singular
BEFORE = """
a all and are at by each for from have if in into it no not of on or out over per that the to were where with
""".split()  # noqa: SIM905
# counts that are never 1, or that no person reads
ALLOWED = {
    "autograder/grading/similar/similarity.py": {"report.telling": "a file"},
    "autograder/sandbox/guest/probe.py": {"where": "a path, and a verb"},
    "autograder/leaderboard/entry_commands.py": {"len(test_labels)": "the public split has 360 digits"},
    "autograder/leaderboard/entry/protobuf_limits.py": {
        **dict.fromkeys(("parts", "numbers"), "a limit of thousands"),
        "end - position": "a bound that is compared with a length",
    },
    "autograder/leaderboard/referee/measure.py": {"scores.shape": "a shape"},
    "autograder/sandbox/bubblewrap.py": {"limits.output_bytes": "a limit of megabytes"},
    "autograder/sandbox/rpc/codec.py": {"len(made)": "a limit of thousands"},
    "tinybench/accuracy.py": {"rows": "in a solution, over two lines"},
    "tinybench/support/rounds/fresh_processes.py": {"function.__name__": "a name, and a verb"},
    "tinybench/support/basics/result_text.py": {"count": "one value is said in words"},
    "tinybench/support/basics/result_report.py": {
        "batches": "6 batches or more",
        **dict.fromkeys(("count", "self.count"), "one value is said in words"),
    },
    "tinybench/support/rounds/subject.py": {"name": "a name, and a verb"},
    "tinybench/support/basics/arguments.py": {"counts": "a list of counts"},
    "tinybench/support/traffic/request_rows.py": {"getattr(self, name).size": "beside the count that it should be"},
    "tinybench/support/traffic/queue_runs.py": {"most": "a limit"},
    "tinybench/support/traffic/load_checks.py": {"batches": "10 batches"},
    "tinybench/support/comparisons/compared.py": {"len(x)": "4 to 11 batches"},
    "tinybench/tools/study/gains.py": {"len(latency)": "a study has 2 variants or more"},
    "tinybench/support/basics/dependence.py": {"n": "2 values or more"},
    "tinybench/tools/history/entry.py": {"system.get('cores', '?')": "a name that stored histories are found by"},
    "tinybench/support/footprint/memory_results.py": {"blocks": "a constant"},
    "tinybench/support/choices/requirement_files.py": {"requirement": "a name, and a verb"},
    "tinybench/tools/study/precision_comparison.py": {"level": "a percentage"},
    "tinybench/support/reports/sections.py": {"len(latency)": "3 models or more"},
    "tinybench/result.py": {"needed": "6 or more", "self.count": "one value is said in words"},
    "tinybench/course/lessons/m16_figures.py": {"streams": "a constant"},
    "tinybench/course/lessons/m16_dependence.py": {"each": "5 or more"},
    "tinybench/toolbox.py": {"counts or 'no'": "a list of counts"},
}


# counts that a visible check says, by its cell
ALLOWED_IN_CHECKS = {
    "check_percentile": {"needed": "6 or more"},
    "check_calibrate": {"back.calls": "more than 1, where this is said"},
    "check_timed_calls": {"2 * loops": "2 or more"},
    "check_peak": {"64 * MiB": "a constant"},
    "check_size": {"truth": "a constant"},
    "check_measure": {"loops": "more than 500", "len(toy.inputs)": "2,000 or more"},
    "check_server": {"len(tried)": "more than 40"},
    "check_gemm_work": {"mine(7, 1, 3).bytes": "a size in bytes, 124 if right"},
    "check_chance": {"counts[1]": "a constant"},
}


def written_by_students() -> set[str]:
    """Return the lines of all solutions in the notebooks."""
    lines: set[str] = set()
    for notebook in (ROOT / "modules").glob("*/*.ipynb"):
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            for solution in re.findall("BEGIN SOLUTION(.*?)END SOLUTION", "".join(cell["source"]), re.DOTALL):
                lines |= {line.strip() for line in solution.splitlines()}
    return lines


def counts_before_plurals(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the value and the nouns of each f-string that puts a whole number before a plural."""
    for node in ast.walk(ast.parse(text)):
        parts = [ast.Constant(""), *node.values] if isinstance(node, ast.JoinedStr) else []
        for before, value, after in zip(parts, parts[1:], parts[2:], strict=False):
            if not (isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant)):
                continue
            nouns = re.match(r" (?:([a-zé-]+) )?([a-zé-]+s)\b(?![/-])", str(after.value))
            if not nouns or nouns[1] in [*BEFORE, *NO_NOUNS] or nouns[2] in [*NO_NOUNS, *ALIKE]:
                continue
            form = ast.unparse(value.format_spec) if value.format_spec else ""
            decimals = "%" in form or re.search(r"\.[1-9]f", form)
            of_a_pair = isinstance(before, ast.Constant) and before.value == " and "  # "3 and 1 values do not pair"
            name = ast.unparse(value.value)
            listed, constant, quoted = ".join(" in name, name.isupper(), value.conversion != -1
            if not (decimals or of_a_pair or listed or constant or quoted):
                yield node.lineno, name, nouns[0].strip()


def hidden_check(path: Path) -> bool:
    """Return whether a file holds hidden checks, which draw sizes above 1."""
    return path.parent.name == "checks" and bool(re.fullmatch(r"m\d\d_\w+|plain_answers", path.stem))


def test_every_count_agrees_with_its_noun() -> None:
    """Write ``{number_of(len(rows), 'row')}`` instead of ``{len(rows)} rows``: somebody has one row."""
    solutions, found = written_by_students(), []
    for path in files(*PACKAGES):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
        lines = text.splitlines()
        for line, value, nouns in counts_before_plurals(text):
            by_students = text.startswith(EXPORTED) and lines[line - 1].strip() in solutions
            if not (by_students or hidden_check(path) or value in ALLOWED.get(name, {})):
                found.append(f"{name}:{line}: {value} before {nouns!r}")
    assert not found


def test_so_do_the_visible_checks() -> None:
    found = [
        f"{path.stem}, {cell.id}: {value} before {nouns!r}"
        for path in course_notebooks(ROOT)
        for cell in cells_of(read_notebook(path))
        if cell.is_check
        for _, value, nouns in counts_before_plurals(cell.source)
        if value not in ALLOWED_IN_CHECKS.get(cell.id, {})
    ]
    assert not found


def test_templates_count_by_the_same_function() -> None:
    found = [
        f"{path.name}: {count}"
        for path in (ROOT / "autograder/leaderboard/web/templates").glob("*.html")
        for count in re.findall(r"\{\{[^{}]*\}\}(?:</\w+>)? [a-z]+s\b", path.read_text(encoding="utf-8"))
        if not re.search("counts$|task|limits", count)  # a verb; sizes and limits of an event, in the hundreds
    ]
    assert not found


def test_the_scan_sees_what_it_should() -> None:
    seen = [
        value for _, value, _ in counts_before_plurals('f"{a} rows, {b:,} slow calls, {c} of the rows, {d:.2f} points"')
    ]
    assert seen == ["a", "b"]


@pytest.mark.parametrize(
    ("count", "noun", "told"),
    [
        (1, "row", "1 row"),
        (0, "row", "0 rows"),
        (2, "batch", "2 batches"),
        (2, "class", "2 classes"),
        ("1,200", "more query", "1,200 more queries"),
        (3, "day", "3 days"),
        ("  1", "point", "  1 point"),
        (1.0, "row", "1.0 rows"),
    ],
)
def test_a_count_and_its_noun(count: float | str, noun: str, told: str) -> None:
    assert number_of(count, noun) == told
    assert plural(2, "is", "are") == "are"


def test_a_p_value_says_when_it_is_at_its_floor() -> None:
    assert p_text(0.0123) == "p = 0.012"
    assert p_text(1 / 32, "6 rounds") == "p ≤ 0.031, the least that 6 rounds allow"
    assert p_text(1.0, "1 round") == "p = 1"
    assert p_text(1e-9, "30 rounds") == "p < 0.001"

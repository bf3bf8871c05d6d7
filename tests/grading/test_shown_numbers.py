"""What the grader and the comparison of solutions print, number by number, against what they were given."""

from __future__ import annotations

import statistics

from autograder.grading.grade import Outcome, grade_lines
from autograder.grading.package_report import Module
from autograder.grading.package_report import report_lines as package_lines
from autograder.grading.similar.similarity import Base, Pair, Report
from autograder.grading.similar.similarity import report_lines as similarity_lines
from tests.shown import check

SCORES = {"ada": 7.5, "bob": 3.0, "cat": 10.0}


def test_grades() -> None:
    seconds = {"ada": 1.236, "bob": 0.5, "cat": 12.0}
    outcomes = [Outcome(name, "01_tiny", score, 10, seconds[name]) for name, score in SCORES.items()]
    outcomes.append(Outcome("dan", "01_tiny", None, None, 0.25, note="no file"))
    scores = list(SCORES.values())
    check(
        "\n".join(grade_lines(outcomes)),
        {f"{name} # # #": [score, 10, seconds[name]] for name, score in SCORES.items()}
        | {
            "dan – – # no file": [0.25],
            "# of # have a grade: mean #, median #, of #": [
                len(scores), len(outcomes), sum(scores) / 3, statistics.median(scores), 10,
            ],
        },
    )  # fmt: skip


def test_similarity() -> None:
    pairs = (Pair("ada", "bob", 0.873, 0.95, ("count",)), Pair("ada", "the reference", 0.41, 0.6, ()))
    cells = (Base("count", 0.314, 0.271, False, 1.0), Base("halve", 1.0, 1.0, False, 0.0))
    whole = Base("all", 0.5, 0.25, False, 1.0)
    report = Report("01_tiny", pairs, 3, cells, whole, 4, 0, 4, {})
    text = "\n".join(similarity_lines(report))
    shown = {
        "#% ada, bob count": [87.3],
        "#% ada, the reference": [41],
        "count #% #%": [31.4, 27.1],
        "all #% #%": [50, 25],
    }
    lines = [
        line for line in text.splitlines() if line.split() and ("ada" in line or line.split()[0] in ("count", "all"))
    ]
    check("\n".join(lines), shown)


def test_package() -> None:
    modules = [
        Module("result", "yours", passed=31, failures=(("test_a", "why"), ("test_b", "why"))),
        Module("timer", "reference", passed=12),
    ]
    lines = [line for line in "\n".join(package_lines(modules)).splitlines() if line.startswith(("result ", "timer "))]
    check("\n".join(lines), {"result yours # #": [31, 2], "timer reference # #": [12, 0]})

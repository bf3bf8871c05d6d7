"""Every command is listed here with the test that compares its numbers; a new command has to be added."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from autograder.cli import commands as autograder
from tinybench.shell.cli import commands as tinybench

TESTS = Path(__file__).parent
NONE = ""  # shows no number that is computed: names, paths, files, messages

# By command: `file::test` under tests/ that compares what the command shows with numbers computed another way.
COMPARED = {
    "tinybench compare": "tinybench/test_shown_numbers.py::test_compare",
    "tinybench measure": "tinybench/test_shown_numbers.py::test_measure",
    "tinybench gate": "tinybench/test_shown_pages.py::test_gate",
    "tinybench run": "tinybench/test_shown_pages.py::test_report",
    "tinybench study": "tinybench/test_cli.py::test_study",
    "tinybench load": "tinybench/test_shown_numbers.py::test_load",
    "tinybench system": "tinybench/test_benchmark.py::test_what_two_measurements_must_share",
    "tinybench machine": "tinybench/test_shown_numbers.py::test_machine",
    "tinybench serve": "tinybench/test_shown_pages.py::test_metrics_of_a_server",
    "tinybench profile": "tinybench/test_shown_numbers.py::test_profile_of_a_script",
    "tinybench history add": "tinybench/test_history.py::test_add_reads_what_the_gate_writes",
    "tinybench history show": "tinybench/test_shown_numbers.py::test_history_show_and_changes",
    "tinybench history changes": "tinybench/test_shown_numbers.py::test_history_show_and_changes",
    "tinybench history export": "tinybench/test_history.py::test_export_and_import",
    "tinybench history import": "tinybench/test_history.py::test_export_and_import",
    "tinybench watch": "tinybench/test_shown_numbers.py::test_watch",
    "tinybench rollout": "tinybench/test_shown_numbers.py::test_rollout",
    "autograder export": NONE,
    "autograder lint": NONE,
    "autograder release": NONE,
    "autograder publish": "course/test_published.py::test_what_was_released_is_published_and_named",
    "autograder lab": NONE,
    "autograder build": NONE,
    "autograder status": "course/test_overview.py::test_states_and_the_next_step",
    "autograder borrow": NONE,
    "autograder save": NONE,
    "autograder restore": NONE,
    "autograder course": NONE,
    "autograder grade": "grading/test_shown_numbers.py::test_grades",
    "autograder doctor": NONE,
    "autograder feedback": "grading/test_grade.py::test_points_are_what_was_written",
    "autograder package": "grading/test_shown_numbers.py::test_package",
    "autograder similarity": "grading/test_shown_numbers.py::test_similarity",
    "autograder demo": "grading/test_shown_numbers.py::test_grades",
    "autograder leaderboard check": "leaderboard/test_shown_numbers.py::test_the_page_of_an_entry",
    "autograder leaderboard clock": NONE,
    "autograder leaderboard data": NONE,
    "autograder leaderboard enter": NONE,
    "autograder leaderboard export": "leaderboard/test_shown_numbers.py::test_the_api_and_the_csv_hold_the_same_numbers",
    "autograder leaderboard rehearse": NONE,
    "autograder leaderboard serve": "leaderboard/test_shown_numbers.py::test_a_page_shows_what_the_referee_measured",
    "autograder leaderboard token": NONE,
    "autograder leaderboard worker": NONE,
}


def names(command: click.Command, above: str) -> Iterator[str]:
    """Yield the names of a command and of those below it."""
    if not isinstance(command, click.Group):
        yield above
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        if below := command.get_command(context, name):
            yield from names(below, f"{above} {name}")


def test_every_command_is_listed() -> None:
    assert {*names(tinybench, "tinybench"), *names(autograder, "autograder")} == COMPARED.keys()


@pytest.mark.parametrize("place", sorted({place for place in COMPARED.values() if place}))
def test_what_is_listed_is_a_test(place: str) -> None:
    file, _, name = place.partition("::")
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}

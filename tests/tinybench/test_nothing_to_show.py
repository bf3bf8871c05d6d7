"""Where there is nothing to show, a sentence says so: tables without rows, and commands without data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.tinybench.test_operator_work import KNOWN
from tinybench.onnx import OnnxModel
from tinybench.result import BenchmarkResult
from tinybench.shell.cli import main
from tinybench.support.basics.table import Table
from tinybench.support.profiling.stacks import Profile
from tinybench.tools.history.changes import changes_of
from tinybench.tools.history.page import page_of
from tinybench.tools.history.sqlite_store import History
from tinybench.tools.roofline.operator_bottlenecks import Placed
from tinybench.tools.watching.budget_burn import Look, verdict_of_looks
from tinybench.tools.watching.panel_figures import panel_picture
from tinybench.tools.watching.queries import Objective, panels_for


@pytest.mark.parametrize("form", ["text", "__str__", "markdown", "html"])
@pytest.mark.parametrize("caption", ["", "Operators"])
def test_a_table_without_rows_is_a_sentence(form: str, caption: str) -> None:
    shown = getattr(Table([], caption, empty="No operator ran."), form)()
    assert "No operator ran." in shown
    assert "<table" not in shown
    assert "There is nothing to show here." in getattr(Table([], caption), form)()


def test_csv_without_rows_stays_empty() -> None:
    assert Table([]).csv() == ""


def no_samples() -> str:
    return str(Profile([], "one look every 10 ms"))


def no_operator() -> str:
    return str(Placed([], [], BenchmarkResult("latency", [0.01] * 8, unit="s"), 0.0))


def no_request() -> str:
    return verdict_of_looks([Look("a", 0.0), Look("a", 5.0, rate=0.0)], Objective()).why


def no_panel() -> str:
    try:
        panel_picture([(panel, {}) for panel in panels_for()])
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("nothing", "said"),
    [
        (no_samples, "No samples: nothing ran long enough."),
        (no_operator, "no operator of this model computes or moves anything"),
        (no_request, "no request came"),
        (no_panel, "no panel has data"),
    ],
)
def test_it_is_said_why_there_is_nothing(nothing: Callable[[], str], said: str) -> None:
    assert said in nothing()


@pytest.mark.parametrize("commits", [0, 1, 9, 12])
def test_a_history_says_whether_there_is_enough_to_tell(
    commits: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "history.db"
    with History(file) as kept:
        for number in range(commits):
            result = BenchmarkResult("latency", [0.01, 0.011, 0.012], unit="s")
            kept.add(
                result, commit=f"c{number}", committed=f"2026-01-01T00:{number:02}", benchmark="it", machine="here"
            )
        series = [kept.series(*key) for key in kept.names()]
    code = main(["history", "show", "--file", str(file)])
    said = capsys.readouterr()
    if not commits:
        assert (code, "there are no results yet" in said.err) == (3, True)
        return
    told = "too few to detect a change" if commits < 10 else "no change of level"
    assert told in said.out
    page = page_of([(each, changes_of(each)) for each in series]).html().lower()
    assert (told in page, ("no change of level" in page)) == (True, commits >= 10)


def test_a_model_of_operators_that_cannot_be_placed_shows_their_times(tmp_path: Path) -> None:
    from sklearn.ensemble import RandomForestClassifier

    from tinybench.onnx import to_onnx
    from tinybench.tools.roofline.operator_bottlenecks import place_operators

    rows = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    forest = RandomForestClassifier(5, random_state=0).fit(rows, rows[:, 0] > 0)
    found = place_operators(
        OnnxModel(to_onnx(forest, rows, tmp_path / "forest.onnx")), rows, KNOWN, runs=2, warmup_runs=0
    )
    assert "TreeEnsemble" in found.table().text()
    assert sum(float(row["share"].rstrip("%")) for row in found.table().rows) == pytest.approx(100, abs=2)

"""Answers are checked at once, and solutions explained to those who have one, and to nobody else."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from autograder.course import sealed_solutions
from autograder.course.assignment import Assignment
from autograder.course.notebook import cells_of, course_notebooks, read_notebook
from tinybench.course import check_answer, check_feedback, passed, passed_checks

ROOT = Path(__file__).parents[2]
SENTENCES = 2
FIRST = "01_result"
ABOUT = {"check_runs": {"section": "4 · How many runs", "pieces": ["required_runs"], "questions": []}}


@pytest.mark.slow
@pytest.mark.parametrize("notebook", course_notebooks(ROOT), ids=lambda path: path.stem)
def test_each_check_has_an_explanation(notebook: Path) -> None:
    checks = [cell.id for cell in cells_of(read_notebook(notebook)) if cell.is_check]
    sections = sealed_solutions.read_explanations(sealed_solutions.explanations(notebook))
    assert list(sections) == checks, "one section for each check, in their order"
    short = [name for name, section in sections.items() if len(re.findall(r"[.:?!](?:\s|$)", section.text)) < SENTENCES]
    assert not short, "an explanation is more than the code"
    found = sealed_solutions.keys(notebook)
    assert list(found["proofs"]) == checks, "each check ends in passed(...)"
    guessed = [name for name, proof in found["proofs"].items() if len(proof) < len("[12]")]
    assert not guessed, "a proof that one can guess"
    assert '"some ' not in str(found["proofs"]), "a proof is made of plain values"
    hinted = {name for section in sections.values() for name, *_ in section.hints}
    assert hinted <= set(found["answers"]), "hints for questions that no check asks"


@pytest.mark.slow
@pytest.mark.parametrize(
    "notebook",
    [path if path.stem == FIRST else pytest.param(path, marks=pytest.mark.audit) for path in course_notebooks(ROOT)],
    ids=lambda path: path.stem,
)
def test_the_reference_opens_each_explanation(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    box = sealed_solutions.seal(notebook, sealed_solutions.keys(notebook))
    monkeypatch.setenv("PYTHONHASHSEED", "2")
    for check, proof in sealed_solutions.run_reference(Assignment.read(notebook))["proofs"].items():
        assert check_feedback.opened(check, proof, box["checks"][check]), f"{check}: the proof differs from run to run"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A released folder: one question of two parts, one check."""
    found = {
        "answers": {"runs": sealed_solutions._parts((62, 2.195), 2), "unit": sealed_solutions._parts("J", 2)},
        "proofs": {"check_runs": check_feedback.canonical((0.5, [1, 2]))},
    }
    monkeypatch.setattr(sealed_solutions, "solutions", lambda notebook: {"check_runs": "```python\nrun()\n```"})
    monkeypatch.setattr(sealed_solutions, "about", lambda notebook: ABOUT)
    file = tmp_path / "m01.md"
    file.write_text(
        "## check_runs\nWhy so.\n\n- runs = 64: that is by t, not by z\n- runs[1] = 22: ten times too much\n"
    )
    monkeypatch.setattr(sealed_solutions, "explanations", lambda notebook: file)
    (tmp_path / passed_checks.SEALED).write_text(json.dumps(sealed_solutions.seal(tmp_path / "01.ipynb", found)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_answers_are_checked_at_once(folder: Path) -> None:
    for right in (
        (62, 2.2),
        [62.0, 2.195],
        (62, 2.249),
        (Fraction(62), np.float64(2.2)),
        np.array([62, 2.2]),
        (Decimal(62), Decimal("2.2")),
    ):
        check_answer("runs", right)
    check_answer("unit", " j ")
    for wrong, words in [
        ((64, 2.2), "value 1 of 2: that is by t, not by z"),
        ((62, 22.1), "value 2 of 2: ten times too much"),
        ((62, 2.5), "value 2 of 2: 2.5 is not right yet"),
        ((62,), "expected 2 values, got 1"),
        (("many", 2.2), "'many' is not right yet"),
        ((True, 2.2), "True is not right yet"),
        ((object, 2.2), "is not right yet"),
    ]:
        with pytest.raises(AssertionError, match=re.escape(words)):
            check_answer("runs", wrong)
    assert "62" not in (folder / passed_checks.SEALED).read_text()


@pytest.mark.parametrize("explain", [True, False])
def test_only_a_right_result_is_ticked(folder: Path, monkeypatch: pytest.MonkeyPatch, explain: bool) -> None:
    shown: list[str] = []
    monkeypatch.setattr(check_feedback, "_show", shown.append)
    found = {"answers": {}, "proofs": {"check_runs": check_feedback.canonical((0.5, [1, 2]))}}
    (folder / passed_checks.SEALED).write_text(
        json.dumps(sealed_solutions.seal(folder / "01.ipynb", found, explain=explain))
    )
    with pytest.raises(AssertionError, match=r"visible tests pass, a hidden one does not.* Look at required_runs"):
        passed("check_runs", 0.5, [1, 3])
    assert not shown
    assert not passed_checks.kept()
    passed("check_runs", 0.5 + 1e-12, (1, 2.0))
    assert shown[-1].startswith("✓ **check_runs** passed: 1 of 1 check in this notebook")
    assert ("Why so." in shown[-1]) == ("run()" in shown[-1]) == explain
    assert "- runs" not in shown[-1], "hints are for wrong answers"
    kept = json.loads((folder / passed_checks.PROGRESS).read_text())
    assert (list(kept["checks"]), kept["of"]) == (["check_runs"], 1)
    assert "run()" not in (folder / passed_checks.SEALED).read_text()
    with pytest.raises(AssertionError, match="a hidden one does not"):
        passed("check_runs", 0.25, [1, 2])
    assert not passed_checks.kept(), "a failure withdraws the mark"


def test_an_accepted_answer_is_ticked_however_it_is_rounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(check_feedback, "_show", shown.append)
    found = {"answers": {"runs": sealed_solutions._parts((62, 2.195), 2)}, "proofs": {}}
    right = {name: [part["right"] for part in parts] for name, parts in found["answers"].items()}
    found["proofs"]["check_runs"] = check_feedback.answered(right, ["runs"])
    asks = {"check_runs": ABOUT["check_runs"] | {"questions": ["runs"]}}
    monkeypatch.setattr(sealed_solutions, "about", lambda notebook: asks)
    (folder / passed_checks.SEALED).write_text(json.dumps(sealed_solutions.seal(folder / "01.ipynb", found)))
    for number, answer in enumerate([(62, 2.2), (62.0, 2.249), (62, 2.195)], start=1):
        check_answer("runs", answer)
        passed("check_runs", f"{answer[1]:.3f}")
        assert len(shown) == number
    with pytest.raises(AssertionError, match="not right yet"):
        check_answer("runs", (62, 3))
    with pytest.raises(AssertionError, match="a hidden one does not"):
        passed("check_runs", "2.195")


def test_where_nothing_is_released_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_answer("runs", "anything")
    passed("check_runs", 1)
    assert list(tmp_path.iterdir()) == []


def test_a_hint_for_the_right_answer_is_refused(folder: Path) -> None:
    (folder / "m01.md").write_text("## check_runs\n\n- runs = 62: no\n")
    with pytest.raises(ValueError, match="is the right answer"):
        sealed_solutions.seal(folder / "01.ipynb", {"answers": {"runs": sealed_solutions._parts(62, 2)}, "proofs": {}})

"""A real nbgrader round trip, and the rule that a submission's points are what its author wrote."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from traitlets.config import Config

from autograder.config import configure
from autograder.demo import solve, submit, the_class
from autograder.execute import execute
from autograder.export import export_course, write_atomically
from autograder.grade import feedback, grade
from autograder.notebook import NotebookError, read_notebook
from autograder.release import release_all
from tests.autograder.conftest import ROOT, Write

NAME = "01_tiny"


@pytest.fixture
def released(course: Path, module: Write) -> Path:
    """Return a course whose one module is released."""
    module()
    for path, text in export_course(course).items():
        write_atomically(path, text)
    release_all(course, verify=False, report=lambda line: None)
    return course


def hand_in(course: Path, student: str, content: bytes, name: str = NAME) -> Path:
    folder = course / "course" / "submitted" / student / name
    folder.mkdir(parents=True)
    path = folder / f"{name}.ipynb"
    path.write_bytes(content)
    return path


def solved(course: Path, source: str = "def halve(x):\n    return x / 2", extra: str = "") -> bytes:
    notebook = read_notebook(course / "course" / "release" / NAME / f"{NAME}.ipynb")
    notebook.cells[2].source = source + extra
    return nbformat.writes(notebook).encode()


def test_points_are_what_was_written(released: Path) -> None:
    noisy = "\n\nimport sys\nprint('careful', file=sys.stderr)\nget_ipython().events.register('pre_run_cell', lambda info: print('x', file=sys.stderr))"
    number = "\n\nget_ipython().events.register('post_run_cell', lambda result: None)"
    for student, content in {
        "right": solved(released),
        "noisy": solved(released, extra=noisy),
        "quiet": solved(released, extra=number),
        "hidden_wrong": solved(released, "def halve(x):\n    return x // 2"),
        "untouched": (released / "course" / "release" / NAME / f"{NAME}.ipynb").read_bytes(),
        "crash": solved(released, extra="\n\nimport os\nos._exit(3)"),
        "not_json": b"no notebook",
        "binary": b"\xff\xfe\x00",
        "empty": b"",
    }.items():
        hand_in(released, student, content)
    tagged = read_notebook(released / "course" / "release" / NAME / f"{NAME}.ipynb")
    for cell in tagged.cells:
        cell.metadata["tags"] = ["skip-execution"]
    hand_in(released, "skipper", nbformat.writes(tagged).encode())
    secret = released / "secret.ipynb"
    secret.write_bytes(solved(released))
    link = hand_in(released, "linker", b"")
    link.unlink()
    link.symlink_to(secret)
    huge = hand_in(released, "huge", b"")
    with huge.open("wb") as file:
        file.truncate(200 * 2**20)
    outcomes = {outcome.student: outcome for outcome in grade(released, NAME)}
    assert {name: outcome.score for name, outcome in outcomes.items()} == {
        "right": 3, "noisy": 3, "quiet": 3, "hidden_wrong": 0, "untouched": 0, "crash": 0, "not_json": 0,
        "binary": 0, "empty": 0, "skipper": 0, "linker": 0, "huge": 0,
    }  # fmt: skip
    assert "ended while a cell was running" in outcomes["crash"].note
    assert "not a regular file" in outcomes["linker"].note
    assert "200 MB" in outcomes["huge"].note
    for name in ("not_json", "binary", "empty"):
        assert "notebook" in outcomes[name].note.lower() or "UTF-8" in outcomes[name].note
    assert not (released / "course" / "checked" / "linker" / NAME / f"{NAME}.ipynb").is_symlink()
    again = {outcome.student: outcome for outcome in grade(released, NAME)}
    assert {outcome.note for outcome in again.values()} == {"graded before"}
    assert {name: outcome.score for name, outcome in again.items()} == {name: o.score for name, o in outcomes.items()}
    pages = {page.parts[-3]: page.read_text() for page in feedback(released, NAME)}
    assert len(pages) == len(outcomes)
    for page in pages.values():
        assert "half of 3 is 1.5" not in page.replace("AssertionError: half of 3 is 1.5", ""), "hidden source leaked"
    assert "could not be graded" in pages["not_json"]


def test_grading_needs_a_release_and_a_submission(course: Path, released: Path) -> None:
    with pytest.raises(NotebookError, match="not released yet"):
        grade(course, "07_none")
    with pytest.raises(NotebookError, match="nothing submitted"):
        grade(course, NAME)


def test_a_trailing_number_is_no_partial_credit() -> None:
    check = {
        "grade": True,
        "solution": False,
        "locked": True,
        "points": 2,
        "grade_id": "c",
        "schema_version": 3,
        "task": False,
    }
    cell = nbformat.v4.new_code_cell("1", metadata={"nbgrader": check})
    done = execute(nbformat.v4.new_notebook(cells=[cell]), folder=Path.cwd()).notebook
    assert [output.output_type for output in done.cells[0].outputs] == ["display_data"]


@pytest.mark.slow
def test_round_trip_through_the_exchange(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Release, submit, collect, autograde with the stock preprocessors, and read the gradebook."""
    config = configure(Config(), released)
    config.ExchangeCollect.check_owner = False
    api = NbGraderAPI(config=config)
    assert api.release_assignment(NAME)["success"]
    desk = released / "desk" / NAME
    desk.mkdir(parents=True)
    (desk / f"{NAME}.ipynb").write_bytes(solved(released))
    monkeypatch.setattr("autograder.demo.ASSIGNMENT", NAME)
    submit(released, "ada", desk.parent)
    assert api.collect(NAME)["success"]
    [outcome] = grade(released, NAME)
    assert (outcome.student, outcome.score, outcome.max_score) == ("ada", 3, 3)
    with Gradebook(config.CourseDirectory.db_url) as gradebook:
        assert gradebook.find_submission(NAME, "ada").score == 3
    stock = configure(Config(), released)
    del stock.Autograde["autograde_preprocessors"]
    assert NbGraderAPI(config=stock).autograde(NAME, "ada", force=True)["success"]
    with Gradebook(config.CourseDirectory.db_url) as gradebook:
        assert gradebook.find_submission(NAME, "ada").score == 3
    assert os.environ["PATH"]


def test_the_demos_class_is_what_it_says() -> None:
    source = read_notebook(ROOT / "modules" / "01_result" / "01_result.ipynb")
    from autograder.release import StubSolutions

    released_notebook, _ = StubSolutions().preprocess(nbformat.from_dict(source), {})
    submissions = dict(the_class(released_notebook, source))
    assert len(submissions) == 6
    assert b"SOLUTION" not in submissions["ada_reference"]
    assert submissions["dan_four_errors"] != submissions["ada_reference"]
    assert solve(released_notebook, source) != released_notebook

"""A real nbgrader round trip, and the rule that a submission's points are what its author wrote."""

from __future__ import annotations

import json
import logging
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import Mock

import nbformat
import pytest
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Application, Config

from autograder import time_limits
from autograder.course.assignment import Assignment
from autograder.course.execute import run_notebook
from autograder.course.nbgrader_settings import GRADEBOOK, configure
from autograder.course.notebook import NotebookError, read_notebook
from autograder.course.release import StubSolutions, release_all
from autograder.demo import solve, submit, the_class
from autograder.grading.collect import Collect, time_of
from autograder.grading.grade import feedback, grade_assignment
from autograder.grading.submission import FOREIGN
from autograder.grading.worker_pools import grade_bytes
from autograder.sandbox.bubblewrap import SandboxUnavailable
from tests.attacks.notebooks import cell_of
from tests.tiny_course import NAME, RIGHT, ROOT, code, gradebook, hand_in, solved


@pytest.fixture(autouse=True)
def own_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ran before in this process may have left an application that takes the log over, or have silenced it."""
    monkeypatch.setattr(Application, "_instance", None)
    log = logging.getLogger("traitlets")
    monkeypatch.setattr(log, "disabled", False)
    monkeypatch.setattr(log, "propagate", True)
    logging.disable(logging.NOTSET)
    log.setLevel(logging.NOTSET)


@pytest.mark.parametrize("sandboxed", [pytest.param(True, marks=pytest.mark.needs("sandbox")), False])
def test_data_files_are_there_to_read(released: Path, sandboxed: bool) -> None:
    time_limits.slowness()  # measured once, and kept in the environment for child processes
    before = dict(os.environ)
    notebook = released / "modules" / NAME / f"{NAME}.ipynb"
    (notebook.parent / "numbers.csv").write_text("four;two")
    (notebook.parent / "more").mkdir()
    (notebook.parent / "more" / "deep.txt").write_text("below")
    (notebook.parent / "solutions.py").write_text("secret = 1")
    assignment = Assignment.read(notebook)
    assert [name for name, _ in assignment.data] == ["more/deep.txt", "numbers.csv"]
    look = (
        "\n\nimport os\nprint(open('numbers.csv').read(), open('more/deep.txt').read(), os.path.exists('solutions.py'))"
        "\nprint('seed', os.environ.get('TINYBENCH_CHECK_SEED'))"
    )
    graded = json.loads(grade_bytes(assignment, solved(released, extra=look), 0, sandboxed))
    assert "four;two below False" in graded["notebook"]
    assert ("seed None" in graded["notebook"]) is sandboxed, (
        "the seed is in the kernel in which the checks run, or nowhere"
    )
    assert dict(os.environ) == before, "and not in what this process does next"
    other = Assignment(assignment.name, assignment.notebook, (("numbers.csv", b"five"),))
    assert other.digest() != assignment.digest(), "with other data, work is graded again"


@pytest.mark.needs("sandbox")
def test_points_are_what_was_written(released: Path) -> None:
    noisy = "\n\nimport sys\nprint('careful', file=sys.stderr)\nget_ipython().events.register('pre_run_cell', lambda info: print('x', file=sys.stderr))"
    number = "\n\nget_ipython().events.register('post_run_cell', lambda result: None)"
    for student, content in {
        "right": solved(released),
        "noisy": solved(released, extra=noisy),
        "quiet": solved(released, extra=number),
        "hidden_wrong": solved(released, check_values=RIGHT["check_values"].replace("type(v) is bool or ", "")),
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
    outcomes = {outcome.student: outcome for outcome in grade_assignment(released, NAME)}
    assert {name: outcome.score for name, outcome in outcomes.items()} == {
        "right": 4, "noisy": 4, "quiet": 4, "hidden_wrong": 2, "untouched": 0, "crash": 2, "not_json": 0,
        "binary": 0, "empty": 0, "skipper": 0, "linker": 0, "huge": 0,
    }  # fmt: skip
    assert "ended" in outcomes["crash"].note
    assert "symbolic link" in outcomes["linker"].note
    assert "over 20 MB" in outcomes["huge"].note
    for name in ("not_json", "binary", "empty"):
        assert "notebook" in outcomes[name].note
    assert [name for name, outcome in outcomes.items() if outcome.evidence] == []
    assert {o.note for o in grade_assignment(released, NAME, dry_run=True)} == {"would be kept"}
    again = {outcome.student: outcome for outcome in grade_assignment(released, NAME)}
    assert {name: outcome.score for name, outcome in again.items()} == {name: o.score for name, o in outcomes.items()}
    pages = {page.parts[-3]: page.read_text() for page in feedback(released, NAME)}
    assert len(pages) == len(outcomes)
    for page in pages.values():
        assert "autograder.checks" not in page
        assert "values_are_guarded" not in page, "hidden source leaked"
    assert "could not be graded" in pages["not_json"]


def test_without_a_sandbox_only_on_request(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hand_in(released, "right", solved(released))
    hand_in(released, "wrong", solved(released, mean_and_std="def mean_and_std(v):\n    return 0.0, 0.0"))

    none_here = Mock(side_effect=SandboxUnavailable("bwrap is missing: install the package bubblewrap"))
    monkeypatch.setattr("autograder.grading.grade.available", none_here)
    with pytest.raises(SandboxUnavailable, match="bubblewrap"):
        grade_assignment(released, NAME)
    assert [outcome.score for outcome in grade_assignment(released, NAME, unsafe=True, progress=False)] == [4, 2]


def test_grading_needs_a_release_and_a_submission(course: Path, released: Path) -> None:
    with pytest.raises(NotebookError, match="not released yet"):
        grade_assignment(course, "07_none")
    with pytest.raises(NotebookError, match="nothing submitted"):
        grade_assignment(course, NAME)


def test_a_trailing_number_is_no_partial_credit() -> None:
    cell = code("1", "c", grade=True, locked=True, points=2)
    done = run_notebook(nbformat.v4.new_notebook(cells=[cell]), folder=Path.cwd()).notebook
    assert [output.output_type for output in done.cells[0].outputs] == ["display_data"]


def test_a_folder_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither of whom it is nor of when, by its name alone."""
    inbound = tmp_path / "inbound"
    names = {"ada": "2026-09-30 17:20:00 UTC", "eve": "2999-01-01 00:00:00 UTC"}
    for name in names.values():
        (inbound / f"ada+{NAME}+{name}+x").mkdir(parents=True)
    owners = {f"ada+{NAME}+{time}+x": owner for owner, time in names.items()}
    collect = Collect(coursedir=CourseDirectory(assignment_id=NAME))
    collect.inbound_path = str(inbound)
    monkeypatch.setattr(collect, "_owner", lambda path: owners[path.name])
    records = [collect._path_to_record(str(path)) for path in inbound.iterdir()]
    assert [record["filename"] for record in collect._sort_by_timestamp(records)] == [f"ada+{NAME}+{names['ada']}+x"]
    collect.do_copy(str(inbound / f"ada+{NAME}+{names['eve']}+x"), str(tmp_path / "submitted" / "ada" / NAME))
    [note] = (tmp_path / "submitted" / "ada" / NAME).iterdir()
    assert note.read_text() == FOREIGN
    assert "another user" in caplog.text
    collect.duedate = datetime(2026, 10, 1)
    collect.do_copy(str(inbound / f"ada+{NAME}+{names['ada']}+x"), str(tmp_path / "again" / "ada" / NAME))
    assert "says it was handed in on time" in caplog.text


@pytest.mark.needs("sandbox")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.audit)], indirect=True)
def test_round_trip_through_the_exchange(database: str, released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Release, submit, collect, grade, write feedback, autograde with the stock steps: on SQLite and PostgreSQL."""
    # nbgrader leaves a file open when it releases feedback
    monkeypatch.setenv(GRADEBOOK, database)
    release_all(released, verify=False, report=lambda line: None)
    config = configure(Config(), released)
    config.ExchangeCollect.check_owner = False
    api = NbGraderAPI(config=config)
    assert api.release_assignment(NAME)["success"]
    home = released / "home" / NAME
    home.mkdir(parents=True)
    (home / f"{NAME}.ipynb").write_bytes(solved(released))
    monkeypatch.setattr("autograder.demo.ASSIGNMENT", NAME)
    submit(released, "ada", home.parent)
    inbound = next((released / "course" / "exchange").glob("*/inbound/ada+*"))
    planted = inbound.with_name(inbound.name.replace("ada", "mallory"))
    planted.mkdir()
    (planted / "timestamp.txt").write_text((inbound / "timestamp.txt").read_text())
    (planted / f"{NAME}.ipynb").symlink_to(released / "modules" / NAME / f"{NAME}.ipynb")
    linked = inbound.with_name(inbound.name.replace("ada", "trudy"))
    linked.symlink_to(inbound)
    undated = inbound.with_name(f"uma+{NAME}+yesterday+x")
    shutil.copytree(inbound, undated)
    (undated / "timestamp.txt").write_bytes(b"\xff\xfe 31 February")
    assert api.collect(NAME)["success"]
    notes = {outcome.student: outcome.note for outcome in grade_assignment(released, NAME, progress=False)}
    for student in ("mallory", "trudy"):
        submitted = released / "course" / "submitted" / student
        assert not (submitted / NAME / f"{NAME}.ipynb").exists()
        assert "symbolic link" in notes[student]
        note = submitted / NAME / f"{NAME}.ipynb.not-collected"
        note.write_text("\x1b[2J words of a student's own")
        assert "missing" in grade_assignment(released, NAME, student=student, regrade=True, progress=False)[0].note
        shutil.rmtree(submitted)
    hand_in(released, "ben", solved(released, mean_and_std="def mean_and_std(v):\n    return 0.0, 0.0"))
    outcomes = grade_assignment(released, NAME, progress=False)
    assert [(o.student, o.score, o.max_score) for o in outcomes] == [("ada", 4, 4), ("ben", 2, 4), ("uma", 4, 4)]
    made = datetime.fromtimestamp(undated.stat().st_ctime, UTC).replace(tzinfo=None)
    assert time_of(released / "course" / "submitted" / "uma" / NAME / "timestamp.txt") == made
    assert grade_assignment(released, NAME, progress=False) == outcomes
    assert len(feedback(released, NAME)) == 5, "also for those whose work was not collected"
    assert api.release_feedback(NAME, "ada")["success"]
    assert len(list((released / "course" / "exchange").rglob("feedback/*.html"))) == 1
    assert config.CourseDirectory.db_url == database
    with gradebook(released) as book:
        assert book.find_submission(NAME, "ada").score == 4
    stock = configure(Config(), released)
    del stock.Autograde["autograde_preprocessors"]
    assert NbGraderAPI(config=stock).autograde(NAME, "ada", force=True)["success"]
    with gradebook(released) as book:
        assert book.find_submission(NAME, "ada").score == 4
    assert os.environ["PATH"]


@pytest.mark.needs("sandbox")
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::sqlalchemy.exc.SAWarning"
)
def test_formgraders_button_gives_the_same_and_tells(
    released: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By nbgrader's own command, which puts cells in order before it runs them, and would hide that they were not."""
    monkeypatch.chdir(released)
    edited = nbformat.reads(solved(released).decode(), as_version=4)
    cell_of(edited, "check_values_guard").source = "pass"
    hand_in(released, "mallory", nbformat.writes(edited).encode())
    hand_in(released, "ben", solved(released, mean_and_std="def mean_and_std(v):\n    return 0.0, 0.0"))
    config = configure(Config(), released)
    scores = {}
    for student in ("mallory", "ben"):
        done = NbGraderAPI(config=config).autograde(NAME, student)
        assert done["success"], done
        with gradebook(released) as book:
            scores[student] = book.find_submission(NAME, student).score
    assert "look at mallory: check_values_guard" in caplog.text
    assert "look at ben" not in caplog.text
    outcomes = {outcome.student: outcome.score for outcome in grade_assignment(released, NAME, progress=False)}
    assert scores == outcomes == {"mallory": 4, "ben": 2}


def test_the_demos_class_is_what_it_says() -> None:
    source = read_notebook(ROOT / "modules" / "01_result" / "01_result.ipynb")
    released_notebook, _ = StubSolutions().preprocess(nbformat.from_dict(source), {})
    submissions = dict(the_class(released_notebook, source))
    assert len(submissions) == 6
    assert b"SOLUTION" not in submissions["ada_reference"]
    assert submissions["dan_four_errors"] != submissions["ada_reference"]
    assert solve(released_notebook, source) != released_notebook


@pytest.mark.needs("sandbox")
def test_settings_of_the_instructor_count(released: Path) -> None:
    """Points are taken off late work where nbgrader_config.py says so."""
    (released / "nbgrader_config.py").write_text(
        "from pathlib import Path\n\nfrom autograder.course.nbgrader_settings import configure\n\n"
        "configure(get_config(), Path(__file__).parent)\nget_config().LateSubmissionPlugin.penalty_method = 'zero'\n"
    )
    with gradebook(released) as book:
        book.update_or_create_assignment(NAME, duedate="2026-01-01 00:00:00")
    for student, when in (("ada", "2025-12-31 23:59:00 UTC"), ("lea", "2026-01-01 00:01:00 UTC")):
        hand_in(released, student, solved(released))
        (released / "course" / "submitted" / student / NAME / "timestamp.txt").write_text(when)
    grade_assignment(released, NAME, progress=False)
    with gradebook(released) as book:
        taken = {who: book.find_submission(NAME, who).late_submission_penalty for who in ("ada", "lea")}
    assert taken == {"ada": 0, "lea": 4}

"""What the options of `autograder grade` do, with a judge that costs nothing."""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest

from autograder.cli import main
from autograder.course.assignment import Assignment
from autograder.course.nbgrader_settings import GRADEBOOK
from autograder.course.notebook import NotebookError, parse_notebook
from autograder.grading.grade import grade_assignment
from autograder.grading.submission import parse_submission, prepare
from autograder.grading.verdict import Graded, packed, zero
from autograder.grading.worker_pools import NoVerdict
from tests.tiny_course import NAME, gradebook, hand_in, solved

STUDENTS = ["ada", "ben", "cleo"]


@dataclass
class Judge:
    """In place of the pool of processes: full marks, nothing, or no verdict."""

    asked: list[str] = field(default_factory=list)
    zero: set[str] = field(default_factory=set)
    lose: set[str] = field(default_factory=set)

    def __call__(self, tasks: Iterable[tuple[str, bytes]], assignment: Assignment, *_: object) -> Iterator[object]:
        instructors = parse_notebook(assignment.notebook, assignment.name)
        for key, content in tasks:
            self.asked.append(key)
            if key in self.lose:
                yield key, NoVerdict("the machine burned down")
            elif key in self.zero:
                yield key, packed(zero(instructors, "wrong"))
            else:
                notebook = prepare(parse_submission(content), instructors).notebook
                yield key, packed(Graded(nbformat.writes(notebook).encode(), {}))


@pytest.fixture
def judge(released: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    judge = Judge()
    monkeypatch.setattr("autograder.grading.grade.run_local", judge)
    monkeypatch.setattr("autograder.grading.grade.available", lambda: None)
    for student in STUDENTS:
        hand_in(released, student, solved(released, extra=f"\n# {student}"))
    return judge


def command(course: Path, *options: str) -> int:
    return main(["--root", str(course), "grade", *options])


def in_gradebook(course: Path) -> dict[str, float]:
    with gradebook(course) as book:
        return {one.student.id: one.score for one in book.assignment_submissions(NAME)}


def test_a_dry_run_changes_nothing(released: Path, judge: Judge, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(released.rglob("*"))
    assert command(released, NAME, "--dry-run") == 0
    assert capsys.readouterr().out.count("would be graded") == 3
    assert sorted(released.rglob("*")) == before
    grade_assignment(released, NAME, student="ben", progress=False)
    assert command(released, NAME, "--dry-run") == 0
    assert re.findall(r"would be (\w+)", capsys.readouterr().out) == ["graded", "kept", "graded"]
    assert command(released, NAME, "--dry-run", "--regrade") == 0
    assert capsys.readouterr().out.count("would be graded") == 3
    assert judge.asked == ["ben"]


def test_one_student_and_the_rest_later(released: Path, judge: Judge, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(released, NAME, "--student", "ben", "--json") == 0
    [outcome] = json.loads(capsys.readouterr().out)
    assert (outcome["student"], outcome["score"], outcome["max_score"]) == ("ben", 4, 4)
    assert in_gradebook(released) == {"ben": 4}
    assert command(released, "--assignment", NAME, "--json") == 0
    assert [outcome["student"] for outcome in json.loads(capsys.readouterr().out)] == STUDENTS
    assert judge.asked == ["ben", "ada", "cleo"], "nobody is graded twice"
    with pytest.raises(NotebookError, match="by dora"):
        grade_assignment(released, NAME, student="dora")


def test_a_new_submission_is_graded_again(released: Path, judge: Judge) -> None:
    grade_assignment(released, NAME, progress=False)
    judge.zero = {"ada"}
    path = released / "course" / "submitted" / "ada" / NAME / f"{NAME}.ipynb"
    path.write_bytes(solved(released, extra="\n# better"))
    grade_assignment(released, NAME, progress=False)
    assert judge.asked == [*STUDENTS, "ada"]
    assert in_gradebook(released) == {"ada": 0, "ben": 4, "cleo": 4}


def test_regrading_enters_the_new_verdict(released: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    grade_assignment(released, NAME, progress=False)
    judge.zero = {"ben"}
    assert command(released, NAME, "--regrade") == 0
    assert in_gradebook(released) == {"ada": 4, "ben": 0, "cleo": 4}
    judge.zero, judge.asked = {"ada"}, []
    assert command(released, NAME, "--regrade", "--student", "ada") == 0
    assert judge.asked == ["ada"]
    assert in_gradebook(released) == {"ada": 0, "ben": 0, "cleo": 4}


def test_regrading_goes_on_where_it_was_stopped(released: Path, judge: Judge) -> None:
    grade_assignment(released, NAME, progress=False)
    judge.zero, judge.asked = set(STUDENTS), []

    def stopped(*arguments: object) -> Iterator[object]:
        yield next(iter(judge(*arguments)))  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autograder.grading.grade.run_local", stopped)
        assert command(released, NAME, "--regrade") == 130
    assert in_gradebook(released) == {"ada": 0, "ben": 4, "cleo": 4}
    assert command(released, NAME) == 0
    assert judge.asked == STUDENTS
    assert set(in_gradebook(released).values()) == {0}


def test_who_gave_no_verdict_costs_nobody_a_point(
    released: Path, judge: Judge, capsys: pytest.CaptureFixture[str]
) -> None:
    judge.lose = {"ben"}
    assert command(released, NAME) == 1
    assert "the same command grades it: the machine burned down" in capsys.readouterr().out
    assert in_gradebook(released) == {"ada": 4, "cleo": 4}
    judge.lose = set()
    assert command(released, NAME) == 0
    assert in_gradebook(released) == dict.fromkeys(STUDENTS, 4)
    assert judge.asked == [*STUDENTS, "ben"]


def test_the_table_and_the_bar(released: Path, judge: Judge, capsys: pytest.CaptureFixture[str]) -> None:
    judge.zero = {"ben"}
    folder = hand_in(released, "mallory", b"").parent
    (folder / f"{NAME}.ipynb").unlink()
    assert command(released, NAME) == 0
    out, err = capsys.readouterr()
    assert re.search(r"^ada +4 +4 ", out, re.M)
    assert re.search(r"^mallory +0 +4 .* the notebook is missing", out, re.M)
    assert "4 of 4 have a grade: mean 2, median 2, of 4" in out
    assert re.search(r"01_result: 100%.* 4/4 \[\d\d:\d\d<", err), "a bar with the time left"
    assert command(released, NAME, "--json") == 0
    assert not capsys.readouterr().err


def test_an_assignment_must_be_named_once(released: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in ([], [NAME, "--assignment", NAME]):
        with pytest.raises(SystemExit):
            command(released, *options)
    assert "--assignment" in capsys.readouterr().err


def test_two_graders_do_not_meet(released: Path, judge: Judge) -> None:
    verdicts = released / "course" / "verdicts" / NAME
    verdicts.mkdir(parents=True)
    with (verdicts / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(NotebookError, match="being graded already"):
            grade_assignment(released, NAME)
    assert len(grade_assignment(released, NAME, progress=False)) == 3


@pytest.mark.usefixtures("judge")
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("gradebook.db", "should be an address"),
        ("nosql://host/name", "nosql"),
        ("postgresql+psycopg://grader:secret@127.0.0.1:1/none", "cannot be opened"),
    ],
)
def test_a_gradebook_that_does_not_open(
    released: Path, url: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(GRADEBOOK, url)
    assert command(released, NAME) == 1
    said = capsys.readouterr().err
    assert words in said
    assert GRADEBOOK in said
    assert "secret" not in said


def test_a_gradebook_without_the_assignment(
    released: Path, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(GRADEBOOK, f"sqlite:///{tmp_path}/new.db")
    with pytest.raises(NotebookError, match="run `autograder release"):
        grade_assignment(released, NAME)

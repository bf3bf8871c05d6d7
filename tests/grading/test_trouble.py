"""Odd names, damaged files, a full disk, a locked gradebook, a machine that lies: the batch goes on, or says how."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.course.assignment import Assignment
from autograder.course.notebook import NotebookError
from autograder.grading import batch_verdicts, grade, nbgrader_gradebook
from autograder.grading.grade import feedback, grade_assignment
from autograder.grading.names import why_no_student
from autograder.grading.verdict import NotAVerdict, checked
from tests.grading import test_options
from tests.grading.test_options import STUDENTS, Judge, command, in_gradebook
from tests.tiny_course import NAME, hand_in, solved

judge = test_options.judge  # the fixture

ODD = [
    "x" * 242, "y" * 129, ".hidden", "..twice", "two\nlines", "\x1b[2Jcleared", "a\u202eb", "\u200bada", "ada ", "e\u0301ve",
    "<img src=x>", "a*", "[a]", os.fsdecode(b"\xff\xfe"), "é" * 101,
]  # fmt: skip


@pytest.mark.usefixtures("judge")
def test_names_that_no_student_has(released: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ODD:
        assert why_no_student(name)
        hand_in(released, name, solved(released))
    assert command(released, NAME) == 1
    out, err = capsys.readouterr()
    assert in_gradebook(released) == dict.fromkeys(STUDENTS, 4)
    assert out.count("no student can have this name") == len(ODD)
    assert all(line.isprintable() for line in out.splitlines())
    assert not any(line.startswith(("lines", "cleared")) for line in out.splitlines())
    assert out.strip().splitlines()[-1].startswith(f"{len(ODD)} without a grade")
    assert "\x1b[2J" not in out + err
    assert json.dumps([outcome.student for outcome in grade_assignment(released, NAME, dry_run=True)]).isprintable()
    assert grade_assignment(released, NAME, student="ada", progress=False)[0].score == 4
    with pytest.raises(NotebookError, match="nothing submitted"):
        grade_assignment(released, NAME, student="x" * 242)


@pytest.mark.usefixtures("judge")
def test_names_that_students_have(released: Path) -> None:
    names = [
        "z" * 128,
        "a+b",
        "a.b@c.example",
        "Ängström",
        "李" * 60,
        "a b",
        "lock",
        "seed",
        "ada.json",
        "ada.entered",
        "-x",
        "100%",
    ]
    for name in names:
        assert not why_no_student(name)
        hand_in(released, name, solved(released))
    grade_assignment(released, NAME, progress=False)
    assert in_gradebook(released) == dict.fromkeys([*STUDENTS, *names], 4)
    kept = {path.name for path in (released / "course" / "verdicts" / NAME).iterdir()}
    assert kept == {"seed", "lock", *(f"{name}.{kind}" for name in [*STUDENTS, *names] for kind in ("json", "entered"))}
    assert len(feedback(released, NAME)) == len(STUDENTS) + len(names)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"-5", b"7" * 30, b"seven"])
def test_a_damaged_seed_is_drawn_again(
    content: bytes, released: Path, judge: Judge, capsys: pytest.CaptureFixture[str]
) -> None:
    grade_assignment(released, NAME, progress=False)
    seed = released / "course" / "verdicts" / NAME / "seed"
    seed.write_bytes(content)
    assert command(released, NAME, "--dry-run") == 0
    assert seed.read_bytes() == content
    assert command(released, NAME) == 0
    assert "seed was damaged: a new seed is drawn" in capsys.readouterr().err
    assert judge.asked == [*STUDENTS, *STUDENTS]
    assert command(released, NAME) == 0
    assert "damaged" not in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\x00" * 4096, b"\xff"])
def test_damaged_verdicts_and_marks(content: bytes, released: Path, judge: Judge) -> None:
    grade_assignment(released, NAME, progress=False)
    verdicts = released / "course" / "verdicts" / NAME
    (verdicts / "ada.json").write_bytes(content)
    (verdicts / "ben.entered").write_bytes(content)
    (verdicts / ".cleo.json.half").mkdir()
    (released / "course" / "submitted" / "cleo" / NAME / "timestamp.txt").write_bytes(content)
    grade_assignment(released, NAME, progress=False)
    assert judge.asked == [*STUDENTS, "ada"]
    assert in_gradebook(released) == dict.fromkeys(STUDENTS, 4)


def test_a_lock_that_cannot_be_had(released: Path, judge: Judge, capsys: pytest.CaptureFixture[str]) -> None:
    (released / "course" / "verdicts" / NAME / "lock").mkdir(parents=True)
    assert command(released, NAME) == 1
    assert "cannot be locked" in capsys.readouterr().err
    assert judge.asked == []


@pytest.mark.parametrize("where", ["verdict", "autograded", "mark"])
def test_a_full_disk_stops_the_batch(
    where: str, released: Path, judge: Judge, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(original: Callable[..., Any], meant: Callable[[str], bool]) -> Callable[..., Any]:
        def write(*args: Any, **kwargs: Any) -> Any:
            if any(isinstance(arg, Path) and meant(str(arg)) for arg in args):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "the disk")
            return original(*args, **kwargs)

        return write

    with pytest.MonkeyPatch.context() as patch:
        if where == "autograded":
            patch.setattr(Path, "write_text", full(Path.write_text, lambda path: "/ben/" in path))
        else:
            end = {"verdict": "ben.json", "mark": "ben.entered"}[where]
            patch.setattr(
                batch_verdicts,
                "write_atomically",
                full(batch_verdicts.write_atomically, lambda path: path.endswith(end)),
            )
        assert command(released, NAME) == 1
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert "No space left" in last
    assert "the same command goes on" in last
    assert in_gradebook(released).keys() <= {"ada", "ben"}
    asked = list(judge.asked)
    assert command(released, NAME) == 0
    assert judge.asked[len(asked) :] == [*(["ben"] if where == "verdict" else []), "cleo"]
    assert in_gradebook(released) == dict.fromkeys(STUDENTS, 4)
    assert not list((released / "course").rglob(".*.new"))


@pytest.mark.usefixtures("judge")
@pytest.mark.slow
@pytest.mark.parametrize("freed", [True, False])
def test_a_locked_gradebook_is_waited_for(
    freed: bool, released: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nbgrader_gradebook, "LOCKED_SECONDS", 600 if freed else 0)
    other = sqlite3.connect(released / "course" / "gradebook.db", check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    timer = threading.Timer(7, other.rollback)
    if freed:
        timer.start()
    code = command(released, NAME)
    said = capsys.readouterr().err
    if freed:
        timer.join()
        assert code == 0
        assert said.count("waiting until it is free") == 1
        assert in_gradebook(released) == dict.fromkeys(STUDENTS, 4)
    else:
        assert code == 1
        assert "locked" in said.strip().splitlines()[-1]
        assert "the same command goes on" in said.strip().splitlines()[-1]
    other.close()


PAGE = grade._page


def page(root: Path, assignment: str, student: str) -> None:
    """In place of a page that cannot be drawn."""
    if student == "ben":
        raise RuntimeError("two\nlines")
    PAGE(root, assignment, student)


@pytest.mark.usefixtures("judge")
def test_a_page_that_cannot_be_drawn_costs_its_author_only(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grade_assignment(released, NAME, progress=False)
    monkeypatch.setattr(grade, "_page", page)
    with pytest.raises(NotebookError, match="no page could be made of ben: two lines; the others are there"):
        feedback(released, NAME)
    assert {path.parts[-3] for path in (released / "course" / "feedback").rglob("*.html")} == {"ada", "cleo"}


def lie(  # noqa: C901 - one branch a lie
    verdict: dict[str, Any], how: str, other: dict[str, Any], checks: list[str]
) -> Any:
    """Return what a machine that lies may answer in place of a verdict."""
    notebook = json.loads(verdict["notebook"])
    cells = {cell["metadata"].get("nbgrader", {}).get("grade_id"): cell for cell in notebook["cells"]}
    if how in ("no bytes", "no JSON", "a list", "deep"):
        return {"no bytes": verdict, "no JSON": b"{", "a list": b"[]", "deep": b"[" * 10**6}[how]
    if how == "huge":
        verdict["failure"] = "x" * (129 * 2**20)
    elif how == "another's":
        verdict = other
    elif how == "a foreign cell":
        notebook["cells"].append(nbformat.v4.new_markdown_cell("<script>f()</script>"))
    elif how == "an attachment":
        notebook["cells"][0]["attachments"] = {"x.svg": {"image/svg+xml": "<svg onload=f()>"}}
    elif how == "metadata":
        notebook["metadata"]["title"] = "<script>f()</script>"
    elif how == "points of its own":
        cells[checks[0]]["metadata"]["nbgrader"]["points"] = 1000
    elif how == "a cell that is not there":
        verdict["verdicts"]["other"] = "wrong"
    elif how == "full marks that are none":
        cells[checks[0]]["outputs"] = [nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])]
    elif how == "no time":
        verdict["seconds"] = float("nan")
    if verdict is not other:
        verdict["notebook"] = json.dumps(notebook)
    return json.dumps(verdict).encode()


LIES = [
    "no bytes", "no JSON", "a list", "deep", "huge", "another's", "a foreign cell", "an attachment", "metadata",
    "points of its own", "a cell that is not there", "full marks that are none", "no time",
]  # fmt: skip


def test_what_a_machine_that_lies_says_is_refused(released: Path, judge: Judge) -> None:
    assignment = Assignment.read(released / "modules" / NAME / f"{NAME}.ipynb")
    content = {student: solved(released, extra=f"\n# {student}") for student in STUDENTS}
    said = {student: json.loads(result) for student, result in judge(content.items(), assignment)}  # type: ignore[misc]
    cells = json.loads(said["ada"]["notebook"])["cells"]
    checks = [cell["id"] for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade")]

    def ask(how: str) -> bytes:
        return checked(lie(json.loads(json.dumps(said["ada"])), how, said["ben"], checks), content["ada"], assignment)

    assert json.loads(ask("the truth"))["verdicts"] == {}
    for how in LIES:
        with pytest.raises(NotAVerdict):
            ask(how)


def test_what_another_machine_shows_is_cleaned_again(released: Path, judge: Judge) -> None:
    assignment = Assignment.read(released / "modules" / NAME / f"{NAME}.ipynb")
    content = solved(released)
    [(_, result)] = judge([("ada", content)], assignment)  # type: ignore[misc]
    verdict = json.loads(result)
    notebook = json.loads(verdict["notebook"])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            markup = {"text/html": "<p>shown</p><script>f()</script>", "application/javascript": "f()"}
            points = nbformat.v4.new_output("execute_result", data={"text/plain": "1000.0"}, execution_count=1)
            cell["outputs"] = [nbformat.v4.new_output("display_data", data=markup), points]
    verdict["notebook"] = json.dumps(notebook)
    kept = json.loads(checked(json.dumps(verdict).encode(), content, assignment))
    assert "shown" in kept["notebook"]
    for word in ("<script", "javascript", "execute_result"):
        assert word not in kept["notebook"]

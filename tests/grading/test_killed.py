"""`autograder grade` killed at any moment: it goes on, the gradebook is as if nothing had been, and nothing lives on."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from sqlalchemy.orm import Session
from traitlets.config import Config

from autograder import time_limits
from autograder.course.assignment import Assignment
from autograder.course.nbgrader_settings import configure
from autograder.course.notebook import read_notebook
from autograder.grading.grade import grade_assignment
from autograder.grading.nbgrader_gradebook import open_gradebook, record, released_checksums
from autograder.grading.submission_grader import Grader
from autograder.grading.verdict import packed
from tests.tiny_course import NAME, gradebook, hand_in, solved

PR_SET_CHILD_SUBREAPER = 36
KILLS = 20


def a_class(course: Path) -> None:
    """Hand in for eight students, some of them hostile, one late."""
    tampered = nbformat.reads(solved(course).decode(), as_version=4)
    for cell in tampered.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.source = "pass"
    background = "\n\nimport os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)"
    for student, content in {
        "ada": solved(course),
        "ben": solved(course, mean_and_std="def mean_and_std(v):\n    return 0.0, 0.0"),
        "cleo": (course / "course" / "release" / NAME / f"{NAME}.ipynb").read_bytes(),
        "dan": solved(course, extra="\n\nimport os\nos._exit(3)"),
        "eve": nbformat.writes(tampered).encode(),
        "finn": b"no notebook",
        "gil": solved(course, extra=background),
        "hal": solved(course, extra="\n\nfor _ in range(300):\n    print('x' * 1000)"),
    }.items():
        path = hand_in(course, student, content)
        (path.parent / "timestamp.txt").write_text("2030-02-01 00:00:00 UTC")
    with gradebook(course) as book:
        book.update_or_create_assignment(NAME, duedate="2030-01-01 00:00:00 UTC")
    verdicts = course / "course" / "verdicts" / NAME
    verdicts.mkdir(parents=True)
    (verdicts / "seed").write_text("7")


def state(course: Path) -> dict[str, Any]:
    """Return all that grading leaves behind: the gradebook cell by cell, and the autograded files."""
    found: dict[str, Any] = {}
    with gradebook(course) as book:
        for submission in book.assignment_submissions(NAME):
            [notebook] = submission.notebooks
            found[submission.student.id] = {
                "score": submission.score,
                "timestamp": submission.timestamp,
                "late": notebook.late_submission_penalty,
                "grades": sorted((g.name, g.auto_score, g.manual_score, g.needs_manual_grade) for g in notebook.grades),
                "comments": sorted((c.name, c.auto_comment, c.manual_comment) for c in notebook.comments),
            }
    autograded = course / "course" / "autograded"
    files = [path for path in sorted(autograded.rglob("*")) if path.is_file()]
    found["files"] = {str(path.relative_to(autograded)): path.read_bytes() for path in files}
    verdicts = course / "course" / "verdicts" / NAME
    found["verdicts"] = sorted(path.name for path in verdicts.iterdir())
    return found


@pytest.fixture
def adopting() -> Iterator[None]:
    """Let orphans become children of this process, so that they can be seen."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def orphans(known: set[int]) -> list[psutil.Process]:
    """Return what lives below this process and is not known."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE and process.pid not in known:
                found.append(process)
            elif process.pid not in known and process.ppid() == os.getpid():
                os.waitpid(process.pid, os.WNOHANG)
    return found


def wait_for_none(known: set[int]) -> None:
    deadline = time.monotonic() + time_limits.wall(30)
    while left := orphans(known):
        assert time.monotonic() < deadline, f"these outlived a killed grader: {left}"
        time.sleep(0.02)


@pytest.mark.audit
@pytest.mark.needs("sandbox")
@pytest.mark.slow
def test_kills_at_any_moment(
    released: Path, tmp_path_factory: pytest.TempPathFactory, adopting: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_class(released)
    copies = tmp_path_factory.mktemp("copies")

    def fresh(name: str) -> Path:
        return Path(shutil.copytree(released, copies / name))

    def work(course: Path) -> None:
        os.setsid()
        grade_assignment(course, NAME, progress=False)

    with Grader(Assignment.read(released / "modules" / NAME / f"{NAME}.ipynb")) as grader:
        # the command, without the seconds that its imports and its zygotes take to start

        def run(tasks: Iterable[tuple[str, bytes]], *_: object) -> Iterator[tuple[str, bytes]]:
            for key, content in tasks:
                yield key, packed(grader.grade(content))

        def started(course: Path) -> Any:
            process = multiprocessing.get_context("fork").Process(target=work, args=(course,))
            process.start()
            return process

        monkeypatch.setattr("autograder.grading.grade.run_local", run)
        known = {process.pid for process in psutil.Process().children(recursive=True)}
        undisturbed, begun = fresh("undisturbed"), time.monotonic()
        started(undisturbed).join()
        seconds, expected = time.monotonic() - begun, state(undisturbed)
        assert len(expected) == 8 + 2
        assert expected["ada"]["timestamp"], "late"
        assert [name for name in expected["files"] if "/." in f"/{name}"] == []

        course, kills, whole, interrupted = fresh("0"), 0, 0, False
        while kills < KILLS or interrupted:
            process = started(course)
            process.join(random.uniform(0, seconds) if kills < KILLS else None)
            if process.exitcode is None:
                with suppress(ProcessLookupError):  # not yet a group of its own
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()
                process.join()
                kills, interrupted = kills + 1, True
            else:
                assert process.exitcode == 0
                assert state(course) == expected
                whole, interrupted = whole + 1, False
                course = fresh(str(whole))
            wait_for_none(known)
        assert whole > 1


@pytest.mark.needs("sandbox")
@pytest.mark.slow
def test_the_command_ends_with_all_it_started(released: Path, adopting: None) -> None:
    """Killed alone, not its group, it leaves no process behind either; nor does its group, killed while it starts."""
    a_class(released)
    known = {process.pid for process in psutil.Process().children(recursive=True)}
    command = [sys.executable, "-m", "autograder", "--root", str(released), "grade", NAME]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, start_new_session=True, **quiet) as process:
        while len(psutil.Process(process.pid).children(recursive=True)) < 3:
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    wait_for_none(known)
    with subprocess.Popen(command, **quiet) as process:
        while not list((released / "course" / "verdicts" / NAME).glob("[a-e]*.json")):
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    wait_for_none(known)
    subprocess.run(command, check=True, capture_output=True)
    assert len(state(released)) == 8 + 2


class Died(BaseException):
    """In place of a kill."""


@pytest.mark.parametrize("new", [True, False])
def test_every_step_of_a_record(new: bool, released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the writing of one grade stops, writing it again leaves what one writing leaves."""
    hand_in(released, "ada", solved(released))
    config = configure(Config(), released)
    checksums = released_checksums(released / "course" / "release" / NAME / f"{NAME}.ipynb")
    notebook = read_notebook(released / "course" / "submitted" / "ada" / NAME / f"{NAME}.ipynb")
    (released / "course" / "verdicts" / NAME).mkdir(parents=True)
    steps = 0

    def write() -> None:
        with open_gradebook(config, NAME) as book:
            record(book, "ada", NAME, notebook, checksums, config)

    def forget() -> None:
        with open_gradebook(config, NAME) as book:
            book.remove_student("ada")
        shutil.rmtree(released / "course" / "autograded")

    def dying_at(step: int) -> None:
        nonlocal steps
        steps = 0

        def mortal(function: Any) -> Any:
            def called(*args: Any, **kwargs: Any) -> Any:
                nonlocal steps
                steps += 1
                if steps == step:
                    raise Died
                return function(*args, **kwargs)

            return called

        with monkeypatch.context() as patch:
            patch.setattr("sqlalchemy.orm.Session.commit", mortal(Session.commit))
            for place in ("os.replace", "os.unlink", "os.mkdir", "os.rmdir"):
                patch.setattr(place, mortal(getattr(os, place.partition(".")[2])))
            write()

    write()
    expected = state(released)
    dying_at(-1)
    for step in range(1, steps + 1):
        if new:
            forget()
        with suppress(Died):
            dying_at(step)
        write()
        assert state(released) == expected, f"step {step} of {steps}"
    assert steps >= 5

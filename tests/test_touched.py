"""`make quick` chooses the tests of what a change touches: the nearest first, and no more than fit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import touched


def test_the_tests_of_a_file_come_before_those_of_its_users() -> None:
    tests = touched.touched(["autograder/grading/similar/similarity.py"])
    assert tests[0] == "tests/grading/test_similarity.py"
    assert "tests/tinybench/test_result.py" not in tests
    far = touched.touched(["tinybench/result.py"])
    assert far.index("tests/tinybench/test_result.py") < far.index("tests/leaderboard/test_browser.py")


@pytest.mark.parametrize(
    "file",
    ["modules/04_accuracy/04_accuracy.ipynb", "autograder/checks/m04_accuracy.py", "tests/mutants/m04_accuracy.py"],
)
def test_a_module_is_played_and_graded(file: str) -> None:
    first = touched.touched([file])[: len(touched.EACH_MODULE)]
    assert first == [f"{test}[04_accuracy]" for test in touched.EACH_MODULE]
    for test in first:  # a name that nobody has would run nothing
        path, _, name = test.partition("[")[0].partition("::")
        assert f"def {name}(" in (touched.ROOT / path).read_text(encoding="utf-8")


def test_pages_are_read_by_tests() -> None:
    assert "tests/documents/test_commands.py" in touched.touched(["README.md"])
    for folder, tests in touched.READ_BY.items():
        assert (touched.ROOT / folder).exists() or folder == "docs/"
        assert list((touched.ROOT / tests).glob("test_*.py"))


def test_no_more_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        "tests/a.py::one": (30.0, 1.0),
        "tests/a.py::two": (40.0, 1.0),
        "tests/b.py::one": (200.0, 1.0),
        "tests/c.py::one": (5.0, 1.0),
    }
    monkeypatch.setattr(touched, "took", lambda: known)
    assert touched.fitting(["tests/a.py", "tests/b.py", "tests/c.py", "tests/new.py"], 60) == [
        "tests/a.py",
        "tests/c.py",
        "tests/new.py",
    ]
    assert touched.fitting(["tests/b.py"], 60) == ["tests/b.py"], "something always runs"


def test_a_change_is_what_differs_from_the_last_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=tmp_path, check=True)

    git("init", "-q")
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
        git("add", "-A")
        git("commit", "-qm", name)
    monkeypatch.setattr(touched, "ROOT", tmp_path)
    assert touched.changed() == ["two"]
    (tmp_path / "one").write_text("changed")
    (tmp_path / "three").write_text("new")
    assert touched.changed() == ["one", "three"]

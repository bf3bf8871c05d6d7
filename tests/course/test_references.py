"""Whose a module is: built by the student, a reference that was released or borrowed, or not there yet."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbformat
import pytest

from autograder.cli import main
from autograder.course.export import export_course
from autograder.course.notebook import read_notebook
from autograder.course.release import NotReleased, release_all
from autograder.course.student_package import lay_out_package, status
from autograder.files import write_atomically
from autograder.grading import reference_check
from tests.tiny_course import (
    CHECK,
    HALVE,
    NAME,
    ROOT,
    SETUP,
    Write,
    code,
    gradebook,
    new_course,
    small_cells,
    write_module,
)

RELEASED = "reference, released by your instructor"


@pytest.fixture(scope="module")
def two_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of two modules, exported; not to be changed."""
    course = new_course(tmp_path_factory.mktemp("two"))
    write_module(course)
    cells = [HALVE.replace("halve", "quarter").replace("x / 2", "x / 4"), CHECK.replace("halve", "abs")]
    write_module(
        course,
        code(SETUP, "setup", locked=True),
        code('"""Quarters."""', "doc", "export", locked=True),
        code(cells[0], "quarter", "export", solution=True),
        code('assert quarter(4) == 1\n### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS', "check", grade=True, locked=True, points=1),
        name="02_last",
    )  # fmt: skip
    for name in ("course", "support"):
        source = ROOT / "tinybench" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, course / "tinybench" / name)
    for path, text in export_course(course).items():
        write_atomically(path, text)
    return course


@pytest.fixture
def two(two_once: Path, tmp_path: Path) -> Path:
    """A course of two modules, exported."""
    return Path(shutil.copytree(two_once, tmp_path, dirs_exist_ok=True))


def release(course: Path, *words: str) -> dict[str, str]:
    assert main(["--root", str(course), "release", "--no-verify", *words]) == 0
    return dict(status(course / "student"))


def test_named_references_are_released_and_stay(two: Path) -> None:
    assert release(two) == {"01_tiny": "not built yet", "02_last": "not built yet"}
    assert not (two / "student" / "tinybench" / "tiny.py").exists()
    assert release(two, "--with", "1") == {"01_tiny": RELEASED, "02_last": "not built yet"}
    assert release(two)["01_tiny"] == RELEASED, "what was given is not taken away by the way"
    assert release(two, "--with", "last") == {"01_tiny": "not built yet", "02_last": RELEASED}
    assert set(release(two, "--with", "01-02").values()) == {RELEASED}
    assert set(release(two, "--with", "none").values()) == {"not built yet"}


@pytest.mark.parametrize("named", ["03", "01-", "x", ""])
def test_unknown_names_are_refused(two: Path, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--root", str(two), "release", "--no-verify", "--with", named]) == 1
    assert f"no module is called '{named}'; there are 01_tiny, 02_last" in capsys.readouterr().err


@pytest.mark.parametrize(("days", "whose"), [(-1, RELEASED), (1, "not built yet")])
def test_a_passed_due_date_releases_the_reference(two: Path, days: int, whose: str) -> None:
    release(two)
    due = datetime.now(UTC).replace(tzinfo=None) + timedelta(days=days)
    with gradebook(two) as book:
        book.update_or_create_assignment("01_tiny", duedate=due)
    assert release(two) == {"01_tiny": whose, "02_last": "not built yet"}


def solve(course: Path) -> None:
    path = course / "student" / "01_tiny" / "01_tiny.ipynb"
    notebook = read_notebook(path)
    notebook.cells[2].source = 'def halve(x: float) -> float:\n    """Return half of x."""\n    return 0.5 * x'
    nbformat.write(notebook, path)


def test_borrowed_and_built(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release(two)
    student, package = str(two / "student"), two / "student" / "tinybench"
    assert main(["--root", student, "borrow", "01"]) == 0
    assert "01_tiny: reference, borrowed on " in capsys.readouterr().out
    assert release(two, "--with", "none")["01_tiny"].startswith("reference, borrowed on "), (
        "it was the student's choice"
    )
    solve(two)
    assert main(["--root", student, "build", "01_tiny"]) == 0
    assert dict(status(Path(student)))["01_tiny"] == "yours"
    own = (package / "tiny.py").read_text()
    capsys.readouterr()
    assert main(["--root", student, "borrow", "01_tiny"]) == 1
    assert "01_tiny: already yours; --force" in capsys.readouterr().err
    assert (package / "tiny.py").read_text() == own
    assert main(["--root", student, "borrow", "01_tiny", "--force"]) == 0
    assert "yours is in tiny.py.backup" in capsys.readouterr().out
    assert (package / "tiny.py.backup").read_text() == own
    assert release(two, "--with", "all") == {"01_tiny": RELEASED, "02_last": RELEASED}
    assert (package / "tiny.py.backup").read_text() == own


def test_the_students_own_comes_before_a_reference(two: Path) -> None:
    release(two, "--with", "01")
    solve(two)
    assert main(["--root", str(two), "build", "01_tiny"]) == 0
    question = "import tinybench.tiny, inspect; print(inspect.getsource(tinybench.tiny.halve))"
    command = [sys.executable, "-c", question]
    assert "0.5 * x" in subprocess.run(command, cwd=two / "student", capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("edited", [False, True])
def test_every_build_says_whose_the_earlier_modules_are(
    two: Path, edited: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also where the student has edited their file by hand, and with the reference given beside it."""
    release(two, "--with", "01")
    solve(two)
    last = two / "student" / "02_last" / "02_last.ipynb"
    notebook = read_notebook(last)
    notebook.cells[0].source += '\nfrom tinybench.course import announce\nannounce("tiny")'
    notebook.cells[2].source = notebook.cells[2].source.replace(
        'raise NotImplementedError("write quarter")', "return x / 4"
    )
    nbformat.write(notebook, last)
    assert main(["--root", str(two), "build", "02_last"]) == 0
    assert "tinybench.tiny: the reference, released by your instructor (references/tiny.py)" in capfd.readouterr().out
    assert main(["--root", str(two), "build", "01_tiny"]) == 0
    own = two / "student" / "tinybench" / "tiny.py"
    if edited:
        own.write_text(own.read_text().partition("\n")[2])
    before = own.read_text()
    assert release(two)["01_tiny"] == "yours"
    assert own.read_text() == before
    assert main(["--root", str(two), "build", "02_last"]) == 0
    assert "tinybench.tiny: your own code (tinybench/tiny.py)" in capfd.readouterr().out


def test_what_an_earlier_release_gave_away_is_removed(two: Path) -> None:
    package = two / "student" / "tinybench"
    shutil.copytree(two / "tinybench", package)
    release(two)
    assert not (package / "tiny.py").exists()
    assert not (package / "last.py").exists()


MISSING = """
import importlib.util, sys
from tinybench.course import announce
assert importlib.util.find_spec("tinybench.last").origin is None
assert importlib.util.find_spec("tinybench.nothing") is None
announce("tiny", "last")
try:
    import tinybench.last
except ModuleNotFoundError as error:
    assert error.name == "tinybench.last"
    print(error)
"""


def test_a_missing_module_says_how_to_go_on(two: Path) -> None:
    release(two, "--with", "01")
    command = [sys.executable, "-c", MISSING]
    done = subprocess.run(command, cwd=two / "student", capture_output=True, text=True, check=True)
    given, calmly, error = done.stdout.splitlines()
    assert given == "tinybench.tiny: the reference, released by your instructor (references/tiny.py)"
    assert calmly == error
    assert error.startswith("you build tinybench.last in module 02_last, and it is not built yet: finish")
    assert error.endswith("autograder borrow 02_last")


def test_the_library_has_no_such_finder() -> None:
    question = "import tinybench.result, sys; print([type(finder).__name__ for finder in sys.meta_path])"
    done = subprocess.run([sys.executable, "-c", question], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Unwritten" not in done.stdout


def test_the_package_can_be_imported_without_any_module(tmp_path: Path) -> None:
    lay_out_package(ROOT, tmp_path / "tinybench")
    imports = "import tinybench, tinybench.course, tinybench.support.basics.table"
    question = f"{imports}; print(tinybench.__file__); from tinybench import compare"
    done = subprocess.run([sys.executable, "-c", question], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith(str(tmp_path))
    assert "ModuleNotFoundError: you build tinybench.comparison in module 07_comparison" in done.stderr


def test_a_notebook_that_needs_a_later_one_is_not_released(two: Path) -> None:
    path = two / "modules" / "01_tiny" / "01_tiny.ipynb"
    notebook = read_notebook(path)
    notebook.cells.insert(1, code("import tinybench.last", "early", locked=True))
    nbformat.write(notebook, path)
    with pytest.raises(NotReleased, match=r"early.*ModuleNotFoundError: you build tinybench\.last in"):
        release_all(two, ["01_tiny"], report=lambda line: None)


@pytest.fixture(params=["sandbox", "as you"])
def real(request: pytest.FixtureRequest, course: Path, module: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two functions of module 01, and a machine with or without a sandbox."""
    if request.param == "sandbox":
        from tests.needs import require

        require("sandbox")
    else:
        monkeypatch.setattr(reference_check, "unavailable", lambda: "there is none")
    return module(*small_cells(), name=NAME)


def test_the_reference_gets_full_marks_here(real: Path) -> None:
    reference_check.insist_on_full_marks(real)


def test_what_cannot_be_graded_here_is_not_released(real: Path, course: Path) -> None:
    notebook = read_notebook(real)
    for cell in notebook.cells:
        if cell.id == "mean_and_std":
            assert cell.source.count("(n - 1)") == 1
            cell.source = cell.source.replace("(n - 1)", "n")
    nbformat.write(notebook, real)
    with pytest.raises(NotReleased, match=r"check_moments.*the reference itself does not pass this check here"):
        release_all(course, full_marks=reference_check.insist_on_full_marks, report=lambda line: None)
    assert not (course / "student" / NAME).exists()

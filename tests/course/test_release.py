"""Release and build: untouched is worth nothing, the student's work is never lost, the package grows."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from autograder.cli import main
from autograder.course.export import export_course
from autograder.course.lint import lint_notebook
from autograder.course.module_build import build_module
from autograder.course.notebook import NotebookError, read_notebook
from autograder.course.release import NotReleased, release_all, stub_solutions
from autograder.course.student_package import status
from autograder.files import write_atomically
from tests.tiny_course import CHECK, HALVE, ROOT, SETUP, Write, code
from tinybench.course.pieces import is_own


def export(course: Path) -> None:
    for path, text in export_course(course).items():
        write_atomically(path, text)


def test_stub_names_what_to_write() -> None:
    method = "@add_to_class(precise_timer)\ndef __exit__(self):\n    ### BEGIN SOLUTION\n    pass\n    ### END SOLUTION"
    assert 'raise NotImplementedError("write precise_timer.__exit__")' in stub_solutions(method, "x")
    nested = "class A:\n    x = 1\n\n    def f(self):\n        y = 2\n        ### BEGIN SOLUTION\n        return y\n        ### END SOLUTION"
    assert stub_solutions(nested, "x").endswith('        y = 2\n        raise NotImplementedError("write A.f")')


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("def f():\n    return 1", "no ### BEGIN SOLUTION"),
        ("def f():\n    ### BEGIN SOLUTION\n    return 1", "never closed"),
        ("### BEGIN SOLUTION\nx = 1\n### END SOLUTION", "inside a function"),
        ("def f():\n    ### BEGIN SOLUTION\n    ### BEGIN SOLUTION\n    pass\n    ### END SOLUTION", "inside another"),
        ("def f(:\n    ### BEGIN SOLUTION\n    pass\n    ### END SOLUTION", "line 1"),
    ],
)
def test_bad_regions_are_refused(source: str, word: str) -> None:
    with pytest.raises(NotebookError, match=word):
        stub_solutions(source, "cell")


def test_release_holds_no_solution_and_scores_nothing(course: Path, module: Write) -> None:
    module()
    export(course)
    assert release_all(course, report=lambda line: None) == ["01_tiny"]
    text = (course / "student" / "01_tiny" / "01_tiny.ipynb").read_text()
    assert "x / 2" not in text
    assert "half of 3" not in text
    assert "write halve" in text


def test_points_for_nothing_are_refused(course: Path, module: Write) -> None:
    free = (
        CHECK.replace("assert halve(4)", "assert 4")
        .replace('assert halve(3) == 1.5, "half of 3 is 1.5"', "pass")
        .replace("4 == 2", "4 == 4")
    )
    module(
        code(SETUP, "setup", locked=True),
        code(HALVE, "halve", "export", solution=True),
        code(free, "gift", grade=True, locked=True, points=3),
    )
    export(course)
    with pytest.raises(NotebookError, match=r"gift.*earns 3 of 3"):
        release_all(course, report=lambda line: None)


def test_errors_other_than_stubs_are_refused(course: Path, module: Write) -> None:
    module(
        code(SETUP, "setup", locked=True),
        code(HALVE, "halve", "export", solution=True),
        code("result = halve(1)", "use"),
        code("print(result)", "consequence"),
        code("print(results)", "slip"),
        code(CHECK, "check", grade=True, locked=True, points=1),
    )
    export(course)
    with pytest.raises(NotebookError, match=r"slip.*NameError"):
        release_all(course, report=lambda line: None)


def test_a_figure_may_miss_what_a_stub_did_not_make(course: Path, module: Write) -> None:
    module(
        code(SETUP, "setup", locked=True),
        code(HALVE, "halve", "export", solution=True),
        code("result = halve(1)", "use"),
        code("# Figure: the result\nprint(result)", "figure"),
        code(CHECK, "check", grade=True, locked=True, points=1),
    )
    export(course)
    release_all(course, report=lambda line: None)


def test_what_takes_too_long_stops_no_other_notebook(
    course: Path, module: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    slow, _ = module(), module(name="02_last")
    notebook = read_notebook(slow)
    notebook.cells.append(nbformat.v4.new_code_cell("while True:\n    pass", id="endless"))
    nbformat.write(notebook, slow)
    (course / "tinybench" / "tiny.py").write_text("")
    report: list[str] = []
    with pytest.raises(NotReleased, match=r"1 of 2(.|\n)*endless.*longer than(.|\n)*autograder release 01_tiny$"):
        release_all(course, cell_seconds=1, report=report.append)
    assert [line.split(":")[1] for line in report[:2]] == [" NOT released", " released, 0 points untouched"]
    assert (course / "student" / "tinybench" / "tiny.py").is_file()
    assert (course / "student" / "02_last" / "02_last.ipynb").is_file()
    for unproven in ("student", "course/release"):
        assert not (course / unproven / "01_tiny").exists()
    assert main(["--root", str(course), "release", "--no-verify", "02_last"]) == 0
    slow.write_text("{")
    assert main(["--root", str(course), "release", "--no-verify"]) == 1
    assert "1 of 2 notebooks were not released" in capsys.readouterr().err


def test_the_students_work_stays(course: Path, module: Write) -> None:
    module()
    export(course)
    release_all(course, verify=False, report=lambda line: None)
    theirs = course / "student" / "01_tiny" / "01_tiny.ipynb"
    notebook = read_notebook(theirs)
    notebook.cells[2].source = "def halve(x):\n    return 0.5 * x"
    nbformat.write(notebook, theirs)
    lines: list[str] = []
    release_all(course, verify=False, report=lines.append)
    assert "0.5 * x" in theirs.read_text()
    assert "stays" in lines[0]
    release_all(course, verify=False, force=True, report=lines.append)
    assert "0.5 * x" not in theirs.read_text()
    assert "0.5 * x" in (theirs.parent / "01_tiny.backup.ipynb").read_text()


def test_the_package_grows_from_the_students_own_code(
    course: Path, module: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module()
    export(course)
    release_all(course, verify=False, report=lambda line: None)
    theirs = course / "student" / "01_tiny" / "01_tiny.ipynb"
    package = course / "student" / "tinybench"
    monkeypatch.chdir(theirs.parent)
    with pytest.raises(NotebookError, match="check_halve: NotImplementedError: write halve"):
        build_module(theirs, package)
    assert status(course / "student") == [("01_tiny", "not built yet")]
    notebook = read_notebook(theirs)
    notebook.cells[2].source = 'def halve(x: float) -> float:\n    """Return half of x."""\n    return 0.5 * x'
    nbformat.write(notebook, theirs)
    assert main(["--root", str(course), "build", "01_tiny"]) == 0
    assert "your own code" in capsys.readouterr().out
    assert "0.5 * x" in (package / "tiny.py").read_text()
    assert is_own(package / "tiny.py")
    assert status(course / "student") == [("01_tiny", "yours")]
    release_all(course, verify=False, report=lambda line: None)
    assert "0.5 * x" in (package / "tiny.py").read_text(), "a new release must not undo the student's module"


def test_build_outside_a_student_folder_is_harmless(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT / "modules" / "01_result")
    assert main(["build", "01_result"]) == 0
    assert "nothing to build" in capsys.readouterr().out


def test_lint_finds_and_mends(module: Write) -> None:
    path = module()
    said = [line.partition(", cell ")[2] for line in lint_notebook(path, fix=True)]
    assert said == ["'check_halve': a graded cell begins with a line such as `# Check: what it looks at`"]
    notebook = read_notebook(path)
    notebook.cells[3].source = f'# Check: half of four\npassed("check_halve", halve(5))\n{notebook.cells[3].source}'
    nbformat.write(notebook, path)
    assert lint_notebook(path, fix=True) == []
    notebook = read_notebook(path)
    assert notebook.cells[3].metadata["jupyter"] == {"source_hidden": True}
    notebook.cells[0].outputs = [nbformat.v4.new_output("stream", text="left over")]
    notebook.cells[2].id = "other"
    notebook.metadata["widgets"] = {}
    nbformat.write(notebook, path)
    assert len(lint_notebook(path)) == 3
    assert lint_notebook(path, fix=True) == []
    notebook = read_notebook(path)
    notebook.cells[2].source = notebook.cells[2].source.replace("x.", "x." + "\n\n    Very long." * 13)
    notebook.cells[3].source = "# Check: nothing\nassert True"
    notebook.cells.append(nbformat.v4.new_code_cell("x = 1\n" * 13, id="long"))
    nbformat.write(notebook, path)
    said = "\n".join(lint_notebook(path))
    for words in (
        "hidden region",
        'ends, but for its hidden region, in passed("check_halve"',
        "docstring of halve has 27",
        "with more than 12 lines",
    ):
        assert words in said


def test_unknown_assignment_is_named(course: Path, module: Write) -> None:
    module()
    with pytest.raises(ValueError, match=r"09_none.*there are 01_tiny"):
        release_all(course, ["09_none"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("relase", "'relase'"),
        ("release --frce", "'--frce'"),
        ("package", "'--student'"),
        ("feedback", "name assignments"),
        ("grade 01_result --workers two", "'two' is not a valid integer"),
        ("similarity 01_result --json --csv", "not both"),
    ],
)
def test_wrong_words_are_named(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    assert said in capsys.readouterr().err


def test_commands_outside_a_course_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export"]) == 1
    assert "not inside a TinyBench course" in capsys.readouterr().err

"""The exporter: what comes out reads as if written by hand, and what cannot is refused by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from nbformat import NotebookNode

from autograder.cli import COMMANDS, main
from autograder.course.export import EXPORTED, changed_files, course_modules, export_course, export_notebook
from autograder.course.module_build import build_module
from autograder.course.notebook import NotebookError
from tests.tiny_course import HALVE, ROOT, Write, code, tiny_cells
from tinybench.course.pieces import is_own


def exported(notebook: Path) -> str:
    """Return the module of a notebook that exports no other."""
    (source,) = export_notebook(notebook).values()
    return source


def test_committed_package_equals_its_export() -> None:
    files = export_course(ROOT)
    assert not changed_files(files)
    written = {p for p in (ROOT / "tinybench").glob("*.py") if p.read_text(encoding="utf-8").startswith(EXPORTED)}
    assert written <= files.keys(), "exported once, by no notebook now: delete it"


def test_markers_go_and_the_rest_stays(module: Write) -> None:
    source = exported(module())
    assert "SOLUTION" not in source
    assert "def halve(x: float) -> float:" in source
    assert "return x / 2" in source
    assert source.startswith('# Written by "autograder export" from modules/01_tiny/01_tiny.ipynb')


def test_future_is_first_and_imports_are_merged_and_sorted(module: Write) -> None:
    numbers = "import math\nfrom __future__ import annotations\n\n\ndef f() -> float:\n    return math.pi"
    platform = "def g() -> str:\n    return sys.platform"
    sources = ('"""Doc."""\n\nimport sys', numbers, platform)
    source = exported(module(*(code(text, id, "export") for id, text in zip("abc", sources, strict=True))))
    lines = source.splitlines()
    assert lines.index('"""Doc."""') < lines.index("from __future__ import annotations")
    assert lines.index("from __future__ import annotations") < lines.index("import math") < lines.index("import sys")


def test_methods_move_into_their_class(module: Write) -> None:
    box = 'class Box:\n    """A box."""\n\n    size = 1'
    twice = '@add_to_class(Box)\n@property\ndef twice(self):\n    """Return\n\n    twice."""\n    return 2 * self.size'
    source = exported(module(code(box, "a", "export"), code(twice, "b", "export")))
    space: dict[str, object] = {}
    exec(source, space)
    assert space["Box"]().twice == 2  # type: ignore[operator]
    assert "add_to_class" not in source


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def f(:\n    pass", ["line 1", "syntax"]),
        ("x = 1\n%timeit x", ["magic", "%timeit"]),
        ("print('hello')", ["would run on import", "print"]),
        ("for i in range(3):\n    pass", ["would run on import"]),
        ("DATA = open('x').read()", ["would run on import"]),
        ("def f():\n    return missing", ["missing", "import or define"]),
        ("import os", ["os", "remove it"]),
        ("@add_to_class(Nowhere)\ndef f(self):\n    pass", ["Nowhere"]),
    ],
)
def test_refusals_name_notebook_and_cell(module: Write, source: str, words: list[str]) -> None:
    path = module(code("A = 1", "fine", "export"), code(source, "culprit", "export"))
    with pytest.raises(NotebookError) as refusal:
        export_notebook(path)
    for word in ["01_tiny.ipynb", "'culprit'", *words]:
        assert word.lower() in str(refusal.value).lower()


def test_two_notebooks_with_one_target_are_refused(module: Write) -> None:
    notebooks = [module(name="01_tiny"), module(name="02_tiny")]
    with pytest.raises(NotebookError, match=r"02_tiny.*tinybench/tiny\.py.*01_tiny"):
        course_modules(notebooks)


STUDY = '"""Studies."""\n\nimport math\n\n\ndef rounded(x: float) -> int:\n    return math.ceil(halve(x))'


def test_given_code_goes_to_its_own_file_and_finds_the_rest_of_the_notebook(module: Write) -> None:
    sources = export_notebook(module(*tiny_cells(), code(STUDY, "study", "export:study", locked=True)))
    assert list(sources) == ["tiny", "study"]
    assert "math" not in sources["tiny"]
    assert "rounded" not in sources["tiny"]
    imported = STUDY.replace("import math\n", "import math\n\nfrom tinybench.tiny import halve\n")
    assert sources["study"].splitlines()[2:] == imported.splitlines()


def test_what_only_an_annotation_names_is_not_imported_at_run_time(module: Write) -> None:
    future = code("from __future__ import annotations", "future", "export")
    box = code("class Box:\n    def text(self) -> str:\n        return shown(self)", "box", "export")
    show = code("def shown(box: Box) -> str:\n    return str(box)", "show", "export:showing", locked=True)
    sources = export_notebook(module(future, box, show))
    assert "from tinybench.showing import shown" in sources["tiny"]
    assert "if TYPE_CHECKING:\n    from tinybench.tiny import Box\n" in sources["showing"]


@pytest.mark.parametrize(
    ("source", "tags", "words"),
    [
        ("def more():\n    return halve(1)\n", ["export:more", "export"], ["two export tags"]),
        ("def more():\n    return 1", ["export:two words"], ["two words", "cannot be a module"]),
        ("def more():\n    return missing", ["export:more"], ["missing", "import or define"]),
        ("def more():\n    return 1", ["public"], ["public, but not export"]),
        ("def _more():\n    return 1", ["export", "public"], ["does not define public"]),
        ("def more():\n    return 1", ["export", "public:less"], ["does not define less"]),
        ("@add_to_class(Elsewhere)\ndef f(self):\n    pass", ["export:more"], ["Elsewhere", "same file"]),
    ],
)
def test_tags_that_do_not_fit_are_refused(module: Write, source: str, tags: list[str], words: list[str]) -> None:
    path = module(*tiny_cells(), code(source, "culprit", *tags, locked=True))
    with pytest.raises(NotebookError) as refusal:
        export_notebook(path)
    for word in ["01_tiny.ipynb", "'culprit'", *words]:
        assert word in str(refusal.value)


def test_what_students_write_may_go_to_a_second_module(module: Write) -> None:
    written = export_notebook(module(code(HALVE, "halve", "export:more", solution=True)))
    assert list(written) == ["more"]
    assert "def halve" in written["more"]


def test_modules_that_import_each_other_are_refused(module: Write) -> None:
    down = code("def down():\n    return up()", "down", "export")
    up = code("def up():\n    return down()", "up", "export:upper", locked=True)
    with pytest.raises(NotebookError, match=r"tiny and upper import each other.*import up.*import down"):
        export_notebook(module(down, up))


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (code("def f():\n    return 1", "f", "export:tiny", locked=True), r"02_more.*tinybench/tiny\.py.*01_tiny"),
        (code("def f():\n    return 1", "f", "export:shell", locked=True), r"shell\.py, which is written by hand"),
        (code("def tiny():\n    return 1", "f", "export"), "tiny is the name of a module"),
        (code("def halve():\n    return 1", "f", "export", "public"), "halve is in tiny and in more"),
    ],
)
def test_what_two_modules_would_share_is_refused(module: Write, cell: NotebookNode, words: str) -> None:
    cells = tiny_cells()
    cells[2].metadata["tags"].append("public")
    notebooks = [module(*cells), module(cell, name="02_more")]
    with pytest.raises(NotebookError, match=words):
        course_modules(notebooks, by_hand=["shell"])


def test_a_student_may_do_without_an_import_that_is_given(module: Write) -> None:
    notebook = module(code("import math", "unused", "export"), *tiny_cells())
    with pytest.raises(NotebookError, match="`math` is imported but not used"):
        export_notebook(notebook)
    assert "import math" not in "".join(export_notebook(notebook, "# theirs\n").values())


def test_the_students_package_gets_every_file_of_a_notebook(module: Write, tmp_path: Path) -> None:
    package = tmp_path / "student" / "tinybench"
    notebook = module(*tiny_cells(), code(STUDY, "study", "export:study", locked=True))
    assert "tinybench.tiny is now your own code" in build_module(notebook, package)
    assert {path.name for path in package.glob("*.py") if is_own(path)} == {"tiny.py", "study.py"}


def test_public_names_are_the_face_of_the_package(course: Path, module: Write) -> None:
    both = code("def f():\n    return 1\n\n\ndef g():\n    return f()", "both", "export", "public:g")
    cells = [cell for cell in tiny_cells() if cell.id != "check_halve"]
    cells[2].metadata["tags"].append("public")
    module(*cells, both)
    space: dict[str, object] = {}
    exec(export_course(course)[course / "tinybench" / "__init__.py"], space)
    assert space["__all__"] == ["g", "halve"]


def test_a_missing_and_a_damaged_notebook_are_named(course: Path, module: Write) -> None:
    path = module()
    path.write_text('{"cells": [')
    with pytest.raises(NotebookError, match=r"01_tiny\.ipynb: not a notebook"):
        export_course(course)
    path.unlink()
    with pytest.raises(NotebookError, match=r"01_tiny\.ipynb: missing"):
        export_course(course)


def test_a_failed_export_writes_nothing(course: Path, module: Write, capsys: pytest.CaptureFixture[str]) -> None:
    module(name="01_tiny")
    module(code("def broken(:", "bad", "export"), name="02_bad")
    assert main(["--root", str(course), "export"]) == 1
    assert "02_bad" in capsys.readouterr().err
    assert not (course / "tinybench" / "tiny.py").exists()


def test_check_tells_and_export_mends(course: Path, module: Write) -> None:
    module()
    assert main(["--root", str(course), "export", "--check"]) == 1
    assert main(["--root", str(course), "export"]) == 0
    assert main(["--root", str(course), "export", "--check"]) == 0
    with (course / "tinybench" / "tiny.py").open("a") as file:
        file.write("# edited by hand\n")
    assert main(["--root", str(course), "export", "--check"]) == 1


def test_every_command_explains_itself() -> None:
    for command in COMMANDS:
        run = subprocess.run(
            [sys.executable, "-m", "autograder", command, "--help"], capture_output=True, text=True, check=True
        )
        assert run.stdout.startswith(f"Usage: autograder {command} ")
        assert len(run.stdout.splitlines()) >= 5

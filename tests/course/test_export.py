"""The exporter: what comes out reads as if written by hand, and what cannot is refused by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from autograder.cli import main
from autograder.course.export import changed_files, export_course, export_source, targets
from autograder.course.notebook import NotebookError
from tests.tiny_course import ROOT, Write, code


def test_committed_package_equals_its_export() -> None:
    assert not changed_files(export_course(ROOT))


def test_markers_go_and_the_rest_stays(module: Write) -> None:
    source = export_source(module())
    assert "SOLUTION" not in source
    assert '__all__ = ["halve"]' in source
    assert "return x / 2" in source
    assert source.startswith('# Written by "autograder export" from modules/01_tiny/01_tiny.ipynb')


def test_future_is_first_and_imports_are_merged_and_sorted(module: Write) -> None:
    source = export_source(
        module(
            code('"""Doc."""\n\nimport sys', "a", "export"),
            code(
                "import math\nfrom __future__ import annotations\n\n\ndef f() -> float:\n    return math.pi",
                "b",
                "export",
            ),
            code("def g() -> str:\n    return sys.platform", "c", "export"),
        )
    )
    lines = source.splitlines()
    assert lines.index('"""Doc."""') < lines.index("from __future__ import annotations")
    assert lines.index("from __future__ import annotations") < lines.index("import math") < lines.index("import sys")


def test_methods_move_into_their_class(module: Write) -> None:
    source = export_source(
        module(
            code('class Box:\n    """A box."""\n\n    size = 1', "a", "export"),
            code(
                '@add_to_class(Box)\n@property\ndef twice(self):\n    """Return\n\n    twice."""\n    return 2 * self.size',
                "b",
                "export",
            ),
        )
    )
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
        export_source(path)
    message = str(refusal.value)
    assert "01_tiny.ipynb" in message
    assert "'culprit'" in message
    for word in words:
        assert word.lower() in message.lower()


def test_two_notebooks_with_one_target_are_refused(module: Write) -> None:
    notebooks = [module(name="01_tiny"), module(name="02_tiny")]
    with pytest.raises(NotebookError, match=r"02_tiny.*tinybench/tiny\.py.*01_tiny"):
        targets(notebooks)


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
    for command in (
        "export",
        "lint",
        "release",
        "build",
        "status",
        "grade",
        "feedback",
        "course",
        "demo",
        "doctor",
        "package",
        "similarity",
    ):
        run = subprocess.run(
            [sys.executable, "-m", "autograder", command, "--help"], capture_output=True, text=True, check=True
        )
        assert run.stdout.startswith("usage: ")
        assert len(run.stdout.splitlines()) >= 5

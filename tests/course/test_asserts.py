"""Checks are made of asserts, which ``python -O`` skips: nothing may pass because nothing was checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder.course.execute import run_notebook

ROOT = Path(__file__).resolve().parents[2]
PASSED = "from tinybench.course.check_feedback import passed; passed('check_values', 1)"
BUILT = """
from pathlib import Path
from autograder.course.module_build import needed_cells, run_checks
from autograder.course.notebook import read_notebook

path = Path("modules/01_result/01_result.ipynb")
notebook = read_notebook(path)
first = next(cell for cell in needed_cells(notebook) if cell.is_check)
raw = next(cell for cell in notebook.cells if cell.source == first.source)
raw.source = "assert False, 'it was reached'\\n" + raw.source
print(run_checks(notebook, path)[first.id])
"""


def optimized(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-O", "-c", code], cwd=ROOT, capture_output=True, text=True)


def test_no_check_passes_where_python_skips_its_asserts() -> None:
    done = optimized(PASSED)
    assert done.returncode
    assert "check_values has checked nothing" in done.stderr
    assert "Unset PYTHONOPTIMIZE" in done.stderr


def test_no_module_is_built_where_python_skips_its_asserts() -> None:
    done = optimized(BUILT)
    assert done.stdout.strip() == "AssertionError: it was reached", done.stderr


def test_asserts_count_in_the_kernel_of_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("assert False, 'it was reached'")])
    cell = run_notebook(notebook, folder=tmp_path).notebook.cells[0]
    assert [output.ename for output in cell.outputs] == ["AssertionError"]


def test_make_takes_the_variable_away() -> None:
    words = ["make", "-s", "--eval", "shown: ; @echo [$$PYTHONOPTIMIZE]", "shown"]
    done = subprocess.run(words, cwd=ROOT, env=os.environ | {"PYTHONOPTIMIZE": "2"}, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr

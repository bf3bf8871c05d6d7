"""Every module runs from top to bottom with the reference solutions, in time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from autograder.notebook import course_notebooks

ROOT = Path(__file__).parents[2]
SECONDS = 180  # a module may take 60 s on two free cores; here others run beside it


@pytest.mark.slow
@pytest.mark.parametrize("notebook", course_notebooks(ROOT), ids=lambda path: path.stem)
def test_notebook_runs(notebook: Path) -> None:
    # A pytest of its own: nbval's cells belong into one process, in order, which pytest-xdist does not know.
    sanitize = ROOT / "tests" / "notebooks" / "sanitize.cfg"
    nbval = ["--nbval-lax", "--nbval-current-env", "--nbval-sanitize-with", sanitize]
    pytest_alone = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "-W",
        "default",
    ]
    command = [*pytest_alone, *nbval, notebook]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
    assert run.returncode == 0, run.stdout + run.stderr

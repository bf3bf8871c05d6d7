"""Every module runs from top to bottom with the reference solutions, in time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import pace
from autograder.course.notebook import course_notebooks

ROOT = Path(__file__).parents[2]
SECONDS = 180  # a module may take 60 s on two free cores


@pytest.mark.slow
@pytest.mark.parametrize("notebook", course_notebooks(ROOT), ids=lambda path: path.stem)
def test_notebook_runs(notebook: Path) -> None:
    # A pytest of its own: nbval's cells belong into one process, in order, which pytest-xdist does not know.
    sanitize = ROOT / "tests" / "notebooks" / "sanitize.cfg"
    nbval = [
        "--nbval-lax",
        f"--nbval-kernel-startup-timeout={pace.wall(60):.0f}",
        "--nbval-current-env",
        "--nbval-sanitize-with",
        sanitize,
    ]
    pytest_alone = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "nbval.plugin",
        "-p",
        "no:cacheprovider",
        "-W",
        "default",
    ]
    command = [*pytest_alone, *nbval, notebook]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # other plugins take seconds to load
    run = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, timeout=pace.wall(SECONDS))
    assert run.returncode == 0, run.stdout + run.stderr

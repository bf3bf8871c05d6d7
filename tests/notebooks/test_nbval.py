"""Every module runs from top to bottom with the reference solutions, in time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import time_limits
from autograder.course.notebook import course_notebooks

ROOT = Path(__file__).parents[2]
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # other plugins take seconds to load
SECONDS = 180  # a module may take 60 s on two free cores


def nbval_command(notebook: Path) -> list[str]:
    """Return the command of a pytest of its own: nbval's cells belong into one process, in order, which xdist does not know."""
    alone = [sys.executable, "-m", "pytest", "-q", "-p", "nbval.plugin", "-p", "no:cacheprovider", "-W", "default"]
    wait, sanitize = (
        f"--nbval-kernel-startup-timeout={time_limits.wall(60):.0f}",
        ROOT / "tests" / "notebooks" / "sanitize.cfg",
    )
    return [*alone, "--nbval-lax", wait, "--nbval-current-env", "--nbval-sanitize-with", str(sanitize), str(notebook)]


@pytest.mark.slow
@pytest.mark.parametrize("notebook", course_notebooks(ROOT), ids=lambda path: path.stem)
def test_notebook_runs(notebook: Path) -> None:
    command = nbval_command(notebook)
    run = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **ALONE},
        capture_output=True,
        text=True,
        timeout=time_limits.wall(SECONDS),
    )
    assert run.returncode == 0, run.stdout + run.stderr

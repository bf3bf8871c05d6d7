"""The Binder image, as far as it can be judged without building it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import pace

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def plan() -> str:
    """What repo2docker would build from this repository: its messages and the Dockerfile."""
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", "."]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=pace.wall(120))
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


def test_python_is_the_one_we_pin(plan: str) -> None:
    [pinned] = re.findall(r"^  - python=(.*)$", (ROOT / "environment.yml").read_text(), re.M)
    assert f"Building conda environment for python={pinned}\n" in plan
    assert pinned != "3.10", "3.10 is what repo2docker takes when it finds no environment file of ours"


def test_environment_is_ours(plan: str) -> None:
    assert (ROOT / "binder" / "environment.yml").samefile(ROOT / "environment.yml")
    assert '--file "binder/environment.yml"' in plan


def test_post_build_is_run(plan: str) -> None:
    assert "RUN ./binder/postBuild" in plan
    assert os.access(ROOT / "binder" / "postBuild", os.X_OK)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository of one module, and programs that only pretend."""
    (tmp_path / "modules" / "01_result").mkdir(parents=True)
    (tmp_path / "modules" / "01_result" / "01_result.ipynb").write_text("solution")
    (tmp_path / "bin").mkdir()
    fake(tmp_path, "pip", "")
    return tmp_path


def fake(checkout: Path, program: str, body: str) -> None:
    path = checkout / "bin" / program
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


def post_build(checkout: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    script = ROOT / "binder" / "postBuild"
    return subprocess.run([script], cwd=checkout, env=environment, capture_output=True, text=True)


def test_visitors_see_no_solution(checkout: Path) -> None:
    folder = "course/release/01_result"
    fake(checkout, "autograder", f"mkdir -p {folder}; echo stub > {folder}/01_result.ipynb")
    assert post_build(checkout).returncode == 0
    assert (checkout / "modules" / "01_result" / "01_result.ipynb").read_text() == "stub\n"


@pytest.mark.parametrize("program", ["pip", "autograder"])
def test_failure_stops_the_build(checkout: Path, program: str) -> None:
    fake(checkout, program, "exit 3")
    assert post_build(checkout).returncode == 3

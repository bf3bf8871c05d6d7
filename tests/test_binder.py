"""The Binder image, as far as it can be judged without building it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import time_limits
from autograder.course.published_repository import MANIFEST
from autograder.course.student_guides import papers
from tests.course.leaks import Secrets
from tests.test_environment import ENVIRONMENT, index, uv  # noqa: F401

ROOT = Path(__file__).parents[1]
# It only pretends to install: what it is asked to is kept in a file outside.
PIP = """#!/bin/bash
echo "$@" >> "$PIP_LOG"
"""


@pytest.fixture(scope="module")
def plan() -> str:
    """What repo2docker would build from this repository: its messages and the Dockerfile."""
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", "."]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=time_limits.wall(120))
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


def test_python_is_the_one_we_pin(plan: str) -> None:
    [pinned] = re.findall(r"^  - python=(.*)$", (ROOT / "environment.yml").read_text(), re.M)
    assert f"Building conda environment for python={pinned}\n" in plan
    assert pinned != "3.10", "3.10 is what repo2docker takes when it finds no environment file of ours"


def test_environment_is_ours(plan: str) -> None:
    assert (ROOT / "binder" / "environment.yml").samefile(ROOT / "environment.yml")
    assert '--file "binder/environment.yml"' in plan


def test_post_build_is_run_where_it_may_empty_the_folder(plan: str) -> None:
    assert "RUN ./binder/postBuild" in plan
    assert os.access(ROOT / "binder" / "postBuild", os.X_OK)
    assert "ENV REPO_DIR=" in plan.replace("ENV REPO_DIR ", "ENV REPO_DIR=")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone with two modules, and its history."""
    root = tmp_path / "home"
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        if not name.startswith("modules/") or name.startswith(("modules/01_", "modules/02_")):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name, follow_symlinks=False)
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return root


def post_build(checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    fakes = checkout.with_name("bin")
    fakes.mkdir()
    (fakes / "pip").write_text(PIP)
    (fakes / "pip").chmod(0o755)
    path = os.pathsep.join([str(fakes), str(Path(sys.executable).parent), os.environ["PATH"]])
    known = {"PATH": path, "PIP_LOG": str(checkout.with_name("pip.log")), "REPO_DIR": str(checkout)}
    environment = {**os.environ, **known, **variables}
    script = checkout / "binder" / "postBuild"
    return subprocess.run([script], cwd=checkout, env=environment, capture_output=True, text=True)


@pytest.mark.audit
@pytest.mark.slow
def test_visitors_find_what_students_get_and_nothing_else(checkout: Path) -> None:
    done = post_build(checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    tops = {path.name for path in checkout.iterdir()}
    own = {"README.md", "LICENSE", "pyproject.toml", "environment.yml", "binder", ".gitignore", MANIFEST, *papers()}
    assert tops == {"01_result", "02_timer", "tinybench", "autograder", *own}
    assert Secrets(ROOT).within(checkout) == []
    asked = checkout.with_name("pip.log").read_text().splitlines()
    assert asked[1] == "uninstall --yes tinybench-ml tinybench-course"
    assert [line.split()[0] for line in asked] == ["install", "uninstall", "install"]


@pytest.mark.parametrize("variables", [{"REPO_DIR": ""}, {"REPO_DIR": "/somewhere/else"}])
def test_it_empties_no_other_folder(checkout: Path, variables: dict[str, str]) -> None:
    done = post_build(checkout, **variables)
    assert done.returncode == 1
    assert "for Binder alone" in done.stderr
    assert (checkout / "modules" / "01_result" / "01_result.ipynb").is_file()


@pytest.mark.parametrize("program", ["pip", "autograder"])
def test_failure_stops_the_build(checkout: Path, program: str) -> None:
    fakes = checkout.with_name("failing")
    fakes.mkdir()
    (fakes / program).write_text("#!/bin/bash\nexit 3\n")
    (fakes / program).chmod(0o755)
    path = os.pathsep.join([str(fakes), str(checkout.with_name("bin")), os.environ["PATH"]])
    assert post_build(checkout, PATH=path).returncode == 3
    assert (checkout / "modules" / "01_result" / "01_result.ipynb").is_file()


@pytest.mark.audit
@pytest.mark.slow
@pytest.mark.usefixtures("index")
def test_in_an_empty_environment_only_the_published_package_is_left(checkout: Path, tmp_path: Path) -> None:
    """With the packages that the image has, and a real pip."""
    python = tmp_path / "environment" / "bin" / "python"
    assert uv("venv", "--quiet", "--seed", tmp_path / "environment").returncode == 0
    section = re.findall(r"^      - (.*)$", (ROOT / "environment.yml").read_text(), re.M)
    done = uv("pip", "install", "--quiet", "--python", python, "--constraint", "requirements.lock", "setuptools", "wheel", *section)  # fmt: skip
    assert done.returncode == 0, done.stderr
    environment = {name: value for name, value in ENVIRONMENT.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    environment |= {"PATH": path, "REPO_DIR": str(checkout), "HOME": str(tmp_path), "PIP_NO_BUILD_ISOLATION": "0"}
    script = [checkout / "binder" / "postBuild"]
    built = subprocess.run(script, cwd=checkout, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    asked = "import tinybench, autograder; print(tinybench.__file__, autograder.__file__); import tinybench.latency"
    run = subprocess.run([python, "-c", asked], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.stdout.split() == [str(checkout / name / "__init__.py") for name in ("tinybench", "autograder")]
    assert "in module 03_latency" in run.stderr
    assert not (checkout / ".git").exists()

"""What engineers install, and what instructors do: two wheels, built here and installed in an empty environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.test_environment import ENVIRONMENT, ROOT, index, uv  # noqa: F401

# What is installed may not come from this folder, and brings nothing of the course.
INSTALLED = """
import importlib.metadata as metadata, importlib.util as util, sys, tinybench
assert tinybench.__file__.startswith(sys.prefix), tinybench.__file__
assert not util.find_spec("autograder") and not util.find_spec("nbgrader") and not util.find_spec("IPython")
assert not metadata.entry_points(group="jupyter_client.kernel_provisioners")
"""


def build(folder: Path, into: Path) -> ZipFile:
    """Build the wheel of a clean copy of a folder: leftovers of earlier builds must not slip in."""
    done = uv("build", "--wheel", "--out-dir", into, folder)
    assert done.returncode == 0, done.stderr
    return ZipFile(next(into.glob("*.whl")))


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that git knows, without tests and modules."""
    root = tmp_path_factory.mktemp("clone")
    names = ["pyproject.toml", "README.md", "LICENSE", "tinybench", "autograder"]
    listed = subprocess.run(["git", "ls-files", *names], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes((ROOT / name).read_bytes())
    return root


def held_by(wheel: ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


@pytest.mark.slow
@pytest.mark.usefixtures("index")
def test_the_library_alone_measures_a_model(clone: Path, tmp_path: Path) -> None:
    known = {str(path.relative_to(clone)) for path in (clone / "tinybench").rglob("*") if path.is_file()}
    with build(clone, tmp_path / "wheels") as wheel:
        held = held_by(wheel)
        entries = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
        assert wheel.read(entries).decode().split() == [
            "[console_scripts]",
            "tinybench",
            "=",
            "tinybench.shell.cli:main",
        ]
    assert held == known
    assert uv("venv", "--quiet", tmp_path / "empty").returncode == 0
    python = tmp_path / "empty" / "bin" / "python"
    wanted = f"tinybench-ml[onnx] @ {next((tmp_path / 'wheels').glob('*.whl')).as_uri()}"
    done = uv("pip", "install", "--quiet", "--python", python, "--constraint", "requirements.lock", wanted)
    assert done.returncode == 0, done.stderr
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    measure = readme.partition("```python\n")[2].partition("```")[0]
    for command in ([python, "-c", INSTALLED + measure], [python.with_name("tinybench"), "system"]):
        run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        assert "latency" in run.stdout or "cpu" in run.stdout, run.stdout


@pytest.mark.usefixtures("index")
def test_the_course_wheel_holds_every_file_of_the_autograder(clone: Path, tmp_path: Path) -> None:
    files = [path for path in (clone / "autograder").rglob("*") if path.is_file()]
    pages = {"INSTRUCTOR.md", "README.md", "pyproject.toml"}
    known = {str(path.relative_to(clone)) for path in files if path.name not in pages}
    with build(clone / "autograder", tmp_path) as wheel:
        assert held_by(wheel) == known

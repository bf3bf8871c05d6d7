"""What engineers install, and what instructors do: two wheels, built here and installed in an empty environment."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import click
import pytest
from click.testing import CliRunner

import tinybench
from autograder.cli import commands as autograder_commands
from autograder.course import handout_texts
from tests.test_environment import ENVIRONMENT, ROOT, index, uv  # noqa: F401
from tinybench.shell.cli import commands

# What is installed may not come from this folder, and brings nothing of the course.
INSTALLED = """
import importlib.metadata as metadata, importlib.util as util, sys, tinybench
assert tinybench.__file__.startswith(sys.prefix), tinybench.__file__
assert not [name for name in ("autograder", "tinybench.course", "nbgrader", "IPython") if util.find_spec(name)]
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
    found = (path.relative_to(clone) for path in (clone / "tinybench").rglob("*") if path.is_file())
    known = {str(path) for path in found if path.parts[1] != "course"}
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


@pytest.mark.usefixtures("index")
def test_the_wheel_of_a_students_repository_holds_the_course(clone: Path, tmp_path: Path) -> None:
    shutil.copytree(clone / "tinybench", tmp_path / "tinybench")
    (tmp_path / "pyproject.toml").write_text(
        handout_texts.PYPROJECT.format(version="1.0", dependencies=""), encoding="utf-8"
    )
    with build(tmp_path, tmp_path / "wheels") as wheel:
        assert {"tinybench/course/notebook_setup.py", "tinybench/shell/cli.py"} <= held_by(wheel)


METADATA = "import sys; from setuptools import build_meta as build; build.prepare_metadata_for_build_wheel(sys.argv[1])"


@pytest.mark.parametrize("folder", ["", "autograder"])
def test_the_metadata_of_a_wheel_agrees_with_the_pages(folder: str, clone: Path, tmp_path: Path) -> None:
    """What an index shows of a wheel is what the changelog, the commands and the readme say."""
    command = [sys.executable, "-c", METADATA, str(tmp_path)]
    subprocess.run(command, cwd=clone / folder, check=True, capture_output=True)
    [file] = tmp_path.glob("*.dist-info/METADATA")
    wheel = email.message_from_string(file.read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    [newest, *_] = re.findall(r"^## (.*)$", changelog, re.M)
    assert re.fullmatch(rf"\[{re.escape(wheel['Version'])}\] - (unreleased|\d{{4}}-\d\d-\d\d)", newest)
    assert tinybench.__version__ == wheel["Version"]
    assert handout_texts.PYPROJECT.count('version = "{version}"') == 1  # filled in with `tinybench.__version__`
    [least] = re.findall(r"^With Python ≥ (\d\.\d+) alone", readme, re.M)
    assert wheel["Requires-Python"] == f">={least}"
    assert f"  - python={least}\n" in (ROOT / "environment.yml").read_text(encoding="utf-8")
    assert wheel["License-Expression"] in readme
    if not folder:
        assert wheel["Name"] in readme
        assert wheel.get_payload().strip() == readme.strip()
        assert f"**{wheel['Summary']}**" in readme


@pytest.mark.parametrize("program", [commands, autograder_commands])
def test_the_commands_tell_the_version(program: click.Group) -> None:
    told = CliRunner().invoke(program, ["--version"], prog_name="program")
    assert told.exit_code == 0
    assert told.output.replace(",", "").split()[1:] == ["version", tinybench.__version__]

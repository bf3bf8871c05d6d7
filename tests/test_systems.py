"""Other systems, as far as Linux can play them: nothing but what Windows has, and the pins of macOS and Windows."""

from __future__ import annotations

import json
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import tinybench
from tinybench.support.conditions.cores import usable_cores

ROOT = Path(__file__).parents[1]
MIB = 2**20


def elsewhere(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run Python as on a system without fork, resource, /proc and the like: see `tests/elsewhere`."""
    path = os.pathsep.join([str(ROOT / "tests" / "elsewhere"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True)


def test_every_module_is_imported_there() -> None:
    names = [module.name for module in pkgutil.walk_packages(tinybench.__path__, "tinybench.")]
    names = [name for name in names if not name.endswith("__main__")]
    assert len(names) > 10
    run = elsewhere("-c", f"import {', '.join(names)}")
    assert run.returncode == 0, run.stderr


def test_everything_is_measured_there() -> None:
    run = elsewhere(ROOT / "tests" / "elsewhere" / "script.py")
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    system, results = found["system"], found["results"]
    memory, energy = results["memory of mine"], results["energy of mine"]
    assert all(31 * MIB <= value <= 40 * MIB for value in memory["values"])
    assert "peak working set (psutil)" in memory["metadata"]["method"]
    assert results["memory of onnx"]["metadata"]["arena"] == "off in a twin session"
    assert results["latency of onnx"]["values"][0] > 0
    assert results["accuracy of model_0"]["values"] == [1.0]
    assert energy["metadata"]["measured"] is False
    assert energy["metadata"]["meter"] == "CPU time"
    assert "RAPL" in energy["metadata"]["not_measured_because"]
    for stage in ("load", "first_call", "second_call", "steady"):
        assert results[f"stage {stage}"]["metadata"]["resident"][0] > 32 * MIB
    assert results["growth"]["metadata"]["method"] == "resident size (psutil)"
    assert results["cold start"]["unit"] == "s"
    assert system["cpu"]
    assert system["cores"] >= 1
    assert system["memory"] > 0
    assert len(system["load_average"]) == 3


def test_cores_where_there_is_no_affinity() -> None:
    assert usable_cores(SimpleNamespace()) == os.cpu_count()
    assert usable_cores(SimpleNamespace(cpu_affinity=lambda: [0, 2, 4])) == 3


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of one module."""
    root = tmp_path_factory.mktemp("course")
    for name in ("modules/01_result", "tinybench", "nbgrader_config.py", "pyproject.toml"):
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(ROOT / name, target) if (ROOT / name).is_dir() else shutil.copy(ROOT / name, target)
    return root


@pytest.mark.audit
def test_commands_for_students_run_there(course: Path) -> None:
    for command, code, says in (
        (["release", "--no-verify"], 0, "1 assignment is in student/"),
        (["status"], 0, "01_result        not built yet"),
        (["build", "01_result"], 1, "NotImplementedError"),
        (["lint"], 0, "1 notebook is clean"),
        (["course", "--help"], 0, "JupyterLab"),
        (["doctor"], 1, "use WSL or Linux"),
    ):
        run = elsewhere("-m", "autograder", "--root", course, *command)
        assert (run.returncode, says in run.stdout + run.stderr) == (code, True), (command, run.stdout, run.stderr)

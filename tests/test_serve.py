"""The leaderboard that starts with the course: reached, told to the notebooks, ended; and what happens when it fails."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from contextlib import ExitStack
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager

from autograder import course_command, time_limits
from autograder.leaderboard.store.store import Store


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what the course sets end with the test."""
    monkeypatch.delenv("TINYBENCH_DATABASE", raising=False)
    for name in ("TINYBENCH_LEADERBOARD", "TINYBENCH_TOKEN"):
        monkeypatch.setenv(name, "")


@pytest.mark.needs("sandbox")
def test_it_answers_while_the_course_runs_and_the_token_is_good(tmp_path: Path) -> None:
    with ExitStack() as servers:
        said = course_command.start_leaderboard(tmp_path, servers)
        address, token = os.environ["TINYBENCH_LEADERBOARD"], os.environ["TINYBENCH_TOKEN"]
        assert said.startswith(address)
        assert token in said
        with urllib.request.urlopen(address, timeout=time_limits.wall(30)) as page:
            assert b"TinyBench Olympics" in page.read()
        store = Store(f"sqlite:///{tmp_path / 'course' / 'leaderboard.db'}")
        assert store.student(token).name in said
        store.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=5)


def test_where_it_cannot_run_the_course_goes_on(tmp_path: Path) -> None:
    (tmp_path / "course" / "leaderboard.db").mkdir(parents=True)  # no database can be made here
    with ExitStack() as servers:
        said = course_command.start_leaderboard(tmp_path, servers)
    assert said.startswith("not running: ")
    assert os.environ["TINYBENCH_LEADERBOARD"] == ""
    assert "unable to open database" in (tmp_path / "course" / "leaderboard.log").read_text(encoding="utf-8")


def test_without_a_sandbox_the_course_goes_on_and_says_what_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = tmp_path / "modules" / "01_result" / "01_result.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.touch()
    said: list[str] = []
    monkeypatch.chdir(tmp_path)
    for name in ("JUPYTER_PATH", "JUPYTER_CONFIG_PATH"):
        monkeypatch.setenv(name, "/elsewhere")
    monkeypatch.setattr(course_command, "unavailable", lambda: "bwrap is missing")
    monkeypatch.setattr(course_command, "is_outdated", lambda root, name: False)
    monkeypatch.setattr(course_command, "fill_exchange", lambda root, names: None)
    monkeypatch.setattr(course_command, "run_jupyterlab", lambda *arguments: said.append(arguments[-1]))
    assert course_command.serve_course(tmp_path) == 0
    assert said == ["left out, and so is grading: bwrap is missing"]
    assert os.environ["JUPYTER_PATH"] == "/elsewhere", "a kernel that cannot start is not offered"


def test_a_user_without_a_name_enters_as_student(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr("getpass.getuser", nameless)
    assert course_command._user() == "student"


@pytest.mark.needs("sandbox")
def test_jupyter_finds_the_kernel_in_a_sandbox_and_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("JUPYTER_PATH", "JUPYTER_CONFIG_PATH"):
        monkeypatch.setenv(name, "/elsewhere")
    course_command.use_configuration(tmp_path)
    specifications = KernelSpecManager().get_all_specs()
    provisioner = specifications["tinybench-sandbox"]["spec"]["metadata"]["kernel_provisioner"]["provisioner_name"]
    assert provisioner in {point.name for point in entry_points(group="jupyter_client.kernel_provisioners")}
    assert "python3" in specifications
    assert os.environ["JUPYTER_CONFIG_PATH"] == f"{tmp_path}{os.pathsep}/elsewhere"

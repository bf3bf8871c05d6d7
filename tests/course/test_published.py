"""What `autograder publish` writes: it installs as its README says, its notebooks run there, and it can be updated."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from autograder.cli import main
from autograder.course.published_repository import MANIFEST, publish, requirements, tools
from autograder.course.release import release_all
from autograder.course.student_guides import papers
from tests.course.perfect_student import hand_out, one_module
from tests.test_environment import ENVIRONMENT, PLAYED, index, uv  # noqa: F401
from tests.tiny_course import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MODULES = ("01_result", "02_timer")
NEVER = (
    "checks",
    "grading",
    "course/release.py",
    "course/published_repository.py",
    "leaderboard/store",
    "leaderboard/web",
)
GIT = ["git", "-c", "user.name=instructor", "-c", "user.email=instructor@example.org", "-c", "commit.gpgsign=false"]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first modules, released."""
    root = tmp_path_factory.mktemp("course")
    for name in MODULES:
        shutil.copytree(ROOT / "modules" / name, root / "modules" / name)
    shutil.copytree(ROOT / "tinybench", root / "tinybench", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("nbgrader_config.py", "LICENSE"):
        shutil.copy(ROOT / name, root)
    (root / "modules" / "01_result" / "times.csv").write_text("1,2\n")
    release_all(root, verify=False, report=lambda line: None)
    return root


@pytest.fixture(scope="module")
def site(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the instructor publishes, under version control."""
    folder = tmp_path_factory.mktemp("site")
    publish(course, folder)
    subprocess.run([*GIT, "init", "-q", "-b", "main"], cwd=folder, check=True)
    commit(folder)
    return folder


def commit(site: Path) -> None:
    for command in (["add", "-A"], ["commit", "-qm", "course"]):
        subprocess.run([*GIT, *command], cwd=site, check=True)


def texts(folder: Path) -> str:
    files = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts)
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def test_it_holds_what_students_need_and_nothing_else(site: Path, course: Path) -> None:
    there = {path.relative_to(site).parts[0] for path in site.rglob("*")} - {".git"}
    own = {"README.md", "LICENSE", "pyproject.toml", "environment.yml", "binder", ".gitignore", MANIFEST, *papers()}
    assert there == {*MODULES, "tinybench", "autograder", *own}
    assert not any((site / "autograder" / name).exists() for name in NEVER)
    assert (site / "01_result" / "times.csv").read_text() == "1,2\n"
    assert not (site / "tinybench" / "references").exists()
    for secret in (str(course), str(ROOT)):
        assert secret not in texts(site)


def test_every_import_of_the_students_commands_is_there(site: Path) -> None:
    found = texts(site / "autograder")
    for line in re.findall(r"^\s*(?:from|import) (autograder[\w.]*)", found, re.M):
        path = site.joinpath(*line.split("."))
        typing = f"if TYPE_CHECKING:\n    from {line} import"
        assert path.is_dir() or path.with_suffix(".py").is_file() or typing in found, line
    assert {path.relative_to(ROOT / "autograder") for path in tools()} == {
        path.relative_to(site / "autograder") for path in (site / "autograder").rglob("*.*")
    }


def test_students_install_what_their_files_import(site: Path) -> None:
    packages = {"sklearn": "scikit-learn", "yaml": "pyyaml"}
    wanted = {re.split(r"[\[<>=]", line)[0] for line in requirements()}
    code = texts(site / "autograder") + texts(site / "tinybench")
    for path in MODULES:
        cells = json.loads((site / path / f"{path}.ipynb").read_text(encoding="utf-8"))["cells"]
        code += "\n" + "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    names = re.findall(r"^\s*(?:from (\w+)[\w.]* import|import (\w+)[\w.]*(?: as \w+)?(?:\s*[,;#].*)?$)", code, re.M)
    imported = {name for pair in names for name in pair if name} - set(sys.stdlib_module_names)
    assert {"numpy", "onnx"} <= imported
    with_jupyterlab = {"IPython", "jupyter_core", "nbformat", "traitlets"}
    elsewhere = {"google", "cycler", "joblib", "starlette"}  # of packages that are listed
    for_instructors = {"nbgrader", "seccomp", "pyseccomp"}
    for_maintainers = {"grafana_foundation_sdk"}  # makes the dashboard anew that is stored beside it
    with_a_gpu = {"pynvml", "torch"}
    known = {"autograder", "tinybench"} | with_a_gpu | with_jupyterlab | elsewhere | for_instructors | for_maintainers
    assert {packages.get(name, name) for name in imported - known} <= wanted


def test_publishing_again_changes_nothing(site: Path, course: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in site.rglob("*.py")}
    publish(course, site)
    assert {path: path.stat().st_mtime_ns for path in site.rglob("*.py")} == before


def test_foreign_files_stay_and_changed_ones_are_named(course: Path, tmp_path: Path) -> None:
    publish(course, tmp_path)
    (tmp_path / "SYLLABUS.md").write_text("ours")
    (tmp_path / "README.md").write_text("ours")
    (tmp_path / "tinybench" / "left.py").write_text("of an earlier course")
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps(manifest | {"tinybench/left.py": "", "../outside": ""}))
    outside = tmp_path.parent / "outside"
    outside.write_text("not ours to delete")
    with pytest.raises(ValueError, match=r"README\.md.* --force"):
        publish(course, tmp_path)
    publish(course, tmp_path, force=True)
    assert (tmp_path / "SYLLABUS.md").read_text() == "ours"
    assert (tmp_path / "README.md").read_text() != "ours"
    assert not (tmp_path / "tinybench" / "left.py").exists()
    assert outside.exists()


def test_what_cannot_be_published_is_said(course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.tex").write_text("")
    for folder, why in ((tmp_path, "neither empty nor published"), (course, "the course itself")):
        assert main(["--root", str(course), "publish", str(folder)]) == 1
        assert why in capsys.readouterr().err
    assert main(["--root", str(course), "publish", str(tmp_path / "new"), "--with", "01-99"]) == 1
    assert "no module is called '01-99'; there are 01_result, 02_timer" in capsys.readouterr().err
    released = course / "course" / "release" / "02_timer" / "02_timer.ipynb"
    then = released.stat().st_mtime
    os.utime(released, (0, 0))
    assert main(["--root", str(course), "publish", str(tmp_path / "new")]) == 1
    assert "autograder release 02_timer" in capsys.readouterr().err
    os.utime(released, (then, then))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["thesis.tex"]


def given_in(folder: Path) -> set[str]:
    """Return the notebooks whose reference a folder holds, by the first lines of the files."""
    lines = [path.read_text().partition("\n")[0] for path in (folder / "tinybench" / "references").glob("*.py")]
    return {match[0] for line in lines if (match := re.search(r"\d\d_\w+", line))}


def test_what_was_released_is_published_and_named(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, site = tmp_path / "course", tmp_path / "site"
    shutil.copytree(course, root)

    def published(*words: str) -> set[str]:
        capsys.readouterr()
        assert main(["--root", str(root), "publish", str(site), *words]) == 0
        [named] = re.findall(r"references: (.*)", capsys.readouterr().out)
        assert given_in(site) == set(named.replace("none", "").split(", ")) - {""}, "it says what it publishes"
        return given_in(site)

    assert published() == set()
    release_all(root, ["01_result"], references="01-03", verify=False, report=lambda line: None)
    assert published() == given_in(root / "student") == {"01_result", "02_timer", "03_latency"}
    assert published("--with", "02") == {"02_timer"}, "an explicit choice is exactly this"
    assert published() == {"01_result", "02_timer", "03_latency"}
    release_all(root, ["01_result"], references="none", verify=False, report=lambda line: None)
    assert published() == {"01_result", "02_timer", "03_latency"}, "what students have is not taken away by the way"
    assert published("--with", "none") == published() == set()


def test_an_update_leaves_the_students_work_alone(course: Path, site: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", site, clone], check=True)
    notebook = clone / "01_result" / "01_result.ipynb"
    notebook.write_text(notebook.read_text().replace("write t_interval", "mine"))
    own = clone / "tinybench" / "result.py"
    own.write_text("# Built by the student from 01_result.ipynb on some day.\nmine = 1\n")
    before = notebook.read_text(), own.read_text()
    assert "no reference of 02_timer is in this folder: ask your instructor" in autograder(clone, "borrow", "02_timer")
    publish(course, site, references="all")
    commit(site)
    pulled = subprocess.run(["git", "pull", "-q"], cwd=clone, capture_output=True, text=True)
    assert pulled.returncode == 0, pulled.stderr
    assert (notebook.read_text(), own.read_text()) == before
    states = dict(line.split(maxsplit=1) for line in autograder(clone, "status").splitlines())
    assert states["01_result"] == "yours"
    assert states["02_timer"] == states["13_compress"] == "reference, released by your instructor"
    imported = "import tinybench.result, tinybench.timer as t; print(tinybench.result.mine, t.__file__)"
    done = subprocess.run([sys.executable, "-c", imported], cwd=clone, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "1"
    assert done.stdout.rstrip().endswith("references/timer.py")


def autograder(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "autograder", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr


def blocks(readme: str) -> list[str]:
    return [block for block in re.findall(r"```bash\n(.*?)```", readme, re.DOTALL) if "autograder lab" in block]


UNTOUCHED = """
python -m nbconvert --log-level WARN --to notebook --execute --allow-errors --output untouched 01_result/01_result.ipynb
autograder status
"""
SOLVED = """
python -m nbconvert --log-level WARN --to notebook --execute --output solved 01_result/01_result.ipynb
(cd 01_result && autograder build 01_result)
(cd 02_timer && autograder build 02_timer)
autograder status
python -c 'import tinybench.latency' || ! autograder borrow 03
"""


@contextmanager
def student_lab(folder: Path, **environment: str) -> Iterator[str]:
    """Run JupyterLab in a folder, and return the address of its notebooks."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    words = [
        "-m",
        "autograder",
        "lab",
        "--no-browser",
        f"--ServerApp.port={port}",
        "--IdentityProvider.token=t",
        "--allow-root",
    ]
    log = Path(environment["HOME"], "log")
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, *words], cwd=folder, env={**os.environ, **environment}, stderr=output
        )
    try:
        while "Use Control-C to stop" not in log.read_text(encoding="utf-8"):
            assert server.poll() is None, log.read_text(encoding="utf-8")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/lab/tree/{{}}?token=t"
    finally:
        server.kill()
        server.wait()


@pytest.mark.browser
def test_on_a_narrow_screen_the_notebook_has_the_full_width(site: Path, browser: Browser, tmp_path: Path) -> None:
    """`autograder lab` closes the sidebars, asks for no news and hides the tools."""
    with student_lab(site, HOME=str(tmp_path)) as address:
        page = browser.new_page(viewport={"width": 480, "height": 800})
        page.goto(address.format("map.ipynb"))
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        assert page.locator(".jp-Notebook").first.bounding_box()["width"] > 350
        assert "Jupyter news" not in page.content()
        page.keyboard.press("Control+b")
        page.wait_for_selector(".jp-DirListing-item")
        names = page.locator(".jp-DirListing-itemText").all_inner_texts()
        assert "01_result" in names
        assert not {"autograder", "binder"} & {*names}
        page.close()


@pytest.mark.slow
@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("way", [pytest.param(0, id="conda", marks=pytest.mark.audit), pytest.param(1, id="python")])
def test_a_student_starts_as_the_readme_says(way: int, course: Path, tmp_path: Path) -> None:
    """Both ways in; on the second the first notebooks are solved."""
    clone = tmp_path / "clone"
    publish(course, clone, references="none")
    section = tmp_path / "pip.txt"
    section.write_text("\n".join(requirements()))
    environment = {
        **{name: value for name, value in ENVIRONMENT.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")},
        "HOME": str(tmp_path),
        "LOCK": str(ROOT / "requirements.lock"),
        "PIP_SECTION": str(section),
        "UV_CACHE_DIR": uv("cache", "dir").stdout.strip(),
    }

    def run(script: str) -> str:
        command = ["bash", "-c", f"{PLAYED}\n{script}"]
        done = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    start = blocks((clone / "README.md").read_text(encoding="utf-8"))[way]
    said = run(start + UNTOUCHED)
    assert re.search(r"01_result +not built yet\n02_timer +not built yet", said)
    untouched = (clone / "01_result" / "untouched.ipynb").read_text(encoding="utf-8")
    assert "NotImplementedError" in untouched
    assert "ModuleNotFoundError" not in untouched
    if way == 0:
        return
    for name in MODULES:
        hand_out(ROOT / "modules" / name / f"{name}.ipynb", clone)
    activate = next(line for line in start.splitlines() if "activate" in line)
    said = run(f"{activate}\n{SOLVED}")
    assert "tinybench.result is now your own code" in (clone / "01_result" / "solved.ipynb").read_text(encoding="utf-8")
    assert re.search(r"01_result +yours.*\n02_timer +yours.*\n03_latency +not built yet", said)
    assert "you build tinybench.latency in module 03_latency" in said


@pytest.mark.audit
def test_a_student_who_solves_everything_needs_no_reference(tmp_path: Path) -> None:
    from autograder.course.notebook import course_notebooks
    from autograder.course.student_package import lay_out_package

    lay_out_package(ROOT, tmp_path / "tinybench")
    assert [line for source in course_notebooks(ROOT) for line in one_module(source, tmp_path, run=False)] == []
    assert not (tmp_path / "tinybench" / "references").exists()

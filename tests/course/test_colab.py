"""Google Colab, as far as that goes without it: its Python, a kernel's shell, a stub of its module, and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest

from autograder.course.published_repository import publish
from autograder.course.release import release_all
from tests.course.perfect_student import solved
from tests.course.test_published import GIT
from tests.test_environment import ENVIRONMENT, index, uv  # noqa: F401
from tests.tiny_course import ROOT

MODULES = ("01_result", "02_timer")
# What Colab has of what the course needs; all else the cell installs.
THERE = [
    "ipykernel",
    "numpy",
    "scipy",
    "matplotlib",
    "scikit-learn",
    "psutil",
    "pyyaml",
    "tqdm",
    "click",
    "pydantic",
    "httpx",
]

# Runs a notebook that lies in no folder of the course, as Colab does: its text is in the browser, at the other end of
# `_message`, in an older form of nbformat and without the cells' own ids.
COLAB = """
import json, sys, types
from pathlib import Path

notebook = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
notebook |= {"nbformat_minor": 0}
for cell in notebook["cells"]:
    cell["metadata"]["id"] = cell.get("id", "")
google, colab, message, files = (types.ModuleType(name) for name in ("google", "google.colab", "google.colab._message", "files"))
message.blocking_request = lambda what, **_: {"ipynb": json.loads(json.dumps(notebook))} if what == "get_ipynb" else None
files.downloaded = []
files.download = files.downloaded.append
colab._message, colab.files = message, files
sys.modules |= {"google": google, "google.colab": colab, "google.colab._message": message}

from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
wanted = sys.argv[2].split(",")
for number, cell in enumerate(notebook["cells"]):
    if cell["cell_type"] != "code" or ("all" not in wanted and not {cell.get("id"), *cell["metadata"].get("tags", [])} & set(wanted)):
        continue
    ran = shell.run_cell("".join(cell["source"]))
    if not ran.success:
        sys.exit(f"cell {number} failed")
print("downloaded", files.downloaded)
"""


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published course in a bare repository, where students clone it."""
    root, site = tmp_path_factory.mktemp("course"), tmp_path_factory.mktemp("site")
    for name in MODULES:
        shutil.copytree(ROOT / "modules" / name, root / "modules" / name)
    shutil.copytree(ROOT / "tinybench", root / "tinybench", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "nbgrader_config.py", root)
    release_all(root, verify=False, report=lambda line: None)
    bare = tmp_path_factory.mktemp("remote") / "our-course.git"
    publish(root, site, url=bare.as_uri())
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "course"]):
        subprocess.run([*GIT, *command], cwd=site, check=True)
    subprocess.run(["git", "clone", "-q", "--bare", site, bare], check=True)
    return bare


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python as Colab has it, without JupyterLab and without the course."""
    place = tmp_path_factory.mktemp("colab") / "environment"
    python = place / "bin" / "python"
    assert uv("venv", "--quiet", "--seed", place).returncode == 0
    done = uv("pip", "install", "--quiet", "--python", python, "--constraint", "requirements.lock", *THERE)
    assert done.returncode == 0, done.stderr
    return python


@pytest.mark.slow
@pytest.mark.usefixtures("index")
def test_a_notebook_opened_on_colab_fetches_the_course_and_builds(remote: Path, python: Path, tmp_path: Path) -> None:
    """Forty seconds. The notebook is solved in the browser; the machine knows nothing of it beforehand."""
    content, drive = tmp_path / "content", tmp_path / "browser"
    content.mkdir()
    drive.mkdir()
    names = {name for name in ENVIRONMENT if name.startswith(("VIRTUAL_ENV", "PYTHONPATH", "JUPYTER"))}
    environment = {name: value for name, value in ENVIRONMENT.items() if name not in names}
    environment |= {"HOME": str(tmp_path), "PIP_CONSTRAINT": str(ROOT / "requirements.lock"), "MPLBACKEND": "agg"}
    script = tmp_path / "colab.py"
    script.write_text(COLAB, encoding="utf-8")

    def run(notebook: Path, cells: str) -> str:
        command = [python, script, notebook, cells]
        done = subprocess.run(command, cwd=content, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    said = run(in_browser(remote, "01_result", drive), "all")
    assert "tinybench.result is now your own code" in said
    home = content / "our-course"
    assert (home / "tinybench" / "result.py").read_text().startswith("# Built by the student")
    said = run(in_browser(remote, "02_timer", drive), "colab,setup,build")  # another kernel of the same machine
    assert "tinybench.result: your own code" in said
    assert "tinybench.timer is now your own code" in said
    said = run(in_browser(remote, "map", drive), "colab,map,save")
    assert "2 of 2 modules done" in said or "all 2 modules done" in said
    assert "my-work-" in said.rpartition("downloaded")[2]


def in_browser(remote: Path, name: str, drive: Path) -> Path:
    """Return the notebook of a module as published, with the student's solutions, or the map."""
    path = f"{name}/{name}.ipynb" if name != "map" else "map.ipynb"
    shown = subprocess.run(["git", "-C", remote, "show", f"main:{path}"], capture_output=True, text=True, check=True)
    notebook = nbformat.reads(shown.stdout, as_version=4)
    if name != "map":
        solutions = {cell.id: cell.source for cell in solved(ROOT / "modules" / name / f"{name}.ipynb").cells}
        for cell in notebook.cells:
            cell.source = solutions.get(cell.id, cell.source)
    (drive / f"{name}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    return drive / f"{name}.ipynb"

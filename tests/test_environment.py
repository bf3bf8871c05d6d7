"""The ways in without `make`: the pins of other systems, `environment.yml`, and the commands of the README."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, product
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
NOWHERE = Path(tempfile.gettempdir(), "tinybench-nowhere")  # a lock is all that a dry run leaves there
PLATFORMS = ("aarch64-apple-darwin", "x86_64-pc-windows-msvc")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
ENVIRONMENT = {
    **os.environ,
    "MACOSX_DEPLOYMENT_TARGET": "14.0",  # onnxruntime's wheels ask for it
    "UV_SYSTEM_CERTS": "true",
    "UV_LINK_MODE": "hardlink",
}


def uv(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("uv")
    command = [program] if program else [sys.executable, "-m", "uv"]
    return subprocess.run([*command, *arguments], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def index() -> None:
    """An index of packages that answers; else these tests are left out, but not in CI."""
    asked = uv("pip", "install", "--dry-run", "--no-cache", "--target", NOWHERE, "wheel")
    if asked.returncode and not os.environ.get("CI"):
        pytest.skip(f"no index of packages can be reached: {asked.stderr.strip()[-200:]}")


@pytest.mark.audit
@pytest.mark.usefixtures("index")
def test_pins_resolve_for_other_systems() -> None:
    """Every pin that applies has a wheel with a known hash: nobody needs a compiler."""

    def resolve(system: str, python: str) -> str:
        where = ["--python-platform", system, "--python-version", python, "--target", NOWHERE]
        pins = ["--only-binary", ":all:", "--require-hashes", "-r", "requirements.lock"]
        done = uv("pip", "install", "--dry-run", *where, *pins)
        return f"{system}, Python {python}: {done.stderr}" if done.returncode else ""

    with ThreadPoolExecutor(4) as pool:
        failures = [why for why in pool.map(lambda case: resolve(*case), product(PLATFORMS, PYTHONS)) if why]
    assert not failures, "\n".join(failures)


def pip_section() -> list[str]:
    """Return what `environment.yml` has pip install."""
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    found: list[str] = next(entry["pip"] for entry in dependencies if isinstance(entry, dict))
    return found


def test_a_notebook_is_read_without_a_grammar_of_addresses() -> None:
    """Some versions of jsonschema make one whenever they are imported, which every command would wait for."""
    subprocess.run([sys.executable, "-c", "import sys, nbformat; assert 'lark' not in sys.modules"], check=True)


def test_the_environment_has_the_bounds_of_the_project() -> None:
    library, course = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"] for folder in ("", "autograder")
    )
    extras = course["optional-dependencies"]
    known = {*library["dependencies"], *chain(*library["optional-dependencies"].values())}
    known |= {*course["dependencies"], *extras["leaderboard"]}
    wanted = {line for line in known if not line.startswith("tinybench")}
    section = pip_section()
    assert section == sorted(section)
    assert set(section) == wanted | {line for line in extras["dev"] if line.startswith("nbval")}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a clone holds, with the first module alone: releasing takes seconds then."""
    root = tmp_path_factory.mktemp("clone") / "tinybench"
    root.mkdir()
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        if name.startswith("tests/") or (name.startswith("modules/") and "/01_" not in name):
            continue
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name, follow_symlinks=False)
    return root


def blocks() -> list[str]:
    """Return the README's ways in without `make`."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("### Without `make`")[2].partition("\n## ")[0]
    return re.findall(r"```bash\n(.*?)```", section, re.DOTALL)


# What this system cannot or need not do is played: conda and pip by uv (hard links instead of downloads, and the
# pinned versions, for the test is of our names and not of today's releases); JupyterLab ends as soon as it listens.
PLAYED = r"""
set -euo pipefail
pip() { uv "pip" "$@" --constraint "$LOCK"; }
conda() {
    case "$1 $2" in
        "env create") uv venv --quiet "$HOME/conda" && VIRTUAL_ENV="$HOME/conda" pip install -r "$PIP_SECTION" ;;
        "activate tinybench") source "$HOME/conda/bin/activate" ;;
        *) echo "unknown: conda $*"; return 1 ;;
    esac
}
jupyter() {
    : >jupyter.log  # the last way's address stands in it, until this one's server runs
    command jupyter "$@" --no-browser --allow-root --port 0 >>jupyter.log 2>&1 & local server=$!
    for _ in {1..600}; do grep -q "/lab?token=" jupyter.log && break; kill -0 $server; sleep 0.1; done
    grep "/lab?token=" jupyter.log
    kill $server
}
autograder() { if [ "$1" = lab ]; then jupyter lab map.ipynb; else command autograder "$@"; fi; }
"""


@pytest.mark.audit  # `make test` goes the way of students, in the repository that is published for them
@pytest.mark.slow
@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("way", blocks(), ids=lambda block: block.split()[0])
def test_the_ways_in_of_the_readme(way: str, checkout: Path, tmp_path: Path) -> None:
    section = tmp_path / "pip.txt"
    section.write_text("\n".join(pip_section()))
    environment = {
        **{name: value for name, value in ENVIRONMENT.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")},
        "HOME": str(tmp_path),
        "LOCK": str(ROOT / "requirements.lock"),
        "PIP_SECTION": str(section),
        "UV_CACHE_DIR": uv("cache", "dir").stdout.strip(),
    }
    shutil.rmtree(checkout / "student", ignore_errors=True)
    by_hand = "python -m nbconvert --to notebook --execute --output done.ipynb modules/01_result/01_result.ipynb"
    by_hand += (
        "\npython -c 'import tinybench, os; print(os.path.dirname(tinybench.__file__), os.environ[\"VIRTUAL_ENV\"])'"
    )
    run = subprocess.run(
        ["bash", "-c", f"{PLAYED}\n{way}\n{by_hand}"], cwd=checkout, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert (checkout / "student" / "01_result" / "01_result.ipynb").is_file()
    assert (checkout / "modules" / "01_result" / "done.ipynb").is_file()
    assert str(checkout / "tinybench") in run.stdout
    assert str(ROOT) not in run.stdout.splitlines()[-1]


def test_the_hooks_are_valid() -> None:
    """`pre-commit` takes the project's own hooks, whose programs are those of `make lint`."""
    done = subprocess.run([sys.executable, "-m", "pre_commit", "validate-config", ".pre-commit-config.yaml"], cwd=ROOT, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    lint = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nlint:")[2].partition("\n\n")[0]
    programs = [hook["entry"].removeprefix(".venv/bin/").removesuffix(" --fix") for hook in hooks]
    assert [program for program in programs if program.removeprefix("ruff ") not in lint] == []


@pytest.mark.parametrize("name", ["ci", "release"])
def test_the_workflows_run_what_is_there(name: str) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    commands = {step["run"] for step in steps if "run" in step}
    assert commands & {".ci/run", "make dist"}
    for command in commands:
        if command.startswith("make "):
            done = subprocess.run([*command.split(), "-n"], cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr


def test_a_version_is_written_wherever_it_stands(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "CHANGELOG.md", "autograder/pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "autograder.sh").write_text("#!/bin/sh\necho export\n")
    plain = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    wrong = subprocess.run(["make", "-o", ".venv/.ready", "version", "VERSION=2"], cwd=tmp_path, env=plain, capture_output=True, text=True)  # fmt: skip
    assert wrong.returncode
    assert "make version VERSION=0.2.0" in wrong.stderr
    program = tmp_path / ".venv" / "bin" / "autograder"  # the makefile's own folder of programs comes first
    program.parent.mkdir(parents=True)
    (tmp_path / ".venv" / ".ready").touch()
    (tmp_path / "autograder.sh").rename(program)
    program.chmod(0o755)
    done = subprocess.run(["make", "-o", ".venv/.ready", "version", "VERSION=9.8.7"], cwd=tmp_path, env=plain, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    for name in ("pyproject.toml", "autograder/pyproject.toml"):
        assert tomllib.loads((tmp_path / name).read_text(encoding="utf-8"))["project"]["version"] == "9.8.7"
    assert re.search(
        r"^## \[9\.8\.7\] - \d{4}-\d\d-\d\d$", (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8"), re.M
    )

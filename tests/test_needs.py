"""On a machine where something is missing: it is installed, or what needs it is left out and said so; in CI it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

ROOT = Path(__file__).parents[1]
PROGRAMS = "bash cat dirname env mkdir mount prlimit setpriv sh tail touch true unshare"
SUITE = """
import pytest
from tests.needs import require

@pytest.mark.needs("qemu")
@pytest.mark.parametrize("number", range(3))
def test_processor(number): ...

@pytest.fixture(scope="session")
def sandbox():
    require("sandbox")

def test_confined(sandbox): ...

def test_other(): ...
"""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """The only folder of programs on a machine that has none of what the tests need."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in PROGRAMS.split():
        if found := which(name):
            (programs / name).symlink_to(found)
    (programs / "python3").symlink_to(sys.executable)
    return programs


def program(folder: Path, name: str, lines: str) -> None:
    (folder / name).write_text(f"#!/bin/bash\n{lines}\n")
    (folder / name).chmod(0o755)


def run_suite(bare: Path, *options: str, **more: str) -> tuple[int, list[str]]:
    """Run the small suite, without the plugins that it has no use for; return the exit code and the lines."""
    folder = bare.parent
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    (folder / "test_suite.py").write_text(SUITE)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CI", "LEFT_OUT"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.needs", *options]
    env |= {"PATH": str(bare), "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **more}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout.strip().splitlines()


def test_what_needs_the_missing_is_left_out_and_the_last_line_says_so(bare: Path) -> None:
    code, said = run_suite(bare, "-p", "xdist", "-n", "2")
    assert code == 0
    assert said[-1] == (
        "left out: tests that need qemu-user (3), bubblewrap (1); to run them too: apt-get install bubblewrap qemu-user"
    )
    assert said[-2].startswith("1 passed, 4 skipped")


def test_one_line_for_several_runs(bare: Path) -> None:
    kept = {"LEFT_OUT": str(bare.parent / "left-out")}
    run_suite(bare, **kept)
    program(bare, "qemu-x86_64", "exit")
    assert "that need qemu-user (3), bubblewrap (2); to run them too: apt-get" in run_suite(bare, **kept)[1][-1]


def test_in_ci_it_fails(bare: Path) -> None:
    code, said = run_suite(bare, CI="true")
    assert code == 1
    assert said[-1].startswith("1 passed, 4 errors")
    assert "needs qemu: qemu-user cannot be used here: apt-get install qemu-user" in "\n".join(said)


def test_a_sandbox_that_does_not_work(bare: Path) -> None:
    program(bare, "bwrap", "echo 'No permissions to create a new namespace' >&2; exit 1")
    code, said = run_suite(bare)
    assert code == 0
    assert said[-1].endswith("apt-get install qemu-user, and see in `autograder doctor` why bubblewrap does not work")


def install(bare: Path, *needs: str) -> subprocess.CompletedProcess[str]:
    """Run the script that installs what is needed, with any rights that this user has."""
    env = {"PATH": str(bare)}
    return subprocess.run([ROOT / ".ci" / "install-system", *needs], env=env, capture_output=True, text=True)


def test_what_is_missing_is_installed(bare: Path) -> None:
    said = bare.parent / "said"
    program(bare, "sudo", 'shift; exec "$@"')
    program(bare, "qemu-x86_64", "exit")
    program(bare, "apt-get", f'echo "$@" >>{said}\n[[ ${{!#}} != chromium ]]')
    done = install(bare, "qemu", "sandbox", "chromium")
    update, *installed = said.read_text().splitlines()
    assert update.startswith("update")
    assert [line.split()[-1] for line in installed] == ["bubblewrap", "chromium", "libatomic1"], "qemu is there"
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "not installed: chromium (apt-get could not, see above); install by hand: apt-get install chromium"
    ]
    assert install(bare, "sandbox").returncode == 0
    assert install(bare, "qemu").stdout == ""


def test_where_nothing_may_be_installed(bare: Path) -> None:
    done = install(bare, "sandbox")
    assert done.returncode == 1
    assert done.stderr == (
        "not installed: bubblewrap (this system has no apt-get); install by hand: what it calls bubblewrap\n"
    )
    if os.geteuid():
        program(bare, "apt-get", "exit")
        program(bare, "sudo", "exit 1  # asks for a password")
        assert "(that takes root, or sudo without a password)" in install(bare, "sandbox").stderr

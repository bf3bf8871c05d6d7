"""What limits a sandbox's memory, and its priority."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder import time_limits
from autograder.sandbox import cgroup
from autograder.sandbox.bubblewrap import Finished, Limits, command, run_program
from autograder.sandbox.bubblewrap import Mounts as NoMounts
from autograder.sandbox.guest import linux
from autograder.sandbox.root import PROGRAM

MEMORY = 48 * 2**20  # a file may have 64 MB
SHARED = (
    "import mmap, os\nfile = open('/dev/shm/counted', 'w+b')\nos.unlink(file.name)\nfile.truncate({size})\n"
    "area = mmap.mmap(file.fileno(), {size})\nfor i in range(0, {size}, 4096): area[i] = 1\n"
)
HELD = "import os, time\nos.write(1, b'held\\n')\ntime.sleep({seconds})\n"


def confined(code: str, **limits: int) -> Finished:
    """Run code in a sandbox of 48 MB."""
    return run_program([PROGRAM, "-c", code], limits=Limits(**{"memory": MEMORY, **limits}))


@pytest.mark.needs("sandbox")
def test_shared_memory_counts() -> None:
    done = confined(SHARED.format(size=MEMORY + 12 * 2**20) + HELD.format(seconds=300))
    assert done.limit == "it used more than 48 MB of memory"


@pytest.mark.needs("sandbox")
@pytest.mark.parametrize("source", ["mmap.mmap(-1, 4096)", "mmap.mmap(open('/dev/zero', 'r+b').fileno(), 4096)"])
def test_shared_memory_without_a_file_is_refused(source: str) -> None:
    """Its pages stay when the processes that show them give them up."""
    done = confined(f"import mmap\ntry: {source}\nexcept OSError as error: print('refused')")
    assert done.output == b"refused\n", done


@pytest.mark.needs("sandbox")
def test_what_processes_share_counts_once() -> None:
    several = "import os\nfor _ in range(3):\n    if not os.fork(): break\nassert sum(area[::4096]) == {size} // 4096\n"
    size = 50 * 2**20
    done = confined((SHARED + several).format(size=size) + HELD.format(seconds=1), memory=2 * size)
    assert not done.limit
    assert done.code == 0, done.errors.decode()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_memory_of_processes_that_share_it() -> None:
    size = 2**26
    code = (SHARED + "import os\nfor _ in range(3):\n    if not os.fork(): break\nsum(area[::4096])\n").format(
        size=size
    )
    words = [sys.executable, "-c", code + HELD.format(seconds=600)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            said = [process.stdout.readline() for _ in range(4)]
            summed, shared = linux.tree_memory(process.pid), linux.tree_memory(process.pid, 4 * size)
        finally:
            os.killpg(process.pid, 9)
    assert said == [b"held\n"] * 4
    assert summed > 4 * size
    assert size <= shared < 2 * size


@pytest.mark.needs("sandbox")
def test_a_sandbox_gives_way() -> None:
    code = "import os; print(os.getpriority(os.PRIO_PROCESS, 0), open('/proc/self/oom_score_adj').read())"
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    assert confined(code).output.split() == [str(max(mine, 10)).encode(), b"500"]
    assert confined(code, niceness=0).output.split()[0] == str(max(mine, 0)).encode()


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A group of cgroup v2 that this process is in, with nothing below it, on a machine without systemd."""
    monkeypatch.setattr(cgroup, "SYSTEMD", tmp_path / "no-systemd")
    group = tmp_path / "container"
    (group / cgroup.OWN).mkdir(parents=True)
    for name, content in {"controllers": "cpu io memory pids", "subtree_control": "", "procs": "11\n12\n"}.items():
        (group / f"cgroup.{name}").write_text(content)
    (tmp_path / "own").write_text("4:memory:/old\n0::/container\n")
    return group


def test_a_group_is_divided_and_joined(fake: Path) -> None:
    group = cgroup.subtree(fake.parent, fake.parent / "own")
    assert group == fake
    (fake / f"{cgroup.SANDBOX}-1").mkdir()
    cgroup.join(group, cgroup.settings(2**30, 96))
    joined = fake / f"{cgroup.SANDBOX}-{os.getpid()}"
    assert {path.name: path.read_text() for path in joined.iterdir()} == {
        "memory.max": str(2**30), "memory.swap.max": "0", "pids.max": "96", "cpu.weight": "20",
        "cgroup.procs": str(os.getpid()),
    }  # fmt: skip
    assert (fake / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    assert (fake / cgroup.OWN / "cgroup.procs").read_text() == "12", "a group with limits below holds no processes"
    assert not (fake / f"{cgroup.SANDBOX}-1").exists(), "groups that nobody is in are removed"
    (fake.parent / "own").write_text(f"0::/container/{cgroup.OWN}\n")
    assert cgroup.subtree(fake.parent, fake.parent / "own") == fake, "once it is divided, too"


def test_a_group_is_not_taken_from_its_manager_or_without_the_means(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = fake.parent / "own"
    (fake / "cgroup.controllers").write_text("pids")
    assert cgroup.subtree(fake.parent, own) is None
    (fake / "cgroup.controllers").write_text("cpu memory pids")
    assert cgroup.subtree(fake.parent, own) == fake
    monkeypatch.setattr(cgroup, "SYSTEMD", fake)
    assert cgroup.subtree(fake.parent, own) is None
    assert cgroup.subtree(fake.parent / "none", own) is None


@pytest.mark.needs("sandbox")
def test_a_scope_of_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tmp_path / "said"
    program = tmp_path / "systemd-run"
    program.write_text(f'#!/bin/sh\necho "$@" >>{said}\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(cgroup, "SYSTEMD", tmp_path)
    cgroup.scope.cache_clear()
    try:
        assert confined("print(7)").output == b"7\n"
        assert "scopes of systemd" in cgroup.means()
        line = command([PROGRAM], NoMounts(), Limits(memory=2**30))
    finally:
        cgroup.scope.cache_clear()
    trial, *real = said.read_text().splitlines()
    assert trial.endswith("--scope --quiet --collect -- true")
    assert ("--user" in trial) == (os.geteuid() != 0)
    assert any("MemoryMax=" in line for line in real)
    limits = dict(word.split("=") for word in line if word.startswith(("Memory", "Tasks", "CPU")))
    assert int(limits["MemoryMax"]) > 2**30
    assert limits["MemorySwapMax"] == "0"
    assert int(limits["TasksMax"]) > Limits().processes
    assert limits["CPUWeight"] == "20"


@pytest.mark.needs("sandbox")
def test_a_sandbox_ends_with_its_parent() -> None:
    code = f"import subprocess, sys; subprocess.Popen({command([PROGRAM, '-c', 'import time; time.sleep(600)'], NoMounts(), Limits())!r}).wait()"
    with subprocess.Popen([sys.executable, "-c", code]) as parent:
        deadline = time.monotonic() + time_limits.wall(30)
        try:
            while not (found := _below(parent.pid, "time.sleep(600)")) and time.monotonic() < deadline:
                time.sleep(0.05)
        finally:
            parent.kill()
    assert found
    while any(Path(f"/proc/{pid}").exists() for pid in found) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in found if Path(f"/proc/{pid}").exists()]


def _below(pid: int, word: str) -> list[int]:
    """Return the processes below one, where the last one's command line has this word."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *_below(child, "")]
    lines = [Path(f"/proc/{child}/cmdline").read_text() for child in found if Path(f"/proc/{child}").exists()]
    return found if not word or (len(found) > 2 and all(word in line for line in lines[-1:])) else []

"""What a sandbox shows: a Python that works, wherever it and the course are installed, and nothing else of the host."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder import time_limits
from autograder.grading.session import may_lend
from autograder.sandbox.bubblewrap import Limits, Mounts, command, run_program
from autograder.sandbox.root import PROGRAM
from autograder.sandbox.rpc.codec import Channel
from autograder.sandbox.rpc.endpoint import Endpoint
from autograder.sandbox.zygote_client import Sandbox, Zygote

pytestmark = pytest.mark.needs("sandbox")
ROOT = Path(__file__).resolve().parents[2]
OTHER_USER = 1001
WORKS = """
import ctypes, importlib.metadata as metadata, importlib.util as util, json, os, sqlite3, ssl, subprocess, sys, sysconfig
import numpy, scipy.stats, psutil
assert os.getuid() == 65534
assert psutil.virtual_memory().total and psutil.Process().memory_info().rss
assert sysconfig.get_path("purelib").startswith("/python/"), sysconfig.get_path("purelib")
bare = subprocess.run([sys.executable, "-Ic", "import numpy; print(7)"], env={}, capture_output=True, text=True)
assert bare.stdout == "7\\n", bare.stderr
assert subprocess.run("echo 8 | cat", shell=True, capture_output=True).returncode, "there is cat"
assert subprocess.run("echo 8", shell=True, capture_output=True).stdout == b"8\\n"
assert not util.find_spec("autograder") and not util.find_spec("tinybench")
known = [each.name for each in metadata.distributions()]
assert "numpy" in known and not [name for name in known if "tinybench" in name], known
said = [open(f"/proc/{who}/{what}").read() for who in ("self", "1") for what in ("mountinfo", "environ", "cmdline")]
print(json.dumps({"said": [*said, *sys.path, json.dumps(sysconfig.get_config_vars(), default=str)], "top": os.listdir("/")}))
"""
COVERED = """
for name in ("locks", "vmstat", "interrupts", "diskstats", "kallsyms", "cmdline", "timer_list"):
    try:
        assert open(f"/proc/{name}").read() == "", name
    except FileNotFoundError:
        pass  # this kernel has none
import os
assert os.listdir("/proc/sys") == []
"""


def run(code: str, mounts: Mounts | None = None) -> bytes:
    """Run code in a sandbox; return what it printed."""
    done = run_program([PROGRAM, "-sBc", code], mounts=mounts)
    assert done.code == 0, done.errors.decode()
    return done.output


def test_python_works_and_the_host_is_not_named() -> None:
    found = json.loads(run(WORKS))
    inside = {"bin", "lib", "lib64", "sbin", "usr", "etc", "python", "inside", "proc", "dev", "tmp"}
    assert inside.issuperset(found["top"])
    hosts = {str(ROOT), str(Path.home()), sys.prefix, sys.base_prefix, sysconfig.get_path("purelib")} - {"/", "/usr"}
    for text in found["said"]:
        assert not [path for path in hosts if path in text], text


def test_what_counts_for_the_whole_machine_is_covered(zygote: Zygote) -> None:
    run(COVERED)
    assert ask(zygote, COVERED) == ""


HOLD = """
import fcntl, sys
files = [open(path, "rb") for path in sys.argv[1:]]
for file in files:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("held", flush=True)
sys.stdin.read()
"""


def test_two_sandboxes_share_no_lock() -> None:
    paths = [
        PROGRAM,
        "/usr/bin/sh",
        os.__file__.replace(str(Path(os.__file__).parent), "/python/lib/python3"),
        "/etc/ld.so.cache",
    ]
    paths[2] = run("import os; print(os.__file__)").decode().strip()
    paths.append(run("import numpy; print(numpy.__file__)").decode().strip())
    if os.geteuid() == 0:
        paths.append("/dev/null")  # an ordinary user may make no devices, and shows the machine's
    holds = command([PROGRAM, "-c", HOLD, *paths], Mounts(), Limits())
    with subprocess.Popen(holds, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        try:
            held = first.stdout.readline()
            # without the filter of system calls, which refuses locks
            second = subprocess.run(holds, input=b"", capture_output=True, timeout=time_limits.wall(60), check=False)
            filtered = run_program([PROGRAM, "-c", HOLD, *paths])
        finally:
            first.kill()
    assert held == b"held\n"
    assert second.stdout == b"held\n", second.stderr.decode()
    assert b"not implemented" in filtered.errors


OPENED = """
import mmap
area, file = mmap.mmap(-1, 4096), open("/tmp/pigeonhole", "w+")
file.write("empty")
file.flush()
"""
PUT = "import opened, os; opened.area[:4] = b'seen'; os.pwrite(opened.file.fileno(), b'taken', 0)"
GET = "import opened, os; print(opened.area[:4], os.pread(opened.file.fileno(), 9, 0))"


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    folder = tmp_path_factory.mktemp("modules")
    (folder / "opened.py").write_text(OPENED)
    package = ROOT / "tinybench"
    files = {f"/course/tinybench/{path.relative_to(package)}": path for path in package.rglob("*.py")}
    mounts = Mounts(
        {**files, "/course/opened.py": folder / "opened.py"}, ["/course/work"], working_directory="/course/work"
    )
    made = Zygote(["opened"], mounts)
    yield made
    made.close()


def ask(zygote: Zygote, code: str) -> str:
    """Run code in a sandbox of its own; return what it printed."""
    sandbox: Sandbox = zygote.fork()
    try:
        guest: Any = Endpoint(Channel(sandbox.rpc), may_lend).root()
        outputs, error = guest.cell(code)
        assert error is None, error
        return "".join(output.get("text", "") for output in outputs)
    finally:
        sandbox.end()


def test_what_the_zygote_opened_and_mapped_carries_nothing_from_fork_to_fork(zygote: Zygote) -> None:
    ask(zygote, PUT)
    assert ask(zygote, GET) == "b'\\x00\\x00\\x00\\x00' b''\n"
    known = "import os\nfor name in os.listdir('/proc/self/fd'):\n    print(os.path.realpath(f'/proc/self/fd/{name}'))"
    files = ask(zygote, known).split()
    assert {file for file in files if not file.startswith("/proc/")} <= {"/dev/null"}
    assert ask(zygote, "print([line for line in open('/proc/self/maps') if line.split()[1][3] == 's'])") == "[]\n"


PROBED = """
import json
from autograder.sandbox import leak_probe, root
from autograder.sandbox.bubblewrap import doctor, run_program
name, works, line = leak_probe.doctor()
done = run_program([root.PROGRAM, "-sBc", "import os, psutil; print(os.getuid(), os.listdir('/usr'), psutil.__file__)"])
print(json.dumps([root.__file__, works, line, done.output.decode(), done.errors.decode(), doctor()]))
"""


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    """A Python with the course in its own site-packages, not editable, as in Python's container images."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    stdlib, site = Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))
    mine = folder / "lib" / stdlib.name
    shutil.copytree(
        stdlib, mine, ignore=shutil.ignore_patterns("site-packages", "dist-packages", "test", "config-*", "__pycache__")
    )
    for library in stdlib.parent.glob("libpython*.so*"):
        shutil.copy2(library, folder / "lib", follow_symlinks=False)
    (folder / "bin").mkdir()
    shutil.copy2(os.path.realpath(sys._base_executable), folder / "bin" / "python3")  # type: ignore[attr-defined]
    ask = "import site; print(*site.getsitepackages(), sep='\\n')"  # Debian's Python has another folder
    words = [folder / "bin" / "python3", "-Ic", ask]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    packages = next(Path(place) for place in reversed(told) if Path(place).is_relative_to(folder / "lib"))
    for name in ("autograder", "tinybench"):
        shutil.copytree(ROOT / name, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
    for found in [*site.glob("psutil*"), *site.glob("tinybench*.dist-info")]:
        shutil.copytree(found, packages / found.name)
    (packages / "elsewhere.pth").write_text(str(ROOT))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("where", ["a folder of its own", "/usr/local", "an ordinary user's"])
def test_installed_without_an_environment_nothing_of_the_course_is_seen(installed: Path, where: str) -> None:
    words = [str(installed / "bin" / "python3"), "-sc", PROBED]
    if where == "/usr/local":
        rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        bind = 'mount --bind "$0" /usr/local && exec /usr/local/bin/python3 "$@"'
        words = ["unshare", *rights, "--mount", "sh", "-c", bind, str(installed), *words[1:]]
    elif where == "an ordinary user's" and os.geteuid() == 0:
        words = ["setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups", *words]
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LD_LIBRARY_PATH": str(installed / "lib")}
    done = subprocess.run(words, env=env, cwd="/", capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    file, works, line, output, errors, _ = json.loads(done.stdout)
    assert file.startswith("/usr/local/lib/" if where == "/usr/local" else str(installed))
    assert works, line
    assert output.startswith("65534 ['"), errors
    assert "'local'" not in output
    assert "/python/lib/" in output

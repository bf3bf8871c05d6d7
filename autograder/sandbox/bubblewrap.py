"""The sandbox for untrusted code: bubblewrap, resource limits, a system-call filter, and a watchdog.

`run_program` runs one program in a new sandbox, with bytes as input and output. For submissions,
`autograder.sandbox.zygote_client` starts one sandbox per assignment, and forks an inner sandbox for each submission.
"""

from __future__ import annotations

import json
import math
import os
import platform
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from autograder import time_limits
from autograder.sandbox import cgroup, root
from autograder.sandbox.guest import linux, syscalls

ROOM, SUPERVISORS = 2**29, 32  # bytes and processes that a sandbox's cgroup allows beyond a submission's limits
ENVIRONMENT = {
    "PATH": f"{root.PYTHON}/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    "IPYTHONDIR": "/tmp/ipython",
    "ORT_DISABLE_TELEMETRY": "1",  # otherwise ONNX Runtime keeps a database that all forks of a zygote would share
    # thread pools do not survive a fork, and are of no use on a fraction of one core
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}


class SandboxUnavailable(Exception):
    """The machine cannot confine untrusted code. The message gives the reason and what to do."""


@dataclass(frozen=True)
class Limits:
    """Resource limits of sandboxed code. `call_seconds` is the CPU time for one cell, or for one call by a check.

    All times are for a typical idle machine. `autograder.time_limits` converts them for this machine.
    """

    memory: int = 2 * 2**30
    address_space: int = 6 * 2**30
    cpu_seconds: int = 240
    wall_seconds: float = 300
    call_seconds: float = 20
    processes: int = 64
    file_bytes: int = 64 * 2**20
    tmp_bytes: int = 128 * 2**20
    open_files: int = 256
    output_bytes: int = 4 * 2**20
    niceness: int = 10  # the desktop has priority

    def resources(self) -> dict[str, int]:
        """Return the limits that the kernel enforces for each process, keyed by their names in `resource`."""
        return {
            "AS": self.address_space,
            "CPU": math.ceil(time_limits.cpu(self.cpu_seconds)),
            "NPROC": self.processes,
            "FSIZE": self.file_bytes,
            "NOFILE": self.open_files,
        }


@dataclass(frozen=True)
class Finished:
    """The exit code and output of a finished program. `limit` names the limit that ended the program, if any."""

    code: int
    output: bytes
    errors: bytes
    limit: str = ""


@dataclass(frozen=True)
class Mounts:
    """The mounts of a sandbox by their paths inside, in addition to Python and the system libraries (see `root`)."""

    read_only: Mapping[str, Path] = field(default_factory=dict)  # files are copied; folders are mounted directly
    tmpfs: Sequence[str] = ()  # private folders of bounded size
    writable: Mapping[str, Path] = field(default_factory=dict)  # writes are visible outside
    working_directory: str = "/tmp"


def command(
    argv: Sequence[str], mounts: Mounts, limits: Limits, *, zygote: bool = False, filter_fd: int | None = None
) -> list[str]:
    """Return the command that runs `argv` under bubblewrap. Inside, Python is at `root.PROGRAM`.

    If the program is a `zygote`, it keeps all capabilities inside its namespaces, and its processes get no resource
    limits. So it must never run untrusted code itself. `filter_fd` is the file descriptor of a system-call filter.
    """
    private = ("/tmp", "/dev/shm", *mounts.tmpfs)
    late, writable = dict[str, str](), {place: f"/run/writable/{i}" for i, place in enumerate(mounts.writable)}
    for number, place in enumerate(mounts.read_only):
        if place.startswith(tuple(f"{folder}/" for folder in private)):
            late[place] = f"/late/{number}"  # mounted only after the private folder exists
    shown = [(late.get(place, place), source) for place, source in mounts.read_only.items()]
    written = [(writable[place], source) for place, source in mounts.writable.items()]
    # the cgroup also counts the content of private folders, and the libraries that a zygote has loaded
    most = limits.memory + (len(private) + 1) * limits.tmp_bytes + ROOM, limits.processes + SUPERVISORS
    group = cgroup.subtree()
    plan = root.plan(shown, written, [*mounts.tmpfs, *mounts.writable]) | {
        "niceness": limits.niceness, "group": group and str(group), "limits": cgroup.settings(*most)
    }  # fmt: skip
    line = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"]
    line += ["--clearenv", "--uid", str(linux.NOBODY), "--gid", str(linux.NOBODY), "--hostname", "sandbox"]
    line += ["--cap-add", "ALL"] if zygote else ["--disable-userns", "--cap-drop", "ALL"]
    for name, value in ENVIRONMENT.items():
        line += ["--setenv", name, value]
    line += ["--ro-bind", root.NEW, "/", "--proc", "/proc", "--dev", "/dev"]
    line += ["--dev-bind", "/dev/null", "/dev/zero"]  # a mapping of the real one is shared memory that nobody counts
    for place in private:
        line += ["--size", str(limits.tmp_bytes), "--tmpfs", place]
    for place, laid in late.items():
        line += ["--ro-bind", f"{root.NEW}{laid}", place]
    for place, laid in writable.items():
        line += ["--bind", laid, place]
    for name, is_folder in () if zygote else linux.uncovered():  # a zygote must mount its own /proc, and covers that
        line += ["--ro-bind", f"{root.NEW}{linux.EMPTY if is_folder else linux.NOTHING}", f"/proc/{name}"]
    line += ["--remount-ro", "/dev", "--chdir", mounts.working_directory]
    if filter_fd is not None:
        line += ["--seccomp", str(filter_fd)]
    line.append("--")
    if not zygote:
        options = (f"--{name.lower()}={value}" for name, value in limits.resources().items())
        line += ["prlimit", *options, "--core=0", "--"]
    return [*cgroup.launcher(*most), sys.executable, "-sESB", root.STAGE, json.dumps(plan), *line, *argv]


@contextmanager
def filter_file(families: Sequence[int] = syscalls.UNIX_INET_INET6) -> Iterator[int]:
    """Yield the file descriptor of a system-call filter that allows sockets of these address families."""
    with tempfile.TemporaryFile() as rules:
        rules.write(syscalls.seccomp_filter(families))
        rules.seek(0)
        yield rules.fileno()


def run_program(
    argv: Sequence[str], stdin: bytes = b"", *, mounts: Mounts | None = None, limits: Limits | None = None
) -> Finished:
    """Run one untrusted program until it ends or reaches a limit."""
    mounts, limits = mounts or Mounts(), limits or Limits()
    available()
    with filter_file() as rules:
        process = subprocess.Popen(
            command(argv, mounts, limits, filter_fd=rules),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[rules],
            start_new_session=True, env={"PATH": os.environ.get("PATH", "/usr/bin")},
        )  # fmt: skip
    try:
        return _watched(process, stdin, limits)
    finally:
        process.kill()  # when bubblewrap dies, its whole PID namespace dies too
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _watched(process: subprocess.Popen[bytes], stdin: bytes, limits: Limits) -> Finished:
    """Write a program's input, read its output, and kill the program when it reaches a limit."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    outputs: dict[Any, bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    most, unsent, limit = time_limits.wall(limits.wall_seconds), memoryview(stdin), ""
    deadline = time.monotonic() + most
    with _pipes(process) as selector:
        while not limit and any(key.fileobj in outputs for key in selector.get_map().values()):
            for key, _ in selector.select(0.05):
                if key.fileobj is process.stdin:
                    unsent = _feed(key.fd, unsent)
                    if not unsent:
                        selector.unregister(process.stdin)
                        process.stdin.close()
                elif piece := os.read(key.fd, 65536):
                    outputs[key.fileobj].extend(piece)
                else:
                    selector.unregister(key.fileobj)
            if sum(map(len, outputs.values())) > limits.output_bytes:
                limit = f"it wrote more than {limits.output_bytes} bytes"
            elif time.monotonic() > deadline:
                limit = f"it ran longer than {most:.0f} s"
            elif linux.tree_memory(process.pid, limits.memory) > limits.memory:
                limit = f"it used more than {limits.memory / 2**20:.0f} MB of memory"
    if not limit:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.1, deadline - time.monotonic()))
    process.kill()
    output, errors = (bytes(text[: limits.output_bytes]) for text in outputs.values())
    return Finished(process.wait(), output, errors, limit)


@contextmanager
def _pipes(process: subprocess.Popen[bytes]) -> Iterator[selectors.BaseSelector]:
    """Yield a selector for a program's pipes, all set to non-blocking."""
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_WRITE if pipe is process.stdin else selectors.EVENT_READ)
        yield selector


def _feed(pipe: int, unsent: memoryview) -> memoryview:
    """Write the next part of a program's input. Return the rest, which is empty if the program no longer reads."""
    try:
        return unsent[os.write(pipe, unsent[:65536]) :] if unsent else unsent
    except BrokenPipeError:
        return unsent[:0]


def available() -> None:
    """Raise `SandboxUnavailable` unless this machine can confine untrusted code."""
    if why := unavailable():
        raise SandboxUnavailable(why)


def unavailable() -> str:
    """Return why this machine cannot confine untrusted code, and what to do. If it can, return an empty text."""
    return "; ".join(line for name, works, line in doctor() if not works and name != "filter")


@cache
def doctor() -> list[tuple[str, bool, str]]:
    """Return a row for each feature that confinement needs: its name, whether it works, and a line to print."""
    if platform.system() != "Linux":
        return [
            ("system", False, f"submissions are confined by Linux, and this is {platform.system()}: use WSL or Linux")
        ]
    rows = []
    for name in ("bwrap", "prlimit"):
        found = shutil.which(name)
        package = "bubblewrap" if name == "bwrap" else "util-linux"
        rows.append((name, bool(found), found or f"{name} is missing: install the package {package}"))
    if all(works for _, works, _ in rows):
        rows.append(_try_namespaces())
    filtered = bool(syscalls.seccomp_filter())
    line = "system calls are filtered" if filtered else "no filter of system calls for this processor"
    return [*rows, ("filter", filtered, line), ("limits", True, cgroup.means())]


def _try_namespaces() -> tuple[str, bool, str]:
    words = "import os, sys; sys.stdout.write(f'{os.getuid()} {os.getpid() < 20} {os.listdir(chr(47))}')"
    trial = command([root.PROGRAM, "-Ic", words], Mounts(), Limits())
    tried = subprocess.run(trial, capture_output=True, timeout=time_limits.wall(60), check=False)
    if tried.returncode == 0 and tried.stdout.startswith(b"65534 True"):
        return "namespaces", True, "namespaces work, code runs as nobody"
    why = tried.stderr.decode(errors="replace").strip()[-200:]
    return (
        "namespaces", False,
        "bubblewrap cannot start Python here; unprivileged user namespaces may be switched off, "
        f"or overlays in them (Linux before 5.11) ({why})",
    )  # fmt: skip

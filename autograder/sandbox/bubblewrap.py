"""How untrusted code is confined: bubblewrap, resource limits, a filter of system calls, and a watch over it all.

`run` is for one program: bytes in, bytes out (the leaderboard's referee uses it). `autograder.sandbox.zygote` starts a
parent that forks a fresh inner sandbox for each submission.
"""

from __future__ import annotations

import math
import os
import platform
import selectors
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from autograder import pace
from autograder.sandbox.guest import linux

NOBODY = 65534
PYTHON_HOMES = tuple(dict.fromkeys(Path(p) for p in (sys.base_prefix, sys.prefix) if not p.startswith("/usr")))
ENVIRONMENT = {
    "PATH": f"{sys.prefix}/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    "IPYTHONDIR": "/tmp/ipython",
    # pools of threads neither survive a fork nor fit a share of one core
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}


class SandboxUnavailable(Exception):
    """This machine cannot confine untrusted code: why, and what to do."""


@dataclass(frozen=True)
class Limits:
    """What confined code may use; `call_seconds` is the computing of one cell, or of one call of a check.

    Seconds are those of a usual, idle machine: where they are enforced, `autograder.pace` says what they are here.
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

    def resources(self) -> dict[str, int]:
        """Return the limits the kernel keeps for each process, by their names in `resource`."""
        return {
            "AS": self.address_space,
            "CPU": math.ceil(pace.cpu(self.cpu_seconds)),
            "NPROC": self.processes,
            "FSIZE": self.file_bytes,
            "NOFILE": self.open_files,
        }


@dataclass(frozen=True)
class Finished:
    """What became of a program: its outputs, its exit code, and by which limit it ended, if by one."""

    code: int
    output: bytes
    errors: bytes
    limit: str = ""


@dataclass(frozen=True)
class Room:
    """What a sandbox shows, by places inside.

    Attributes
    ----------
    shown
        Read-only files and folders.
    hidden
        Places that appear empty.
    folders
        Private folders to write in, of bounded size.
    start_in
        The working directory.
    shared
        Folders to write in that the outside sees as well.
    """

    shown: Mapping[str, Path] = field(default_factory=dict)
    hidden: Sequence[str] = ()
    folders: Sequence[str] = ()
    start_in: str = "/tmp"
    shared: Mapping[str, Path] = field(default_factory=dict)


def command(
    argv: Sequence[str], room: Room, limits: Limits, *, warm: bool = False, filter_fd: int | None = None
) -> list[str]:
    """Return the command that runs `argv` under bubblewrap.

    Parameters
    ----------
    argv
        Program and arguments.
    room
        What it sees beside Python and the system's libraries.
    limits
        What it may use.
    warm
        Keep capabilities over namespaces of its own, for the warm parent; never for untrusted code.
    filter_fd
        File descriptor of the filter of system calls.
    """
    sources = {str(home): home for home in PYTHON_HOMES} | {**room.shown, **room.shared}
    stage: list[str] = []
    if os.geteuid() == 0:
        # Limits on processes do not hold for root, so another user must run this, who cannot read what lies in root's
        # home: private mounts under /run lay it out where everybody can. Each step replaces the one before, so that
        # bubblewrap stays our child: it is to die with us.
        staged = {place: f"/run/{number}" for number, place in enumerate(sources)}
        steps = ["mount -t tmpfs -o mode=755 tmpfs /run"]
        for place, source in sources.items():
            make = "mkdir" if source.is_dir() else "touch"
            steps.append(f"{make} {staged[place]} && mount --bind {shlex.quote(str(source))} {staged[place]}")
        steps.append(f'exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups "$@"')
        stage = ["unshare", "--mount", "--", "sh", "-c", " && ".join(steps), "sh"]
    else:
        staged = {place: str(source) for place, source in sources.items()}
    line = ["bwrap", "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--clearenv"]
    line += ["--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "sandbox"]
    line += ["--cap-add", "ALL"] if warm else ["--disable-userns", "--cap-drop", "ALL"]
    for name, value in ENVIRONMENT.items():
        line += ["--setenv", name, value]
    line += ["--ro-bind", "/usr", "/usr"]
    for link in ("/bin", "/lib", "/lib64", "/sbin"):
        if os.path.islink(link):
            line += ["--symlink", os.readlink(link), link]
        elif os.path.isdir(link):
            line += ["--ro-bind", link, link]
    line += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--proc", "/proc", "--dev", "/dev"]
    line += ["--size", str(limits.tmp_bytes), "--tmpfs", "/tmp", "--size", str(limits.tmp_bytes), "--tmpfs", "/dev/shm"]
    for place in room.folders:
        line += ["--size", str(limits.tmp_bytes), "--tmpfs", place]
    for place in sources:
        line += ["--bind" if place in room.shared else "--ro-bind", staged[place], place]
    for place in room.hidden:
        line += ["--tmpfs", place, "--remount-ro", place]
    line += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", room.start_in]
    if filter_fd is not None:
        line += ["--seccomp", str(filter_fd)]
    limited = (
        []
        if warm
        else ["prlimit", *(f"--{name.lower()}={value}" for name, value in limits.resources().items()), "--core=0", "--"]
    )
    return [*stage, *line, "--", *limited, *argv]


def within_python(folders: Iterable[Path]) -> list[str]:
    """Return those folders that would be seen along with Python, for `Room.hidden`."""
    return [str(folder) for folder in folders if any(folder.is_relative_to(home) for home in PYTHON_HOMES)]


@contextmanager
def filter_file(families: Sequence[int] = linux.UNIX_INET_INET6) -> Iterator[int]:
    """Yield the file descriptor of a filter of system calls that allows sockets of these families."""
    with tempfile.TemporaryFile() as rules:
        rules.write(linux.seccomp_filter(families))
        rules.seek(0)
        yield rules.fileno()


def run(argv: Sequence[str], stdin: bytes = b"", *, room: Room | None = None, limits: Limits | None = None) -> Finished:
    """Run one untrusted program to its end or to its limits.

    Parameters
    ----------
    argv
        Program and arguments; `sys.executable` is there, with its libraries.
    stdin
        What it reads.
    room
        What else it sees.
    limits
        What it may use; its output is cut at ``output_bytes``, and it is ended there.

    Raises
    ------
    SandboxUnavailable
        If this machine cannot confine it.
    """
    room, limits = room or Room(), limits or Limits()
    available()
    with filter_file() as rules:
        process = subprocess.Popen(
            command(argv, room, limits, filter_fd=rules),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[rules],
            start_new_session=True, env={"PATH": os.environ.get("PATH", "/usr/bin")},
        )  # fmt: skip
    try:
        return _attend(process, stdin, limits)
    finally:
        process.kill()  # bubblewrap takes the whole pid namespace along
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _attend(process: subprocess.Popen[bytes], stdin: bytes, limits: Limits) -> Finished:
    """Feed and read a program under watch."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    outputs = {process.stdout: bytearray(), process.stderr: bytearray()}
    most, todo, limit = pace.wall(limits.wall_seconds), memoryview(stdin), ""
    deadline = time.monotonic() + most
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_WRITE if pipe is process.stdin else selectors.EVENT_READ)
        while not limit and any(key.fileobj in outputs for key in selector.get_map().values()):
            for key, _ in selector.select(0.05):
                if key.fileobj is process.stdin:
                    try:
                        todo = todo[os.write(key.fd, todo[:65536]) :] if todo else todo
                    except BrokenPipeError:
                        todo = todo[:0]
                    if not todo:
                        selector.unregister(process.stdin)
                        process.stdin.close()
                    continue
                piece = os.read(key.fd, 65536)
                outputs[key.fileobj].extend(piece)  # type: ignore[index]
                if not piece:
                    selector.unregister(key.fileobj)
            if sum(map(len, outputs.values())) > limits.output_bytes:
                limit = f"it wrote more than {limits.output_bytes} bytes"
            elif time.monotonic() > deadline:
                limit = f"it ran longer than {most:.0f} s"
            elif linux.tree_memory(process.pid) > limits.memory:
                limit = f"it used more than {limits.memory / 2**20:.0f} MB of memory"
    if limit:
        process.kill()
    else:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.1, deadline - time.monotonic()))
    process.kill()
    most = limits.output_bytes
    return Finished(process.wait(), bytes(outputs[process.stdout][:most]), bytes(outputs[process.stderr][:most]), limit)


def available() -> None:
    """Raise `SandboxUnavailable` unless this machine can confine untrusted code."""
    if why := unavailable():
        raise SandboxUnavailable(why)


def unavailable() -> str:
    """Return why this machine cannot confine untrusted code and what to do, or nothing if it can."""
    return "; ".join(line for name, works, line in doctor() if not works and name != "filter")


_report: list[tuple[str, bool, str]] = []


def doctor() -> list[tuple[str, bool, str]]:
    """Return what this machine can do for confinement: name, whether it works, and a line for people."""
    if not _report:
        _report.extend(_examine())
    return list(_report)


def _examine() -> list[tuple[str, bool, str]]:
    if platform.system() != "Linux":
        return [
            ("system", False, f"submissions are confined by Linux, and this is {platform.system()}: use WSL or Linux")
        ]
    needed = ["bwrap", "prlimit", *(["setpriv", "unshare"] if os.geteuid() == 0 else [])]
    rows = []
    for name in needed:
        found = shutil.which(name)
        package = "bubblewrap" if name == "bwrap" else "util-linux"
        rows.append((name, bool(found), found or f"{name} is missing: install the package {package}"))
    if all(works for _, works, _ in rows):
        words = "import os, sys; sys.stdout.write(f'{os.getuid()} {os.getpid() < 20} {os.listdir(chr(47))}')"
        tried = subprocess.run(
            command([sys.executable, "-Ic", words], Room(), Limits()),
            capture_output=True,
            timeout=pace.wall(60),
            check=False,
        )
        works = tried.returncode == 0 and tried.stdout.startswith(b"65534 True")
        why = "namespaces work, code runs as nobody" if works else (
            "bubblewrap cannot start Python here; unprivileged user namespaces may be switched off "
            f"({tried.stderr.decode(errors='replace').strip()[-200:]})"
        )  # fmt: skip
        rows.append(("namespaces", works, why))
    rules = bool(linux.seccomp_filter())
    rows.append(
        ("filter", rules, "system calls are filtered" if rules else "no filter of system calls for this processor")
    )
    return rows

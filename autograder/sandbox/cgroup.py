"""Control groups (cgroup v2) that limit sandboxes, if this machine provides them.

For a control group, the kernel also counts memory that appears in no process's statistics. If systemd is running, it
creates the group (``systemd-run --scope``). Otherwise, as in containers, the cgroup of this process is divided into
subgroups. If neither works, there is no group, and `linux.tree_memory` adds up the memory of the processes. Only the
standard library is imported here, because `autograder.sandbox.stage` imports this module before anything else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path

MOUNT, SYSTEMD = Path("/sys/fs/cgroup"), Path("/run/systemd/system")
NEEDED = ("memory", "pids", "cpu")
OWN, SANDBOX = "tinybench-grader", "tinybench-sandbox"  # names of the groups for existing processes and for sandboxes
WEIGHT = 20  # CPU weight; the default is 100


def settings(memory: int, processes: int) -> dict[str, str]:
    """Return the limits of a group by file name.

    Swap is off, because with swap, a group that reaches its `memory` limit would only become slow.
    """
    return {
        "memory.max": str(memory), "memory.swap.max": "0", "pids.max": str(processes), "cpu.weight": str(WEIGHT)
    }  # fmt: skip


@cache
def scope() -> tuple[str, ...]:
    """Return the command prefix that starts a systemd scope. If no systemd manager answers, return an empty tuple."""
    program = shutil.which("systemd-run")
    if not program or not SYSTEMD.is_dir():
        return ()
    known = [
        f"{name}={os.environ[name]}" for name in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS") if name in os.environ
    ]
    whose = [] if os.geteuid() == 0 else ["--user"]
    words = ("env", *known, program, *whose, "--scope", "--quiet", "--collect")
    with suppress(OSError, subprocess.TimeoutExpired):
        if subprocess.run([*words, "--", "true"], capture_output=True, timeout=10, check=False).returncode == 0:
            return words
    return ()


def launcher(memory: int, processes: int) -> list[str]:
    """Return the command prefix that starts a command in a systemd scope with these limits.

    Without systemd, the prefix is empty.
    """
    names = {"memory.max": "MemoryMax", "memory.swap.max": "MemorySwapMax", "pids.max": "TasksMax"}
    limits = {names.get(name, "CPUWeight"): value for name, value in settings(memory, processes).items()}
    words = scope()
    return (
        [*words, *(word for name, value in limits.items() for word in ("-p", f"{name}={value}")), "--"] if words else []
    )


def subtree(mount: Path = MOUNT, own: Path = Path("/proc/self/cgroup")) -> Path | None:
    """Return the cgroup that this process may divide into subgroups, or None if there is no such cgroup."""
    if SYSTEMD.is_dir():
        return None  # only systemd's manager may write to the tree
    try:
        name = next(line for line in own.read_text(encoding="utf-8").splitlines() if line.startswith("0::"))
        group = mount / name.removeprefix("0::").strip("/")
        group = group.parent if group.name == OWN else group
        can = set((group / "cgroup.controllers").read_text().split())
    except (OSError, StopIteration):
        return None
    writable = os.access(group, os.W_OK) and os.access(group / "cgroup.subtree_control", os.W_OK)
    return group if writable and can.issuperset(NEEDED) else None


def join(group: Path, limits: dict[str, str]) -> None:
    """Move this process into a new subgroup of `group` with the given limits, and remove empty old subgroups."""
    if not set(NEEDED).issubset((group / "cgroup.subtree_control").read_text().split()):
        _divide(group)
    for old in group.glob(f"{SANDBOX}-*"):
        with suppress(OSError):  # the group still holds a process
            old.rmdir()
    new = group / f"{SANDBOX}-{os.getpid()}"
    new.mkdir(exist_ok=True)
    for name, value in limits.items():
        with suppress(FileNotFoundError):  # a machine without swap has no file for the swap limit
            (new / name).write_text(value)
    (new / "cgroup.procs").write_text(str(os.getpid()))


def _divide(group: Path) -> None:
    """Prepare a group for subgroups with limits.

    Such a group may not hold processes, so move its processes to a subgroup.
    """
    (group / OWN).mkdir(exist_ok=True)
    for process in (group / "cgroup.procs").read_text().split():
        with suppress(OSError):  # the process has ended
            (group / OWN / "cgroup.procs").write_text(process)
    (group / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in NEEDED))


def means() -> str:
    """Return a line that describes how memory and processes are limited on this machine."""
    if scope():
        return "memory, processes and processor time are limited by cgroup v2, in scopes of systemd"
    if group := subtree():
        return f"memory, processes and processor time are limited by cgroup v2, below {group}"
    return "memory is limited by counting pages: no group of cgroup v2 can be had here"

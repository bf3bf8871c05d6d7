"""The few Linux system calls that Python does not provide: namespaces, mounts, capabilities, limits."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import stat
import struct
from pathlib import Path

from .syscalls import seccomp_filter

NEW_NAMESPACES = 0x7E000000  # user, pid, net, ipc, uts, cgroup
NEW_MOUNTS, NEW_USERS = 0x00020000, 0x10000000
READ_ONLY, NOSUID, NODEV, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 4096, 16384, 1 << 18
MAP_FIXED = 16
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_SET_SECCOMP = 1, 38, 24, 22

NOBODY = 65534
EMPTY, NOTHING = "/inside/empty", "/inside/nothing"  # an empty folder and an empty file, mounted over what is hidden
# Files of /proc that stay visible, besides processes and links. vmstat does not stay: without its swap counts, psutil
# warns and continues.
PROC_STILL = {"cpuinfo", "meminfo", "stat", "loadavg", "uptime"}  # a submission reads copies made at start
PROC_KEPT = {"version", "filesystems", *PROC_STILL}

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Move this process from the given namespaces into new ones."""
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount a file system."""
    arguments = (source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())
    _checked(_libc.mount(*arguments), f"mount {kind} on {target}")


def uncovered(folder: str = "/proc") -> list[tuple[str, bool]]:
    """Return the entries of /proc about the whole machine that must be hidden, and whether each is a folder.

    Only the files that psutil and measurements need stay visible. Any other counter of the machine's events could be
    used as a covert channel.
    """
    names = (name for name in os.listdir(folder) if not name.isdigit() and name not in PROC_KEPT)
    found = ((name, os.lstat(f"{folder}/{name}").st_mode) for name in names)
    return sorted((name, stat.S_ISDIR(mode)) for name, mode in found if not stat.S_ISLNK(mode))


def part_with_parent(*kept: int) -> None:
    """Stop sharing open files and memory with the parent process, except for the file descriptors `kept`.

    A library may have opened or mapped a file before the fork. Then one fork could write to the file, and the next fork
    could read it. An inherited descriptor is replaced with the null device, because the library may still use its
    number.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in (nothing, *kept):
            try:
                os.dup2(nothing, int(name), inheritable=False)
            except OSError:  # the descriptor of the listed folder is closed already
                continue
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        area, rights = line.split()[:2]
        if rights[3] == "s":
            start, end = (int(address, 16) for address in area.split("-"))
            _make_private(start, end, rights[0] == "r")


def _make_private(start: int, end: int, readable: bool) -> None:
    """Replace a shared memory mapping with a private copy of its content."""
    content = ctypes.string_at(start, end - start) if readable else b""
    options = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED
    _libc.mmap.restype = ctypes.c_void_p
    sizes = ctypes.c_void_p(start), ctypes.c_size_t(end - start)
    if _libc.mmap(*sizes, mmap.PROT_READ | mmap.PROT_WRITE, options, -1, ctypes.c_long(0)) != start:
        raise OSError(ctypes.get_errno(), "a shared mapping cannot be replaced")
    ctypes.memmove(start, content, len(content))


def map_user(inner: int, user: int, group: int) -> None:
    """Map one outer user and group to `inner` in the user namespace that was just created. Map no other user."""
    Path("/proc/self/setgroups").write_text("deny", encoding="utf-8")
    Path("/proc/self/uid_map").write_text(f"{inner} {user} 1", encoding="utf-8")
    Path("/proc/self/gid_map").write_text(f"{inner} {group} 1", encoding="utf-8")


def drop_privileges() -> None:
    """Drop every capability permanently, and install the system-call filter."""
    _checked(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    for capability in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
            break  # beyond the last capability of this kernel
    header = struct.pack("=Ii", 0x20080522, 0)
    _checked(_libc.capset(header, bytes(24)), "capset")
    program = seccomp_filter(overheard=True)
    if program:
        buffer = ctypes.create_string_buffer(program, len(program))
        fprog = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
        _checked(_libc.prctl(PR_SET_SECCOMP, 2, fprog, 0, 0), "seccomp")


def die_with_parent() -> None:
    """Have the kernel send SIGKILL to this process when its parent dies."""
    _checked(_libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0), "pdeathsig")


def set_limits(limits: dict[str, int]) -> None:
    """Set the soft and hard resource limits, which are keyed by their names in `resource`."""
    import resource  # missing on Windows, where the students' commands must still run

    for name, value in {**limits, "CORE": 0, "MEMLOCK": 0, "MSGQUEUE": 0, "SIGPENDING": 64}.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def tree_memory(pid: int, most: float = math.inf) -> int:
    """Return the bytes of memory that a process and its descendants hold, including shared memory.

    This function is called twenty times a second. So it does not use psutil, which would search all processes of the
    machine for the children. Memory that several processes share is first counted in full for each of them, so the
    sum may be too large. Only if it exceeds `most`, each process's part of the shared memory is read from the kernel,
    which takes longer to compute these parts.
    """
    own, shared, waiting = 0, dict[str, int](), [pid]
    while waiting:
        folder = f"/proc/{waiting.pop()}"
        try:
            lines = Path(f"{folder}/status").read_text(encoding="utf-8").splitlines()
            own += _field(lines, "RssAnon:")
            shared[folder] = _field(lines, "RssShmem:")
            for thread in os.listdir(f"{folder}/task"):
                waiting += [
                    int(child) for child in Path(f"{folder}/task/{thread}/children").read_text(encoding="utf-8").split()
                ]
        except (OSError, ValueError):
            continue  # the process has ended
    held = sum(shared.values())
    for _ in range(3):  # a page that a second process maps while the parts are read counts too much, so read again
        if not own + held > most >= own:
            break
        held = sum(_part(folder, size) for folder, size in shared.items() if size)
    return own + held


def _part(folder: str, size: int) -> int:
    """Return a process's part of the memory that it shares, or all of that memory, `size`, if no part can be read."""
    try:
        return _field(Path(f"{folder}/smaps_rollup").read_text(encoding="utf-8").splitlines(), "Pss_Shmem:")
    except OSError:
        return size


def _field(lines: list[str], name: str) -> int:
    """Return the value of a field in a file under /proc, converted from kB to bytes."""
    return sum(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024

"""The few Linux calls that Python lacks: namespaces, mounts, capabilities, a filter of system calls."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import platform
import stat
import struct
from collections.abc import Sequence
from pathlib import Path

NEW_NAMESPACES = 0x7E000000  # user, pid, net, ipc, uts, cgroup
NEW_MOUNTS, NEW_USERS = 0x00020000, 0x10000000
READ_ONLY, NOSUID, NODEV, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 4096, 16384, 1 << 18
MAP_FIXED = 16
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_SET_SECCOMP = 1, 38, 24, 22

# Refused by name and number: what could carry memory past its limits, reach other processes, or widen the kernel's
# surface. POSIX shared memory and semaphores still work: they live in the bounded /dev/shm.
REFUSED = {
    "x86_64": {
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_getfd": 438, "kcmp": 312,
        "memfd_create": 319, "memfd_secret": 447, "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
        "add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
        "io_uring_setup": 425, "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155,
        "chroot": 161, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432, "mount_setattr": 442,
        "open_by_handle_at": 304, "personality": 135, "sched_setaffinity": 203,
    },
    "aarch64": {
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "pidfd_getfd": 438, "kcmp": 272,
        "memfd_create": 279, "memfd_secret": 447, "shmget": 194, "semget": 190, "msgget": 186, "mq_open": 180,
        "add_key": 217, "request_key": 218, "keyctl": 219, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
        "io_uring_setup": 425, "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41,
        "chroot": 51, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432, "mount_setattr": 442,
        "open_by_handle_at": 265, "personality": 92, "sched_setaffinity": 122,
    },
}  # fmt: skip
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
SOCKET = {"x86_64": 41, "aarch64": 198}
UNIX_INET_INET6 = (1, 2, 10)  # a virtual machine's vsock, for one, knows no network namespace
EPERM, EAFNOSUPPORT = 1, 97
# of /proc, besides processes and links; psutil warns where vmstat says nothing about swapping, and goes on
PROC_KEPT = {"cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems"}

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Leave the given namespaces for fresh ones."""
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount a file system."""
    arguments = (source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())
    _checked(_libc.mount(*arguments), f"mount {kind} on {target}")


def uncovered(folder: str = "/proc") -> list[tuple[str, bool]]:
    """Return what the kernel shows about the whole machine that nobody needs: the name, and whether it is a folder.

    What stays is what psutil and measuring need. Whatever else counts the machine's events is a channel.
    """
    names = (name for name in os.listdir(folder) if not name.isdigit() and name not in PROC_KEPT)
    found = ((name, os.lstat(f"{folder}/{name}").st_mode) for name in names)
    return sorted((name, stat.S_ISDIR(mode)) for name, mode in found if not stat.S_ISLNK(mode))


def part_with_parent(*kept: int) -> None:
    """Share no open file and no memory with the process that forked this one, but for the files `kept`.

    A library may have opened or mapped something before the fork: every fork could write what the next one reads. What
    it opened becomes the null device, for it may use the number still.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in (nothing, *kept):
            try:
                os.dup2(nothing, int(name), inheritable=False)
            except OSError:  # the folder's own is closed by now
                continue
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)
    for line in Path("/proc/self/maps").read_text().splitlines():
        area, rights = line.split()[:2]
        if rights[3] == "s":
            start, end = (int(address, 16) for address in area.split("-"))
            _make_private(start, end, rights[0] == "r")


def _make_private(start: int, end: int, readable: bool) -> None:
    """Replace a shared mapping by a copy of its content."""
    content = ctypes.string_at(start, end - start) if readable else b""
    options = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED
    _libc.mmap.restype = ctypes.c_void_p
    sizes = ctypes.c_void_p(start), ctypes.c_size_t(end - start)
    if _libc.mmap(*sizes, mmap.PROT_READ | mmap.PROT_WRITE, options, -1, ctypes.c_long(0)) != start:
        raise OSError(ctypes.get_errno(), "a shared mapping cannot be replaced")
    ctypes.memmove(start, content, len(content))


def map_user(inner: int, user: int, group: int) -> None:
    """Let one user and group of outside appear as `inner` in the user namespace just created, and nobody else."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{inner} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{inner} {group} 1")


def drop_privileges() -> None:
    """Give up every capability for good, and filter system calls."""
    _checked(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    for capability in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
            break  # past the last one this kernel knows
    header = struct.pack("=Ii", 0x20080522, 0)
    _checked(_libc.capset(header, bytes(24)), "capset")
    program = seccomp_filter()
    if program:
        buffer = ctypes.create_string_buffer(program, len(program))
        fprog = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
        _checked(_libc.prctl(PR_SET_SECCOMP, 2, fprog, 0, 0), "seccomp")


def die_with_parent() -> None:
    """Ask the kernel for SIGKILL when the parent dies."""
    _checked(_libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0), "pdeathsig")


def seccomp_filter(families: Sequence[int] = UNIX_INET_INET6) -> bytes:
    """Return the filter as a classic BPF program, empty on a machine type it was not written for.

    Sockets are of the given address families only.
    """
    machine = platform.machine()
    if machine not in REFUSED:
        return b""
    load, equal, above, give = 0x20, 0x15, 0x35, 0x06
    number, architecture, first_argument = 0, 4, 16
    allow, kill = 0x7FFF0000, 0x80000000
    refuse = 0x00050000

    def line(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("=HBBI", code, yes, no, value)

    program = [line(load, architecture), line(equal, AUDIT_ARCH[machine], yes=1), line(give, kill), line(load, number)]
    program += [line(above, 0x40000000, no=1), line(give, kill)]  # the x32 numbering would slip past
    for refused in REFUSED[machine].values():
        program += [line(equal, refused, no=1), line(give, refuse | EPERM)]
    program += [line(equal, SOCKET[machine], no=len(families) + 2), line(load, first_argument)]
    for index, family in enumerate(families):
        program.append(line(equal, family, yes=len(families) - index))
    program += [line(give, refuse | EAFNOSUPPORT), line(give, allow)]
    return b"".join(program)


def set_limits(limits: dict[str, int]) -> None:
    """Set resource limits by their names in `resource`, soft and hard."""
    import resource  # not on Windows, where the commands for students run all the same

    for name, value in {**limits, "CORE": 0, "MEMLOCK": 0, "MSGQUEUE": 0}.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def tree_memory(pid: int, most: float = math.inf) -> int:
    """Return the bytes a process and its descendants hold, shared memory included.

    By hand, twenty times a second: psutil would look through every process of the machine for the children. Memory that
    several share is counted once only where the sum is more than `most`: that takes the kernel longer to tell.
    """
    own, shared, waiting = 0, dict[str, int](), [pid]
    while waiting:
        folder = f"/proc/{waiting.pop()}"
        try:
            lines = Path(f"{folder}/status").read_text().splitlines()
            own += _field(lines, "RssAnon:")
            shared[folder] = _field(lines, "RssShmem:")
            for thread in os.listdir(f"{folder}/task"):
                waiting += [int(child) for child in Path(f"{folder}/task/{thread}/children").read_text().split()]
        except (OSError, ValueError):
            continue  # it ended meanwhile
    if own + sum(shared.values()) > most >= own:
        for folder, size in shared.items():
            if size:
                try:
                    shared[folder] = _field(Path(f"{folder}/smaps_rollup").read_text().splitlines(), "Pss_Shmem:")
                except OSError:
                    continue  # it may not be looked at: what it holds counts in full
    return own + sum(shared.values())


def _field(lines: list[str], name: str) -> int:
    """Return a field of a file under /proc, which gives it in kB."""
    return sum(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024

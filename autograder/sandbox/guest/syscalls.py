"""The system calls that untrusted code may make: a list of the calls that honest programs need, and no others.

All other calls return `ENOSYS`. Some could hold memory beyond the limits, reach other processes, or enlarge the
kernel's attack surface. Others would let two sandboxes communicate: locks, watches and advice on files that both can
read, and counters that the kernel keeps for the whole machine. `tests/attacks/channels.py` measures the channels that
remain.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

# name, number on x86-64, number on aarch64
CALLS = """
read 0 63; write 1 64; open 2 -; close 3 57; stat 4 -; fstat 5 80; lstat 6 -; poll 7 -; lseek 8 62; mmap 9 222;
mprotect 10 226; munmap 11 215; brk 12 214; rt_sigaction 13 134; rt_sigprocmask 14 135; rt_sigreturn 15 139;
ioctl 16 29; pread64 17 67; pwrite64 18 68; readv 19 65; writev 20 66; access 21 -; pipe 22 -; select 23 -;
sched_yield 24 124; mremap 25 216; msync 26 227; madvise 28 233; dup 32 23; dup2 33 -; pause 34 -;
nanosleep 35 101; getitimer 36 102; alarm 37 -; setitimer 38 103; getpid 39 172; sendfile 40 71; socket 41 198;
connect 42 203; accept 43 202; sendto 44 206; recvfrom 45 207; sendmsg 46 211; recvmsg 47 212; shutdown 48 210;
bind 49 200; listen 50 201; getsockname 51 204; getpeername 52 205; socketpair 53 199; setsockopt 54 208;
getsockopt 55 209; clone 56 220; fork 57 -; vfork 58 -; execve 59 221; exit 60 93; wait4 61 260; kill 62 129;
uname 63 160; fcntl 72 25; fsync 74 82; fdatasync 75 83; truncate 76 45; ftruncate 77 46; getdents 78 -;
getcwd 79 17; chdir 80 49; fchdir 81 50; rename 82 -; mkdir 83 -; rmdir 84 -; creat 85 -; link 86 -; unlink 87 -;
symlink 88 -; readlink 89 -; chmod 90 -; fchmod 91 52; chown 92 -; fchown 93 55; lchown 94 -; umask 95 166;
gettimeofday 96 169; getrlimit 97 163; getrusage 98 165; sysinfo 99 179; times 100 153; getuid 102 174;
getgid 104 176; geteuid 107 175; getegid 108 177; setpgid 109 154; getppid 110 173; getpgrp 111 -; setsid 112 157;
getgroups 115 158; getresuid 118 148; getresgid 120 150; getpgid 121 155; getsid 124 156; capget 125 90;
rt_sigpending 127 136; rt_sigtimedwait 128 137; rt_sigsuspend 130 133; sigaltstack 131 132; utime 132 -;
mknod 133 -; statfs 137 43; fstatfs 138 44; getpriority 140 141; setpriority 141 140; sched_setparam 142 118;
sched_getparam 143 121; sched_setscheduler 144 119; sched_getscheduler 145 120; sched_get_priority_max 146 125;
sched_get_priority_min 147 126; sched_rr_get_interval 148 127; prctl 157 167; arch_prctl 158 -; setrlimit 160 164;
sync 162 81; gettid 186 178; setxattr 188 5; lsetxattr 189 6; fsetxattr 190 7; getxattr 191 8; lgetxattr 192 9;
fgetxattr 193 10; listxattr 194 11; llistxattr 195 12; flistxattr 196 13; tkill 200 130; time 201 -; futex 202 98;
sched_setaffinity 203 122; sched_getaffinity 204 123; epoll_create 213 -; getdents64 217 61;
set_tid_address 218 96; restart_syscall 219 128; fadvise64 221 223; clock_gettime 228 113; clock_getres 229 114;
clock_nanosleep 230 115; exit_group 231 94; epoll_wait 232 -; epoll_ctl 233 21; tgkill 234 131; utimes 235 -;
waitid 247 95; openat 257 56; mkdirat 258 34; mknodat 259 33; fchownat 260 54; futimesat 261 -; newfstatat 262 79;
unlinkat 263 35; renameat 264 38; linkat 265 37; symlinkat 266 36; readlinkat 267 78; fchmodat 268 53;
faccessat 269 48; pselect6 270 72; ppoll 271 73; set_robust_list 273 99; get_robust_list 274 100; utimensat 280 88;
epoll_pwait 281 22; signalfd 282 -; timerfd_create 283 85; eventfd 284 -; fallocate 285 47; timerfd_settime 286 86;
timerfd_gettime 287 87; accept4 288 242; signalfd4 289 74; eventfd2 290 19; epoll_create1 291 20; dup3 292 24;
pipe2 293 59; preadv 295 69; pwritev 296 70; recvmmsg 299 243; prlimit64 302 261; sendmmsg 307 269; getcpu 309 168;
renameat2 316 276; getrandom 318 278; copy_file_range 326 285; statx 332 291; rseq 334 293;
pidfd_send_signal 424 424; pidfd_open 434 434; close_range 436 436; faccessat2 439 439; epoll_pwait2 441 441;
fchmodat2 452 452;
"""
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
UNIX_INET_INET6 = (1, 2, 10)  # other families may ignore network namespaces, such as a virtual machine's vsock
EPERM, EAGAIN, EINVAL, ENOTTY, ENOSYS, ENOTSUP, EAFNOSUPPORT = 1, 11, 22, 25, 38, 95, 97
LOAD, EQUAL, AT_LEAST, ANY_BIT, GIVE = 0x20, 0x15, 0x35, 0x45, 0x06  # opcodes of a BPF program
KILL, REFUSE, PASS = 0x80000000, 0x00050000, 0x7FFF0000
ALLOW, NOTHING = -1, 0  # `NOTHING` reports success without running the call


@dataclass(frozen=True)
class Look:
    """A rule that decides about a system call by the value of one `argument`.

    `answers` maps values to decisions, and `otherwise` is the decision for all other values. A decision is an error
    number for the caller, `ALLOW`, `NOTHING`, or a further rule.
    """

    argument: int
    answers: Mapping[int, int | Look]
    otherwise: int | Look
    mask: bool = False  # the values are bit masks instead: a value matches if any of its bits is set


Answer = int | Look


def _only(argument: int, values: Iterable[int], otherwise: int) -> Look:
    return Look(argument, dict.fromkeys(values, ALLOW), otherwise)


ANSWERS: dict[str, Answer] = {
    "clone": Look(0, {0x7E020000: EPERM}, ALLOW, mask=True),  # no new namespaces; not clone3, whose flags are in memory
    # Operations on descriptors are allowed. Locks do nothing, because read locks work on files that others can read.
    # Leases, notifications and hints on how a file is used are refused. So are larger pipes, because the kernel counts
    # them per user for the whole machine.
    "fcntl": Look(
        1, dict.fromkeys([6, 7, 37, 38], NOTHING) | dict.fromkeys([0, 1, 2, 3, 4, 8, 9, 1030, 1032, 1034], ALLOW),
        EINVAL,
    ),
    # Allowed: settings, size and groups of terminals (not TIOCSTI, TIOCLINUX), FIONREAD, FIONBIO, FIOCLEX, names of
    # network interfaces.
    "ioctl": _only(
        1, [*range(0x5401, 0x5412), 0x5413, 0x5414, 0x541B, 0x5421, 0x5422, 0x5429, 0x5441, 0x5450, 0x5451, 0x5452,
            0x80045430, 0x40045431, 0x8910, 0x8912, 0x8913, 0x8915, 0x8919, 0x891B, 0x8921, 0x8927, 0x8933], ENOTTY
    ),
    "madvise": Look(  # without merging of equal pages and paging out or in; MADV_WILLNEED does nothing
        2, dict.fromkeys([0, 1, 2, 4, 8, 9, 10, 11, *range(14, 20)], ALLOW) | {3: NOTHING}, EINVAL
    ),
    # Shared memory without a file is refused: it stays allocated even after the processes that list it release it.
    "mmap": Look(3, {0x01: Look(3, {0x20: EPERM}, ALLOW, mask=True)}, ALLOW, mask=True),
    # Allowed: death signal, dumpable, name, capability bounds, timer slack, subreaper, no new privileges, huge pages,
    # names of mappings. Refused: further filters, merging of equal pages.
    "prctl": _only(0, [1, 2, 3, 4, 15, 16, 23, 29, 30, 36, 37, 38, 39, 41, 42, 0x53564D41], EINVAL),
    # BPF programs on packets and sockets take memory that the whole machine shares
    "setsockopt": Look(1, {1: Look(2, dict.fromkeys([26, 50, 51, 52], EPERM), ALLOW)}, ALLOW),
    # Nothing in a sandbox is permanent, and other sandboxes can observe a flush of the disk, or advice on a file.
    **dict.fromkeys(["fsync", "fdatasync", "sync", "fadvise64"], NOTHING),
    **dict.fromkeys(["setxattr", "lsetxattr", "fsetxattr"], ENOTSUP),
    "sched_setaffinity": EPERM,  # two sandboxes that choose their cores could communicate on a shared one
}  # fmt: skip
# The kernel identifies a futex that is not private to a process by its memory page, which may belong to a library that
# sandboxes share. So no thread may sleep on one: a wait returns at once and is repeated, and a wake does nothing.
PRIVATE_FUTEX = Look(
    1, {128: ALLOW}, Look(1, {0: EAGAIN, 9: EAGAIN, 9 + 256: EAGAIN, 1: NOTHING, 10: NOTHING}, EPERM), mask=True
)  # fmt: skip
OVERHEARD: dict[str, Answer] = {"futex": PRIVATE_FUTEX, "sysinfo": ENOSYS}


def numbers(machine: str) -> dict[str, int]:
    """Return the number of each listed system call on a machine type, or an empty dict for an unknown type."""
    if machine not in AUDIT_ARCH:
        return {}
    column = list(AUDIT_ARCH).index(machine) + 1
    rows = (row.split() for row in CALLS.split(";") if row.strip())
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def seccomp_filter(families: Sequence[int] = UNIX_INET_INET6, *, overheard: bool = False) -> bytes:
    """Return the filter as a classic BPF program, or empty bytes on an unknown machine type.

    Only sockets of the given address families are allowed. With `overheard`, shared futexes and `sysinfo` are also
    blocked, because the code could use them to signal to another sandbox. `stand_ins` replaces both.
    """
    machine = platform.machine()
    number_of = numbers(machine)
    if not number_of:
        return b""
    sockets = _only(0, families, EAFNOSUPPORT)
    answers = {"socket": sockets, "socketpair": sockets, **ANSWERS, **(OVERHEARD if overheard else {})}
    program = [_line(LOAD, 4), _line(EQUAL, AUDIT_ARCH[machine], yes=1), _line(GIVE, KILL), _line(LOAD, 0)]
    program += [_line(AT_LEAST, 0x40000000, no=1), _line(GIVE, KILL)]  # calls by x32 numbers would bypass the filter
    for name, answer in answers.items():
        block = _answer(answer)
        program += [_line(EQUAL, number_of[name], no=len(block)), *block]
    ordered = sorted(number_of.values())
    starts = [ordered[0], *(after for before, after in pairwise(ordered) if after > before + 1)]
    ends = [*(before for before, after in pairwise(ordered) if after > before + 1), ordered[-1]]
    for start, end in zip(starts, ends, strict=True):
        program += [_line(AT_LEAST, end + 1, yes=3), _line(AT_LEAST, start, no=1), *_answer(ALLOW), *_answer(ENOSYS)]
    return b"".join([*program, *_answer(ENOSYS)])


def _line(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _answer(answer: Answer) -> list[bytes]:
    """Return the BPF instructions that give an answer and end the program."""
    if isinstance(answer, int):
        return [_line(GIVE, PASS if answer == ALLOW else REFUSE | answer)]
    lines = [_line(LOAD, 16 + 8 * answer.argument)]  # the lower half; the kernel too ignores the rest
    for value, given in answer.answers.items():
        block = _answer(given)
        lines += [_line(ANY_BIT if answer.mask else EQUAL, value, no=len(block)), *block]
    return lines + _answer(answer.otherwise)

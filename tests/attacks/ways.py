"""The ways in which two sandboxes might talk: what the one does for a one, and what the other then looks at."""

from __future__ import annotations

import os
import site
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

QUICK, MIDDLE, SLOW = (0.004, 0.001, 0.0003, 0.0001), (0.02, 0.005, 0.001), (0.06, 0.02, 0.005)


@dataclass(frozen=True)
class Talking:
    """A way between two that live at the same time.

    `send` has `bit`, and the time `until` which it lasts; `probe` returns a number. One that is `held` works until then.
    """

    name: str
    setup: str
    send: str
    probe: str
    slots: tuple[float, ...] = QUICK  # seconds for a bit, from slow to fast
    held: bool = False
    noisy: bool = False  # others who use the machine are heard, too
    why: str = ""  # it stays


@dataclass(frozen=True)
class Lasting:
    """A way to one that comes later: `touch` leaves something under a number, and finds out whether it is there.

    What it returns counts, or, when that is 0, the time it took.
    """

    name: str
    setup: str
    prepare: Callable[[], object] = lambda: None  # outside, before
    why: str = ""


def _counter(path: str, word: str, change: str = "float") -> str:
    """Return code that reads the first number after a word in a file of the kernel, or by how much it grew."""
    return f"return {change}(float(open({path!r}).read().split({word!r}, 1)[1].split()[0]))"


NEARBY = "The price of a machine that two share; a core and a machine for each would end it."
# what the kernel forgives root would count as silence
NOBODY = "if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
ALLOCATE = "held = []"
HOLD_MEMORY = "held[:] = [b'x' * 256_000_000] if bit else []"
FORK = "for _ in range(9 * bit):\n    pid = os.fork()\n    if pid == 0: os._exit(0)\n    os.waitpid(pid, 0)"
LOCK = "file = open(shared, 'rb')\nreader = struct.pack('hhqqi', fcntl.F_RDLCK, 0, 0, 1, 0)\nwriter = struct.pack('hhqqi', fcntl.F_WRLCK, 0, 0, 1, 0)\nnone = struct.pack('hhqqi', fcntl.F_UNLCK, 0, 0, 1, 0)"
FUTEX = """
call = {'x86_64': 202, 'aarch64': 98}[os.uname().machine]
file = open(shared, 'rb')
libc.mmap.restype = ctypes.c_void_p
place = ctypes.c_void_p(libc.mmap(None, 4096, 1, 2, file.fileno(), 0))
word = ctypes.c_uint32.from_address(place.value).value
"""
MANY_PIPES = """
ready, kept = os.pipe(), []
def fill():
    for _ in range(11):
        kept.append(os.fork())
        if kept[-1] == 0:
            libc.prctl(1, 9)  # to die with the parent
            try:
                for _ in range(95): os.pipe()
                os.write(ready[1], b"x")
                time.sleep(60)
            finally:
                os._exit(0)
    for _ in kept: os.read(ready[0], 1)
def drain():
    for pid in kept: os.kill(pid, 9)
    while kept: os.waitpid(kept.pop(), 0)
"""
SPIN = """
def spin(until):
    count = 0
    while time.monotonic() < until: count += 1
    return count
def spin_everywhere(until):
    for _ in range(os.cpu_count()):
        if os.fork() == 0:
            spin(until)
            os._exit(0)
    with suppress(ChildProcessError):
        while True: os.wait()
"""

TALKING = [
    Talking("flock", "file = open(shared, 'rb')", "fcntl.flock(file, fcntl.LOCK_EX if bit else fcntl.LOCK_UN)",
            "try: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept BlockingIOError: return 1\nfcntl.flock(file, fcntl.LOCK_UN)\nreturn 0"),
    Talking("locks of fcntl", LOCK, "fcntl.fcntl(file, fcntl.F_SETLK, reader if bit else none)",
            "return struct.unpack('hhqqi', fcntl.fcntl(file, fcntl.F_GETLK, writer))[0] != fcntl.F_UNLCK"),
    Talking("locks of open files", LOCK, "fcntl.fcntl(file, fcntl.F_OFD_SETLK, reader if bit else none)",
            "return struct.unpack('hhqqi', fcntl.fcntl(file, fcntl.F_OFD_GETLK, writer))[0] != fcntl.F_UNLCK"),
    Talking("leases", "held = []", "held[:] = [open(shared)] if bit else []",
            "with open(shared) as file:\n    try: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n    except BlockingIOError: return 1\n    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)\n    return 0"),
    Talking("futex on a library's page", FUTEX, "while bit and time.monotonic() < until: libc.syscall(call, place, 1, 1, None, None, 0)",
            "span = max(until - time.monotonic(), 0)\nwait = struct.pack('qq', 0, int(span * 1e9))\nreturn libc.syscall(call, place, 0, word, wait, None, 0) == 0", MIDDLE, held=True),
    Talking("inotify", "inotify = libc.inotify_init1(os.O_NONBLOCK)\nlibc.inotify_add_watch(inotify, shared.encode(), 0x20)", "if bit: open(shared).close()",
            "try: return len(os.read(inotify, 4096))\nexcept BlockingIOError: return 0", MIDDLE),
    Talking("hints on a file's use", "file = open(shared, 'rb')", "fcntl.fcntl(file, 1036, struct.pack('Q', 2 + bit))", "return struct.unpack('Q', fcntl.fcntl(file, 1035, bytes(8)))[0]"),
    Talking("abstract sockets", "held = []", "while held: held.pop().close()\nif bit:\n    held.append(socket.socket(socket.AF_UNIX)); held[0].bind('\\0' + key)",
            "with socket.socket(socket.AF_UNIX) as end:\n    try: end.bind('\\0' + key)\n    except OSError: return 1\n    return 0"),
    Talking("ports of the loopback", "held, port = [], 20000 + int(key, 16) % 9000", "while held: held.pop().close()\nif bit:\n    held.append(socket.socket()); held[0].bind(('127.0.0.1', port))",
            "with socket.socket() as end:\n    try: end.bind(('127.0.0.1', port))\n    except OSError: return 1\n    return 0"),
    Talking("a file in /tmp", "path = place + '/' + key", "if bit: open(path, 'w').close()\nelif os.path.exists(path): os.unlink(path)", "return os.path.exists(path)"),
    Talking("shared memory in /dev/shm", "path = '/dev/shm/' + key", "if bit: open(path, 'w').close()\nelif os.path.exists(path): os.unlink(path)", "return os.path.exists(path)"),
    Talking("System V shared memory", "name = int(key[:7], 16)\nheld = []", "while held: libc.shmctl(held.pop(), 0, None)\nif bit: held.append(libc.shmget(name, 4096, 0o1600))", "return libc.shmget(name, 4096, 0) >= 0"),
    Talking("room left in /tmp", "path = place + '/' + key", "if bit: open(path, 'wb').write(bytes(2_000_000))\nelif os.path.exists(path): os.unlink(path)", "return os.statvfs(place).f_bavail", MIDDLE),
    Talking("times of a library's file", "", "if bit: open(shared, 'rb').read(1); os.utime(shared)", "return since(os.stat(shared).st_mtime_ns) != 0", MIDDLE),
    Talking("keys of the kernel", "calls = {'x86_64': (248, 250), 'aarch64': (217, 219)}[os.uname().machine]", "libc.syscall(calls[0], b'user', b'tiny', b'x', 1, -4) if bit else libc.syscall(calls[1], 9, libc.syscall(calls[1], 10, -4, b'user', b'tiny', 0), -4)",
            "return libc.syscall(calls[1], 10, -4, b'user', b'tiny', 0) >= 0"),
    Talking("descriptors in flight", NOBODY + "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))\nheld = []\nnull = os.open('/dev/null', 0)\nends = socket.socketpair()",
            "for end in held: end.close()\nheld.clear()\nif bit:\n    held.extend(socket.socketpair())\n    for _ in range(4): held[0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack('i', null) * 200)])",
            "try: ends[0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack('i', null))])\nexcept OSError as error: return error.errno == errno.ETOOMANYREFS\n"
            "os.close(struct.unpack('i', ends[1].recvmsg(1, 100)[1][0][2])[0])\nreturn 0",
            why="The kernel counts them, on their way through sockets, for a user of the whole machine, and `multiprocessing` sends some. A user for each sandbox would end it."),
    Talking("room for pipes", NOBODY + "held = []", "while held: os.close(held.pop())\nif bit:\n    for _ in range(100):\n        held.extend(os.pipe())\n        with suppress(OSError): fcntl.fcntl(held[-1], 1031, 2**20)",
            "ends = os.pipe()\nsize = fcntl.fcntl(ends[0], 1032)\nos.close(ends[0]); os.close(ends[1])\nreturn size < 60000", MIDDLE),
    Talking("many small pipes", NOBODY + MANY_PIPES,
            "fill() if bit and not kept else drain() if not bit else None",
            "ends = os.pipe()\nsize = fcntl.fcntl(ends[0], 1032)\nos.close(ends[0]); os.close(ends[1])\nreturn size < 60000", (0.1, 0.04),
            why="The kernel counts the pages of pipes for a user of the whole machine, and many processes can use them up. A user for each sandbox would end it."),
    Talking("signals that wait", NOBODY + "kind = signal.SIGRTMIN + 3\nsignal.pthread_sigmask(signal.SIG_BLOCK, [kind])\nwith suppress(ValueError): resource.setrlimit(resource.RLIMIT_SIGPENDING, (1000, 1000))\nme = threading.get_ident()",
            "with suppress(OSError):\n    while bit: signal.pthread_kill(me, kind)\nwhile not bit and signal.sigtimedwait([kind], 0): pass",
            "try: signal.pthread_kill(me, kind)\nexcept OSError: return 1\nsignal.sigtimedwait([kind], 0)\nreturn 0", MIDDLE),
    Talking("open files in all", "held = []", "while held: os.close(held.pop())\nif bit: held.extend(os.open('/dev/null', 0) for _ in range(100))", "return float(open('/proc/sys/fs/file-nr').read().split()[0])", MIDDLE, noisy=True),
    Talking("forks in all", "", FORK, _counter("/proc/stat", "processes", "since"), (0.06, 0.02), noisy=True),
    Talking("running processes in all", SPIN, "spin(until) if bit else None", "return float(open('/proc/loadavg').read().split()[3].partition('/')[0])", MIDDLE, noisy=True),
    Talking("idle time in all", SPIN, "spin_everywhere(until) if bit else None", "return since(float(open('/proc/uptime').read().split()[1]))", (0.2, 0.06), noisy=True),
    Talking("free memory in /proc", ALLOCATE, HOLD_MEMORY, _counter("/proc/meminfo", "MemFree:"), (0.3, 0.1), noisy=True),
    Talking("faults in all", "", "if bit: b'x' * 64_000_000", _counter("/proc/vmstat", "pgfault", "since"), SLOW, noisy=True),
    Talking("free memory by sysinfo", ALLOCATE, HOLD_MEMORY, "room = ctypes.create_string_buffer(200)\nif libc.sysinfo(room): raise OSError\nreturn struct.unpack_from('q', room, 40)[0]", (0.3, 0.1), noisy=True),
    Talking("flushes of the disk", "file = open(shared, 'rb')", "while bit and time.monotonic() < until: os.fsync(file); time.sleep(0.001)",
            "start = time.perf_counter()\nos.fsync(file)\nreturn time.perf_counter() - start", SLOW, noisy=True),
    Talking("time on a core", SPIN, "spin_everywhere(until - 0.01) if bit else None", "return spin(until)", (0.1, 0.04), held=True, noisy=True, why=NEARBY),
    Talking("the memory bus", "block = b'x' * 64_000_000", "while bit and time.monotonic() < until: block.count(b'y')",
            "count = 0\nwhile time.monotonic() < until: block.find(b'y', 0, 400_000); count += 1\nreturn count", (0.1, 0.04, 0.01), held=True, noisy=True, why=NEARBY),
]  # fmt: skip


def _little_read() -> list[str]:
    """Return files of the libraries that hardly anybody reads."""
    folders = [Path(place) for place in site.getsitepackages()]
    return sorted(str(path) for folder in folders for path in folder.glob("s*/**/tests/*.py"))


def _forget() -> None:
    """Have the kernel forget what it read of them, as after a start of the machine."""
    for path in _little_read():
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


READ = """
import site
from pathlib import Path
files = sorted(str(path) for folder in map(Path, site.getsitepackages()) for path in folder.glob("s*/**/tests/*.py"))
def touch(number):
    file = os.open(files[number], os.O_RDONLY)
    os.pread(file, 1, 0)
    os.close(file)
    return 0
"""
LASTING = [
    Lasting("a file left in /tmp", "def touch(number):\n    path = f'{place}/left-{number}'\n    found = os.path.exists(path)\n    open(path, 'w').close()\n    return found or 0.5"),
    Lasting("names asked for in vain", "folder = os.path.dirname(json.__file__)\ndef touch(number):\n    os.access(f'{folder}/{key}-{number}', 0)\n    return 0",
            why="The kernel remembers names that a folder does not hold, and answers sooner when asked again. Both must see the libraries; it lasts until memory is short."),
    Lasting("files read before", READ, _forget, why="The kernel keeps what was read of a disk. Of files that are all in memory nothing is to be learnt: this holds after a start of the machine."),
]  # fmt: skip

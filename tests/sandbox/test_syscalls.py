"""The filter of system calls: its numbers, its answers on each type of machine, and honest programs under it."""

from __future__ import annotations

import errno
import platform
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.sandbox.guest import syscalls
from autograder.sandbox.zygote_client import Zygote
from tests.attacks.channels import inside, zygotes

HEADERS = {"x86_64": "x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "asm-generic/unistd.h"}  # of linux-libc-dev
NEWER = {"fchmodat2"}  # than some headers
ALLOWED, KILLED = "allowed", "killed"


@pytest.mark.parametrize("machine", HEADERS)
def test_numbers_are_the_kernels(machine: str) -> None:
    header = Path("/usr/include", HEADERS[machine])
    if not header.exists():
        pytest.skip("the kernel's headers are not here")
    lines = re.findall(r"^#define __NR(?:3264)?_(\w+) (\d+)$", header.read_text(encoding="utf-8"), re.M)
    known = {name: int(number) for name, number in lines}
    if machine == "aarch64":
        known["newfstatat"] = known.pop("fstatat", 0)
    listed = {name: number for name, number in syscalls.numbers(machine).items() if name in known or name not in NEWER}
    assert listed == {name: known.get(name) for name in listed}
    assert len(listed) > 160


def answer(program: bytes, machine: str, number: int, *arguments: int) -> str | int:
    """Run the filter as the kernel would; return the error number, or what else it decides."""
    words = [part for value in [*arguments, *[0] * 6][:6] for part in (value & 0xFFFFFFFF, value >> 32)]
    data = struct.pack("=IIQ12I", number, syscalls.AUDIT_ARCH[machine], 0, *words)
    lines, at, held = list(struct.iter_unpack("=HBBI", program)), 0, 0
    while True:
        code, yes, no, value = lines[at]
        at += 1
        if code == syscalls.LOAD:
            (held,) = struct.unpack_from("=I", data, value)
        elif code == syscalls.GIVE:
            return {syscalls.PASS: ALLOWED, syscalls.KILL: KILLED}.get(value, value & 0xFFFF)
        else:
            true = {syscalls.EQUAL: held == value, syscalls.AT_LEAST: held >= value, syscalls.ANY_BIT: held & value}
            at += yes if true[code] else no


@pytest.mark.parametrize("overheard", [False, True])
@pytest.mark.parametrize("machine", HEADERS)
def test_answers(machine: str, overheard: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    program, number = syscalls.seccomp_filter(overheard=overheard), syscalls.numbers(machine)
    assert len(program) // 8 < 4096, "the kernel takes no more lines"

    def ask(name: str, *arguments: int) -> str | int:
        return answer(program, machine, number[name], *arguments)

    plain = set(number) - set(syscalls.ANSWERS) - set(syscalls.OVERHEARD) - {"socket", "socketpair"}
    assert {ask(name) for name in plain} == {ALLOWED}
    every = {answer(program, machine, other) for other in range(1000) if other not in number.values()}
    assert every == {errno.ENOSYS}
    assert answer(program, machine, 0x40000000 | number["read"]) == KILLED, "the x32 numbering"
    other = next(name for name in HEADERS if name != machine)
    assert answer(program, other, number["read"]) == KILLED
    assert [ask("socket", family) for family in (1, 2, 10, 16, 40)] == [ALLOWED] * 3 + [errno.EAFNOSUPPORT] * 2
    assert ask("clone", 0x3D0F00) == ALLOWED, "a thread"
    assert {ask("clone", 1 << bit | 17) for bit in (17, 25, 26, 27, 28, 29, 30)} == {errno.EPERM}
    assert ask("clone", 1 << 60 | 1 << 28) == errno.EPERM
    assert [ask("fcntl", 3, command) for command in (2, 6, 7, 37, 5, 36, 1024, 1026, 1031, 1036)] == [
        ALLOWED, 0, 0, 0, *[errno.EINVAL] * 6
    ]  # fmt: skip
    assert [ask("ioctl", 0, command) for command in (0x5401, 0x5412, 0x541C)] == [ALLOWED] + [errno.ENOTTY] * 2
    assert [ask("madvise", 0, 0, advice) for advice in (4, 3, 12, 21)] == [ALLOWED, 0] + [errno.EINVAL] * 2
    assert [ask("mmap", 0, 4096, 3, flags) for flags in (0x22, 0x01, 0x03, 0x21, 0x23, 0x8021)] == [ALLOWED] * 3 + [
        errno.EPERM
    ] * 3
    assert [ask("prctl", option) for option in (15, 22, 67)] == [ALLOWED] + [errno.EINVAL] * 2
    assert [ask("setsockopt", 3, *which) for which in ((1, 2), (41, 26), (1, 26))] == [ALLOWED, ALLOWED, errno.EPERM]
    assert ask("futex", 0, 128) == ask("futex", 0, 129 | 256) == ALLOWED
    shared = [errno.EAGAIN, errno.EAGAIN, 0, errno.EPERM] if overheard else [ALLOWED] * 4
    assert [ask("futex", 0, operation) for operation in (0, 9 | 256, 1, 5)] == shared
    assert ask("sysinfo") == (errno.ENOSYS if overheard else ALLOWED)


def test_no_filter_for_what_it_was_not_written_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert syscalls.seccomp_filter() == b""


HONEST = """
import concurrent.futures, json, multiprocessing, os, psutil, sqlite3, subprocess, threading, time
from multiprocessing import shared_memory
context, found = multiprocessing.get_context("fork"), {{}}
def work(lock, value, queue, event):
    for _ in range(200):
        with lock: value.value += 1
    queue.put(value.value)
    event.set()
def processes():
    lock, queue, event = context.Lock(), context.Queue(), context.Event()
    value = context.Value("i", 0, lock=False)
    both = [context.Process(target=work, args=(lock, value, queue, event)) for _ in range(2)]
    for process in both: process.start()
    seen = max(queue.get(timeout=20) for _ in both)
    waited = event.wait(20)
    for process in both: process.join()
    return [seen, waited]
def timeouts():
    start, lock = time.monotonic(), context.Lock()
    lock.acquire()
    return [context.Event().wait(0.05), lock.acquire(timeout=0.05), lock.acquire(False), time.monotonic() - start >= 0.1]
def pool():
    with context.Pool(3) as three: return sum(three.map(abs, range(-100, 0)))
def futures():
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as two: return sum(two.map(abs, range(-9, 0)))
def idle():
    before = os.times()
    with context.Pool(4) as four:
        four.map(abs, range(9))
        time.sleep(0.5)
    after = os.times()
    return sum(after[:4]) - sum(before[:4]) < 0.4
def memory():
    block = shared_memory.SharedMemory(create=True, size=100)
    block.buf[:2] = b"ab"
    same = shared_memory.SharedMemory(block.name)
    block.unlink()
    return bytes(same.buf[:2]).decode()
def database():
    with sqlite3.connect("/tmp/numbers.db") as numbers:
        numbers.execute("create table number (value)")
        numbers.executemany("insert into number values (?)", [(1,), (2,)])
    return numbers.execute("select sum(value) from number").fetchone()[0]
def machine():
    load, total = os.getloadavg(), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return [len(load), total == psutil.virtual_memory().total, len(psutil.getloadavg())]
def shell(): return subprocess.run("echo one | (read word; echo $word); exit 3", shell=True, capture_output=True, text=True).stdout
def spawned():
    with multiprocessing.get_context("spawn").Pool(2) as two: return two.map(abs, [-1])
def threads():
    done = []
    many = [threading.Thread(target=done.append, args=(1,)) for _ in range(20)]
    for thread in many: thread.start()
    for thread in many: thread.join()
    return sum(done)
print(json.dumps({name}()))
"""
RESULTS = {
    "processes": [400, True], "timeouts": [False, False, False, True], "pool": 5050, "futures": 45, "idle": True,
    "memory": "ab", "database": 3, "machine": [3, True, 3], "shell": "one\n", "spawned": [1], "threads": 20,
}  # fmt: skip


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with zygotes(1) as found:
        yield found[0]


@pytest.mark.needs("sandbox")
@pytest.mark.parametrize("name", RESULTS)
def test_honest_programs(name: str, zygote: Zygote) -> None:
    assert inside(zygote, HONEST.replace("{{}}", "{}").replace("{name}", name)) == RESULTS[name]


REFUSED = """
import ctypes, json
call = ctypes.CDLL(None, use_errno=True).syscall
print(json.dumps([ctypes.get_errno() if call(*numbers) < 0 else 0 for numbers in {calls}]))
"""


@pytest.mark.needs("sandbox")
def test_the_kernel_has_the_filter(zygote: Zygote) -> None:
    number = syscalls.numbers(platform.machine())
    if not number:
        pytest.skip("no filter for this processor")
    calls = [(425, 1, 0), (435, 0, 0), (434, 1, 0), (number["clone"], 0x10000011, 0, 0, 0, 0), (number["sysinfo"], 0)]
    expected = [errno.ENOSYS, errno.ENOSYS, 0, errno.EPERM, errno.ENOSYS]
    assert inside(zygote, REFUSED.format(calls=calls)) == expected

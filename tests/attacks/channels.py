"""How fast can two sandboxes talk, in spite of all? ``python -m tests.attacks.channels`` measures, and writes the page.

Each way of talking is tried between two processes outside of any sandbox, which shows that the trial works; between two
sandboxes that live at the same time; and, for what lasts, from one sandbox to the next.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import tinybench
from autograder.sandbox.bubblewrap import Limits, Mounts
from autograder.sandbox.rpc.codec import Channel as Wire
from autograder.sandbox.rpc.endpoint import Endpoint
from autograder.sandbox.zygote_client import Zygote
from tests.attacks.page import write_part
from tests.attacks.ways import LASTING, TALKING, Lasting, Talking
from tinybench.support.basics.table import Table

Run = Callable[[str], Any]
BITS, LASTING_BITS = 160, 600
SOLUTION = 300  # bytes of a short one, compressed

PRELUDE = """
import ctypes, errno, fcntl, json, os, resource, signal, socket, struct, sys, threading, time
from contextlib import suppress
libc = ctypes.CDLL(None, use_errno=True)
key, place = {key!r}, {place!r}
shared = place + "/shared" if os.path.exists(place + "/shared") else json.__file__
seen = [0]
def since(value):
    seen.append(value)
    return value - seen[-2]
def pause(until):
    left = until - time.monotonic()
    if left > 0.0002: time.sleep(left - 0.0001)
    while time.monotonic() < until: pass
"""
SEND = """
{setup}
def send(bit, until):
    {send}
print([])
"""
PROBE = """
{setup}
def probe(until):
    {probe}
print([])
"""
SENDER = """
for number, bit in enumerate({bits}):
    pause({start} + number * {slot})
    with suppress(Exception): send(bit, {start} + (number + 1) * {slot})
print([])
"""
LISTENER = """
values = []
for number in range({count}):
    pause({start} + (number + {offset}) * {slot})
    try: values.append(float(probe({start} + (number + 0.9) * {slot})))
    except Exception: values.append(-1.0)
print(values)
"""
WRITER = """
{setup}
for number, bit in enumerate({bits}):
    if bit:
        with suppress(Exception): touch(number)
print([])
"""
READER = """
{setup}
values, start = [], time.monotonic()
for number in range({count}):
    before = time.perf_counter_ns()
    try: found = float(touch(number))
    except Exception: found = -1.0
    values.append(time.perf_counter_ns() - before if found == 0 else found)
print([time.monotonic() - start, *values])
"""


def _indented(code: str) -> str:
    return code.strip().replace("\n", "\n    ")


@contextmanager
def process() -> Iterator[Run]:
    """Yield a function that runs code in a process outside of any sandbox, and returns what it printed."""
    serve = "import json, sys\nfor line in sys.stdin: exec(json.loads(line), globals())"
    with subprocess.Popen(
        [sys.executable, "-uc", serve], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as it:
        into, out = it.stdin, it.stdout
        assert into is not None
        assert out is not None

        def run(program: str) -> Any:
            into.write(json.dumps(program) + "\n")
            into.flush()
            return json.loads(out.readline())

        try:
            yield run
        finally:
            it.kill()


def inside(zygote: Zygote, program: str) -> Any:
    """Run a program as a cell of a fresh submission, and return what it printed."""
    with submission(zygote) as cell:
        return cell(program)


@contextmanager
def zygotes(number: int) -> Iterator[list[Zygote]]:
    """Start zygotes, as the workers of one batch have them."""
    package = Path(str(tinybench.__file__)).parent
    files = {f"/course/tinybench/{path.relative_to(package)}": path for path in package.rglob("*.py")}
    mounts = Mounts(files, tmpfs=["/course/work"], working_directory="/course/work")
    pair = [Zygote(["numpy", "tinybench.course"], mounts, limits=Limits(call_seconds=60)) for _ in range(number)]
    try:
        yield pair
    finally:
        for zygote in pair:
            zygote.close()


@contextmanager
def submission(zygote: Zygote) -> Iterator[Run]:
    """Yield a function that runs a cell in a fresh sandbox, and returns what it printed."""
    sandbox = zygote.fork()
    guest: Any = Endpoint(Wire(sandbox.rpc), lambda _: False).root()

    def cell(program: str) -> Any:
        outputs, problem = guest.cell(program)
        assert problem is None, problem
        return json.loads("".join(output["text"] for output in outputs).splitlines()[-1])

    try:
        yield cell
    finally:
        sandbox.end()


def carried(bits: Sequence[int], values: Sequence[float]) -> float:
    """Return the information that a listener who knows the first half gets of each further one, in bits.

    It is none unless the guesses are better than chance could make them in one of a thousand trials.
    """
    heard = list(zip(values, bits, strict=True))
    known, secret = heard[: len(heard) // 2], heard[len(heard) // 2 :]
    edges = sorted({value for value, _ in known})
    cuts = [(low + high) / 2 for low, high in pairwise(edges)]
    guesses = [(cut, way) for cut in cuts for way in (0, 1)]
    if not guesses:
        return 0.0
    cut, way = max(guesses, key=lambda guess: sum(((value > guess[0]) ^ guess[1]) == bit for value, bit in known))
    share = sum(((value > cut) ^ way) == bit for value, bit in secret) / len(secret)
    if share < 0.5 + 3.1 * 0.5 / math.sqrt(len(secret)):
        return 0.0
    wrong = 1 - share
    return 1 + sum(p * math.log2(p) for p in (wrong, share) if p)


@contextmanager
def pair_of(way: Talking, zygotes: Sequence[Zygote]) -> Iterator[tuple[Run, Run]]:
    """Yield who sends and who listens: in two sandboxes, or outside where there are no zygotes."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "shared").write_bytes(b"x" * 4096)
        prelude = PRELUDE.format(key=secrets.token_hex(8), place="/tmp" if zygotes else folder)
        both = [submission(zygote) for zygote in zygotes] or [process(), process()]
        with both[0] as sender, both[1] as listener:
            sender(prelude + SEND.format(setup=way.setup, send=_indented(way.send)))
            listener(prelude + PROBE.format(setup=way.setup, probe=_indented(way.probe)))
            yield sender, listener


def talk(way: Talking, zygotes: Sequence[Zygote], slot: float) -> float:
    """Return the bits a second that a way carries, at one bit in so many seconds."""
    message = [random.getrandbits(1) for _ in range(BITS if slot < 0.05 else BITS // 2)]
    with pair_of(way, zygotes) as (sender, listener), ThreadPoolExecutor(1) as other:
        facts = {"bits": message, "count": len(message), "slot": slot, "start": time.monotonic() + 0.3}
        sent = other.submit(sender, SENDER.format(**facts))
        values = listener(LISTENER.format(**facts, offset=0.1 if way.held else 0.6))
        sent.result()
        return carried(message, values) / slot


def taught(way: Talking, zygotes: Sequence[Zygote], bits: int = 24) -> float:
    """Return what a listener gets of each bit who is told when to look, whatever the load of the machine."""
    message = [random.getrandbits(1) for _ in range(bits)]
    values = []
    with pair_of(way, zygotes) as (sender, listener), ThreadPoolExecutor(1) as other:
        for bit in message:
            sent = other.submit(sender, SENDER.format(bits=[bit], start="time.monotonic()", slot=0.2 * way.held))
            if not way.held:
                sent.result()
            values += listener(LISTENER.format(count=1, start="time.monotonic()", offset=0, slot=0.05))
            sent.result()
    return carried(message, values)


def best(way: Talking, once: Callable[[float], float]) -> float:
    """Return the most that a way carries, from slow to fast."""
    rates = [0.0]
    for slot in way.slots:
        rates.append(once(slot))
        if rates[-1] < max(rates) / 2 or (len(rates) == 3 and not any(rates)):
            break
    return max(rates)


def left(way: Lasting, zygotes: Sequence[Zygote], bits: int = LASTING_BITS) -> float:
    """Return the bits a second at which one reads what another has left, in sandboxes of a zygote or outside."""
    message = [random.getrandbits(1) for _ in range(bits)]
    way.prepare()
    with tempfile.TemporaryDirectory() as folder:
        prelude = PRELUDE.format(key=secrets.token_hex(8), place="/tmp" if zygotes else folder)
        facts = {"setup": way.setup, "bits": message, "count": bits}
        with submission(zygotes[0]) if zygotes else process() as writer:
            writer(prelude + WRITER.format(**facts))
        with submission(zygotes[0]) if zygotes else process() as reader:
            seconds, *values = reader(prelude + READER.format(**facts))
    return carried(message, values) * bits / seconds


def figure(rate: float) -> str:
    """Return a number with two digits."""
    return f"{float(f'{rate:.2g}'):,.0f}" if rate >= 10 else f"{rate:.2g}"


def page(rows: Sequence[tuple[Talking | Lasting, float, float]]) -> str:
    """Return the part of the page."""
    system = (
        f"Linux {platform.release()}, {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    )
    silent = [(way, before) for way, before, now in rows if not now]
    table = [
        {
            "by": way.name, "outside, bits a second": figure(before), "between sandboxes": figure(now),
            f"{SOLUTION} bytes take, s": figure(SOLUTION * 8 / now), "why it stays": way.why,
        }
        for way, before, now in sorted(rows, key=lambda row: -row[2]) if now
    ]  # fmt: skip
    closed = ", ".join(f"{way.name} ({figure(before)})" for way, before in silent if before)
    untold = ", ".join(way.name for way, before in silent if not before)
    return "\n\n".join(
        [f"Measured on {system}. What remains, fastest first:", Table(table).markdown(),
         f"Closed, with the bits a second that two processes outside of a sandbox get: {closed}."]
        + ([f"Silent here even outside of a sandbox: {untold}."] if untold else [])
    )  # fmt: skip


def measure(names: Sequence[str] = ()) -> list[tuple[Talking | Lasting, float, float]]:
    """Measure each way outside and between sandboxes."""
    rows: list[tuple[Talking | Lasting, float, float]] = []
    with zygotes(2) as pair:
        for way in (*TALKING, *LASTING):
            if names and way.name not in names:
                continue
            if isinstance(way, Talking):
                rates = best(way, partial(talk, way, [])), best(way, partial(talk, way, pair))
            else:
                rates = left(way, []), left(way, pair)
            rows.append((way, *rates))
            print(f"{way.name:32} outside {figure(rates[0]):>9}   sandboxes {figure(rates[1]):>9}", flush=True)
    return rows


def main() -> None:
    """Measure all, or some by name, and write the page when all were measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these ways")
    names = parser.parse_args().names
    rows = measure(names)
    if not names:
        write_part("channels", page(rows))


if __name__ == "__main__":
    main()

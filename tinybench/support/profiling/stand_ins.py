"""Stand-ins for a stage. They do the same kind of work for any duration, and return the stage's recorded answers."""

from __future__ import annotations

import hashlib
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle, repeat
from statistics import median
from typing import Any, NamedTuple

Stage = Callable[..., Any]


class Kind(NamedTuple):
    """The fractions of a stage's time by kind of work. They add up to 1.

    The kinds are Python code, which releases the interpreter's lock on request; C code that holds the lock (`held`); C
    code that releases the lock (`released`); and waiting.
    """

    python: float
    held: float
    released: float
    waits: float

    def __str__(self) -> str:
        """Return the fractions above 5 % in words."""
        words = ("Python", "C code that keeps the interpreter's lock", "C code that releases it", "waiting")
        return ", ".join(f"{100 * share:.0f} % {word}" for share, word in zip(self, words, strict=True) if share > 0.05)


def _python(amount: float) -> None:
    for _ in range(int(amount)):
        pass


# one function for each kind of work; the amount of work is in arbitrary units; the third does not touch memory
_WORK: tuple[Callable[[float], object], ...] = (
    _python,
    lambda amount: sum(repeat(0, int(amount))),
    lambda amount: hashlib.pbkdf2_hmac("sha256", b"", b"", int(amount)),
)
_PROBES = (40_000, 100_000, 2_000)


def paces() -> tuple[float, ...]:
    """Return the amount of each kind of work that takes 1 s of processor time, and then two overheads of a sleep.

    The overheads are the smallest delay of waking up, in seconds, and the median processor time in seconds of going to
    sleep and waking up.
    """
    found: list[list[float]] = [[] for _ in _WORK]
    for _ in range(9):
        for work, amount, times in zip(_WORK, _PROBES, found, strict=True):
            start = time.thread_time()
            work(amount)
            times.append(time.thread_time() - start)
    late, used = [], []
    for _ in range(9):
        start, start_cpu = time.perf_counter(), time.thread_time()
        time.sleep(1e-3)
        used.append(time.thread_time() - start_cpu)
        late.append(time.perf_counter() - start - 1e-3)
    rates = (amount / max(median(times), 1e-9) for amount, times in zip(_PROBES, found, strict=True))
    return *rates, min(late), median(used)


class Delay(NamedTuple):
    """A function that takes as long as a stage and does the same kinds of work, one kind after the other."""

    kind: Kind
    seconds: float
    paces: tuple[float, ...]

    def __call__(self, *_: Any, less: float = 0.0, **__: Any) -> None:
        """Work for as long as the stage takes, minus `less` seconds that have already passed."""
        seconds = max(0.0, self.seconds - less)
        for work, pace, share in zip(_WORK, self.paces, self.kind, strict=False):
            if share * seconds * pace >= 1:
                work(share * seconds * pace)
        if self.kind.waits:
            time.sleep(max(0.0, self.kind.waits * seconds - self.paces[3]))


class Answers:
    """A cache of a stage's outputs by input. Inputs and outputs are pickled so that later changes have no effect.

    For an unknown input, the stage runs.
    """

    def __init__(self, pairs: Mapping[bytes, bytes], stage: Stage) -> None:
        self.by_input, self.stage = {_digest(given): answer for given, answer in pairs.items()}, stage

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the recorded answer to this input. If the input is unknown, run the stage and record its answer."""
        given = _digest(pickle.dumps((args, kwargs)))
        if given not in self.by_input:
            self.by_input[given] = pickle.dumps(self.stage(*args, **kwargs))
        return pickle.loads(self.by_input[given])


def _digest(given: bytes) -> bytes:
    return hashlib.blake2b(given, digest_size=16).digest()


class StandIn:
    """A stand-in that does similar work and returns a stage's recorded answers. `delays` has one item per answer."""

    def __init__(self, answers: Answers, delays: Sequence[Delay]) -> None:
        self.answers, self.delays = answers, dict(zip(answers.by_input, delays, strict=True))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the recorded answer after the delay of this input. For an unknown input, raise KeyError."""
        start = time.perf_counter()
        given = _digest(pickle.dumps((args, kwargs)))
        if given not in self.answers.by_input:
            raise KeyError("a stage was given what it was not given in the trial runs: its answer is not known")
        answer = pickle.loads(self.answers.by_input[given])
        self.delays[given](less=time.perf_counter() - start)
        return answer

    def faster(self, speedup: float) -> StandIn:
        """Return a stand-in whose delays are shorter by the factor `speedup`."""
        delays = [delay._replace(seconds=delay.seconds / speedup) for delay in self.delays.values()]
        return StandIn(self.answers, delays)


@contextmanager
def _ticks(interval: float) -> Iterator[list[int]]:
    """Set the switch interval. Yield a list whose only item counts how often another thread gets Python's lock."""
    count, over, before = [0], threading.Event(), sys.getswitchinterval()

    def tick() -> None:
        while not over.is_set():
            time.sleep(5e-5)
            count[0] += 1

    thread = threading.Thread(target=tick, daemon=True)
    sys.setswitchinterval(interval)
    thread.start()
    try:
        yield count
    finally:
        sys.setswitchinterval(before)
        over.set()
        thread.join()


def _tick_rates(calls: Sequence[Callable[[], Any]], interval: float, at_least: float = 0.08) -> list[float]:
    """Return how often per second another thread gets the interpreter's lock during each call. The calls alternate."""
    spent, ticked = [0.0] * len(calls), [0] * len(calls)
    with _ticks(interval) as count:
        while min(spent) < at_least:
            for i, call in enumerate(calls):
                start, before = time.perf_counter(), count[0]
                call()
                ticked[i] += count[0] - before
                spent[i] += time.perf_counter() - start
    return [ticks / seconds for ticks, seconds in zip(ticked, spent, strict=True)]


def _between(value: float, low: float, high: float) -> float:
    """Return the position of a value between `low` (0) and `high` (1), clipped. Snap to 0 or 1 if closer than 0.15."""
    share = min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.0
    return round(share) if min(share, 1 - share) < 0.15 else share


def look_closely(
    stage: Stage, inputs: Sequence[bytes], paces: tuple[float, ...], cpu_beside: float | None = None, passes: int = 3
) -> tuple[Kind, list[float]]:
    """Run a stage alone. Return the fractions of its kinds of work, and its duration in s for each pickled input.

    In the pipeline, a call takes `cpu_beside` seconds of processor time on average, because other stages share caches
    and memory. If `cpu_beside` is given, the measured processor time is scaled to this average.
    """
    given = [pickle.loads(each) for each in inputs]
    times: list[list[tuple[float, float]]] = [[] for _ in inputs]
    for _ in range(passes):
        for (args, kwargs), found in zip(given, times, strict=True):
            start, start_cpu = time.perf_counter(), time.thread_time()
            stage(*args, **kwargs)
            cpu = time.thread_time() - start_cpu
            found.append((cpu, time.perf_counter() - start - cpu))
    idle = sorted(wait for found in times for _, wait in found)
    busy = [median(cpu for cpu, _ in found) for found in times]
    usual = idle[len(idle) // 4]  # only some calls lose processor time to other programs
    waits = [min(wait for _, wait in found) if usual > 0.03 * median(busy) else 0.0 for found in times]
    slower = cpu_beside * len(busy) / sum(busy) if cpu_beside and sum(busy) else 1.0
    lengths = [slower * a + b for a, b in zip(busy, waits, strict=True)]
    asleep = sum(paces[-1] for wait in waits if wait)  # the processor time for going to sleep is not work
    waiting = min(1.0, (sum(waits) + asleep) / sum(lengths))
    if waiting > 0.95:
        return Kind(0.0, 0.0, 0.0, 1.0), lengths
    waiting = waiting if waiting > 0.05 else 0.0
    turn = cycle(given)

    def call() -> None:
        args, kwargs = next(turn)
        stage(*args, **kwargs)

    mean, rest = sum(lengths) / len(lengths), 1 - waiting
    python_like, held_like, free_like = (
        Delay(kind, mean, paces).__call__
        for kind in (Kind(rest, 0, 0, waiting), Kind(0, rest, 0, waiting), Kind(0, 0, rest, waiting))
    )
    free = _between(*_tick_rates([call, held_like, free_like], 1.0)) * rest
    python = _between(*_tick_rates([call, held_like, python_like], 1e-4)) if free < rest else 0.0
    python = (rest - free) * round(python)
    return Kind(python, rest - free - python, free, waiting), lengths

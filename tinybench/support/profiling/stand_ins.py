"""Work that stands in for a stage: of the same kind, of any length, and with the stage's recorded answers."""

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
    """What a stage spends its time on, as shares that add up to 1.

    Python that gives the interpreter's lock away when asked; C code that keeps it; C code that releases it; waiting.
    """

    python: float
    held: float
    released: float
    waits: float

    def __str__(self) -> str:
        """Return the shares above a twentieth in words."""
        words = ("Python", "C code that keeps the interpreter's lock", "C code that releases it", "waiting")
        return ", ".join(f"{100 * share:.0f} % {word}" for share, word in zip(self, words, strict=True) if share > 0.05)


def _python(amount: float) -> None:
    for _ in range(int(amount)):
        pass


# so much work of each kind, whatever the unit; the third does not touch memory
_WORK: tuple[Callable[[float], object], ...] = (
    _python,
    lambda amount: sum(repeat(0, int(amount))),
    lambda amount: hashlib.pbkdf2_hmac("sha256", b"", b"", int(amount)),
)
_PROBES = (40_000, 100_000, 2_000)


def paces() -> tuple[float, ...]:
    """Return how much of each kind of work takes a processor 1 s, then what a sleep takes at least besides.

    That is how many s the sleeper wakes up late, and how many s of a processor going to sleep and waking up take.
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
    """Takes as long as a stage would, in its way: each kind of work in one piece."""

    kind: Kind
    seconds: float
    paces: tuple[float, ...]

    def __call__(self, *_: Any, less: float = 0.0, **__: Any) -> None:
        """Take the time, `less` s that are over already."""
        seconds = max(0.0, self.seconds - less)
        for work, pace, share in zip(_WORK, self.paces, self.kind, strict=False):
            if share * seconds * pace >= 1:
                work(share * seconds * pace)
        if self.kind.waits:
            time.sleep(max(0.0, self.kind.waits * seconds - self.paces[3]))


class Answers:
    """What a stage answered to what, both pickled, so that nobody can change them; it is asked for what is new."""

    def __init__(self, pairs: Mapping[bytes, bytes], stage: Stage) -> None:
        self.by_input, self.stage = {_digest(given): answer for given, answer in pairs.items()}, stage

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the answer, which is recorded if it is new."""
        given = _digest(pickle.dumps((args, kwargs)))
        if given not in self.by_input:
            self.by_input[given] = pickle.dumps(self.stage(*args, **kwargs))
        return pickle.loads(self.by_input[given])


def _digest(given: bytes) -> bytes:
    return hashlib.blake2b(given, digest_size=16).digest()


class StandIn:
    """Gives a stage's recorded answers after a delay in its way; `delays` by input, in the order of the answers."""

    def __init__(self, answers: Answers, delays: Sequence[Delay]) -> None:
        self.answers, self.delays = answers, dict(zip(answers.by_input, delays, strict=True))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Answer, and take the rest of the time."""
        start = time.perf_counter()
        given = _digest(pickle.dumps((args, kwargs)))
        if given not in self.answers.by_input:
            raise KeyError("a stage was given what it was not given in the trial runs: its answer is not known")
        answer = pickle.loads(self.answers.by_input[given])
        self.delays[given](less=time.perf_counter() - start)
        return answer

    def faster(self, speedup: float) -> StandIn:
        """Return the same with shorter delays."""
        delays = [delay._replace(seconds=delay.seconds / speedup) for delay in self.delays.values()]
        return StandIn(self.answers, delays)


@contextmanager
def _ticks(interval: float) -> Iterator[list[int]]:
    """Count in another thread how often it gets the interpreter's lock, which all keep for so many s if they can."""
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
    """Return how many times a second another thread gets the interpreter's lock during calls, made in turn."""
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
    """Return where a value lies between two others: 0 at the first, 1 at the second, and never beyond."""
    share = min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.0
    return round(share) if min(share, 1 - share) < 0.15 else share


def look_closely(
    stage: Stage, inputs: Sequence[bytes], paces: tuple[float, ...], cpu_beside: float | None = None, passes: int = 3
) -> tuple[Kind, list[float]]:
    """Return what a stage spends its time on, and the seconds for each of its pickled inputs, with nobody beside it.

    With other stages beside it, a call takes `cpu_beside` s of a processor in the mean: they share caches and memory.
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
    usual = idle[len(idle) // 4]  # what others took of a processor's time is in some calls only
    waits = [min(wait for _, wait in found) if usual > 0.03 * median(busy) else 0.0 for found in times]
    slower = cpu_beside * len(busy) / sum(busy) if cpu_beside and sum(busy) else 1.0
    lengths = [slower * a + b for a, b in zip(busy, waits, strict=True)]
    asleep = sum(paces[-1] for wait in waits if wait)  # what going to sleep takes of a processor is no work
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

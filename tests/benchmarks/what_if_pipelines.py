"""Pipelines of known stages, each of which can really be made faster: drawn by a seed, in four families."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import queue
import random
import threading
import time
import timeit
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from statistics import median
from typing import Any

import numpy as np

from tinybench.support.profiling.what_if_experiment import Run, Stage, in_order

FAMILIES = ("sequential", "threads", "threads that share the interpreter", "two processes and a queue", "a lock")
ITEMS = 25
_BYTES, _NUMBERS, _LIST = bytes(1 << 23), np.linspace(0.0, 1.0, 1 << 20), [0.5] * (1 << 17)


def _python(amount: int) -> None:
    for _ in range(amount):
        pass


# what a stage does: what holds the interpreter's lock (in Python, in C), what releases it, what waits
KINDS: dict[str, Callable[[int], Any]] = {
    "python": _python,
    "json": lambda amount: json.dumps(_LIST[:amount]),
    "hash": lambda amount: hashlib.sha256(memoryview(_BYTES)[:amount]).digest(),
    "numpy": lambda amount: np.power(_NUMBERS[:amount], 1.37).sum(),
    "wait": lambda amount: time.sleep(max(0.0, amount * 1e-6 - lateness())),
}
HOLDING, RELEASING = ("python", "json"), ("hash", "numpy", "wait")
_TRIAL = {"python": 50_000, "json": 5_000, "hash": 500_000, "numpy": 20_000}


@cache
def lateness() -> float:
    """Return how many s a sleeper wakes up late: a stage that waits is five times as fast with all it waits for."""
    return median(timeit.repeat(lambda: time.sleep(2e-4), repeat=49, number=1)) - 2e-4


@cache
def amount_per_second(kind: str) -> float:
    """Return how much of a kind of work takes 1 s."""
    if kind == "wait":
        return 1e6
    return _TRIAL[kind] / min(timeit.repeat(lambda: KINDS[kind](_TRIAL[kind]), repeat=9, number=1))


@dataclass(frozen=True)
class Known:
    """A stage that does a known amount of work and hands on what it was given."""

    kind: str
    amount: int

    def __call__(self, item: Any) -> Any:
        KINDS[self.kind](self.amount)
        return item

    def faster(self, speedup: float) -> Known:
        """Return the stage really made faster."""
        return replace(self, amount=max(1, round(self.amount / speedup)))


def thread_per_stage(stages: Mapping[str, Stage], length: int) -> None:
    """Send items through a thread for each stage, with a queue of some length before each."""
    queues: list[queue.Queue[Any]] = [queue.Queue(length) for _ in stages]

    def work(stage: Stage, source: queue.Queue[Any], target: queue.Queue[Any] | None) -> None:
        while (item := source.get()) is not None:
            answer = stage(item)
            if target:
                target.put(answer)
        if target:
            target.put(None)

    targets = [*queues[1:], None]
    threads = [threading.Thread(target=work, args=each) for each in zip(stages.values(), queues, targets, strict=True)]
    for thread in threads:
        thread.start()
    for item in range(1, ITEMS + 1):
        queues[0].put(item)
    queues[0].put(None)
    for thread in threads:
        thread.join()


def pool_of_threads(stages: Mapping[str, Stage], workers: int, inside: str = "") -> None:
    """Have threads take items and send each through all stages; one of them only `inside` a lock."""
    rest, lock = iter(range(ITEMS)), threading.Lock()

    def work() -> None:
        for item in rest:
            for name, stage in stages.items():
                with lock if name == inside else nullcontext():
                    item = stage(item)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _second_half(source: Any, stages: list[Stage], done: Any) -> None:
    while (item := source.get()) is not None:
        for stage in stages:
            item = stage(item)
    done.send(True)


def two_processes(stages: Mapping[str, Stage], first: int, length: int) -> None:
    """Run the first stages here and the others in a process of their own, with a queue between."""
    here, there = list(stages.values())[:first], list(stages.values())[first:]
    between: Any = multiprocessing.Queue(length)
    end, done = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_second_half, args=(between, there, done))
    process.start()
    for item in range(1, ITEMS + 1):
        for stage in here:
            item = stage(item)
        between.put(item)
    between.put(None)
    end.recv()
    process.join()


@dataclass
class Pipeline:
    """A pipeline: how it runs, its stages, and the one that is to be faster."""

    told: str
    run: Run
    stages: dict[str, Known]
    name: str

    def faster(self, speedup: float) -> dict[str, Stage]:
        """Return the stages, one of them really made faster."""
        return {**self.stages, self.name: self.stages[self.name].faster(speedup)}


def draw(family: str, seed: int) -> Pipeline:
    """Draw a pipeline: how many stages of which kinds, how long each is, how they run and which one shall be faster."""
    rng = random.Random(f"{family} {seed}")
    if family == "a lock":
        kinds = [rng.choice(RELEASING) for _ in range(3)]
    elif "threads" in family:
        count = rng.randint(3, 4)
        holding = rng.randint(0, 1) if family == "threads" else rng.randint(2, count)
        kinds = [rng.choice(HOLDING) for _ in range(holding)] + [rng.choice(RELEASING) for _ in range(count - holding)]
        rng.shuffle(kinds)
    else:
        kinds = [rng.choice(list(KINDS)) for _ in range(rng.randint(3, 4))]
    lengths = [0.0003 * 6 ** rng.random() for _ in kinds]  # 0.3 to 1.8 ms
    stages = {
        f"{name} {kind}": Known(kind, max(1, round(seconds * amount_per_second(kind))))
        for name, kind, seconds in zip("abcd", kinds, lengths, strict=False)
    }
    if family == "sequential":
        run, how = in_order(range(ITEMS)), "chain"
    elif family == "a lock":
        inside = rng.choice(list(stages))
        run, how = (lambda s: pool_of_threads(s, 2, inside)), f"two threads, {inside} in a lock"
    elif "processes" in family:
        first, length = rng.randint(1, len(stages) - 1), rng.randint(1, 4)
        run, how = (lambda s: two_processes(s, first, length)), f"{first} here, queue of {length}"
    elif rng.random() < 0.5:
        length = rng.randint(1, 4)
        run, how = (lambda s: thread_per_stage(s, length)), f"a thread for each, queues of {length}"
    else:
        workers = rng.randint(2, 3)
        run, how = (lambda s: pool_of_threads(s, workers)), f"{workers} threads"
    return Pipeline(how, run, stages, rng.choice(list(stages)))

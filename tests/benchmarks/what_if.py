"""Does `what_if` tell beforehand what a faster stage really brings end to end?

Pipelines are drawn by a seed: stages of known work in Python, in C that keeps or releases the interpreter's lock, and
stages that wait; in a chain, in threads, in two processes with a queue between, around a lock. A process that never rests
is on beside them (``--quiet``: none).

The truth: the work of the stage is really made smaller, 1.25, 2 and 5 times. These runs are in the same shuffled rounds
as those of `what_if`, which does not know what a stage does. Where the truth is not known to 1 point afterwards, it is
measured longer, together with the plain runs.

Beside it stands what a profile's share promises, by clocks in every stage: share × (1 − 1 / speed-up).
"""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import queue
import random
import threading
import time
import timeit
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from statistics import median
from typing import Any

import numpy as np

from tests.benchmarks.formats import grouped, lines
from tests.benchmarks.harness import NO_BLAS, Benchmark, Part, Records, Trial
from tinybench.bottleneck import what_if
from tinybench.support.profiling.what_if_experiment import Run, Stage, WhatIf, in_order, in_rounds

FAMILIES = ("sequential", "threads", "threads that share the interpreter", "two processes and a queue", "a lock")
SPEEDUPS = (1.25, 2.0, 5.0)
TOLERANCE, SURE = 0.03, 0.01
GOAL = 0.9
ASKED = ("sequential", "threads", "two processes and a queue", "a lock")  # the families that must reach the goal
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
        return replace(self, amount=max(1, round(self.amount / speedup)))


def thread_per_stage(stages: Mapping[str, Stage], length: int) -> None:
    """Send items through a thread for each stage, with a queue of some length before each."""
    queues = [queue.Queue[Any](length) for _ in stages]

    def work(stage: Stage, source: queue.Queue[Any], target: queue.Queue[Any]) -> None:
        for item in iter(source.get, None):
            target.put(stage(item))
        target.put(None)

    with ThreadPoolExecutor(len(stages)) as pool:
        for each in zip(stages.values(), queues, [*queues[1:], queue.Queue[Any]()], strict=True):
            pool.submit(work, *each)
        for item in (*range(1, ITEMS + 1), None):
            queues[0].put(item)


def pool_of_threads(stages: Mapping[str, Stage], workers: int, inside: str = "") -> None:
    """Have threads take items and send each through all stages; one of them only `inside` a lock."""
    lock = threading.Lock()

    def work(item: int) -> None:
        for name, stage in stages.items():
            with lock if name == inside else nullcontext():
                stage(item)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(ITEMS)))


def _second_half(source: Any, stages: list[Stage]) -> None:
    for item in iter(source.get, None):
        for stage in stages:
            stage(item)


def two_processes(stages: Mapping[str, Stage], first: int, length: int) -> None:
    """Run the first stages here and the others in a process of their own, with a queue between."""
    every = list(stages.values())
    between: Any = multiprocessing.Queue(length)
    process = multiprocessing.Process(target=_second_half, args=(between, every[first:]))
    process.start()
    for item in range(1, ITEMS + 1):
        for stage in every[:first]:
            stage(item)
        between.put(item)
    between.put(None)
    process.join()


@dataclass
class Pipeline:
    told: str
    run: Run
    stages: dict[str, Known]
    name: str

    def faster(self, speedup: float) -> dict[str, Stage]:
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


def half_width(found: WhatIf, arm: str) -> float:
    _, low, high = found.saved(arm)
    return (high - low) / 2


def measured(trial: Trial) -> Records:
    """Ask what a faster stage would bring, and make it faster in the same rounds; shares of the present time."""
    [family], max_seconds = trial.case, trial.options.seconds
    pipeline = draw(family, trial.round)
    real = {f"really {speedup:g}×": pipeline.faster(speedup) for speedup in SPEEDUPS}
    if family == "sequential":
        max_seconds *= 2.5  # a round of repeats is some four times as long as one of stand-ins
    found = what_if(pipeline.run, pipeline.stages, pipeline.name, SPEEDUPS, beside=real, max_seconds=max_seconds)
    seconds = {name: list(each) for name, each in found.seconds.items()}
    truth = replace(found, seconds=seconds)
    for _ in range(3):
        if all(half_width(truth, arm) <= SURE for arm in real):
            break
        arms: dict[str, Mapping[str, Stage]] = {"plain": pipeline.stages, **real}
        for name, more in in_rounds(pipeline.run, arms, 1000, max_seconds=max_seconds / 3).items():
            seconds[name] += more
    return [
        {
            "stages": f"{', '.join(pipeline.stages)}; {pipeline.told}; {pipeline.name} faster",
            "speedup": row.speedup,
            "foreseen": None if row.why else row.gain,
            "promised": row.promised,
            "truth": truth.saved(arm)[0],
            "unsure": half_width(truth, arm),
            "why": row.why,
        }
        for row, arm in zip(found.rows, real, strict=True)
    ]


def off(trials: Records, what: str = "foreseen") -> list[float]:
    """Return how far answers are off the truth; those that were refused, infinitely."""
    return [math.inf if each[what] is None else abs(each[what] - each["truth"]) for each in trials]


def hits(trials: Records, what: str = "foreseen") -> int:
    """Return how many answers were given and are within 3 points of the truth."""
    return sum(each <= TOLERANCE for each in off(trials, what))


def goals(found: Records) -> dict[str, bool]:
    asked = [trial for trial in found if trial["family"] in ASKED]
    return {
        f"of the four families that are asked for ({', '.join(ASKED)}), at least {GOAL:.0%} of the trials are answered and "
        "within 3 points of what really making the stage faster brings; a refusal counts as not answered: "
        f"{hits(asked)} of {len(asked)}": hits(asked) >= GOAL * len(asked)
    }


def page(found: Records) -> list[str]:
    rows, unsure = [], sum(trial["unsure"] > SURE for trial in found)
    for (family,), trials in grouped(found, "family").items():
        answered = [each for each in off(trials) if math.isfinite(each)]
        row = {"family": family, "trials": len(trials), "answered": len(answered), "right": hits(trials)}
        row |= {"median": median(answered) if answered else None, "worst": max(answered, default=None)}
        row |= {"kept": hits(trials, "promised"), "broken": max(off(trials, "promised"))}
        rows.append({**row, "share": hits(trials) / len(trials)})
    worst = [trial for trial in sorted(found, key=lambda trial: trial["family"]) if not hits([trial])]
    return [
        f"Trials ran {', '.join(condition for (condition,) in grouped(found, 'condition'))}. Points are percent of the present time. "
        f"In {unsure} of all {len(found)} trials the truth itself is not known to 1 point.",
        lines(
            rows,
            "pipelines | trials | answered | within 3 points | of all % | median off | worst off | "
            "promise within 3 points | promise, worst off",
            "{family} | {trials} | {answered} | {right} | {share:100×.0f} | {median:100×.1f} | {worst:100×.1f} | "
            "{kept} | {broken:100×.1f}",
        ),
        "The promise is a profile's share × (1 − 1 / speed-up).",
        "## Not answered, or off by more than 3 points",
        lines(
            worst,
            "pipelines | stages | speed-up | truth % | foreseen % | promised % | why not",
            "{family} | {stages} | {speedup:g} | {truth:100×.1f} ± {unsure:100×.1f} | {foreseen:100×.1f} | "
            "{promised:100×.1f} | {why}",
        )
        if worst
        else "None.",
    ]


BENCHMARK = Benchmark(
    "What a faster stage would bring, told beforehand",
    {"pipelines": Part("", measured, page, goals, [(each,) for each in FAMILIES], fields=["family"])},
    algebra=NO_BLAS,
    rounds=8,
    options={
        "--quiet": {"action": "store_true", "help": "without a busy process beside"},
        "--seconds": {"type": float, "default": 8.0, "help": "at most for what_if on one pipeline (%(default)s)"},
    },
    short={"seconds": 0.5},
    conditions=lambda options: {"alone": 0} if options.quiet else {"beside a process that never rests": 1},
)

"""Causal profiling: what a faster stage would bring end to end, measured before anybody writes it."""

from __future__ import annotations

import math
import os
import random
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.profiling.dry_run import Trial, trial_run
from tinybench.support.profiling.forecast import Row, WhatIf, gain_interval
from tinybench.support.profiling.stand_ins import Answers, Delay, Kind, StandIn, look_closely
from tinybench.support.profiling.stand_ins import paces as measured_paces
from tinybench.support.rounds.machine_state import machine_notes

__all__ = [
    "Prepared",
    "Repeated",
    "Row",
    "Run",
    "Stage",
    "WhatIf",
    "gain_interval",
    "in_order",
    "in_rounds",
    "prepare_stages",
    "without",
]

Stage = Callable[..., Any]
Run = Callable[[Mapping[str, Stage]], Any]


class Repeated:
    """A stage that does its work so many `times` whenever it is called, and gives the first answer.

    A stage with a method ``again`` has that called from the second time on, in place of itself.
    """

    def __init__(self, stage: Stage, times: int) -> None:
        self.stage, self.times = stage, times

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the stage as often as agreed."""
        answer = self.stage(*args, **kwargs)
        again = getattr(self.stage, "again", self.stage)
        for _ in range(self.times - 1):
            again(*args, **kwargs)
        return answer


class Once:
    """A stage that must not be called twice on the same input: `delay` takes its time from the second time on."""

    def __init__(self, stage: Stage, delay: Delay) -> None:
        self.stage, self.again = stage, delay

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the stage."""
        return self.stage(*args, **kwargs)


class _Paced:
    """A stage that sets, in a process it was sent to, how long threads there hold the interpreter's lock."""

    def __init__(self, stage: Stage, interval: float) -> None:
        self.stage, self.interval, self.home = stage, interval, os.getpid()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if os.getpid() != self.home:
            sys.setswitchinterval(self.interval)
        return self.stage(*args, **kwargs)


def in_order(items: Iterable[Any]) -> Run:
    """Return a function for `what_if` that calls the stages in order: each takes the answer of the one before it.

    Parameters
    ----------
    items
        What the first stage takes, item by item.

    Returns
    -------
    Callable
        Takes the stages by name, and returns the last stage's answers in the order of `items`.
    """
    items = list(items)

    def run(stages: Mapping[str, Stage]) -> list[Any]:
        answers = []
        for answer in items:
            for stage in stages.values():
                answer = stage(answer)
            answers.append(answer)
        return answers

    return run


def in_rounds(
    run: Run,
    arms: Mapping[str, Mapping[str, Stage]],
    rounds: int = 6,
    *,
    max_seconds: float = math.inf,
    enough: Callable[[dict[str, list[float]]], bool] | None = None,
    clock: Callable[[], float] = time.perf_counter,
    rng: random.Random | None = None,
) -> dict[str, list[float]]:
    """Return the seconds of each arm's runs, taken in rounds; in a shuffled order and each for about as long.

    Parameters
    ----------
    run
        Sends all items through the stages that it is given.
    arms
        Sets of stages. While one with `Repeated` stages runs, threads take turns at the interpreter's lock so much more
        seldom, in child processes that its stages run in, too.
    rounds
        How many at least; two, if `max_seconds` are over earlier.
    enough
        Looks at what was measured after each round from then on, and says whether to stop; without it, `rounds` it is.
    clock, rng
        What tells s, and what shuffles.
    """
    rng = rng or random.Random(0)
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    interval, began, order = sys.getswitchinterval(), clock(), list(arms)
    paces = {
        name: max((stage.times for stage in stages.values() if isinstance(stage, Repeated)), default=1)
        for name, stages in arms.items()
    }
    ready = {
        name: {key: _Paced(stage, interval * paces[name]) for key, stage in stages.items()}
        for name, stages in arms.items()
    }
    done = 0
    while done < 2 or ((done < rounds or (enough and not enough(seconds))) and clock() - began < max_seconds):
        rng.shuffle(order)
        for name in order:
            runs = round(max(paces.values()) / paces[name])  # what lasts as long meets as many disturbances
            sys.setswitchinterval(interval * paces[name])
            try:
                start = clock()
                for _ in range(runs):
                    run(ready[name])
                seconds[name].append((clock() - start) / runs)
            finally:
                sys.setswitchinterval(interval)
        done += 1
    return seconds


@dataclass
class Prepared:
    """A pipeline that was looked at: its stages as they can be repeated, and the stand-in for one of them if any."""

    stages: dict[str, Stage]
    trial: Trial
    metadata: dict[str, Any]
    stand_in: StandIn | None = None

    __repr__ = short_repr


def prepare_stages(
    run: Run,
    stages: Mapping[str, Stage],
    name: str,
    once: Collection[str] = (),
    clock: Callable[[], float] = time.perf_counter,
) -> Prepared:
    """Look at a pipeline by two trial runs, and refuse what cannot be asked of it.

    Raises ValueError for unknown names and a stage that is never called, StageError for one that ends its process.
    """
    for unknown in {name, *once} - set(stages):
        raise ValueError(f"there is no stage {unknown!r}; there are {', '.join(stages)}")
    for key, stage in stages.items():
        if not callable(stage):
            raise TypeError(f"stage {key} is a {type(stage).__name__}; pass a function")
    first = trial_run(run, stages, twice=set(stages) - set(once), record="" if name in once else name, clock=clock)
    if not first.calls[name]:
        raise ValueError(f"the run never calls {name}; let it take each stage from the stages that it is given")
    trial = trial_run(run, stages, record=name if first.overlaps and first.pairs else "", clock=clock)
    trial.once = {**first.once, **dict.fromkeys(once, "must not be repeated")}
    paces = measured_paces() if first.overlaps or trial.once else ()
    ready: dict[str, Stage] = {}
    for key, stage in stages.items():
        if key in trial.once and trial.calls[key]:
            seconds = trial.clock[key] / trial.calls[key]
            waits = max(0.0, 1 - trial.processor[key] / trial.clock[key])
            ready[key] = Once(stage, Delay(Kind(1 - waits, 0.0, 0.0, waits), seconds, paces))
        else:
            ready[key] = stage
    plan = Prepared(ready, trial, {"workers": len(trial.workers), **machine_notes()})
    same = bool(trial.pairs) and trial.pairs.keys() <= first.pairs.keys()
    if not same or first.unrecorded or name in trial.once:
        return plan  # a chain, or nothing can stand in: not for a stage that is given something else in each run
    cpu = trial.processor[name] / trial.calls[name]
    kind, lengths = look_closely(stages[name], list(first.pairs), paces, cpu)
    plan.stand_in = StandIn(Answers(first.pairs, stages[name]), [Delay(kind, seconds, paces) for seconds in lengths])
    return plan


def without(stages: Mapping[str, Stage], name: str, run: Run | None = None) -> dict[str, Stage]:
    """Return the stages, one of them replaced by its answers, which take next to no time.

    What is left is the time of everything around it: is the pipeline bound by its input and output, or by this stage?
    An answer is recorded when an input comes for the first time, so run it once before you measure; or pass the `run`,
    which then records them all, and in processes that it starts, too.
    """
    answers = Answers({}, stages[name])
    if run:
        trial = trial_run(run, stages, record=name)
        if trial.unrecorded:
            raise ValueError(f"{name} cannot be replaced by its answers: {trial.unrecorded}")
        answers = Answers(trial.pairs, stages[name])
    return {**stages, name: answers}

"""Causal profiling: a measurement of the end-to-end gain from a faster stage before the faster stage is written."""

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
from tinybench.support.profiling.pipeline_trial import Trial, trial_run
from tinybench.support.profiling.stand_ins import Answers, Delay, Kind, StandIn, look_closely
from tinybench.support.profiling.stand_ins import paces as measured_paces
from tinybench.support.profiling.what_if_gains import Row, WhatIf, gain_interval
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
    """A stage that does its work several `times` in each call, and returns the first answer.

    If the stage has a method ``again``, this method is called instead for each repetition.
    """

    def __init__(self, stage: Stage, times: int) -> None:
        self.stage, self.times = stage, times

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the stage `times` times."""
        answer = self.stage(*args, **kwargs)
        again = getattr(self.stage, "again", self.stage)
        for _ in range(self.times - 1):
            again(*args, **kwargs)
        return answer


class Once:
    """A stage that must not be called twice on the same input. Repetitions run `delay` instead, which takes as long."""

    def __init__(self, stage: Stage, delay: Delay) -> None:
        self.stage, self.again = stage, delay

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the stage."""
        return self.stage(*args, **kwargs)


class _Paced:
    """A stage that, in a child process, sets the switch interval: how long a thread may hold the interpreter's lock."""

    def __init__(self, stage: Stage, interval: float) -> None:
        self.stage, self.interval, self.home = stage, interval, os.getpid()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if os.getpid() != self.home:
            sys.setswitchinterval(self.interval)
        return self.stage(*args, **kwargs)


def in_order(items: Iterable[Any]) -> Run:
    """Return a function for `what_if` that calls the stages in order. Each stage takes the answer of the previous one.

    Parameters
    ----------
    items
        The inputs of the first stage, one for each call.

    Returns
    -------
    Callable
        A function that takes the stages by name, and returns the last stage's answers in the order of `items`.
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
    """Return the seconds of the runs of each arm. An arm is one variant of the pipeline.

    In each round, the arms run in random order, each for about the same time.

    Parameters
    ----------
    run
        A function that sends all items through the stages that it receives.
    arms
        The stages of each arm, by name. For an arm with `Repeated` stages, the interpreter's switch interval is
        multiplied by the number of repetitions, in child processes, too.
    rounds
        The minimum number of rounds. If `max_seconds` have passed earlier, two rounds are enough.
    enough
        A function that takes all measurements so far and returns whether to stop. It is called when `rounds` rounds are
        done, and after each later round. By default, measuring stops after `rounds` rounds.
    clock, rng
        A clock in seconds, and the random generator that shuffles the arms.
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
            runs = round(max(paces.values()) / paces[name])  # equally long runs meet equally many disturbances
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
    """A pipeline after its trial runs: its stages in repeatable form, and a stand-in for one stage, if possible."""

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
    """Analyse a pipeline in two trial runs, and return its stages in repeatable form.

    Raise ValueError for an unknown name or a stage that is never called, TypeError for a stage that is not a function,
    and StageError for a stage that ends its process.
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
        return plan  # no stand-in for a stage that cannot be recorded, or whose inputs differ from run to run
    cpu = trial.processor[name] / trial.calls[name]
    kind, lengths = look_closely(stages[name], list(first.pairs), paces, cpu)
    plan.stand_in = StandIn(Answers(first.pairs, stages[name]), [Delay(kind, seconds, paces) for seconds in lengths])
    return plan


def without(stages: Mapping[str, Stage], name: str, run: Run | None = None) -> dict[str, Stage]:
    """Return the stages, with the stage `name` replaced by a lookup of its recorded answers, which is almost instant.

    A run of these stages takes the time of everything else, so it shows whether the pipeline is bound by the stage
    `name`. An answer is recorded when its input occurs for the first time, so run the pipeline once before you measure.
    Alternatively, pass `run` to record all answers now, including those in child processes.
    """
    answers = Answers({}, stages[name])
    if run:
        trial = trial_run(run, stages, record=name)
        if trial.unrecorded:
            raise ValueError(f"{name} cannot be replaced by its answers: {trial.unrecorded}")
        answers = Answers(trial.pairs, stages[name])
    return {**stages, name: answers}

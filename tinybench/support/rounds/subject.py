"""The parts of fair rounds: subjects, which are models measured in the same way, and a record of their measurements."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.rounds.checked_calls import (
    Call,
    Clock,
    check_helper,
    name_of,
    plain_call,
    refuse_later_answer,
    same_content,
    untouched_copy,
    used_up,
)
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.timer import timer_overhead


@dataclass
class Subject:
    """A model to be timed, with its input `given`. `timed` is the function `timed_calls`.

    `call` takes one argument: `x` or, with `setup`, the result of ``setup(given)``. A measurement consists of `loops`
    calls, and `overhead` seconds are subtracted from it. `until` is the end of the time limit. `copy` is a copy of the
    original input, and `size` its length. `answered` is False until an answer has been checked. `first` is the time of
    the only warm-up call, which is used as the measurement of the first round if there is no time for another call.
    """

    name: str
    call: Call
    given: Any
    timed: Callable[..., list[float]]
    clock: Clock
    setup: Call | None = None
    sync: Callable[[], Any] | None = None
    x: Any = None
    loops: int = 1
    overhead: float = 0.0
    until: float = math.inf
    copy: Any = None
    answered: bool = True
    size: int | None = None
    first: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    __repr__ = short_repr

    def make_ready(self, prepare: Callable[..., Any], warmup_runs: int, seconds: float, step: float = 0.0) -> None:
        """Warm up on a copy of the input for at most `seconds` (or one longer call), and calibrate `loops`.

        If `step` is not 0, the clock moves in steps of `step` seconds and is too coarse for the warm-up, which is then
        timed by time.perf_counter.
        """
        check_helper("setup", self.setup)
        check_helper("sync", self.sync)
        model, clock, first = self.call, time.perf_counter if step else self.clock, None
        self.size = _length(self.given)
        self.copy = untouched_copy(self.given)
        self.call, self.x = plain_call(model, self.given, self.setup, self.sync)
        call, x = plain_call(model, self.copy, self.setup, self.sync)
        if setup := self.setup:
            call, x = (lambda given: self.call(setup(given))), self.copy
        self.answered = warmup_runs > 0
        if warmup_runs:
            answers: list[Any] = []
            first = self.timed(lambda x: answers.append(call(x)), x, 1, clock)[0]
            refuse_later_answer(answers.pop(), model)
            self.check_input()
            self.first = first if 4 * first > seconds and not self.setup else None
            warmup_runs = 0 if 4 * first > seconds else int(min(seconds / max(first, 1e-9), warmup_runs))
        _, self.loops, notes = prepare(call, x, warmup_runs, clock, min(10.0, seconds))
        if first is not None:
            rest = notes["warmup"] or {"calls": 0, "seconds": 0.0, "median": first, "settled": False}
            taken = {"calls": rest["calls"] + 1, "seconds": rest["seconds"] + first, "first_call": first}
            notes["warmup"] = {**rest, **taken}
        if step:
            notes |= {"clock_step": step, "timer_overhead": timer_overhead(self.clock, samples=101)}
        notes |= {key: name_of(each) for key, each in (("setup", self.setup), ("sync", self.sync)) if each}
        self.metadata |= notes | {"clock": name_of(self.clock)}
        self.loops = 1 if self.setup else self.loops
        self.check_input()

    def measure(self) -> float:
        """Return one measurement in seconds per call."""
        return self.times(1)[0]

    def times(self, runs: int) -> list[float]:
        """Return `runs` measurements in seconds per call."""
        if (first := self.first) is not None:
            if self.clock() + first > self.until:
                self.until = -math.inf  # no further measurement
                self.metadata["cold"] = True
                return [first] * runs
            self.first = None
        if not self.answered:
            return self._first_times(runs)
        if self.setup is None:
            if self.sync:
                self.sync()  # work started earlier may still be running
            return self.timed(self.call, self.x, runs, self.clock, self.loops, self.overhead)
        return [self._time_of_fresh(self.setup) for _ in range(runs)]

    def _time_of_fresh(self, setup: Call) -> float:
        fresh = [setup(self.given) for _ in range(self.loops)]
        if self.sync:
            self.sync()
        if self.loops == 1:
            return self.timed(self.call, fresh[0], 1, self.clock, 1, self.overhead)[0]
        return self.timed(_call_in_turn, (self.call, fresh), 1, self.clock, 1, self.overhead)[0] / self.loops

    def _first_times(self, runs: int) -> list[float]:
        """Return `runs` measurements. The first answer is checked here, because there was no warm-up to check it."""
        call, answers = self.call, list[Any]()
        self.call, self.answered = lambda x: answers.append(call(x)), True
        first = self.times(1)
        self.call = call
        refuse_later_answer(answers[0], call)
        return first + self.times(runs - 1) if runs > 1 else first

    def check_input(self) -> None:
        """Raise ValueError if calls have changed the input, or if the input is an iterator that is now exhausted."""
        name, kind = self.name or "the model", type(self.given).__name__
        if not same_content(self.given, self.copy) or _length(self.given) != self.size:
            if self.setup:
                raise ValueError(f"{name} or its setup changes the input itself, a {kind}; let setup return a copy")
            raise ValueError(
                f"{name} changes its input, a {kind}: each call would do "
                "different work; pass setup=copy.deepcopy, which gives every call a fresh one outside the time"
            )
        if not self.setup and used_up(self.given):
            raise ValueError(
                f"{name} uses up its input, a {kind}: later calls would find nothing; pass a list, or "
                "setup=lambda x: iter(x) with a list"
            )


def _length(x: Any) -> int | None:
    with suppress(Exception):  # len() fails for arrays without dimensions and many other objects
        return len(x)
    return None


def _call_in_turn(job: tuple[Call, list[Any]]) -> None:
    call, inputs = job
    for x in inputs:
        call(x)


class Record:
    """The measurements of all rounds by model. Use a record as a context manager around the rounds.

    If an exception or Ctrl-C ends the block, the results of the complete rounds are attached to the exception.
    Otherwise, the end of the block checks that no input has changed. The metadata of the results contain `notes` and
    the lists `by_round`, which have one item for each complete round.
    """

    def __init__(self, subjects: Mapping[str, Subject], notes: Mapping[str, Any], **by_round: Sequence[Any]) -> None:
        self.subjects, self.notes, self.by_round = subjects, notes, by_round
        self.values: dict[str, list[float]] = {name: [] for name in subjects}
        self.pauses: dict[int, float] = {}

    def __enter__(self) -> Record:
        """Return this record."""
        return self

    def in_time(self, orders: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
        """Yield the order of models for each round until no further round fits into the time limit, but at least once.

        A further round fits if it would end within the limit when it takes as long as the shortest round so far.
        """
        subject = next(iter(self.subjects.values()))
        clock, shortest = subject.clock, math.inf
        limited = subject.until < math.inf
        now, real = clock() if limited else 0.0, time.monotonic()
        for rounds, order in enumerate(orders, 1):
            yield order
            began, before, real = now, real, time.monotonic()
            if real - before > 1:
                self.pauses[rounds] = real - before
            if limited:
                now = clock()
                shortest = min(shortest, now - began)
                if now + shortest > min(subject.until for subject in self.subjects.values()):
                    return

    def add(self, name: str, seconds: float) -> None:
        """Store a measurement in seconds per call."""
        self.values[name].append(seconds)

    @property
    def rounds(self) -> int:
        """The number of complete rounds."""
        return min(map(len, self.values.values()))

    def results(self) -> dict[str, BenchmarkResult]:
        """Return the results of the complete rounds."""
        by_round = {key: list(each[: self.rounds]) for key, each in self.by_round.items()}
        shared = {**self.notes, **by_round, **machine_notes()}
        if pauses := self._long_rounds():
            shared["pauses"] = pauses
        found = {}
        for name, values in self.values.items():
            own = self.subjects[name].metadata
            metadata = {**own, "model": name or own["model"], **shared}
            found[name] = BenchmarkResult("latency", values[: self.rounds], metadata, unit="s")
        return found

    def _long_rounds(self) -> list[dict[str, float]]:
        """Return rounds that took over 1 s and over 100 times the median: the machine may have been suspended."""
        taken = [
            sum(values[i] * self.subjects[name].loops for name, values in self.values.items())
            for i in range(self.rounds)
        ]
        most = max(1.0, 100 * median(taken))
        found = {i: max(seconds, self.pauses.get(i, 0.0)) for i, seconds in enumerate(taken, 1)}
        return [{"round": i, "seconds": seconds} for i, seconds in found.items() if seconds > most]

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        """Check the inputs, or attach the results of the complete rounds to the exception."""
        if error is None:
            for subject in self.subjects.values():
                subject.check_input()
            return
        self.notes = {**self.notes, "interrupted": f"{kind.__name__} in round {self.rounds + 1}"}
        vars(error)["results"] = self.results() if self.rounds else {}
        if self.rounds:
            with suppress(Exception):  # fails for an error that is a frozen dataclass, for example
                error.add_note(f"error.results holds the {number_of(self.rounds, 'complete round')} measured before")

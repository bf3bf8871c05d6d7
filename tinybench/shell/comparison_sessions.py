"""Sessions that measure the sides of a comparison, such as old and new code, each in a fresh process.

Within a session, the processes time blocks of calls in turn, in random order. A side that is a command runs once.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tinybench.result import BenchmarkResult
from tinybench.shell.gate_targets import Target
from tinybench.shell.side_process import ProcessorWait
from tinybench.support.basics.child_process import ChildEndedError, ChildProcess
from tinybench.support.basics.numbers import number_of
from tinybench.support.rounds.machine_state import machine_notes

BLOCK, SHORTEST, WARM_UP, MOST_ROUNDS = 2.5e-3, 100e-6, 0.1, 200  # s, s, s, rounds of a session
WORKER = Path(__file__).with_name("side_process.py")


class SideError(ValueError):
    """An error for a side that raised an exception, exited, or cannot be measured."""


@dataclass
class Measured:
    """The measurements of all sessions.

    `values` holds the times in s of each side, one per round, and `sessions` the number of each round's session.
    """

    values: dict[str, list[float]]
    sessions: list[int] = field(default_factory=list)
    about: dict[str, dict[str, Any]] = field(default_factory=dict)
    busy: dict[str, float] = field(default_factory=dict)
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    conditions: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of sessions with at least one round."""
        return len(set(self.sessions))

    def add(self, session: int, row: Mapping[str, float]) -> None:
        """Add one complete round, with a time for each side."""
        for name, value in row.items():
            self.values[name].append(value)
        self.sessions.append(session)

    def medians(self, of: Callable[[dict[str, float]], float]) -> list[float]:
        """Apply a function to each round, and return the median of its values for each session."""
        found: dict[int, list[float]] = {}
        for index, session in enumerate(self.sessions):
            found.setdefault(session, []).append(of({name: values[index] for name, values in self.values.items()}))
        return [median(values) for values in found.values()]

    def results(self, targets: Mapping[str, Target]) -> dict[str, BenchmarkResult]:
        """Return the results of all sides, measured in common rounds."""
        shared = {
            "sessions": self.sessions,
            "pairing": uuid.uuid4().hex,
            "order": "sessions in fresh processes",
            "mode": "hot",
        }
        state = machine_notes().get("machine", {})

        def notes(name: str) -> dict[str, Any]:
            own = (
                {"machine": state | {"conditions": self.conditions.get(name) or state.get("conditions", {})}}
                if state
                else {}
            )
            return {**self.about.get(name, {}), **targets[name].notes(), **shared, **own}

        return {name: BenchmarkResult("latency", values, notes(name), unit="s") for name, values in self.values.items()}


class SideProcess:
    """A fresh process that runs the calls of one side of a comparison."""

    def __init__(self, name: str, target: Target) -> None:
        self.name = name if name == target.label else f"{name} ({target.label})"
        self.target = target
        self.child = ChildProcess(
            [sys.executable, "-P", str(WORKER)], self.name, patience=0, cwd=target.root, env=target.environment
        )

    def send(self, question: str, *arguments: Any) -> None:
        """Send a request without waiting for the answer."""
        with self._named_errors():
            self.child.send([question, arguments])

    def receive(self) -> Any:
        """Wait for an answer and return it. Raise SideError if the call failed, TimeoutError if it took too long."""
        with self._named_errors():
            answer = json.loads(self.child.receive())
        if "error" in answer:
            raise SideError(f"{self.name} raised {answer['error']}")
        return answer["answer"]

    def ask(self, question: str, *arguments: Any) -> Any:
        """Send a request and return the answer."""
        self.send(question, *arguments)
        return self.receive()

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except ChildEndedError as error:
            if self.child.killed:
                raise TimeoutError(f"{self.name} gave no answer in the time there was") from None
            raise SideError(str(error)) from None


def share_plan(per_call: Mapping[str, float]) -> dict[str, tuple[int, int, int]]:
    """Return the plan of a block for each side: calls per timing, number of timings, and untimed calls before them.

    A side that is less than 4 times as fast as the slowest side has the same plan as the slowest.
    """
    slowest = max(per_call.values())

    def plan(seconds: float) -> tuple[int, int, int]:
        loops = max(1, math.ceil(SHORTEST / seconds))
        return loops, max(1, round(BLOCK / (loops * seconds))), min(loops, 2) if seconds < BLOCK / 5 else 0

    return {name: plan(max(1e-9, slowest if 4 * own > slowest else own)) for name, own in per_call.items()}


def process_session(
    number: int,
    targets: Mapping[str, Target],
    measured: Measured,
    rng: random.Random,
    *,
    deadline: float,
    kill_at: float,
    seconds: float,
    longest: float,
    show: Callable[[str], None],
) -> None:
    """Measure all sides in fresh processes that exist at the same time. Add each complete round to `measured`.

    The rounds last for `seconds`, or as long as start-up and warm-up if these took longer. Start-up, warm-up and rounds
    together take at most `longest` and end before the deadline, but there is at least one round.
    """
    began = time.monotonic()
    order = rng.sample(list(targets), len(targets))
    with ExitStack() as stack:
        sides: dict[str, SideProcess] = {}
        for name in order:
            sides[name] = SideProcess(name, targets[name])
            child = stack.enter_context(sides[name].child)
            stack.enter_context(child.killed_after(kill_at - time.monotonic()))
        show("starting")
        for name in order:
            sides[name].send("load", targets[name].task())
        for name in order:
            loaded = sides[name].receive()
            check_home(loaded["home"], sides[name])
            measured.about[name] = loaded["about"]
        show("warming up")
        warmth = {name: sides[name].ask("warm", WARM_UP) for name in order}
        plans = share_plan({name: warmth[name]["per_call"] for name in order})
        for name in order:
            measured.about[name] |= {"loops": plans[name][0], "warmup": {"seconds": WARM_UP}}
            measured.busy[name], measured.files[name] = warmth[name]["busy"], warmth[name]["files"]
        setup, rounds, took = time.monotonic() - began, 0, 0.0
        stop = min(deadline, began + max(setup, min(setup + max(seconds, setup), longest)))
        while rounds == 0 or (rounds < MOST_ROUNDS and time.monotonic() + took <= stop):
            start, turns = time.monotonic(), rng.sample(order, len(order))
            measured.add(number, {name: sides[name].ask("block", *plans[name]) for name in turns})
            rounds, took = rounds + 1, time.monotonic() - start
            show(number_of(rounds, "round"))
        for name in order:
            measured.conditions[name] = sides[name].ask("conditions")


def check_home(home: str | None, side: SideProcess) -> None:
    """Raise SideError if a function was loaded from outside its commit, such as from an installed package."""
    if side.target.commit and home and not Path(home).resolve().is_relative_to(side.target.root):
        raise SideError(
            f"{side.name} comes from {home}, which does not belong to the commit; "
            "start in the folder from which its modules are imported"
        )


def command_session(
    number: int, targets: Mapping[str, Target], measured: Measured, rng: random.Random, *, kill_at: float
) -> None:
    """Run each command once, in random order, and add the times to `measured` as a round."""
    row = {name: run_command(name, targets[name], kill_at) for name in rng.sample(list(targets), len(targets))}
    measured.add(number, row)


def run_command(name: str, target: Target, kill_at: float) -> float:
    """Return the seconds from the start of a command to its exit, minus the time it waited for a processor.

    Raise SideError unless the command exits with 0, and TimeoutError if it is still running at `kill_at`.
    """
    label = f"{name} ({target.label})"
    with ChildProcess(
        target.words, label, output="nowhere", patience=0, cwd=target.root, env=target.environment
    ) as child:
        with child.killed_after(kill_at - time.monotonic()):
            seconds = ended(child.process, child.started) - child.started
            code = child.process.wait()
        if child.killed:
            raise TimeoutError(f"{child.name} did not end in the time there was")
        if code:
            raise SideError(str(child.ended()))
    return seconds


def ended(process: subprocess.Popen[Any], start: float) -> float:
    """Wait for a process to end. Return its end time minus the waits of the process and of this thread for a processor.

    If both waited at once, this time is subtracted twice, but the result is never less than `start` plus the time that
    the process ran.
    """
    if not hasattr(os, "waitid"):
        process.wait()
        return time.perf_counter()
    mine = ProcessorWait()
    before = mine()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # not reaped, so that its statistics remain readable
    now, its = time.perf_counter(), ProcessorWait(str(process.pid))
    moment = max(start + its.ran(), now - its() - (mine() - before))
    its.close()
    mine.close()
    return moment

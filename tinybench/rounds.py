# Written by "autograder export" from modules/03_latency/03_latency.ipynb: edit the notebook, not this file.

"""What fair rounds are made of: inputs as they were given, subjects that are treated alike, values that are kept."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.result import BenchmarkResult

if TYPE_CHECKING:
    from tinybench.latency import Call, Clock


class arguments:
    """What a model is called with where it takes several arguments: ``arguments(queries, keys, causal=True)``."""

    __slots__ = ("args", "kwargs")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def __repr__(self) -> str:
        """Return it as it was written."""
        return f"arguments({', '.join([*map(repr, self.args), *(f'{k}={v!r}' for k, v in self.kwargs.items())])})"


def plain_call(call: Call, x: Any, setup: Call | None, sync: Callable[[], Any] | None) -> tuple[Call, Any]:
    """Return a function of one argument and that argument: several arguments unpacked, `sync` after each call."""
    refuse_later(call)
    sample = x if setup is None else setup(x)
    if isinstance(sample, arguments):
        if setup is None and sample.args:  # a partial costs least within the timed line
            *first, x = sample.args
            call = partial(call, *first, **sample.kwargs) if first or sample.kwargs else call
        else:
            call = _unpacking(call)
    return (call if sync is None else _synced(call, sync)), x


def _unpacking(call: Callable[..., Any]) -> Call:
    return lambda x: call(*x.args, **x.kwargs)


def _synced(call: Call, sync: Callable[[], Any]) -> Call:
    def synced(x: Any) -> Any:
        answer = call(x)
        sync()
        return answer

    return synced


def refuse_later(call: Any) -> None:
    """Raise TypeError for a function that only begins its work when it is called: a coroutine or generator function."""
    inner = call
    while isinstance(inner, partial):
        inner = inner.func
    for function in (inner, getattr(type(inner), "__call__", None)):  # noqa: B004 the method itself, not whether
        if inspect.iscoroutinefunction(function):
            raise _later("a coroutine function", call)
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            raise _later("a generator function", call)


def refuse_later_answer(answer: Any, call: Any) -> None:
    """Raise TypeError for an answer whose work is still to be done."""
    if inspect.isasyncgen(answer) or inspect.isgenerator(answer):
        raise _later("a function that returns a generator", call)
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()  # or Python warns that nobody awaited it
        raise _later("a function that returns an awaitable", call)


def _later(what: str, call: Any) -> TypeError:
    cure = (
        "list(...) of it: lambda x: list(model(x))"
        if "generator" in what
        else "what runs it to its end: lambda x: asyncio.run(model(x))"
    )
    name = getattr(call, "__name__", type(call).__name__)
    return TypeError(f"{name} is {what}: its call returns before the work is done; measure {cure}")


_COPIED = (np.ndarray, list, tuple, dict, set, bytearray, arguments)
_MOST_BYTES, _MOST_ITEMS = 2**26, 100_000


def untouched_copy(x: Any) -> Any:
    """Return a deep copy to compare an input with later; the input itself where it is too large, or of another kind."""
    items, size, rest = 0, 0, [x]
    while rest and items <= _MOST_ITEMS and size <= _MOST_BYTES:
        value = rest.pop()
        items, size = items + 1, size + int(getattr(value, "nbytes", 0))
        if isinstance(value, arguments):
            rest += [*value.args, *value.kwargs.values()]
        elif isinstance(value, dict):
            rest += value.values()
        elif isinstance(value, list | tuple | set):
            rest += value
    if rest or size > _MOST_BYTES or not isinstance(x, _COPIED):
        return x
    try:
        return deepcopy(x)
    except Exception:  # an input that cannot be copied is measured as it is
        return x


def same_content(a: Any, b: Any) -> bool:
    """Whether an input still holds what its copy holds; True for a kind of object that nobody can look into."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    match a:
        case np.ndarray() if a.dtype.hasobject:
            return a.shape == b.shape and same_content(a.ravel().tolist(), b.ravel().tolist())
        case np.ndarray():
            return bool(a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes())
        case arguments():
            return same_content([*a.args, a.kwargs], [*b.args, b.kwargs])
        case dict():
            return list(a) == list(b) and all(map(same_content, a.values(), b.values()))
        case list() | tuple():
            return len(a) == len(b) and all(map(same_content, a, b))
        case set() | bytearray() | int() | float() | complex() | str() | bytes():
            return bool(a == b)
    return True


@dataclass
class Subject:
    """A model that is ready for the timed line.

    `call` takes one argument, `x` or what `setup` makes of the input `given`. `loops` calls make one measurement, from
    which `overhead` s are taken off. `timed` is `timed_calls`; `until` is when its clock runs out of time, `copy` what
    the input held at first; `answered` is False while nobody has seen an answer.
    """

    name: str
    call: Call
    given: Any
    x: Any
    metadata: dict[str, Any]
    timed: Callable[..., list[float]]
    clock: Clock
    loops: int = 1
    overhead: float = 0.0
    setup: Call | None = None
    sync: Callable[[], Any] | None = None
    until: float = math.inf
    copy: Any = None
    answered: bool = True

    def measure(self) -> float:
        """Return one measurement in s per call."""
        return self.times(1)[0]

    def times(self, runs: int) -> list[float]:
        """Return measurements in s per call."""
        if not self.answered:
            return self._first_times(runs)
        if self.setup is None:
            if self.sync:
                self.sync()  # what ran before may still be at work
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
        """Look at the first answer, too, which no warm-up has seen."""
        call, answers = self.call, list[Any]()
        self.call, self.answered = lambda x: answers.append(call(x)), True
        first = self.times(1)
        self.call = call
        refuse_later_answer(answers[0], call)
        return first + self.times(runs - 1) if runs > 1 else first

    def check_input(self) -> None:
        """Raise ValueError if calls have changed the input."""
        if not same_content(self.given, self.copy):
            raise ValueError(
                f"{self.name or 'the model'} changes its input, a {type(self.given).__name__}: each call would do "
                "different work; pass setup=copy.deepcopy, which gives every call a fresh one outside the time"
            )


def _call_in_turn(job: tuple[Call, list[Any]]) -> None:
    call, inputs = job
    for x in inputs:
        call(x)


def clock_step(clock: Clock, seconds: float = 0.02) -> float:
    """Return the step in s of a clock that moves in coarse ones; 0.0 for a fine one, and for one that stands still."""
    began, until = clock(), time.perf_counter() + seconds
    if any(clock() != began for _ in range(100)):
        return 0.0
    while clock() == began and time.perf_counter() < until:
        pass
    first = now = clock()
    if first == began:
        return 0.0
    while now == first:  # the first step was seen from somewhere within it
        now = clock()
    return now - first


def share_calibration(subjects: Sequence[Subject], step: float = 0.0) -> None:
    """Give subjects of like length the same loops, and all the same overhead, so that equal models are treated alike.

    Neighbours within a factor of 3 are alike. A measurement lasts 10 µs at least, and 20 steps of a coarse clock.
    """
    overhead = min(subject.metadata["timer_overhead"] for subject in subjects)
    warm, least = [subject for subject in subjects if subject.metadata["warmup"]], max(10e-6, 20 * step)
    for subject in warm:
        if step or subject.setup or subject.metadata["warmup"]["median"] < least:
            _lengthen(subject, least)
    ordered = sorted(warm, key=lambda subject: subject.metadata["warmup"]["median"])
    groups: list[list[Subject]] = []
    for subject in ordered:
        alike = groups and subject.metadata["warmup"]["median"] <= 3 * groups[-1][-1].metadata["warmup"]["median"]
        if alike:
            groups[-1].append(subject)
        else:
            groups.append([subject])
    for group in groups:
        loops = max(subject.loops for subject in group)
        for subject in group:
            subject.loops = loops
    for subject in subjects:
        subject.overhead = overhead
        subject.metadata |= {"loops": subject.loops, "timer_overhead": overhead}
        if step:
            subject.metadata["clock_step"] = step


def _lengthen(subject: Subject, least: float) -> None:
    """Raise the loops until a measurement lasts `least` s, and 20 steps of a clock that was seen to stand still."""
    subject.overhead, seen = 0.0, list[float]()
    while subject.loops < 10_000_000:
        took = subject.measure() * subject.loops
        seen.append(took)
        if 0.0 in seen and max(seen) > 0:
            least = max(least, 20 * min(value for value in seen if value > 0))
        if took >= least:
            return
        subject.loops = next_size(subject.loops)
    raise RuntimeError(
        f"{subject.loops} calls of {subject.name or 'the model'} took no {least:.3g} s by this clock, which moves in "
        "steps too coarse for them; use time.perf_counter"
    )


def next_size(loops: int) -> int:
    """Return the next of 1, 2, 5, 10, 20, 50, …"""
    sizes = (int(digit * 10**power) for power in range(9) for digit in (1, 2, 5))
    return next(size for size in sizes if size > loops)


class Record:
    """The values of rounds by name; an exception or Ctrl-C among them carries the results of the complete rounds.

    Leaving the block checks that no input has changed. `orders` and `notes` go into the metadata.
    """

    def __init__(self, subjects: Mapping[str, Subject], orders: Sequence[Sequence[str]], notes: Mapping[str, Any]):
        self.subjects, self.orders, self.notes = subjects, orders, dict(notes)
        self.values: dict[str, list[float]] = {name: [] for name in subjects}
        self.gaps: list[dict[str, float]] = []

    def __enter__(self) -> Record:
        """Begin."""
        return self

    def in_time(self, orders: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
        """Yield orders, one at least, as long as a round like the longest one so far fits into the time."""
        subject = next(iter(self.subjects.values()))
        clock, until = subject.clock, subject.until
        if until == math.inf:
            yield from orders
            return
        began, rounds = clock(), 0
        for order in orders:
            yield order
            rounds, now = rounds + 1, clock()
            if now + (now - began) / rounds > until:
                return

    def add(self, name: str, seconds: float) -> None:
        """Keep a measurement in s per call."""
        self.values[name].append(seconds)

    def results(self) -> dict[str, BenchmarkResult]:
        """Return the results of the complete rounds."""
        rounds = min(map(len, self.values.values()))
        shared = {**self.notes, "round_orders": list(self.orders[:rounds])}
        return {
            name: BenchmarkResult(
                "latency", values[:rounds], {**self.subjects[name].metadata, "model": name, **shared}, unit="s"
            )
            for name, values in self.values.items()
        }

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        """Check the inputs, or attach what is complete to the error."""
        if error is None:
            for subject in self.subjects.values():
                subject.check_input()
            return
        rounds = min(map(len, self.values.values()))
        self.notes["interrupted"] = f"{kind.__name__} in round {rounds + 1}"
        vars(error)["results"] = self.results() if rounds else {}
        if rounds:
            error.add_note(f"{rounds} complete rounds were measured before; they are in error.results")

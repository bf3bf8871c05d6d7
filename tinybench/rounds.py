# Written by "autograder export" from modules/03_latency/03_latency.ipynb: edit the notebook, not this file.

"""What fair rounds are made of: inputs as they were given, subjects that are treated alike, values that are kept."""

from __future__ import annotations

import ctypes.util
import inspect
import math
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from statistics import median
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.result import BenchmarkResult
from tinybench.timer import timer_overhead

if TYPE_CHECKING:
    from tinybench.latency import Call, Clock

ONNX_DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
    "tensor(string)": "str",
}


def fed_by_name(session: Any) -> Call:
    """Return a function of a dictionary of arrays by input name, which runs an ONNX Runtime session of any inputs."""
    dtypes = {node.name: np.dtype(ONNX_DTYPES[node.type]) for node in session.get_inputs()}
    outputs = [node.name for node in session.get_outputs()]

    def call(feed: Any = None, *more: Any, **named: Any) -> Any:
        if more or named:  # of `arguments`
            feed = named if feed is None else (feed, *more)
        if not isinstance(feed, dict) or feed.keys() != dtypes.keys():
            given = ", ".join(map(str, feed)) if isinstance(feed, dict) else f"a {type(feed).__name__}"
            raise ValueError(f"the session takes a dictionary of arrays by name ({', '.join(dtypes)}), not {given}")
        return session.run(outputs, {name: np.asarray(feed[name], dtype) for name, dtype in dtypes.items()})[-1]

    return call


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
    """Raise TypeError for a function whose call only begins the work: one of coroutines or generators."""
    inner = call
    while isinstance(inner, partial):
        inner = inner.func
    for function in (inner, getattr(type(inner), "__call__", None)):  # noqa: B004 the method itself, not whether
        if inspect.iscoroutinefunction(function):
            raise _later("a coroutine", call)
        if inspect.isasyncgenfunction(function):
            raise _later("an async generator", call)
        if inspect.isgeneratorfunction(function):
            raise _later("a generator", call)


def refuse_later_answer(answer: Any, call: Any) -> None:
    """Raise TypeError for an answer whose work is still to be done."""
    if inspect.isasyncgen(answer):
        raise _later("an async generator", call)
    kind = type(answer)
    if kind.__module__ == "multiprocessing.pool" and hasattr(answer, "get"):
        raise _later("a pool's result", call)
    if isinstance(answer, Iterator) and kind.__module__ in ("builtins", "itertools", "multiprocessing.pool"):
        raise _later(f"a {kind.__name__}", call)
    if isinstance(answer, Future):
        raise _later("a future", call)
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()  # or Python warns that nobody awaited it
        raise _later("a coroutine" if inspect.iscoroutine(answer) else "an awaitable", call)


def _later(what: str, call: Any) -> TypeError:
    cures = {
        "an async generator": "asyncio.run(collect(model(x))), where collect is async and goes through it",
        "a coroutine": "asyncio.run(model(x))",
        "an awaitable": "asyncio.run(model(x)), where model is async and awaits it",
        "a future": "model(x).result()",
        "a pool's result": "model(x).get()",
    }
    cure = cures.get(what, "list(model(x))")
    return TypeError(f"{_name(call)} gives {what}: its call returns before the work is done; measure lambda x: {cure}")


def check_helper(role: str, function: Any) -> None:
    """Raise TypeError if `setup` or `sync` is no function, or only begins its work."""
    if function is None:
        return
    if not callable(function):
        raise TypeError(f"{role} is {function!r}; it must be a function")
    try:
        refuse_later(function)
    except TypeError:
        raise TypeError(
            f"{role} is asynchronous, and nobody awaits it; pass a function that does all its work"
        ) from None


def cuda_sync(runtime: Any = None) -> Callable[[], None]:
    """Return a function that waits until the GPU has done its work, for ``sync=``: cudaDeviceSynchronize by ctypes.

    `runtime` is a loaded libcudart. Raises RuntimeError if there is none, or if it finds no device.
    """
    if runtime is None:
        found = ctypes.util.find_library("cudart")
        names = [found] if found else ["libcudart.so", "libcudart.so.12", "libcudart.so.11.0", "cudart64_12.dll"]
        for name in names:
            with suppress(OSError):
                runtime = ctypes.CDLL(name)
                break
        else:
            raise RuntimeError(
                f"there is no CUDA runtime here (looked for {', '.join(names)}); install it, or pass the framework's "
                "own function, such as sync=torch.cuda.synchronize"
            )

    def sync() -> None:
        if code := runtime.cudaDeviceSynchronize():
            raise RuntimeError(f"cudaDeviceSynchronize failed with CUDA error {code}; is there a GPU with its driver?")

    sync()
    return sync


_COPIED = (np.ndarray, array, list, tuple, deque, dict, set, bytearray, arguments)
_ATOMS = (int, float, complex, str, bytes, NoneType, np.generic)
_MOST_BYTES, _MOST_ITEMS = 2**26, 100_000


def untouched_copy(x: Any) -> Any:
    """Return a deep copy to compare an input with later: of arrays, containers and what is in them, up to 64 MiB.

    The input itself where it is larger, or holds anything else: nobody knows what its copy would cost, or share.
    """
    items, size, rest = 0, 0, [x]
    while rest:
        value = rest.pop()
        items, size = items + 1, size + int(getattr(value, "nbytes", 0))
        size += len(value) * value.itemsize if isinstance(value, array) else 0
        match value:
            case arguments():
                inner: Any = [*value.args, *value.kwargs.values()]
            case dict():
                inner = [*value.keys(), *value.values()]
            case list() | tuple() | deque() | set():
                inner = value
            case np.ndarray() if value.dtype.hasobject:
                return x
            case _ if isinstance(value, _COPIED + _ATOMS):
                inner = ()
            case _:
                return x
        if items + len(inner) > _MOST_ITEMS or size > _MOST_BYTES:
            return x
        rest += inner
    return deepcopy(x)


def same_content(a: Any, b: Any) -> bool:
    """Whether an input still holds what its copy holds; True for a kind of object that nobody can look into."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    match a:
        case np.ndarray():
            return bool(a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes())
        case arguments():
            return same_content([*a.args, a.kwargs], [*b.args, b.kwargs])
        case dict():
            return list(a) == list(b) and all(map(same_content, a.values(), b.values()))
        case list() | tuple() | deque():
            return len(a) == len(b) and all(map(same_content, a, b))
        case array():
            return bool(a.tobytes() == b.tobytes())  # NaN equals itself here
        case set() | bytearray() | int() | float() | complex() | str() | bytes():
            return bool(a == b)
    return True


@dataclass
class Subject:
    """A model at the timed line, with its input `given`; `timed` is `timed_calls`.

    `call` takes one argument: `x`, or what `setup` makes of `given`. `loops` calls make one measurement, from which
    `overhead` s are taken off. `until` is when the time is out, `copy` what the input held at first, `size` its length;
    `answered` is False while nobody has seen an answer. `first` is the warm-up's only call, which stands for the first
    round where there is no time for another.
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

    def make_ready(self, prepare: Callable[..., Any], warmup_runs: int, seconds: float, step: float = 0.0) -> None:
        """Warm up on a copy of the input, for `seconds` at most or by one call that takes longer, and calibrate.

        A clock that moves by `step` s is too coarse to follow a warm-up; time.perf_counter does it then.
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
        notes |= {key: _name(each) for key, each in (("setup", self.setup), ("sync", self.sync)) if each}
        self.metadata |= notes | {"clock": _name(self.clock)}
        self.loops = 1 if self.setup else self.loops
        self.check_input()

    def measure(self) -> float:
        """Return one measurement in s per call."""
        return self.times(1)[0]

    def times(self, runs: int) -> list[float]:
        """Return measurements in s per call."""
        if (first := self.first) is not None:
            if self.clock() + first > self.until:
                self.until = -math.inf  # nothing is measured any more
                self.metadata["cold"] = True
                return [first] * runs
            self.first = None
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
        """Raise ValueError if calls have changed the input, or used it up."""
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


def used_up(x: Any) -> bool:
    """Whether an iterator, or one among several arguments, has come to its end; takes an item from one that has not."""
    each = [*x.args, *x.kwargs.values()] if isinstance(x, arguments) else [x]
    return any(isinstance(it, Iterator) and not hasattr(it, "seek") and next(it, each) is each for it in each)


def _length(x: Any) -> int | None:
    with suppress(Exception):  # of an array without dimensions, or of any other object
        return len(x)
    return None


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _call_in_turn(job: tuple[Call, list[Any]]) -> None:
    call, inputs = job
    for x in inputs:
        call(x)


def clock_step(clock: Clock, seconds: float = 0.02) -> float:
    """Return the step in s of a clock that moves in coarse ones; 0.0 for a fine one, and for one that stands still."""
    readings = [clock() for _ in range(200)]
    steps = {after - before for before, after in pairwise(readings)}
    if steps != {0.0}:  # a fine clock moves between any two readings
        return min(steps - {0.0}) if 0.0 in steps and min(steps - {0.0}) > 5e-7 else 0.0
    began, until = readings[-1], time.perf_counter() + seconds
    while clock() == began and time.perf_counter() < until:
        pass
    if clock() == began:
        return 0.0
    moments = [clock()]
    while len(moments) < 5:  # the first lies somewhere within a step
        if (now := clock()) != moments[-1]:
            moments.append(now)
    return min(after - before for before, after in pairwise(moments[1:]))


def share_calibration(subjects: Sequence[Subject], step: float = 0.0) -> None:
    """Give subjects of like length the same loops, and all the same overhead: equal models must be timed equally.

    A measurement lasts at least 10 µs, and 20 steps of a clock that moves by `step` s.
    """
    warm, least = [subject for subject in subjects if subject.metadata["warmup"]], max(10e-6, 20 * step)
    for subject in warm:
        median = subject.metadata["warmup"]["median"]
        if step:
            subject.loops = next_size(math.ceil(least / max(median, 1e-9)) - 1)
        elif subject.setup or median < least:
            _lengthen(subject, least)
    for group in _alike(sorted(warm, key=_warm_median)):
        loops = max(subject.loops for subject in group)
        for subject in group:
            subject.loops = loops
    overhead = min(subject.metadata["timer_overhead"] for subject in subjects)
    for subject in subjects:
        subject.overhead = overhead
        subject.metadata |= {"loops": subject.loops, "timer_overhead": overhead}


def _warm_median(subject: Subject) -> float:
    return max(float(subject.metadata["warmup"]["median"]), 1e-9)


def _alike(subjects: Sequence[Subject]) -> list[Sequence[Subject]]:
    """Cut sorted subjects at the widest gaps, until no gap is above 3 times and no group spans more than 10 times."""
    if len(subjects) < 2:
        return [subjects] if subjects else []
    medians = [_warm_median(subject) for subject in subjects]
    gaps = [after / before for before, after in pairwise(medians)]
    if max(gaps) <= 3 and medians[-1] <= 10 * medians[0]:
        return [subjects]
    cut = gaps.index(max(gaps)) + 1
    return _alike(subjects[:cut]) + _alike(subjects[cut:])


def _lengthen(subject: Subject, least: float) -> None:
    """Raise the loops until a measurement lasts `least` s, and 20 steps of a clock that was seen to stand still."""
    seen: list[float] = []
    while subject.loops <= 10_000_000:
        took = [elapsed * subject.loops for elapsed in subject.times(3)]
        seen += [elapsed for elapsed in took if elapsed > 0]
        if 0.0 in took and seen:
            least = max(least, 20 * min(seen))
        if min(took) >= least:
            return
        subject.loops = next_size(subject.loops)
    raise RuntimeError(
        f"10 million calls of {subject.name or 'the model'} took less than {least:.3g} s by this clock, whose steps "
        "are too coarse for them, or which stands still; use time.perf_counter"
    )


def next_size(loops: int) -> int:
    """Return the next of 1, 2, 5, 10, 20, 50, …"""
    power = 1
    while 10 * power <= loops:
        power *= 10
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power > loops)


class Record:
    """The values of rounds by name; an exception or Ctrl-C among them carries the results of the complete rounds.

    Leaving the block checks that no input has changed. The metadata get `notes` and, cut to the complete rounds, the
    lists `by_round`.
    """

    def __init__(self, subjects: Mapping[str, Subject], notes: Mapping[str, Any], **by_round: Sequence[Any]) -> None:
        self.subjects, self.notes, self.by_round = subjects, notes, by_round
        self.values: dict[str, list[float]] = {name: [] for name in subjects}
        self.pauses: dict[int, float] = {}

    def __enter__(self) -> Record:
        """Begin."""
        return self

    def in_time(self, orders: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
        """Yield orders, one at least, as long as a round like the shortest so far fits into the time."""
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
        """Keep a measurement in s per call."""
        self.values[name].append(seconds)

    @property
    def rounds(self) -> int:
        """How many rounds are complete."""
        return min(map(len, self.values.values()))

    def results(self) -> dict[str, BenchmarkResult]:
        """Return the results of the complete rounds."""
        shared = {**self.notes, **{key: list(each[: self.rounds]) for key, each in self.by_round.items()}}
        if pauses := self._long_rounds():
            shared["pauses"] = pauses
        found = {}
        for name, values in self.values.items():
            own = self.subjects[name].metadata
            metadata = {**own, "model": name or own["model"], **shared}
            found[name] = BenchmarkResult("latency", values[: self.rounds], metadata, unit="s")
        return found

    def _long_rounds(self) -> list[dict[str, float]]:
        """Return the rounds above 1 s and 100 times the usual: the machine seems to have stood still."""
        taken = [
            sum(values[i] * self.subjects[name].loops for name, values in self.values.items())
            for i in range(self.rounds)
        ]
        most = max(1.0, 100 * median(taken))
        found = {i: max(seconds, self.pauses.get(i, 0.0)) for i, seconds in enumerate(taken, 1)}
        return [{"round": i, "seconds": seconds} for i, seconds in found.items() if seconds > most]

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        """Check the inputs, or attach what is complete to the error."""
        if error is None:
            for subject in self.subjects.values():
                subject.check_input()
            return
        self.notes = {**self.notes, "interrupted": f"{kind.__name__} in round {self.rounds + 1}"}
        vars(error)["results"] = self.results() if self.rounds else {}
        if self.rounds:
            with suppress(Exception):  # such as an error that is a frozen dataclass
                error.add_note(f"{self.rounds} complete rounds were measured before; they are in error.results")

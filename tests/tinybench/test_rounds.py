"""Rounds that treat equal models equally, end in time, take any call, and lose nothing; by fake clocks and devices."""

from __future__ import annotations

import array
import asyncio
import collections
import copy
import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.pool import ThreadPool
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tinybench.latency import measure_latencies, measure_latency, measure_session_latency, ready
from tinybench.support.rounds.calibration import clock_step
from tinybench.support.rounds.checked_calls import arguments, cuda_sync, fed_by_name, same_content, untouched_copy


class Clock:
    """Moves only when a model moves it, and shows only whole steps."""

    def __init__(self, step: float = 0.0) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        return math.floor(self.now / self.step) * self.step if self.step else self.now

    def model(self, *seconds: float) -> Callable[[Any], Any]:
        """Return a call that takes these seconds, the last for ever."""
        rest = list(seconds)

        def call(x: Any) -> Any:
            self.now += rest.pop(0) if len(rest) > 1 else rest[0]
            return x

        return call


def test_models_of_like_length_share_loops_and_all_share_the_overhead() -> None:
    clock = Clock()
    seconds = {"a": 0.9e-6, "b": 2.4e-6, "c": 1e-3, "d": 1.1e-3, "e": 9e-6, "f": 11e-6}
    subjects = ready({name: clock.model(took) for name, took in seconds.items()}, None, clock=clock)
    loops = {name: subject.loops for name, subject in subjects.items()}
    assert loops["a"] == loops["b"] == 20
    assert loops["c"] == loops["d"] == 1
    assert loops["e"] == loops["f"] == 2
    assert len({subject.overhead for subject in subjects.values()}) == 1
    assert all(subject.metadata["loops"] == subject.loops for subject in subjects.values())
    for name, subject in subjects.items():
        assert subject.measure() == pytest.approx(seconds[name])


def test_a_long_row_of_lengths_does_not_give_long_calls_many_loops() -> None:
    clock = Clock()
    subjects = ready({str(i): clock.model(1e-7 * 2.5**i) for i in range(12)}, None, clock=clock)
    for subject in subjects.values():
        assert subject.measure() * subject.loops < 2e-3 or subject.loops == 1


@pytest.mark.parametrize("seconds", [2e-6, 1e-3, 0.4])
def test_a_coarse_clock_gets_measurements_of_many_steps(seconds: float) -> None:
    clock = Clock(step=0.015)
    model = clock.model(seconds)
    result = measure_latencies({"a": model, "b": model}, None, measurement_runs=4, clock=clock)["a"]
    assert result.median == pytest.approx(seconds, rel=0.06)


def test_a_real_coarse_clock_is_noticed() -> None:
    def ticking() -> float:
        return math.floor(time.perf_counter() / 0.004) * 0.004

    [subject] = ready({"a": lambda x: sum(range(200))}, None, clock=ticking, max_seconds=2).values()
    assert subject.metadata["clock_step"] >= 0.0039  # more where the machine was busy meanwhile
    assert subject.measure() * subject.loops >= 0.03


def test_steps_of_clocks() -> None:
    count = iter(range(10**6))
    assert clock_step(time.perf_counter) == 0
    assert clock_step(lambda: 0.001 * next(count)) == 0, "a clock whose readings take long is not coarse"
    assert clock_step(lambda: 1.0, seconds=0.001) == 0
    assert clock_step(lambda: next(count) // 50 * 1e-6) == pytest.approx(1e-6)


def test_a_clock_that_stands_still_is_refused() -> None:
    with pytest.raises(RuntimeError, match="clock"):
        measure_latencies({"a": len}, "word", clock=lambda: 1.0)


@pytest.mark.parametrize("limit", [3.0, 4.0, 7.5])
def test_rounds_end_in_time_warm_up_included(limit: float) -> None:
    clock = Clock()
    models = {"a": clock.model(1.0), "b": clock.model(1.0)}
    results = measure_latencies(models, None, measurement_runs=1000, clock=clock, max_seconds=limit)
    assert clock.now <= max(4.0, limit)  # a call to warm up and one round, if nothing else fits
    assert results["a"].count == max(1, int(limit - 2) // 2)
    assert len(results["a"].metadata["round_orders"]) == results["a"].count
    assert results["a"].metadata["warmup"]["calls"] == 1


def test_short_calls_take_a_quarter_to_warm_up() -> None:
    clock = Clock()
    subjects = ready({"a": clock.model(1e-3), "b": clock.model(1e-3)}, None, clock=clock, max_seconds=0.4)
    assert clock.now < 0.15
    assert all(subject.metadata["warmup"]["calls"] > 20 for subject in subjects.values())


def test_a_session_ends_in_time() -> None:
    clock = Clock()

    def sleep(seconds: float) -> None:
        clock.now += seconds

    session = measure_session_latency(clock.model(1.0), None, 30, 5.0, clock=clock, sleep=sleep, max_seconds=10)
    assert clock.now <= 10
    assert 1 <= session.count < 30
    assert len(session.metadata["round_starts"]) == session.count


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf])
def test_impossible_limits_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="max_seconds is"):
        measure_latencies({"a": len}, "word", max_seconds=bad)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_error_carries_the_complete_rounds(error: type[BaseException]) -> None:
    clock, calls = Clock(), 0

    def fails(x: Any) -> None:
        nonlocal calls
        calls += 1
        clock.now += 0.01
        if calls == 50:
            raise error("in round 50")

    with pytest.raises(error) as raised:
        measure_latencies({"a": clock.model(0.02), "b": fails}, None, 0, 100, clock)
    assert any("49 complete rounds" in note for note in raised.value.__notes__)
    found = vars(raised.value)["results"]
    assert {name: result.count for name, result in found.items()} == {"a": 49, "b": 49}
    assert found["a"].metadata["interrupted"] == f"{error.__name__} in round 50"
    assert len(found["a"].metadata["round_orders"]) == 49


def test_a_session_that_fails_keeps_its_rounds() -> None:
    clock = Clock()
    counter = iter(range(100))

    def fails(x: Any) -> None:
        clock.now += 0.01
        if next(counter) == 60:
            raise OSError("unplugged")

    with pytest.raises(OSError, match="unplugged") as raised:
        measure_session_latency(fails, None, 30, 1.0, clock=clock, sleep=lambda wait: None)
    [session] = vars(raised.value)["results"].values()
    assert session.count == len(session.metadata["round_starts"]) > 1


def test_an_error_before_the_first_round_has_no_results() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        measure_latencies({"a": lambda x: 1 / 0}, None)
    assert not hasattr(raised.value, "results")


def test_a_machine_that_stood_still_is_told() -> None:
    clock = Clock()
    model = clock.model(*[0.01] * 30, 3600.0, 0.01)
    result = measure_latencies({"a": model}, None, 0, 100, clock)["a"]
    assert result.metadata["pauses"] == [{"round": 31, "seconds": pytest.approx(3600)}]
    assert result.median == pytest.approx(0.01)
    assert "pauses" not in measure_latencies({"a": clock.model(0.01)}, None, 0, 100, clock)["a"].metadata


INPUTS: list[Any] = [
    [3, 1, 2],
    (1, 2),
    {"ids": [1, 2], "mask": [1]},
    "text",
    None,
    {1, 2},
    bytearray(b"abc"),
    [[1, 2], [3]],
    np.ones((2, 3)),
    np.float32(2),
]


@pytest.mark.parametrize("given", INPUTS, ids=lambda x: type(x).__name__)
def test_inputs_are_passed_as_they_are(given: Any) -> None:
    clock, seen = Clock(), list[Any]()

    def model(x: Any) -> None:
        seen.append(x)
        clock.now += 0.05

    measure_latencies({"a": model, "b": model}, given, measurement_runs=2, clock=clock)
    assert all(type(x) is type(given) and same_content(x, given) for x in seen)
    assert all(x is given for x in seen[-4:]), "the measured calls get the very object"
    assert measure_latency(model, given, clock=clock).metadata["input_dtype"]


def test_a_table_is_passed_as_it_is() -> None:
    pandas = pytest.importorskip("pandas")
    table, seen = pandas.DataFrame({"a": [1, 2]}), list[Any]()
    result = measure_latencies({"a": seen.append, "b": seen.append}, table, measurement_runs=2)["a"]
    assert all(x is table for x in seen)
    assert result.metadata["input_shape"] == [2, 1]


@pytest.mark.parametrize(
    "given",
    [arguments(1, 2), arguments(1, b=2), arguments(a=1, b=2), arguments()],
    ids=["positional", "mixed", "named", "none"],
)
def test_several_arguments(given: arguments) -> None:
    clock, seen = Clock(), list[Any]()

    def model(a: int = 0, b: int = 0) -> None:
        seen.append((a, b))
        clock.now += 0.05

    measure_latencies({"a": model, "b": model}, given, measurement_runs=2, clock=clock)
    measure_latencies({"a": model}, given, measurement_runs=2, clock=clock, setup=copy.deepcopy)
    assert set(seen) == ({(0, 0)} if not (given.args or given.kwargs) else {(1, 2)})


def test_arguments_read_as_they_are_written() -> None:
    assert repr(arguments([1], causal=True)) == "arguments([1], causal=True)"


class Session:
    """Looks like a session of two inputs."""

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name="ids", type="tensor(int64)"), SimpleNamespace(name="mask", type="tensor(float)")]

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name="label"), SimpleNamespace(name="scores")]

    def run(self, names: list[str], feed: dict[str, Any]) -> list[Any]:
        self.fed = feed
        return names


def test_a_session_of_several_inputs_is_fed_by_name() -> None:
    session = Session()
    feed = {"mask": [[1, 0]], "ids": np.ones((1, 2))}
    measure_latencies({"a": session, "b": session}, feed, measurement_runs=2)
    assert {name: str(x.dtype) for name, x in session.fed.items()} == {"ids": "int64", "mask": "float32"}
    assert fed_by_name(session)(feed) == "scores"
    assert fed_by_name(session)(**feed) == "scores"  # as `arguments` gives them
    with pytest.raises(ValueError, match=r"a dictionary of arrays by name \(.*\), not a tuple"):
        fed_by_name(session)(*feed.values())
    for wrong in ({"ids": 1}, {**feed, "other": 1}, np.ones(2)):
        with pytest.raises(ValueError, match=r"dictionary of arrays by name \(ids, mask\)"):
            measure_latency(session, wrong)


async def coroutine(x: Any) -> None: ...


def generator(x: Any) -> Iterator[Any]:
    yield x


async def stream(x: Any) -> Any:
    yield x


class Served:
    async def __call__(self, x: Any) -> None: ...

    async def predict(self, x: Any) -> None: ...


LATER: dict[str, tuple[Any, str]] = {
    "coroutine": (coroutine, r"asyncio\.run\(model\(x\)\)"),
    "partial": (partial(coroutine), r"asyncio\.run"),
    "lambda": (lambda x: coroutine(x), r"asyncio\.run"),
    "method": (Served().predict, r"asyncio\.run"),
    "object": (Served().__call__, r"asyncio\.run"),
    "predict": (Served(), r"asyncio\.run"),
    "generator": (generator, r"list\(model\(x\)\)"),
    "generator of a lambda": (lambda x: (v for v in x), r"list\(model\(x\)\)"),
    "map": (lambda x: map(str, x), r"list\(model\(x\)\)"),
    "stream": (stream, "collect is async"),
    "stream of a lambda": (lambda x: stream(x), "collect is async"),
    "future": (lambda x: ThreadPoolExecutor(1).submit(len, x), r"model\(x\)\.result\(\)"),
}


@pytest.mark.parametrize("warmup_runs", [5, 0])
@pytest.mark.parametrize("name", LATER)
def test_what_answers_later_is_refused_with_the_cure(name: str, warmup_runs: int) -> None:
    model, cure = LATER[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a coroutine that nobody awaited
        with pytest.raises(TypeError, match=f"returns before the work is done; measure lambda x: .*{cure}"):
            measure_latencies({"a": model, "b": len}, "word", warmup_runs)
        with pytest.raises(TypeError, match="before the work is done"):
            measure_latency(model, "word", warmup_runs)


def test_the_cures_work() -> None:
    cured = {"coroutine": lambda x: asyncio.run(coroutine(x)), "generator": lambda x: list(generator(x))}
    assert list(measure_latencies(cured, "word", measurement_runs=1)) == list(cured)


@pytest.mark.parametrize(
    ("change", "given"),
    [
        (lambda x: x.append(1), [3]),
        (lambda x: x.sort(), [3, 1, 2]),
        (lambda x: x.update(b=1), {"a": 1}),
        (lambda x: x["rows"].append(1), {"rows": [1]}),
        (lambda x: x.pop(), {1, 2, 3}),
        (lambda x: x.reverse(), bytearray(b"abc")),
        (lambda x: np.add(x, 1, out=x), np.ones(3)),
        (lambda x: x[0].append(1), ([1],)),
        (lambda x: x.rotate(1), collections.deque([1, 2])),
        (lambda x: x.append(1.0), array.array("d", [math.nan])),
    ],
)
def test_inputs_that_change_are_found_and_left_as_they_were(change: Callable[[Any], Any], given: Any) -> None:
    before = copy.deepcopy(given)
    with pytest.raises(ValueError, match=r"'?changer'? changes its input, a \w+: .*setup=copy\.deepcopy"):
        measure_latencies({"changer": change, "b": lambda x: None}, given, warmup_runs=3)
    assert same_content(given, before)
    results = measure_latencies({"changer": change}, given, measurement_runs=3, setup=copy.deepcopy)
    assert same_content(given, before)
    assert results["changer"].metadata["setup"] == "deepcopy"


def test_without_warm_up_a_change_is_found_at_the_end() -> None:
    with pytest.raises(ValueError, match="changes its input") as raised:
        measure_latency(lambda x: x.append(1), [3], warmup_runs=0)
    assert raised.value


def test_an_input_too_large_to_copy_tells_by_its_length() -> None:
    with pytest.raises(ValueError, match="changes its input, a dict"):
        measure_latency(lambda x: x.popitem(), dict.fromkeys(range(200_000)))


def test_what_cannot_be_copied_cheaply_is_taken_as_it_is() -> None:
    for x in (np.zeros(2**24), list(range(200_000)), [object()], {"a": threading_lock()}, np.array([{}], object)):
        assert untouched_copy(x) is x
    assert untouched_copy(nested := [[1], {"a": np.ones(2)}]) is not nested


def threading_lock() -> Any:
    import threading

    return threading.Lock()


def test_same_content_looks_inside() -> None:
    assert same_content(
        [1, math.nan, "a", {"b": np.array([math.nan])}], copy.deepcopy([1, math.nan, "a", {"b": np.array([math.nan])}])
    )
    for a, b in (([1], [1.0]), ([1], [1, 2]), ({"a": 1}, {"b": 1}), (np.ones(2), np.ones(3)), ({1}, {2}), ([1], (1,))):
        assert not same_content(a, b)
    assert same_content(object, object)


@pytest.mark.parametrize("seconds", [2e-6, 0.01])
def test_setup_is_called_for_each_call_outside_the_time(seconds: float) -> None:
    clock, made = Clock(), list[Any]()

    def setup(x: list[int]) -> list[int]:
        clock.now += 0.5
        made.append(list(x))
        return made[-1]

    seen: list[int] = []

    def model(x: list[int]) -> None:
        seen.append(id(x))
        x.append(1)
        clock.now += seconds

    result = measure_latencies({"a": model}, [1], 3, 4, clock, setup=setup)["a"]
    np.testing.assert_allclose(result.values, seconds, rtol=1e-6)
    assert all(x == [1, 1] for x in made[-result.metadata["loops"] :])
    assert result.metadata["loops"] == (5 if seconds < 1e-5 else 1)


class Device:
    """Launches take no time; the work is done when somebody waits for it."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.ready = clock, 0.0

    def launch(self, x: Any) -> None:
        self.clock.now += 1e-4
        self.ready = max(self.ready, self.clock.now) + 0.05

    def wait(self) -> None:
        self.clock.now = max(self.clock.now, self.ready)


def test_a_device_that_answers_later_is_waited_for() -> None:
    clock = Clock()
    device = Device(clock)
    launches = measure_latencies({"a": device.launch}, None, 1, 3, clock)["a"]
    np.testing.assert_allclose(launches.values, 1e-4, rtol=1e-3)
    clock = Clock()
    device = Device(clock)
    models = {"a": device.launch, "b": clock.model(0.01)}
    results = measure_latencies(models, None, 1, 5, clock, sync=device.wait)
    np.testing.assert_allclose(results["a"].values, 0.0501, rtol=1e-3)
    np.testing.assert_allclose(results["b"].values, 0.01, rtol=1e-3)
    assert results["a"].metadata["sync"] == "wait"


def test_the_device_is_waited_for_before_the_clock_starts() -> None:
    clock = Clock()
    device = Device(clock)
    [subject] = ready({"a": clock.model(0.01)}, None, clock=clock, sync=device.wait).values()
    device.launch(None)
    assert subject.measure() == pytest.approx(0.01)


def test_cuda_is_waited_for_through_its_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    cuda_sync(SimpleNamespace(cudaDeviceSynchronize=lambda: calls.append(1) or 0))()
    assert len(calls) == 2
    with pytest.raises(RuntimeError, match="CUDA error 100; is there a GPU"):
        cuda_sync(SimpleNamespace(cudaDeviceSynchronize=lambda: 100))

    def nothing(name: str) -> Any:
        raise OSError(name)

    monkeypatch.setattr("tinybench.support.rounds.checked_calls.ctypes.CDLL", nothing)
    with pytest.raises(RuntimeError, match=r"no CUDA runtime here .*sync=torch\.cuda\.synchronize"):
        cuda_sync()


@pytest.mark.parametrize("mode", ["as_served", "hot"])
def test_setup_and_sync_work_in_every_mode(mode: str) -> None:
    clock = Clock()
    device = Device(clock)
    result = measure_latencies({"a": device.launch}, [1], 1, 2, clock, mode, setup=list, sync=device.wait)["a"]
    np.testing.assert_allclose(result.values, 0.0501, rtol=1e-3)


@pytest.mark.parametrize("kind", ["lambda", "partial", "builtin", "method"])
def test_mixed_kinds_of_calls_share_one_calibration(kind: str) -> None:
    calls = {"lambda": lambda x: x, "partial": partial(max, 3), "builtin": abs, "method": (2).__add__}
    results = measure_latencies({"a": calls[kind], "b": lambda x: x}, 1, measurement_runs=20, max_seconds=1)
    loops = [result.metadata["loops"] for result in results.values()]
    warm = [result.metadata["warmup"]["median"] for result in results.values()]
    assert min(loops) > 10
    assert len(set(loops)) == 1 or max(warm) > 3 * min(warm), (loops, warm)  # above 3 times they are not of like length
    assert 0 < results["a"].median < 1e-4


def test_inputs_that_are_used_up_are_found() -> None:
    for given in (iter([1, 2]), (i for i in range(3)), arguments(iter([1]))):
        with pytest.raises(ValueError, match=r"uses up its input, a \w+: .*setup="):
            measure_latencies({"a": sum}, given)
    measure_latency(next, itertools.cycle([1, 2]))  # does not end
    measure_latency(sum, [1, 2], setup=iter)


def test_answers_that_are_still_to_be_computed_are_refused() -> None:
    with ThreadPool(1) as pool:
        lazy: list[Callable[[Any], Any]] = [
            lambda x: zip(x, x, strict=True),
            lambda x: itertools.starmap(pow, [x]),
            lambda x: pool.apply_async(len, (x,)),
            lambda x: pool.imap(len, [x]),
        ]
        for call in lazy:
            with pytest.raises(TypeError, match="before the work is done"):
                measure_latency(call, [1, 2])


def test_helpers_that_cannot_help_are_refused() -> None:
    async def later(*_: Any) -> None: ...

    for helper, message in ((later, "is asynchronous"), (5, "is 5; it must be a function")):
        with pytest.raises(TypeError, match=f"^setup {message}"):
            measure_latency(len, [1], setup=helper)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=f"^sync {message}"):
            measure_latency(len, [1], sync=helper)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="or its setup changes the input"):
        measure_latency(len, [1], setup=lambda x: x.append(1) or x)
    with pytest.raises(ValueError, match="gives nanoseconds"):
        measure_latency(len, [1], clock=time.perf_counter_ns)
    with pytest.raises(TypeError, match="models is a list; pass a dictionary"):
        measure_latencies([len], [1])  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["as_served", "hot"])
def test_calls_longer_than_the_time_are_made_once(mode: str) -> None:
    clock = Clock()
    models = {"a": clock.model(0.8), "b": clock.model(0.9)}
    results = measure_latencies(models, None, clock=clock, mode=mode, max_seconds=1.0)
    assert [result.values for result in results.values()] == [[pytest.approx(0.8)], [pytest.approx(0.9)]]
    assert clock.now == pytest.approx(1.7, abs=0.01)
    assert results["a"].metadata["cold"]


@dataclass(frozen=True)
class Frozen(Exception):
    code: int


def test_an_error_that_takes_no_note_keeps_its_rounds() -> None:
    counter = iter(range(100))

    def fails(x: Any) -> None:
        if next(counter) == 90:
            raise Frozen(3)
        time.sleep(1e-5)

    with pytest.raises(Frozen) as raised:
        measure_latencies({"a": fails}, None, warmup_runs=0, measurement_runs=100)
    assert vars(raised.value)["results"]["a"].count == 90

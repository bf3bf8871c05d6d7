"""Hidden checks of module 03: fake clocks that only fake models move, counted calls, NumPy and SciPy as the truth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import stats

from autograder.checks import FakeClock, all_close, close, draw, expect, judges, raises, words
from tinybench.result import runs_for_percentile


class Clock(FakeClock):
    """Stands still but for what a model or a sleep adds, and for `tick` seconds at every reading."""

    def __init__(self, now: float = 0.0, tick: float = 0.0) -> None:
        super().__init__(now)
        self.tick = tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now

    @property
    def standing(self) -> float | None:
        return None if self.tick else self.now


class Model:
    """Takes the given seconds, call by call (the last for ever), and keeps what it was called with."""

    def __init__(self, clock: Clock, *seconds: float, log: list[str] | None = None, name: str = "") -> None:
        self.clock, self.seconds, self.log, self.name = clock, seconds, log, name
        self.inputs: list[Any] = []

    def __call__(self, x: Any) -> Any:
        self.clock.now += self.seconds[min(len(self.inputs), len(self.seconds) - 1)]
        self.inputs.append(x)
        if self.log is not None:
            self.log.append(self.name)
        return x


class Session:
    """What `as_callable` needs of an ONNX Runtime session."""

    def __init__(
        self, kind: str = "tensor(float)", inputs: int = 1, outputs: Sequence[str] = ("label", "scores")
    ) -> None:
        self.nodes = [SimpleNamespace(name=f"in{i}", type=kind) for i in range(inputs)]
        self.names, self.fed = list(outputs), {}  # type: ignore[var-annotated]

    def get_inputs(self) -> list[Any]:
        return self.nodes

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name=name, type="tensor(float)") for name in self.names]

    def run(self, names: list[str] | None, feed: dict[str, Any]) -> list[Any]:
        self.fed = feed
        return [(name, next(iter(feed.values()))) for name in (names or self.names)]

    def predict(self, x: Any) -> str:
        return "predict"


def _fitting(rng: np.random.Generator, seconds: float, most: int) -> tuple[float, int]:
    """Return a latency and how many such calls fit into these seconds: neither rounding makes it one more or less."""
    calls = int(rng.integers(2, most + 1))
    return seconds / (calls + float(rng.uniform(0.05, 0.3))), calls


def _offers(*names: str) -> Any:
    """Return an object whose methods of these names return their name."""
    return type("Offers", (), {name: lambda self, x, name=name: name for name in names})()


@judges("session_call", "as_callable")
def models_become_callables(student: Any) -> None:
    """The order of the look-up, the session's name and dtype, and errors that help."""
    order = ["predict_proba", "predict", "forward", "__call__"]
    for start in range(len(order)):
        got = student.as_callable(_offers(*order[start:][::-1]))(None)
        expect(got == order[start], f"of {order[start:]} as_callable should take {order[start]}, it took {got}")
    shadowed = _offers("predict")
    shadowed.predict_proba = None
    expect(
        student.as_callable(shadowed)(None) == "predict",
        "an attribute predict_proba that cannot be called does not count",
    )
    expect(student.as_callable(math.sqrt) is math.sqrt, "a function should be returned as it is, without a wrapper")
    data = draw().normal(size=(3, 2))
    for kind, dtype in (("float", np.float32), ("double", np.float64), ("int64", np.int64)):
        session = Session(f"tensor({kind})")
        output, fed = student.as_callable(session)(data)
        expect(list(session.fed) == ["in0"], f"the session's input is in0; fed was {list(session.fed)}")
        expect(fed.dtype == dtype, f"tensor({kind}) takes {np.dtype(dtype)}, fed was {fed.dtype}")
        expect(np.array_equal(fed, data.astype(dtype)), "the values fed differ from the array given")
        expect(output == "scores", f"the last output is due (probabilities follow labels), got {output!r}")
    single = np.zeros((1, 2), np.float32)
    session = Session(outputs=("logits",))
    expect(student.session_call(session)(single)[0] == "logits", "a session with one output: return that one")
    expect(session.fed["in0"] is single, "an array of the right dtype should be fed as it is, without a copy")
    for bad in ("model.onnx", 3, None, object()):
        raises(
            TypeError,
            lambda bad=bad: student.as_callable(bad),
            f"as_callable({bad!r})",
            mentions=["predict_proba", "forward"],
        )


@judges("timed_calls")
def every_call_is_timed(student: Any) -> None:
    """Each value is one call on a fake clock, nothing else stands between the readings, and loops divide."""
    durations = [float(x) for x in draw().uniform(0.001, 0.1, 20)]
    clock = Clock(1000.0)
    model = Model(clock, *durations)
    marker = object()
    got = student.timed_calls(model, marker, 20, clock)
    expect(type(got) is list, f"timed_calls should return a list, not {type(got).__name__}")
    all_close(got, durations, "timed_calls", cause="one value for each call, in order", rel=1e-6)
    expect(len(model.inputs) == 20, f"20 runs are 20 calls, you made {len(model.inputs)}")
    expect(all(x is marker for x in model.inputs), "the call should get x")
    ticking = Clock(tick=0.25)
    got = student.timed_calls(Model(ticking, 1.0), None, 3, ticking)
    all_close(
        got,
        [1.25] * 3,
        "calls of 1 s on a clock that costs 0.25 s a reading",
        cause="two readings, right around the call",
    )
    clock = Clock()
    model = Model(clock, *(0.001 * (1 + i // 4) for i in range(12)))
    got = student.timed_calls(model, None, 3, clock, loops=4)
    all_close(
        got,
        [0.001, 0.002, 0.003],
        "3 measurements of 4 calls",
        cause="divide the time of the inner loop by loops",
        rel=1e-6,
    )
    expect(len(model.inputs) == 12, f"3 measurements of 4 calls are 12 calls, you made {len(model.inputs)}")
    ticking = Clock(tick=0.25)
    got = student.timed_calls(Model(ticking, 1.0), None, 2, ticking, loops=5)
    all_close(
        got,
        [1.05] * 2,
        "5 calls of 1 s between two readings",
        cause="read the clock around the inner loop, not within it",
    )
    for loops in (1, 4):
        clock = Clock()
        model = Model(clock, *[0.25] * 2 * loops, *[0.001] * loops)
        got = student.timed_calls(model, None, 3, clock, loops, 0.125)
        all_close(
            got,
            [0.25 - 0.125 / loops] * 2 + [0.0],
            f"calls of 0.25 s and 1 ms, {loops} a measurement, overhead 0.125 s",
            cause="overhead comes off each measurement once, before dividing by loops, and no time falls below 0",
        )
    for loops in (1, 3):
        clock = Clock()
        model = Model(clock, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0)
        raises(
            RuntimeError,
            lambda c=clock, m=model, n=loops: student.timed_calls(m, None, 6, c, n),
            "a clock that runs backwards",
            mentions=["backwards"],
        )


@judges("warm_up")
def warm_up_waits_for_the_fall(student: Any) -> None:
    """Time, calls and the end of the fall are all waited for; the report is true; broken clocks end."""
    rng = draw()
    for seconds in (0.001, 0.0004, 0.5, *(float(took) for took in rng.uniform(0.002, 0.2, 3))):
        clock = Clock(50.0)
        model = Model(clock, seconds)
        report = student.warm_up(model, "x", clock=clock)
        calls, took = len(model.inputs), clock.now - 50
        expect(
            calls >= 3 and took >= 0.1 - 1e-9,
            f"{calls} calls in {took:.3f} s for a model of {seconds} s; 100 ms and 3 calls are due",
        )
        expect(
            took < max(0.4, 8 * seconds),
            f"a steady model of {seconds} s was kept busy for {took:.2f} s: stop when it no longer falls",
        )
        close(report["calls"], calls, "report['calls']", cause="count every call")
        close(report["seconds"], took, "report['seconds']", rel=1e-6)
        close(report["median"], seconds, "report['median']", rel=1e-3)
        expect(report["settled"] is True, "a steady model settles")
        expect(all(x == "x" for x in model.inputs), "the call should get the inputs")
    clock = Clock()
    first, steady = float(rng.uniform(0.2, 0.5)), float(rng.uniform(0.001, 0.003))
    report = student.warm_up(Model(clock, first, steady), None, clock=clock)
    close(report["first_call"], first, "report['first_call']", rel=1e-6)
    close(report["median"], steady, "report['median']", cause="the median of the last block", rel=1e-6)
    clock = Clock()
    model, least = Model(clock, 0.01), int(rng.integers(50, 100))
    student.warm_up(model, None, min_calls=least, clock=clock)
    expect(len(model.inputs) >= least, f"min_calls={least}, and you stopped after {len(model.inputs)}")
    clock = Clock()
    shortest = float(rng.uniform(0.5, 0.9))
    student.warm_up(Model(clock, 0.005), None, min_seconds=shortest, clock=clock)
    expect(clock.now >= shortest - 1e-9, f"min_seconds={shortest}, and you stopped after {clock.now:.2f} s")
    clock = Clock()
    top = float(rng.uniform(0.008, 0.012))
    report = student.warm_up(Model(clock, *(top * max(0.2, 0.97**i) for i in range(100))), None, clock=clock)
    close(
        report["median"],
        0.2 * top,
        f"the last median of a model that falls from {1e3 * top:.3g} to {200 * top:.3g} ms",
        cause="go on while the block medians fall",
        rel=0.15,
    )
    clock = Clock()
    longest = float(rng.uniform(4, 6))
    report = student.warm_up(Model(clock, *(0.9**i for i in range(300))), None, max_seconds=longest, clock=clock)
    expect(clock.now < longest + 3.5, f"max_seconds={longest:.3g}, and it ran for {clock.now:.1f} s")
    expect(report["settled"] is False, "a model that was still falling at max_seconds has not settled")
    calls_made: list[int] = []
    plain = Clock()

    def without_inputs() -> None:
        plain.now += 0.02
        calls_made.append(1)

    student.warm_up(without_inputs, clock=plain)
    expect(len(calls_made) >= 3, "warm_up(call) without inputs should work too")
    raises(
        RuntimeError,
        lambda: student.warm_up(float, clock=float),  # by name, without a message: it takes 10 000 readings of 0.0
        "a clock that stands still",
        mentions=["still"],
    )
    raises(ValueError, lambda: student.warm_up(lambda x: x, None, min_calls=-1, clock=Clock()), "min_calls=-1")


def answer_warm_up(student: Any) -> None:
    """100 ms divided by the time of a call."""
    close(student.calls_of_two_milliseconds(), 50, "calls of 2 ms", cause="100 ms / 2 ms")
    close(student.calls_of_five_microseconds(), 20_000, "calls of 5 µs", cause="0.1 s / 5e-6 s")


@judges("prepare", "measure_latency")
def latency_is_warm_and_described(student: Any) -> None:
    """Only warm calls count, each on its own; the metadata tell how; nonsense is refused."""
    steady = [float(x) for x in draw().uniform(0.020, 0.021, 4000)]
    clock = Clock()
    model = Model(clock, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, *steady)
    x = np.ones((16, 5), np.float64)
    result = student.measure_latency(model, x, warmup_runs=6, measurement_runs=30, clock=clock)
    calls = len(model.inputs)
    truth = ([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, *steady])[calls - 30 : calls]
    all_close(result.values, truth, "values", cause="the last 30 calls, each timed once, after the warm-up", rel=1e-6)
    expect(result.unit == "s" and result.metric_name == "latency", "metric 'latency' in 's' expected")
    notes = result.metadata
    expected = {
        "input_shape": [16, 5],
        "input_dtype": "float64",
        "batch_size": 16,
        "warmup_runs": 6,
        "loops": 1,
        "order": "one model alone",
    }
    for key, value in expected.items():
        expect(notes.get(key) == value, f"metadata[{key!r}] should be {value!r}, it is {notes.get(key)!r}")
    for key in ("model", "clock", "gc_enabled"):
        expect(key in notes, f"metadata has no {key!r}")
    close(notes["warmup"]["calls"], calls - 30, "metadata['warmup']['calls']", cause="the report of warm_up")
    close(notes["timer_overhead"], 0.0, "the overhead of a fake clock that costs nothing")
    ticking = Clock(tick=0.001)
    dear = student.measure_latency(Model(ticking, 0.1), x, clock=ticking)
    notes = dear.metadata
    all_close(
        dear.values, [0.1] * 10, "values by a clock that costs 1 ms", cause="take the timer's overhead off", rel=1e-6
    )
    close(
        notes["timer_overhead"],
        0.001,
        "the overhead of a clock that costs 1 ms",
        cause="timer_overhead(clock), with the clock given",
        rel=1e-6,
    )
    clock = Clock()
    model = Model(clock, 0.05)
    student.measure_latency(model, x, warmup_runs=40, measurement_runs=1, clock=clock)
    expect(len(model.inputs) >= 41, f"warmup_runs=40 and 1 run are at least 41 calls, you made {len(model.inputs)}")
    clock = Clock()
    warm = student.measure_latency(Model(clock, 0.001), x, clock=clock).metadata["warmup"]
    expect(
        warm["seconds"] >= 0.1 - 1e-9,
        f"the warm-up lasted {warm['seconds']:.3f} s; without other orders warm_up takes at least 100 ms",
    )
    clock = Clock()
    model = Model(clock, 0.7, 2e-6)
    cold = student.measure_latency(model, x[0], warmup_runs=0, measurement_runs=3, clock=clock)
    all_close(
        cold.values,
        [0.7, 2e-6, 2e-6],
        "cold values",
        cause="warmup_runs=0 makes no call before the first measured one, and no inner loop",
        rel=1e-6,
    )
    expect(
        cold.metadata["batch_size"] == 1 and cold.metadata["loops"] == 1,
        "one vector is a batch of 1, and without warm-up loops is 1",
    )
    clock = Clock()
    # slow calls use up the 10 s of warm-up: judged from outside, each call of a fake is a message
    short = student.measure_latency(Model(clock, 5.0, 5.0, 4e-6), x, warmup_runs=3, measurement_runs=7, clock=clock)
    close(short.metadata["loops"], 5, "loops of a call of 4 µs", cause="calibrate_loops(…, 10e-6): 5 calls last 20 µs")
    all_close(short.values, [4e-6] * 7, "values of a call of 4 µs", cause="seconds per call", rel=1e-3)
    clock = Clock()
    longer = student.measure_latency(Model(clock, 5.0, 5.0, 12e-6), x, warmup_runs=3, clock=clock)
    close(longer.metadata["loops"], 1, "loops of a call of 12 µs")
    clock = Clock()
    counted = student.measure_latency(Model(clock, 0.01), [[1.0, 2.0]], clock=clock)
    expect(counted.count == 10, f"10 measurements are the default, you made {counted.count}")
    expect(counted.metadata["input_shape"] == [1, 2], "a list as input becomes an array of shape (1, 2)")
    fresh = Model(Clock(), 0.01)
    for name, bad in (
        ("measurement_runs", 0),
        ("measurement_runs", -3),
        ("warmup_runs", -1),
        ("measurement_runs", 2.0),
    ):
        raises(
            ValueError,
            lambda n=name, b=bad: student.measure_latency(fresh, x, **{n: b}, clock=fresh.clock),
            f"{name}={bad}",
            mentions=[name],
        )
    expect(not fresh.inputs, "a wrong number of runs should be refused before the model is called")
    raises(
        ValueError,
        lambda: student.measure_latency(fresh, np.ones((0, 3)), clock=fresh.clock),
        "an empty input",
        mentions=["0"],
    )
    raises(TypeError, lambda: student.measure_latency("x", x, clock=fresh.clock), "a model that is text")


@judges("latency_summary")
def summary_has_tails(student: Any) -> None:
    """Percentiles by NumPy, intervals where SciPy's binomial allows one, reasons elsewhere."""
    rng = draw()
    for n in (1, 5, 40, 400):
        values = [float(x) for x in rng.lognormal(-7, 1, n)]
        for confidence in (0.95, 0.8):
            result = student.BenchmarkResult("latency", values, unit="s", confidence=confidence)
            summary = student.latency_summary(result)
            for q in (50, 90, 95, 99):
                key = f"p{q}"
                close(summary[key], float(np.percentile(values, q)), f"{key} of {n} values")
                lower_side, upper_side = (q / 100) ** n, (1 - q / 100) ** n
                enough = max(lower_side, upper_side) <= (1 - confidence) / 2
                where = f"{key} of {n} values at {confidence:.0%}"
                expect(
                    (key in summary["intervals"]) == enough,
                    f"{where}: an interval is {'due' if enough else 'not to be had'}",
                )
                expect(
                    (key in summary["reasons"]) != enough,
                    f"{where}: a reason belongs to a number without interval, and only there",
                )
                if enough:
                    below, tail = np.arange(n), (1 - confidence) / 2
                    ranks = [  # the last r with P(below < r) ≤ tail, the first with P(below ≥ r) ≤ tail
                        int(np.sum(stats.binom.cdf(below, n, q / 100) <= tail)),
                        int(np.sum(stats.binom.sf(below, n, q / 100) > tail)) + 1,
                    ]
                    all_close(
                        summary["intervals"][key],
                        [sorted(values)[r - 1] for r in ranks],
                        f"interval of {where}",
                        cause="use the result's confidence",
                    )
                else:
                    expect(
                        str(runs_for_percentile(q, confidence)) in summary["reasons"][key],
                        f"the reason of {where} should say how many it takes",
                    )
            close(summary["max"], max(values), "max")
            truth = float(np.mean(np.abs(np.diff(values)))) if n > 1 else 0.0
            close(
                summary["jitter"],
                truth,
                f"jitter of {n} values",
                cause="mean of |difference| of neighbours; 0 for one value",
            )
            expect({"max", "jitter"} <= set(summary["reasons"]), "max and jitter keep their reasons")


def answer_tails(student: Any) -> None:
    """1 − 0.99^100, and the smallest n with q^n ≤ 2.5 %."""
    close(student.pages_that_meet_the_tail(), 1 - 0.99**100, "the share of pages", cause="1 − 0.99 ** 100", rel=0.012)
    all_close(
        student.measurements_for_intervals(),
        [368, 3688],
        "measurements for p99 and p99.9",
        cause="ask runs_for_percentile of module 01",
    )


@judges("inputs_by_model")
def shapes_must_agree(student: Any) -> None:
    """One array serves all; by name the shapes and names must agree."""
    rng = draw()
    first, second, third, stranger = words(rng, 4)
    models = {second: len, first: len, third: len}
    rows, columns = (int(size) for size in rng.integers(2, 9, 2))
    x = rng.random((rows, columns))
    got = student.inputs_by_model(models, x)
    expect(
        list(got) == list(models) and all(value is x for value in got.values()),
        "one array should go to every model, in the models' order",
    )
    named: dict[str, Any] = {first: x, second: x.astype(np.float32), third: x.tolist()}
    got = student.inputs_by_model(models, named)
    expect(list(got) == list(models), "the order should be that of the models")
    own = got[second].dtype == np.float32 and got[first] is x
    expect(own, "each model should get its own array, with its dtype")
    expect(hasattr(got[third], "dtype") and np.array_equal(got[third], x), "a list becomes an array")
    wider = (rows, columns + int(rng.integers(1, 5)))
    for wrong, mentions in (
        ({**named, third: np.ones(wider)}, [str(wider), str((rows, columns)), third]),
        ({**named, third: np.ones(rows * columns)}, [str(rows * columns)]),
        ({first: x, second: x}, [third]),
        ({**named, stranger: x}, [stranger]),
    ):
        raises(
            ValueError,
            lambda w=wrong: student.inputs_by_model(models, w),
            f"inputs of shapes { {name: np.shape(value) for name, value in wrong.items()} }",
            mentions=mentions,
        )
    raises(ValueError, lambda: student.inputs_by_model(models, np.ones((0, 3))), "an empty input")
    raises(ValueError, lambda: student.inputs_by_model({}, x), "no models")


@judges("round_orders")
def orders_are_shuffled(student: Any) -> None:
    """Every order is equally likely (chi-squared), each name comes once, seeds decide."""
    names = ["x", "y", "z"]
    orders = student.round_orders(names, 1200, seed=int(draw().integers(1000)))
    expect(len(orders) == 1200, f"1200 rounds expected, got {len(orders)}")
    expect(all(sorted(order) == names for order in orders), "every round should hold each name once")
    counts: dict[tuple[str, ...], int] = {}
    for order in orders:
        counts[tuple(order)] = counts.get(tuple(order), 0) + 1
    expect(len(counts) == 6, f"three models have 6 orders, only {len(counts)} occur: shuffle every round anew")
    expect(
        float(stats.chisquare(list(counts.values())).pvalue) > 1e-6,
        f"the 6 orders should be equally likely, they came {sorted(counts.values())} times",
    )
    repeats = sum(before == after for before, after in itertools.pairwise(orders))
    expect(120 < repeats < 290, f"an order should follow itself in about 200 of 1200 rounds, yours does in {repeats}")
    expect(names == ["x", "y", "z"], "the list of names given should stay as it was")
    expect(
        student.round_orders(names, 20, seed=7) == student.round_orders(names, 20, seed=7),
        "the same seed should give the same orders",
    )
    expect(
        student.round_orders(names, 20, seed=7) != student.round_orders(names, 20, seed=8),
        "another seed should give other orders",
    )
    expect(
        student.round_orders(names, 20) != student.round_orders(names, 20),
        "without a seed the orders should be fresh each time",
    )


def answer_drift(student: Any) -> None:
    """B comes ten calls later, or one."""
    close(
        student.blocks_look_slower_by(),
        1.0,
        "blocks",
        cause="every call of B comes 10 calls after its partner of A",
        rel=0.06,
    )
    close(
        student.alternating_looks_slower_by(),
        0.1,
        "alternation",
        cause="every call of B comes 1 call after its partner",
        rel=0.06,
    )


@judges("hot_median", "measure_latencies")
def rounds_pair(student: Any) -> None:
    """Every round calls every model once in the recorded order, values sit in their round, metadata pair."""
    rng = draw()
    clock, log = Clock(), list[str]()
    seconds = {name: float(took) for name, took in zip("abc", rng.uniform(0.01, 0.05, 3), strict=True)}
    models = {name: Model(clock, took, log=log, name=name) for name, took in seconds.items()}
    count, batch, seed = (int(number) for number in rng.integers((20, 2, 0), (30, 6, 1000)))
    x = np.ones((batch, 2), np.float32)
    results = student.measure_latencies(
        models, {"a": x, "b": x.astype(float), "c": x}, warmup_runs=2, measurement_runs=count, clock=clock, seed=seed
    )
    expect(list(results) == ["a", "b", "c"], f"one result for each model in their order expected, got {list(results)}")
    notes = {name: result.metadata for name, result in results.items()}
    orders = notes["a"]["round_orders"]
    expect(len(orders) == count, f"{count} orders belong in metadata['round_orders'], there are {len(orders)}")
    before, during = log[: -3 * count], log[-3 * count :]
    expect(
        during == [name for order in orders for name in order],
        "the models were not called in the recorded order, each once a round",
    )
    expect(
        "a" in before and "c" in before and before.count("b") >= 2, "every model should be warm before the first round"
    )
    for name, took in seconds.items():
        all_close(results[name].values, [took] * count, f"values of {name}", rel=1e-6)
        expect(results[name].unit == "s", "the unit is 's'")
        for key, value in {
            "model": name,
            "mode": "as_served",
            "seed": seed,
            "order": "shuffled rounds",
            "round_orders": orders,
            "batch_size": batch,
        }.items():
            expect(
                notes[name].get(key) == value,
                f"metadata[{key!r}] of {name} should be {value!r}, it is {notes[name].get(key)!r}",
            )
    expect(notes["b"]["input_dtype"] == "float64", "each model's metadata should describe its own input")
    expect(
        len({notes[name]["pairing"] for name in notes}) == 1,
        "results of one session should carry the same pairing mark",
    )
    expect(
        models["b"].inputs[-1].dtype == np.float64 and models["a"].inputs[-1].dtype == np.float32,
        "each model should get its own input",
    )
    again = student.measure_latencies(models, x, measurement_runs=3, clock=clock, seed=seed)
    expect(
        again["a"].metadata["pairing"] != notes["a"]["pairing"],
        "two sessions do not pair: each needs a mark of its own, even with the same seed",
    )
    shown = list[int]()

    def bar(rounds: Any) -> Any:
        shown.append(len(list(rounds)))
        return rounds

    wrapped = student.measure_latencies(models, x, measurement_runs=4, clock=clock, progress=bar)
    expect(
        shown == [4] and wrapped["a"].count == 4,
        f"progress should wrap the list of all 4 rounds, once; it was given {shown}",
    )

    clock = Clock()
    durations = {name: [float(took) for took in rng.uniform(0.005, 0.05, 6)] for name in ("a", "b")}
    drifting = {name: Model(clock, *each) for name, each in durations.items()}
    results = student.measure_latencies(drifting, x, warmup_runs=0, measurement_runs=6, clock=clock)
    for name, each in durations.items():
        all_close(
            results[name].values,
            each,
            f"values of {name}",
            cause="value i of every result is from round i; warmup_runs=0 makes no other call",
            rel=1e-6,
        )
    raises(
        ValueError,
        lambda: student.measure_latencies(drifting, x, mode="warm", clock=clock),
        "mode='warm'",
        mentions=["warm", "hot"],
    )
    raises(
        ValueError,
        lambda: student.measure_latencies(drifting, {"a": x, "b": x[:1]}, clock=clock),
        "inputs of different shapes",
        mentions=["(1, 2)"],
    )
    ticking, took = Clock(tick=0.001), float(rng.uniform(0.05, 0.2))
    dear = {name: Model(ticking, took) for name in ("a", "b")}
    for mode in ("as_served", "hot"):
        values = student.measure_latencies(dear, x, measurement_runs=2, clock=ticking, mode=mode)["b"].values
        all_close(
            values,
            [took] * 2,
            f"values by a clock that costs 1 ms, mode {mode}",
            cause="take its overhead off",
            rel=1e-6,
        )
    clock = Clock()
    loops, took = ((2, 8e-6), (5, 4e-6), (10, 1.5e-6))[int(rng.integers(3))]  # of 1, 2, 5, … the first to last 10 µs
    took *= float(rng.uniform(0.8, 1.2))
    tiny = {name: Model(clock, 5.0, 5.0, took) for name in ("a", "b")}
    results = student.measure_latencies(tiny, x, warmup_runs=3, measurement_runs=4, clock=clock)
    what = f"of a call of {1e6 * took:.2f} µs"
    close(results["a"].metadata["loops"], loops, f"loops {what}", cause="use the loops that prepare found")
    all_close(results["b"].values, [took] * 4, f"values {what}", rel=1e-3)


@judges("hot_median", "measure_latencies")
def hot_blocks_are_hot(student: Any) -> None:
    """The first two calls do not count, the block lasts about 5 ms, its median is the value."""
    rng = draw()
    for _ in range(3):
        clock = Clock()
        second, calls = _fitting(rng, 0.005, 6)
        block = [float(took) for took in rng.uniform(0.001, 0.01, calls)]
        close(
            student.hot_median(Model(clock, 0.9, second, *block, 0.9), None, clock),
            float(np.median(block)),
            f"hot_median of a block of {calls} calls",
            cause="the median of the block, without the two calls before it",
            rel=1e-6,
        )
    for took, calls in ((0.001, 5), (0.0001, 50), (0.02, 1), (0.0024, 2), *(_fitting(rng, 0.005, 20) for _ in "123")):
        clock = Clock()
        model = Model(clock, took)
        student.hot_median(model, None, clock)
        expect(
            len(model.inputs) == calls + 2,
            f"2 calls and a block of {calls} expected for a model of {took} s, you made {len(model.inputs)}",
        )
    clock = Clock()
    seconds = float(rng.uniform(0.006, 0.02))
    took, calls = _fitting(rng, seconds, 20)
    model = Model(clock, 0.5, took, took)
    student.hot_median(model, None, clock, seconds=seconds)
    expect(
        len(model.inputs) == calls + 2,
        f"2 calls and a block of {calls} expected when the first call was slow, you made {len(model.inputs)}: "
        "size the block by the shorter of the two",
    )
    clock = Clock()
    loops = int(rng.integers(3, 7))
    each, blocks = _fitting(rng, 0.005, 25)
    took = each / loops
    model = Model(clock, took)
    close(student.hot_median(model, None, clock, loops=loops), took, "hot_median with inner loops", rel=1e-3)
    calls = len(model.inputs) - 2 * loops
    expect(
        calls == blocks * loops,
        f"with loops={loops} a block of 5 ms has {blocks} measurements of {loops} calls of {1e6 * took:.3g} µs, "
        f"you made {calls} calls",
    )
    clock, log = Clock(), list[str]()
    fits = {name: _fitting(rng, 0.005, 6) for name in ("a", "b")}
    models = {name: Model(clock, took, log=log, name=name) for name, (took, _) in fits.items()}
    count, seed = (int(number) for number in rng.integers((4, 0), (9, 1000)))
    results = student.measure_latencies(
        models, np.ones((1, 1)), measurement_runs=count, clock=clock, mode="hot", seed=seed
    )
    before = [len(models[name].inputs) - count * (2 + calls) for name, (_, calls) in fits.items()]
    expect(min(before) >= 3, "mode='hot' makes 2 untimed calls and a block of 5 ms for each model and round")
    expect(
        results["a"].count == count and results["a"].metadata["mode"] == "hot",
        "one value for each round, and the mode in the metadata",
    )
    for name, (took, _) in fits.items():
        all_close(results[name].values, [took] * count, "values in mode hot", rel=1e-6)
    orders = results["a"].metadata["round_orders"]
    truth = [name for order in orders for name in order for _ in range(2 + fits[name][1])]
    expect(
        log[-len(truth) :] == truth,
        "in mode hot each model's two calls and its block stand together, in the recorded order",
    )


@judges("session_starts", "measure_session_latency")
def session_is_spread(student: Any) -> None:
    """Starts are uniform in their slots; the session really waits for them, and never sleeps backwards."""
    rng = draw()
    rounds, seed = (int(number) for number in rng.integers((15, 0), (25, 10**6)))
    seconds = float(rng.uniform(2, 9))
    starts = np.array([student.session_starts(rounds, seconds, seed=seed + i) for i in range(150)])
    expect(starts.shape == (150, rounds), f"{rounds} starts expected, got {starts.shape[1:]}")
    phases = starts / (seconds / rounds) - np.arange(rounds)
    expect(
        bool(np.all((phases >= -1e-9) & (phases <= 1 + 1e-9))),
        "start i should lie in slot i, between i and i + 1 times seconds / rounds",
    )
    # of right answers one in ten thousand million is further off
    expect(
        float(stats.kstest(phases.ravel(), "uniform").pvalue) > 1e-10,
        "within its slot a start should be uniformly random",
    )
    expect(abs(float(np.corrcoef(phases[:, 0], phases[:, 1])[0, 1])) < 0.5, "each start should be drawn on its own")
    all_close(
        student.session_starts(5, 1.0, seed=seed),
        list(student.session_starts(5, 1.0, seed=seed)),
        "starts of the same seed",
    )
    clock, slept, called = Clock(100.0), list[float](), list[float]()

    def sleep(wait: float) -> None:
        slept.append(wait)
        clock.now += wait

    took, calls = _fitting(rng, 0.005, 4)

    def model(_: Any) -> None:
        called.append(clock.now)
        clock.now += took

    batch, rounds = (int(number) for number in rng.integers((2, 12), (6, 19)))
    x, seconds = np.ones((batch, 2)), float(rng.uniform(6, 12))
    result = student.measure_session_latency(
        model, x, rounds=rounds, seconds=seconds, clock=clock, sleep=sleep, seed=seed
    )
    noted = [float(start) for start in result.metadata["round_starts"]]
    each = 2 + calls
    all_close(
        np.diff(noted),
        np.diff(called[-rounds * each :: each]).tolist(),
        "the time between two of round_starts",
        cause="sleep until each start, and note when the round began",
        rel=1e-3,
    )
    all_close(result.values, [took] * rounds, "round medians", rel=1e-6)
    planned = student.session_starts(rounds, seconds, seed=seed)
    truth = list[float]()
    for start in planned:  # a round that is due before the last one has ended begins at once
        truth.append(max(float(start), truth[-1] + each * took if truth else 0.0))
    all_close(
        noted,
        truth,
        "round_starts",
        cause="sleep until each start; count from the start of the session, after the warm-up",
        rel=1e-6,
        abs=1e-9,
    )
    expect(seconds > clock.now - 100 - truth[-1] > 0, "the session should end after its last round")
    close(
        result.metadata["session_seconds"],
        truth[-1] + each * took,
        "session_seconds",
        cause="from the start of the session to the end of the last round",
        rel=0.01,
    )
    expect(
        result.metadata["batch_size"] == batch and result.metadata["warmup"]["calls"] >= 3,
        "what prepare says belongs in the metadata",
    )
    expect(
        result.unit == "s" and result.metadata["order"] == "rounds spread over a session",
        "unit 's' and the order in the metadata",
    )
    slept.clear()
    slow = student.measure_session_latency(Model(clock, 1.0), x, rounds=10, seconds=0.5, clock=clock, sleep=sleep)
    expect(
        slow.count == 10 and all(wait >= 0 for wait in slept),
        "a model slower than its slot is never waited for: sleep only for positive times",
    )
    ticking, took = Clock(tick=0.001), float(rng.uniform(0.05, 0.2))
    dear = student.measure_session_latency(
        Model(ticking, took), x, rounds=10, seconds=1.0, clock=ticking, sleep=lambda wait: None
    )
    all_close(dear.values, [took] * 10, "medians by a clock that costs 1 ms", cause="take its overhead off", rel=1e-6)
    clock = Clock()
    slope = float(rng.uniform(0.5e-6, 2e-6))
    slowing = Model(clock, *(0.001 + slope * i for i in range(5000)))
    rising = list(
        student.measure_session_latency(slowing, x, rounds=10, seconds=1.0, clock=clock, sleep=lambda wait: None).values
    )
    expect(
        rising == sorted(set(rising)),
        "of a model that slows down each round median should be above the one before: measure every round",
    )
    for name, bad in (("rounds", 9), ("rounds", -1), ("seconds", 0.0), ("seconds", -1.0), ("warmup_runs", -1)):
        raises(
            ValueError,
            lambda n=name, b=bad: student.measure_session_latency(
                model, x, **{n: b}, clock=clock, sleep=lambda wait: None
            ),
            f"{name}={bad}",
            mentions=[name],
        )


@judges("measure_cold_start")
def cold_starts_are_fresh(student: Any) -> None:
    """One launch for each repetition, stages kept apart, the task complete."""
    rng = draw()
    stages = ("import", "load", "first_call", "steady")
    rows = [
        {stage: float(value) for stage, value in zip(stages, rng.uniform(0.001, 1, 4), strict=True)} for _ in range(9)
    ]
    tasks: list[Any] = []

    def launch(task: Any) -> dict[str, float]:
        tasks.append(task)
        return rows[len(tasks) - 1]

    results = student.measure_cold_start(
        "json:loads", np.ones((4, 2)), repeats=9, args=("{}",), steady_calls=33, launch=launch
    )
    expect(len(tasks) == 9, f"9 repetitions are 9 fresh processes, you launched {len(tasks)}")
    expect(list(results) == list(stages), f"the stages are {list(stages)}, in this order; got {list(results)}")
    for stage in stages:
        all_close(
            results[stage].values,
            [row[stage] for row in rows],
            f"values of {stage}",
            cause="one for each process, in order",
        )
        notes = results[stage].metadata
        for key, value in {
            "stage": stage,
            "processes": 9,
            "steady_calls": 33,
            "input_shape": [4, 2],
            "batch_size": 4,
        }.items():
            expect(
                notes.get(key) == value, f"metadata[{key!r}] of {stage} should be {value!r}, it is {notes.get(key)!r}"
            )
        expect(results[stage].unit == "s", "the unit is 's'")
    for key in ("source", "args", "inputs", "steady_calls"):
        expect(key in tasks[0], f"launch should get the task; {key!r} is not in it")
    default: list[Any] = []

    def counting(task: Any) -> dict[str, float]:
        default.append(task)
        return rows[0]

    student.measure_cold_start("json:loads", np.ones((1, 1)), launch=counting)
    expect(len(default) == 6, f"6 processes are the default, you launched {len(default)}")
    for name in ("repeats", "steady_calls"):
        raises(
            ValueError,
            lambda n=name: student.measure_cold_start("json:loads", np.ones((1, 1)), **{n: 0}, launch=counting),
            f"{name}=0",
            mentions=[name],
        )


def answer_understanding(student: Any) -> None:
    """Overhead shared by the inner loop, models times rounds, and a mean that one request in 1000 moves."""
    all_close(student.overstated_by(), [1.0, 0.2], "question 1", cause="40 ns of 4 µs; then of 20 µs", rel=0.02)
    close(student.timed_calls_in_rounds(), 100, "question 2", cause="4 models × 25 rounds")
    all_close(
        student.mean_and_median_of_the_service(),
        [2.9, 2.0],
        "question 3",
        cause="2 + 900 / 1000; the median does not move",
        rel=0.001,
    )

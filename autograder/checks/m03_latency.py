"""Hidden checks for module 03, with counted calls, and with fake clocks that only fake models and sleeps move.

NumPy and SciPy supply the expected values.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import stats

from autograder.checks import judges
from autograder.checks.check_helpers import *
from tinybench.result import runs_for_percentile


class Clock(FakeClock):
    """A fake clock that models and sleeps move. Its next `ticks` readings also move it, by `tick` seconds each.

    A clock from `dear` moves by itself only while the timer's overhead is measured.

    Attributes
    ----------
    ahead
        The clock itself, and what its next readings do: pairs of the seconds by which a reading moves the clock, and of
        how many readings do so. Each message to the sandbox carries them, so that readings cost no messages.
    """

    def __init__(self, now: float = 0.0, tick: float = 0.0, ticks: float = math.inf) -> None:
        super().__init__(now)
        self.tick, self.ticks = tick, ticks if tick else 0

    def __call__(self) -> float:
        if self.ticks > 0:
            self.ticks -= 1
            self.now += self.tick
        return self.now

    @property
    def standing(self) -> float | None:
        return None if self.ticks > 0 else self.now

    @property
    def ahead(self) -> tuple[Clock, list[tuple[float, float]]]:
        return self, [(self.tick, self.ticks)] if self.ticks > 0 else []


class Model:
    """A fake model whose calls move its clock by the given seconds, in order. Further calls repeat the last value.

    Each call records its input in `inputs`, the model's name in `log`, and the time of its end in `ends`.

    Attributes
    ----------
    ahead
        The clock and what the next calls do, as in `Clock`: a call returns its input, and costs no message.
    """

    def __init__(self, *seconds: float, clock: Clock | None = None, tick: float = 0.0, name: str = "") -> None:
        self.clock, self.seconds, self.name = clock or Clock(tick=tick), seconds, name
        self.inputs, self.log, self.ends = list[Any](), list[str](), list[float]()

    def __call__(self, x: Any) -> Any:
        self.clock.now += self.seconds[min(len(self.inputs), len(self.seconds) - 1)]
        self.inputs.append(x)
        self.log.append(self.name)
        self.ends.append(self.clock.now)
        return x

    @property
    def ahead(self) -> tuple[Clock, list[tuple[float, float]]]:
        known = self.seconds[len(self.inputs) : len(self.inputs) + MOST_AHEAD]
        ended = len(self.inputs) + len(known) >= len(self.seconds)
        return self.clock, [(each, 1) for each in known] + [(self.seconds[-1], math.inf)] * ended


def named(seconds: Mapping[str, Sequence[float]], clock: Clock) -> tuple[dict[str, Model], list[str]]:
    """Return fake models by name, whose calls take the given seconds, and the log that all of them share.

    Each call appends its model's name to the log.
    """
    models, log = {name: Model(*each, clock=clock, name=name) for name, each in seconds.items()}, list[str]()
    for model in models.values():
        model.log = log
    return models, log


MOST_AHEAD = 30  # calls of a model whose seconds a message tells, before the last value repeats
SLOW = (0.05,) * 6  # seconds of the first calls, so long that a few calls complete the warm-up


class Session:
    """A stand-in for an ONNX Runtime session, with the methods that `as_callable` needs."""

    def __init__(self, kind: str = "tensor(float)", outputs: Sequence[str] = ("label", "scores")) -> None:
        self.kind, self.names, self.fed = kind, list(outputs), dict[str, Any]()

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name="in0", type=self.kind)]

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name=name, type="tensor(float)") for name in self.names]

    def run(self, names: Any, feed: Any) -> list[Any]:
        self.fed = entries(feed, "what the session is fed")
        asked = self.names if names is None else items(names, "the names of the outputs")
        return [(name, next(iter(self.fed.values()))) for name in asked or self.names]

    def predict(self, x: Any) -> str:
        return "predict"


def dear(overhead: float) -> Clock:
    """Return a clock whose readings take `overhead` seconds while the timer's overhead is measured, and no time later.

    The timer's overhead is the median of 101 empty measurements. The clock moves by itself during most of them, and
    never again. If the calls of a cold model are made `overhead` longer than stated, the model is measured as if every
    reading of the clock took this time.
    """
    return Clock(tick=overhead, ticks=112)


def _results(found: Any) -> dict[str, Any]:
    return entries(found, "the results by name")


def _metadata(result: Any) -> dict[str, Any]:
    return entries(result.metadata, "metadata")


def _orders(found: Any) -> list[list[str]]:
    return [[text(name, "a name in an order") for name in items(order, "an order")] for order in items(found, "orders")]


def _is_array(value: Any, dtype: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == dtype


def _fitting(rng: np.random.Generator, seconds: float, most: int) -> tuple[float, int]:
    """Return a latency, and the number of calls of this latency that fit into `seconds`.

    The latency is chosen so that rounding cannot change the number of calls.
    """
    calls = int(rng.integers(2, most + 1))
    return seconds / (calls + float(rng.uniform(0.05, 0.3))), calls


def _offers(*names: str) -> Any:
    """Return an object with methods of these names. Each method returns its own name."""
    return type("Offers", (), {name: lambda self, x, name=name: name for name in names})()


@judges("session_call", "as_callable")
def models_become_callables(student: Any) -> None:
    """Check that `as_callable` tries a model's methods in the right order and raises helpful errors.

    `session_call` must feed a session its input under the right name and with the right dtype.
    """
    order = ["predict_proba", "predict", "forward", "__call__"]
    for start in range(len(order)):
        got = student.as_callable(_offers(*order[start:][::-1]))(None)
        same(got, order[start], f"what as_callable takes of {order[start:]}")
    shadowed = _offers("predict")
    shadowed.predict_proba = None
    same(student.as_callable(shadowed)(None), "predict", "what it takes where predict_proba cannot be called")
    expect(student.as_callable(math.sqrt) is math.sqrt, "a function should be returned as it is, without a wrapper")
    data = draw().normal(size=(3, 2))
    for kind, dtype in (("float", np.float32), ("double", np.float64), ("int64", np.int64)):
        session = Session(f"tensor({kind})")
        output = items(student.as_callable(session)(data), "what a session's call returns", 2)[0]
        same(list(session.fed), ["in0"], "the names of what is fed to a session whose input is in0")
        fed = session.fed["in0"]
        told = getattr(fed, "dtype", type(fed).__name__)
        expect(_is_array(fed, dtype), f"tensor({kind}) takes an array of {np.dtype(dtype)}, fed was {told}")
        expect(np.array_equal(fed, data.astype(dtype)), "the values fed differ from the array given")
        same(output, "scores", "the output", "the last one is due: probabilities follow labels")
    single = np.zeros((1, 2), np.float32)
    session = Session(outputs=("logits",))
    got = items(student.session_call(session)(single), "what a session's call returns", 2)
    same(got[0], "logits", "the output of a session with this one")
    expect(session.fed["in0"] is single, "an array of the right dtype should be fed as it is, without a copy")
    bad = ("model.onnx", 3, None, object())
    refuses(student.as_callable, *bad, error=TypeError, mentions=["predict_proba", "forward"])


@judges("timed_calls")
def every_call_is_timed(student: Any) -> None:
    """Check that `timed_calls` times each call on a fake clock, with only the call between the two readings.

    With `loops`, each time must be divided by the number of calls.
    """
    durations = draw().uniform(0.001, 0.1, 20).tolist()
    model, marker = Model(*durations, clock=Clock(1000.0)), object()
    got = student.timed_calls(model, marker, 20, model.clock)
    same(got, durations, "timed_calls", "one value for each call, in order", rel=1e-6)
    same(len(model.inputs), 20, "the calls of 20 runs")
    expect(all(x is marker for x in model.inputs), "the call should get x")
    dear = "overhead comes off each measurement once, before dividing by loops, and no time falls below 0"
    for model, runs, more, truth, cause in (
        (Model(1.0, tick=0.25), 3, {}, [1.25] * 3, "two readings, right around the call"),
        (Model(1.0, tick=0.25), 2, {"loops": 5}, [1.05] * 2, "read the clock around the inner loop, not within it"),
        (
            Model(*(0.001 * (1 + i // 4) for i in range(12))), 3, {"loops": 4}, [0.001, 0.002, 0.003],
            "divide the time of the inner loop by loops",
        ),
        (Model(0.25, 0.25, 0.001), 3, {"loops": 1, "overhead": 0.125}, [0.125, 0.125, 0.0], dear),
        (Model(*[0.25] * 8, 0.001), 3, {"loops": 4, "overhead": 0.125}, [0.21875, 0.21875, 0.0], dear),
    ):  # fmt: skip
        what = f"of {runs} runs of {model.seconds[0]} s and more with {more}, {model.clock.tick} s a reading"
        same(student.timed_calls(model, None, runs, model.clock, **more), truth, f"times {what}", cause)
        same(len(model.inputs), runs * more.get("loops", 1), f"calls {what}")
    for loops in (1, 3):
        model = Model(1.0, 1.0, 1.0, -1.0)
        backwards = partial(student.timed_calls, model, None, 6, model.clock, loops)
        refuses(backwards, error=RuntimeError, mentions="backwards", what="a clock that runs backwards")


@judges("warm_up")
def warm_up_waits_for_the_fall(student: Any) -> None:
    """Check that `warm_up` lasts for enough time and enough calls, and until the latency stops falling.

    Its report must be true. If the clock stands still, an error must be raised.
    """
    rng = draw()
    for seconds in (0.0015, 0.5, *rng.uniform(0.005, 0.2, 3).tolist()):
        model = Model(seconds, clock=Clock(50.0))
        report = student.warm_up(model, "x", clock=model.clock)
        calls, took = len(model.inputs), model.clock.now - 50
        what = f"a steady model of {seconds:.3g} s: {calls} calls in {took:.3f} s"
        expect(calls >= 3 and took >= 0.1 - 1e-9, f"{what}; 100 ms and 3 calls are due")
        expect(took < max(0.4, 8 * seconds), f"{what}; stop when it no longer falls")
        holds(report, {"calls": calls, "seconds": took}, "report", "count every call", rel=1e-6)
        holds(report, {"median": seconds, "settled": True}, "report", "this model is steady", rel=1e-3)
        same(model.inputs, ["x"] * calls, "the inputs that the call got")

    def warmed(*seconds: float, **more: Any) -> tuple[Any, int, float]:
        """Run a warm-up. Return its report, the number of calls and the seconds elapsed."""
        model = Model(*seconds)
        return student.warm_up(model, None, clock=model.clock, **more), len(model.inputs), model.clock.now

    first, steady = float(rng.uniform(0.2, 0.5)), float(rng.uniform(0.001, 0.003))
    holds(warmed(first, steady)[0], {"first_call": first, "median": steady}, "report", "of the last block", rel=1e-6)
    least, shortest, longest = int(rng.integers(15, 30)), float(rng.uniform(0.5, 0.9)), float(rng.uniform(4, 6))
    calls = warmed(0.05, min_calls=least)[1]
    expect(calls >= least, f"min_calls={least}, and you stopped after {calls}")
    took = warmed(0.02, min_seconds=shortest)[2]
    expect(took >= shortest - 1e-9, f"min_seconds={shortest}, and you stopped after {took:.2f} s")
    top = float(rng.uniform(0.02, 0.03))
    report = warmed(*(top * max(0.2, 0.95**i) for i in range(50)))[0]
    holds(report, {"median": 0.2 * top}, "report of a model that falls", "go on while medians fall", rel=0.15)
    report, _, took = warmed(*(0.9**i for i in range(300)), max_seconds=longest)
    expect(took < longest + 3.5, f"max_seconds={longest:.3g}, and it ran for {took:.1f} s")
    holds(report, {"settled": False}, "report of a model that was still falling at max_seconds")
    took = warmed(0.001, max_seconds=0.03)[2]
    expect(took < 0.038, f"max_seconds=0.03 and calls of 1 ms, and it ran for {1e3 * took:.0f} ms: blocks of 6 ms each")
    plain = Model(0.02)
    student.warm_up(partial(plain, None), clock=plain.clock)
    expect(len(plain.inputs) >= 3, "warm_up(call) without inputs should work too")
    # `float` is sent by name, so that the 10 000 readings of 0.0 cost no messages
    still = partial(student.warm_up, float, clock=float)
    refuses(still, error=RuntimeError, mentions="still", what="a clock that stands still")
    refuses(partial(student.warm_up, Model(0.1), None, clock=Clock()), {"min_calls": -1})


@judges("latency_summary")
def summary_has_tails(student: Any) -> None:
    """Check that percentiles of `latency_summary` agree with NumPy, and intervals with SciPy's binomial distribution.

    Where there are too few values for an interval, the summary must give a reason.
    """
    rng = draw()
    for n, confidence in itertools.product((1, 5, 40, 400), (0.95, 0.8)):
        values = rng.lognormal(-7, 1, n).tolist()
        result = student.BenchmarkResult("latency", values, confidence=confidence)
        summary, tail = entries(quiet(student.latency_summary, result), "the summary"), (1 - confidence) / 2
        intervals, reasons = (entries(summary.get(name), f"summary[{name!r}]") for name in ("intervals", "reasons"))
        for q in (50, 90, 95, 99):
            key, below = f"p{q}", np.arange(n)
            where = f"{key} of {n} values at {confidence:.0%}"
            holds(summary, {key: np.percentile(values, q)}, f"summary of {n}")
            enough = max((q / 100) ** n, (1 - q / 100) ** n) <= tail
            same(key in intervals, enough, f"that there is an interval for {where}")
            same(key in reasons, not enough, f"that there is a reason for {where}", "only where is no interval")
            if enough:  # the last r with P(below < r) ≤ tail, the first with P(below ≥ r) ≤ tail
                lower = int(np.sum(stats.binom.cdf(below, n, q / 100) <= tail))
                upper = int(np.sum(stats.binom.sf(below, n, q / 100) > tail)) + 1
                ends = [sorted(values)[rank - 1] for rank in (lower, upper)]
                same(intervals[key], ends, f"interval of {where}", "use the result's confidence")
            else:
                takes = str(runs_for_percentile(q, confidence))
                reason = text(reasons[key], f"reasons[{key!r}]")
                expect(takes in reason, f"the reason of {where} should say how many it takes: {takes}")
        holds(summary, {"max": max(values)}, f"summary of {n}")
        jitter = plain(summary.get("jitter"))
        if n > 1:
            same(jitter, np.mean(np.abs(np.diff(values))), f"jitter of {n}", "mean |difference| of neighbours")
        elif jitter is not None:
            known = number(jitter, "jitter of one value")
            expect(known == 0 or math.isnan(known), f"one value has no neighbour: None, NaN or 0 expected, got {known}")
        expect({"max", "jitter"} <= set(reasons), "max and jitter keep their reasons")


def answer_warm_up(student: Any) -> None:
    """Check the mean of six first calls in µs, and how far the mean of the last four exceeds the steady latency."""
    six = [240, 22, 11, 9.6, 8.7, 8.2]
    same(student.mean_of_six_calls(), np.mean(six), "case (a)", "add the six and divide by 6", rel=0.02)
    same(
        student.too_high_after_two(),
        100 * (np.mean(six[2:]) / 8.0 - 1),
        "case (b)",
        "9.375 / 8.0, in percent",
        rel=0.03,
    )


def answer_tails(student: Any) -> None:
    """Check that the answer is 1 − 0.99^100."""
    same(student.pages_that_meet_the_tail(), 1 - 0.99**100, "the share of pages", "1 − 0.99 ** 100", rel=0.012)


@judges("round_orders")
def orders_are_shuffled(student: Any) -> None:
    """Check that `round_orders` makes every order equally likely (chi-squared test), with each name once per round.

    The same seed must give the same orders.
    """
    names = ["x", "y", "z"]
    orders = _orders(student.round_orders(names, 1200, seed=int(draw().integers(1000))))
    same(len(orders), 1200, "the number of orders for 1200 rounds")
    expect(all(sorted(order) == names for order in orders), "every round should hold each name once")
    counts = Counter(map(tuple, orders))
    same(len(counts), 6, "the orders of three models that occur", "shuffle every round anew")
    chance = float(stats.chisquare(list(counts.values())).pvalue)
    expect(chance > 1e-6, f"the 6 orders should be equally likely, they came {sorted(counts.values())} times")
    repeats = sum(before == after for before, after in itertools.pairwise(orders))
    expect(120 < repeats < 290, f"an order should follow itself in about 200 of 1200 rounds, yours does in {repeats}")
    expect(names == ["x", "y", "z"], "the list of names given should stay as it was")
    seeds: list[dict[str, int]] = [{"seed": 7}, {"seed": 7}, {"seed": 8}, {}, {}]
    one, again, other, fresh, new = (_orders(student.round_orders(names, 20, **seed)) for seed in seeds)
    expect(one == again, "the same seed should give the same orders")
    expect(one != other, "another seed should give other orders")
    expect(fresh != new, "without a seed the orders should be fresh each time")


def answer_drift(student: Any) -> None:
    """Check that model B looks slower by the drift of ten calls if models run in blocks."""
    same(student.blocks_look_slower_by(), 1.0, "blocks", "each call of B is 10 after its partner of A", rel=0.06)


@judges("hot_median", "measure_latencies")
def rounds_pair(student: Any) -> None:
    """Check that `measure_latencies` calls every model once per round, in the recorded order.

    Value i of every result must be from round i. The results of one session must share a pairing mark in their
    metadata.
    """
    rng = draw()
    clock = Clock()
    seconds = dict(zip("abc", rng.uniform(0.02, 0.1, 3).tolist(), strict=True))
    models, log = named({name: [took] for name, took in seconds.items()}, clock)
    count, batch, seed = rng.integers((9, 2, 0), (14, 6, 1000)).tolist()
    x = np.ones((batch, 2), np.float32)
    given, own = {"a": x, "b": x.astype(float), "c": x}, {"clock": clock, "seed": seed}
    results = _results(student.measure_latencies(models, given, warmup_runs=2, measurement_runs=count, **own))
    same(list(results), ["a", "b", "c"], "the results, in the models' order")
    notes = {name: _metadata(result) for name, result in results.items()}
    orders = _orders(notes["a"]["round_orders"])
    same(len(orders), count, "the number of orders in metadata['round_orders']")
    before, during = log[: -3 * count], log[-3 * count :]
    same(during, [name for order in orders for name in order], "the calls", "each once a round, in the recorded order")
    expect({*before} == {*"abc"} and before.count("b") >= 2, "every model should be warm before the first round")
    kept = {"mode": "as_served", "seed": seed, "order": "shuffled rounds", "round_orders": orders, "batch_size": batch}
    for name, took in seconds.items():
        same(results[name].values, [took] * count, f"values of {name}", rel=1e-6)
        holds(results[name], {"unit": "s"}, f"result of {name}")
        holds(notes[name], {"model": name, **kept}, f"metadata of {name}")
    holds(notes["b"], {"input_dtype": "float64"}, "metadata of b", "describe each model's own input")
    for name, dtype in (("a", np.float32), ("b", np.float64)):
        expect(_is_array(models[name].inputs[-1], dtype), "each model should get its own input")
    again = _results(student.measure_latencies(models, x, warmup_runs=0, measurement_runs=2, **own))
    every = [notes, {"again": _metadata(again["a"])}]
    marks, [other] = ({text(note["pairing"], "metadata['pairing']") for note in some.values()} for some in every)
    same(len(marks), 1, "the number of pairing marks in one session")
    expect(other not in marks, "two sessions do not pair: each needs a mark of its own, even with the same seed")
    shown = list[int]()

    def bar(rounds: Any) -> Any:
        wrapped = items(rounds, "what progress wraps")
        shown.append(len(wrapped))
        return wrapped

    cold = {"warmup_runs": 0, "measurement_runs": 4, "clock": clock}
    wrapped = _results(student.measure_latencies(models, x, progress=bar, **cold))
    same([*shown, wrapped["a"].count], [4, 4], "the rounds", "progress should wrap the list of all 4 rounds, once")

    clock = Clock()
    durations = {name: rng.uniform(0.005, 0.05, 6).tolist() for name in ("a", "b")}
    drifting, _ = named(durations, clock)
    results = _results(student.measure_latencies(drifting, x, warmup_runs=0, measurement_runs=6, clock=clock))
    cause = "value i of every result is from round i; warmup_runs=0 makes no other call"
    for name, each in durations.items():
        same(results[name].values, each, f"values of {name}", cause, rel=1e-6)
    latencies = partial(student.measure_latencies, drifting, clock=clock)
    refuses(partial(latencies, x), {"mode": "warm"}, mentions=["warm", "hot"])
    refuses(latencies, ({"a": x, "b": x[:1]},), mentions="(1, 2)", what="inputs of different shapes")
    took = float(rng.uniform(0.05, 0.2))
    for mode in ("as_served", "hot"):
        ticking = dear(0.001)
        cold = {"warmup_runs": 0, "measurement_runs": 2, "clock": ticking}
        dearer = _results(student.measure_latencies({"a": Model(took + 0.001, clock=ticking)}, x, mode=mode, **cold))
        values = dearer["a"].values
        same(
            values,
            [took] * 2,
            f"values with a clock that takes 1 ms to read, mode {mode}",
            "take its overhead off",
            rel=1e-6,
        )
    clock = Clock()
    slow, limit = {name: Model(1.0, clock=clock) for name in ("a", "b")}, float(rng.uniform(7, 9))
    results = _results(student.measure_latencies(slow, x, measurement_runs=50, clock=clock, max_seconds=limit))
    expect(clock.now <= limit, f"max_seconds={limit:.1f}, but it took {clock.now:.1f} s: see record.in_time")
    expect(number(results["a"].count, "count") > 1, "with max_seconds there should be as many rounds as fit in")
    fresh = _results(student.measure_latencies({"a": slow["a"]}, [1], measurement_runs=1, clock=clock, setup=list))
    holds(fresh["a"].metadata, {"setup": "list"}, "metadata", "setup and sync go to ready")
    clock = Clock()
    loops, took = ((2, 8e-6), (5, 4e-6), (10, 1.5e-6))[int(rng.integers(3))]  # the first of 1, 2, 5, … that lasts 10 µs
    took *= float(rng.uniform(0.8, 1.2))
    tiny = {name: Model(5.0, 5.0, 5.0, took, clock=clock) for name in ("a", "b")}
    results = _results(student.measure_latencies(tiny, x, warmup_runs=3, measurement_runs=2, clock=clock))
    what = f"of a call of {1e6 * took:.2f} µs"
    holds(results["a"].metadata, {"loops": loops}, f"metadata {what}", "use the loops that prepare found")
    same(results["b"].values, [took] * 2, f"values {what}", rel=1e-3)


@judges("hot_median", "measure_latencies")
def hot_blocks_are_hot(student: Any) -> None:
    """Check that `hot_median` makes two uncounted calls, and then returns the median of a block of about 5 ms."""
    rng = draw()

    def hot(model: Model, loops: int = 1, **more: Any) -> tuple[Any, int]:
        """Run `hot_median` on a model. Return the median and the number of calls."""
        subject = entries(student.ready({"": model}, None, 0, model.clock), "what is ready")[""]
        subject.loops = loops
        return student.hot_median(subject, **more), len(model.inputs)

    for slow in (True, False):
        second, calls = _fitting(rng, 0.005, 6)
        block = rng.uniform(0.004, 0.01, calls).tolist()
        cause = "the median of the block, without the two calls before it"
        median = float(np.median(block))
        lead = 0.9 if slow else second, second
        same(hot(Model(*lead, *block, 0.9))[0], median, f"hot_median of {calls} calls", cause, rel=1e-6)
    for took, calls in ((0.0002, 25), (0.02, 1), (0.0024, 2), *(_fitting(rng, 0.005, 12) for _ in "12")):
        same(hot(Model(took))[1], calls + 2, f"calls of a model of {took:.3g} s", f"2 calls and a block of {calls}")
    seconds = float(rng.uniform(0.006, 0.02))
    took, calls = _fitting(rng, seconds, 12)
    cause = f"2 calls and a block of {calls}: size the block by the shorter of the two"
    same(hot(Model(0.5, took), seconds=seconds)[1], calls + 2, "calls when the first one was slow", cause)
    loops = int(rng.integers(3, 7))
    each, blocks = _fitting(rng, 0.005, 8)
    took = each / loops
    median, calls = hot(Model(took), loops=loops)
    same(median, took, "hot_median with inner loops", rel=1e-3)
    cause = f"a block of 5 ms has {blocks} measurements of {loops} calls of {1e6 * took:.3g} µs"
    same(calls - 2 * loops, blocks * loops, f"calls in the block, loops={loops}", cause)

    clock = Clock()
    fits = {name: _fitting(rng, 0.005, 6) for name in ("a", "b")}
    models, log = named({name: [*SLOW, took] for name, (took, _) in fits.items()}, clock)
    count, seed = rng.integers((4, 0), (8, 1000)).tolist()
    settings = {"measurement_runs": count, "mode": "hot", "seed": seed, "clock": clock}
    results = _results(student.measure_latencies(models, np.ones((1, 1)), **settings))
    before = [len(models[name].inputs) - count * (2 + calls) for name, (_, calls) in fits.items()]
    expect(min(before) >= 3, "mode='hot' makes 2 untimed calls and a block of 5 ms for each model and round")
    notes = _metadata(results["a"])
    holds(notes, {"mode": "hot"}, "metadata")
    for name, (took, _) in fits.items():
        same(results[name].values, [took] * count, f"values of {name} in mode hot, one for each round", rel=1e-6)
    orders = _orders(notes["round_orders"])
    same(len(orders), count, "the number of orders in metadata['round_orders']")
    truth = [name for order in orders for name in order for _ in range(2 + fits[name][1])]
    expect(log[-len(truth) :] == truth, "each model's two calls and its block stand together, in the recorded order")


@judges("session_starts")
def session_is_spread(student: Any) -> None:
    """Check that `session_starts` draws one uniformly random start in each time slot."""
    rng = draw()
    rounds, seed = rng.integers((150, 0), (250, 10**6)).tolist()
    seconds, session_starts = float(rng.uniform(20, 90)), student.session_starts
    drawn = (session_starts(rounds, seconds, seed=seed + i) for i in range(15))
    starts = np.array([numbers(each, "the starts", rounds) for each in drawn])
    phases = starts / (seconds / rounds) - np.arange(rounds)
    expect(bool(np.all(abs(phases - 0.5) <= 0.5 + 1e-9)), "start i lies between i and i + 1 times seconds / rounds")
    neighbours = np.corrcoef(phases[:, :-1].ravel(), phases[:, 1:].ravel())[0, 1]
    expect(abs(float(neighbours)) < 0.2, "each start should be drawn on its own")
    expect(len(np.unique(phases[:, 0])) > 1, "another seed should give other starts")
    # a right answer fails this test once in 10^10 runs
    expect(stats.kstest(phases.ravel(), "uniform").pvalue > 1e-10, "within its slot a start should be uniformly random")
    one, again = (numbers(session_starts(5, 1.0, seed=seed), "the starts", 5) for _ in "12")
    same(again, one, "starts of the same seed")

"""The latency module against fake clocks, NumPy and SciPy, real sessions, and fresh processes."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tinybench import latency
from tinybench.result import BenchmarkResult

X = np.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True, scope="module")
def short_measurements() -> None:
    """Shorten nothing: how long a measurement takes is tested here."""


class Clock:
    """Stands still until a model moves it."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def model(self, *seconds: float) -> Callable[[Any], Any]:
        """Return a call that takes these seconds, the last for ever; `calls` of it counts."""

        def call(x: Any) -> Any:
            self.now += seconds[min(call.calls, len(seconds) - 1)]  # type: ignore[attr-defined]
            call.calls += 1  # type: ignore[attr-defined]
            return x

        call.calls = 0  # type: ignore[attr-defined]
        return call


@pytest.fixture(scope="module")
def onnx_session() -> Any:
    """A session that doubles its float32 input and returns it after the row sums."""
    import onnx
    import onnxruntime

    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        double (float[N, 3] pixels) => (float total, float[N, 3] double) {
            total = ReduceSum <keepdims = 0> (pixels)
            double = Add (pixels, pixels)
        }""")
    onnx.checker.check_model(model)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def test_a_real_session_gets_its_dtype_and_gives_its_last_output(onnx_session: Any) -> None:
    for x in (X, X.tolist()):
        np.testing.assert_array_equal(latency.as_callable(onnx_session)(x), 2 * X.astype(np.float32))


def test_a_real_scikit_learn_model_gives_probabilities() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    model, without = LogisticRegression().fit(X, [0, 1]), SVC().fit(X, [0, 1])
    np.testing.assert_array_equal(latency.as_callable(model)(X), model.predict_proba(X))
    np.testing.assert_array_equal(latency.as_callable(without)(X), without.predict(X))


@pytest.mark.parametrize("model", ["model.onnx", None, 3, object(), {"a": 1}])
def test_no_model_is_refused_with_what_was_looked_for(model: object) -> None:
    with pytest.raises(TypeError, match=r"looked for run \(ONNX\), predict_proba, predict, forward, __call__"):
        latency.as_callable(model)


class Session:
    """Looks like a session with these inputs."""

    def __init__(self, **inputs: str) -> None:
        self.inputs = inputs

    def get_inputs(self) -> list[Any]:
        return [type("Node", (), {"name": name, "type": kind}) for name, kind in self.inputs.items()]

    def run(self, names: Any, feed: Any) -> Any:
        return feed


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Session, "Session is a class; pass an instance"),
        (Session(x="seq(map(int64,float))"), r"input 'x' is a seq\(map\(int64,float\)\)"),
    ],
    ids=["class", "unknown type"],
)
def test_classes_and_sessions_that_cannot_be_fed_are_refused(model: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        latency.as_callable(model)


@given(st.lists(st.floats(1e-6, 10), min_size=1, max_size=30), st.integers(1, 4))
def test_timed_calls_are_the_durations(durations: list[float], loops: int) -> None:
    clock = Clock()
    model = clock.model(*(d for d in durations for _ in range(loops)))
    got = latency.timed_calls(model, X, len(durations), clock, loops)
    np.testing.assert_allclose(got, durations, rtol=1e-6, atol=1e-9)


def test_no_runs_no_times() -> None:
    assert latency.timed_calls(len, X, 0) == []


@pytest.mark.parametrize("loops", [1, 3])
def test_a_clock_that_runs_backwards_is_refused(loops: int) -> None:
    clock = Clock()
    with pytest.raises(RuntimeError, match=f"ran backwards by {2 * loops} s in measurement 1"):
        latency.timed_calls(clock.model(*[1.0] * loops, *[-2.0] * loops), X, 2, clock, loops)


def test_errors_of_the_model_surface() -> None:
    def broken(x: Any) -> Any:
        raise KeyError("weights")

    with pytest.raises(KeyError, match="weights"):
        latency.measure_latency(broken, X)


@settings(max_examples=30)
@given(st.floats(1e-5, 3), st.integers(0, 40))
def test_warm_up_takes_time_and_calls(seconds: float, least: int) -> None:
    clock = Clock()
    model = clock.model(seconds)
    report = latency.warm_up(model, X, min_calls=least, clock=clock)
    assert report["calls"] == model.calls >= max(3, least)  # type: ignore[attr-defined]
    assert math.isclose(report["seconds"], clock.now)
    assert clock.now >= 0.1 - 1e-9
    assert report["settled"]
    assert math.isclose(report["median"], seconds, rel_tol=1e-3)


def test_warm_up_follows_a_long_fall_and_gives_up_at_last() -> None:
    clock = Clock()
    report = latency.warm_up(clock.model(*(max(1e-4, 1e-3 * 0.998**i) for i in range(3000))), X, clock=clock)
    assert report["settled"]
    assert report["median"] < 1.5e-4
    clock = Clock()
    report = latency.warm_up(clock.model(*(0.5 * 0.9**i for i in range(100))), X, max_seconds=2.0, clock=clock)
    assert not report["settled"]
    assert clock.now < 4


def test_a_clock_that_stands_still_ends_the_warm_up() -> None:
    with pytest.raises(RuntimeError, match="clock stands still"):
        latency.measure_latency(lambda x: x, X, clock=lambda: 0.0)


def test_measure_latency_tells_its_conditions() -> None:
    clock = Clock()
    result = latency.measure_latency(clock.model(0.9, 0.002), X.astype(np.float32), 7, 12, clock)
    np.testing.assert_allclose(result.values, [0.002] * 12)
    assert (result.metric_name, result.unit, result.count) == ("latency", "s", 12)
    notes = result.metadata
    assert (notes["input_shape"], notes["input_dtype"], notes["batch_size"]) == ([2, 3], "float32", 2)
    assert (notes["loops"], notes["warmup_runs"], notes["timer_overhead"]) == (1, 7, 0)
    assert notes["warmup"]["first_call"] == pytest.approx(0.9)
    assert notes["order"] == "one model alone"
    assert BenchmarkResult.from_dict(json.loads(json.dumps(result.to_dict()))).metadata == notes


def test_the_real_clock_works_on_a_real_session(onnx_session: Any) -> None:
    result = latency.measure_latency(onnx_session, X, measurement_runs=20)
    assert (result.count, result.metadata["clock"]) == (20, "perf_counter")
    assert 0 < result.median < 1
    assert 0 < result.metadata["timer_overhead"] < 1e-3


def test_short_calls_get_an_inner_loop_and_long_ones_none() -> None:
    for seconds, loops in ((1e-6, 10), (4e-6, 5), (1.1e-5, 1), (0.5, 1)):
        clock = Clock()
        result = latency.measure_latency(clock.model(seconds), X, clock=clock)
        assert result.metadata["loops"] == loops
        np.testing.assert_allclose(result.values, [seconds] * 10, rtol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"measurement_runs": 0}, "measurement_runs is 0; it must be a whole number of at least 1"),
        ({"measurement_runs": -2}, "measurement_runs is -2"),
        ({"measurement_runs": 2.5}, "measurement_runs is 2.5"),
        ({"measurement_runs": True}, "measurement_runs is True"),
        ({"warmup_runs": -1}, "warmup_runs is -1; it must be a whole number of at least 0"),
    ],
)
def test_wrong_numbers_of_runs_are_refused(arguments: dict[str, Any], message: str) -> None:
    for measure, model in ((latency.measure_latency, len), (latency.measure_latencies, {"a": len})):
        with pytest.raises(ValueError, match=message):
            measure(model, X, **arguments)  # type: ignore[operator]


def test_an_empty_input_is_refused() -> None:
    for empty in (np.ones((0, 3)), []):
        with pytest.raises(ValueError, match=r"the input is empty: its shape is \(0"):
            latency.measure_latency(len, empty)


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=60))
def test_a_summary_agrees_with_numpy(values: list[float]) -> None:
    summary = latency.latency_summary(BenchmarkResult("latency", values, unit="s"))
    for q in (50, 90, 95, 99):
        assert summary[f"p{q}"] == pytest.approx(np.percentile(values, q))
        assert (f"p{q}" in summary["intervals"]) != (f"p{q}" in summary["reasons"])
    assert summary["max"] == max(values)
    if len(values) > 1:
        assert summary["jitter"] == pytest.approx(np.mean(np.abs(np.diff(values))))
    else:
        assert summary["jitter"] is None
    assert ("p90" in summary["intervals"]) == (len(values) >= 36)
    assert "368" in summary["reasons"]["p99"]
    json.dumps(summary, allow_nan=False)


@settings(max_examples=25)
@given(st.integers(1, 5), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_orders_are_permutations(models: int, rounds: int, seed: int) -> None:
    names = [f"m{i}" for i in range(models)]
    orders = latency.round_orders(names, rounds, seed)
    assert len(orders) == rounds
    assert all(sorted(order) == sorted(names) for order in orders)
    assert orders == latency.round_orders(names, rounds, seed)


def test_orders_are_equally_likely() -> None:
    orders = latency.round_orders(["a", "b", "c"], 6000, seed=1)
    counts = [orders.count(list(order)) for order in itertools.permutations("abc")]
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"a": X, "b": X[:1]}, r"input shapes differ: a \(2, 3\), b \(1, 3\); compare models on inputs of one shape"),
        ({"a": X}, r"inputs are for \['a'\], models are \['a', 'b'\]"),
        ({"a": X, "b": X, "c": X}, r"\['a', 'b', 'c'\]"),
        (X[:0], "the input is empty"),
    ],
)
def test_different_work_is_refused(inputs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        latency.measure_latencies({"a": len, "b": len}, inputs)


def test_no_models_and_unknown_modes_are_refused() -> None:
    with pytest.raises(ValueError, match="models is empty"):
        latency.measure_latencies({}, X)
    with pytest.raises(ValueError, match="mode is 'warm'; it must be 'as_served' or 'hot'"):
        latency.measure_latencies({"a": len}, X, mode="warm")


@pytest.mark.parametrize("mode", ["as_served", "hot"])
def test_rounds_pair_under_drift(mode: str) -> None:
    clock = Clock()
    log: list[str] = []

    def model(name: str, factor: float) -> Callable[[Any], None]:
        def call(x: Any) -> None:
            log.append(name)
            clock.now += factor * 0.003 * (1 + 0.5 * math.sin(clock.now))

        return call

    models = {"a": model("a", 1.0), "b": model("b", 1.2)}
    results = latency.measure_latencies(models, X, measurement_runs=40, clock=clock, mode=mode, seed=3)
    ratios = np.array(results["b"].values) / np.array(results["a"].values)
    assert np.median(ratios) == pytest.approx(1.2, rel=0.02)
    assert np.ptp(ratios) < 0.15
    assert np.ptp(np.log(results["a"].values)) > np.ptp(np.log(ratios))  # the drift is in the values, not in the ratios
    notes = results["a"].metadata
    assert (notes["model"], notes["pairing"]) == ("a", results["b"].metadata["pairing"])
    if mode == "as_served":
        assert log[-80:] == [name for order in notes["round_orders"] for name in order]


def test_real_models_in_rounds(onnx_session: Any) -> None:
    results = latency.measure_latencies({"onnx": onnx_session, "numpy": lambda x: x + x}, X, measurement_runs=6, seed=0)
    assert list(results) == ["onnx", "numpy"]
    assert all(result.count == 6 and result.min_val > 0 for result in results.values())


@given(st.integers(1, 50), st.floats(0.1, 100), st.integers(0, 1000))
def test_starts_lie_in_their_slots(rounds: int, seconds: float, seed: int) -> None:
    slots = np.array(latency.session_starts(rounds, seconds, seed)) * rounds / seconds
    assert np.all(np.abs(slots - np.arange(rounds) - 0.5) <= 0.5 + 1e-9)


def test_the_interval_of_a_session_holds_its_median_where_a_block_does_not() -> None:
    clock, held, held_in_a_row, truth = Clock(), 0, 0, 0.001

    def call(x: Any) -> None:
        clock.now += truth * (1 + 0.3 * math.sin(clock.now))

    def sleep(seconds: float) -> None:
        clock.now += seconds

    for seed in range(40):
        clock.now = float(seed)
        session = latency.measure_session_latency(call, X, 20, 20 * math.pi, clock=clock, sleep=sleep, seed=seed)
        low, high = session.median_ci()
        held += low <= truth <= high
        block = latency.measure_latency(call, X, measurement_runs=100, clock=clock)
        low, high = block.median_ci()
        held_in_a_row += low <= truth <= high
    assert held >= 36
    assert held_in_a_row <= 12


@pytest.mark.parametrize(("name", "bad"), [("rounds", 9), ("seconds", 0.0), ("seconds", math.nan), ("warmup_runs", -1)])
def test_impossible_sessions_are_refused(name: str, bad: float) -> None:
    with pytest.raises(ValueError, match=name):
        latency.measure_session_latency(len, X, **{name: bad})  # type: ignore[arg-type]


def load_slowly(seconds: float) -> Callable[[Any], Any]:
    """Load a model that needs a module, some time, and a slow first call."""
    import colorsys  # noqa: F401
    import time

    time.sleep(seconds)
    delays = [seconds]

    def model(x: Any) -> Any:
        time.sleep(delays.pop() if delays else 0)
        return x

    return model


def test_cold_stages_of_an_importable_function() -> None:
    stages = latency.measure_cold_start(load_slowly, X, repeats=2, args=(0.05,), steady_calls=5)
    assert list(stages) == ["import", "load", "first_call", "steady"]
    assert min(stages["load"].min_val, stages["first_call"].min_val) >= 0.05
    assert stages["steady"].median < stages["first_call"].min_val  # one call may have waited for a core
    assert stages["import"].min_val > 0
    assert stages["steady"].metadata["stage"] == "steady"


def test_a_local_function_travels_as_source() -> None:
    def make(power: int) -> Callable[[Any], Any]:
        import numpy

        return lambda x: numpy.power(x, power)

    stages = latency.measure_cold_start(make, X, repeats=1, args=(2,), steady_calls=3)
    assert stages["import"].values[0] > 0.001  # NumPy is not there before


def test_a_module_and_function_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "serving_for_test.py").write_text("def load():\n    return lambda x: x\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert latency.measure_cold_start("serving_for_test:load", X, repeats=1)["load"].count == 1
    with pytest.raises(RuntimeError, match=r"failed in a fresh process: AttributeError: .*no_such"):
        latency.measure_cold_start("serving_for_test:no_such", X, repeats=1)


OUTSIDE = 3


def test_factories_that_cannot_travel_are_refused() -> None:
    there = 1

    def leans() -> Any:
        return OUTSIDE + there

    for factory, message in (
        (leans, "leans uses OUTSIDE, there from outside"),
        (lambda: len, "lambda; write it as a def"),
        ("model.onnx", "must be 'module:function'"),
        (42, "factory is a int"),
        (type("Local", (), {"__call__": lambda self: len})(), "cannot travel"),
    ):
        with pytest.raises(TypeError, match=message):
            latency.measure_cold_start(factory, X)


def test_a_dying_process_is_told() -> None:
    def die() -> Any:
        import os

        os._exit(7)

    def fail() -> Any:
        raise FileNotFoundError("digits.onnx")

    for load, why in (die, "ended with code 7"), (fail, r"FileNotFoundError: digits\.onnx"):
        with pytest.raises(RuntimeError, match=why):
            latency.measure_cold_start(load, X, repeats=1)


@pytest.mark.parametrize("name", ["repeats", "steady_calls"])
def test_no_cold_start_without_repeats(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        latency.measure_cold_start("json:loads", X, **{name: 0})

"""What `Benchmark.compare_models` says of each metric agrees with the results, and has a test or a reason."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_ind

from tinybench import Benchmark, BenchmarkResult
from tinybench.support.benchmarks.metric_runs import stated_shape
from tinybench.support.benchmarks.table_rows import COMPARED, SPEEDUP, STATED

METRICS = [name[4:-10] for name in dir(Benchmark) if name.startswith("run_") and name.endswith("_benchmark")]
RNG = np.random.default_rng(1)
X = RNG.normal(size=(40, 5)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)
UNITS = {"latency": "s", "throughput": "rows/s", "memory": "B", "energy": "J"}


def result(metric: str, values: list[float], **metadata: Any) -> BenchmarkResult:
    return BenchmarkResult(metric, values, metadata, unit=UNITS.get(metric, ""))


def counted(right: int, total: int = 100) -> BenchmarkResult:
    """Return the accuracy of a model that is right in the first rows."""
    from tinybench.accuracy import measure_accuracy

    labels = np.zeros(total, int)
    return measure_accuracy(lambda x: (np.arange(total) >= right).astype(int), (np.zeros((total, 1)), labels))


def bench_of(metric: str, **results: BenchmarkResult) -> Benchmark:
    bench = Benchmark(dict.fromkeys(results, abs), progress=None)
    bench.results[metric] = results
    return bench


def test_there_are_five_metrics() -> None:
    assert sorted(METRICS) == ["accuracy", "energy", "latency", "memory", "throughput"]


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_has_a_p_value_and_an_effect_with_its_interval(metric: str) -> None:
    values = RNG.lognormal(0, 0.1, 30).tolist()
    if metric == "accuracy":
        first, other = counted(60), counted(80)
    else:
        first, other = result(metric, values), result(metric, [2 * v for v in values])
    base, row = bench_of(metric, first=first, other=other).compare_models(metric)
    assert base["p_value"] is None
    assert 0 < row["p_value"] < 0.05
    effect = {"latency": "speedup", "accuracy": "difference"}.get(metric, "ratio")
    size = {"latency": 0.5, "accuracy": 0.2}.get(metric, 2.0)
    assert row[effect] == pytest.approx(size, rel=0.01)
    assert row[f"{effect}_lower"] < row[effect] < row[f"{effect}_upper"]
    assert row.keys() == base.keys() >= {*STATED, *SPEEDUP, *COMPARED, "p_value", "note"}
    json.dumps([base, row], allow_nan=False)


@pytest.mark.parametrize("metric", METRICS)
def test_rows_state_what_results_state(metric: str) -> None:
    for one in (counted(60) if metric == "accuracy" else result(metric, [1.0, 2.0, 4.0]), result(metric, [3.0])):
        [row] = bench_of(metric, only=one).compare_models(metric)
        stated = one.to_dict()
        if "total" in one.metadata:
            assert row["mean"] == one.metadata["accuracy"]
            assert [row["ci_lower"], row["ci_upper"]] == one.metadata["wilson_interval"]
        else:
            assert {key: row[key] for key in STATED} == {key: stated[key] for key in STATED}
        assert row["measured"] == one.measured


@pytest.mark.parametrize("metric", ["memory", "energy"])
@pytest.mark.parametrize("which", [0, 1])
def test_what_was_not_seen_is_no_number(metric: str, which: int) -> None:
    unseen = result(metric, [0.0] * 6, seen=False, caution="this is not 0")
    pair = [result(metric, [1.0, 1.1, 0.9, 1.2, 1.0, 1.0])]
    pair.insert(which, unseen)
    rows = bench_of(metric, a=pair[0], b=pair[1]).compare_models(metric)
    assert [rows[which][key] for key in STATED[:-1]] == [None] * 4
    assert "this is not 0" in rows[which]["note"]
    assert rows[1]["p_value"] is rows[1]["ratio"] is None
    assert "not seen" in rows[1]["note"]


def test_memory_is_compared_by_welch() -> None:
    a, b = (RNG.lognormal(mean, 0.2, 12).tolist() for mean in (15, 15.3))
    row = bench_of("memory", a=result("memory", a), b=result("memory", b)).compare_models("memory")[1]
    assert row["p_value"] == pytest.approx(ttest_ind(np.log(b), np.log(a), equal_var=False).pvalue)
    assert row["ratio"] == pytest.approx(math.exp(np.mean(np.log(b)) - np.mean(np.log(a))))


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (result("memory", [1.0]), result("memory", [2.0]), "measure at least twice"),
        (result("energy", [1.0, 2.0]), result("energy", [1.0, 2.0], measured=False), "an estimate"),
        (counted(5, 10), counted(5, 20), "same rows"),
    ],
)
def test_where_no_test_fits_the_note_says_why(a: BenchmarkResult, b: BenchmarkResult, reason: str) -> None:
    row = bench_of(a.metric_name, a=a, b=b).compare_models(a.metric_name)[1]
    assert row["p_value"] is None
    assert reason in row["note"]


class Strict:
    """A model that refuses every input but rows of five numbers."""

    def __init__(self, **stated: Any) -> None:
        vars(self).update(stated)

    def predict(self, x: Any) -> Any:
        if np.ndim(x) != 2 or np.shape(x)[1] != 5:
            raise ValueError(f"rows of five numbers, not {np.shape(x)}")
        return (np.asarray(x)[:, 0] > 0).astype(int)


@pytest.mark.parametrize("metric", METRICS)
def test_inputs_come_from_the_data(metric: str) -> None:
    models = {"a": Strict(), "b": Strict()}
    bench = Benchmark(models, (X, Y), measurement_runs=2, warmup_runs=1, progress=None)
    assert len(bench.compare_models(metric)) == 2


@pytest.mark.parametrize("metric", sorted(set(METRICS) - {"accuracy"}))
def test_inputs_come_from_the_model_where_there_are_no_data(metric: str) -> None:
    bench = Benchmark({"a": Strict(n_features_in_=5)}, measurement_runs=2, warmup_runs=1, progress=None)
    assert len(bench.compare_models(metric)) == 1


def test_a_session_states_its_shape() -> None:
    class Input:
        shape = ("batch", 3, 8, 8)

    class Session:
        def get_inputs(self) -> list[Any]:
            return [Input]

    assert stated_shape(Session()) == (1, 3, 8, 8)
    Input.shape = ("batch", "channels", 8, 8)
    assert stated_shape(Session()) is None
    assert stated_shape(abs) is None


def test_an_explicit_shape_wins() -> None:
    shapes: list[tuple[int, ...]] = []
    bench = Benchmark([lambda x: shapes.append(x.shape)], (X, Y), measurement_runs=1, progress=None)
    bench.run_latency_benchmark(input_shape=(2, 7))
    bench.run_throughput_benchmark((3,), row_shape=(4,))
    assert set(shapes) == {(2, 7), (3, 4)}

"""Several models, every metric: names, rounds, conditions, and the real models behind the fakes."""

from __future__ import annotations

import itertools
import json
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinybench.benchmark import Benchmark, best_throughput, cpu_info, name_models, system_info
from tinybench.course.lessons.m08 import Tick
from tinybench.energy import CpuTimeMeter
from tinybench.result import BenchmarkResult
from tinybench.support.benchmarks.system_facts import clock_rate, library_versions

METER = CpuTimeMeter(watts_per_core=10.0)


def test_real_models_every_metric() -> None:
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    X, y = load_digits(return_X_y=True)
    pixels = (X / 16).astype(np.float32)
    unfitted = {"logistic": LogisticRegression(max_iter=200), "bayes": GaussianNB()}
    models = {name: model.fit(pixels[:800], y[:800]) for name, model in unfitted.items()}
    bench = Benchmark(models, (pixels[800:], y[800:]), measurement_runs=6, progress=None, seed=0)
    row = pixels[800:801]
    results = {
        "latency": bench.run_latency_benchmark(inputs=row),
        "throughput": bench.run_throughput_benchmark((1, 16), rows=pixels[800:]),
        "accuracy": bench.run_accuracy_benchmark(),
        "memory": bench.run_memory_benchmark(inputs=row),
        "energy": bench.run_energy_benchmark(inputs=row, meter=METER, min_reading=0.01),
    }
    assert bench.results == results
    for metric, by_model in results.items():
        assert list(by_model) == ["logistic", "bayes"], metric
        for name, result in by_model.items():
            assert result.metadata["model"] == name
            assert result.metadata["system"]["cpu"]
            assert BenchmarkResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    for name, model in models.items():
        assert results["accuracy"][name].mean == pytest.approx(model.score(pixels[800:], y[800:]))
    assert not results["energy"]["bayes"].measured
    for metric in results:
        assert [row["model"] for row in bench.compare_models(metric)] == ["logistic", "bayes"]


@given(st.permutations(["a", "b", "c"]), st.sampled_from(["", "new "]))
@settings(max_examples=12)
def test_order_and_names_change_no_number(order: list[str], prefix: str) -> None:
    seconds = {"a": 0.001, "b": 0.004, "c": 0.002}
    clock = Tick()
    models = {prefix + name: clock.model(seconds[name]) for name in order}
    rows = Benchmark(models, clock=clock, progress=None, measurement_runs=8).compare_models()
    assert [row["model"] for row in rows] == [prefix + name for name in order]
    assert [row["mean"] for row in rows] == pytest.approx([seconds[name] for name in order])
    speedups = [seconds[order[0]] / seconds[name] for name in order[1:]]
    assert [row["speedup"] for row in rows[1:]] == pytest.approx(speedups)


def test_names() -> None:
    class Model:
        name = "net"

    model = Model()
    assert name_models([model, abs]) == {"net": model, "model_1": abs}
    with pytest.raises(ValueError, match="two models are called 'net'"):
        Benchmark([model, Model()])
    with pytest.raises(ValueError, match="models is empty"):
        Benchmark([])


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="datasets="):
        Benchmark([abs], progress=None).run_accuracy_benchmark()
    with pytest.raises(ValueError, match="known are latency"):
        Benchmark([abs], progress=None).compare_models("speed")
    with pytest.raises(ValueError, match="no batch size"):
        Benchmark([abs], progress=None).run_throughput_benchmark(())
    with pytest.raises(ValueError, match="measurement_runs"):
        Benchmark([abs], measurement_runs=0, progress=None).run_latency_benchmark()

    def broken(x: Any) -> Any:
        raise ZeroDivisionError("a model's own error")

    with pytest.raises(ZeroDivisionError, match="own error"):
        Benchmark([broken], (np.eye(2), [0, 1]), progress=None).run_accuracy_benchmark()


@given(
    st.dictionaries(st.integers(1, 512), st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=9), min_size=1, max_size=5)
)
def test_best_throughput_is_the_highest_median(latencies: dict[int, list[float]]) -> None:
    found = best_throughput({size: BenchmarkResult("latency", v, unit="s") for size, v in latencies.items()})
    medians = {size: float(np.median([size / v for v in values])) for size, values in latencies.items()}
    assert found.median == max(medians.values())
    assert {int(k): row["throughput"] for k, row in found.metadata["by_batch"].items()} == medians


@pytest.mark.parametrize("sizes", [[1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 0.4, 0.3, 0.2, 0.1]], ids=["equal", "clear"])
def test_the_winner_s_interval_holds_although_it_was_chosen(sizes: list[float]) -> None:
    rng = np.random.default_rng(7)
    held = {"chosen": 0, "naive": 0}
    for _ in range(400):
        rounds = {i + 1: (i + 1) / (rate * rng.lognormal(0, 0.05, 20)) for i, rate in enumerate(sizes)}
        found = best_throughput({size: BenchmarkResult("latency", list(v), unit="s") for size, v in rounds.items()})
        truth = sizes[found.metadata["batch_size"] - 1]
        for name, result in {"chosen": found, "naive": BenchmarkResult("t", found.values)}.items():
            low, high = result.median_ci()
            held[name] += low <= truth <= high
    assert held["chosen"] >= 0.93 * 400, held
    assert (held["naive"] < held["chosen"]) == (sizes[1] == 1.0), held


def test_cpu_info_of_known_files() -> None:
    x86 = "model name\t: AMD EPYC 9R14\nflags\t\t: fpu avx2 avx512f avx512_vnni\n"
    assert cpu_info(x86) == {"model": "AMD EPYC 9R14", "flags": ["AVX2", "AVX-512", "AVX-512 VNNI"]}
    arm = "processor : 0\nFeatures : fp asimd asimddp sve\nCPU part : 0xd40\n"
    assert cpu_info(arm) == {"model": "0xd40", "flags": ["NEON", "NEON dot product", "SVE"]}


def test_system_info_of_another_root(tmp_path: Path) -> None:
    proc, frequencies = tmp_path / "proc", tmp_path / "sys/devices/system/cpu/cpu0/cpufreq"
    proc.mkdir()
    frequencies.mkdir(parents=True)
    (proc / "cpuinfo").write_text("model name : Some CPU\nflags : avx2\n")
    (frequencies / "scaling_governor").write_text("powersave\n")
    found = system_info(tmp_path)
    assert (found["cpu"], found["cpu_flags"], found["governor"]) == ("Some CPU", ["AVX2"], "powersave")
    assert (found["turbo"], found["clock_source"]) == (None, None)
    json.dumps(system_info())


@pytest.mark.parametrize(
    ("file", "text", "on"),
    [("intel_pstate/no_turbo", "1", False), ("intel_pstate/no_turbo", "0", True), ("cpufreq/boost", "1", True)],
)
def test_what_two_measurements_must_share(tmp_path: Path, file: str, text: str, on: bool) -> None:
    source = tmp_path / "sys/devices/system/clocksource/clocksource0/current_clocksource"
    for path, content in ((tmp_path / "sys/devices/system/cpu" / file, text), (source, "tsc")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    found = system_info(tmp_path)["conditions"]
    assert found["turbo"] == ("on" if on else "off")
    assert found["clock source"] == "tsc"
    assert found["governor"] is None
    assert found["Python"] == platform.python_version()
    assert found["numpy version"] == np.__version__
    assert {
        "BLAS",
        "BLAS kernel",
        "environment",
        "BLAS threads",
        "cores",
        "onnxruntime version",
        "timer",
    } <= found.keys()
    assert all(value is None or isinstance(value, str) for value in found.values())


SITE = "/venv/lib/python3.11/site-packages"
POOLS = {
    "numpy": (f"{SITE}/numpy.libs/libscipy_openblas64_.so", "blas", "openblas", "0.3.31.188.0"),
    "scipy": (f"{SITE}/scipy.libs/libscipy_openblas.so", "blas", "openblas", "0.3.30"),
    "torch": (r"C:\Lib\site-packages\torch\lib\mkl_rt.2.dll", "blas", "mkl", "2025.1"),
    "system": ("/usr/lib/x86_64-linux-gnu/libopenblas.so.0", "blas", "openblas", "0.3.21"),
    "openmp": (f"{SITE}/scikit_learn.libs/libgomp.so", "openmp", "openmp", None),
}


@pytest.mark.parametrize(
    ("loaded", "main", "others"),
    [
        (("numpy", "scipy", "openmp"), "numpy", {"scipy"}),
        (("numpy", "torch", "scipy"), "numpy", {"scipy", "torch"}),
        (("system", "openmp"), "system", set()),
        (("system", "torch"), "system", {"torch"}),
        (("scipy",), "scipy", set()),
    ],
)
def test_pools_are_named_by_library_whatever_was_loaded_first(
    loaded: tuple[str, ...], main: str, others: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs of one environment have the same conditions, in whichever order their libraries were loaded."""
    keys = ("filepath", "user_api", "internal_api", "version")
    pools = [dict(zip(keys, POOLS[name], strict=True)) | {"num_threads": 2} for name in loaded]
    found = []
    for order in itertools.permutations(pools):
        monkeypatch.setattr("threadpoolctl.threadpool_info", lambda order=order: list(order))
        found.append({name: value for name, value in system_info()["conditions"].items() if "BLAS" in name})
    assert all(conditions == found[0] for conditions in found)
    assert found[0]["BLAS"] == " ".join(POOLS[main][2:])  # type: ignore[arg-type]
    assert {name for name in found[0] if name.startswith("BLAS of ")} == {f"BLAS of {name}" for name in others}
    for name in others:
        assert found[0][f"BLAS of {name}"] == " ".join(POOLS[name][2:])  # type: ignore[arg-type]
        assert found[0][f"BLAS threads of {name}"] == "2"


def test_system_info_tells_how_integers_are_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    from tinybench.support.conditions.int8_probe import integer_products

    assert system_info()["integer_products"] == integer_products()
    integer_products.cache_clear()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # as where it is not installed
    assert system_info()["integer_products"] is None


def test_system_info_without_proc_and_sys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, elsewhere = system_info(), system_info(tmp_path / "nowhere")
    assert elsewhere["cpu"]
    assert elsewhere["governor"] is None
    assert set(elsewhere["cpu_flags"]) <= set(here["cpu_flags"])  # NumPy knows fewer names
    for key in ("cores", "cores_logical", "cores_physical", "memory"):
        assert elsewhere[key] == here[key]
    (tmp_path / "sysctl").write_text("#!/bin/sh\necho Apple M9\n")
    (tmp_path / "sysctl").chmod(0o755)
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert system_info(tmp_path / "nowhere")["cpu"] == "Apple M9"


def test_clock_rate_may_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(psutil, "cpu_freq", raising=False)
    assert clock_rate() is None
    monkeypatch.setattr(psutil, "cpu_freq", lambda: None, raising=False)
    assert clock_rate() is None


def test_library_versions_leaves_out_what_is_missing() -> None:
    assert library_versions(["numpy", "no-such-distribution"]) == {"numpy": np.__version__}


def test_progress_wraps_rounds_and_models() -> None:
    seen = []

    def bar(items: Any, what: str) -> Any:
        items = list(items)
        seen.append((what, len(items)))
        return items

    clock = Tick()
    bench = Benchmark([clock.model(0.01), clock.model(0.02)], clock=clock, measurement_runs=7, progress=bar)
    bench.run_latency_benchmark()
    bench.run_throughput_benchmark((1, 2, 4))
    assert seen == [("latency", 7), ("throughput", 3)]


def test_bar_needs_no_ipywidgets(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Tick()  # a warning would be an error
    Benchmark([clock.model(0.01)], clock=clock, measurement_runs=3).run_latency_benchmark()
    assert "latency" in capsys.readouterr().err


def test_p_values_are_corrected() -> None:
    clock = Tick()
    models = {str(k): clock.model(0.001 * k) for k in range(1, 6)}
    rows = Benchmark(models, clock=clock, measurement_runs=20, progress=None).compare_models()
    assert [row["p_value"] for row in rows[1:]] == pytest.approx([4 * 2 * 0.5**20] * 4)


def test_rounds_are_common() -> None:
    clock = Tick()
    bench = Benchmark([clock.model(0.01)] * 3, clock=clock, measurement_runs=9, progress=None, seed=4)
    results = bench.run_latency_benchmark()
    assert len({result.metadata["pairing"] for result in results.values()}) == 1
    orders = results["model_0"].metadata["round_orders"]
    assert len(set(map(tuple, orders))) > 1
    assert set(map(tuple, orders)) <= set(itertools.permutations(results))


def test_all_models_run_in_the_same_rounds_on_the_input_asked_for() -> None:
    clock, asked = Tick(), list[np.ndarray]()
    slow = clock.model(0.004)
    models = {"fast": clock.model(0.001), "slow": lambda x: (asked.append(x), slow(x))}
    bench = Benchmark(models, clock=clock, progress=None, seed=1, warmup_runs=3, measurement_runs=7)
    found = bench.run_latency_benchmark(input_shape=(2, 3))
    assert bench.results["latency"] is found
    assert list(found) == ["fast", "slow"]
    assert found["slow"].values == pytest.approx([0.004] * 7)
    assert found["fast"].metadata["pairing"] == found["slow"].metadata["pairing"]
    assert (found["slow"].metadata["warmup_runs"], found["slow"].metadata["seed"]) == (3, 1)
    assert len({tuple(order) for order in found["slow"].metadata["round_orders"]}) == 2
    assert asked[0].shape == (2, 3)
    assert asked[0].dtype == np.float32
    first = asked[0]
    bench.run_latency_benchmark(input_shape=(2, 3))
    assert np.array_equal(asked[-1], first), "the same seed gives the same input"
    bench.run_latency_benchmark(inputs=np.full((4, 5), 6.0))
    assert asked[-1].shape == (4, 5)


def test_batches_have_the_sizes_and_the_rows_asked_for() -> None:
    clock, batches = Tick(), list[np.ndarray]()
    steady = clock.model(0.01, per_row=0.001)
    bench = Benchmark([lambda x: (batches.append(x), steady(x))], clock=clock, progress=None, measurement_runs=5)
    rate = bench.run_throughput_benchmark(batch_sizes=(1, 10, 100), row_shape=(2,))["model_0"]
    assert {batch.shape for batch in batches} == {(1, 2), (10, 2), (100, 2)}
    assert rate.values == pytest.approx([100 / 0.11] * 5)
    bench.run_throughput_benchmark(batch_sizes=(3,), rows=np.array([[1.0], [2.0]]))
    assert batches[-1].tolist() == [[1.0], [2.0], [1.0]]


def test_memory_and_energy_call_the_model_as_often_as_asked_for() -> None:
    clock, called = Tick(), set[tuple[int, ...]]()
    working = clock.model(0.001)
    bench = Benchmark([lambda x: (called.add(np.shape(x)), working(x))], measurement_runs=4, progress=None)
    assert bench.run_memory_benchmark(input_shape=(2, 3))["model_0"].count == 4
    assert called == {(2, 3)}
    assert bench.run_memory_benchmark(input_shape=(2, 3), measurement_runs=2)["model_0"].count == 2
    energy = bench.run_energy_benchmark(input_shape=(5, 3), meter=CpuTimeMeter(2.0, clock=clock), clock=clock)[
        "model_0"
    ]
    assert energy.values == pytest.approx([0.002] * 4)
    assert called == {(2, 3), (5, 3)}


def test_each_model_has_its_own_accuracy_on_all_datasets() -> None:
    rows, labels = np.eye(4), np.arange(4)
    models = {"right": lambda x: x, "wrong": lambda x: x[:, ::-1]}
    found = Benchmark(models, [(rows, labels), (rows[:2], labels[:2])], progress=None).run_accuracy_benchmark(
        confidence=0.5
    )
    assert {name: result.values for name, result in found.items()} == {"right": [1.0, 1.0], "wrong": [0.0, 0.0]}
    assert found["right"].metadata["confidence"] == 0.5

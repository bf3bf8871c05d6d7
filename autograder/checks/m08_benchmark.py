"""Hidden checks of module 08: fake clocks, models of known cost, and counted calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import binomtest

from autograder.checks import FakeClock, all_close, close, draw, expect, judges, raises
from tinybench.result import BenchmarkResult


class Clock(FakeClock):
    """A clock that only its models move."""

    def model(self, seconds: float, per_row: float = 0.0, seen: list[Any] | None = None) -> Callable[[Any], None]:
        """Return a model that takes this long, and notes the inputs it sees."""

        def call(x: Any) -> None:
            self.now += seconds + per_row * len(x)
            if seen is not None:
                seen.append(np.array(x))

        return call


@judges("cpu_info")
def processor_is_read(student: Any) -> None:
    """Names with colons, Arm's spelling, other cores, unknown flags, and no file at all."""
    x86 = "processor\t: 0\nmodel name\t: Example(R) Xeon: 9 @ 2.0GHz\n"
    x86 += "flags\t\t: fpu avx512_vnni amx_int8 avx2 avx512f amx_bf16\n\n"
    other = x86.replace("Example", "Second").replace(" avx2", "")
    found = student.cpu_info(x86 + other)
    expect(
        str(found["model"]) == "Example(R) Xeon: 9 @ 2.0GHz",
        f"the first core's whole name expected, got {found['model']!r}",
    )
    flags = ["AVX2", "AVX-512", "AVX-512 VNNI", "AMX INT8", "AMX BF16"]
    expect(list(found["flags"]) == flags, f"{flags} expected, got {found['flags']!r}")
    arm = student.cpu_info("processor : 0\nFeatures : fp asimd asimddp sve\nCPU part : 0xd4f\n")
    expect(list(arm["flags"]) == ["NEON", "NEON dot product", "SVE"], f"Arm writes Features; got {arm['flags']!r}")
    avx = student.cpu_info("flags : avx512vnni_other notavx2\n")
    expect(list(avx["flags"]) == [], "flags are whole words: notavx2 is not AVX2")
    expect(
        str(student.cpu_info("nonsense without a separator")["model"]) == "unknown",
        "the name of an unknown processor is 'unknown'",
    )


@judges("name_models")
def names_are_unique(student: Any) -> None:
    """Keys, names, positions and duplicates."""

    class Model:
        shows = ("name",)

        def __init__(self, name: Any) -> None:
            self.name = name

    a, b, c = Model("a"), Model(None), Model(3)
    named = student.name_models([a, b, c, abs])
    expect(
        list(named) == ["a", "model_1", "model_2", "model_3"],
        f"names by position where there is no text: got {list(named)}",
    )
    expect(named["a"] is a and named["model_3"] is abs, "each name belongs to its own model")
    expect(
        list(student.name_models({"z": a, "y": a})) == ["z", "y"],
        "a dictionary's keys win over model.name, in its order",
    )
    raises(ValueError, lambda: student.name_models([a, b, Model("a")]), "two models called 'a'", mentions=["a"])
    raises(
        ValueError,
        lambda: student.name_models([Model("model_1"), abs]),
        "a name that collides with a position",
        mentions=["model_1"],
    )
    nothing: tuple[Any, ...] = ([], {})
    for empty in nothing:
        raises(ValueError, lambda e=empty: student.name_models(e), "no models")


@judges("best_throughput")
def throughput_is_measured(student: Any) -> None:
    """The best batch by its median, every measurement kept, every size in the table."""
    rng = draw()
    sizes = {
        size: [float(v) for v in rng.lognormal(np.log(1e-3 + 1e-5 * size**1.4), 0.3, 15)]
        for size in (1, 4, 32, 128, 512)
    }
    latencies = {size: BenchmarkResult("latency", values, {"note": size}, unit="s") for size, values in sizes.items()}
    medians = {size: float(np.median([size / v for v in values])) for size, values in sizes.items()}
    best = max(medians, key=medians.__getitem__)
    found = student.best_throughput(latencies)
    close(found.metadata["batch_size"], best, "batch_size", cause="compare sizes by the median of their throughputs")
    all_close(found.values, [best / v for v in sizes[best]], "values", cause="rows over seconds, for every measurement")
    expect(str(found.unit) == "rows/s", f"the unit is rows/s, got {found.unit!r}")
    expect(found.metadata["note"] == best, "the metadata of the best size's latency should be kept")
    table = json.loads(json.dumps(found.metadata["by_batch"]))
    for size in sizes:
        close(table[str(size)]["throughput"], medians[size], f"by_batch[{size}] throughput")
        close(table[str(size)]["latency"], float(np.median(sizes[size])), f"by_batch[{size}] latency")
    skewed = {
        1: BenchmarkResult("latency", [1.0, 1.0, 1.0], unit="s"),
        2: BenchmarkResult("latency", [2.5, 2.5, 0.1], unit="s"),
    }
    close(
        student.best_throughput(skewed).metadata["batch_size"],
        1,
        "the best size with one lucky measurement",
        cause="use medians",
    )
    raises(ValueError, lambda: student.best_throughput({}), "no batch size")
    wrong: tuple[Any, ...] = (0, -8, 2.5, True)
    for size in wrong:
        raises(ValueError, lambda s=size: student.best_throughput({s: latencies[1]}), f"batch size {size!r}")


@judges("Benchmark.run_latency_benchmark", "Benchmark.run_throughput_benchmark")
def latency_runs_in_rounds(student: Any) -> None:
    """All models in the same shuffled rounds, on the input asked for, as many times as asked for."""
    clock, seen = Clock(), list[Any]()
    models = {"b": clock.model(0.3, seen=seen), "a": clock.model(0.1), "c": clock.model(0.2)}
    bench = student.Benchmark(models, warmup_runs=4, measurement_runs=17, clock=clock, progress=None, seed=3)
    results = bench.run_latency_benchmark(input_shape=(2, 5))
    expect(list(results) == ["b", "a", "c"], f"results by name in the order of the models, got {list(results)}")
    for name, seconds in (("b", 0.3), ("a", 0.1), ("c", 0.2)):
        all_close(
            results[name].values,
            [seconds] * 17,
            f"latencies of {name}",
            cause="pass measurement_runs and clock on",
            rel=1e-6,
        )
        expect(results[name].metadata["warmup_runs"] == 4, "pass warmup_runs on")
    pairings = {result.metadata["pairing"] for result in results.values()}
    expect(len(pairings) == 1, "all models belong into one call of measure_latencies, so that their rounds pair")
    expect(len({tuple(order) for order in results["a"].metadata["round_orders"]}) > 1, "rounds should be shuffled")
    expect(
        bool(seen) and seen[0].shape == (2, 5) and seen[0].dtype == np.float32,
        "the input is float32 of the shape asked for",
    )
    expect(bool(np.all((seen[0] >= 0) & (seen[0] < 1))) and float(np.ptp(seen[0])) > 0, "the input is random on [0, 1)")
    expect(
        bench.results["latency"] is results or dict(bench.results["latency"]) == results,
        "results should be kept in bench.results",
    )
    again = student.Benchmark(models, clock=clock, progress=None, seed=3).run_latency_benchmark(input_shape=(2, 5))
    expect(
        again["a"].metadata["seed"] == 3 and bool(np.array_equal(seen[-1], seen[0])),
        "the same seed should give the same input",
    )
    mine = np.full((3, 2), 7.0)
    bench.run_latency_benchmark(inputs=mine)
    expect(bool(np.array_equal(seen[-1], mine)), "inputs, where given, should be used instead of random ones")
    throughput_in_rounds(student)


def throughput_in_rounds(student: Any) -> None:
    """Batches of the sizes asked for, made of the rows given."""
    clock, seen = Clock(), list[Any]()
    models = {"x": clock.model(1.0, per_row=0.1, seen=seen), "y": clock.model(0.0, per_row=0.2)}
    bench = student.Benchmark(models, measurement_runs=6, clock=clock, progress=None, seed=1)
    found = bench.run_throughput_benchmark(batch_sizes=(1, 4, 50), row_shape=(2, 3))
    close(found["x"].metadata["batch_size"], 50, "x's best batch size")
    all_close(found["x"].values, [50 / 6] * 6, "x's throughput", rel=1e-6)
    close(found["y"].mean, 5.0, "y's throughput", rel=1e-6)
    expect(
        {batch.shape for batch in seen} == {(1, 2, 3), (4, 2, 3), (50, 2, 3)},
        f"batches of (size, 2, 3) expected, got { ({b.shape for b in seen}) }",
    )
    expect("system" in found["x"].metadata and "throughput" in bench.results, "hand the results to self._keep")
    seen.clear()
    rows = np.arange(6.0).reshape(3, 2)
    bench.run_throughput_benchmark(batch_sizes=(2, 7), rows=rows)
    expect(
        {batch.shape for batch in seen} == {(2, 2), (7, 2)},
        "batches are drawn from rows, repeated where there are too few",
    )
    expect(bool(np.array_equal(seen[0], rows[:2])), "the first batch holds the first rows")


@judges(*(f"Benchmark.run_{metric}_benchmark" for metric in ("accuracy", "memory", "energy")))
def other_metrics_are_measured(student: Any) -> None:
    """Every model is really called, on its own input, and options go through."""
    rng = draw()
    x, y = rng.random((40, 3)), rng.integers(0, 3, 40)
    right, wrong = np.eye(3)[y], np.eye(3)[(y + 1) % 3]
    half = np.where(np.arange(40)[:, None] < 20, right, wrong)
    calls: dict[str, list[Any]] = {"full": [], "half": []}

    def model(name: str, answers: Any) -> Callable[[Any], Any]:
        def call(inputs: Any) -> Any:
            calls[name].append(np.shape(inputs))
            return answers[: len(inputs)]

        return call

    models = {"full": model("full", right), "half": model("half", half)}
    bench = student.Benchmark(models, datasets=[(x, y), (x[:20], y[:20])], measurement_runs=3, progress=None, seed=0)
    accuracy = bench.run_accuracy_benchmark()
    all_close(accuracy["full"].values, [1.0, 1.0], "accuracy of a model that is right, on two datasets")
    all_close(accuracy["half"].values, [0.5, 1.0], "accuracy of a model that is right on the first 20 rows")
    expect(
        "system" in accuracy["half"].metadata and accuracy["half"].metadata["model"] == "half",
        "hand the results to self._keep",
    )
    coarse = bench.run_accuracy_benchmark(confidence=0.5)
    close(coarse["half"].metadata["confidence"], 0.5, "an option of measure_accuracy", cause="pass **options on")
    raises(
        ValueError,
        lambda: student.Benchmark(models, progress=None).run_accuracy_benchmark(),
        "no datasets",
        mentions=["datasets"],
    )
    for seen in calls.values():
        seen.clear()
    memory = bench.run_memory_benchmark(input_shape=(5, 3))
    expect(
        list(memory) == ["full", "half"] and all(result.unit == "B" for result in memory.values()),
        "memory of each model in bytes",
    )
    expect(
        all((5, 3) in seen for seen in calls.values()),
        "run_memory_benchmark should call every model with the input asked for",
    )
    expect(memory["full"].count == 3, "measurement_runs should reach measure_memory")
    for seen in calls.values():
        seen.clear()
    energy = bench.run_energy_benchmark(inputs=np.ones((2, 3)), **energy_options())
    expect(
        list(energy) == ["full", "half"] and energy["half"].count == 3, "energy of each model, measurement_runs times"
    )
    expect(all(result.unit == "J" for result in energy.values()), "the meter given should reach measure_energy")
    expect(
        all((2, 3) in seen for seen in calls.values()),
        "run_energy_benchmark should call every model with the inputs given",
    )
    expect(
        all(result.measured is False for result in energy.values()), "an estimate should stay labelled measured: false"
    )
    expect({"accuracy", "memory", "energy"} <= set(bench.results), "results should be kept in bench.results")


def energy_options() -> dict[str, Any]:
    """Return options that make an estimate of energy quick."""
    from tinybench.energy import CpuTimeMeter

    return {"meter": CpuTimeMeter(watts_per_core=10.0), "warmup_runs": 0, "min_reading": 1e-3}


@judges("Benchmark.compare_models")
def comparison_is_with_the_first(student: Any) -> None:
    """Rows in order; speed-ups of known size with the first as baseline; what has no speed-up has none."""
    clock = Clock()
    models = {"base": clock.model(0.6), "slow": clock.model(0.9), "fast": clock.model(0.15)}
    bench = student.Benchmark(models, clock=clock, measurement_runs=20, progress=None, seed=0)
    rows = bench.compare_models()
    expect([row["model"] for row in rows] == ["base", "slow", "fast"], "one row for each model, in order")
    for row, speedup in zip(rows[1:], (2 / 3, 4.0), strict=True):
        close(
            row["speedup"],
            speedup,
            f"speed-up of {row['model']}",
            cause="baseline over model: above 1 is faster than the first",
            rel=1e-6,
        )
        all_close([row["speedup_lower"], row["speedup_upper"]], [speedup] * 2, "its interval", rel=1e-6)
        cause = "the sign test of 20 rounds that all agree, times two comparisons (Holm)"
        close(row["p_value"], 2 * 2 * 0.5**20, f"p value of {row['model']}", cause=cause, rel=1e-6)
    for name in ("speedup", "speedup_lower", "speedup_upper", "p_value"):
        expect(rows[0][name] is None, f"the baseline's {name} should be None")
    for row, seconds in zip(rows, (0.6, 0.9, 0.15), strict=True):
        all_close(
            [row["mean"], row["ci_lower"], row["ci_upper"]],
            [seconds] * 3,
            f"mean and interval of {row['model']}",
            rel=1e-6,
        )
        close(row["count"], 20, "count")
        close(row["std"], 0.0, "std", abs=1e-9)
        expect(
            row["metric"] == "latency" and row["unit"] == "s" and row["measured"] is True, "metric, unit and measured"
        )
    before = clock.now
    bench.compare_models("latency")
    expect(clock.now == before, "what has been measured should not be measured again")
    x, y = np.eye(3), np.arange(3)
    graded = student.Benchmark(
        {"a": lambda v: v, "b": lambda v: v[::-1]}, datasets=[(x, y), (x[:1], y[:1])], progress=None
    )
    accuracy = graded.compare_models("accuracy")
    close(accuracy[1]["mean"], 0.5, "accuracy of b over all rows", cause="2 of the 4 rows of both datasets are right")
    wilson = binomtest(2, 4).proportion_ci(method="wilson")
    all_close(
        [accuracy[1]["ci_lower"], accuracy[1]["ci_upper"]], [wilson.low, wilson.high], "interval of b's accuracy",
        cause="take wilson_interval from the metadata", rel=1e-6,
    )  # fmt: skip
    expect(accuracy[1]["speedup"] is None and accuracy[1]["p_value"] is None, "accuracy has no speed-up")
    raises(ValueError, lambda: bench.compare_models("speed"), "an unknown metric", mentions=["speed"])


def answer_understanding(student: Any) -> None:
    """The three answers follow from the formulas."""
    close(
        student.throughput_gain(), (64 / 0.008) / (1 / 0.002), "question 1", cause="64 rows / 8 ms against 1 row / 2 ms"
    )
    close(student.lower_end_of_speedup(), 1 / 0.84, "question 2", cause="one over the upper end", abs=0.006)
    expect(
        list(student.comparable_if_differs()) == [True, False],
        "question 3: shuffled rounds share the load; another thread count is another configuration",
    )

"""Hidden checks of module 08: fake clocks, models of known cost, and counted calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.stats import binomtest

from autograder.checks import FakeClock, all_close, close, draw, expect, judges, raises, words
from autograder.checks.m05_memory import FakeProcess
from autograder.checks.m06_energy import Machine
from tinybench.result import BenchmarkResult
from tinybench.stages import PEAK_METHOD


class Clock(FakeClock):
    """A clock that only its models move."""

    def model(self, seconds: float, per_row: float = 0.0, seen: list[Any] | None = None) -> Callable[[Any], None]:
        """Return a model that takes this long, and notes the inputs it sees."""

        def call(x: Any) -> None:
            self.now += seconds + per_row * len(x)
            if seen is not None:
                seen.append(np.array(x))

        return call


X86 = {
    "avx2": "AVX2", "avx512f": "AVX-512", "avx512_vnni": "AVX-512 VNNI", "avx_vnni": "AVX-VNNI",
    "amx_int8": "AMX INT8", "amx_bf16": "AMX BF16",
}  # fmt: skip
ARM = {"asimd": "NEON", "asimddp": "NEON dot product", "sve": "SVE"}


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
    rng = draw()
    for line, sets in (("flags", X86), ("Features", ARM)):
        for _ in range(4):
            name, elsewhere, *decoys = words(rng, 5)
            name = f"{name}: {decoys[0]} @ {rng.uniform(1, 5):.1f}GHz"
            there = rng.permutation(list(sets))[: int(rng.integers(len(sets) + 1))].tolist()
            shown = " ".join(rng.permutation([*there, *decoys, *(f"{flag}_{decoys[0]}" for flag in sets)]).tolist())
            text = f"processor : 0\nmodel name : {name}\n{line} : {shown}\n\n"
            text += f"processor : 1\nmodel name : {elsewhere}\n{line} : {' '.join(sets)}\n"
            found = student.cpu_info(text)
            expect(
                str(found["model"]) == name, f"the first core's whole name {name!r} expected, got {found['model']!r}"
            )
            truth = [said for flag, said in sets.items() if flag in there]
            expect(list(found["flags"]) == truth, f"of {line} {shown!r} {truth} expected, got {found['flags']!r}")
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

    rng = draw()
    first, last, one, other = words(rng, 4)
    a, b, c, d = Model(first), Model(None), Model(int(rng.integers(10))), Model(last)
    models = [(a, b, c, d, abs)[i] for i in rng.permutation(5)]
    truth = [getattr(model, "name", None) for model in models]
    truth = [name if isinstance(name, str) else f"model_{index}" for index, name in enumerate(truth)]
    named = student.name_models(models)
    expect(list(named) == truth, f"names by position where there is no text: {truth} expected, got {list(named)}")
    own = all(named[name] is model for name, model in zip(truth, models, strict=True))
    expect(own, "each name belongs to its own model")
    expect(
        list(student.name_models({other: a, one: a})) == [other, one],
        "a dictionary's keys win over model.name, in its order",
    )
    raises(
        ValueError, lambda: student.name_models([a, b, Model(first)]), f"two models called {first!r}", mentions=[first]
    )
    place = int(rng.integers(1, 6))
    taken = f"model_{place}"
    raises(
        ValueError,
        lambda: student.name_models([Model(taken), *[abs] * place]),
        "a name that collides with a position",
        mentions=[taken],
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
    rng = draw()
    clock, seen = Clock(), list[Any]()
    seconds = {name: float(took) for name, took in zip("bac", rng.uniform(0.05, 0.4, 3), strict=True)}
    models = {name: clock.model(took, seen=seen if name == "b" else None) for name, took in seconds.items()}
    warm, count, seed = (int(number) for number in rng.integers((3, 15, 0), (9, 21, 1000)))
    shape = tuple(rng.integers(2, 7, 2).tolist())
    bench = student.Benchmark(models, warmup_runs=warm, measurement_runs=count, clock=clock, progress=None, seed=seed)
    results = bench.run_latency_benchmark(input_shape=shape)
    expect(list(results) == ["b", "a", "c"], f"results by name in the order of the models, got {list(results)}")
    for name, took in seconds.items():
        all_close(
            results[name].values,
            [took] * count,
            f"latencies of {name}",
            cause="pass measurement_runs and clock on",
            rel=1e-6,
        )
        expect(results[name].metadata["warmup_runs"] == warm, "pass warmup_runs on")
    pairings = {result.metadata["pairing"] for result in results.values()}
    expect(len(pairings) == 1, "all models belong into one call of measure_latencies, so that their rounds pair")
    expect(len({tuple(order) for order in results["a"].metadata["round_orders"]}) > 1, "rounds should be shuffled")
    expect(
        bool(seen) and seen[0].shape == shape and seen[0].dtype == np.float32,
        "the input is float32 of the shape asked for",
    )
    expect(bool(np.all((seen[0] >= 0) & (seen[0] < 1))) and float(np.ptp(seen[0])) > 0, "the input is random on [0, 1)")
    expect(
        bench.results["latency"] is results or dict(bench.results["latency"]) == results,
        "results should be kept in bench.results",
    )
    again = student.Benchmark(models, clock=clock, progress=None, seed=seed).run_latency_benchmark(input_shape=shape)
    expect(
        again["a"].metadata["seed"] == seed and bool(np.array_equal(seen[-1], seen[0])),
        "the same seed should give the same input",
    )
    mine = rng.normal(size=(3, 2))
    bench.run_latency_benchmark(inputs=mine)
    expect(bool(np.array_equal(seen[-1], mine)), "inputs, where given, should be used instead of random ones")
    throughput_in_rounds(student, rng)


def throughput_in_rounds(student: Any, rng: np.random.Generator) -> None:
    """Batches of the sizes asked for, made of the rows given."""
    clock, seen = Clock(), list[Any]()
    fixed, per_row, other = (float(x) for x in rng.uniform((0.5, 0.05, 0.1), (2, 0.2, 0.4)))
    models = {"x": clock.model(fixed, per_row=per_row, seen=seen), "y": clock.model(0.0, per_row=other)}
    few, many, count = (int(number) for number in rng.integers((2, 20, 4), (9, 60, 8)))
    row = tuple(rng.integers(2, 5, 2).tolist())
    bench = student.Benchmark(models, measurement_runs=count, clock=clock, progress=None, seed=1)
    found = bench.run_throughput_benchmark(batch_sizes=(1, few, many), row_shape=row)
    close(found["x"].metadata["batch_size"], many, "x's best batch size")
    all_close(found["x"].values, [many / (fixed + per_row * many)] * count, "x's throughput", rel=1e-6)
    close(found["y"].mean, 1 / other, "y's throughput", rel=1e-6)
    shapes, truth = {batch.shape for batch in seen}, {(size, *row) for size in (1, few, many)}
    expect(shapes == truth, f"batches of {truth} expected, got {shapes}")
    expect("system" in found["x"].metadata and "throughput" in bench.results, "hand the results to self._keep")
    seen.clear()
    rows = rng.normal(size=(3, 2))
    bench.run_throughput_benchmark(batch_sizes=(2, many), rows=rows)
    expect(
        {batch.shape for batch in seen} == {(2, 2), (many, 2)},
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
    memory = memory_of_known_models(student, rng)
    energy = energy_of_known_models(student, rng)
    for metric, results in (("accuracy", bench.results), ("memory", memory.results), ("energy", energy.results)):
        expect(metric in set(results), "results should be kept in bench.results")


def memory_of_known_models(student: Any, rng: np.random.Generator) -> Any:
    """Check that each model's memory is measured: on a fake /proc tree, which only calls of the models move."""
    warm, count, rows = (int(n) for n in rng.integers((0, 3, 2), (4, 6, 9)))
    needs = {name: rng.integers(100, 60_000, warm + count).tolist() for name in words(rng, 2)}
    calls: dict[str, list[Any]] = {name: [] for name in needs}
    with FakeProcess(_with_folder(student, rng), 50_000) as process:

        def model(name: str) -> Callable[[Any], Any]:
            def call(inputs: Any) -> Any:
                made = len(calls[name])
                process.use(needs[name][made] if made < warm + count else 7)
                calls[name].append(np.shape(inputs))

            return call

        bench = student.Benchmark({name: model(name) for name in needs}, measurement_runs=count, progress=None, seed=0)
        memory = bench.run_memory_benchmark(input_shape=(rows, 3), warmup_runs=warm, proc=process.root)
    expect(list(memory) == list(needs), f"memory by name in the order of the models expected, got {list(memory)}")
    for name, result in memory.items():
        expect(result.unit == "B", "memory of each model in bytes")
        expect(
            len(calls[name]) >= warm + count and set(calls[name]) == {(rows, 3)},
            "run_memory_benchmark should call every model with the input asked for, in every run",
        )
        cause = "hand every model to measure_memory, with measurement_runs and the options"
        truth = [1024 * need for need in needs[name][warm:]]
        all_close(result.values, truth, "the memory of a model of known need", cause=cause)
        expect(result.metadata["method"] == PEAK_METHOD, f"metadata['method'] should be {PEAK_METHOD!r}")
        expect("system" in result.metadata and result.metadata["model"] == name, "hand the results to self._keep")
    return bench


def _with_folder(student: Any, rng: np.random.Generator) -> Any:
    """Return what a FakeProcess takes of a module; this one imports no tempfile."""

    def mkdtemp() -> str:
        temporary = student.Path("/tmp")
        folder = (temporary if temporary.is_dir() else student.Path.cwd()) / "-".join(words(rng, 3))
        folder.mkdir()
        return str(folder)

    return SimpleNamespace(Path=student.Path, tempfile=SimpleNamespace(mkdtemp=mkdtemp))


def energy_of_known_models(student: Any, rng: np.random.Generator) -> Any:
    """Check that each model's energy is measured: by a meter and a clock that only calls of the models move."""
    joules = dict(zip(words(rng, 2), rng.uniform(0.01, 0.5, 2).tolist(), strict=True))
    seconds, idle = (float(x) for x in rng.uniform((2e-3, 5), (8e-3, 20)))
    loops = next(loops for loops in (1, 2, 5, 10) if loops * seconds >= 0.01)
    for measured in (True, False):
        count = int(rng.integers(3, 6))
        calls: dict[str, list[Any]] = {name: [] for name in joules}
        machine = Machine(idle, seconds)
        machine.measured = measured

        def model(name: str, machine: Machine = machine, calls: dict[str, list[Any]] = calls) -> Callable[[Any], Any]:
            def call(inputs: Any) -> Any:
                calls[name].append(np.shape(inputs))
                machine.joules = joules[name]
                machine(inputs)

            return call

        bench = student.Benchmark({name: model(name) for name in joules}, measurement_runs=count, progress=None, seed=0)
        options = {"meter": machine, "clock": machine.clock, "sleep": machine.sleep}
        energy = bench.run_energy_benchmark(inputs=np.ones((2, 3)), warmup_runs=0, min_reading=0.01, **options)
        expect(list(energy) == list(joules), f"energy by name in the order of the models expected, got {list(energy)}")
        for name, result in energy.items():
            expect(result.unit == "J", "the meter given should reach measure_energy")
            expect(
                len(calls[name]) >= count * loops and set(calls[name]) == {(2, 3)},
                "run_energy_benchmark should call every model with the inputs given, often enough for each reading",
            )
            # a meter that estimates has no idle power to subtract
            truth = joules[name] + (0.0 if measured else idle * seconds)
            cause = "hand every model to measure_energy, with measurement_runs and the options"
            all_close(result.values, [truth] * count, "the energy of a model of known need", cause=cause, rel=1e-6)
            expect(
                result.measured is measured, "an estimate should stay labelled measured: false, and only an estimate"
            )
            expect("system" in result.metadata and result.metadata["model"] == name, "hand the results to self._keep")
    return bench


@judges("Benchmark.compare_models")
def comparison_is_with_the_first(student: Any) -> None:
    """Rows in order; speed-ups of known size with the first as baseline; what has no speed-up has none."""
    rng = draw()
    clock, count = Clock(), int(rng.integers(15, 25))
    base = float(rng.uniform(0.3, 0.6))
    factors = [float(x) for x in rng.uniform((0.4, 1.5), (0.8, 5))]
    seconds = dict(zip(("base", "slow", "fast"), (base, *(base / factor for factor in factors)), strict=True))
    models = {name: clock.model(took) for name, took in seconds.items()}
    bench = student.Benchmark(models, clock=clock, measurement_runs=count, progress=None, seed=0)
    rows = bench.compare_models()
    expect([row["model"] for row in rows] == ["base", "slow", "fast"], "one row for each model, in order")
    for row, speedup in zip(rows[1:], factors, strict=True):
        close(
            row["speedup"],
            speedup,
            f"speed-up of {row['model']}",
            cause="baseline over model: above 1 is faster than the first",
            rel=1e-6,
        )
        all_close([row["speedup_lower"], row["speedup_upper"]], [speedup] * 2, "its interval", rel=1e-6)
        cause = f"the sign test of {count} rounds that all agree, times two comparisons (Holm)"
        close(row["p_value"], 2 * 2 * 0.5**count, f"p value of {row['model']}", cause=cause, rel=1e-6)
    for name in ("speedup", "speedup_lower", "speedup_upper", "p_value"):
        expect(rows[0][name] is None, f"the baseline's {name} should be None")
    for row, took in zip(rows, seconds.values(), strict=True):
        all_close(
            [row["mean"], row["ci_lower"], row["ci_upper"]],
            [took] * 3,
            f"mean and interval of {row['model']}",
            rel=1e-6,
        )
        close(row["count"], count, "count")
        close(row["std"], 0.0, "std", abs=1e-9)
        expect(
            row["metric"] == "latency" and row["unit"] == "s" and row["measured"] is True, "metric, unit and measured"
        )
    before = clock.now
    bench.compare_models("latency")
    expect(clock.now == before, "what has been measured should not be measured again")
    size = int(rng.integers(5, 12))
    x, y, wrong = np.eye(size), np.arange(size), rng.random(size) < 0.5
    says = np.where(wrong[:, None], np.roll(x, 1, axis=1), x)
    graded = student.Benchmark(
        {"a": lambda v: v, "b": lambda v: says[: len(v)]}, datasets=[(x, y), (x[:1], y[:1])], progress=None
    )
    accuracy = graded.compare_models("accuracy")
    right, total = size - int(wrong.sum()) + (not wrong[0]), size + 1
    cause = f"{right} of the {total} rows of both datasets are right"
    close(accuracy[1]["mean"], right / total, "accuracy of b over all rows", cause=cause)
    wilson = binomtest(int(right), total).proportion_ci(method="wilson")
    all_close(
        [accuracy[1]["ci_lower"], accuracy[1]["ci_upper"]], [wilson.low, wilson.high], "interval of b's accuracy",
        cause="take wilson_interval from the metadata", rel=1e-6, abs=1e-9,
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

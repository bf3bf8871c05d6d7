"""Hidden checks for module 08, with fake clocks, models of known cost, and counted calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.stats import binomtest

from autograder.checks import judges
from autograder.checks.check_helpers import *
from autograder.checks.m09_pareto import seconds

Calls = dict[str, list[np.ndarray]]


def models(act: Callable[[str, Any, int], Any], names: Iterable[str]) -> tuple[dict[str, Callable[[Any], Any]], Calls]:
    """Return fake models by name, and the inputs that each of them records.

    Each call returns the result of `act`, which receives the model's name, the inputs and the number of the call.
    """
    seen: Calls = {name: [] for name in names}

    def model(name: str) -> Callable[[Any], Any]:
        def call(inputs: Any) -> Any:
            given = np.array(inputs if isinstance(inputs, np.ndarray) else plain(inputs))
            seen[name].append(given)
            return act(name, given, len(seen[name]))

        return call

    return {name: model(name) for name in seen}, seen


class Clock(FakeClock):
    """A fake clock that only its models move, by a fixed time per call and a time per row."""

    def models(self, **costs: tuple[float, float]) -> tuple[dict[str, Callable[[Any], Any]], Calls]:
        def act(name: str, inputs: Any, _: int) -> None:
            self.now += costs[name][0] + costs[name][1] * len(inputs)

        return models(act, costs)


X86 = {
    "avx2": "AVX2", "avx512f": "AVX-512", "avx512_vnni": "AVX-512 VNNI", "avx_vnni": "AVX-VNNI",
    "amx_int8": "AMX INT8", "amx_bf16": "AMX BF16",
}  # fmt: skip
ARM = {"asimd": "NEON", "asimddp": "NEON dot product", "sve": "SVE"}


@judges("cpu_info")
def processor_is_read(student: Any) -> None:
    """Check that `cpu_info` finds the name of the processor model and the flags of the first core.

    Some names contain colons, Arm lists its flags as "Features", some flags are unknown, and some texts have no fields.
    """
    rng = draw()
    x86 = "processor\t: 0\nmodel name\t: Example(R) Xeon: 9 @ 2.0GHz\n"
    x86 += "flags\t\t: fpu avx512_vnni amx_int8 avx2 avx512f amx_bf16\n\n"
    x86 += x86.replace("Example", "Second").replace(" avx2", "")
    flags = ["AVX2", "AVX-512", "AVX-512 VNNI", "AMX INT8", "AMX BF16"]
    cases: list[tuple[str, dict[str, Any]]] = [
        (x86, {"model": "Example(R) Xeon: 9 @ 2.0GHz", "flags": flags}),
        ("processor : 0\nFeatures : fp asimd asimddp sve\nCPU part : 0xd4f\n", {"flags": list(ARM.values())}),
        ("flags : avx512vnni_other notavx2\n", {"flags": []}),
        ("nonsense without a separator", {"model": "unknown"}),
    ]
    for line, sets in (("flags", X86), ("Features", ARM)) * 4:
        name, elsewhere, *decoys = words(rng, 5)
        name = f"{name}: {decoys[0]} @ {rng.uniform(1, 5):.1f}GHz"
        there = rng.permutation(list(sets))[: int(rng.integers(len(sets) + 1))].tolist()
        listed = " ".join(rng.permutation([*there, *decoys, *(f"{flag}_{decoys[0]}" for flag in sets)]).tolist())
        text = f"model name : {name}\n{line} : {listed}\n\nprocessor : 1\nmodel name : {elsewhere}\n"
        truth = [said for flag, said in sets.items() if flag in there]
        cases.append((f"processor : 0\n{text}{line} : {' '.join(sets)}\n", {"model": name, "flags": truth}))
    cause = "the first core's whole name, or 'unknown'; flags are whole words, and Arm calls them Features"
    for text, found in cases:
        holds(student.cpu_info(text), found, f"cpu_info({shown(text, 400)})", cause)


@judges("name_models")
def names_are_unique(student: Any) -> None:
    """Check that `name_models` takes names from keys, `name` attributes or positions, and refuses duplicate names."""

    class Model:
        shows = ("name",)

        def __init__(self, name: Any) -> None:
            self.name = name

    rng = draw()
    first, last, one, other = words(rng, 4)
    a, b, c, d = map(Model, (first, None, int(rng.integers(10)), last))
    models = [(a, b, c, d, abs)[i] for i in rng.permutation(5)]
    names = [getattr(model, "name", None) for model in models]
    names = [name if isinstance(name, str) else f"model_{index}" for index, name in enumerate(names)]
    named = entries(student.name_models(models), "the models by name")
    same(list(named), names, "the names", "positions where there is no text")
    own = all(named[name] is model for name, model in zip(names, models, strict=True))
    expect(own, "each name belongs to its own model")
    keys = entries(student.name_models({other: a, one: a}), "the models by name")
    same(list(keys), [other, one], "the names of a dictionary", "its keys win over model.name, in its order")
    refuses(student.name_models, ([a, b, Model(first)],), mentions=first, what=f"two models called {first!r}")
    place = int(rng.integers(1, 6))
    taken = [Model(f"model_{place}"), *[abs] * place]
    refuses(student.name_models, (taken,), mentions=f"model_{place}", what="a name that collides with a position")
    refuses(student.name_models, ([],), ({},))


@judges("best_throughput")
def throughput_is_measured(student: Any) -> None:
    """Check that `best_throughput` chooses the batch size with the best median throughput.

    Every measurement of this size must be kept, and every size must appear in the table `by_batch`.
    """
    rng = draw()
    scales = {size: np.log(1e-3 + 1e-5 * size**1.4) for size in (1, 4, 32, 128, 512)}
    latencies = {size: seconds(rng.lognormal(scale, 0.3, 15), note=size) for size, scale in scales.items()}
    rates = {size: [size / v for v in result.values] for size, result in latencies.items()}
    medians = {size: float(np.median(values)) for size, values in rates.items()}
    best = max(medians, key=medians.__getitem__)
    found = student.best_throughput(latencies)
    cause = "compare sizes by the median of their throughputs, and keep the metadata of the best one's latency"
    metadata = entries(found.metadata, "metadata")
    holds(metadata, {"batch_size": best, "note": best}, "metadata", cause)
    holds(found, {"values": rates[best], "unit": "rows/s"}, "the result", "rows over seconds, for every measurement")
    for median, sure in ((1.0, 0.975), (3.0, 0.95)):  # two equal sizes, then one that is far better
        tied = student.best_throughput({1: seconds([1.0, 1.1, 0.9] * 4), 2: seconds([2 * median] * 12)})
        cause = "the same rounds chose the size: pass confidence=confidence_of_choice(rates, best) on"
        same(tied.confidence, sure, "the confidence of the winner of two sizes", cause)
    table = json.loads(json.dumps(entries(metadata.get("by_batch"), "by_batch")))
    same(sorted(table, key=int), [str(size) for size in sorted(rates)], "the batch sizes of by_batch")
    for size, rate in medians.items():
        truth = {"throughput": rate, "latency": float(np.median(latencies[size].values))}
        holds(table[str(size)], truth, f"by_batch[{size}]")
    skewed = student.best_throughput({1: seconds([1.0, 1.0, 1.0]), 2: seconds([2.5, 2.5, 0.1])})
    holds(skewed.metadata, {"batch_size": 1}, "metadata where one measurement is lucky", "use medians")
    refuses(student.best_throughput, ({},), *(({size: latencies[1]},) for size in (0, -8, 2.5, True)))


@judges("Benchmark.compare_models")
def comparison_is_with_the_first(student: Any) -> None:
    """Check that `compare_models` returns rows in order, with speed-ups relative to the first model.

    Accuracy has no speed-up, and numbers that were not measured must be None.
    """
    rng = draw()
    clock, count = Clock(), int(rng.integers(9, 15))
    base = float(rng.uniform(0.3, 0.6))
    factors = rng.uniform((0.4, 1.5), (0.8, 5)).tolist()
    seconds = dict(zip(("base", "slow", "fast"), (base, *(base / factor for factor in factors)), strict=True))
    named, _ = clock.models(**{name: (took, 0.0) for name, took in seconds.items()})
    bench = student.Benchmark(named, clock=clock, warmup_runs=1, measurement_runs=count, progress=None, seed=0)
    rows = [entries(row, "a row") for row in items(bench.compare_models(), "the rows")]
    same([row.get("model") for row in rows], list(seconds), "the rows", "one for each model, in order")
    for row, took in zip(rows, seconds.values(), strict=True):
        truth = {"mean": took, "count": count}
        truth |= {"metric": "latency", "unit": "s", "measured": True}
        holds(row, truth, f"the row of {row['model']}", rel=1e-6, abs=1e-9)
    gains = ("speedup", "speedup_lower", "speedup_upper")
    holds(rows[0], dict.fromkeys((*gains, "p_value")), "the row of the baseline")
    cause = "baseline over model: above 1 is faster; p of the sign test, all rounds agreeing, times two (Holm)"
    for row, gain in zip(rows[1:], factors, strict=True):
        truth = dict.fromkeys(gains, gain) | {"p_value": 2 * 2 * 0.5**count}
        holds(row, truth, f"the row of {row['model']}", cause, rel=1e-6)
    before = clock.now
    bench.compare_models("latency")
    expect(clock.now == before, "what has been measured should not be measured again")
    refuses(bench.compare_models, "speed", mentions="speed")
    once = student.Benchmark(named, clock=clock, warmup_runs=0, measurement_runs=1, progress=None, seed=0)
    unknown = dict.fromkeys(("std", "ci_lower", "ci_upper", "p_value")) | {"count": 1}
    cause = "one value has neither a deviation nor an interval: stated(result) has None for them"
    for row in items(once.compare_models(), "the rows", 3):
        holds(row, unknown, "the row of one measurement", cause)
    size = int(rng.integers(5, 12))
    x, y, wrong = np.eye(size), np.arange(size), rng.random(size) < 0.5
    says = np.where(wrong[:, None], np.roll(x, 1, axis=1), x)
    named, _ = models(lambda name, inputs, _: inputs if name == "a" else says[: len(inputs)], "ab")
    graded = student.Benchmark(named, datasets=[(x, y), (x[:1], y[:1])], progress=None)
    right, total = size - int(wrong.sum()) + (not wrong[0]), size + 1
    wilson = binomtest(int(right), total).proportion_ci(method="wilson")
    uneven = total - right  # rows that only `a` gets right; it gets all rows right
    chance = float(binomtest(0, int(uneven)).pvalue) if uneven else 1.0
    truth = {"mean": right / total, "ci_lower": wilson.low, "ci_upper": wilson.high, **dict.fromkeys(gains)}
    cause = f"{right} of all {total} rows are right; wilson_interval is in the metadata; there is no speed-up"
    rows = items(graded.compare_models("accuracy"), "the rows", 2)
    holds(rows[1], truth, "the row of b's accuracy", cause, rel=1e-6, abs=1e-9)
    cause = "against_first compares accuracies row by row"
    holds(rows[1], {"difference": -uneven / total, "p_value": chance}, "the row of b's accuracy", cause, rel=1e-6)
    sizes, notes = rng.uniform(1e6, 9e6, 6).tolist(), {"seen": False, "caution": "not seen, which is not 0"}
    given = {"base": (sizes, {}), "more": ([3 * size for size in sizes], {}), "unseen": ([0.0] * 6, notes)}
    memory = {name: student.BenchmarkResult("memory", *each, unit="B") for name, each in given.items()}
    bench._keep("memory", memory)
    rows = [entries(row, "a row") for row in items(bench.compare_models("memory"), "the rows", 3)]
    holds(rows[1], {"ratio": 3.0}, "the row of three times the memory", "ratio is this model / the first", rel=1e-6)
    expect(rows[1].get("p_value") is not None, "memory has a p value as well: against_first")
    cause = "a result that was not seen states no number: stated, and it is not compared: against_first"
    blank = dict.fromkeys(("mean", "std", "ci_lower", "ci_upper", "ratio", "p_value"))
    holds(rows[2], blank, "the row of memory that was not seen", cause)


def answer_understanding(student: Any) -> None:
    """Check that the answers on the throughput gain, the end of a speed-up and comparable conditions are right."""
    gain = (64 / 0.008) / (1 / 0.002)
    same(student.throughput_gain(), gain, "question 1", "64 rows / 8 ms against 1 row / 2 ms")
    same(student.lower_end_of_speedup(), 1 / 0.84, "question 2", "one over the upper end", abs=0.006)
    cause = "any hour will do; threads are a condition"
    same(student.comparable_if_differs(), [True, False], "question 3", cause)

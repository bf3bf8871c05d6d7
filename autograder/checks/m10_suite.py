"""Hidden checks of module 10: files that survive, tables with nothing lost, ties by tests, interrupted studies.

Files live where the student's code runs, so checks read and write them through the module's own `Path`.
"""

from __future__ import annotations

import json
import tempfile
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from autograder.checks import all_close, close, draw, expect, judges, raises, words
from tinybench.result import BenchmarkResult

METRICS = ["latency", "throughput", "accuracy", "memory", "energy"]
PIECES = ["latency-0", "accuracy", "latency-1", "throughput", "latency-2", "memory", "latency-3", "energy", "latency-4"]


def place() -> str:
    """Return the path of a new folder."""
    return tempfile.mkdtemp(prefix="suite-")


@judges("write_text", "merge_results")
def pieces_survive(student: Any) -> None:
    """A reader never sees half a file; merged parts keep values, pairs and processor."""
    folder = place()
    path = student.Path(f"{folder}/deep/new/piece.json")
    student.write_text(path, "first, ä, 漢")
    expect(str(path.read_text(encoding="utf-8")) == "first, ä, 漢", "the text should be there, in UTF-8")
    reader = path.open(encoding="utf-8")
    student.write_text(path, "second")
    seen = str(reader.read())
    reader.close()
    expect(
        seen == "first, ä, 漢",
        "who has the old file open should read the old text to its end: write a new file, then os.replace",
    )
    expect(str(path.read_text(encoding="utf-8")) == "second", "the second text should replace the first")
    left = [str(name) for name in student.os.listdir(f"{folder}/deep/new")]
    expect(left == ["piece.json"], f"no temporary file should stay behind, there are {left}")
    raises(
        OSError,
        lambda: student.write_text(student.Path(f"{folder}/deep/new/piece.json/below"), "x"),
        "a path below a file",
        mentions=["output_dir", "below"],
    )
    merged_is_one_result(student)


def merged_is_one_result(student: Any) -> None:
    """Values in order, round orders joined, one pairing for the same rounds, and no mixing."""
    rng = draw()

    def part(values: list[float], pairing: str, **more: Any) -> BenchmarkResult:
        notes = {"pairing": pairing, "round_orders": [[pairing]] * len(values), "system": {"cpu": "x"}, "seed": 7}
        return BenchmarkResult("latency", values, {**notes, **more}, unit="s", confidence=0.9)

    pieces = [[float(v) for v in rng.random(size)] for size in (4, 1, 3)]
    a = student.merge_results([part(values, mark) for values, mark in zip(pieces, "pqr", strict=True)])
    b = student.merge_results([part([v * 2 for v in values], mark) for values, mark in zip(pieces, "pqr", strict=True)])
    all_close(a.values, [v for values in pieces for v in values], "merged values", cause="all parts, in order")
    expect(str(a.unit) == "s" and str(a.metric_name) == "latency", "metric and unit should stay")
    close(a.confidence, 0.9, "confidence of the merged result")
    expect(len(a.metadata["round_orders"]) == 8, f"8 rounds, {len(a.metadata['round_orders'])} round_orders")
    expect(a.metadata["seed"] == 7, "the first part's metadata should stay")
    expect(a.metadata["pairing"] == b.metadata["pairing"], "two models merged from the same rounds should pair")
    other = student.merge_results([part(values, mark) for values, mark in zip(pieces, "pqs", strict=True)])
    expect(
        a.metadata["pairing"] != other.metadata["pairing"],
        "results of other rounds should not pair: the digest is of all parts",
    )
    single = student.merge_results([BenchmarkResult("accuracy", [0.5], {"total": 4})])
    expect("pairing" not in single.metadata and single.metadata["total"] == 4, "a part without pairing stays without")
    raises(ValueError, lambda: student.merge_results([]), "no parts")
    raises(
        ValueError,
        lambda: student.merge_results([part([1.0], "p"), part([1.0], "q", system={"cpu": "y"})]),
        "parts from two processors",
    )
    raises(
        ValueError,
        lambda: student.merge_results([part([1.0], "p"), BenchmarkResult("energy", [1.0], unit="J")]),
        "parts of two metrics",
    )


def some_results() -> dict[str, dict[str, BenchmarkResult]]:
    """Return results of three metrics: many values, few, and counts."""
    rng = draw()
    latency = {name: [float(v) for v in rng.lognormal(-7, 0.5, size)] for name, size in (("a", 40), ("b", 5), ("c", 6))}
    return {
        "latency": {name: BenchmarkResult("latency", values, unit="s") for name, values in latency.items()},
        "accuracy": {"a": BenchmarkResult("accuracy", [0.8, 0.6], {"correct": 150, "total": 200})},
        "energy": {"b": BenchmarkResult("energy", [0.5, 0.25, 0.75], {"measured": False}, unit="J")},
    }


@judges("run_rows", "summary_rows")
def rows_are_whole(student: Any) -> None:
    """Every measurement has its row, every result its value with the interval that belongs to it."""
    results = some_results()
    rows = [dict(row) for row in student.run_rows(results)]
    flat = [(m, name, i, v, r) for m, by in results.items() for name, r in by.items() for i, v in enumerate(r.values)]
    expect(len(rows) == len(flat), f"{len(flat)} measurements need as many rows, there are {len(rows)}")
    for row, (metric, name, run, value, result) in zip(rows, flat, strict=True):
        expect(
            (row["metric"], row["model"], row["run"]) == (metric, name, run),
            f"row {row} should be run {run} of {name}, {metric}",
        )
        close(row["value"], value, "value of a run", cause="unrounded", rel=1e-15)
        expect(
            (row["unit"], row["measured"]) == (result.unit, result.measured), f"unit and measured of {name}, {metric}"
        )
    summary = {(row["metric"], row["model"]): dict(row) for row in student.summary_rows(results)}
    expect(len(summary) == 5, f"5 results need 5 rows, there are {len(summary)}")
    many = np.sort(results["latency"]["a"].values)
    rank = int(stats.binom.ppf(0.025, 40, 0.5))
    truths: dict[tuple[str, str], tuple[Any, ...]] = {
        ("latency", "a"): (float(np.median(many)), many[rank - 1], many[40 - rank], "median"),
        ("latency", "b"): (*(float(f(results["latency"]["b"].values)) for f in (np.median, min, max)), "range"),
        ("latency", "c"): (*(float(f(results["latency"]["c"].values)) for f in (np.median, min, max)), "median"),
        ("energy", "b"): (0.5, 0.25, 0.75, "range"),
    }
    for key, (value, lower, upper, kind) in truths.items():
        row = summary[key]
        all_close(
            [row["value"], row["lower"], row["upper"]],
            [value, lower, upper],
            f"value, lower and upper of {key}",
            cause="use central and interval of module 09",
        )
        expect(row["interval"] == kind, f"the interval of {key} is a {kind!r}, you say {row['interval']!r}")
    row, wilson = summary["accuracy", "a"], stats.binomtest(150, 200).proportion_ci(method="wilson")
    all_close(
        [row["value"], row["lower"], row["upper"]],
        [0.75, wilson.low, wilson.high],
        "accuracy over all rows",
        cause="150 of 200, with Wilson's interval",
        rel=1e-6,
    )
    expect(row["interval"] == "Wilson", "an accuracy has Wilson's interval")
    values = np.array(results["latency"]["b"].values)
    moments = {
        "count": 5,
        "mean": values.mean(),
        "std": values.std(ddof=1),
        "median": np.median(values),
        "min_val": values.min(),
        "max_val": values.max(),
    }
    for name, truth in moments.items():
        close(summary["latency", "b"][name], float(truth), name)
    expect(
        summary["energy", "b"]["measured"] is False and summary["energy", "b"]["unit"] == "J",
        "an estimate should stay labelled, with its unit",
    )


def rounds(**factors: float) -> dict[str, BenchmarkResult]:
    """Return latencies of models from common rounds, by the factor that each is slower."""
    rng = draw()
    base = rng.lognormal(-6, 0.3, 30)
    return {
        name: BenchmarkResult(
            "latency", list(base * factor * rng.lognormal(0, 0.005, 30)), {"pairing": "one"}, unit="s"
        )
        for name, factor in factors.items()
    }


def graded(right: dict[str, np.ndarray]) -> dict[str, BenchmarkResult]:
    """Return accuracies with the rows that each model has right."""
    return {
        name: accuracy(int(bits.sum()), len(bits), np.packbits(bits).tobytes().hex()) for name, bits in right.items()
    }


def accuracy(correct: int, total: int, right: str = "") -> BenchmarkResult:
    """Return an accuracy, with the rows that are right where these are given."""
    notes = {"correct": correct, "total": total} | ({"right": right} if right else {})
    return BenchmarkResult("accuracy", [correct / total], notes)


@judges("comparison_rows")
def pairs_are_corrected(student: Any) -> None:
    """All pairs in order, each metric with a Holm correction of its own, verdicts after the correction."""
    times = rounds(a=1.0, b=1.3, c=1.004, d=1.3)
    rng = draw()
    base = rng.random(203) < 0.9
    second = base.copy()
    second[:3] = ~second[:3]
    third = base & (np.arange(203) >= 40)
    scores = graded({"x": base, "y": second, "z": third})
    results = {
        "latency": times,
        "accuracy": scores,
        "energy": {
            "a": BenchmarkResult("energy", [1.0, 1.1], {"measured": False}, unit="J"),
            "b": BenchmarkResult("energy", [1.0, 1.1], unit="J"),
        },
    }
    rows = [dict(row) for row in student.comparison_rows(results)]
    pairs = [("latency", *p) for p in combinations("abcd", 2)] + [("accuracy", *p) for p in combinations("xyz", 2)]
    got = [(r["metric"], r["model_a"], r["model_b"]) for r in rows]
    expect(got == pairs, f"rows for {pairs} expected (an estimate is not tested against a measurement), got {got}")
    for metric in ("latency", "accuracy"):
        mine = [row for row in rows if row["metric"] == metric]
        p = np.array([float(row["p"]) for row in mine])
        order = np.argsort(p, kind="stable")
        holm = np.empty(len(p))
        holm[order] = np.minimum(1, np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order]))
        all_close(
            [row["p_holm"] for row in mine],
            list(holm),
            f"p_holm of {metric}",
            cause="Holm over the pairs of this metric alone",
        )
        for row, corrected in zip(mine, holm, strict=True):
            if corrected >= 0.05:
                expect(
                    row["verdict"] == "undecided",
                    f"{row['model_a']} and {row['model_b']}: p after Holm is {corrected:.2g}, so the verdict is "
                    f"'undecided', not {row['verdict']!r}",
                )
    found = {(r["model_a"], r["model_b"]): r for r in rows}
    expect(
        found["a", "b"]["verdict"] == "faster" and found["b", "c"]["verdict"] == "slower",
        "30 % in all of 30 rounds is decided: the verdict is about model_a",
    )
    agree = times["a"].values
    sign = stats.binomtest(sum(x < y for x, y in zip(agree, times["b"].values, strict=True)), 30).pvalue
    close(
        found["a", "b"]["p"],
        float(sign),
        "p of a and b",
        cause="keep what compare_pair returns: the rounds pair",
        rel=1e-6,
    )
    expect(
        found["x", "z"]["verdict"] == "higher" and found["x", "y"]["verdict"] == "undecided",
        "McNemar's test decides between x and z, not between x and y",
    )
    expect(
        "cohens_d" in found["a", "b"] and "ratio_lower" in found["a", "b"], "all columns of compare_pair should stay"
    )
    near = {"m": [0.9] * 21 + [1.2] * 9, "n": [1.0] * 30, "o": [1.0] * 30}
    alike = {name: BenchmarkResult("latency", values, {"pairing": "two"}, unit="s") for name, values in near.items()}
    first = dict(student.comparison_rows({"latency": alike})[0])
    close(first["p"], float(stats.binomtest(9, 30).pvalue), "p of 21 rounds of 30", rel=1e-6)
    expect(
        first["verdict"] == "undecided",
        f"p is {float(first['p']):.2g}, but {float(first['p_holm']):.2g} after Holm over three pairs: undecided",
    )
    lone = student.comparison_rows({"latency": {"a": times["a"]}, "memory": {}})
    expect(len(lone) == 0, "one model has no pair")


@judges("best_by_dimension")
def best_admits_ties(student: Any) -> None:
    """Directions, ties by test where there is one, by intervals where not, and estimates that do not compete."""
    times = rounds(slow=1.5, quick=1.0)
    tilt = np.exp(draw().normal(0, 0.005, 15))  # as often to the one side as to the other, whatever the seed
    alike = np.array(times["quick"].values) * np.concatenate([tilt, 1 / tilt])
    times["alike"] = BenchmarkResult("latency", list(alike), {"pairing": "one"}, unit="s")
    found = dict(student.best_by_dimension({"latency": times}))["latency"]
    names = {"quick", "alike"}
    expect(
        found["model"] in names and set(found["tied"]) == names - {found["model"]},
        f"quick and alike cannot be told apart, slow can; you say {found['model']}, tied {list(found['tied'])}",
    )
    winner = times[found["model"]]
    all_close(
        [found["value"]], [float(np.median(winner.values))], "value of the best latency", cause="central: the median"
    )
    ordered = sorted(winner.values)
    all_close(
        [found["lower"], found["upper"]],
        [ordered[9], ordered[20]],
        "its interval",
        cause="interval: the 10th and 21st of 30 values",
    )
    decided = rounds(first=1.04, second=1.0)
    overlap = dict(student.best_by_dimension({"latency": decided}))["latency"]
    expect(
        overlap["model"] == "second" and list(overlap["tied"]) == [],
        "the rounds decide though the intervals overlap: where there is a test, it has the word",
    )
    rng = draw()
    base = rng.random(400) < 0.9
    close_by = base.copy()
    close_by[np.flatnonzero(base)[:8]] = False
    best = dict(student.best_by_dimension({"accuracy": graded({"less": close_by, "more": base})}))["accuracy"]
    expect(
        best["model"] == "more" and list(best["tied"]) == [],
        "8 rows right that the other has wrong, none the other way: McNemar decides, the Wilson intervals overlap",
    )
    counts = {
        name: BenchmarkResult("accuracy", [k / 100], {"correct": k, "total": 100})
        for name, k in (("p", 60), ("q", 95), ("r", 92))
    }
    best = dict(student.best_by_dimension({"accuracy": counts}))["accuracy"]
    expect(
        best["model"] == "q" and list(best["tied"]) == ["r"],
        f"without a test overlapping intervals are a tie: q with r, not with p; you say {best['model']}, "
        f"{list(best['tied'])}",
    )
    rates = {
        name: BenchmarkResult("throughput", [v] * 7, unit="rows/s")
        for name, v in (("m", 10.0), ("n", 30.0), ("o", 20.0))
    }
    best = dict(student.best_by_dimension({"throughput": rates}))["throughput"]
    expect(best["model"] == "n" and best["unit"] == "rows/s", "more throughput is better")
    rates = {
        "m": BenchmarkResult("throughput", [30.0] * 6 + [1.0], unit="rows/s"),
        "n": BenchmarkResult("throughput", [27.0] * 7, unit="rows/s"),
    }
    best = dict(student.best_by_dimension({"throughput": rates}))["throughput"]
    expect(best["model"] == "m", "30 in six of seven runs against 27: central ranks by the median, not by the mean")
    mixed = {
        "guess": BenchmarkResult("energy", [0.1, 0.1], {"measured": False}, unit="J"),
        "fact": BenchmarkResult("energy", [0.5, 0.5], unit="J"),
    }
    best = dict(student.best_by_dimension({"energy": mixed}))["energy"]
    expect(
        best["model"] == "fact" and best["measured"] is True and list(best["tied"]) == [],
        "an estimate never competes with a measurement",
    )
    best = dict(student.best_by_dimension({"energy": {"guess": mixed["guess"]}}))["energy"]
    expect(best["model"] == "guess" and best["measured"] is False, "estimates compete among themselves, labelled")
    json.dumps({name: dict(row) for name, row in {"energy": best}.items()})


@judges("dashboard_rows")
def dashboard_is_honest(student: Any) -> None:
    """Units for people, medians, empty cells, labelled estimates."""
    rng = draw()
    values = [float(v) for v in rng.lognormal(-6, 1, 60)]
    results = {
        "latency": {"a": BenchmarkResult("latency", values, unit="s")},
        "throughput": {"a": BenchmarkResult("throughput", [100.0, 300.0, 900.0], unit="rows/s")},
        "accuracy": {"a": BenchmarkResult("accuracy", [0.5, 1.0], {"correct": 60, "total": 100}), "b": accuracy(0, 9)},
        "memory": {"b": BenchmarkResult("memory", [2e6, 3e6, 9e6], unit="B")},
        "energy": {
            "a": BenchmarkResult("cpu_time", [0.5], {"measured": False}, unit="s"),
            "b": BenchmarkResult("energy", [0.002, 0.004, 0.009], unit="J"),
            "c": BenchmarkResult("energy", [0.002], {"measured": False}, unit="J"),
        },
    }
    rows = {str(row["model"]): dict(row) for row in student.dashboard_rows(results)}
    expect(
        list(rows) == ["a", "b", "c"],
        f"one row for each model with any result, in order of appearance; got {list(rows)}",
    )
    columns = [
        "model",
        "latency_ms",
        "latency_p95_ms",
        "throughput_qps",
        "accuracy",
        "memory_mb",
        "energy_mj",
        "energy_measured",
    ]
    for name, row in rows.items():
        expect(list(row) == columns, f"the columns of {name} should be {columns}, they are {list(row)}")
    truths = {
        ("a", "latency_ms"): 1e3 * float(np.median(values)),
        ("a", "latency_p95_ms"): 1e3 * float(np.percentile(values, 95)),
        ("a", "throughput_qps"): 300.0,
        ("a", "accuracy"): 0.6,
        ("b", "accuracy"): 0.0,
        ("b", "memory_mb"): 3.0,
        ("b", "energy_mj"): 4.0,
        ("c", "energy_mj"): 2.0,
    }
    for (name, column), truth in truths.items():
        close(
            rows[name][column],
            truth,
            f"{column} of {name}",
            cause="medians, in ms, MB (10⁶ bytes) and mJ; the accuracy over all rows",
            abs=1e-12,
        )
    for name, column in (
        ("a", "memory_mb"),
        ("b", "latency_ms"),
        ("b", "latency_p95_ms"),
        ("c", "accuracy"),
        ("a", "energy_mj"),
        ("a", "energy_measured"),
    ):
        expect(
            rows[name][column] is None,
            f"{column} of {name} was not measured (CPU seconds are no joules): None, not {rows[name][column]!r}",
        )
    expect(
        rows["b"]["energy_measured"] is True and rows["c"]["energy_measured"] is False,
        "energy_measured tells measurement from estimate",
    )


class Interrupted(Exception):
    """The power cut of a check."""


class Meter:
    """Draws the pieces a suite measures, remembers them, and breaks off at one."""

    def __init__(self, rng: np.random.Generator, names: list[str], breaks_at: str = "") -> None:
        self.rng, self.names, self.breaks_at = rng, names, breaks_at
        self.measured, self.tables = dict[str, dict[str, list[float]]](), 0

    def measure(self, piece: str) -> dict[str, BenchmarkResult]:
        """Stand in for a measurement."""
        piece = str(piece)
        if piece == self.breaks_at:
            raise Interrupted(piece)
        self.measured[piece] = {name: self.rng.uniform(1, 9, 2).tolist() for name in self.names}
        notes = {"pairing": piece, "round_orders": [self.names] * 2} if piece.startswith("latency") else {}
        return {
            name: BenchmarkResult(piece.partition("-")[0], values, notes, unit="s")
            for name, values in self.measured[piece].items()
        }

    def write_tables(self) -> list[str]:
        """Stand in for the tables."""
        self.tables += 1
        return []


@judges("BenchmarkSuite.run_full_benchmark", "BenchmarkSuite._check_same_study", "BenchmarkSuite.load")
def interrupted_runs_resume(student: Any) -> None:
    """Broken off at any piece, a study goes on there; another study is refused; nothing is ever deleted."""
    rng = draw()
    names = words(rng, 3)
    late = names.pop()
    size = int(rng.integers(4, 9))
    rows, labels = rng.random((size, 3)), np.arange(size)
    models = dict(zip(names, (abs, np.sqrt), strict=True))

    def meter(breaks_at: str = "") -> Meter:
        return Meter(rng, names, breaks_at)

    def suite(meter: Meter, folder: str, **options: Any) -> Any:
        made = student.BenchmarkSuite(
            options.pop("models", models), options.pop("data", (rows, labels)), folder, progress=None, **options
        )
        made._measure, made.write_tables = meter.measure, meter.write_tables
        return made

    for breaks_at in (PIECES[0], *rng.permutation(PIECES[1:-1])[:2].tolist(), PIECES[-1]):
        folder, first = place(), meter(breaks_at)
        broken = suite(first, folder)
        raises(
            Interrupted, lambda broken=broken: broken.run_full_benchmark(), "an error of a model, which should surface"
        )
        done = PIECES[: PIECES.index(breaks_at)]
        expect(
            list(first.measured) == done,
            f"broken off at {breaks_at}, {done} should be measured before, in this order; you measured "
            f"{list(first.measured)}",
        )
        left = broken.load()
        expect(
            [str(metric) for metric in left] == [m for m in METRICS if any(p.startswith(m) for p in done)],
            f"after a break at {breaks_at}, load should return what was measured, in the order {METRICS}",
        )
        second = meter()
        again = suite(second, folder)
        found = again.run_full_benchmark(resume=True)
        expect(
            list(second.measured) == PIECES[len(done) :],
            f"resumed after a break at {breaks_at}, you measured {list(second.measured)} instead of "
            f"{PIECES[len(done) :]}",
        )
        expect(
            [str(metric) for metric in found] == METRICS and second.tables == 1,
            f"all metrics in the order {METRICS}, and the tables written once at the end",
        )
        values = first.measured | second.measured
        for metric in METRICS:
            parts = sorted(piece for piece in PIECES if piece.startswith(metric))
            for name in names:
                truth = [value for piece in parts for value in values[piece][name]]
                what, cause = f"{metric} of {name} after resuming", "what was measured, the parts of latency in order"
                all_close(found[metric][name].values, truth, what, cause=cause)
        pairings = {str(found["latency"][name].metadata["pairing"]) for name in names}
        expect(len(pairings) == 1, "models merged from the same rounds should still pair")
        expect(
            again.results["memory"][names[0]].values == found["memory"][names[0]].values,
            "the results should be kept in self.results",
        )
    third = meter()
    suite(third, folder).run_full_benchmark(resume=True)
    expect(not third.measured, "a study that is complete has nothing to measure again")

    one, other = names
    cases = {
        "another model": ({"models": {one: abs, late: np.sqrt}}, late),
        "a model that answers otherwise": ({"models": {one: abs, other: np.negative}}, f"model {other}"),
        "a model less": ({"models": {one: abs}}, f"model {other}"),
        "other labels": ({"data": (rows, np.roll(labels, int(rng.integers(1, size))))}, "data"),
        "more rounds": ({"measurement_runs": int(rng.integers(6, 30))}, "measurement_runs"),
        "another seed": ({"seed": int(rng.integers(2, 1000))}, "seed"),
    }  # fmt: skip
    for what, (options, word) in cases.items():
        unused = meter()
        raises(
            ValueError,
            lambda o=options, m=unused: suite(m, folder, **o).run_full_benchmark(resume=True),
            f"resuming with {what}",
            mentions=[word],
        )
        expect(not unused.measured, f"resuming with {what} should measure nothing")
    for number in (1, 2):
        afresh = meter()
        suite(afresh, folder).run_full_benchmark()
        expect(list(afresh.measured) == PIECES, "without resume everything should be measured afresh")
        kept = [str(name) for name in student.os.listdir(f"{folder}/measurements.{number}")]
        expect(len(kept) >= len(PIECES), f"the pieces of the run before should be kept in measurements.{number}")
    fresh, started = place(), meter()
    suite(started, fresh).run_full_benchmark(resume=True)
    expect(list(started.measured) == PIECES, "resume=True in an empty folder starts a study")
    system = json.loads(str(student.Path(f"{fresh}/system.json").read_text()))
    expect("cpu" in system, "system.json should hold the conditions")


def answer_understanding(student: Any) -> None:
    """The three answers follow from the definitions."""
    close(student.pairs_of_five(), 10, "question 1", cause="5 · 4 / 2")
    expect(
        student.are_tied() is False,
        "question 2: where rounds pair, the paired test has the word; single intervals also hold what both models "
        "share",
    )
    close(
        student.pieces_to_measure(),
        4,
        "question 3",
        cause="9 pieces, 5 of them written; the one that was broken off counts as missing",
    )

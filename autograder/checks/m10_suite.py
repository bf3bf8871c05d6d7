"""Hidden checks for module 10: files, corrected pairs, ties and interrupted studies.

A study is measured in pieces, such as ``latency-0`` or ``accuracy``, each of them stored in its own file. Files are
stored where the student's code runs, so checks read and write them through the `Path` of the student's module.
"""

from __future__ import annotations

import json
from itertools import combinations
from secrets import token_hex
from typing import Any

import numpy as np
from scipy import stats

from autograder.checks import judges
from autograder.checks.check_helpers import *
from autograder.checks.m09_pareto import accuracy, seconds
from tinybench.result import BenchmarkResult

METRICS = ["latency", "throughput", "accuracy", "memory", "energy"]
PIECES = ["latency-0", "accuracy", "latency-1", "throughput", "latency-2", "memory", "latency-3", "energy", "latency-4"]


def place() -> str:
    """Return a path for a new folder where the student's code runs. The folder does not exist yet."""
    return f"/tmp/suite-{token_hex(8)}"


@judges("write_text")
def pieces_survive(student: Any) -> None:
    """Check that `write_text` replaces a file as a whole, in UTF-8, and says what to do if it cannot."""
    folder = f"{place()}/deep/new"
    name, first, second = words(draw(), 3)
    first += ", ä, 漢"
    path = student.Path(f"{folder}/{name}.json")
    student.write_text(path, first)
    same(path.read_text(encoding="utf-8"), first, "what is in the file", "it is written in UTF-8")
    reader = path.open(encoding="utf-8")
    try:
        student.write_text(path, second)
        seen = reader.read()
    finally:
        reader.close()
    same(seen, first, "what is read by who has the old file open", "write a new file, then os.replace")
    same(path.read_text(encoding="utf-8"), second, "what is in the file", "the second text replaces the first")
    same(student.os.listdir(folder), [f"{name}.json"], "what stays behind", "no temporary file should")
    below, mentions = student.Path(f"{folder}/{name}.json/below"), ["output_dir", "below"]
    refuses(student.write_text, (below, "x"), error=OSError, mentions=mentions, what="a path below a file")
    where = student.Path(f"{folder}/there")
    where.mkdir()
    refuses(student.write_text, (where, "x"), error=OSError, mentions="there", what="a folder in the file's place")


def rounds(**factors: float) -> dict[str, BenchmarkResult]:
    """Return latency results of models measured in the same rounds, with each model's times scaled by its factor."""
    rng = draw()
    base = rng.lognormal(-6, 0.3, 30)
    rows = shuffled(np.array([base * factor * rng.lognormal(0, 0.005, 30) for factor in factors.values()]))
    return {name: seconds(row, pairing="one") for name, row in zip(factors, rows, strict=True)}


def graded(**right: np.ndarray) -> dict[str, BenchmarkResult]:
    """Return accuracy results that record which rows each model predicts correctly."""
    packed = {name: np.packbits(bits).tobytes().hex() for name, bits in right.items()}
    return {name: accuracy(int(bits.sum()), len(bits), right=packed[name]) for name, bits in right.items()}


@judges("comparison_rows")
def pairs_are_corrected(student: Any) -> None:
    """Check that `comparison_rows` returns all pairs in order, with p-values corrected by Holm within each metric.

    The verdicts must follow the corrected p-values.
    """
    times = rounds(a=1.0, b=1.3, c=1.004, d=1.3)
    base = draw().random(203) < 0.9
    scores = graded(x=base, y=base ^ (np.arange(203) < 3), z=base & (np.arange(203) >= 40))
    guess = BenchmarkResult("energy", [1.0, 1.1], {"measured": False}, unit="J")
    energy = {"a": guess, "b": BenchmarkResult("energy", [1.0, 1.1], unit="J")}
    rows = student.comparison_rows({"latency": times, "accuracy": scores, "energy": energy})
    rows = [entries(row, "a row") for row in items(rows, "the rows")]
    pairs = [("latency", *p) for p in combinations("abcd", 2)] + [("accuracy", *p) for p in combinations("xyz", 2)]
    got = [[row.get(name) for name in ("metric", "model_a", "model_b")] for row in rows]
    same(got, pairs, "the rows", "an estimate is not tested against a measurement")
    for mine in (rows[:6], rows[6:]):
        p = np.array(numbers([row.get("p") for row in mine], "p"))
        order = np.argsort(p, kind="stable")
        holm = np.empty(len(p))
        holm[order] = np.minimum(1, np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order]))
        what = f"p_corrected of {mine[0]['metric']}"
        same([row.get("p_corrected") for row in mine], holm, what, "Holm over the pairs of this metric alone")
        for row, corrected in zip(mine, holm, strict=True):
            if corrected >= 0.05:
                what, cause = f"verdict on {row['model_a']} and {row['model_b']}", f"p after Holm is {corrected:.2g}"
                same(row.get("verdict"), "undecided", what, cause)
    found = {"".join(models): row for (_, *models), row in zip(pairs, rows, strict=True)}
    for pair, verdict, why in (
        ("ab", "faster", "30 % in all of 30 rounds is decided, about model_a"),
        ("bc", "slower", "30 % in all of 30 rounds is decided, about model_a"),
        ("xz", "higher", "McNemar's test decides"),
        ("xy", "undecided", "McNemar's test does not decide"),
    ):
        same(found[pair].get("verdict"), verdict, f"the verdict on {pair[0]} and {pair[1]}", why)
    less = sum(x < y for x, y in zip(times["a"].values, times["b"].values, strict=True))
    cause = "keep what compare_pair returns: the rounds pair"
    same(found["ab"].get("p"), stats.binomtest(less, 30).pvalue, "p of a and b", cause, rel=1e-6)
    expect("cohens_d" in found["ab"] and "ratio_lower" in found["ab"], "all columns of compare_pair should stay")
    alike = {name: seconds([1.0] * 30, pairing="two") for name in "mno"}
    alike["m"] = seconds([*[0.9, 0.9, 1.2] * 3, 0.9] * 3, pairing="two")  # mixed, to avoid autocorrelation
    first, *_ = items(student.comparison_rows({"latency": alike}), "the rows", 3)
    truth = {"p": stats.binomtest(9, 30).pvalue, "verdict": "undecided"}
    holds(first, truth, "the row of 21 rounds of 30", "Holm over three pairs makes it undecided", rel=1e-6)
    same(student.comparison_rows({"latency": {"a": times["a"]}, "memory": {}}), [], "the pairs of one model")


@judges("best_by_dimension")
def best_admits_ties(student: Any) -> None:
    """Check that `best_by_dimension` returns the best model of each metric, and the models tied with the best one.

    Ties must follow from a test if there is one, and otherwise from intervals. Estimates must not compete with
    measurements.
    """
    rng = draw()

    def best(**results: dict[str, BenchmarkResult]) -> dict[str, Any]:
        """Return the row of `best_by_dimension` for one metric, with the original names.

        The student's function receives the models under random names and in random order.
        """
        ((metric, by_model),) = results.items()
        told = dict(zip(by_model, words(rng, len(by_model)), strict=True))
        order = {told[name]: by_model[name] for name in rng.permutation(list(by_model)).tolist()}
        found = entries(student.best_by_dimension({metric: order}), "the best by metric")
        same(list(found), [metric], "the metrics")
        row, names = entries(found[metric], f"the best {metric}"), {name: own for own, name in told.items()}
        tied = [names.get(text(name, "tied")) for name in items(row.get("tied"), "tied")]
        return row | {"model": names.get(text(row.get("model"), "model")), "tied": tied}

    def throughput(*values: float) -> BenchmarkResult:
        return BenchmarkResult("throughput", list(values), unit="rows/s")

    times = rounds(slow=1.5, quick=1.0)
    tilt = np.exp(draw().normal(0, 0.005, 15))  # used with 1 / tilt, so that factors are balanced for every seed
    slow, quick = (np.array(times[name].values) for name in ("slow", "quick"))
    rows = shuffled(np.array([slow, quick, quick * [*tilt, *1 / tilt]]))
    times = {name: seconds(row, pairing="one") for name, row in zip(("slow", "quick", "alike"), rows, strict=True)}
    found, names = best(latency=times), {"quick", "alike"}
    winner, tied = found["model"], found["tied"]
    told = f"you say {winner}, tied {tied}"
    expect(
        sorted(map(str, [winner, *tied])) == sorted(names), f"quick and alike cannot be told apart, slow can; {told}"
    )
    values = np.sort(times[winner].values)
    truth = {"value": np.median(values), "lower": values[9], "upper": values[20]}
    holds(found, truth, "the best latency", "the median, and as interval the 10th and 21st of 30 values")
    base = draw().random(400) < 0.9
    close_by = base.copy()
    close_by[np.flatnonzero(base)[:8]] = False
    guess = {"guess": BenchmarkResult("energy", [0.1, 0.1], {"measured": False}, unit="J")}
    fact = {"fact": BenchmarkResult("energy", [0.5, 0.5], unit="J")}
    cases: list[tuple[str, dict[str, BenchmarkResult], dict[str, Any], str]] = [
        ("latency", rounds(first=1.04, second=1.0), {"model": "second", "tied": []},
         "the rounds decide though the intervals overlap: where there is a test, it has the word"),
        ("accuracy", graded(less=close_by, more=base), {"model": "more", "tied": []},
         "8 rows right that the other has wrong, none the other way: McNemar decides, the Wilson intervals overlap"),
        ("accuracy", {name: accuracy(k, 100) for name, k in {"p": 60, "q": 95, "r": 92}.items()},
         {"model": "q", "tied": ["r"]}, "without a test overlapping intervals are a tie: q with r, not with p"),
        ("throughput", {name: throughput(*[v] * 7) for name, v in {"m": 10.0, "n": 30.0, "o": 20.0}.items()},
         {"model": "n", "unit": "rows/s"}, "more throughput is better"),
        ("throughput", {"m": throughput(*[30.0] * 6, 1.0), "n": throughput(*[27.0] * 7)},
         {"model": "m"}, "30 in six of seven runs against 27: central ranks by the median, not by the mean"),
        ("energy", guess | fact, {"model": "fact", "measured": True, "tied": []},
         "an estimate never competes with a measurement"),
        ("energy", {name: BenchmarkResult("energy", [v], unit="J") for name, v in {"m": 2.0, "n": 3.0}.items()},
         {"model": "m", "tied": ["n"]}, "one value has no interval, and tells nobody apart"),
        ("energy", guess, {"model": "guess", "measured": False}, "estimates compete among themselves, labelled"),
    ]  # fmt: skip
    for metric, results, truth, cause in cases:
        holds(best(**{metric: results}), truth, f"the best {metric} of {', '.join(results)}", cause)
    json.dumps(best(energy=guess))


class Interrupted(Exception):
    """An exception that simulates a power cut."""


class Meter:
    """A stand-in for the measurements of a suite. It draws values for each piece of the study and records them.

    At the piece `breaks_at`, it raises Interrupted.
    """

    def __init__(self, rng: np.random.Generator, names: list[str], breaks_at: str = "") -> None:
        self.rng, self.names, self.breaks_at = rng, names, breaks_at
        self.measured, self.tables = dict[str, dict[str, list[float]]](), 0

    def measure(self, piece: str) -> dict[str, BenchmarkResult]:
        """Draw and record values for one piece, instead of a measurement."""
        piece = text(piece, "the piece to measure")
        if piece == self.breaks_at:
            raise Interrupted(piece)
        self.measured[piece] = {name: self.rng.uniform(1, 9, 2).tolist() for name in self.names}
        notes = {"pairing": piece, "round_orders": [self.names] * 2} if piece.startswith("latency") else {}
        metric = piece.partition("-")[0]
        return {name: BenchmarkResult(metric, values, notes, unit="s") for name, values in self.measured[piece].items()}

    def write_tables(self) -> list[str]:
        """Count the call, instead of writing tables."""
        self.tables += 1
        return []


@judges("BenchmarkSuite.run_full_benchmark", "BenchmarkSuite._check_same_study", "BenchmarkSuite.load")
def interrupted_runs_resume(student: Any) -> None:
    """Check that `run_full_benchmark` resumes a study wherever it was interrupted, and refuses a different study.

    Earlier measurements must never be deleted.
    """
    rng = draw()
    one, other, late = words(rng, 3)
    names, size = [one, other], int(rng.integers(4, 9))
    rows, labels = rng.random((size, 3)), np.arange(size)

    def suite(folder: str, breaks_at: str = "", **options: Any) -> tuple[Any, Meter]:
        given = {"models": {one: abs, other: np.sqrt}, "data": (rows, labels)} | options
        made = student.BenchmarkSuite(given.pop("models"), given.pop("data"), folder, progress=None, **given)
        meter = Meter(rng, names, breaks_at)
        made._measure, made.write_tables = meter.measure, meter.write_tables
        return made, meter

    for breaks_at, resume in ((PIECES[0], False), (str(rng.choice(PIECES[1:-1])), True), (PIECES[-1], False)):
        folder, done = place(), PIECES[: PIECES.index(breaks_at)]
        broken, first = suite(folder, breaks_at)
        what = f"run_full_benchmark(resume={resume}) in an empty folder, with a model that raises an error,"
        refuses(broken.run_full_benchmark, {"resume": resume}, error=Interrupted, what=what)
        same(list(first.measured), done, f"what was measured before the break at {breaks_at}")
        kept = [metric for metric in METRICS if any(piece.startswith(metric) for piece in done)]
        same(list(entries(broken.load(), "what load returns")), kept, f"what load returns after a break at {breaks_at}")
        again, second = suite(folder)
        found = entries(again.run_full_benchmark(resume=True), "the results")
        same(list(second.measured), PIECES[len(done) :], f"what was measured after the break at {breaks_at}")
        same(list(found), METRICS, "the metrics of all results")
        same(second.tables, 1, "how often the tables were written", "once, at the end")
        values = first.measured | second.measured
        returned_and_kept = found, entries(again.results, "self.results")
        for metric in METRICS:
            by_model, stored = (entries(each.get(metric), metric) for each in returned_and_kept)
            same(
                [list(by_model), list(stored)], [names, names], f"the models of {metric}, returned and in self.results"
            )
            parts = sorted(piece for piece in PIECES if piece.startswith(metric))
            for name in names:
                truth = [value for piece in parts for value in values[piece][name]]
                what, cause = f"{metric} of {name} after resuming", "what was measured, the parts of latency in order"
                same(by_model[name].values, truth, what, cause)
                same(stored[name].values, truth, f"{what}, in self.results", "keep the results there")
        latencies = entries(found["latency"], "latency")
        notes = [entries(latencies[name].metadata, "metadata").get("pairing") for name in names]
        pairings = {text(pairing, "metadata['pairing']") for pairing in notes}
        expect(len(pairings) == 1, "models merged from the same rounds should still pair")
    complete, third = suite(folder)
    complete.run_full_benchmark(resume=True)
    expect(not third.measured, "a study that is complete has nothing to measure again")

    cases: dict[str, tuple[dict[str, Any], str]] = {
        "another model": ({"models": {one: abs, late: np.sqrt}}, late),
        "a model that answers otherwise": ({"models": {one: abs, other: np.negative}}, f"model {other}"),
        "a model less": ({"models": {one: abs}}, f"model {other}"),
        "other labels": ({"data": (rows, np.roll(labels, int(rng.integers(1, size))))}, "data"),
        "more rounds": ({"measurement_runs": int(rng.integers(6, 30))}, "measurement_runs"),
        "another seed": ({"seed": int(rng.integers(2, 1000))}, "seed"),
    }
    for what, (options, word) in cases.items():
        unlike, unused = suite(folder, **options)
        refuses(unlike.run_full_benchmark, {"resume": True}, mentions=word, what=f"resuming with {what}")
        expect(not unused.measured, f"resuming with {what} should measure nothing")
    for number in (1, 2):
        afresh, meter = suite(folder)
        afresh.run_full_benchmark()
        same(list(meter.measured), PIECES, "what is measured without resume", "everything, afresh")
        kept = items(student.os.listdir(f"{folder}/measurements.{number}"), "the files of a run before")
        expect(len(kept) >= len(PIECES), f"the pieces of the run before should be kept in measurements.{number}")
    system = json.loads(text(student.Path(f"{folder}/system.json").read_text(), "system.json"))
    expect("cpu" in system, "system.json should hold the conditions")


def answer_understanding(student: Any) -> None:
    """Check that the answers on the pairs of five models, on a tie and on the pieces left to measure are right."""
    same(student.pairs_of_five(), 10, "question 1", "5 · 4 / 2")
    cause = "where rounds pair, the paired test has the word; single intervals also hold what both models share"
    same(student.are_tied(), False, "question 2", cause)
    cause = "9 pieces, 5 of them written; the one that was broken off counts as missing"
    same(student.pieces_to_measure(), 4, "question 3", cause)

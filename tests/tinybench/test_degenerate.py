"""Degenerate input: one value, one class, one request, all right, all wrong, no variance, and what is not a number.

Whatever gives an interval, a p-value, an effect size or an e-value is listed here with such input. The answer is
"unknown" (NaN, None, or an interval without ends), an interval with a width, or an error whose sentence is ours. What
holds such a function in its name or in the type that it returns, and is in no list, fails the test.
"""

from __future__ import annotations

import ast
import linecache
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import tinybench
from autograder.leaderboard import ranking
from autograder.leaderboard.referee import referee
from tests.house import files, module
from tests.tinybench.degenerate_names import ELSEWHERE, FACE
from tinybench import (
    accuracy,
    benchmark,
    bottleneck,
    comparison,
    compress,
    latency,
    load,
    memory,
    pareto,
    production,
    quantize,
    result,
    rollout,
    sampler,
    scaling,
    scenarios,
    toolbox,
)
from tinybench.result import BenchmarkResult
from tinybench.shell import gate_run
from tinybench.support.basics import buckets, conformal, grouped_rows, paired_rows
from tinybench.support.basics.bootstrap import bca_interval
from tinybench.support.benchmarks import best_batch
from tinybench.support.choices import ranked_values
from tinybench.support.comparisons import two_samples
from tinybench.support.compression import seeds
from tinybench.support.profiling import roofline_model, scaling_laws, what_if_gains
from tinybench.support.scenarios import mlperf, sweeps
from tinybench.support.traffic import load_checks, queue_laws, queue_runs
from tinybench.tools.history import steps
from tinybench.tools.rollout import e_values
from tinybench.tools.scaling import fitted_laws
from tinybench.tools.study import measurements, ship_decision
from tinybench.tools.watching import budget_burn

Judge = Callable[[Any], bool]
NAN, INF = math.nan, math.inf
FLAT, ZEROS, WIDE = [2.0] * 12, [0.0] * 12, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
SINGLE: list[list[float]] = [[], [1.0], [1.0, 1.0], FLAT, ZEROS, [-1.0, -2.0, -3.0], [1.0, NAN, 2.0], [1.0, INF, 2.0]]
FINITE = SINGLE[1:6]  # of a result, which holds one finite value or more
PAIRS: list[tuple[list[float], list[float]]] = [
    ([], []),
    ([1.0], [2.0]),
    ([1.0], [1.0]),
    ([1.0], [1.0, 2.0, 3.0]),
    ([1.0] * 2, [2.0] * 2),
    ([1.0] * 6, [2.0] * 6),
    ([1.0] * 6, [1.0] * 6),
    ([1.0] * 6, WIDE),
    (WIDE, WIDE),
    (ZEROS, ZEROS),
    ([1.0, NAN, 2.0], [1.0, 2.0, 3.0]),
    ([1.0, INF, 2.0], [1.0, 2.0, 3.0]),
    ([-1.0, -2.0, -3.0], [-1.0, -2.0, -4.0]),
]
KNOWN = [pair for pair in PAIRS if min(map(len, pair)) and np.isfinite(np.concatenate(pair)).all()]


def unknown(low: Any, high: Any) -> bool:
    """Whether an interval says that it is none: without ends, or NaN."""
    return bool(np.isnan([low, high]).any()) or not (math.isfinite(low) and math.isfinite(high))


def interval(least: float = -INF, most: float = INF, point: bool = False) -> Judge:
    """Judge an interval. A `point` is one of the order of the values: two of them, which may be equal."""

    def judge(found: Any) -> bool:
        low, high = found
        return unknown(low, high) or (least <= low <= high <= most and (point or low < high))

    return judge


def p_value(found: Any) -> bool:
    return math.isnan(found) or 0 < found <= 1


def number(least: float = -INF, most: float = INF) -> Judge:
    return lambda found: math.isnan(found) or (math.isfinite(found) and least <= found <= most)


def never(found: Any) -> bool:
    """Judge what has no answer: only an error will do."""
    return False


def e_value(found: Any) -> bool:
    return 0 <= found < INF


def pair(value: Any, metric: str = "latency", unit: str = "s", **metadata: Any) -> BenchmarkResult:
    return BenchmarkResult(metric, value, metadata, unit=unit)


def run_of(count: int, seconds: float = 0.01, ok: bool = True) -> load.LoadResult:
    due = np.linspace(0, 9, count)
    return load.LoadResult(due, due, due + seconds, np.full(count, ok), 10.0)


RUNS = [run_of(1), run_of(1, ok=False), run_of(12), run_of(1000), run_of(1000, ok=False)]
GRADED = [
    [{"model": f"m{i}", "accuracy": pair([1.0], "accuracy", "", correct=n, total=n, right=bits)} for i in range(2)]
    for n, bits in ((1, "80"), (8, "ff"))
]
SHARE = {"accuracy": "max"}
UNITS = {"latency": "s", "accuracy": "", "memory": "B", "throughput": "rows/s", "energy": "J"}
REQUIREMENTS = ("latency_p95_ms", "accuracy_min", "memory_max_mb", "throughput_min_qps", "energy_budget_mj")


def halved(seconds: dict[int, float]) -> float:
    return seconds[1] / seconds[2]


def scaled(values: Sequence[float]) -> dict[int, list[float]]:
    return {n: [value / n for value in values] for n in (1, 2, 4)}


def alarm(values: Sequence[float], start: Sequence[float] = (), level: float = 0.05) -> float:
    found = production.DriftAlarm(start, level, spacing=1)
    for value in values:
        found.add(value)
    return found.evidence


def confidences(function: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """Return calls of a function of a sample with confidences that are none."""
    return [(WIDE * 10, *([50] if function is result.percentile_interval else []), c) for c in (0.0, 1.0, 95, NAN)]


def of(inputs: Sequence[Any], *more: Any) -> list[tuple[Any, ...]]:
    return [(value, *more) for value in inputs]


BAD = (-1, NAN, INF)
# By what computes it: how the answer is judged, the function, and its arguments.
CASES: dict[str, tuple[Judge, Callable[..., Any], list[tuple[Any, ...]]]] = {
    "result.percentile_interval": (
        interval(point=True), result.percentile_interval, of(FINITE, 50) + confidences(result.percentile_interval)
    ),
    "result.bootstrap_interval": (interval(), result.bootstrap_interval, of(FINITE, np.mean)),
    "bootstrap.bca_interval": (interval(), bca_interval, of(FINITE, np.median)),
    "result.BenchmarkResult.median_ci": (interval(point=True), lambda v: pair(v).median_ci(), of(SINGLE)),
    "result_report.ResultReport.bootstrap_ci": (interval(), lambda v: pair(v).bootstrap_ci(np.mean), of(SINGLE)),
    "latency.latency_summary": (
        lambda found: all(map(interval(point=True), found["intervals"].values())),
        lambda v: latency.latency_summary(pair(v)), of(FINITE),
    ),
    "accuracy.wilson_interval": (
        interval(0, 1), accuracy.wilson_interval,
        [(0, 0), (0, 1), (1, 1), (0, 9), (9, 9), (6, 5), (1, 5, 0.0), (1, 5, 1.0)]
        + [(bad, 5) for bad in BAD] + [(1, bad) for bad in BAD],
    ),
    "paired_rows.count_interval": (interval(0), paired_rows.count_interval, [*of((0, 1, *BAD)), (3, 0.0), (3, 1.0)]),
    "paired_rows.exact_p": (p_value, paired_rows.exact_p, [(0, 0), (1, 0), (500, 0)] + [(bad, 1) for bad in BAD]),
    "paired_rows.difference_interval": (
        interval(-1, 1), paired_rows.difference_interval,
        [(0, 0, 0), (0, 0, 1), (0, 0, 9), (9, 0, 9), (0, 9, 9), (1, 0, 1), (5, 5, 9)]
        + [(bad, 0, 9) for bad in BAD] + [(0, 0, bad) for bad in BAD],
    ),
    "accuracy.mcnemar": (
        lambda found: p_value(found.p_value), accuracy.mcnemar,
        [([], [], []), ([1], [1], [0]), ([1, 0], [1, 0], [1, 0]), ([1, 0], [0, 1], [0, 1]), ([1.0, 0], [NAN, 1], [0, 1])],
    ),
    "accuracy.cluster_interval": (
        interval(0, 1), accuracy.cluster_interval,
        [
            ([], []), ([1], [1]), ([1, 1], [1, 1]), ([1, 1], [1, 2]), ([0, 0, 0], [1, 1, 2]), ([1, 0], [1, 2]),
            ([1, 0, 1, 0], [1, 1, 2, 2]), ([1, 0], [1, NAN]), ([1, 0], [1]), ([1, 0], [1, 2], 0.0), ([1, 0], [1, 2], 1.0),
        ],
    ),
    "accuracy.mcnemar_by_groups": (
        lambda found: p_value(found.p_value) and interval(-1, 1)(found.difference_ci), accuracy.mcnemar_by_groups,
        [
            ([], [], [], []), ([1], [1], [0], [1]), ([1, 1], [1, 1], [1, 1], [1, 2]), ([1, 1], [1, 0], [0, 1], [1, 2]),
            ([1, 1], [1, 1], [0, 0], [1, 2]), ([1, 1], [1, 1], [0, 0], [1, 1]), ([1, 1], [1, 1], [0, 0], [1, NAN]),
        ],
    ),
    "paired_rows.McNemarResult.difference_ci": (
        interval(-1, 1), lambda *counts: paired_rows.McNemarResult(1.0, *counts, True).difference_ci,
        [(0, 0, 0), (0, 0, 1), (0, 0, 9), (9, 0, 9), (0, 9, 9)],
    ),
    "grouped_rows.sign_flip_p": (
        lambda found: p_value(found[0]), grouped_rows.sign_flip_p,
        [(np.array(each),) for each in ([0], [0, 0], [1], [5], [-3, 3], [9000, 2000], [9000, -9000])],
    ),
    "accuracy.recall_per_class": (
        lambda found: all(0 <= share <= 1 for share in found.values()), accuracy.recall_per_class,
        [([], []), ([1], [1]), ([1, 1], [0, 0]), ([0, 0], [0, 1]), ([0.0, NAN], [0.0, 1.0]), ([0.0, 1.0], [0.0, NAN])],
    ),
    "accuracy.balanced_accuracy": (
        number(0, 1), accuracy.balanced_accuracy, [([], []), ([1], [1]), ([1, 1], [0, 0]), ([0.0, NAN], [0.0, 1.0])]
    ),
    "accuracy.parity": (
        lambda found: 0 <= found.label_agreement <= 1, accuracy.parity,
        [([], []), ([1.0], [1.0]), ([0.5], [0.5]), ([NAN], [1.0]), ([INF], [INF])],
    ),
    "two_samples.median_interval": (interval(point=True), two_samples.median_interval, of(SINGLE)),
    "two_samples.by_ranks": (lambda found: p_value(found[0]) and interval(point=True)(found[1]), two_samples.by_ranks, KNOWN),
    "two_samples.welch": (lambda found: p_value(found[0]) and interval(point=True)(found[1]), two_samples.welch, KNOWN),
    "two_samples.compare_apart": (
        lambda found: p_value(found["p_value"])
        and all(interval(point=True)(found[name]) for name in ("ratio_ci", "difference_ci")),
        two_samples.compare_apart, KNOWN,
    ),
    "toolbox.welch_test": (lambda found: p_value(found[2]), toolbox.welch_test, PAIRS),
    "toolbox.welch_intervals": (lambda found: all(map(interval(), found)), toolbox.welch_intervals, PAIRS),
    "toolbox.permutation_test": (
        p_value, toolbox.permutation_test, [(*both, paired) for both in PAIRS for paired in (True, False)]
        + [(WIDE, WIDE, False, 0)],
    ),
    "toolbox.wilcoxon_test": (p_value, toolbox.wilcoxon_test, of(SINGLE)),
    "toolbox.cohens_d": (number(), toolbox.cohens_d, PAIRS),
    "toolbox.cohens_d_paired": (number(), toolbox.cohens_d_paired, PAIRS),
    "toolbox.vargha_delaney_a12": (number(0, 1), toolbox.vargha_delaney_a12, PAIRS),
    "toolbox.friedman": (
        lambda found: p_value(found["p_value"]) and 0 <= found["w"] <= 1, toolbox.friedman,
        of([[], [[1.0], [2.0], [3.0]], [[1.0] * 4, [2.0] * 4, [3.0] * 4], [[1.0] * 4] * 3, [[NAN], [1.0], [2.0]]]),
    ),
    "toolbox.holm": (lambda found: all(map(p_value, found)), toolbox.holm, of([[], [0.5], [NAN], [-1.0], [2.0]])),
    "toolbox.compare_all": (
        lambda found: all(p_value(each.p_value) and math.isfinite(each.p_value) for each in found),
        lambda both, paired: toolbox.compare_all({"a": pair(both[0]), "b": pair(both[1])}, paired),
        [(both, paired) for both in KNOWN for paired in (True, False) if len(both[0]) == len(both[1])],
    ),
    "comparison.median_ratio": (
        lambda found: unknown(*found[1:]) or 0 < found[1] <= found[2], comparison.median_ratio,
        PAIRS + [(WIDE, WIDE, c) for c in (0.0, 1.0, 95, NAN)],
    ),
    "comparison.sign_test": (p_value, comparison.sign_test, PAIRS),
    "comparison.sign_e_value": (e_value, comparison.sign_e_value, [(0, 0), (1, 1), (5000, 5000), (0, 5000)]),
    "comparison.sign_e_value, no counts": (never, comparison.sign_e_value, [(5, 3)] + [(b, 3) for b in BAD] + [(1, b) for b in BAD]),
    "comparison.compare_rounds": (
        lambda found: p_value(found["p_value"]) and interval(point=True)(found["difference_ci"]), comparison.compare_rounds, PAIRS
    ),
    "comparison.runs_to_decide": (
        lambda found: found >= 6, comparison.runs_to_decide,
        [(10, 0.1, 0.0)] + [(b, 0.1, 0.1) for b in (0, *BAD)] + [(10, 0.1, b) for b in (-1, NAN)] + [(10, 0.1, 0.1, c) for c in (0, 1, 95, NAN)],
    ),
    "comparison.anytime_interval": (interval(point=True), comparison.anytime_interval, of(SINGLE) + [(WIDE * 9, b) for b in (0, *BAD)]),
    "comparison.compare": (
        lambda found: p_value(found.p_value) and interval(point=True)(found.difference_ci),
        lambda both, paired: comparison.compare(pair(both[0], "m", ""), pair(both[1], "m", ""), paired),
        [(both, paired) for both in KNOWN for paired in (True, False)],
    ),
    "best_batch.confidence_of_choice": (
        number(0, 1), best_batch.confidence_of_choice, [({1: [1.0]}, 1), ({1: FLAT, 2: FLAT}, 1)]
    ),
    "benchmark.best_throughput": (
        lambda found: 0 < found.confidence < 1, lambda v: benchmark.best_throughput({1: pair(v)}), of(FINITE)
    ),
    "ranked_values.interval": (interval(point=True), lambda v: ranked_values.interval(pair(v)), of(FINITE[1:])),
    "ranked_values.interval, one value": (lambda found: unknown(*found), lambda v: ranked_values.interval(pair(v)), [([1.0],)]),
    "ranked_values.interval, all right": (
        interval(0, 1), lambda n, k: ranked_values.interval(pair([k / n], "accuracy", "", correct=k, total=n)),
        [(1, 0), (1, 1), (9, 0), (9, 9)],
    ),
    "pareto.membership_probability": (
        lambda found: all(0 <= share <= 1 for share in found), pareto.membership_probability, of(GRADED[1:], SHARE)
    ),
    "ship_decision.interval_of": (
        lambda found: unknown(*found) or found[0] <= found[1],
        lambda name, v: ship_decision.interval_of(name, pair(v, name.partition("_")[0], UNITS[name.partition("_")[0]])),
        [(name, v) for name in REQUIREMENTS for v in FINITE],
    ),
    "ship_decision.interval_of, no scatter": (
        lambda found: unknown(*found),
        lambda name, v: ship_decision.interval_of(name, pair(v, name.partition("_")[0], UNITS[name.partition("_")[0]])),
        [(name, [1.0]) for name in REQUIREMENTS] + [(name, FLAT) for name in ("accuracy_min", "energy_budget_mj")],
    ),
    "seeds.seed_verdict": (
        lambda found: isinstance(found, str), seeds.seed_verdict, of([[], [(0.0, 0.0)], [(NAN, 1.0)] * 2, [(0.0, 0.0)] * 2])
    ),
    "compress.softmax": (
        lambda found: np.allclose(found.sum(axis=1), 1), compress.softmax,
        [([[1.0]],), ([[1.0, 1.0]],), ([[NAN, 1.0]],), ([[INF, 1.0]],), ([[1.0, 2.0]], 0), ([[1.0, 2.0]], NAN)],
    ),
    "quantize.quantize_tensor": (
        lambda found: found.size == 1, lambda x: quantize.quantize_tensor([x], quantize.quantization_params([1.0])),
        of([0.0, NAN, INF]),
    ),
    "measurements.throughput_and_bandwidth": (
        lambda found: all(map(number(0), found)), measurements.throughput_and_bandwidth,
        [(value, 1, 1, 1) for value in (0, *BAD)] + [(1.0, 0, 1, 1), (1.0, 1, -1, 1)],
    ),
    "memory.max_concurrent": (lambda found: found >= 0, memory.max_concurrent, [(b, 1) for b in BAD] + [(1, 0), (0, 1)]),
    "memory.memory_pressure": (number(0), memory.memory_pressure, [(b, 1) for b in BAD] + [(1, b) for b in BAD] + [(0, 1)]),
    "load.tail_interval": (
        interval(point=True), load.tail_interval,
        of(SINGLE, 50) + [(FLAT, q) for q in (0, 100, -1, NAN)] + [(WIDE * 9, 50, c) for c in (0.0, 1.0)] + [([NAN] * 99, 50)],
    ),
    "request_rows.RequestRows.percentile": (number(0), lambda r, q: r.percentile(q), [(r, q) for r in RUNS for q in (50, 0, 100, NAN)]),
    "load.LoadResult.percentile_ci": (
        interval(point=True), lambda r, q: r.percentile_ci(q), [(r, q) for r in RUNS for q in (50, 99, 100, NAN)]
    ),
    "load.LoadResult.goodput": (number(0), lambda r, b: r.goodput(b), [(r, b) for r in RUNS for b in (0.1, *BAD)]),
    "queue_laws.littles_law": (number(0), queue_laws.littles_law, [(0, 0)] + [(b, 1) for b in BAD] + [(1, b) for b in BAD]),
    "queue_laws.utilisation": (number(0), queue_laws.utilisation, [(1, 1, 0)] + [(b, 1) for b in BAD] + [(1, 1, b) for b in BAD]),
    "load.mg1": (number(0), load.mg1, [(1, 0.1, b) for b in BAD] + [(b, 0.1, 1) for b in BAD] + [(10, 0.1, 1)]),
    "load.mmc": (number(0), load.mmc, [(1, 0.1, s) for s in (0, 0.5, 1.5, *BAD)]),
    "queue_laws.kingman": (number(0), queue_laws.kingman, [(1, 0.1, b, 1) for b in BAD] + [(1, 0.1, 1, b) for b in BAD]),
    "mlperf.offline": (number(0), mlperf.offline, [(len, 0), (len, 5, lambda: 0.0), (len, NAN)]),
    "sweeps.throughput": (
        lambda found: all(map(number(0), found.values())), lambda v: sweeps.throughput({1: pair(v)}), of(FINITE)
    ),
    "load.instances_needed": (
        lambda found: found.instances >= 1 and not math.isnan(found.high), load.instances_needed,
        [(10, v, 0.1) for v in ([], [NAN], [INF], [-0.1], [0.05])] + [(10, [0.05], 0.1, q) for q in (0, 100, -3, NAN)]
        + [(b, [0.05], 0.1) for b in BAD] + [(10, [0.05], b) for b in BAD],
    ),
    "queue_runs.rule_of_thumb": (lambda found: found >= 1, queue_runs.rule_of_thumb, [(b, 0.1) for b in BAD] + [(0, 0), (1, 1, 1, 0)]),
    "queue_runs.cost_per_million": (
        number(0), queue_runs.cost_per_million, [(1, 0)] + [(b, 1) for b in BAD] + [(1, b) for b in BAD],
    ),
    "scenarios.simulate_batches": (
        lambda found: np.isfinite(found[0]).all(), scenarios.simulate_batches,
        [([0.0, 1.0], lambda _, s=s: s, 2, w) for s, w in ((-1, 0), (NAN, 0), (INF, 0), (0.1, -1), (0.1, NAN))],
    ),
    "load_checks.early_stopping": (
        number(), load_checks.early_stopping,
        of(SINGLE, 90) + [(FLAT * 10, q) for q in (0, 90, 100, -5, NAN)] + [([NAN] * 99, 50), (FLAT * 10, 90, 1.0)],
    ),
    "load_checks.evidence": (
        lambda found: found == -INF or math.isfinite(found), load_checks.evidence,
        [([], 0.1)] + [([r], b) for r in RUNS for b in (0.1, 0.001, *BAD)] + [(RUNS[:1], 0.1, q) for q in (0, 100, NAN)],
    ),
    "load_checks.keeps_bound": (
        lambda found: found in (True, False, None), lambda r, b: load_checks.keeps_bound(r, b), [(r, 0.1) for r in RUNS]
    ),
    "load_checks.keeps_bound, one request": (lambda found: found is None, load_checks.keeps_bound, of(RUNS[:2], 0.1)),
    "bottleneck.virtual_gain": (
        number(), bottleneck.virtual_gain,
        [([], [], [], 2), ([0.0], [1.0], [1.0], 2), ([NAN], [1.0], [1.0], 2), ([1.0], [1.0], [1.0, 2.0], 2), ([1.0], [2.0], [1.0], 0)],
    ),
    "bottleneck.slowing_error": (
        number(), bottleneck.slowing_error, [([], [], 2), ([0.0], [1.0], 2), ([NAN], [1.0], 2), ([1.0], [1.0], 0)]
    ),
    "sampler.self_shares": (
        lambda found: all(0 <= share <= 1 for share in found.values()), sampler.self_shares,
        of([[], [sampler.Sample(0.0, ("f",), 0.0)], [sampler.Sample(0.0, ("f",), NAN)]]),
    ),
    "sampler.total_shares": (
        lambda found: all(0 <= share <= 1 for share in found.values()), sampler.total_shares,
        of([[], [sampler.Sample(0.0, ("f",), 0.0)], [sampler.Sample(0.0, ("f",), NAN)]]),
    ),
    "roofline_model.attainable": (number(0), roofline_model.attainable, [(b, 1, 1) for b in BAD] + [(1, b, 1) for b in BAD[:2]] + [(1, 1, 0)]),
    "bottleneck.wall": (
        lambda found: isinstance(found, str), bottleneck.wall,
        [(roofline_model.Work(1.0, 1.0), s, 1.0, 1.0) for s in (0, *BAD)] + [(roofline_model.Work(1.0, 1.0), 1.0, NAN, 1.0)],
    ),
    "scaling.speedup": (
        lambda found: all(map(number(0), found.values())), scaling.speedup,
        of([{}, {1: 1.0}, {1: 1.0, 2: 0.0}, {1: NAN, 2: 1.0}, {1: -1.0, 2: 1.0}]),
    ),
    "scaling_laws.efficiency": (
        lambda found: all(map(number(0), found.values())), scaling_laws.efficiency,
        of([{}, {1: 1.0, 0: 1.0}, {1: 1.0, 2: 0.0}, {1: 1.0, -2: 1.0}]),
    ),
    "scaling_laws.amdahl": (number(0), scaling_laws.amdahl, [(0, 0), (4, -1), (4, 2), (NAN, 0.5), (4, NAN), (-1, 0.5)]),
    "scaling_laws.gustafson": (number(0), scaling_laws.gustafson, [(0, 0), (4, -1), (4, 2), (NAN, 0.5), (4, NAN), (-1, 0.5)]),
    "scaling_laws.usl": (number(0), scaling_laws.usl, [(0, 0, 0), (2, -1, 0), (2, 0, -1), (NAN, 0, 0), (2, NAN, 0)]),
    "scaling.fit_usl": (
        lambda found: min(found) >= 0, scaling.fit_usl,
        of([{}, {1: 1.0, 2: 2.0}, *({1: 1.0, 2: bad, 4: 2.0} for bad in (0.0, *BAD))]),
    ),
    "scaling.best_workers": (lambda found: found >= 1, scaling.best_workers, [(0, 0), (-1, 0), (0.1, -1), (NAN, 0), (0, NAN)]),
    "what_if_gains.gain_interval": (
        interval(), lambda *rows: what_if_gains.gain_interval(bottleneck.virtual_gain, *rows, 2),
        [([], [], []), ([1.0], [2.0], [1.5]), ([1.0] * 6, [2.0] * 6, [1.5] * 6), ([0.0] * 6, [2.0] * 6, [1.5] * 6), ([NAN] * 6, WIDE, WIDE)],
    ),
    "fitted_laws.with_interval": (
        lambda found: interval()((found.low, found.high)) and "nan" not in str(found), fitted_laws.with_interval,
        [(halved, scaled(v)) for v in ([], [1.0], FLAT, WIDE, ZEROS, [1.0, NAN, 2.0])] + [(halved, scaled(WIDE), c) for c in (0, 1, 95)],
    ),
    "fitted_laws.fit_laws": (
        lambda found: all(interval()((each.low, each.high)) for each in (found.amdahl, found.contention)) and "nan" not in str(found),
        fitted_laws.fit_laws, of([scaled(FLAT), scaled([1.0])]),
    ),
    "steps.find_steps": (
        lambda found: all(interval(point=True)(step.change_ci) for step in found), steps.find_steps,
        of([[], [1.0], [1.0] * 40, [1.0] * 20 + [2.0] * 20, [0.0], [NAN], [-1.0]]),
    ),
    "steps._shift": (
        lambda found: interval(point=True)(found[1]) , lambda a, b: steps._shift(np.array(a), np.array(b)),
        [([1.0], [2.0]), ([1.0], [2.0] * 20), ([1.0] * 9, [2.0] * 9)],
    ),
    "steps._shift, one value": (
        lambda found: unknown(*found[1]), lambda a, b: steps._shift(np.array(a), np.array(b)), [([1.0], [2.0]), ([1.0], [2.0] * 20)]
    ),
    "budget_burn.share_interval": (
        interval(0, 1), budget_burn.share_interval,
        [(0, 0), (0, 1), (1, 1), (0, 9), (9, 9), (5, 3), (1, INF)] + [(bad, 9) for bad in BAD[:2]] + [(1, NAN)],
    ),
    "e_values.harm_e_value": (
        e_value, e_values.harm_e_value,
        [(0, 0, 0.5), (5, 5, 0.5), (0, 5, 0.5), (5, 3, 0.5), (1, 2, 0.0), (1, 2, 1.0)] + [(bad, 5, 0.5) for bad in BAD],
    ),
    "gate_run.decision_so_far": (lambda found: interval(0, point=True)(found[1]), gate_run.decision_so_far, of([[], [0.1], [0.1] * 30], 0.05)),
    "production.error_budget": (number(0), production.error_budget, [(0.9, b) for b in BAD] + [(o, 9) for o in (0, 1, 2, NAN)]),
    "production.burn_rate": (
        number(0), production.burn_rate,
        [(0, 0, 0.9), (1, 10, 1.0), (1, 10, 2.0)] + [(b, 10, 0.9) for b in BAD] + [(1, b, 0.9) for b in BAD],
    ),
    "production.increase": (number(0), production.increase, of([[], [1], [-1, -2], [1, NAN, 3], [1, INF]])),
    "production.burning": (
        lambda found: found is False, production.burning,
        [([], [], 0.9, 1, 5, 1), ([NAN] * 3, [1, 2, 3], 0.9, 1, 2, 1), ([1, 2], [1, 2], 0.9, 1, 0, 0), ([1], [1, 2], 0.9, 1, 5, 1)],
    ),
    "production.histogram_quantile": (
        number(0), production.histogram_quantile,
        [(q, [1, INF], [1, 2]) for q in (-1, 2, NAN)]
        + [(0.5, *h) for h in (([], []), ([INF], [3]), ([1, INF], [0, 0]), ([2, 1, INF], [1, 2, 3]), ([1, 2], [1, 2]))]
        + [(0.5, [1, 2, INF], c) for c in ([5, 3, 8], [1, 2], [-1, 0, 2], [1, NAN, 2], [1, 2, NAN])],
    ),
    "buckets.quantile_bounds": (
        interval(0), buckets.quantile_bounds,
        [(q, [1, INF], [1, 2]) for q in (-1, 2, NAN)] + [(0.5, [1, INF], [0, 0]), (0.5, [], []), (0.5, [1, 2, INF], [5, 3, 8])],
    ),
    "production.psi": (
        number(0), production.psi,
        [([], []), ([1, 2], [1, 2, 3]), ([0, 0], [0, 0]), ([1, 2], [0, 0]), ([5], [3])] + [([b, 2], [1, 2]) for b in BAD],
    ),
    "production.ks": (number(0, 1), production.ks, [*PAIRS, ([1.0], [])]),
    "production.permutation_p": (
        p_value, lambda a, b, n=9: production.permutation_p(production.ks, a, b, n),
        [*PAIRS, (WIDE, WIDE, 0), (WIDE, WIDE, -1)],
    ),
    "production.permutation_p, a statistic without a value": (
        p_value, lambda a, b: production.permutation_p(lambda *_: NAN, a, b), [(WIDE, WIDE)]
    ),
    "conformal.conformal_p": (
        number(0, 1), lambda seen, value: conformal.conformal_p(seen, value, random.Random(0)),
        [([], 1.0), ([1.0], 1.0), (FLAT, 2.0), ([1.0], NAN), ([1.0], INF)],
    ),
    "production.DriftAlarm.evidence": (
        e_value, alarm, [([],), ([1.0] * 50,), ([NAN],), (FLAT, FLAT), (FLAT, [NAN]), (FLAT, [], 0), (FLAT, [], 1), (FLAT, [], 2)]
    ),
    "rollout.users_needed": (
        lambda found: found >= 1, rollout.users_needed,
        [(0, 0), (0.1, 0), (0.5, 0.6), (-0.1, 0.1), (NAN, 0.1), (0.1, NAN), (0.1, 1e-200), (0, 1)]
        + [(0.1, 0.1, level) for level in (0, 1, NAN)] + [(0.1, 0.1, 0.05, power) for power in (0, 0.01, 1, NAN)],
    ),
    "rollout.share_e_value": (
        e_value, rollout.share_e_value,
        [(0, 0), (1, 1), (10**6, 10**6), (0, 10**6), (5, 3), (1, 2, 0.0), (1, 2, 1.0)] + [(bad, 5) for bad in BAD] + [(1, NAN)],
    ),
    "rollout.in_canary": (lambda found: found in (True, False), rollout.in_canary, [("a", s) for s in (0, 1, 2, *BAD)]),
    "rollout.advance": (
        lambda found: found.stage == 0, rollout.advance,
        [(rollout.RolloutState(), rollout.Seen(True, {"slow": NAN}, True))],
    ),
    "rollout.best_split": (lambda found: number(0)(found[1]), rollout.best_split, of(SINGLE)),
    "rollout.change_points": (
        lambda found: found == [], rollout.change_points,
        [*of(SINGLE), (FLAT * 3, 0), (FLAT * 3, NAN), (FLAT * 3, 0.01, 0), ([1.0, NAN] * 10,)],
    ),
    "referee.rerun_interval": (
        lambda found: 0 < found[1] < found[0] < found[2], referee.rerun_interval, [([1.0] * 5, 0.01), ([1.0], 0.01), ([], 0.01)]
    ),
    "ranking.accuracy_of": (
        lambda found: found.lower < found.upper, ranking.accuracy_of, [(0, 0), (0, 1), (1, 1), (0, 200), (200, 200)]
    ),
}  # fmt: skip

NAMED = re.compile(
    r"(^|_)(interval|intervals|ci|ends|psi|ks|chi2|friedman|holm|mcnemar|welch|wilcoxon|cohens|a12|recall|parity"
    r"|quantile|percentile|evidence|lowest)(_|$)|_p$|_test$|e_value|p_value|needed$"
)
CALLS = [(name, number) for name, (_, _, calls) in CASES.items() for number in range(len(calls))]


@pytest.mark.parametrize(("name", "number"), CALLS, ids=[f"{name} {number}" for name, number in CALLS])
def test_no_certainty_from_nothing(name: str, number: int) -> None:
    judge, function, calls = CASES[name]
    refusal: Exception | None = None
    try:
        found = function(*calls[number])
    except (ValueError, TypeError) as error:
        refusal = error
    called = f"{name}{calls[number]}"
    if refusal is None:
        assert judge(found), f"{called} claims to know {found}"
        return
    line, words = raised_by(refusal), len(str(refusal).split())
    assert "raise " in line, f"{called} fails inside {line.strip()!r}: {refusal!r}"
    assert words >= 4, f"{refusal!r} is not a sentence"


def raised_by(error: Exception) -> str:
    """Return the line that an error came from; one of ours begins with ``raise``."""
    at = error.__traceback__
    while at and at.tb_next:
        at = at.tb_next
    return linecache.getline(at.tb_frame.f_code.co_filename, at.tb_lineno) if at else ""


def functions(tree: ast.AST, above: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions and methods of a file with their names, but not those within functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield above + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{above}{node.name}.")


def statistical() -> set[str]:
    """Return what gives an interval or the like, by its name or by what it returns."""
    found = set()
    for path in [*files("tinybench"), *files("autograder/leaderboard")]:
        if "course" in path.parts:  # of lessons; nobody else uses these
            continue
        for name, node in functions(ast.parse(path.read_text(encoding="utf-8"))):
            returns = ast.unparse(node.returns) if node.returns else ""
            own = name.rpartition(".")[2]
            if not own.startswith("__") and (NAMED.search(own) or returns.startswith("tuple[float, float")):
                found.add(f"{module(path).rpartition('.')[2]}.{name}")
    return found


def test_whatever_gives_an_interval_is_tried_here() -> None:
    tried = {name.partition(",")[0] for name in CASES}
    found = statistical()
    assert len(found) > 60
    missing, gone = sorted(found - tried - set(ELSEWHERE)), sorted(set(ELSEWHERE) - found)
    assert not missing, f"add to CASES, or to ELSEWHERE with the reason: {missing}"
    assert not set(ELSEWHERE) & tried
    assert not gone, f"not there any more: {gone}"


def test_each_public_name_is_tried_or_said_why_not() -> None:
    tried = {name.partition(",")[0].partition(".")[2].partition(".")[0] for name in CASES}
    assert not set(tinybench.__all__) - tried - set(FACE), "add these to CASES; or to FACE, with the reason"
    assert not set(FACE) - set(tinybench.__all__)


def test_models_of_one_row_or_value_are_not_ranked_in_silence() -> None:
    with pytest.warns(UserWarning, match="m0, m1: a single value or row"):
        pareto.membership_probability(GRADED[0], SHARE)

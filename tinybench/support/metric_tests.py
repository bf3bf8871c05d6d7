"""A comparison of two results of one metric by a suitable test, or the reason why no test can compare them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinybench.accuracy import mcnemar, rows_right
from tinybench.comparison import compare
from tinybench.result import BenchmarkResult
from tinybench.support.basics.grouped_rows import check_same_groups
from tinybench.support.basics.result_text import is_interval
from tinybench.support.comparisons.verdict import least_of


def is_detected(value: Any) -> bool:
    """Return whether a result is above its meter's detection limit. Memory, energy or CPU time of 0 is below it."""
    if not isinstance(value, BenchmarkResult):
        return True
    nothing = value.metric_name in ("memory", "energy", "cpu_time") and value.median <= 0
    return value.metadata.get("seen") is not False and not nothing


def same_rows(a: BenchmarkResult, b: BenchmarkResult) -> bool:
    """Return whether both results record which rows were predicted correctly, for the same number of rows.

    Raise ValueError if they name different groups of rows.
    """
    check_same_groups([a.metadata, b.metadata])
    right = rows_right(a.metadata), rows_right(b.metadata)
    return right[0] is not None and right[1] is not None and len(right[0]) == len(right[1])


def untestable(a: BenchmarkResult, b: BenchmarkResult) -> str:
    """Return the reason why no test can compare two results of one metric, or an empty string if one can."""
    if same_rows(a, b):
        return ""
    if "total" in a.metadata:
        return "the two models did not answer the same rows; measure both on the same data"
    for result in (a, b):
        if not is_detected(result):
            said = result.metadata.get("caution") or f"below the meter's resolution, which is not 0 {result.unit}"
            return f"{result.metadata.get('model', 'one of the two')}: not seen, {said}"
    if a.measured != b.measured or a.unit != b.unit:
        return "an estimate cannot be compared with a measurement, nor results in different units; measure both alike"
    if min(a.count, b.count) < 2:
        return "one measurement shows no scatter; measure at least twice"
    return ""


def compare_pair(metric: str, names: tuple[str, str], a: BenchmarkResult, b: BenchmarkResult) -> dict[str, Any] | None:
    """Compare two results of one metric by the appropriate test. If no test is possible (`untestable`), return None.

    The keys of the result are ``metric``, ``model_a``, ``model_b``, ``unit``, ``ratio`` (a / b), ``difference`` (a − b,
    in ``unit``), ``p`` (uncorrected), ``cohens_d``, ``paired``, ``test``, and ``verdict`` (about a, relative to b). The
    bounds of the intervals have keys such as ``ratio_lower`` and ``difference_upper``. They are None if the comparison
    has no interval. Accuracies are compared row by row if both results record which rows are right (`same_rows`). If
    they name groups of rows, the test is by groups.
    """
    row: dict[str, Any] = {"metric": metric, "model_a": names[0], "model_b": names[1], "unit": a.unit}
    row |= dict.fromkeys(f"{what}{end}" for what in ("ratio", "difference") for end in ("", "_lower", "_upper"))
    if untestable(a, b):
        return None
    if same_rows(a, b):
        right, groups = (rows_right(a.metadata), rows_right(b.metadata)), a.metadata.get("group_of")
        found = mcnemar(np.ones(a.metadata["total"], bool), *right, groups)
        lower, upper = found.difference_ci
        verdict = "undecided" if found.p_value >= 0.05 else "higher" if found.difference > 0 else "lower"
        test = "McNemar" if groups is None else "sign flips of groups"
        row |= {"difference": found.difference, "difference_lower": lower, "difference_upper": upper}
        return row | {"p": found.p_value, "cohens_d": None, "paired": True, "test": test, "verdict": verdict}
    same_input = a.metadata.get("input_shape") == b.metadata.get("input_shape")
    comparison = compare(a, b, names=names, allow=() if same_input else ("shape",))
    row |= {"ratio": comparison.ratio, "difference": comparison.difference}
    row |= {"p": comparison.p_value, "cohens_d": comparison.effect_size}
    for what, ends in (("ratio", comparison.ratio_ci), ("difference", comparison.difference_ci)):
        if is_interval(*ends):
            row[f"{what}_lower"], row[f"{what}_upper"] = ends
    test = "Welch" if not comparison.paired else "t test of batches" if "Student" in comparison.method else "sign test"
    if least := least_of(comparison):
        test += f" (p ≤ {comparison.p_value:.2g}, the least that {least} allow)"
    return row | {"paired": comparison.paired, "test": test, "verdict": comparison.verdict.partition(":")[0]}

"""Two results of one metric compared by the test that fits them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinybench.accuracy import difference_interval, mcnemar, rows_right
from tinybench.comparison import compare
from tinybench.pareto import seen
from tinybench.result import BenchmarkResult


def compare_pair(metric: str, names: tuple[str, str], a: BenchmarkResult, b: BenchmarkResult) -> dict[str, Any] | None:
    """Compare two results of one metric by the test that fits them; None where there is none.

    ``metric``, ``model_a``, ``model_b``; ``ratio`` (a / b) and ``difference`` (a − b, in ``unit``) with their
    ``_lower`` and ``_upper``; ``p`` (uncorrected), ``cohens_d``, ``paired``, ``test``, ``verdict`` (of a, seen from b).
    Accuracies whose `rows_right` are known are compared row by row; what was not `seen` is not compared.
    """
    row: dict[str, Any] = {"metric": metric, "model_a": names[0], "model_b": names[1], "unit": a.unit}
    row |= dict.fromkeys(f"{what}{end}" for what in ("ratio", "difference") for end in ("", "_lower", "_upper"))
    right = rows_right(a.metadata), rows_right(b.metadata)
    if right[0] is not None and right[1] is not None and len(right[0]) == len(right[1]):
        found = mcnemar(np.ones(len(right[0]), bool), *right)
        lower, upper = difference_interval(found.only_a, found.only_b, found.rows)
        verdict = "undecided" if found.p_value >= 0.05 else "higher" if found.difference > 0 else "lower"
        row |= {"difference": found.difference, "difference_lower": lower, "difference_upper": upper}
        return row | {"p": found.p_value, "cohens_d": None, "paired": True, "test": "McNemar", "verdict": verdict}
    if (
        "total" in a.metadata
        or not (seen(a) and seen(b))
        or a.measured != b.measured
        or a.unit != b.unit
        or min(a.count, b.count) < 2
    ):
        return None
    same_input = a.metadata.get("input_shape") == b.metadata.get("input_shape")
    comparison = compare(a, b, names=names, allow=() if same_input else ("shape",))
    row |= {"ratio": comparison.ratio, "ratio_lower": comparison.ratio_ci[0], "ratio_upper": comparison.ratio_ci[1]}
    row |= {"difference": comparison.difference, "p": comparison.p_value, "cohens_d": comparison.effect_size}
    row["difference_lower"], row["difference_upper"] = comparison.difference_ci
    test = "sign test" if comparison.paired else "Welch"
    return row | {"paired": comparison.paired, "test": test, "verdict": comparison.verdict.partition(":")[0]}

"""The columns of a table of comparisons: the numbers of a result, and how it differs from the first result."""

from __future__ import annotations

import math
from typing import Any

from tinybench.result import BenchmarkResult
from tinybench.support.metric_tests import compare_pair, is_detected, untestable

STATED = ("mean", "std", "ci_lower", "ci_upper", "count")
SPEEDUP = ("speedup", "speedup_lower", "speedup_upper")
COMPARED = ("ratio", "ratio_lower", "ratio_upper", "difference", "difference_lower", "difference_upper")


def stated(result: BenchmarkResult) -> dict[str, Any]:
    """Return the columns `STATED` of a result, and a ``note`` with its cautions. Unknown numbers are None."""
    numbers = result.to_dict()
    row = {key: numbers[key] for key in STATED}
    if not is_detected(result):
        row |= dict.fromkeys(STATED[:-1])
    return {**row, "note": "; ".join(result.cautions) or None}


def against_first(result: BenchmarkResult, first: BenchmarkResult) -> dict[str, Any]:
    """Compare a result with the first one. Return the columns `COMPARED` and ``p_value``.

    If no test is possible, return a ``note`` with the reason instead.
    """
    if reason := untestable(result, first):
        return {"note": reason}
    found = compare_pair(result.metric_name, ("this", "the first"), result, first) or {}
    known = {key: found[key] for key in COMPARED if found[key] is not None and math.isfinite(found[key])}
    return {**known, "p_value": found["p"]}

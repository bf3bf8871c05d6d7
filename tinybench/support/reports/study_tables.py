"""The tables of a study: one row for each measurement, for each result, or for each model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tinybench.result import BenchmarkResult
from tinybench.support.choices.ranked_values import central, interval, visible
from tinybench.support.reports.study_figures import Results


def run_rows(results: Results) -> list[dict[str, Any]]:
    """Return one row for each single measurement in results by metric and model.

    The columns are ``metric``, ``model``, ``run`` (from 0), ``value`` (unrounded, in ``unit``), ``unit``, ``measured``.
    """
    return [
        {"metric": m, "model": name, "run": run, "value": value, "unit": result.unit, "measured": result.measured}
        for m, by_model in results.items()
        for name, result in by_model.items()
        for run, value in enumerate(result.values)
    ]


def summary_rows(results: Results) -> list[dict[str, Any]]:
    """Return one row for each result.

    The columns are ``metric``, ``model``, ``unit``, ``measured``, ``count``, ``mean``, ``std``, ``median``,
    ``min_val``, ``max_val``; then ``value`` (from `central`) with ``lower`` and ``upper`` (from `interval`), and
    ``interval``, the kind of interval: ``"Wilson"``, ``"median"``, ``"range"`` for fewer than 6 measurements, or
    ``"none"`` if `interval` returns NaN, as for one measurement. An ``undetermined`` number, such as the deviation of
    one measurement, is None.
    """
    rows = []
    for metric, by_model in results.items():
        for name, result in by_model.items():
            lower, upper = interval(result)
            kind = "Wilson" if "total" in result.metadata else "median" if result.count >= 6 else "range"
            kind = "none" if math.isnan(upper) else kind
            row = {"metric": metric, "model": name, "unit": result.unit, "measured": result.measured}
            for key in ("count", "mean", "std", "median", "min_val", "max_val"):
                row[key] = None if key in result.undetermined else getattr(result, key)
            rows.append({**row, "value": central(result), "lower": lower, "upper": upper, "interval": kind})
    return rows


def dashboard_rows(results: Results) -> list[dict[str, Any]]:
    """Return one row for each model, in readable units, in the order in which the models appear.

    The columns are, in this order, ``model``, ``latency_ms`` (median), ``latency_p95_ms``, ``throughput_qps`` (median),
    ``accuracy``, ``memory_mb`` (10⁶ bytes, median), ``energy_mj`` (median; None if the unit is not joules) and
    ``energy_measured``. A value is None if there is no result, or if the result was not detected (see
    `metric_tests.is_detected`). The 95th percentile is also None for a single measurement.

    Parameters
    ----------
    results
        Results by metric and model, in SI units.
    """
    results = visible(results)

    def value(metric: str, model: str, factor: float = 1.0, q: float = 50, unit: str = "") -> float | None:
        result = results.get(metric, {}).get(model)
        if result is None or (unit and result.unit != unit) or (q != 50 and result.count == 1):
            return None
        return (central(result) if metric == "accuracy" else result.percentile(q)) / factor

    rows = []
    for model in dict.fromkeys(name for by_model in results.values() for name in by_model):
        energy = results.get("energy", {}).get(model)
        rows.append(
            {
                "model": model,
                "latency_ms": value("latency", model, 1e-3),
                "latency_p95_ms": value("latency", model, 1e-3, q=95),
                "throughput_qps": value("throughput", model),
                "accuracy": value("accuracy", model),
                "memory_mb": value("memory", model, 1e6),
                "energy_mj": value("energy", model, 1e-3, unit="J"),
                "energy_measured": energy.measured if energy and energy.unit == "J" else None,
            }
        )
    return rows


def verdicts_against(winner: str, metric: str, pairs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the verdict on each model that was compared with the winner of a metric, by the model's name.

    `pairs` are the rows of `comparison_rows`. The winner may be the first or the second model of a row.
    """
    return {
        row["model_b"] if row["model_a"] == winner else row["model_a"]: row["verdict"]
        for row in pairs
        if row["metric"] == metric and winner in (row["model_a"], row["model_b"])
    }


def best_row(winner: str, result: BenchmarkResult, tied: Sequence[str]) -> dict[str, Any]:
    """Return what `best_by_dimension` says of one metric: the winner, its value and interval, and the tied models."""
    lower, upper = interval(result)
    row = {"model": winner, "value": central(result), "lower": lower, "upper": upper}
    return row | {"unit": result.unit, "measured": result.measured, "tied": tied}

"""Tables of a study, of any results, and the parts of a measurement as one result."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tinybench import suite
from tinybench.pareto import DIRECTIONS
from tinybench.result import BenchmarkResult


def test_cells_are_safe_in_a_spreadsheet() -> None:
    text = suite.csv_text([{"model": "=HYPERLINK()", "value": -1.5, "none": None, "nan": float("nan")}])
    assert text == "model,value,none,nan\n'=HYPERLINK(),-1.5,,\n"
    assert suite.csv_text([]) == ""


values_of = st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=8)
by_models = st.dictionaries(st.text(min_size=1, max_size=4), values_of, min_size=1, max_size=4)


@given(st.dictionaries(st.sampled_from(sorted(DIRECTIONS)), by_models, min_size=1))
@settings(max_examples=20)
def test_tables_of_any_results(values: dict[str, dict[str, list[float]]]) -> None:
    results = {m: {name: BenchmarkResult(m, v) for name, v in by_model.items()} for m, by_model in values.items()}
    assert len(suite.run_rows(results)) == sum(len(v) for by_model in values.values() for v in by_model.values())
    best = suite.best_by_dimension(results)
    for metric, row in best.items():
        medians = {name: float(np.median(v)) for name, v in values[metric].items()}
        assert row["value"] == (max if DIRECTIONS[metric] == "max" else min)(medians.values())
        assert row["model"] not in row["tied"]
    for row in suite.comparison_rows(results):
        assert row["p"] <= row["p_corrected"] <= 1


def test_runs_are_rows_in_order_and_unrounded() -> None:
    latency = BenchmarkResult("latency", [0.3, 0.1, 0.123456789], unit="s")
    guess = BenchmarkResult("energy", [2.0], {"measured": False}, unit="J")
    rows = suite.run_rows({"latency": {"a": latency, "b": latency}, "energy": {"a": guess}})
    assert [row["value"] for row in rows] == [0.3, 0.1, 0.123456789] * 2 + [2.0]
    assert [row["run"] for row in rows] == [0, 1, 2, 0, 1, 2, 0]
    assert [(row["metric"], row["model"]) for row in rows[2:4]] == [("latency", "a"), ("latency", "b")]
    assert [(row["unit"], row["measured"]) for row in (rows[0], rows[6])] == [("s", True), ("J", False)]


def test_a_summary_says_which_interval_belongs_to_the_value() -> None:
    rng = np.random.default_rng(1)
    many, few = (rng.lognormal(0, 0.5, size).tolist() for size in (40, 5))
    results: dict[str, dict[str, BenchmarkResult]] = {
        "latency": {n: BenchmarkResult("latency", v, unit="s") for n, v in {"many": many, "few": few}.items()},
        "accuracy": {
            "counted": BenchmarkResult("accuracy", [0.8, 0.6], {"correct": 150, "total": 200}),
            "plain": BenchmarkResult("accuracy", [0.9, 0.8] * 4),
        },
        "energy": {"once": BenchmarkResult("energy", [0.5], {"measured": False}, unit="J")},
    }
    rows = {row["model"]: row for row in suite.summary_rows(results)}
    assert list(rows) == ["many", "few", "counted", "plain", "once"]
    assert [row["interval"] for row in rows.values()] == ["median", "range", "Wilson", "median", "none"]
    rank = int(stats.binom.ppf(0.025, 40, 0.5))
    ends = sorted(many)[rank - 1], sorted(many)[40 - rank]
    assert (rows["many"]["value"], rows["many"]["lower"], rows["many"]["upper"]) == (np.median(many), *ends)
    assert (rows["few"]["lower"], rows["few"]["upper"]) == (min(few), max(few))
    assert rows["few"]["std"] == pytest.approx(np.std(few, ddof=1))
    wilson = stats.binomtest(150, 200).proportion_ci(method="wilson")
    counted = rows["counted"]
    assert [counted[key] for key in ("value", "lower", "upper")] == pytest.approx([0.75, wilson.low, wilson.high])
    assert rows["once"]["std"] is None
    assert math.isnan(rows["once"]["lower"])
    assert math.isnan(rows["once"]["upper"])
    assert rows["once"]["measured"] is False


def part(values: list[float], pairing: str, **more: Any) -> BenchmarkResult:
    notes = {"pairing": pairing, "round_orders": [[pairing]] * len(values), "seed": 7, **more}
    return BenchmarkResult("latency", values, notes, unit="s", confidence=0.9)


def test_parts_become_one_result() -> None:
    first = part([2.0, 1.0], "a", system={"cpu": "x", "load": 0.1})
    merged = suite.merge_results([first, part([3.0], "b", system={"cpu": "x", "load": 0.7}, seed=8)])
    assert merged.values == [2.0, 1.0, 3.0]
    assert (merged.metric_name, merged.unit, merged.confidence) == ("latency", "s", 0.9)
    assert merged.metadata["round_orders"] == [["a"], ["a"], ["b"]]
    assert merged.metadata["seed"] == 7
    assert first.metadata["pairing"] == "a", "the parts stay as they are"
    assert first.metadata["round_orders"] == [["a"], ["a"]]
    plain = suite.merge_results([BenchmarkResult("accuracy", [0.5], {"total": 4})] * 2)
    assert plain.metadata == {"total": 4}


def test_models_that_are_merged_from_the_same_rounds_still_pair() -> None:
    def pairing(marks: str, value: float = 1.0) -> str:
        return str(suite.merge_results([part([value], mark) for mark in marks]).metadata["pairing"])

    assert pairing("abc") == pairing("abc", 2.0)
    assert len({pairing("abc"), pairing("bac"), pairing("abd"), pairing("a"), "a"}) == 5


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [part([1.0], "a", system={"cpu": cpu}) for cpu in "xxy"],
        [BenchmarkResult(metric, [1.0], unit="s") for metric in ("latency", "cpu_time")],
        [BenchmarkResult("latency", [1.0], unit=unit) for unit in ("s", "ms")],
    ],
    ids=["none", "two processors", "two metrics", "two units"],
)
def test_parts_that_do_not_belong_together_are_refused(parts: list[BenchmarkResult]) -> None:
    with pytest.raises(ValueError, match="parts"):
        suite.merge_results(parts)

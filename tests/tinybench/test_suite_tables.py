"""Tables of a study, of any results."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

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

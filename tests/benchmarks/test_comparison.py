"""The comparison of the tools runs, and its results have their structure; times are not judged here."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.benchmarks.comparison import LIVE, busy_cores, main, summarise
from tests.benchmarks.peers import PEERS, true_ratio
from tests.benchmarks.subjects import CALLS, ITERATIONS, work


def test_the_work_has_exact_proportions() -> None:
    assert [true_ratio(name) for name in CALLS] == [1.0, 1.0, 1.02, 1.05]
    assert work(3) == work(1, work(2))
    assert all(call() == work(ITERATIONS[name]) for name, call in CALLS.items())


def test_summary_counts_and_errors() -> None:
    shared = {"tool": "tinybench, 1 s", "condition": "quiet", "wall": 1.0}
    records = [
        {
            **shared,
            "subject": subject,
            "ratio": true_ratio(subject) * math.exp(error),
            "flagged": flag,
            "interval": [0.99, 1.03],
        }
        for subject, error, flag in (("A again", 0.03, True), ("A + 2 %", -0.03, True), ("A + 5 %", 0.03, False))
    ]
    (row,) = summarise(records)
    assert math.isclose(row["rms"], 0.03)
    assert [row["flagged"][s]["count"] for s in ("A again", "A + 2 %", "A + 5 %")] == [1, 1, 0]
    assert (row["coverage"]["count"], row["coverage"]["of"]) == (2, 3)
    low, high = row["flagged"]["A again"]["interval"]
    assert 0 < low < high <= 1


def test_busy_processes_end() -> None:
    with busy_cores(1):
        pass
    with pytest.raises(KeyError), busy_cores(1):
        raise KeyError


@pytest.mark.slow
def test_quick_run_writes_table_figure_and_records(tmp_path: Path) -> None:
    main(["--quick", "--repetitions", "1", "--busy", "1", "--out", str(tmp_path)])
    document = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    rows = {(row["condition"], row["tool"]): row for row in document["summary"]}
    expected = {*PEERS, "tinybench, 0.2 s", LIVE}
    assert set(rows) == {(condition, tool) for condition in ("quiet", "under load") for tool in expected}
    for (_, tool), row in rows.items():
        assert set(row["flagged"]) == {"A again", "A + 2 %", "A + 5 %"}
        assert (tool == LIVE) or row["rms"] > 0
    assert (tmp_path / "comparison.png").stat().st_size > 10_000
    assert (tmp_path / "comparison.svg").read_text(encoding="utf-8").count("<svg") == 1
    table = (tmp_path / "comparison.md").read_text(encoding="utf-8")
    assert all(tool in table for tool in expected)

"""The benchmark of grading runs, and its simulation agrees with what can be counted by hand."""

from __future__ import annotations

import json

import pytest

from tests.benchmarks import grading


def test_simulation_by_hand() -> None:
    assert grading.simulate([1.0], 0.0, 10, 1) == pytest.approx(10)
    assert grading.simulate([1.0], 0.0, 10, 4) == pytest.approx(3)
    assert grading.simulate([1.0], 0.5, 10, 10) == pytest.approx(1 + 10 * 0.5), "the writer is the bottleneck"
    assert grading.simulate([1.0], 0.25, 2, 1) == pytest.approx(2.25)


@pytest.mark.needs("sandbox")
@pytest.mark.slow
def test_a_small_class(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(grading, "OUT", tmp_path)
    assert grading.main(["04_accuracy", "--students", "2", "--stock", "1"]) == 0
    [row] = json.loads((grading.OUT / "grading.json").read_text(encoding="utf-8"))
    assert len(row["seconds"]) == 2
    assert row["ours_s"] == pytest.approx(sum(row["ours_total_s"]) / 2 / 2)
    assert 0 < min(row["seconds"]) <= max(row["seconds"]) < row["ours_total_s"][0]
    assert min(row["stock_start_s"], row["sandbox_s"], *row["dask_s"].values()) > 0
    assert "| 04_accuracy |" in capsys.readouterr().out

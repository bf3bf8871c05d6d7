"""The benchmark of the referee counts rightly and runs; how well the referee repeats is not judged here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.referee import agreement, main, table


def test_pairs_are_counted_in_both_directions() -> None:
    wide, narrow, far = (1.0, 0.5, 2.0), (1.1, 1.05, 1.15), (3.0, 2.9, 3.1)
    assert agreement([wide, narrow]) == (1, 2)  # the wide interval holds 1.1, the narrow one does not hold 1.0
    assert agreement([wide, wide, wide]) == (6, 6)
    assert agreement([wide, narrow, far]) == (1, 6)


def test_intervals_that_say_what_they_mean_agree_as_often() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0, 1, 400)
    for factor, low, high in ((1.96 * 2**0.5, 0.93, 0.97), (1.0, 0.4, 0.6)):  # two draws differ by √2 deviations
        ratios = [np.exp([v, v - factor, v + factor]) for v in values]
        agree, pairs = agreement(ratios)
        assert low < agree / pairs < high


def test_a_row_for_each_entry_and_measure() -> None:
    found = {"x": {"latency": [(1.0, 0.5, 2.0), (1.1, 0.5, 2.0)]}}
    assert table(found) == [
        {"entry": "x", "measure": "latency", "smallest": 1.0, "largest": 1.1, "width": 4.0, "agree": 2, "pairs": 2}
    ]


def test_one_measurement_is_no_repeat(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--repeats", "1"])
    assert "at least 2" in capsys.readouterr().err


@pytest.mark.needs("sandbox")
@pytest.mark.slow
def test_a_quick_run_measures_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "referee.json"
    assert main(["--quick", "--repeats", "2", "--output", str(output)]) == 0
    assert "pairs agree" in capsys.readouterr().out
    ratios = json.loads(output.read_text(encoding="utf-8"))["ratios"]
    assert set(ratios) == {"INT8", "32 hidden units"}
    for measures in ratios.values():
        for each in ("latency", "memory"):
            assert len(measures[each]) == 2
            assert all(0 < lower <= value <= upper for value, lower, upper in measures[each])
    assert ratios["32 hidden units"]["latency"][0] != ratios["32 hidden units"]["latency"][1]

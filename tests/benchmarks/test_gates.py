"""The benchmark of the gates counts rightly and runs; how often a gate is right is not judged here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import gates
from tests.benchmarks.gate_subjects import long_10, model_short_6
from tests.benchmarks.gates import CASES, RUN, main, markdown, summarise, wrong_verdict


def records(name: str, **verdicts: int) -> list[dict[str, Any]]:
    return [{"case": name, "verdict": v.replace("_", " "), "wall": 9.0} for v, n in verdicts.items() for _ in range(n)]


def test_what_is_wrong() -> None:
    assert [wrong_verdict(percent) for percent in (0, 2, 6, 10)] == ["fails", "fails", "passes", "passes"]


def test_a_row_counts_its_verdicts() -> None:
    [row] = summarise(records(f"{RUN} short 10 %", fails=18, passes=1, cannot_tell=1))
    assert (row["trials"], row["wrong"], row["true slowdown"]) == ("20", "1", "10 %")
    assert row["fails"] == "90 % (70–97)"
    assert row["wall time, median (longest)"] == "9 s (9 s)"


def test_the_page_says_how_many_were_wrong() -> None:
    one, other = records(f"{RUN} short 0 %", passes=97, fails=1), records(f"{RUN} short 2 %", passes=1, fails=1)
    page = markdown(
        [{"machine": "here", "command": "a", "records": one}, {"machine": "there", "command": "b", "records": other}]
    )
    assert "`--run`: 2 of 100 verdicts wrong, 2 % (1–7)." in page
    assert "Command: `a`, here.\n\nCommand: `b`, there." in page


def test_subjects_are_in_exact_proportion() -> None:
    assert long_10.args[0] == 71_500  # type: ignore[attr-defined]
    assert model_short_6()(None) is not None
    with pytest.raises(ImportError):
        from tests.benchmarks.gate_subjects import middling_3  # noqa: F401
    assert len({case.name for case in CASES}) == len(CASES)


def test_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "CASES", [case for case in CASES if case.subject == "command"])
    main(["--trials", "1", "--seconds", "2", "--out", str(tmp_path)])
    assert "| command, 35 ms | 0 % | 1 |" in capsys.readouterr().out
    again = tmp_path / "again"
    main(["--trials", "0", "--add", str(tmp_path / "gates.json"), "--out", str(again)])
    assert "| command, 35 ms | 0 % | 1 |" in capsys.readouterr().out

"""The simulation of coverage runs and judges as it says; what is true stands on its page."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks import coverage
from tests.benchmarks.coverage import Cell, simulate
from tests.benchmarks.intervals import INTERVALS, KINDS, Found, Interval


def test_a_quick_run_has_every_interval(capsys: pytest.CaptureFixture[str]) -> None:
    assert coverage.main(["--quick", "--only", "t", "median", "p90", "paired ratio", "wilson", "loss", "stopping"]) in (
        0,
        1,
    )
    printed = capsys.readouterr().out
    assert "| t | 10 | 95.0% |" in printed
    assert "| median | 5 | – | takes 6 | takes 6 |" in printed
    assert "| median | 10 | 97.9% |" in printed
    assert "| stopping rule, AR(1) 0.6, a coin for the order |" in printed


def always(low: float, high: float, said: str = "") -> Interval:
    return Interval(lambda values: Found(low, high, said), 0.0, trials=400)


@pytest.mark.parametrize(
    ("interval", "verdict", "status"),
    [(always(-1, 1), "holds", 0), (always(1, 2, "too narrow"), "says so", 0), (always(1, 2), "FAILS", 1)],
)
def test_the_verdict(
    interval: Interval, verdict: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = simulate(interval, KINDS["normal"], 10, 400, np.random.default_rng(1))
    assert cell.verdict == verdict
    monkeypatch.setitem(INTERVALS, "t", interval)
    assert coverage.main(["--quick", "--only", "t"]) == status
    assert ("FAILS" in capsys.readouterr().out) == bool(status)


def test_what_misses_without_a_word_decides() -> None:
    """An interval that covers 80 % says so if it is silent on at most 7 % of all results that miss."""
    assert Cell(0.95, held=0.80, said=0.6, silent=0.06, trials=10**6).verdict == "says so"
    assert Cell(0.95, held=0.80, said=0.6, silent=0.08, trials=10**6).verdict == "FAILS"
    assert Cell(0.95, held=0.931, said=0.0, silent=0.069, trials=10**6).verdict == "holds"


@pytest.mark.parametrize("kind", KINDS)
def test_the_truth_of_each_kind(kind: str) -> None:
    values = KINDS[kind].draw(np.random.default_rng(2), 2000, 100)
    assert np.median(values) == pytest.approx(KINDS[kind].median, abs=0.02)
    assert np.percentile(values, 90) == pytest.approx(KINDS[kind].p90, rel=0.02)
    assert values.mean() == pytest.approx(KINDS[kind].mean, abs=0.1)


def test_autoregressive_values_go_with_the_one_before() -> None:
    values = KINDS["AR(1) 0.6"].draw(np.random.default_rng(3), 2000, 50)
    assert np.mean(values[:, 1:] * values[:, :-1]) == pytest.approx(0.6, abs=0.02)
    assert np.var(values) == pytest.approx(1, abs=0.03)

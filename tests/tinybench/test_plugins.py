"""Scenarios and detectors of another package: found by entry points, used by name, refused with a reason."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from tests.tinybench.servers import double, served
from tinybench.load import LoadResult
from tinybench.shell.cli import main
from tinybench.tools.drifting import Reference
from tinybench.tools.drifting.detectors import DETECTORS, make_detector
from tinybench.tools.serving.drift_monitor import Drift
from tinybench.tools.serving.load_scenarios import SCENARIOS, times_due

EXTRA = '''
import numpy as np

def each_second(rate, seconds, seed):
    """All requests of a second at its beginning."""
    return np.repeat(np.arange(int(seconds)), int(rate)).astype(float)

def backwards(rate, seconds, seed):
    return np.array([2.0, 1.0])

def never(rate, seconds, seed):
    return np.array([])

class FirstRow:
    """An alarm as soon as a first number is above 100."""

    def __init__(self, reference, level):
        self.evidence, self.alarms, self.features = {"first": 1.0}, {"first": False}, {}

    def compare(self, batch):
        self.alarms["first"] |= bool((batch.rows[:, 0] > 100).any())
        return self.alarms["first"]
'''
POINTS = """[tinybench.scenarios]
each_second = extra_bench:each_second
backwards = extra_bench:backwards
never = extra_bench:never
broken = extra_bench:nothing

[tinybench.detectors]
first-row = extra_bench:FirstRow
"""


@pytest.fixture
def extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package, installed."""
    (tmp_path / "extra_bench.py").write_text(EXTRA)
    about = tmp_path / "extra_bench-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: extra-bench\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("extra")
def test_a_scenario_of_another_package_is_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert np.array_equal(times_due("each_second", 2, 3, 0), [0, 0, 1, 1, 2, 2])
    rows = tmp_path / "rows.csv"
    with served(double(tmp_path / "double.onnx")) as server:
        code = main(
            ["load", server.url, "--scenario", "each_second", "--rate", "300", "--seconds", "2",
             "--save", str(rows)]
        )  # fmt: skip
    assert code in (0, 3)  # 3: this machine was late
    assert "open loop, each_second" in capsys.readouterr().out
    due = LoadResult.load(rows).intended
    assert dict(zip(*np.unique(due, return_counts=True), strict=True)) == {0.0: 300, 1.0: 300}


@pytest.mark.usefixtures("extra")
@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        (
            "wind",
            f"there is no scenario 'wind'; choose from {', '.join(SCENARIOS)}, backwards, broken, each_second, never",
        ),
        ("broken", r"'broken' \(extra_bench:nothing\) cannot be loaded: AttributeError"),
        ("backwards", "--scenario backwards: .*sorted"),
        ("never", "--scenario never"),
    ],
)
def test_a_scenario_that_cannot_be_sent_is_refused(scenario: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        times_due(scenario, 100, 10, 0)


@pytest.mark.usefixtures("extra")
def test_a_detector_of_another_package_watches_the_server() -> None:
    reference = Reference.of(np.random.default_rng(0).normal(size=(200, 3)))
    with pytest.raises(ValueError, match=f"there is no detector 'none'; choose from {', '.join(DETECTORS)}, first-row"):
        make_detector("none", reference, 0.01)
    drift = Drift(reference, "first-row")
    try:
        for first in (0.0, 101.0):
            drift.note(np.array([[first, 0, 0]]), b'{"outputs": [1]}')
            while drift.noted or drift.looking:
                drift.tick()
                time.sleep(0.01)
            assert drift.found.alarm == {"first": first > 100}
        assert set(drift.found.psi) == {"inputs"}
        assert "tinybench_drift_alarm" in {family.name for family in drift.collect()}
    finally:
        drift.close()


def test_an_unknown_detector_is_refused_before_the_server_serves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "reference.npz", X=np.random.default_rng(0).normal(size=(200, 4)))
    model = double(tmp_path / "double.onnx")
    assert (
        main(["serve", str(model), "--port", "0", "--reference", str(tmp_path / "reference.npz"), "--detector", "x"])
        == 3
    )
    assert "there is no detector 'x'; choose from" in capsys.readouterr().err

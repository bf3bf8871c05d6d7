"""No tick for a solution that looks at no more of a series than the asserts of its check show."""

from __future__ import annotations

import pytest

from autograder.course.notebook import course_notebooks
from tests.course.perfect_student import ROOT
from tests.mutants.overfit import survivors_of

MODULES = [path.stem for path in course_notebooks(ROOT)]
ROWS = "its input goes to a model or a stage, which the check counts the calls of"
FIXED = "its input has as many parts as there are rules, steps, layers or instances"
SAME = "what it returns is the same for the beginning of the input"
LEFT = {
    "measure_latencies": ROWS, "measure_accuracy": ROWS, "measure_memory": ROWS,
    "measure_energy": ROWS, "cpu_utilisation": ROWS, "open_loop": ROWS, "until_decided": ROWS,
    "model_size": FIXED, "prune_weights": FIXED, "prune_units": FIXED,
    "Journal.record": FIXED, "instances_needed": FIXED, "types_that_ran": FIXED,
    "DriftAlarm.update": FIXED, "membership_probability": FIXED, "replicate": FIXED,
    "check_parity": SAME, "distillation_loss": SAME,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_a_proof_takes_a_longer_series_than_the_asserts(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    ticked = [piece for piece in survivors_of(module) if piece not in LEFT]
    assert not ticked, "lengthen the series in the proof of `passed`, or say in LEFT why it has to be short"

"""The parts of `scaling` and `precision` at a small scale: what would be wrong on any machine, however busy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import precision, precision_models, scaling, scaling_laws
from tests.benchmarks.report import run_parts


def test_too_narrow_intervals_miss_the_goal() -> None:
    cells = [{"way": "ours", "numbers": "1, 2, 3", "rounds": 6, "noise": "1 %", "law": (0.1, 0.0), "held": [0.95] * 3}]
    found = {"trials": 250, "usl": cells, "shares": [], "recovered": []}
    assert all(scaling_laws.goals(found).values())
    cells[0]["held"] = [0.95, 0.95, 0.85]
    assert not any(scaling_laws.goals(found).values())


def test_a_bootstrap_of_few_rounds_is_narrower_than_ours() -> None:
    made = scaling_laws.seconds_of(
        lambda n: scaling_laws.usl(n, 0.1, 0.02), (1, 2, 4, 8), 6, scaling_laws.NOISES[1], np.random.default_rng(1)
    )
    wide, narrow = scaling_laws.ours(made, 0), scaling_laws.of_resampled_rounds(made, 0)
    assert narrow[1][1] - narrow[1][0] < wide[1][1] - wide[1][0]
    low, middle, high = scaling_laws.recovered((0.1, 0.02), 50)[1]
    assert low < middle < high
    assert middle == pytest.approx(0.02, rel=0.2)


def test_the_pages_are_made_of_what_was_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept.json"
    for name, module, part in (("scaling", scaling, "machine"), ("precision", precision, "models")):
        again = ["--only", part, "--short", "--output", str(kept)]
        assert run_parts(name, "title", module.INTRO, module.PARTS, "doc", again) == 0
        told = capsys.readouterr().out
        assert "MISSED" not in told
        assert "| 4-bit weights |" in told if name == "precision" else "| threads, model |" in told
        kept.unlink()


def test_a_form_without_a_row_misses_the_goal() -> None:
    row = {"form": "FP32", "reason": None, "types": {"float": 1.0}, "ratio": 1.0, "size": 1, "agreement": 1.0}
    rows = [{**row, "form": form} for form in precision_models.FORMS]
    assert all(precision_models.goals({"studies": [{"rows": rows}]}).values())
    assert not all(precision_models.goals({"studies": [{"rows": rows[1:]}]}).values())
    rows[2]["agreement"] = 0.9
    assert not all(precision_models.goals({"studies": [{"rows": rows}]}).values())

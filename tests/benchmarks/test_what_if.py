"""The benchmark of `what_if`: what it draws, its page, and its short form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks import what_if, what_if_pipelines
from tests.benchmarks.what_if_pipelines import FAMILIES, HOLDING, KINDS, Known, draw


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pipeline_is_drawn_by_its_seed_and_runs(family: str) -> None:
    first, again, other = draw(family, 0), draw(family, 0), draw(family, 1)
    assert (first.told, list(first.stages), first.name) == (again.told, list(again.stages), again.name)
    assert (first.told, list(first.stages), first.name) != (other.told, list(other.stages), other.name)
    faster = first.faster(5)
    for name, stage in first.stages.items():
        share = 5 if name == first.name else 1
        assert isinstance(got := faster[name], Known)
        assert got.amount == pytest.approx(stage.amount / share, abs=1)
    first.run(faster)


def test_families_are_what_their_names_say() -> None:
    for seed in range(8):
        shared = [stage.kind in HOLDING for stage in draw("threads that share the interpreter", seed).stages.values()]
        assert sum(shared) >= 2
        assert sum(stage.kind in HOLDING for stage in draw("threads", seed).stages.values()) <= 1
        assert not any(stage.kind in HOLDING for stage in draw("a lock", seed).stages.values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_stage_hands_on_what_it_is_given(kind: str) -> None:
    assert Known(kind, 10)("item") == "item"
    assert Known(kind, 10).faster(2).amount == 5


def trial(family: str, foreseen: float, truth: float, why: str = "") -> what_if.Tried:
    return what_if.Tried(family, 0, "stages", 2.0, foreseen, 0.5, truth, 0.002, 0.0, "repeats", 6, why)


def test_the_page_counts_refusals_as_not_answered() -> None:
    trials = [trial(family, 0.3, 0.28) for family in FAMILIES for _ in range(9)]
    trials += [trial("a lock", 0.3, 0.3, "runs scatter"), *(trial(family, 0.3, 0.2) for family in FAMILIES[:2])]
    rows = {row["pipelines"]: row for row in what_if.summary(trials)}
    assert (rows["a lock"]["answered"], rows["a lock"]["trials"], rows["a lock"]["of all %"]) == ("9", "10", "90")
    assert (rows["threads"]["worst off"], rows["threads"]["median off"]) == ("10.0", "2.0")
    assert rows["threads"]["promise, worst off"] == "30.0"
    page = what_if.report(trials, "command", quiet=True)
    assert "36 of 39 trials" in page
    assert "goal of 90 % is met" in page
    assert page.count("| runs scatter |") == 1
    assert "NOT met" in what_if.report([*trials, *trials[-3:] * 2], "command", quiet=False)


def test_the_short_form_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = tmp_path / "trials.jsonl"
    monkeypatch.setattr(what_if, "FAMILIES", FAMILIES[:1])
    monkeypatch.setattr(what_if_pipelines, "ITEMS", 1)
    first = what_if.measure(1, 0.01, quiet=False, keep=keep)
    assert len(first) == len(what_if.SPEEDUPS) == len(keep.read_text().splitlines())
    assert all(each.method == "repeats" and each.unsure >= 0 for each in first)
    assert json.loads(keep.read_text().splitlines()[0])["quiet"] is False
    monkeypatch.setattr(what_if, "tried", None)  # nothing is tried again
    assert what_if.measure(1, 0.01, quiet=False, keep=keep) == first

"""The benchmark of rollouts: its page and its arithmetic on trials that are known, and one real trial of each kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks import rollout

TRIES = 3  # a trial is right in 19 of 20, at least: all three are wrong in 1 of 8,000, if it is as bad as that


def made_up(kind: str, number: int, right: bool = True) -> rollout.Trial:
    """Return a trial as the benchmark keeps it."""
    status, stage = rollout.RIGHT[kind] if right else ("rolled back", 3)
    trial: rollout.Trial = {
        "kind": kind,
        "number": number,
        "load": 1.0,
        "status": status,
        "stage": stage,
        "why": "slow",
    }
    trial |= {"users": 1000, "exposed": 50, "met": 40, "seconds": 2.0, "problems": 1, "watched_by": "Prometheus"}
    return trial | {"right": right, "all_seconds": 6.0}


def test_the_page_counts_what_was_right_and_names_the_rest() -> None:
    found = [made_up(kind, number) for kind in rollout.FAULTS for number in range(40)]
    assert all(rollout.goals(found).values())
    for number in range(2):
        found[number] = made_up("equal", number, right=False)
    assert all(rollout.goals(found).values()), "38 of 40 are 95 %"
    found[2] = made_up("equal", 2, right=False) | {"status": "failed", "why": "OSError: none"}
    page = rollout.report(found, "command", "was nothing")
    assert "| equal | promoted at 100 % | 37 of 40 (80 to 98 %) | 2.0 (2.0 to 2.0) |" in page
    assert "- MISSED: equal: promoted at 100 % in ≥ 95% of 40 trials" in page
    assert "- met: drift: rolled back at 20 % in ≥ 95% of 40 trials" in page
    assert "- equal, trial 2: failed at 100 %, OSError: none" in page
    assert "4.0 % (4.0 % to 4.0 %)" in page
    assert not any(rollout.goals([]).values())


def test_intervals_of_shares_are_exact() -> None:
    assert rollout.interval(0, 40) == pytest.approx((0, 1 - 0.025 ** (1 / 40)))
    assert rollout.interval(40, 40) == pytest.approx((0.025 ** (1 / 40), 1))


def test_a_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def trial(kind: str, number: int, *_: object) -> rollout.Trial:
        asked.append((kind, number))
        return made_up(kind, number)

    monkeypatch.setattr(rollout, "one_trial", trial)
    keep = tmp_path / "kept" / "trials"
    rollout.measure(keep, range(1))
    keep.write_text("".join(keep.read_text().splitlines(keepends=True)[:3]))  # the rest was lost
    asked.clear()
    found = rollout.measure(keep, range(2))
    assert len(asked) == 7
    assert sorted((t["kind"], t["number"]) for t in found) == sorted((k, n) for k in rollout.FAULTS for n in range(2))
    assert [json.loads(line) for line in keep.read_text().splitlines()] == found


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(rollout.FAULTS))
def test_each_version_meets_its_fate(kind: str, tmp_path: Path) -> None:
    """Forty seconds, all five; one is watched by Prometheus, where it is installed, which takes 5 s to look at its list."""
    subject = rollout.subject(tmp_path)
    trials = []
    for number in range(TRIES):
        trials.append(rollout.one_trial(kind, number, *subject, None if kind == "equal" else False))
        if trials[-1]["right"]:
            return
    pytest.fail(f"none of {TRIES} ended as is right: {trials}")

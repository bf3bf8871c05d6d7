"""The evidence of a rollout: valid at every look, one-sided, and summed up over stages."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from tinybench.rollout.evidence import FALSE_ALARMS, METRICS, STAGES, Evidence, harm_e_value
from tinybench.rollout.plan import Plan
from tinybench.rollout.router import Router
from tinybench.rollout.tally import Tally


@pytest.mark.parametrize(("new", "both", "share"), [(0, 0, 0.05), (3, 5, 0.05), (0, 40, 0.5), (9, 90, 0.01)])
def test_harm_is_the_mean_likelihood_ratio_of_larger_shares(new: int, both: int, share: float) -> None:
    def ratio(q: float) -> float:
        return (q / share) ** new * ((1 - q) / (1 - share)) ** (both - new)

    peak = min(max(new / both, share), 0.999) if both else 0.5
    truth = quad(ratio, share, 1, points=[peak], limit=200)[0] / (1 - share)
    assert harm_e_value(new, both, share) == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2, 0.5])
def test_its_mean_is_one_without_harm_and_less_where_the_new_version_is_better(share: float) -> None:
    events = np.arange(61)
    values = [harm_e_value(int(k), 60, share) for k in events]
    assert binom.pmf(events, 60, share) @ values == pytest.approx(1, rel=1e-6)
    assert binom.pmf(events, 60, share / 2) @ values < 1


def ever_reached(share: float, level: float, longest: int) -> float:
    """Return the exact probability that the evidence reaches 1 / level at one of so many looks, without harm."""
    going, alarmed = np.ones(1), 0.0
    for n in range(1, longest + 1):
        going = np.append(going * (1 - share), 0) + np.append(0, going * share)
        over = np.array([harm_e_value(k, n, share) >= 1 / level for k in range(n + 1)])
        alarmed, going = alarmed + going[over].sum(), np.where(over, 0, going)
    return float(alarmed)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.5])
def test_looking_at_each_event_gives_no_more_false_alarms_than_said(share: float) -> None:
    assert 0 < ever_reached(share, 0.05, 150) <= 0.05


def test_a_whole_rollout_keeps_its_level_by_simulation() -> None:
    """All metrics at once, looked at after each event, in all stages; 4 % are allowed, of 300 rollouts at most 12."""
    rng, stopped = np.random.default_rng(0), 0
    for _ in range(300):
        evidence, most = Evidence(labels=3), 0.0
        for stage, share in enumerate((0.05, 0.2, 0.5)):
            for _ in range(12):
                for metric in METRICS:
                    kind = str(rng.integers(3)) if metric == "predictions" else ""
                    evidence.add(stage, metric, bool(rng.random() < share), share, kind)
                most = max(most, *evidence.e_values().values())
        stopped += most >= evidence.stop_at
    assert stopped <= FALSE_ALARMS * 300
    assert Evidence().stop_at == pytest.approx(150)


def test_what_begins_late_is_found() -> None:
    late = Evidence(["disagreements"])
    for stage in (0, 1, 2):
        for number in range(300):
            late.add(stage, "disagreements", stage == 2 and number % 10 == 0, 0.01)
        assert (late.e_values()["disagreements"] > late.stop_at) == (stage == 2)


def test_without_events_nothing_is_known_and_a_share_of_one_tells_nothing() -> None:
    evidence = Evidence(["failures"])
    assert evidence.e_values() == {"failures": 1.0}
    evidence.add(3, "failures", True, 1.0)
    evidence.add(0, "labels", True, 0.05)  # not watched
    assert evidence.e_values() == {"failures": 1.0}
    assert evidence.seen(3) == {}


def test_counts_survive_a_restart() -> None:
    evidence, other = Evidence(labels=2), Evidence(labels=2)
    for metric in METRICS:
        for number in range(8):
            evidence.add(number % STAGES, metric, number % 3 == 0, 0.2, str(number % 2) * (metric == "predictions"))
    other.take(evidence.to_rows())
    assert other.e_values() == evidence.e_values()
    assert other.seen(1)["slow"] == (0, 2)


class Sides:
    """A router after its traffic: a second of pairs, 100 of them, with latencies made up."""

    def __init__(self, old: np.ndarray, new: np.ndarray) -> None:
        self.due, self.next, self.now = np.linspace(0, 1, len(old), endpoint=False), len(old), 10.0
        self.sides = tuple(self._side(latencies) for latencies in (old, new))

    def _side(self, latencies: np.ndarray) -> Any:
        ok = ~np.isnan(latencies)
        ends = np.where(ok, self.due + latencies, math.nan)
        labels = np.zeros(len(latencies))
        return SimpleNamespace(submitted=self.due, finished=ends, ok=ok, labels=labels, timeout=2.0)

    def clock(self) -> float:
        return self.now


def tallied(old: Any, new: Any, **plan: Any) -> Tally:
    """Return what is counted of 100 mirrored requests of users of the old version."""
    latencies = [np.broadcast_to(np.asarray(each, dtype=float), 100) for each in (old, new)]
    router = cast("Router", Sides(*latencies))
    tally = Tally(router, Plan(**plan), Evidence(), np.arange(100), np.zeros(100, int), np.zeros(1))
    tally.mirrored[:] = True
    tally.take()
    return tally


@pytest.mark.parametrize(("new", "slower"), [(0.003, 0), (0.012, 0), (0.025, 1), (math.nan, 1)])
def test_a_version_is_slow_by_its_pairs(new: float, slower: int) -> None:
    tally = tallied(0.003, new)
    blocks = tally.stage_blocks[0]
    assert blocks >= 8
    assert tally.evidence.seen(0).get("slow", (0, 0)) == (slower * blocks, slower * blocks)


def test_a_machine_that_stalls_accuses_neither() -> None:
    noise = np.random.default_rng(0).exponential(0.1, 100)
    assert "slow" not in tallied(0.003 + noise, 0.003 + noise).evidence.seen(0)
    assert tallied(0.025, 0.003).evidence.seen(0)["slow"][0] == 0, "the old version is the slow one"


def test_disagreements_failures_and_labels_are_counted() -> None:
    tally = tallied(0.003, 0.003, label_delay=0.0)
    assert tally.evidence.seen(0)["disagreements"] == (0, 100)
    assert (tally.right, tally.wrong, tally.stage_pairs[0], len(tally.seen)) == (100, 0, 100, 100)
    assert len(tallied(0.003, 0.003, label_delay=60.0).labels_waiting) == 100, "late labels are not taken as right"
    silent = tallied(math.nan, 0.003)
    assert not silent.seen, "nobody has an answer yet"


def test_workers_that_died_count_once() -> None:
    tally = tallied(0.003, 0.003)
    tally.take_restarts(0, 0, 2)
    tally.take_restarts(0, 1, 2)
    tally.take_restarts(0, 0, 0)  # a reading that fell out
    assert tally.evidence.seen(0)["crashes"] == (2, 3)

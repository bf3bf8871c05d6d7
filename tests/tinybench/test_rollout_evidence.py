"""The evidence of a rollout: valid at every look, one-sided, and summed up over stages."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from tinybench.tools.rollout.e_values import FALSE_ALARMS, METRICS, STAGES, Evidence, harm_e_value
from tinybench.tools.rollout.plan import Plan
from tinybench.tools.rollout.router import Router
from tinybench.tools.rollout.tally import Tally


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
        evidence, most = Evidence(), 0.0
        for stage, share in enumerate((0.05, 0.2, 0.5)):
            for _ in range(12):
                for metric in METRICS:
                    evidence.add(stage, metric, bool(rng.random() < share), share)
                most = max(most, *evidence.e_values().values())
        stopped += most >= evidence.stop_at
    assert stopped <= FALSE_ALARMS * 300
    assert Evidence().stop_at == pytest.approx(125)


def test_what_begins_late_is_found() -> None:
    late = Evidence(["differs"])
    for stage in (0, 1, 2):
        for number in range(300):
            late.add(stage, "differs", stage == 2 and number % 10 == 0, 0.01)
        assert (late.e_values()["differs"] > late.stop_at) == (stage == 2)


def test_without_events_nothing_is_known_and_a_share_of_one_tells_nothing() -> None:
    evidence = Evidence(["failures"])
    assert evidence.e_values() == {"failures": 1.0}
    evidence.add(3, "failures", True, 1.0)
    evidence.add(0, "labels", True, 0.05)  # counted, and stops nothing
    assert evidence.e_values() == {"failures": 1.0}
    assert (evidence.seen(3), evidence.seen(0)) == ({"failures": (1, 1)}, {"labels": (1, 1)})


def test_counts_survive_a_restart() -> None:
    evidence, other = Evidence(), Evidence()
    for metric in METRICS:
        for number in range(8):
            evidence.add(number % STAGES, metric, number % 3 == 0, 0.2)
    earlier = [0, "predictions", "3", 4, 9, 0.05]  # of a journal that an earlier version wrote
    other.take([*evidence.to_rows(), earlier])
    assert other.e_values() == evidence.e_values()
    assert other.seen(1)["slow"] == (0, 2)


class Sides:
    """A router after its traffic: a second of pairs, with latencies and answers made up."""

    def __init__(self, old: np.ndarray, new: np.ndarray, answers: Any = (0.0, 0.0)) -> None:
        self.due, self.next, self.now = np.linspace(0, 1, len(old), endpoint=False), len(old), 10.0
        self.sides = tuple(self._side(*each) for each in zip((old, new), answers, strict=True))

    def _side(self, latencies: np.ndarray, answers: Any) -> Any:
        ok = ~np.isnan(latencies)
        ends = np.where(ok, self.due + latencies, math.nan)
        labels = np.broadcast_to(np.asarray(answers, float), len(latencies))
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


def test_differences_failures_and_labels_are_counted() -> None:
    tally = tallied(0.003, 0.003, label_delay=0.0)
    assert tally.evidence.seen(0)["differs"] == (0, 100)
    assert (tally.right, tally.wrong, tally.stage_pairs[0], len(tally.seen)) == (100, 0, 100, 100)
    late = tallied(0.003, 0.003, label_delay=60.0)
    assert len(late.labels_waiting) == 100, "late labels are not taken as right"
    assert late.stage_pairs[0] == 0, "a stage waits for the labels of its pairs"
    silent = tallied(math.nan, 0.003)
    assert not silent.seen, "nobody has an answer yet"


def test_workers_that_died_count_once() -> None:
    tally = tallied(0.003, 0.003)
    tally.take_restarts(0, 0, 2)
    tally.take_restarts(0, 1, 2)
    tally.take_restarts(0, 0, 0)  # a reading that fell out
    assert tally.evidence.seen(0)["crashes"] == (2, 3)


PAIRS = 400
TRUTH = np.arange(PAIRS) % 10
CLASSES = {  # how often the old version is wrong, and the new one
    "better": (0.2, 0.05),
    "as good, by other answers": (0.1, 0.1),
    "the same": (0.0, 0.0),
    "worse": (0.05, 0.2),
}


def compared(old: np.ndarray, new: np.ndarray, truth: np.ndarray | None, numbers: bool = False) -> Tally:
    """Return what is counted of mirrored pairs with these answers, each of a user of the new version."""
    quick = np.full(len(old), 0.003)
    router = cast("Router", Sides(quick, quick, (old, new)))
    watched = [name for name in METRICS if name != ("labels" if truth is None else "differs")]
    rows = np.arange(len(old))
    tally = Tally(router, Plan(label_delay=0.0), Evidence(watched), rows, rows, truth, numbers)
    tally.mirrored[:] = tally.is_new[:] = True
    tally.take()
    return tally


def wrong_by(chances: tuple[float, float], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.where(rng.random(PAIRS) < chance, (TRUTH + 1) % 10, TRUTH) for chance in chances]


def stopped_by(tally: Tally) -> str:
    """Return which metric stops it; nothing if none does."""
    found = tally.evidence.e_values()
    return next((name for name, value in found.items() if value >= tally.evidence.stop_at), "")


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("labelled", [True, False])
def test_labels_decide_and_without_labels_a_difference_is_only_a_difference(kind: str, labelled: bool) -> None:
    old, new = wrong_by(CLASSES[kind], 0)
    tally = compared(old, new, TRUTH if labelled else None)
    stops = {(True, "worse"): "labels", (False, "the same"): ""}
    assert stopped_by(tally) == stops.get((labelled, kind), "" if labelled else "differs")
    differing, worse = np.flatnonzero(old != new), np.flatnonzero((old == TRUTH) & (new != TRUTH))
    better = np.flatnonzero((old != TRUTH) & (new == TRUTH))
    assert tally.differing == set(differing)
    assert tally.harmed == (set(worse) if labelled else set()), "without labels nobody is known to be harmed"
    assert (tally.disagreed, tally.compared) == (len(differing), PAIRS)
    assert tally.evidence.seen(0)["differs"] == (len(differing), PAIRS), "reported, whether or not it stops"
    assert tally.evidence.seen(0).get("labels", (0, 0)) == (
        (len(worse), len(worse) + len(better)) if labelled else (0, 0)
    )


@pytest.mark.parametrize(("spread", "stops"), [((2.0, 1.0), ""), ((1.0, 1.0), ""), ((1.0, 2.0), "labels")])
def test_of_numbers_the_closer_one_is_better(spread: tuple[float, float], stops: str) -> None:
    rng = np.random.default_rng(1)
    old, new = (TRUTH + rng.normal(0, each, PAIRS) for each in spread)
    assert stopped_by(compared(old, new, TRUTH, numbers=True)) == stops
    assert stopped_by(compared(old, new, None, numbers=True)) == "differs"


def test_labels_take_an_equally_good_version_back_as_rarely_as_is_said() -> None:
    """Versions that are wrong equally often, by other answers; 4 % are allowed for all metrics together."""
    back = sum(stopped_by(compared(*wrong_by((0.2, 0.2), seed), TRUTH)) != "" for seed in range(200))
    assert back <= FALSE_ALARMS * 200

"""Queues agree with theory and with ciw, and plans near saturation are sure only of what their runs show."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import ciw
import numpy as np
import pytest
from scipy import stats

from tests.quick import within
from tinybench.load import instances_needed, md1, mg1, mm1, mmc, simulate_queue
from tinybench.support.basics.numbers import with_digits
from tinybench.support.traffic.queue_laws import kingman, littles_law, utilisation
from tinybench.support.traffic.queue_runs import cost_per_million, redrawn, rule_of_thumb, settled_after

Draw = Callable[[np.random.Generator, int], np.ndarray]
KINDS: dict[str, tuple[Draw, Callable[[float], float], int]] = {  # service times of mean 1, the theory, servers
    "M/M/1": (lambda rng, n: rng.exponential(1, n), lambda rate: mm1(rate, 1.0), 1),
    "M/D/1": (lambda rng, n: np.ones(n), lambda rate: md1(rate, 1.0), 1),
    "M/G/1": (lambda rng, n: rng.gamma(0.5, 2, n), lambda rate: mg1(rate, 1.0, 2.0), 1),
    "M/M/3": (lambda rng, n: rng.exponential(1, n), lambda rate: mmc(rate, 1.0, 3), 3),
}
FALSE_ALARM = 1e-5  # of each test of a mean


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rho", [0.3, 0.8])
def test_mean_waits_agree_with_theory(kind: str, rho: float) -> None:
    draw, theory, servers = KINDS[kind]
    rng, means, rate = np.random.default_rng(), [], rho * servers
    for _ in range(40):
        times = np.cumsum(rng.exponential(1 / rate, 12_000))
        means.append(simulate_queue(times, draw(rng, len(times)), servers)[2000:].mean())
    reach = stats.t.ppf(1 - FALSE_ALARM / 2, 39) * np.std(means, ddof=1) / math.sqrt(40)
    assert abs(np.mean(means) - theory(rate)) < reach < 0.35 * theory(rate)


@pytest.mark.parametrize("kind", KINDS)
def test_each_wait_agrees_with_ciw(kind: str) -> None:
    draw, _, servers = KINDS[kind]
    rng, number = np.random.default_rng(), 600
    gaps, work = rng.exponential(1 / (0.9 * servers), number), draw(rng, number)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential(gaps.tolist())],
        service_distributions=[ciw.dists.Sequential(work.tolist())],
        number_of_servers=[servers],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(number, method="Finish")
    finished = {record.id_number: record for record in simulation.get_all_records()}
    records = [finished[i] for i in itertools.takewhile(finished.__contains__, itertools.count(1))]  # some still served
    times = np.array([record.arrival_date for record in records])
    truth = [record.waiting_time for record in records]
    assert len(records) > 0.8 * number
    assert np.allclose(simulate_queue(times, work[: len(records)], servers), truth, rtol=0, atol=1e-9)


def test_a_million_requests_in_a_second() -> None:
    rng = np.random.default_rng(0)
    times, work = np.cumsum(rng.exponential(1, 10**6)), rng.exponential(0.9, 10**6)
    within(1, lambda: simulate_queue(times, work))


def test_several_servers_and_one_agree_and_idle_time_is_not_saved_up() -> None:
    assert simulate_queue([0, 1, 2, 6, 6.5], [2, 2, 1, 3, 1]).tolist() == [0, 1, 2, 0, 2.5]
    assert simulate_queue([0, 0, 1, 1.5], [3, 1, 1, 1], 2).tolist() == [0, 0, 0, 0.5]
    assert simulate_queue([5.0], [1.0]).tolist() == [0.0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: simulate_queue([1, 0], [1, 1]), "not sorted"),
        (lambda: simulate_queue([0, 1], [1]), "one for each arrival"),
        (lambda: simulate_queue([0, 1], [1, -1]), "finite times ≥ 0"),
        (lambda: simulate_queue([0, 1], [1, 1], 0), "servers is 0"),
        (lambda: mm1(120, 0.01), "grows by 20 a second"),
        (lambda: mmc(30, 0.1, 3), "utilisation is 1"),
        (lambda: kingman(10, 0.2, 1, 1), "utilisation is 2"),
        (lambda: mg1(-1, 0.2, 1), "rate is -1"),
        (lambda: instances_needed(10, [0.1], 0.05), "the service alone takes 0.1 s"),
    ],
)
def test_bad_input_is_named(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


def test_laws() -> None:
    assert littles_law(200, 0.05) == 10
    assert utilisation(200, 0.008, 2) == 0.8
    assert mmc(29_000, 0.01, 300) == pytest.approx(0.0004493598466425404, rel=1e-9)  # by exact fractions
    rng = np.random.default_rng()
    work = rng.exponential(1, 200_000)
    even = simulate_queue(np.arange(200_000) / 0.8, work).mean()
    assert even < kingman(0.8, 1, 0, 1)
    assert mm1(0.8, 1) < kingman(0.8, 1, 1, 1)
    assert cost_per_million(0.36, 100) == 1.0
    assert rule_of_thumb(200, 0.01) == 5


def test_instances_follow_the_bound_and_never_saturate() -> None:
    assert instances_needed(200, [0.01], 60.0)[:2] == (3, True)  # two would be busy all the time
    assert instances_needed(160, [0.01], 0.08)[:2] == (2, True)
    slow = [0.01] * 9 + [0.05]
    assert instances_needed(300, slow, 0.4).instances < instances_needed(300, slow, 0.06).instances


EXPONENTIAL = np.random.default_rng(8).permutation(-np.log((np.arange(50_000) + 0.5) / 50_000)) / 100


def test_a_plan_near_saturation_is_sure_only_of_what_its_runs_show() -> None:
    calm = instances_needed(80, EXPONENTIAL, 0.4)  # the true p99 is 0.23 s
    assert calm[:2] == (1, True)
    assert calm.low < math.log(100) / (100 - 80) < calm.high
    width = calm.high - calm.low
    assert str(calm) == f"1 ({with_digits(calm.low, width)} to {with_digits(calm.high, width)} s with 1)"
    near = instances_needed(99, EXPONENTIAL, 4.5, longest=2**17)  # true: 4.6 s
    assert near[:2] == (1, False)
    assert near.high == math.inf
    assert str(near).startswith("cannot tell between 1 and 2 (")
    assert str(near).endswith(" s or more with 1)")
    assert instances_needed(799, EXPONENTIAL, 0.08, longest=2**15)[:2] == (
        9,
        True,
    )  # eight are busy for 99.9 % of the time


def test_a_longer_run_decides() -> None:
    plans = [instances_needed(90, EXPONENTIAL, 0.65, longest=longest) for longest in (2**13, 2**19)]  # true: 0.46 s
    assert [plan[:2] for plan in plans] == [(1, False), (1, True)]


def test_services_are_drawn_in_blocks_that_begin_anywhere() -> None:
    series = np.arange(400.0)
    work = redrawn(series, 1001, 3)
    assert len(work) == 1001
    assert np.mean(np.diff(work) % 400 == 1) > 0.94  # blocks of 20
    assert len(set(work[::20])) > 30
    assert np.array_equal(work, redrawn(series, 1001, 3))
    assert not np.array_equal(work, redrawn(series, 1001, 4))
    assert redrawn(np.array([2.0]), 3, None).tolist() == [2, 2, 2]


def test_a_run_is_longer_near_saturation_and_where_slow_ones_come_together() -> None:
    rng = np.random.default_rng(1)
    work = rng.exponential(1, 10_000)
    assert settled_after(0.9, work) == pytest.approx(10_000, rel=0.2)
    assert settled_after(0.99, work) == pytest.approx(1_000_000, rel=0.2)
    assert settled_after(0.9, np.ones(10)) == pytest.approx(5000)
    assert settled_after(0.9, np.sort(work)) > 10 * settled_after(0.9, work)
    assert settled_after(1.0, work) == math.inf


def test_gaps_between_replay_and_reality_are_explained() -> None:
    from tinybench.course.lessons.m14_figures import explain_gaps

    row = {"rho": 0.8, "service": 0.002, "own_service": 0.002, "real": 0.004, "replay": 0.0039, "own": 0.004}
    assert explain_gaps([row]) == "Within 10 % at ρ = 0.8."
    assert "10.0% longer" in explain_gaps([row | {"replay": 0.002, "own_service": 0.0022}])
    assert "+1.00 ms a request" in explain_gaps([row | {"replay": 0.003, "own": 0.003}])

"""Queues agree with theory and with ciw, simulated batches with the batcher, and nothing given to a batcher is lost."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Callable
from typing import Any

import ciw
import numpy as np
import pytest
from scipy import stats

from tests.quick import within
from tinybench.load import (
    Batcher,
    batch_sweep,
    best_setting,
    instances_needed,
    kingman,
    littles_law,
    md1,
    mg1,
    mm1,
    mmc,
    open_loop,
    rehearse,
    simulate_batches,
    simulate_queue,
    throughput,
    utilisation,
)
from tinybench.support.basics.numbers import with_digits
from tinybench.support.traffic.batching import in_virtual_time
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
        (lambda: simulate_batches([1, 0], lambda size: 1.0, 2, 0), "not sorted"),
        (lambda: simulate_batches([0, 1], lambda size: 1.0, 0, 0), "max_batch is 0"),
        (lambda: best_setting([0, 1], lambda size: 1.0, 0.5), "no pair keeps p99"),
        (lambda: instances_needed(10, [0.1], 0.05), "the service alone takes 0.1 s"),
        (lambda: Batcher(print, 0), "max_batch is 0"),
        (lambda: Batcher(print, 2.5), "a whole number"),
        (lambda: Batcher(print, 2, -1), "max_wait is -1"),
        (lambda: Batcher(print, 2, math.nan), "max_wait is nan"),
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


@pytest.mark.parametrize("max_batch", [1, 3, 16])
@pytest.mark.parametrize("max_wait", [0.0, 0.4, 5.0])
def test_the_batcher_does_what_the_simulation_says(max_batch: int, max_wait: float) -> None:
    rng = np.random.default_rng()
    times = np.cumsum(rng.exponential(rng.choice([0.03, 0.3, 3]), 300))
    simulated, sizes = simulate_batches(times, lambda size: 0.2 + 0.01 * size, max_batch, max_wait)
    rehearsed, real_sizes = rehearse(times, lambda size: 0.2 + 0.01 * size, max_batch, max_wait)
    assert sizes == real_sizes
    assert np.allclose(simulated, rehearsed, rtol=0, atol=1e-6)


def test_nothing_is_lost_when_somebody_comes_as_a_batch_closes() -> None:
    for wait in (1, 2, 5):
        latencies, sizes = rehearse([float(k) for k in range(100)], lambda size: 0.25, 100, float(wait))
        assert sum(sizes) == 100
        assert latencies.max() <= wait + 0.5


def test_a_rehearsal_runs_where_a_loop_runs() -> None:
    async def in_a_notebook() -> list[int]:
        return rehearse([0.0, 0.1, 9.0], lambda size: 0.5, 4, 1.0)[1]

    assert asyncio.run(in_a_notebook()) == [2, 1]


def test_who_waits_for_ever_is_told() -> None:
    class Forgets(Batcher):
        async def gather(self) -> list[Any]:
            return [await self.queue.get(), await self.queue.get()][:1]

    async def forgotten() -> None:
        async with Forgets(doubled) as batcher:
            await asyncio.gather(*(batcher.submit(i) for i in range(4)))

    with pytest.raises(RuntimeError, match="never answered"):
        in_virtual_time(forgotten())

    async def spins() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="no time passes"):
        in_virtual_time(spins())


def test_the_best_setting_is_the_least_work_that_keeps_the_bound() -> None:
    times = np.cumsum(np.random.default_rng(3).exponential(0.01, 400))

    def seconds(size: int) -> float:
        return 0.02 + 0.001 * size

    pairs = list(itertools.product((1, 4, 16), (0.0, 0.02, 0.1)))
    tried = {pair: simulate_batches(times, seconds, *pair) for pair in pairs}
    work = {pair: sum(map(seconds, sizes)) for pair, (_, sizes) in tried.items()}
    kept = [pair for pair in pairs if np.quantile(tried[pair][0], 0.99) <= 0.1]
    assert 0 < len(kept) < len(pairs)
    assert best_setting(times, seconds, 0.1, (1, 4, 16), (0.0, 0.02, 0.1)) == min(kept, key=lambda pair: work[pair])


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


def test_a_sweep_counts_rows() -> None:
    sweep = batch_sweep(lambda rows: rows.sum(), np.ones((3, 2)), (1, 4), measurement_runs=5)
    assert list(sweep) == [1, 4]
    assert throughput(sweep)[4] == pytest.approx(4 / sweep[4].median)


async def doubled(items: list[Any]) -> list[Any]:
    await asyncio.sleep(0)
    return [2 * item for item in items]


def test_ten_thousand_are_answered_once_each() -> None:
    seen: list[int] = []

    async def run(items: list[int]) -> list[int]:
        seen.extend(items)
        assert len(items) <= 32
        return await doubled(items)

    async def main() -> list[int]:
        async with Batcher(run, 32, 0.001, workers=3, max_queue=10_000) as batcher:
            return await asyncio.gather(*(batcher.submit(i) for i in range(10_000)))

    assert asyncio.run(main()) == [2 * i for i in range(10_000)]
    assert sorted(seen) == list(range(10_000))


def test_an_error_goes_to_its_batch_alone() -> None:
    async def run(items: list[int]) -> list[int]:
        if 3 in items:
            raise KeyError("no such row")
        return items[:-1] if 9 in items else items

    async def main() -> list[Any]:
        async with Batcher(run, 2, 0.0) as batcher:
            return await asyncio.gather(*(batcher.submit(i) for i in (1, 2, 3, 4, 5, 6, 8, 9)), return_exceptions=True)

    one, two, three, four, five, six, eight, nine = asyncio.run(main())
    assert (one, two, five, six) == (1, 2, 5, 6)
    assert isinstance(three, KeyError)
    assert isinstance(four, KeyError)
    assert "1 answer to 2 inputs" in str(eight)
    assert "1 answer to 2 inputs" in str(nine)


def test_full_queues_refuse_and_the_end_drains() -> None:
    async def main() -> tuple[list[Any], int]:
        may, refused = asyncio.Event(), 0

        async def run(items: list[int]) -> list[int]:
            await may.wait()
            return items

        async with Batcher(run, 1, 0.0, max_queue=3) as batcher:
            waiting = []
            for i in range(8):
                waiting.append(asyncio.create_task(batcher.submit(i)))
                for _ in range(10):
                    await asyncio.sleep(0)
            asyncio.get_running_loop().call_later(0.01, may.set)
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        refused = sum(isinstance(answer, asyncio.QueueFull) for answer in answers)
        with pytest.raises(RuntimeError, match="not running"):
            await batcher.submit(1)
        return [answer for answer in answers if isinstance(answer, int)], refused

    answers, refused = asyncio.run(main())
    assert refused == 4
    assert answers == [0, 1, 2, 3]


def test_who_leaves_is_not_computed_and_harms_nobody() -> None:
    async def main() -> tuple[list[int], list[int]]:
        computed: list[int] = []

        async def run(items: list[int]) -> list[int]:
            computed.extend(items)
            return await doubled(items)

        async with Batcher(run, 4, 0.01) as batcher:
            tasks = [asyncio.create_task(batcher.submit(i)) for i in range(3)]
            await asyncio.sleep(0)
            tasks[1].cancel()
            return [await tasks[0], await tasks[2]], computed

    assert asyncio.run(main()) == ([0, 4], [0, 2])


def test_a_cancelled_run_cancels_its_batch_and_the_next_is_served() -> None:
    async def main() -> tuple[bool, int]:
        async def run(items: list[int]) -> list[int]:
            if items == [1]:
                raise asyncio.CancelledError
            return items

        async with Batcher(run, 1, 0.0) as batcher:
            first = asyncio.create_task(batcher.submit(1))
            await asyncio.wait([first])
            return first.cancelled(), await batcher.submit(2)

    assert asyncio.run(main()) == (True, 2)


def test_whoever_breaks_off_the_end_leaves_nobody_waiting() -> None:
    async def main() -> tuple[bool, bool]:
        async def run(items: list[int]) -> list[int]:
            await asyncio.sleep(1000)
            return items

        waiting: list[asyncio.Task[Any]] = []

        async def serve() -> None:
            async with Batcher(run, 1, 0.0) as batcher:
                waiting.extend(asyncio.create_task(batcher.submit(i)) for i in range(3))
                await asyncio.sleep(0)

        serving = asyncio.create_task(serve())
        await asyncio.sleep(1)
        serving.cancel()
        await asyncio.wait([serving, *waiting])
        return serving.cancelled(), all(task.cancelled() for task in waiting)

    assert in_virtual_time(main()) == (True, True)


def test_a_broken_gather_is_told_to_those_who_wait() -> None:
    class Broken(Batcher):
        async def gather(self) -> list[Any]:
            raise NotImplementedError("write Batcher.gather")

    async def main() -> None:
        async with Broken(doubled) as batcher:
            await batcher.submit(1)

    with pytest.raises(NotImplementedError, match=r"write Batcher\.gather"):
        asyncio.run(main())


def test_workers_compute_at_the_same_time() -> None:
    async def main() -> float:
        async def run(items: list[int]) -> list[int]:
            await asyncio.sleep(1)
            return items

        async with Batcher(run, 1, 0.0, workers=4) as batcher:
            await asyncio.gather(*(batcher.submit(i) for i in range(8)))
        return asyncio.get_running_loop().time()

    assert in_virtual_time(main()) == pytest.approx(2)


def test_an_open_loop_can_ask_a_batcher() -> None:
    from tinybench.course.lessons.m14_queues import BatcherPool, services_in_line

    with BatcherPool(lambda: Batcher(doubled, 8, 0.001)) as pool:
        result = open_loop(lambda i: pool.answer(i), np.zeros(50), pool=pool)
    assert result.ok.all()
    assert (services_in_line(result) >= 0).all()


def test_gaps_between_replay_and_reality_are_explained() -> None:
    from tinybench.course.lessons.m14_figures import explain_gaps

    row = {"rho": 0.8, "service": 0.002, "own_service": 0.002, "real": 0.004, "replay": 0.0039, "own": 0.004}
    assert explain_gaps([row]) == "Within 10 % at ρ = 0.8."
    assert "10.0% longer" in explain_gaps([row | {"replay": 0.002, "own_service": 0.0022}])
    assert "+1.00 ms a request" in explain_gaps([row | {"replay": 0.003, "own": 0.003}])

"""Simulated batches agree with the batcher, nothing given to it is lost, and `serve` does without it."""

from __future__ import annotations

import asyncio
import itertools
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tinybench.servers import double
from tinybench.course.lessons.m14_servers import Desk
from tinybench.load import open_loop
from tinybench.scenarios import Batcher, best_setting, rehearse, simulate_batches
from tinybench.shell.cli import WRONG, main
from tinybench.support.scenarios.mlperf import multi_stream, offline, single_stream
from tinybench.support.scenarios.sweeps import batch_sweep, throughput
from tinybench.support.traffic.batching import in_virtual_time
from tinybench.tools.serving import server


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: simulate_batches([1, 0], lambda size: 1.0, 2, 0), "not sorted"),
        (lambda: simulate_batches([0, 1], lambda size: 1.0, 0, 0), "max_batch is 0"),
        (lambda: best_setting([0, 1], lambda size: 1.0, 0.5), "no pair keeps p99"),
        (lambda: Batcher(print, 0), "max_batch is 0"),
        (lambda: Batcher(print, 2.5), "a whole number"),
        (lambda: Batcher(print, 2, -1), "max_wait is -1"),
        (lambda: Batcher(print, 2, math.nan), "max_wait is nan"),
    ],
)
def test_bad_input_is_named(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


def test_the_scenarios_say_which_percentile_counts() -> None:
    desk = Desk(0.001)
    single, eight = single_stream(desk, 0.1), multi_stream(desk, 0.1)
    assert (single.metadata["q"], eight.metadata["q"]) == (90, 99)
    assert eight.latencies.min() >= 0.008
    assert offline(lambda samples: [desk(i) for i in samples], 20) <= 1000


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


def test_a_server_without_the_optional_module_answers_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[server.Settings] = []

    async def serve(settings: server.Settings) -> int:
        seen.append(settings)
        return 0

    monkeypatch.setattr(server, "serve", serve)
    model = str(double(tmp_path / "double.onnx"))
    assert main(["serve", model]) == 0
    monkeypatch.setitem(sys.modules, "tinybench.scenarios", None)
    assert main(["serve", model]) == 0
    assert main(["serve", model, "--max-batch", "1", "--max-wait", "1ms"]) == 0
    assert [settings.max_batch for settings in seen] == [8, 1, 1]
    assert main(["serve", model, "--max-batch", "4"]) == WRONG
    assert "--max-batch: only with the Batcher" in capsys.readouterr().err

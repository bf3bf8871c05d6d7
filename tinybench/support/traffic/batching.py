"""The base class of `tinybench.scenarios.Batcher`: a queue with workers. A virtual clock simulates it at once."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tinybench.support.basics.arguments import check_positive
from tinybench.support.basics.numbers import number_of

T = TypeVar("T")
Run = Callable[[list[Any]], Awaitable[Sequence[Any]]]


class Waiting(NamedTuple):
    """A request in the queue of a `Batcher`: its input, its arrival time on the event loop, and the answer's future."""

    item: Any
    arrived: float
    answer: asyncio.Future[Any]


def settle(answers: Iterable[asyncio.Future[Any]], error: BaseException) -> None:
    """Set `error` on all unfinished futures. If `error` is not an `Exception`, like CancelledError, cancel them."""
    for answer in list(answers):
        if answer.done():
            continue
        if isinstance(error, Exception):
            answer.set_exception(error)
        else:
            answer.cancel()


class Batching:
    """A queue of requests. Workers take batches of requests from the queue, run them, and return the answers."""

    def __init__(
        self, run: Run, max_batch: int = 8, max_wait: float = 0.002, *, workers: int = 1, max_queue: int = 1000
    ) -> None:
        for name, number in (("max_batch", max_batch), ("workers", workers), ("max_queue", max_queue)):
            check_positive(**{name: number})
            if number != int(number):
                raise ValueError(f"{name} is {number}; give a whole number")
        if not (math.isfinite(max_wait) and max_wait >= 0):
            raise ValueError(f"max_wait is {max_wait}; give seconds, 0 or more")
        self.run, self.max_batch, self.max_wait, self.workers = run, max_batch, max_wait, workers
        self.queue: asyncio.Queue[Waiting] = asyncio.Queue(max_queue)
        self.open, self.tasks, self.gathering = set[asyncio.Future[Any]](), list[asyncio.Task[None]](), asyncio.Lock()

    async def gather(self) -> list[Waiting]:
        """Return the next batch. The subclass `Batcher` implements this method."""
        raise NotImplementedError("write Batcher.gather")

    async def submit(self, item: Any) -> Any:
        """Return the answer to one input. Raise QueueFull if the queue is full, or the error that `run` raised."""
        ended = [task for task in self.tasks if task.done()]
        if ended and not ended[0].cancelled():
            ended[0].result()  # raises what gather raised
        if ended or not self.tasks:
            raise RuntimeError("the batcher is not running: submit within 'async with Batcher(...) as batcher'")
        loop = asyncio.get_running_loop()
        waiting = Waiting(item, loop.time(), loop.create_future())
        self.queue.put_nowait(waiting)
        self.open.add(waiting.answer)
        waiting.answer.add_done_callback(self.open.discard)
        return await waiting.answer

    async def __aenter__(self) -> Any:
        self.tasks = [asyncio.create_task(self._work()) for _ in range(self.workers)]
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks, self.tasks = self.tasks, []  # from now on, `submit` raises RuntimeError
        try:
            if self.open:
                await asyncio.wait(self.open)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self) -> None:
        try:
            while True:
                async with self.gathering:  # two workers at once would split one batch
                    batch = await self.gather()
                await self._answer([waiting for waiting in batch if not waiting.answer.done()])  # skip cancelled ones
        except BaseException as error:  # gather failed, or the batcher is closing: no request may wait for ever
            settle(self.open, error)
            raise

    async def _answer(self, batch: list[Waiting]) -> None:
        if not batch:
            return
        try:
            answers = await self.run([waiting.item for waiting in batch])
            if len(answers) != len(batch):
                raise ValueError(
                    f"run gave {number_of(len(answers), 'answer')} to "
                    f"{number_of(len(batch), 'input')}; it must give one each"
                )
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
                raise
            settle([waiting.answer for waiting in batch], error)
        else:
            for waiting, answer in zip(batch, answers, strict=True):
                if not waiting.answer.done():
                    waiting.answer.set_result(answer)


class _Jumping(selectors.SelectSelector):
    """A selector for an event loop that moves a virtual clock forward instead of waiting."""

    now, idle = 0.0, 0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("all wait, and nothing is left that could happen: something taken was never answered")
        self.idle = 0 if timeout else self.idle + 1
        if self.idle > 100_000:
            raise RuntimeError("a loop asks again and again and never waits, so no time passes")
        self.now += 0.0 if ready else timeout or 0.0
        return ready


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jumping = _Jumping()
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now


def in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a virtual clock, which starts at 0 and jumps to the next timer. Return the result."""

    def run() -> T:
        with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
            return runner.run(main)

    return aside(run)


def aside(call: Callable[[], T]) -> T:
    """Call a function outside of any event loop, and return the result. In a notebook, use a new thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


async def rehearsal(
    batcher: Callable[[Run], Batching], times: np.ndarray, batch_seconds: Callable[[int], float]
) -> tuple[np.ndarray, list[int]]:
    """Simulate a batcher whose requests arrive at `times`. Return the latency of each request and the batch sizes."""
    loop, latencies, sizes = asyncio.get_running_loop(), np.full(len(times), math.nan), list[int]()

    async def run(items: list[Any]) -> list[Any]:
        sizes.append(len(items))
        await asyncio.sleep(batch_seconds(len(items)))
        return items

    async def request(to: Batching, i: int) -> None:
        await to.submit(i)
        latencies[i] = loop.time() - begin - times[i]

    begin = loop.time()
    async with batcher(run) as open_batcher:
        tasks = []
        for i, at in enumerate(times.tolist()):
            if at > loop.time() - begin:
                await asyncio.sleep(at - (loop.time() - begin))
            tasks.append(asyncio.create_task(request(open_batcher, i)))
        await asyncio.gather(*tasks)
    return latencies, sizes

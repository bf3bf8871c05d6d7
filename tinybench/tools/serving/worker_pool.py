"""A pool of worker processes that assigns batches to idle workers, retries failed batches and restarts dead workers."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tinybench.tools.serving.model_worker import LENGTH, Answer, Facts, error_body, packed, unpacked_answers

KILLED_WORKERS = 500, error_body("two workers died of this request; it is not tried again")
LONGEST_PAUSE = 5.0  # maximum seconds between two attempts to start a worker


class WorkerDied(Exception):
    """The error raised when a worker process ends before it has answered."""


@dataclass(slots=True, eq=False)
class Job:
    """A request for the workers, with its answer.

    `started` is the time at which a worker received the request, and `batch` is the number of requests in the same
    batch. If `dropped` is True, nobody waits for the answer any more.
    """

    rows: Any = None
    started: float = 0.0
    batch: int = 0
    dropped: bool = False
    answer: Answer = KILLED_WORKERS


class Worker(asyncio.SubprocessProtocol):
    """The front process's connection to one worker process."""

    def __init__(self, pool: Pool) -> None:
        self.pool, self.received, self.alive, self.introduced = pool, bytearray(), True, False
        self.transport: Any = None
        self.pipe: Any = None
        self.ready: asyncio.Future[Facts] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.answers: asyncio.Future[list[Answer]] | None = None
        self.since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport of the new worker and the pipe to the worker's standard input."""
        self.transport = transport
        self.pipe = self.transport.get_pipe_transport(0)

    def send(self, jobs: Sequence[Job]) -> asyncio.Future[list[Answer]]:
        """Send jobs, whose rows must all have the same shape. Return a future for the answers, in the same order."""
        data = jobs[0].rows.tobytes() if len(jobs) == 1 else b"".join([job.rows.tobytes() for job in jobs])
        self.answers, self.since = asyncio.get_running_loop().create_future(), time.perf_counter()
        self.pipe.write(packed([len(job.rows) for job in jobs], jobs[0].rows.shape[1:], data))
        return self.answers

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Collect bytes and handle each complete frame: the first describes the model, later frames hold answers."""
        self.received += data
        if len(self.received) < LENGTH.size:
            return
        end = LENGTH.size + LENGTH.unpack_from(self.received)[0]
        if len(self.received) < end:
            return
        frame, self.received = bytes(self.received[LENGTH.size : end]), self.received[end:]
        if not self.introduced:
            self._introduce(json.loads(frame))
        elif self.answers is not None:
            seconds, answers = unpacked_answers(frame)
            future, self.answers = self.answers, None
            self.pool.served(self, len(answers), seconds)
            if not future.done():
                future.set_result(answers)

    def _introduce(self, said: dict[str, Any]) -> None:
        if self.ready.done():  # the start has failed or was cancelled
            return
        if "error" in said:
            self.ready.set_exception(ValueError(said["error"]))
        else:
            dtype, row, alone = said["facts"]
            self.introduced = True
            self.ready.set_result(Facts(dtype, tuple(row), alone))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Kill a worker that closed a pipe, unless the pool is closing."""
        if not self.pool.closing:
            self.kill()

    def process_exited(self) -> None:
        """Fail the worker's pending requests, and mark the worker as ended."""
        self.kill()
        if not self.ended.done():
            self.ended.set_result(None)

    def kill(self) -> None:
        """Kill the worker process, fail its pending requests, and report the loss to the pool."""
        if not self.alive:
            return
        self.alive = False
        with suppress(ProcessLookupError):
            self.transport.kill()
        if not self.ready.done():
            self.ready.set_exception(WorkerDied("a worker died while it loaded the model"))
        if self.answers is not None and not self.answers.done():
            self.answers.set_exception(WorkerDied())
        self.pool.lost(self)


class Pool:
    """A fixed number of workers that run the same model.

    Batches wait for an idle worker in order of arrival. If a worker dies, the requests that the worker held are
    retried one by one. A request that kills a second worker is answered with 500; the other requests are not affected.
    """

    def __init__(
        self,
        model: str,
        count: int,
        threads: int,
        stall: tuple[float, float] | None = None,
        longest: float = 10.0,
        fault: str = "",
    ) -> None:
        self.fault = fault
        self.model, self.count, self.threads, self.stall, self.longest = model, count, threads, stall, longest
        self.workers: set[Worker] = set()
        self.idle: deque[Worker] = deque()
        self.waiting: deque[asyncio.Future[Worker]] = deque()
        self.restarting: set[asyncio.Task[None]] = set()
        self.restarts, self.per_job, self.origin, self.closing = 0, 0.0, 0.0, False
        self.on_batch: Callable[[int, float], None] = lambda size, seconds: None

    async def start(self) -> Facts:
        """Start all workers and describe the model's input. If the model does not load, raise ValueError."""
        found = await asyncio.gather(*(self._start_one() for _ in range(self.count)))
        self.origin = time.perf_counter()
        return found[0]

    async def _start_one(self) -> Facts:
        module, *fault = ["faults", self.fault] if self.fault else ["model_worker"]
        name = f"tinybench.tools.serving.{module}"
        command = [sys.executable, "-P", "-m", name, self.model, str(self.threads), *fault]
        # the worker imports what this process would: no files of the current folder, and no other tinybench
        path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
        environment = {**os.environ, "PYTHONPATH": path}
        _, worker = await asyncio.get_running_loop().subprocess_exec(
            lambda: Worker(self), *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, env=environment
        )
        self.workers.add(worker)
        facts = await worker.ready
        self._release(worker)
        return facts

    async def run(self, jobs: Sequence[Job]) -> list[Answer]:
        """Run a batch of jobs and return their answers. Jobs with `dropped` set are not sent to a worker."""
        alike: dict[tuple[int, ...], list[Job]] = {}
        for job in jobs:
            if not job.dropped:
                alike.setdefault(job.rows.shape[1:], []).append(job)
        for batch in alike.values():
            try:
                await self._try(batch)
            except WorkerDied:
                for job in batch:
                    job.started = 0.0
                for job in batch:
                    with suppress(WorkerDied):
                        if not job.dropped:
                            await self._try([job])
        return [job.answer for job in jobs]

    async def _try(self, batch: Sequence[Job]) -> None:
        if self.closing:
            raise WorkerDied
        worker = await self._turn()
        if self.stall:
            try:
                await self._stalled(self.stall)
            except BaseException:
                self._release(worker)
                raise
        while not worker.alive:  # the worker died before it received the batch
            worker = await self._turn()
        answers = worker.send(batch)
        for job in batch:
            job.started, job.batch = worker.since, len(batch)
        for job, answer in zip(batch, await answers, strict=True):
            job.answer = answer

    async def _turn(self) -> Worker:
        """Return an idle worker. If every worker is busy, wait for one. Callers are served in order of arrival."""
        if self.idle:
            return self.idle.popleft()
        turn: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):
                    self.waiting.remove(turn)
            else:  # a worker was assigned at the same moment
                self._release(turn.result())
            raise

    async def _stalled(self, stall: tuple[float, float]) -> None:
        """If a simulated stall is in progress, wait until it ends. `stall` holds the length and period of stalls."""
        length, period = stall
        since = (time.perf_counter() - self.origin) % period
        if since >= period - length:
            await asyncio.sleep(period - since)

    def _release(self, worker: Worker) -> None:
        """Give a worker to the batch that has waited longest. If no batch is waiting, mark the worker as idle."""
        if not worker.alive:
            return
        while self.waiting:
            turn = self.waiting.popleft()
            if not turn.done():
                turn.set_result(worker)
                return
        self.idle.append(worker)

    def served(self, worker: Worker, size: int, seconds: float) -> None:
        """Record that a worker has answered a batch, and release the worker."""
        each = (time.perf_counter() - worker.since) / size
        self.per_job = 0.95 * self.per_job + 0.05 * each if self.per_job else each
        self.on_batch(size, seconds)
        self._release(worker)

    def lost(self, worker: Worker) -> None:
        """Remove a dead worker. If it had loaded the model and the pool is not closing, start a replacement."""
        self.workers.discard(worker)
        with suppress(ValueError):
            self.idle.remove(worker)
        if worker.introduced and not self.closing:
            task = asyncio.get_running_loop().create_task(self._restart())
            self.restarting.add(task)
            task.add_done_callback(self.restarting.discard)

    async def _restart(self) -> None:
        self.restarts += 1
        pause = 0.1
        while not self.closing:
            try:
                await self._start_one()
                return
            except (WorkerDied, ValueError, OSError) as error:
                print(f"tinybench: a worker does not start again: {error}", file=sys.stderr)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def kill_stuck(self) -> None:
        """Kill each worker whose batch has been running for longer than the timeout of a request."""
        now = time.perf_counter()
        for worker in list(self.workers):
            if worker.answers is not None and now - worker.since > self.longest:
                worker.kill()

    def wait_seconds(self, queue: int) -> float:
        """Estimate how many seconds `queue` waiting requests and one more take at the recent rate."""
        return (queue + 1) * self.per_job / self.count

    async def stop(self) -> None:
        """Stop all workers, and kill those that do not exit within 2 s."""
        self.closing = True
        for task in list(self.restarting):
            task.cancel()
        workers = list(self.workers)
        for worker in workers:
            worker.pipe.close()
        for turn in self.waiting:
            if not turn.done():
                turn.set_exception(WorkerDied())
        if workers:
            await asyncio.wait([worker.ended for worker in workers], timeout=2)
        for worker in workers:
            worker.kill()
            worker.transport.close()

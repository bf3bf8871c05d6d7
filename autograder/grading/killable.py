"""Subprocesses for work on untrusted bytes, with limits on time, memory and the size of the result.

A process that takes too long is killed, and a process that dies is replaced. The task on which it was working is tried
once more, this time alone, with no other task running.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, TimeoutError, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from pebble import ProcessExpired, ProcessPool

from autograder import time_limits
from autograder.sandbox.guest import linux
from tinybench.support.conditions.cores import usable_cores

R = TypeVar("R")
Task = tuple[str, tuple[Any, ...]]
MEMORY = 2 * 2**30  # bytes that a task may take in addition to the memory of the process at its start
OUTPUT = 256 * 2**20


class TooMuch(Exception):
    """A task exceeded its limit of time, memory or output. The message is for the author of the submission."""


class Died(Exception):
    """The process that worked on a task died twice, for an unknown reason."""


def each(
    function: Callable[..., R],
    tasks: Iterable[Task],
    *,
    seconds: float,
    workers: int = 1,
    memory: int = MEMORY,
    output: int = OUTPUT,
) -> Iterator[tuple[str, R | Exception]]:
    """Call `function` in subprocesses, once for each task. Yield the key of each task with its result or error.

    A task consists of a key and the arguments for `function`. The function is defined at the top level of a module, and
    its arguments and result can be pickled. A task may take at most `seconds` on a typical idle machine, and at most
    `memory` additional bytes. If `memory` is 0, the function sets its own limit. The pickled result of a task may take
    at most `output` bytes.
    """
    limits, again = (memory, output), list[Task]()
    waiting = deque(tasks)
    while waiting:  # each pass starts a new pool, because the last one broke
        left = len(waiting)
        again += yield from _in_pool(function, waiting, workers, seconds, limits)
        if len(waiting) == left:
            raise OSError("no process for grading can be started; is this machine out of memory or of processes?")
    for task in again:  # a first failure proves nothing: the machine may have slept, run out of memory, or been busy
        for key, _ in (yield from _in_pool(function, deque([task]), 1, seconds, limits, last=True)):
            yield key, Died("the process that worked on it died twice")


def useful_workers(tasks: int, start: int) -> int:
    """Return the number of workers worth starting for `tasks` tasks.

    Starting a worker takes as long as `start` tasks.
    """
    return min(usable_cores(), 1 + tasks // start)


def run(function: Callable[..., R], *args: Any, seconds: float, memory: int = MEMORY, output: int = OUTPUT) -> R:
    """Call `function` in a subprocess, and return its result or raise its error.

    The subprocess is kept for later calls.
    """
    for last in (False, True):
        if not _kept().active:
            _kept.cache_clear()
        try:
            future = _kept().schedule(_call, (function, args, memory, output), timeout=time_limits.wall(seconds))
            return pickle.loads(future.result())  # type: ignore[no-any-return]
        except TimeoutError:
            if last:
                raise _too_slow(seconds) from None
        except (ProcessExpired, BrokenProcessPool):
            continue
    raise Died("the process that worked on it died twice")


@contextmanager
def limited_memory(more: int) -> Iterator[None]:
    """Limit this process to its current memory plus `more` bytes. Larger allocations raise `MemoryError`."""
    if sys.platform != "linux" or not more:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = _own_memory() + more
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _own_memory() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")), 2**30)


def _in_pool(
    function: Callable[..., Any],
    waiting: deque[Task],
    workers: int,
    seconds: float,
    limits: tuple[int, int],
    *,
    last: bool = False,
) -> Generator[tuple[str, Any], None, list[Task]]:
    """Run tasks in a new pool until none is `waiting` or the pool breaks. Yield results, and return the tasks to retry.

    With `last`, a task that takes too long is not returned. Its error is yielded instead.
    """
    running: dict[Future[bytes], Task] = {}
    again: list[Task] = []
    pool = _pool(workers)
    try:
        while waiting or running:
            while waiting and len(running) < 2 * workers:
                scheduled = pool.schedule(_call, (function, waiting[0][1], *limits), timeout=time_limits.wall(seconds))
                running[scheduled] = waiting.popleft()  # removed only now, so that a broken pool loses no task
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(future)
                error = future.exception()
                if error is None:
                    yield task[0], pickle.loads(future.result())
                elif isinstance(error, TimeoutError) and last:
                    yield task[0], _too_slow(seconds)
                elif isinstance(error, TimeoutError | ProcessExpired | BrokenProcessPool | CancelledError):
                    again.append(task)
                else:
                    yield task[0], error
    except RuntimeError:  # raised by `schedule` if the pool is broken
        if pool.active:
            raise
        again += running.values()
    finally:
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()
    return again


def _call(function: Callable[..., Any], args: tuple[Any, ...], memory: int, output: int) -> bytes:
    """Run one task in this process, which belongs to a pool. Return the pickled result."""
    try:
        with limited_memory(memory):
            result = pickle.dumps(function(*args))
    except MemoryError:
        raise TooMuch("reading and judging it took more memory than one submission may") from None
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # the error cannot be pickled
            raise RuntimeError(f"{type(error).__name__}: {error}") from None
        raise
    if len(result) > output:
        raise TooMuch(f"{len(result) / 2**20:.0f} MB came out, over the limit of {output / 2**20:.0f} MB")
    return result


def _too_slow(seconds: float) -> TooMuch:
    return TooMuch(f"reading and judging it took longer than {seconds:.0f} s")


def _pool(workers: int) -> ProcessPool:
    context = multiprocessing.get_context("spawn")
    return ProcessPool(workers, initializer=_end_with, initargs=(os.getpid(),), context=context)


@lru_cache(maxsize=1)
def _kept() -> ProcessPool:
    # A Dask worker is a daemon process, which by default may not start subprocesses. It may here, because these
    # subprocesses end with the worker.
    with suppress(AttributeError):
        multiprocessing.current_process()._config.pop("daemon", None)  # type: ignore[attr-defined]
    return _pool(1)


def _end_with(parent: int) -> None:
    """Make this process end when its parent ends, and lower its priority."""
    if sys.platform == "linux":
        linux.die_with_parent()
        if os.getppid() != parent:
            os._exit(1)  # the parent was killed before this point
        os.nice(10)  # the same value as for sandboxes, so that the desktop has priority

"""Grade submissions on many processes: a local pool, or a Dask cluster.

The pool is the default: on one machine it grades as fast, and it starts in 0.1 s, a local Dask cluster in 7 s (measured
with 2 workers on 2 busy cores). Dask, by ``--scheduler``, is for several machines.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import sys
import tempfile
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path

import nbformat

from autograder.checks import SEED
from autograder.course.assignment import Assignment
from autograder.course.execute import run_notebook
from autograder.course.notebook import cells_of, parse_notebook
from autograder.grading.grader import Grader
from autograder.grading.submission import UnusableSubmission, parse_submission, prepare
from autograder.grading.verdict import Graded, packed, zero
from autograder.sandbox.guest import linux

Task = tuple[str, bytes]


@dataclass(frozen=True)
class NoVerdict:
    """Why there is no verdict; never by the student's fault."""

    why: str


Result = tuple[str, bytes | NoVerdict]


@lru_cache(maxsize=4)
def _grader(assignment: Assignment) -> Grader:
    """Return this process's grader of an assignment; its zygote lives as long as the process."""
    return Grader(assignment)


def grade_unsafe(assignment: Assignment, content: bytes) -> Graded:
    """Grade one submission in a kernel of this user: for people you trust, where no sandbox works."""
    instructors = parse_notebook(assignment.notebook, assignment.name)
    try:
        prepared = prepare(parse_submission(content), instructors)
    except UnusableSubmission as why:
        return zero(instructors, str(why))
    whole = {cell.id: cell.source for cell in cells_of(instructors)}
    for cell in cells_of(prepared.notebook):
        if cell.is_check:
            cell.node.source = whole[cell.id]  # with its hidden checks, which here share the student's interpreter
    with tempfile.TemporaryDirectory() as folder:
        assignment.lay_out(Path(folder))
        done = run_notebook(prepared.notebook, folder=Path(folder), variables={"TINYBENCH_CHECK_SEED": str(SEED.get())})
    return Graded(nbformat.writes(done.notebook).encode(), {}, prepared.evidence, done.failure, done.seconds)


def grade_bytes(assignment: Assignment, content: bytes, seed: int, sandboxed: bool = True) -> bytes:
    """Grade one submission: bytes in, JSON out, nothing else read or written."""
    with seeded_checks(seed, content):
        return packed(_grade_sandboxed(assignment, content) if sandboxed else grade_unsafe(assignment, content))


@contextmanager
def seeded_checks(seed: int, content: bytes) -> Iterator[None]:
    """Have checks draw their inputs from a seed and the submission.

    So feedback on one submission tells nothing about the inputs of the next, and grading again gives the same marks.
    """
    drawn = hashlib.sha256(f"{seed} ".encode() + content).digest()
    token = SEED.set(int.from_bytes(drawn[:4]))
    try:
        yield
    finally:
        SEED.reset(token)


def _grade_sandboxed(assignment: Assignment, content: bytes) -> Graded:
    """Grade in the sandbox; a submission that ended because the zygote was killed is graded again."""
    for _ in range(2):
        grader = _grader(assignment)
        with suppress(OSError):  # as it cannot be asked for a sandbox
            graded = grader.grade(content)
            if grader.zygote.process.poll() is None:
                return graded
        _grader.cache_clear()
        grader.close()
    raise RuntimeError("the zygote of its sandbox died twice")


def run_local(
    tasks: Iterable[Task], assignment: Assignment, seed: int, workers: int, sandboxed: bool = True
) -> Iterator[Result]:
    """Grade on local processes; yield key and result as they come.

    When a process of the pool dies, each submission that it may have been grading is tried once more, alone.
    """
    waiting = deque(tasks)
    while waiting:
        for task in (yield from _pool(waiting, workers, assignment, seed, sandboxed)):
            for key, _ in (yield from _pool(deque([task]), 1, assignment, seed, sandboxed)):
                yield key, NoVerdict("the process that graded it died twice")


def _pool(
    waiting: deque[Task], workers: int, assignment: Assignment, seed: int, sandboxed: bool
) -> Generator[Result, None, list[Task]]:
    """Grade until nothing waits or a process dies; return what was in hand when it did."""
    running: dict[Future[bytes], Task] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _end_with, (os.getpid(),)) as pool:
        while waiting or running:
            try:
                while waiting and len(running) < 2 * workers:
                    running[pool.submit(grade_bytes, assignment, waiting[0][1], seed, sandboxed)] = waiting[0]
                    waiting.popleft()
            except BrokenProcessPool:
                return list(running.values())
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    return list(running.values())
                key, _ = running.pop(future)
                yield key, _no_verdict(error) if error else future.result()
    return []


def _end_with(parent: int) -> None:
    """End this process of a pool when the command that started it is killed."""
    if sys.platform == "linux":
        linux.die_with_parent()
        if os.getppid() != parent:
            os._exit(1)  # it was killed before
        os.nice(10)  # as its sandboxes: the desktop goes first


def _no_verdict(error: BaseException) -> NoVerdict:
    return NoVerdict(f"{type(error).__name__}: {error}")


def run_dask(tasks: Iterable[Task], assignment: Assignment, seed: int, scheduler: str) -> Iterator[Result]:
    """Grade on a Dask cluster, whose workers have this package; yield key and result as they come.

    The tasks of a worker that dies run on another; what has been yielded never runs again.
    """
    from distributed import Client, as_completed

    digest = f"{assignment.digest()[:16]}-{seed}"
    try:
        client = Client(scheduler, set_as_default=False)
    except OSError as error:
        raise ValueError(
            f"no Dask scheduler answers at {scheduler} ({error}); start one, or leave --scheduler out"
        ) from None
    with client:
        # scattered, it would be lost with its workers
        shared = client.submit(Assignment, *astuple(assignment), key=f"assignment-{digest}")
        futures = {}
        for key, content in tasks:
            task = f"grade-{assignment.name}-{digest}-{hashlib.sha256(content).hexdigest()[:16]}-{key}"
            future = client.submit(grade_bytes, shared, content, seed, key=task, pure=False, retries=2)
            futures[future] = key
        for future in as_completed(list(futures), loop=client.loop):
            try:
                result = future.result()
            except Exception as error:  # of its last worker, or of the scheduler
                result = _no_verdict(error)
            yield futures.pop(future), result
            future.release()

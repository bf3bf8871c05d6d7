"""Run pure functions of bytes on many processes: a local pool, or a Dask cluster."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import sys
import tempfile
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import asdict, astuple, dataclass
from functools import lru_cache
from pathlib import Path

import nbformat

from autograder.checks import SEED
from autograder.course.assignment import Assignment
from autograder.course.execute import execute
from autograder.course.notebook import is_check, label, parse_notebook
from autograder.grading.grader import Graded, Grader, refused
from autograder.grading.submission import Refused, parse_submission, prepare
from autograder.sandbox.guest import linux

Task = tuple[str, bytes]


@dataclass(frozen=True)
class Lost:
    """In place of a verdict, why there is none; that is never the student's fault."""

    why: str


Result = tuple[str, bytes | Lost]


@lru_cache(maxsize=4)
def _grader(assignment: Assignment) -> Grader:
    """Return this process's grader of an assignment; its warm parent lives as long as the process."""
    return Grader(assignment)


def unconfined(assignment: Assignment, content: bytes) -> Graded:
    """Grade one submission in a kernel of this user: for people you trust, where no sandbox works."""
    instructors = parse_notebook(assignment.notebook, assignment.name)
    try:
        prepared = prepare(parse_submission(content), instructors)
    except Refused as refusal:
        return refused(instructors, str(refusal))
    whole = {label(cell, index): cell.source for index, cell in enumerate(instructors.cells)}
    for index, cell in enumerate(prepared.notebook.cells):
        if is_check(cell):
            cell.source = whole[label(cell, index)]  # with its hidden region, which here runs beside the student's code
    with tempfile.TemporaryDirectory() as folder:
        assignment.lay_out(Path(folder))
        done = execute(prepared.notebook, folder=Path(folder), variables={"TINYBENCH_CHECK_SEED": str(SEED.get())})
    return Graded(nbformat.writes(done.notebook).encode(), {}, prepared.evidence, done.failure, done.seconds)


def grade_bytes(assignment: Assignment, content: bytes, seed: int, confine: bool = True) -> bytes:
    """Grade one submission: bytes in, JSON out, nothing else read or written.

    Parameters
    ----------
    assignment
        The instructor's notebook and data files.
    content
        The submission.
    seed
        See `seeded_checks`.
    confine
        In the sandbox; else see `unconfined`.
    """
    with seeded_checks(seed, content):
        return packed(_confined(assignment, content) if confine else unconfined(assignment, content))


@contextmanager
def seeded_checks(seed: int, content: bytes) -> Iterator[None]:
    """Have checks draw their inputs from a seed and what was submitted.

    What feedback on one submission tells of them is of no use to the next, and grading again gives the same marks.
    """
    drawn = hashlib.sha256(f"{seed} ".encode() + content).digest()
    token = SEED.set(int.from_bytes(drawn[:4]))
    try:
        yield
    finally:
        SEED.reset(token)


def _confined(assignment: Assignment, content: bytes) -> Graded:
    """Grade in the sandbox; what ended because the warm parent was killed is no verdict."""
    for _ in range(2):
        grader = _grader(assignment)
        with suppress(OSError):  # as it cannot be asked for a sandbox
            graded = grader.grade(content)
            if grader.warm.process.poll() is None:
                return graded
        _grader.cache_clear()
        grader.close()
    raise RuntimeError("the parent of its sandbox died twice")


def packed(graded: Graded) -> bytes:
    """Return a verdict as JSON, in which it travels and is kept."""
    return json.dumps(asdict(graded) | {"notebook": graded.notebook.decode()}).encode()


def run_local(
    tasks: Iterable[Task], assignment: Assignment, seed: int, workers: int, confine: bool = True
) -> Iterator[Result]:
    """Grade on local processes; yield key and result as they come.

    A process of the pool that dies takes none of the others' work along: what it may have had in hand is tried once
    more, each submission alone.
    """
    waiting = deque(tasks)
    while waiting:
        for task in (yield from _pool(waiting, workers, assignment, seed, confine)):
            for key, _ in (yield from _pool(deque([task]), 1, assignment, seed, confine)):
                yield key, Lost("the process that graded it died twice")


def _pool(
    waiting: deque[Task], workers: int, assignment: Assignment, seed: int, confine: bool
) -> Generator[Result, None, list[Task]]:
    """Grade until nothing waits or a process dies; return what was in hand when it did."""
    running: dict[Future[bytes], Task] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _end_with, (os.getpid(),)) as pool:
        while waiting or running:
            try:
                while waiting and len(running) < 2 * workers:
                    running[pool.submit(grade_bytes, assignment, waiting[0][1], seed, confine)] = waiting[0]
                    waiting.popleft()
            except BrokenProcessPool:
                return list(running.values())
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    return list(running.values())
                key, _ = running.pop(future)
                yield key, _lost(error) if error else future.result()
    return []


def _end_with(parent: int) -> None:
    """Let this process of a pool end when the command that started it is killed."""
    if sys.platform == "linux":
        linux.die_with_parent()
        if os.getppid() != parent:
            os._exit(1)  # it was killed before


def _lost(error: BaseException) -> Lost:
    return Lost(f"{type(error).__name__}: {error}")


def run_dask(tasks: Iterable[Task], assignment: Assignment, seed: int, scheduler: str) -> Iterator[Result]:
    """Grade on a Dask cluster, whose workers have this package; yield key and result as they come.

    A lost worker's tasks run on another. What has been yielded does not run again, whoever is lost later.

    Raises
    ------
    ValueError
        If no scheduler answers.
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
            except Exception as error:  # the last of its workers', or the scheduler's
                result = _lost(error)
            yield futures.pop(future), result
            future.release()

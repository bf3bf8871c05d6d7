"""The grading of submissions in several processes, either in a local pool or on a Dask cluster.

The pool is the default. On one machine, the pool grades as fast as a local Dask cluster but starts in 0.1 s instead of
7 s (measured with 2 workers on 2 busy cores). Dask, selected by ``--scheduler``, is for several machines.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from functools import lru_cache
from multiprocessing.util import Finalize
from pathlib import Path

import nbformat

from autograder.checks.check_helpers import SEED
from autograder.course.assignment import Assignment
from autograder.course.execute import run_notebook
from autograder.course.notebook import cells_of, parse_notebook
from autograder.grading.killable import MEMORY, TooMuch, each, limited_memory, run
from autograder.grading.submission import UnusableSubmission, parse_submission, prepare
from autograder.grading.submission_grader import Grader
from autograder.grading.verdict import Graded, checked, packed, zero

Task = tuple[str, bytes]
SECONDS = 480  # longer than a sandbox may live: the last resort if the grader itself is stalled
UNSAFE_SECONDS = 3600


@dataclass(frozen=True)
class NoVerdict:
    """The reason why a submission has no verdict. This is never the student's fault."""

    why: str


Result = tuple[str, bytes | NoVerdict]


@lru_cache(maxsize=4)
def _grader(assignment: Assignment) -> Grader:
    """Return the grader of an assignment, created once per process.

    The grader's zygote ends together with the process.
    """
    grader = Grader(assignment)
    Finalize(None, grader.close, exitpriority=1)  # `atexit` has no effect in a pool's process
    return grader


def grade_unsafe(assignment: Assignment, content: bytes) -> Graded:
    """Grade one submission in a kernel of this user. Use this only for trusted students, if no sandbox works."""
    instructors = parse_notebook(assignment.notebook, assignment.name)
    try:
        prepared = prepare(parse_submission(content), instructors)
    except UnusableSubmission as why:
        return zero(instructors, str(why))
    whole = {cell.id: cell.source for cell in cells_of(instructors)}
    for cell in cells_of(prepared.notebook):
        if cell.is_check:
            cell.node.source = whole[cell.id]  # including hidden checks, which here share the student's interpreter
    with tempfile.TemporaryDirectory() as folder:
        assignment.lay_out(Path(folder))
        done = run_notebook(prepared.notebook, folder=Path(folder), variables={"TINYBENCH_CHECK_SEED": str(SEED.get())})
    return Graded(nbformat.writes(done.notebook).encode(), {}, prepared.evidence, done.failure, done.seconds)


def grade_bytes(assignment: Assignment, content: bytes, seed: int, sandboxed: bool = True) -> bytes:
    """Grade one submission from its bytes, and return the verdict as JSON. Nothing else is read or written."""
    with seeded_checks(seed, content):
        return packed(_grade_sandboxed(assignment, content) if sandboxed else grade_unsafe(assignment, content))


@contextmanager
def seeded_checks(seed: int, content: bytes) -> Iterator[None]:
    """Make the checks draw their inputs from the seed and the submission while the block runs.

    Feedback on one submission therefore reveals nothing about the inputs for the next one, and regrading a submission
    gives the same marks.
    """
    drawn = hashlib.sha256(f"{seed} ".encode() + content).digest()
    token = SEED.set(int.from_bytes(drawn[:4]))
    try:
        yield
    finally:
        SEED.reset(token)


def _grade_sandboxed(assignment: Assignment, content: bytes) -> Graded:
    """Grade a submission in the sandbox.

    If the zygote dies meanwhile, start a new one and grade the submission again.
    """
    for _ in range(2):
        grader = _grader(assignment)
        with suppress(OSError):  # a dead zygote cannot fork a sandbox
            with limited_memory(MEMORY):
                graded = grader.grade(content)
            if grader.zygote.process.poll() is None:
                return graded
        _grader.cache_clear()
        grader.close()
    raise RuntimeError("the zygote of its sandbox died twice")


def run_local(
    tasks: Iterable[Task], assignment: Assignment, seed: int, workers: int, sandboxed: bool = True
) -> Iterator[Result]:
    """Grade on `workers` local processes. Yield the key and the result of each task as soon as the task is done."""
    work = ((key, (assignment, content, seed, sandboxed)) for key, content in tasks)
    seconds = SECONDS if sandboxed else UNSAFE_SECONDS
    for key, result in each(grade_bytes, work, seconds=seconds, workers=workers, memory=0):
        yield key, _settled(result, assignment)


def _settled(result: bytes | Exception, assignment: Assignment) -> bytes | NoVerdict:
    """Return the verdict, or the reason why there is none. A submission that overloaded the grader gets no points."""
    if isinstance(result, TooMuch):
        return packed(zero(parse_notebook(assignment.notebook, assignment.name), str(result)))
    return _no_verdict(result) if isinstance(result, Exception) else result


def grade_apart(assignment: Assignment, content: bytes, seed: int) -> bytes:
    """Grade one submission in a subprocess, which is killed after a timeout, and otherwise kept for the next call."""
    try:
        return run(grade_bytes, assignment, content, seed, seconds=SECONDS, memory=0)
    except TooMuch as error:
        return packed(zero(parse_notebook(assignment.notebook, assignment.name), str(error)))


def _no_verdict(error: BaseException) -> NoVerdict:
    return NoVerdict(f"{type(error).__name__}: {error}")


def run_dask(tasks: Iterable[Task], assignment: Assignment, seed: int, scheduler: str) -> Iterator[Result]:
    """Grade on a Dask cluster, whose workers must have this package. Yield each task's key and result when it is done.

    If a worker dies, its tasks run on another worker. A task whose result was yielded never runs again.
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
        # scattered data would be lost if the workers that hold it died
        shared = client.submit(Assignment, *astuple(assignment), key=f"assignment-{digest}")
        futures = {}
        contents = dict(tasks)
        for key, content in contents.items():
            task = f"grade-{assignment.name}-{digest}-{hashlib.sha256(content).hexdigest()[:16]}-{key}"
            future = client.submit(grade_apart, shared, content, seed, key=task, pure=False, retries=2)
            futures[future] = key
        for future in as_completed(list(futures), loop=client.loop):
            key = futures.pop(future)
            result: bytes | NoVerdict
            try:
                # data from the network cannot be trusted
                result = run(checked, future.result(), contents[key], assignment, seconds=SECONDS)
            except Exception as error:  # in the last worker, the scheduler, or the process that read the answer
                result = _no_verdict(error)
            yield key, result
            future.release()

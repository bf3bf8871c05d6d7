"""Grade submissions on many processes: a local pool, or a Dask cluster.

The pool is the default: on one machine it grades as fast, and it starts in 0.1 s, a local Dask cluster in 7 s (measured
with 2 workers on 2 busy cores). Dask, by ``--scheduler``, is for several machines.
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

from autograder.checks.compare import SEED
from autograder.course.assignment import Assignment
from autograder.course.execute import run_notebook
from autograder.course.notebook import cells_of, parse_notebook
from autograder.grading.grader import Grader
from autograder.grading.killable import MEMORY, TooMuch, each, limited_memory, run
from autograder.grading.submission import UnusableSubmission, parse_submission, prepare
from autograder.grading.verdict import Graded, checked, packed, zero

Task = tuple[str, bytes]
SECONDS = 480  # more than a sandbox may live: the last resort where the grader itself is stalled
UNSAFE_SECONDS = 3600


@dataclass(frozen=True)
class NoVerdict:
    """Why there is no verdict; never by the student's fault."""

    why: str


Result = tuple[str, bytes | NoVerdict]


@lru_cache(maxsize=4)
def _grader(assignment: Assignment) -> Grader:
    """Return this process's grader of an assignment; its zygote lives as long as the process."""
    grader = Grader(assignment)
    Finalize(None, grader.close, exitpriority=1)  # in a process of a pool `atexit` calls nothing
    return grader


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
    """Grade on local processes; yield key and result as they come."""
    work = ((key, (assignment, content, seed, sandboxed)) for key, content in tasks)
    seconds = SECONDS if sandboxed else UNSAFE_SECONDS
    for key, result in each(grade_bytes, work, seconds=seconds, workers=workers, memory=0):
        yield key, _settled(result, assignment)


def _settled(result: bytes | Exception, assignment: Assignment) -> bytes | NoVerdict:
    """Return a verdict also where a submission was too much for the grader: no points, and the reason."""
    if isinstance(result, TooMuch):
        return packed(zero(parse_notebook(assignment.notebook, assignment.name), str(result)))
    return _no_verdict(result) if isinstance(result, Exception) else result


def grade_apart(assignment: Assignment, content: bytes, seed: int) -> bytes:
    """Grade one submission in a process of its own, which outlives the submission and may be killed."""
    try:
        return run(grade_bytes, assignment, content, seed, seconds=SECONDS, memory=0)
    except TooMuch as error:
        return packed(zero(parse_notebook(assignment.notebook, assignment.name), str(error)))


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
        contents = dict(tasks)
        for key, content in contents.items():
            task = f"grade-{assignment.name}-{digest}-{hashlib.sha256(content).hexdigest()[:16]}-{key}"
            future = client.submit(grade_apart, shared, content, seed, key=task, pure=False, retries=2)
            futures[future] = key
        for future in as_completed(list(futures), loop=client.loop):
            key = futures.pop(future)
            result: bytes | NoVerdict
            try:
                # what comes over the network may be anything
                result = run(checked, future.result(), contents[key], assignment, seconds=SECONDS)
            except Exception as error:  # of its last worker, of the scheduler, or of one who read the answer
                result = _no_verdict(error)
            yield key, result
            future.release()

"""Run pure functions of bytes on many processes: a local pool, or a Dask cluster."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import nbformat

from autograder.confined import Graded, Grader
from autograder.execute import execute
from autograder.notebook import is_check, label, parse_notebook
from autograder.submission import Refused, parse_submission, prepare

Task = tuple[str, bytes]


@lru_cache(maxsize=4)
def _grader(name: str, source: bytes) -> Grader:
    """Return this process's grader of an assignment; its warm parent lives as long as the process."""
    folder = Path(tempfile.mkdtemp(prefix="autograder-")) / name
    folder.mkdir()
    (folder / f"{name}.ipynb").write_bytes(source)
    return Grader(folder / f"{name}.ipynb")


def unconfined(name: str, source: bytes, content: bytes) -> Graded:
    """Grade one submission in a kernel of this user: for people you trust, where no sandbox works."""
    instructors = parse_notebook(source, name)
    try:
        prepared = prepare(parse_submission(content), instructors)
    except Refused as refused:
        return _grader(name, source).refuse(str(refused))
    whole = {label(cell, index): cell.source for index, cell in enumerate(instructors.cells)}
    for index, cell in enumerate(prepared.notebook.cells):
        if is_check(cell):
            cell.source = whole[label(cell, index)]  # with its hidden region, which here runs beside the student's code
    with tempfile.TemporaryDirectory() as folder:
        done = execute(prepared.notebook, folder=Path(folder))
    return Graded(nbformat.writes(done.notebook).encode(), {}, prepared.evidence, done.failure, done.seconds)


def grade_bytes(name: str, source: bytes, content: bytes, seed: int, confine: bool = True) -> bytes:
    """Grade one submission: bytes in, JSON out, nothing else read or written.

    Parameters
    ----------
    name
        The assignment.
    source
        The instructor's notebook.
    content
        The submission.
    seed
        From which the checks draw their inputs.
    confine
        In the sandbox; else see `unconfined`.
    """
    os.environ["TINYBENCH_CHECK_SEED"] = str(seed)
    graded = _grader(name, source).grade(content) if confine else unconfined(name, source, content)
    return packed(graded)


def packed(graded: Graded) -> bytes:
    """Return a verdict as JSON, in which it travels and is kept."""
    return json.dumps(asdict(graded) | {"notebook": graded.notebook.decode()}).encode()


def run_local(
    tasks: Iterable[Task], name: str, source: bytes, seed: int, workers: int, confine: bool = True
) -> Iterator[tuple[str, bytes]]:
    """Grade on local processes; yield key and result as they come.

    A process of the pool that dies takes none of the others' work along: what it had is tried once more, alone.
    """
    remaining = dict(tasks)
    for attempt in range(2):
        size = workers if attempt == 0 else 1
        with ProcessPoolExecutor(max(1, size), mp_context=multiprocessing.get_context("spawn")) as pool:
            futures = {pool.submit(grade_bytes, name, source, remaining[key], seed, confine): key for key in remaining}
            try:
                for future in as_completed(futures):
                    key = futures[future]
                    result = future.result()
                    del remaining[key]
                    yield key, result
            except BrokenProcessPool:
                continue
        return
    raise RuntimeError(f"the grading process died twice, lastly on one of: {', '.join(sorted(remaining))}")


def run_dask(tasks: Iterable[Task], name: str, source: bytes, seed: int, scheduler: str) -> Iterator[tuple[str, bytes]]:
    """Grade on a Dask cluster, whose workers have this package; a lost worker's tasks run on another."""
    from distributed import Client, as_completed

    digest = hashlib.sha256(source).hexdigest()[:16]
    with Client(scheduler, set_as_default=False) as client:
        [shared] = client.scatter([source], broadcast=True)
        futures = {}
        for key, content in tasks:
            task = f"grade-{name}-{digest}-{hashlib.sha256(content).hexdigest()[:16]}-{key}"
            future = client.submit(grade_bytes, name, shared, content, seed, key=task, pure=False, retries=2)
            futures[future] = key
        for future in as_completed(list(futures)):
            yield futures[future], future.result()

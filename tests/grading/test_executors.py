"""A process that dies or fails takes nobody's verdict along, and is charged to nobody."""

from __future__ import annotations

import os
import signal

import pytest

from autograder.course.assignment import Assignment
from autograder.grading import worker_pools
from autograder.grading.worker_pools import NoVerdict, run_local


def work(assignment: Assignment, content: bytes, seed: int, sandboxed: bool) -> bytes:
    """In place of grading: do what the submission says."""
    if content == b"die":
        os.kill(os.getpid(), signal.SIGKILL)
    if content == b"raise":
        raise RuntimeError("a mistake of the grader's own")
    return content.upper()


@pytest.mark.slow
def test_processes_that_die_and_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pools, "grade_bytes", work)
    tasks = {"a": b"a", "killer": b"die", "b": b"b", "wrong": b"raise", "c": b"c", "another": b"die", "d": b"d"}
    yielded = list(run_local(tasks.items(), Assignment("name", b"notebook"), 0, workers=2))
    results = dict(yielded)
    assert len(yielded) == len(results) == len(tasks)
    assert [results[key] for key in "abcd"] == [b"A", b"B", b"C", b"D"]
    assert results["wrong"] == NoVerdict("RuntimeError: a mistake of the grader's own")
    assert results["killer"] == results["another"] == NoVerdict("Died: the process that worked on it died twice")

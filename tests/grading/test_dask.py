"""Grading on a Dask cluster of real processes: the same scores, and a lost worker costs nobody anything."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster

from autograder.cli import main
from autograder.grading.batch_verdicts import Batch
from autograder.grading.grade import NOT_GRADED, grade_assignment
from tests.tiny_course import NAME, hand_in, solved

EXPECTED = {"ada": 4, "ben": 2, "cleo": 4, "dan": 2, "eve": 0, "finn": 0}


def a_class(course: Path) -> None:
    """Hand in for six students; each takes half a second, so that a worker can be killed in the middle."""
    slow = "\n\nimport time\ntime.sleep(0.5)"
    for student, content in {
        "ada": solved(course, extra=slow),
        "ben": solved(course, extra=slow, check_values="def check_values(values):\n    return list(values)"),
        "cleo": solved(course, extra=f"{slow}\n# in her own words"),
        "dan": solved(course, extra=f"{slow}\nimport os\nos._exit(3)"),
        "eve": b"no notebook",
        "finn": (course / "course" / "release" / NAME / f"{NAME}.ipynb").read_bytes(),
    }.items():
        hand_in(course, student, content)


@pytest.mark.audit
@pytest.mark.needs("sandbox")
@pytest.mark.filterwarnings("ignore")  # the cluster's own, when its workers are killed
@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_is_killed(workers: int, released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_class(released)
    kept: Counter[str] = Counter()
    keep = Batch.keep

    with LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster, Client(cluster, set_as_default=False) as client:  # fmt: skip
        pids = list(client.run(os.getpid).values())

        def kill_at_the_first(batch: Batch, name: str, result: bytes) -> None:
            kept[name] += 1
            keep(batch, name, result)
            if pids and name != "eve":
                os.kill(pids.pop(), signal.SIGKILL)
                pids.clear()

        monkeypatch.setattr(Batch, "keep", kill_at_the_first)
        outcomes = grade_assignment(released, NAME, scheduler=cluster.scheduler_address, progress=False)
    assert {outcome.student: outcome.score for outcome in outcomes} == EXPECTED
    assert kept == dict.fromkeys(EXPECTED, 1), "nobody is graded twice"
    assert not pids
    monkeypatch.setattr(Batch, "keep", keep)
    assert grade_assignment(released, NAME, progress=False) == outcomes, "all that is known is kept"


@pytest.mark.audit
@pytest.mark.needs("sandbox")
@pytest.mark.filterwarnings("ignore")
def test_a_submission_whose_workers_are_lost_has_no_verdict(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the cluster gives a task up, nothing is entered; the next run grades it, here on this machine."""
    a_class(released)
    keep = Batch.keep
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        pids = list(client.run(os.getpid).values())

        def kill_at_the_first(batch: Batch, name: str, result: bytes) -> None:
            keep(batch, name, result)
            if pids and name != "eve":
                os.kill(pids.pop(), signal.SIGKILL)

        monkeypatch.setattr(Batch, "keep", kill_at_the_first)
        first = {
            o.student: o for o in grade_assignment(released, NAME, scheduler=cluster.scheduler_address, progress=False)
        }
        lost = [name for name, outcome in first.items() if outcome.score is None]
        assert lost
        assert all(first[name].note.startswith(f"{NOT_GRADED}: Killed") for name in lost)
        assert {n: o.score for n, o in first.items() if n not in lost} == {
            n: score for n, score in EXPECTED.items() if n not in lost
        }
    again = {o.student: o.score for o in grade_assignment(released, NAME, regrade=True, workers=1, progress=False)}
    assert again == EXPECTED, "local processes say the same"


@pytest.mark.filterwarnings("ignore")
def test_no_scheduler_is_said(released: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hand_in(released, "ada", solved(released))
    with dask.config.set({"distributed.comm.timeouts.connect": "500ms"}):
        assert main(["--root", str(released), "grade", NAME, "--scheduler", "tcp://127.0.0.1:9"]) == 1
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in capsys.readouterr().err

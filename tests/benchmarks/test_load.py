"""The benchmark of load generators: its truths on data that is known, and what it judges."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks import load
from tests.benchmarks.harness import Trial
from tests.benchmarks.load_peers import CLOSED, OURS
from tests.undisturbed import once_undisturbed
from tinybench.load import LoadResult


def one_user(service: float, think: float, stall: tuple[float, float], seconds: float) -> load.Trace:
    """Return the trace of a closed loop at a server that stalls at the end of each period."""
    received, finished, now = [], [], 0.0
    while now < seconds:
        received.append(now)
        into = now % stall[1]
        now += service + max(0.0, stall[1] - into if into >= stall[1] - stall[0] else 0.0)
        finished.append(now)
        now += think
    return load.Trace([""] * len(received), np.array(received), np.array(finished))


def test_what_users_suffer_is_known() -> None:
    trace = one_user(0.001, 0.009, (1.0, 10.0), 20)
    services, ends = trace.services((1.0, 10.0))
    assert services == pytest.approx(np.full(len(services), 0.001))
    assert ends == pytest.approx([10.001, 20.001], abs=0.01)
    # a tenth arrives in a stall, uniformly: 99 % of all wait less than 90 % of it, and what the backlog adds
    found = load.replayed(trace, 100, 20, (1.0, 10.0), np.random.default_rng(0))
    assert found == pytest.approx(0.904, rel=0.02)
    assert load.p99(trace.finished - trace.received) < 0.002
    steady = one_user(0.001, 0.009, (0.0, 10.0), 20)
    assert 0.001 < load.replayed(steady, 100, 20, None, np.random.default_rng(0)) < 0.003


def test_rows_are_joined_with_the_trace_by_their_names() -> None:
    began, due, took = 1000.0, np.linspace(0.1, 10, 100), np.linspace(0.001, 0.1, 100)
    names = ["0", "1", "probe", *map(str, range(100))]  # the first three before the run
    received = np.concatenate([[900, 901, 902], began + due])
    finished = np.concatenate([[990, 991, 992], began + due + took])
    rows = LoadResult(due, due, due + took + 0.01, np.ones(100, bool), 10.0, {"began": began})
    assert load.joined(load.Trace(names, received, finished), rows) == pytest.approx(0.099)


def test_what_is_off_or_hidden_or_refused_is_said() -> None:
    run = {"asked": 100.0, "stalled": True, "rate": 99.0, "reported": 0.01, "truth": 0.9, "own": 0.001, "why": ""}
    why = {"reported": None, "why": "started late"}
    found = [run | {"tool": "hey"}, run | {"tool": OURS}, run | {"tool": OURS, "asked": 2000.0} | why]
    assert [*load.goals(found).values()] == [False]
    assert [*load.goals([run | {"tool": OURS, "truth": 0.0096}]).values()] == [True]
    told = "\n".join(load.page(found))
    assert "| 2000/s | tinybench load | open | 99/s | – | 1 (1 to 1) | 900 (900 to 900) | – | 1 of 1 |" in told
    assert "hey, a closed loop: when the server stalls the true p99 is 90 times what it reports, and 900 times" in told
    assert "- tinybench load at 2000/s: started late" in told


@once_undisturbed
def test_an_open_loop_tells_what_a_closed_one_hides(tmp_path: Path) -> None:
    def run(tool: str) -> dict[str, Any]:
        return load.measured(Trial("tools", "quiet", 0, (tool, 200.0, (0.3, 3.0)), 0, Namespace(), tmp_path))

    closed, ours = run(CLOSED), run(OURS)
    assert min(closed["truth"], ours["truth"]) > 0.2
    assert closed["reported"], closed["why"]
    assert closed["reported"] < closed["truth"] / 3
    assert all(load.goals([ours]).values()), ours

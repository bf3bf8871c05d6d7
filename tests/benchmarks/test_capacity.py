"""The parts of `capacity` at a small scale: what would be wrong on any machine, however busy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import capacity_batches, capacity_lindley, capacity_machine, capacity_plan, capacity_rate
from tests.benchmarks.capacity_servers import layered, stepping, steps_for
from tinybench.load import arrivals


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stepping(tmp_path_factory.mktemp("models") / "steps.onnx")


def test_the_waits_of_real_requests_follow_from_their_service_times(steps: Path) -> None:
    rows = steps_for(steps, capacity_lindley.work("varied", 20))
    before = capacity_lindley.beforehand(steps, rows, 1.0)
    at = capacity_lindley.point(steps, rows, before, 0.0, 0.7, 2.0)
    assert at["own"] == pytest.approx(at["real"], rel=0.15, abs=1e-3)  # the front is not taken into account here
    found = {"varied": {"points": [at], "front": 0.0, "service": 1.0, "cv2": 0.0}}
    assert "| 0.7 |" in "".join(capacity_lindley.page(found))
    at["own"] = 1.2 * at["real"]
    assert not all(capacity_lindley.goals(found).values())


def test_the_true_rate_is_that_of_a_long_simulation() -> None:
    rng, rate = np.random.default_rng(5), 0.85 / capacity_rate.SERVICE
    for name in ("M/M/1", "M/D/1"):
        bound = capacity_rate.BOUND if name == "M/M/1" else capacity_rate.BOUND / 2
        long = capacity_rate.simulated(capacity_rate.QUEUES[name], 2000.0, rng, rate)
        simulated = np.mean(long.latencies > bound)
        assert capacity_rate.beyond(name, rate, bound) == pytest.approx(simulated, rel=0.15)


def test_a_search_finds_the_rate_and_a_wrong_truth_is_noticed() -> None:
    rows = capacity_rate.in_simulation(5, (10.0,))
    assert len(rows) == len(capacity_rate.QUEUES)
    for row in rows:
        assert sum(capacity_rate.held(row)) >= 3
        assert not any(capacity_rate.held(row | {"truth": 0.6 * row["truth"]}))
        assert sum(capacity_rate.again(row["found"])) >= 3


def test_batches_carry_what_single_requests_do_not(tmp_path: Path) -> None:
    model, seconds = layered(tmp_path / "layers.onnx", layers=16), 1.0
    alone = capacity_batches.of_model(model, 10)
    rate, data = min(450.0, 5 / np.median(alone[1])), np.full((1, 32), 0.5)
    due = arrivals(rate, seconds, seed=1)
    found = {}
    for size in (1, 32):
        found[size] = capacity_batches.one_run(model, data, due, (size, 0.005), {"model": alone})
    assert found[1]["real"]["batch"] == 1 < found[32]["real"]["batch"]
    assert found[32]["real"]["throughput"] > 1.2 * found[1]["real"]["throughput"]
    assert found[32]["model"]["throughput"] > 1.2 * found[1]["model"]["throughput"]
    assert found[32]["model"]["batch"] == pytest.approx(found[32]["real"]["batch"], rel=0.7)


@pytest.mark.needs("load")
def test_behind_haproxy_the_planned_instances_are_faster_than_one_fewer(steps: Path) -> None:
    rows, four_times = steps_for(steps, [0.02]), 200.0  # too many for one also when the service was measured too long
    runs = [capacity_plan.peak(steps, rows, instances, "one queue", four_times, 1.0) for instances in (1, 2)]
    assert [run["failed"] for run in runs] == [0, 0]
    assert runs[1]["p99"] < runs[0]["p99"]
    assert runs[0]["replayed"] == pytest.approx(runs[0]["p99"], rel=0.5)


def test_workers_share_libraries_but_not_weights(tmp_path: Path) -> None:
    [row] = capacity_machine.memory(tmp_path, (2,))
    assert row["uss"] < row["pss"] < row["rss"]
    assert row["uss"] > row["file"]
    assert row["all"] > 2 * row["file"]

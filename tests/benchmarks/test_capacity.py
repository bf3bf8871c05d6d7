"""What `capacity` counts and judges: truths of queues that are known, and goals at their edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.benchmarks import capacity_batches, capacity_lindley, capacity_plan, capacity_rate
from tests.benchmarks.capacity_servers import Run


def test_the_true_rate_is_that_of_a_long_simulation() -> None:
    rng, rate = np.random.default_rng(5), 0.85 / capacity_rate.SERVICE
    for name in ("M/M/1", "M/D/1"):
        bound = capacity_rate.BOUND if name == "M/M/1" else capacity_rate.BOUND / 2
        long = capacity_rate.simulated(capacity_rate.QUEUES[name], 2000.0, rng, rate)
        simulated = np.mean(long.latencies > bound)
        assert capacity_rate.beyond(name, rate, bound) == pytest.approx(simulated, rel=0.15)


def test_a_search_holds_the_truth_or_what_the_others_found() -> None:
    found: list[dict[str, Any]] = [{"best": best, "kept": 90, "broken": 110} for best in (95, 100, 130)]
    assert capacity_rate.hits([*found, {"refused": "too noisy"}]) == [False, False, True, False]
    assert capacity_rate.hits([{**one, "truth": 105} for one in found]) == [True] * 3


def test_a_batch_occupies_the_server_until_the_next_can_start() -> None:
    received, started, finished = np.array([[0.0, 1, 2, 3], [0, 2, 2, 9], [2.5, 6, 7, 9.5]])
    batch, seconds = Run(received, started, finished, np.array([1, 2, 2, 1]), np.arange(4)).occupied()
    assert (batch.tolist(), seconds.tolist()) == ([1, 2, 1], [2, 5, 0.5])


def test_predictions_that_are_off_miss_the_goals() -> None:
    at = {"rho": 0.8, "real": 1.0, "own": 1.09, "before": 1.5, "slower": 0.02}
    assert list(capacity_lindley.goals([at]).values()) == [True, True]
    assert list(capacity_lindley.goals([{**at, "own": 1.11, "slower": 0.0}]).values()) == [False, False]


def test_batches_that_do_not_keep_up_are_told() -> None:
    figures = {"sent": 100.0, "throughput": 100.0, "p99": 0.01, "batch": 2.0}
    found = [
        {"load": 1.5, "rate": 1.0, "max_wait": 0.0, "felt": 0.1, "max_batch": size}
        | {f"{who} {name}": value for who in capacity_batches.WHO for name, value in figures.items()}
        | ({f"{who} throughput": 90.0 for who in capacity_batches.WHO} if size == 1 else {})
        for size in (1, 4)
    ]
    assert all(capacity_batches.goals(found).values())
    assert "| 1.5 × unbatched, 1/s | 1 | 0 | 90 | 10.0, growing |" in capacity_batches.page(found)[2]
    found[1] |= {"real p99": 0.02, "server throughput": 90.0}
    assert list(capacity_batches.goals(found).values()) == [True, False, False]


def test_a_plan_holds_and_is_not_too_large() -> None:
    about = {"way": "one queue", "bound": 0.05, "needed": 2, "replayed": [0.04], "failed": 0}
    found = [{**about, "instances": 1, "p99": [0.06]}, {**about, "instances": 2, "p99": [0.04]}]
    assert list(capacity_plan.goals(found).values()) == [True, True, False, True]
    found[0]["p99"] = [0.045]
    assert list(capacity_plan.goals(found).values()) == [True, False, True, True]

"""What `capacity`, `load` and `history` count and judge: truths that are known, and goals at their edge."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks import capacity, capacity_batches, capacity_plans, capacity_rate, history, load, serving
from tests.benchmarks.harness import Trial
from tests.undisturbed import once_undisturbed
from tinybench.load import LoadResult


def traced(received: Any, finished: Any, **more: Any) -> np.recarray:
    """Return the trace of a server."""
    columns = {"received": received, "finished": finished, **more}
    return np.rec.fromarrays([np.array(each) for each in columns.values()], names=list(columns))


def test_the_true_rates_are_those_of_theory() -> None:
    assert capacity_rate.true_rate("M/D/1") == pytest.approx(1218.7, rel=0.005)  # Erlang's distribution, in 60 digits
    rng, rate = np.random.default_rng(5), capacity_rate.true_rate("M/M/1")
    late = capacity_rate.simulated("M/M/1", 2000.0, rng, rate).latencies > capacity_rate.BOUND
    assert np.mean(late) == pytest.approx(0.01, rel=0.15)


def test_long_runs_and_closed_forms_agree_on_p99() -> None:
    exact = capacity_plans.true_p99(None, 0.8, 1)
    assert exact == pytest.approx(np.log(100) / 0.2)
    for shape, servers in ((None, 1), (None, 2), (np.inf, 1)):
        p99 = capacity_plans.true_p99(shape, 0.8 * servers, servers)
        assert capacity_plans.long_run(shape, 0.8, servers) == pytest.approx(p99, rel=0.05)
    assert capacity_plans.true_p99(None, 2.0, 2) == np.inf


def test_plans_that_are_wrong_or_rarely_sure_miss_the_goals() -> None:
    plans = [{"rho": 0.9, "right": True, "sure": True}] * 9
    assert all(capacity_plans.goals([*plans, {"rho": 0.9, "right": True, "sure": False}]).values())
    unsure = [{"rho": 0.9, "right": False, "sure": False}] * 2
    assert not any(capacity_plans.goals([*plans, *unsure]).values())


def test_a_search_holds_the_truth_or_what_the_others_found() -> None:
    found: list[dict[str, Any]] = [{"best": best, "kept": 90, "broken": 110} for best in (95, 100, 130)]
    assert capacity_rate.hits([*found, {"runs": 2}]) == [False, False, True, False]
    assert capacity_rate.hits([{**one, "truth": 105} for one in found]) == [True] * 3


def test_a_batch_occupies_the_server_until_the_next_can_start() -> None:
    run = traced([0.0, 1, 2, 3], [2.5, 6, 7, 9.5], started=[0.0, 2, 2, 9], batch=[1, 2, 2, 1])
    batch, seconds = serving.occupied(run)
    assert (batch.tolist(), seconds.tolist()) == ([1, 2, 1], [2, 5, 0.5])


def test_predictions_that_are_off_miss_the_goals() -> None:
    at = {"rho": 0.8, "real": 1.0, "own": 1.09, "before": 1.5, "slower": 0.02}
    assert list(capacity.waits_goals([at]).values()) == [True, True]
    assert list(capacity.waits_goals([{**at, "own": 1.11, "slower": 0.0}]).values()) == [False, False]


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
    assert list(capacity.plan_goals(found).values()) == [True, True, False, True]
    found[0]["p99"] = [0.045]
    assert list(capacity.plan_goals(found).values()) == [True, False, True, True]


def one_user(service: float, think: float, stall: tuple[float, float], seconds: float) -> np.recarray:
    """Return the trace of a closed loop at a server that stalls at the end of each period."""
    received, finished, now = [], [], 0.0
    while now < seconds:
        received.append(now)
        into = now % stall[1]
        now += service + max(0.0, stall[1] - into if into >= stall[1] - stall[0] else 0.0)
        finished.append(now)
        now += think
    return traced(received, finished)


def test_what_users_suffer_is_known() -> None:
    trace = one_user(0.001, 0.009, (1.0, 10.0), 20)
    services, ends = load.services_of(trace, (1.0, 10.0))
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
    assert load.joined(traced(received, finished, request_id=names), rows) == pytest.approx(0.099)


def test_what_is_off_or_refused_is_said() -> None:
    run = {"asked": 100.0, "stalled": True, "rate": 99.0, "reported": 0.01, "truth": 0.9, "own": 0.001, "why": ""}
    why = {"reported": None, "why": "started late"}
    found = [run | {"tool": "hey"}, run | {"tool": load.OURS}, run | {"tool": load.OURS, "asked": 2000.0} | why]
    assert [*load.goals(found).values()] == [False]
    assert [*load.goals([run | {"tool": load.OURS, "truth": 0.0096}]).values()] == [True]
    told = "\n".join(load.page(found))
    assert "| 2000/s | tinybench load | open | 99/s | – | 1 (1 to 1) | 900 (900 to 900) | – | 1 of 1 |" in told
    assert "- tinybench load at 2000/s: started late" in told


@once_undisturbed
def test_an_open_loop_tells_what_a_closed_one_hides(tmp_path: Path) -> None:
    def run(tool: str) -> dict[str, Any]:
        found = load.measured(Trial("tools", "quiet", 0, (tool, 200.0, (0.3, 3.0)), 0, Namespace(), tmp_path))
        return {"tool": tool, "asked": 200.0, **found}

    closed, ours = run(load.CLOSED), run(load.OURS)
    assert min(closed["truth"], ours["truth"]) > 0.2
    assert closed["reported"], closed["why"]
    assert closed["reported"] < closed["truth"] / 3
    assert all(load.goals([ours]).values()), ours


def test_histories_are_drawn_by_their_seed_with_steps_where_they_are_told() -> None:
    first, again = history.drawn("normal", 0.02, 3), history.drawn("normal", 0.02, 3)
    assert np.array_equal(first.ratios, again.ratios)
    assert len(first.steps) == 4
    for at in first.steps:
        jump = np.log(first.ratios[at : at + 20].mean() / first.ratios[at - 20 : at].mean())
        assert abs(abs(jump) - 0.02) < 0.006
    assert history.drawn("t, 2 df", 0, 3).steps == []


@pytest.mark.parametrize("rho", [0.2, 0.5])
def test_autocorrelation_is_as_told(rho: float) -> None:
    values = history.scatter(f"autocorrelation {rho}", 20_000, np.random.default_rng(0))
    assert np.corrcoef(values[1:], values[:-1])[0, 1] == pytest.approx(rho, abs=0.03)
    assert values.std() == pytest.approx(1, abs=0.05)


def test_neighbours_and_pelt_see_a_step() -> None:
    values = np.array([1.0, 1.01] * 20 + [1.5, 1.51] * 20)
    assert history.neighbours(values) == history.pelt(values) == [40]
    assert (40, 41) in history.pelt_online(values)


def test_what_is_told_is_matched_with_the_truth() -> None:
    seen = history.matched([50, 100], [(51, 53), (50, 70), (200, 201), (99, 98)])
    assert seen == {"delays": [4, 999], "off": [0, 999], "false": 1}


def test_too_many_alarms_and_late_ones_miss_the_goals() -> None:
    detector: dict[str, Any] = {"unit": "ratios", "way": "StepDetector"}
    found = [{**detector, "scatter": kind, "rang": 1, "of": 140} for kind in history.INDEPENDENT]
    assert all(history.goals(found).values())
    found[0]["rang"] = 9
    assert not any(history.goals(found).values())
    about = {"step": 0.02, "scatter": "normal", "way": "StepDetector"}
    for late, met in ((5, True), (6, False)):
        steps = {"delays": [3] * (100 - late) + [6] * late, "off": [1] * (85 - late) + [2] * (15 + late)}
        assert list(history.step_goals([{**about, **steps}]).values()) == [met, met]

"""What the two notebooks 16 show beside their servers: digits, incidents, equal data, users of two versions, and histories."""

from __future__ import annotations

import math
import socket
import sys
from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import tinybench
from tinybench import production, rollout
from tinybench.course.lessons import m16 as lesson
from tinybench.course.lessons import m16_dependence as dependence
from tinybench.course.lessons import m16_rollout as trial
from tinybench.course.lessons import m16_rollout_figures as rollout_figures
from tinybench.tools.rollout.plan import Checkpoint, Report


def test_shifted_digits_lose_what_leaves_the_picture() -> None:
    rows = np.arange(128, dtype=float).reshape(2, 64)
    once = lesson.moved_right(rows, 1).reshape(2, 8, 8)
    assert not once[:, :, 0].any()
    np.testing.assert_array_equal(once[:, :, 1:], rows.reshape(2, 8, 8)[:, :, :-1])
    np.testing.assert_array_equal(lesson.moved_right(rows, 0), rows)
    np.testing.assert_array_equal(lesson.moved_right(lesson.moved_right(rows, 1), 1), lesson.moved_right(rows, 2))


def test_no_digit_is_in_two_parts() -> None:
    digits = lesson.digits_in_production()
    assert (len(digits.reference), len(digits.X), len(digits.y)) == (397, 800, 800)
    right = [np.mean(digits.network.predict(lesson.moved_right(digits.X, k)) == digits.y) for k in range(3)]
    assert right[0] > 0.94 > 0.7 > right[1] > right[2]


def test_a_server_that_is_away_gives_nan() -> None:
    with socket.socket() as taken:  # and nobody listens
        taken.bind(("127.0.0.1", 0))
        answer = lesson.Client(f"http://127.0.0.1:{taken.getsockname()[1]}")(np.zeros((3, 64)))
    assert answer.shape == (3, 10)
    assert np.isnan(answer).all()


METRICS = """# TYPE t histogram
t_bucket{le="0.1"} %d.0
t_bucket{le="0.2"} %d.0
t_bucket{le="+Inf"} %d.0
t_count %d.0
t_sum 0.5
"""


def test_buckets_are_read() -> None:
    assert lesson.buckets(METRICS % (2, 5, 6, 6), "t") == ([0.1, 0.2, math.inf], [2, 5, 6])


def test_without_prometheus_metrics_are_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    name, clock = "tinybench_request_seconds", iter([100.0, 102.0, 104.0])
    texts = iter((METRICS % n).replace("t_", f"{name}_").replace(" t ", f" {name} ").encode() for n in TWICE)
    monkeypatch.setattr(lesson, "urlopen", lambda url: BytesIO(next(texts)))
    monkeypatch.setattr(lesson.time, "monotonic", lambda: next(clock))
    ask = lesson._own_reader("http://server")
    assert ask(lesson.QUESTIONS["requests / s"]) == [({}, pytest.approx(100 / 2))]
    assert ask(lesson.QUESTIONS["p99 (s)"]) == [({}, pytest.approx(0.1 + 0.1 * 39 / 40))]


TWICE = [(10, 10, 10, 10), (70, 110, 110, 110), (70, 110, 110, 110)]


def test_incidents_are_where_the_text_says() -> None:
    failed, total = map(np.diff, lesson.incidents())
    share = failed / total
    assert share[60] == pytest.approx(0.25, abs=0.05)
    assert share[150:190].mean() == pytest.approx(0.03, abs=0.002)
    assert np.delete(share, [60, *range(150, 190)]).max() < 0.005


def test_permutation_keeps_the_level_on_equal_data_and_the_rule_of_thumb_does_not() -> None:
    rates = lesson.alarms_on_equal((50,), trials=400)["rates"]
    assert rates["PSI > 0.1"][0] > 0.7
    assert max(rates["PSI, permuted"][0], rates["KS, permuted"][0]) < 0.1


def test_looking_again_rings_more_often_than_one_look() -> None:
    first = lesson.looking_again(production.DriftAlarm, production.ks, streams=60)
    rang = {name: np.mean(np.array(when) > 0) for name, when in first.items()}
    assert rang["a KS test every 20 values"] >= rang["one KS test at the end"]
    assert rang["DriftAlarm"] < 0.2


def test_the_difference_of_two_shares() -> None:
    z = trial.z_of_shares(np.array([30, 0]), np.array([20, 0]), 100)
    np.testing.assert_allclose(z, [0.1 / math.sqrt(2 * 0.25 * 0.75 / 100), 0])


def test_who_peeks_finds_more_in_equal_versions() -> None:
    equal = trial.experiments(rollout.share_e_value, 0.05, 0.0, looks=20, number=200)
    assert equal.share("peeking")[-1] > 0.15 > 0.05 > equal.share("anytime")[-1]
    assert (np.diff(equal.share("peeking")) >= 0).all()
    assert len(equal.when("peeking")) == 200 * equal.share("peeking")[-1]


def test_requests_of_one_user_are_not_independent() -> None:
    found = trial.alarms_by_unit((1, 20), trials=200)
    assert found["per request"][1] > 0.4
    assert max(found["per user"]) < 0.12


def test_another_process_evaluates() -> None:
    assert trial.in_another_process("6 * 7") == "42"


@pytest.mark.parametrize(
    ("plan", "status", "why"),
    [
        ({}, "promoted", ""),
        ({"slow": 0.1}, "rolled back", "slow answers"),
        ({"wrong": lambda answered: 0.1}, "rolled back", "differing answers"),
        ({"blind_from": 500}, "rolled back", "blind"),
    ],
)
def test_a_rehearsal_ends_as_it_must(plan: dict[str, object], status: str, why: str) -> None:
    done = trial.rehearse_rollout(vars(rollout), stage_users=1000, **plan)
    assert (done.end.status, done.end.why) == (status, why)
    assert (done.met == 0) == (not plan or "blind_from" in plan)


def test_noise_has_the_spread_it_says() -> None:
    for kind in ("normal", "slow"):
        errors = trial.noise(kind, np.random.default_rng(0), 20_000, spread=0.01)
        assert errors.std() == pytest.approx(0.01, rel=0.05)
    assert np.corrcoef(errors[1:], errors[:-1])[0, 1] == pytest.approx(0.7, abs=0.05)


def test_neighbours_and_false_alarms() -> None:
    assert trial.neighbours([1.0, 1.01, 1.04, 1.04, 1.0]) == [2, 4]
    rules = {"always": lambda values: [3], "never": lambda values: []}
    assert trial.false_alarms(rules, ("normal", "slow"), 5) == {"always": [1.0, 1.0], "never": [0.0, 0.0]}


def test_the_ratio_has_one_step_where_milliseconds_wander() -> None:
    history = trial.drifting_history()
    assert rollout.change_points(history.ratio.tolist(), permutations=199, level=0.02) == [history.step]


def test_after_the_whole_loop_the_modules_of_before_are_back() -> None:
    from tinybench.tools.rollout import engine

    functions = {name: value for name, value in vars(rollout).items() if name != "STAGES"}
    with pytest.raises(ImportError, match="STAGES"):  # so the engine was imported anew, on what was handed over
        trial.roll_out_here(functions, Path("none.onnx"), np.zeros((1, 64)), [0], fault="")
    assert sys.modules["tinybench.rollout"] is rollout
    assert sys.modules["tinybench.tools.rollout.engine"] is engine
    assert tinybench.rollout is rollout  # an import sets attributes too
    assert tinybench.tools.rollout.engine is engine


@pytest.mark.parametrize(
    ("state", "told", "seen"),
    [
        (rollout.RolloutState(3, "promoted"), "promoted", {"slow": 0.5, "labels": 0.2}),
        (
            rollout.RolloutState(1, "rolled back", 0, "labels"),
            "rolled back at 20 % of the users by labels",
            {"labels": 1e9},
        ),
        (rollout.RolloutState(0, "rolled back", 3, "blind"), "rolled back at 5 % of the users", {}),
    ],
)
def test_the_caption_of_the_real_rollout_is_what_came_of_it(
    state: rollout.RolloutState, told: str, seen: dict[str, float]
) -> None:
    looks = [
        Checkpoint(at, 0.05, state, bool(seen), "", seen, {}, 5, 5, (math.nan, late))
        for at, late in ((0.5, math.nan), (1, 2e-3))
    ]
    report = Report(state, looks, 100, 5, 2, seconds=1, watched_by="tinybench", stop_at=150)
    drawn = rollout_figures.figure_of_report(report)
    assert told in drawn["caption"]
    assert "2 of 100 users" in drawn["caption"]
    assert "our own reader" in drawn["caption"]
    assert "median latency" not in drawn["caption"]
    plt.close(drawn["figure"])


def test_the_alarm_rings_on_dependent_streams_until_their_values_are_spaced() -> None:
    every = dependence.alarms_unchanged(production.DriftAlarm, dependence.EVERY, streams=12)
    cured = dependence.alarms_unchanged(production.DriftAlarm, dependence.USERS, *dependence.SPACED, streams=12)
    (counted,) = every.values()
    assert counted[dependence.KINDS[0]].share < 0.4
    assert min(counted[kind].share for kind in dependence.KINDS[2:]) > 0.9
    assert sum(each.rang for by_kind in cured.values() for each in by_kind.values()) <= 20  # 5 % of 204: 10
    short, long = (cured[way] for way in dependence.SPACED)
    assert short["AR(1), φ = 0.95"].refused == 12
    assert long["AR(1), φ = 0.8"].refused == 0
    late = dependence.delays(production.DriftAlarm, streams=3)
    assert "100% refused" in dependence.table_of(cured, late)
    assert dependence.table_of(every).count("\n") == len(dependence.KINDS)
    figure = dependence.figure_of_dependence(every | cured)
    plt.close(figure["figure"])
    assert "12 streams of 1000 values of each kind" in figure["caption"]
    assert len(figure["data"]["stream"]) == 7


def test_streams_of_users_and_of_ar_have_the_deviation_they_say() -> None:
    rng = np.random.default_rng(1)
    for kind in dependence.KINDS:
        values, users = dependence.stream_of(kind, 50_000, rng)
        assert values.std() == pytest.approx(1, abs=0.1)
        assert len(np.unique(users)) == pytest.approx(50_000 / dependence.VALUES.get(kind, 1), abs=2)

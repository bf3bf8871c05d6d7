"""Workers that are counted rather than timed, laws of known numbers, and what must be refused."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import threading
import time
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from scipy import stats

from tests.benchmarks.scaling import covered, seconds_of
from tests.tinybench.odd_workers import mortal, noted
from tinybench.onnx import OnnxModel
from tinybench.result import BenchmarkResult
from tinybench.scaling import best_workers, fit_usl, speedup
from tinybench.support.profiling.scaling_laws import amdahl, efficiency, gustafson, usl
from tinybench.tools.scaling import measure as scaling
from tinybench.tools.scaling import workers
from tinybench.tools.scaling.fitted_laws import Estimate, fit_laws, free_usl, serial_share, with_interval
from tinybench.tools.scaling.measure import Scaling, default_workers, measure_scaling
from tinybench.tools.scaling.pinned_worker import calls_in, can_pin, own_cores, pinned
from tinybench.tools.scaling.workers import blas, inter_op, intra_op, processes, save_branches, threads


def rng() -> np.random.Generator:
    return np.random.default_rng(0)  # of its own in each test, whatever their order


def test_a_window_counts_calls_and_the_last_one_by_its_share() -> None:
    now = 0.0

    def call() -> None:
        nonlocal now
        now += 1.0

    def counted(begin: float, end: float) -> float:
        nonlocal now
        now = begin
        return calls_in(call, 0.0, end, lambda: now)

    assert counted(0.0, 3.5) == 3.5
    assert counted(0.0, 0.25) == 0.25
    assert counted(2.0, 3.0) == 1.0
    assert counted(5.0, 3.0) == 0.0  # it came too late for the window


def test_each_of_n_threads_works_and_they_end_with_the_block() -> None:
    seen: set[int] = set()
    before = threading.active_count()

    def call() -> None:
        seen.add(threading.get_ident())
        time.sleep(1e-3)

    with threads(call)([1, 3]) as measure:
        seen.clear()
        assert measure(3, 0.2, None) > 0
        assert len(seen) == 3
        seen.clear()
        measure(1, 0.02, None)
        assert len(seen) == 1
    for _ in range(1000):
        if threading.active_count() == before:
            break
        time.sleep(0.01)
    assert threading.active_count() == before


def test_as_many_threads_as_asked_for_are_at_work_together() -> None:
    lock, inside, most = threading.Lock(), 0, 0

    def call() -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.02)
        with lock:
            inside -= 1

    with threads(call)([1, 4]) as measure:
        for n in (1, 4):
            most = 0
            assert measure(n, 0.4, None) > 0
            assert most == n


def test_an_error_of_the_work_is_passed_on() -> None:
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        measure_scaling(threads(call), [1, 2])


def test_processes_are_started_once_work_and_end(tmp_path: Path) -> None:
    folder = tmp_path / "with a space"
    folder.mkdir()
    with processes(noted, str(folder))([1, 2]) as measure:
        started = [int(file.name) for file in folder.iterdir()]
        assert len(started) == 2
        assert os.getpid() not in started
        for n in (2, 1):
            assert measure(n, 0.3, None) > 0
        assert len(list(folder.iterdir())) == 2
    assert not any(map(psutil.pid_exists, started))


def test_a_process_that_dies_is_said() -> None:
    with pytest.raises(RuntimeError, match="worker process 1 ended with exit code 7"):
        measure_scaling(processes(mortal, 5), [1])
    with pytest.raises(RuntimeError, match="KeyError: 'nothing here'"):
        measure_scaling(processes("tests.tinybench.odd_workers:broken"), [1])


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only Linux tells the cores of a thread")
def test_all_threads_stay_on_the_cores_and_are_let_go() -> None:
    found: list[set[int]] = []
    one, before = own_cores()[:1], os.sched_getaffinity(0)
    with threads(lambda: found.append(os.sched_getaffinity(0)))([2]) as measure:
        found.clear()
        measure(2, 0.01, one)
        assert {frozenset(cores) for cores in found} == {frozenset(one)}
        found.clear()
        measure(2, 0.01, None)
        assert {frozenset(cores) for cores in found} == {frozenset(before)}
    assert os.sched_getaffinity(0) == before


def test_cores_are_given_back_also_after_an_error() -> None:
    if not can_pin():
        pytest.skip("this system pins nothing")
    before = own_cores()
    with suppress(OSError), pinned(before[:1]):
        assert own_cores() == before[:1]
        raise OSError("in between")
    assert own_cores() == before


def test_threads_of_the_runtime_and_of_blas_are_as_many_as_said(tmp_path: Path, monkeypatch: Any) -> None:
    path, X = save_branches(tmp_path / "with a space.onnx", 2, 16, 2), rng().normal(size=(3, 16)).astype(np.float32)
    assert OnnxModel(path).forward(X).shape == (3, 16)
    asked: list[tuple[int, int]] = []
    load = workers.load_session

    def noting(path: Path, options: Any) -> Any:
        asked.append((options.intra_op_num_threads, options.inter_op_num_threads))
        return load(path, options)

    monkeypatch.setattr(workers, "load_session", noting)
    monkeypatch.setattr("tinybench.onnx.load_session", noting)
    for way, expected in ((intra_op, [(1, 1), (3, 1)]), (inter_op, [(1, 1), (1, 3)])):
        asked.clear()
        with way(path, X)([1, 3]) as measure:
            assert measure(3, 0.01, None) > 0
        assert asked == expected


def test_blas_has_as_many_threads_as_said_and_then_those_of_before(monkeypatch: Any) -> None:
    from threadpoolctl import threadpool_info

    def had() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before, seen = had(), list[list[int]]()
    if not before:
        with pytest.raises(ValueError, match="no BLAS library"), blas(print)([1]):
            pass
        return
    with blas(lambda: seen.append(had()))([1]) as measure:
        measure(1, 0.01, None)
    assert {max(each) for each in seen} == {1}
    assert had() == before
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: [{"user_api": "blas", "num_threads": 1}])
    with pytest.raises(ValueError, match="1 thread at most, not 2"), blas(print)([1, 2]):
        pass


@contextmanager
def made_up(numbers: Any) -> Any:
    """Stand for a way whose n workers are n times as fast, and note what they were asked for."""
    asked.append(("started", numbers))
    yield lambda n, window, cores: (asked.append((n, cores)), 10.0 * n)[1]


asked: list[Any] = []


def test_every_number_has_its_turn_in_every_round_in_another_order(monkeypatch: Any) -> None:
    asked.clear()
    monkeypatch.setattr(scaling, "own_cores", lambda: [4, 6])
    monkeypatch.setattr(scaling, "can_pin", lambda: True)
    found = measure_scaling({"x": made_up}, [4, 1, 2, 2], 6, window=0.5, pin=["x"], seed=3)
    (_, numbers), *turns = asked
    assert numbers == [1, 2, 4]
    rounds = [turns[i : i + 6] for i in range(0, 36, 6)]
    arms = [(1, None), (1, [4]), (2, None), (2, [4, 6]), (4, None), (4, [4, 6])]
    assert all(sorted(each, key=str) == sorted(arms, key=str) for each in rounds)
    assert len({str(each) for each in rounds}) > 1
    assert found.seconds("x") == {n: [0.5 / 10 / n] * 6 for n in (1, 2, 4)}
    assert list(found.results) == ["x", "x, pinned"]
    result = found.results["x, pinned"][1]
    assert (result.unit, result.metadata["pinned_to"], result.metadata["usable_cores"]) == ("s", [4], 2)
    assert [row["speedup"] for row in found.rows()[:3]] == pytest.approx([1, 2, 4])
    with pytest.raises(ValueError, match=re.escape("the way is None; measured were x, x, pinned")):
        found.seconds()
    json.dumps(found.to_dict(), allow_nan=False)
    assert "4.00" in str(found)
    assert "<table>" in found._repr_mimebundle_()["text/html"]


def test_a_measurement_waits_for_threads_that_spin_but_not_for_ever() -> None:
    used, now = iter([0.0, 0.2, 0.2, 0.4, 0.4, 0.4, 0.6]), itertools.count()
    scaling.quiet(100, lambda: next(used), lambda: next(now))
    assert list(used) == [0.6]  # quiet at the third look
    busy, now = itertools.count(), itertools.count()
    scaling.quiet(5, lambda: next(busy), lambda: next(now))
    assert next(busy) == 8  # four looks


def test_what_cannot_be_seen_is_said(monkeypatch: Any) -> None:
    monkeypatch.setattr(scaling, "own_cores", lambda: [0])
    monkeypatch.setattr(scaling, "_granted", lambda cores: None)
    assert any("one core" in note for note in measure_scaling(made_up, [1, 2], 6).notes)
    monkeypatch.setattr(scaling, "can_pin", lambda: False)
    found = measure_scaling({"x": made_up}, [1], 6, pin=["x"])
    assert list(found.results) == ["x"]
    assert any("nothing was pinned" in note for note in found.notes)
    monkeypatch.setattr(scaling, "own_cores", lambda: [0, 1])
    monkeypatch.setattr(scaling, "_granted", lambda cores: 0.5)
    assert any("grants 0.5 of 2 cores" in note for note in measure_scaling(made_up, [1], 6).notes)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"rounds": 5}, "rounds is 5"),
        ({"workers": [0, 1]}, "number of workers is 0"),
        ({"workers": []}, "nothing to measure"),
        ({"window": 0.0}, "nothing to measure"),
        ({"pin": ["y"]}, "pin names 'y'"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(how: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measure_scaling({"x": made_up}, **how)


def test_default_numbers_reach_twice_the_cores() -> None:
    assert default_workers(1) == [1, 2, 3, 4]
    assert default_workers(2) == [1, 2, 3, 4]
    assert default_workers(8) == [1, 2, 3, 4, 6, 8, 12, 16]
    assert default_workers(6) == [1, 2, 3, 4, 6, 8, 12]


@pytest.mark.parametrize("rounds", [4, 11])
def test_an_interval_of_a_ratio_is_that_of_a_trimmed_mean(rounds: int) -> None:
    drawn = rng()
    seconds = {1: drawn.lognormal(0, 0.1, rounds).tolist(), 2: drawn.lognormal(-0.5, 0.2, rounds).tolist()}
    found = with_interval(lambda s: math.log(s[1] / s[2]), seconds, 0.9, draws=20_000)
    logs, cut = np.log(np.divide(seconds[1], seconds[2])), rounds // 5
    expected = stats.t.interval(0.9, rounds - 1, logs.mean(), stats.sem(logs))
    if cut:
        expected = stats.mstats.trimmed_mean_ci(logs, (cut / rounds, cut / rounds), alpha=0.1)
    assert found.value == pytest.approx(stats.trim_mean(logs, cut / rounds))
    assert (found.low, found.high) == pytest.approx(expected, abs=0.05 * (expected[1] - expected[0]))
    assert found.confidence == 0.9


def test_one_round_that_went_wrong_moves_nothing() -> None:
    seconds = seconds_of(lambda n: usl(n, 0.1, 0.02), [1, 2, 4, 8], 10, "2 %", rng())
    spoilt = {n: [20 * values[0] if n == 4 else values[0], *values[1:]] for n, values in seconds.items()}
    plain, other = fit_laws(seconds, draws=200), fit_laws(spoilt, draws=200)
    assert other.crosstalk.value == pytest.approx(plain.crosstalk.value, rel=0.1)
    assert other.best.high < 1.3 * plain.best.high


def test_what_a_round_has_in_common_changes_nothing() -> None:
    seconds = seconds_of(lambda n: usl(n, 0.1, 0.02), [1, 2, 4, 8], 6, "2 %", rng())
    drifted = {n: (np.array(values) * [1, 5, 0.2, 3, 1, 9]).tolist() for n, values in seconds.items()}
    plain, moved = fit_laws(seconds, draws=200), fit_laws(drifted, draws=200)
    assert moved.crosstalk.low == pytest.approx(plain.crosstalk.low)
    assert moved.best.high == pytest.approx(plain.best.high)


def test_known_laws_are_found_and_their_intervals_hold() -> None:
    seconds = seconds_of(lambda n: usl(n, 0.08, 0.015), range(1, 9), 12, "1 %", rng())
    found = fit_laws(seconds, draws=400)
    for estimate, true in ((found.contention, 0.08), (found.crosstalk, 0.015), (found.best, best_workers(0.08, 0.015))):
        assert estimate.value == pytest.approx(true, rel=0.15)
        assert estimate.low < estimate.value < estimate.high
    assert found.best_measured.low <= 8 >= found.best_measured.high >= found.best_measured.low >= 6
    hits = covered("ours", (0.0, 0.02), "1, 2, 4, 8", 6, "5 %", 60)  # a bound: where bounded fits are too narrow
    assert min(hits) > 0.87
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_laws_agree_with_exact_fractions() -> None:
    for n, serial, pairs in ((1, 0.3, 0.1), (4, 0.25, 0.125), (9, 0.0, 0.02), (50, 1.0, 0.0)):
        one, rest = Fraction(serial), 1 - Fraction(serial)
        assert amdahl(n, serial) == pytest.approx(float(1 / (one + rest / n)))
        assert gustafson(n, serial) == pytest.approx(float(one + rest * n))
        lost = one * (n - 1) + Fraction(pairs) * 2 * math.comb(n, 2)
        assert usl(n, serial, pairs) == pytest.approx(float(n / (1 + lost)))
    assert efficiency({4: 4.0, 1: 1.0, 2: 1.6}) == {4: 1.0, 1: 1.0, 2: 0.8}


def test_shares_are_found_also_at_their_ends() -> None:
    for law in (amdahl, gustafson):
        for share in (0.0, 0.3, 1.0):
            assert serial_share(law, {n: law(n, share) for n in (1, 2, 5)}) == pytest.approx(share, abs=1e-4)
    assert serial_share(amdahl, {1: 1.0, 2: 2.4}) == 0.0  # more than linear


def test_a_fit_without_bounds_is_the_bounded_one_where_it_stays_inside() -> None:
    gains = {n: usl(n, 0.2, 0.01) for n in (1, 2, 3, 6)}
    assert free_usl(gains) == pytest.approx(fit_usl(gains))
    assert free_usl({1: 1.0, 2: 2.2, 4: 3.0})[0] == 0.0


def test_without_crosstalk_the_best_number_is_at_least_so_many() -> None:
    found = fit_laws(seconds_of(lambda n: amdahl(n, 0.1), [1, 2, 4, 8], 10, "2 %", rng()), draws=300)
    assert math.isinf(found.best.high)
    assert str(found.best).startswith(("at least", "without end"))
    assert str(Estimate(math.inf, math.inf, math.inf)) == "without end (95 % CI)"
    assert str(Estimate(0.12, 0.081, 0.15)) == "0.12 (95 % CI 0.08 to 0.15)"
    assert found.to_dict()["best"]["high"] is None


def test_a_law_that_does_not_hold_says_so() -> None:
    kinked = {n: [1 / min(n, 2) * 1.01**i for i in range(6)] for n in (1, 2, 4, 8)}
    notes = " ".join(fit_laws(kinked, draws=100).notes)
    assert "Gustafson's law is off" in notes
    assert "not for a law that does not hold" in notes
    rising = seconds_of(lambda n: usl(n, 0.02, 0.001), [1, 2, 3], 6, "0.1 %", rng())
    assert any("beyond the 3 workers" in note for note in fit_laws(rising, draws=100).notes)


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        ({1: [1.0] * 6, 2: [0.6] * 6}, "workers: 1, 2; a law with 2 unknown numbers takes 1 and at least 2 other"),
        ({2: [1.0] * 6, 3: [0.6] * 6, 4: [0.5] * 6}, "takes 1"),
        ({}, "workers: none"),
        ({1: [1.0] * 6, 2: [0.6] * 5, 3: [0.5] * 6}, "5 or 6 rounds"),
        ({1: [1.0] * 2, 2: [0.6] * 2, 3: [0.5] * 2}, "2 rounds; at least 3"),
        ({1: [1.0] * 6, 2: [0.0] * 6, 3: [0.5] * 6}, "finite and above 0"),
    ],
)
def test_seconds_that_determine_nothing_are_refused(seconds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_laws(seconds)


def test_one_other_number_determines_one_share() -> None:
    seconds = {1: [1.0, 1.1, 1.0], 2: [0.6, 0.66, 0.6]}
    found = with_interval(lambda s: serial_share(amdahl, speedup(s)), seconds, draws=50)
    assert found.value == pytest.approx(0.2, abs=1e-3)


def test_speedups_need_the_time_of_one() -> None:
    results = {n: BenchmarkResult("seconds per call", [1.0] * 6, {}, unit="s") for n in (2, 3)}
    found = Scaling({"x": results})
    assert [row["speedup"] for row in found.rows()] == [None, None]
    assert "–" in str(found)

"""What a run of requests tells, what it refuses to tell, and the loops that make it."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tinybench.course.lessons.m14_servers import Desk, Stage, one_user, simulated_stall
from tinybench.load import LoadResult, arrivals, closed_loop, open_loop
from tinybench.support.traffic.load_checks import growth
from tinybench.support.traffic.request_times import HEAD_START, RequestTimes


def steady(number: int = 2000, rate: float = 100.0, failed: int = 0, late: float = 0.0) -> LoadResult:
    times = np.arange(number) / rate
    rng = np.random.default_rng(0)
    finished = times + late + 0.01 * rng.uniform(1, 2, number)
    return LoadResult(times, times + late, finished, np.arange(number) >= failed, number / rate, {"loop": "open"})


def test_a_steady_run_has_its_percentiles() -> None:
    result = steady()
    low, high = result.percentile_ci(99)
    assert low <= result.percentile(99) <= high < 0.02
    assert result.percentile(50) == pytest.approx(0.015, rel=0.03)
    assert result.throughput == pytest.approx(100, rel=0.01)
    assert result.goodput(0.015) == pytest.approx(50, rel=0.1)
    assert result.latency().count == 2000
    assert result.latency().unit == "s"


def test_failed_requests_stay_in_every_percentile() -> None:
    assert steady(failed=10).percentile(99) > steady().percentile(99)
    with pytest.raises(ValueError, match=r"1\.5% of the requests failed, so p99 is infinite"):
        steady(failed=30).percentile(99)
    assert steady(failed=30).goodput(0.1) == pytest.approx(98.5)
    assert math.isinf(steady(failed=30).latencies.max())


@pytest.mark.parametrize(
    ("result", "q", "said"),
    [(steady(499), 99, "499 requests are too few for p99: send 500 or more"),
     (steady(late=0.005), 99, "the load generator itself started requests late: p99 is .* ms from when they were due")],
)  # fmt: skip
def test_what_cannot_be_told_is_refused(result: LoadResult, q: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        result.percentile(q)


def test_many_at_the_same_time_are_no_growing_queue() -> None:
    times = arrivals(400, 2, seed=1)
    run = LoadResult(times, times, times + 0.2, np.ones(len(times), dtype=bool), 2.0, {"loop": "open"})
    assert run.backlog(1.5) > 2 * np.sqrt(len(times))
    assert growth(run) == 0


def test_beyond_capacity_there_is_no_percentile_but_a_growth() -> None:
    times = np.arange(3000) / 300
    finished = np.arange(1, 3001) / 200  # 200 a second are served
    result = LoadResult(times, times, finished, np.full(3000, True), 10.0, {"loop": "open"})
    assert result.backlog([0.0, 10.0]).tolist() == [1, 1000]
    with pytest.raises(ValueError, match="the backlog grew by 100 requests a second and never came back"):
        result.percentile(50)


def test_a_closed_loop_is_never_late_nor_grows() -> None:
    result = closed_loop(Desk(0.002), users=2, think=0.001, seconds=0.3)
    assert result.lateness.max() == 0
    assert result.metadata["loop"] == "closed"
    assert result.percentile(50) >= 0.002


@pytest.mark.parametrize("column", ["started", "finished", "ok"])
def test_a_row_has_all_its_columns(column: str) -> None:
    columns = {"intended": [0.0, 1.0], "started": [0.0, 1.0], "finished": [0.5, 1.5], "ok": [True, True]}
    with pytest.raises(ValueError, match=f"{column} has 1 rows, intended 2"):
        LoadResult(**columns | {column: columns[column][:1]}, seconds=2.0)


@pytest.mark.parametrize("times", [[], [0.0, math.nan], [1.0, 0.5], [[1.0]]])
def test_arrivals_that_are_none_are_refused(times: list[float]) -> None:
    with pytest.raises(ValueError, match="arrivals are"):
        open_loop(lambda i: None, times)


@pytest.mark.parametrize("how", [(0, 1), (1, math.inf), (5, 1, "regular")])
def test_arrivals_need_a_rate_a_time_and_a_known_word(how: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"give a finite number above 0|it is 'poisson' or 'constant'"):
        arrivals(*how)


def test_rows_come_back_from_a_file(tmp_path: Path) -> None:
    result = steady(40, failed=3)
    result.save(tmp_path / "run.csv")
    again = LoadResult.load(tmp_path / "run.csv")
    for name in ("intended", "started", "finished", "ok"):
        assert getattr(again, name).tolist() == getattr(result, name).tolist()
    assert (again.seconds, again.metadata) == (result.seconds, result.metadata)
    for text in (
        "",
        "a,b\n1,2\n",
        "# {\nintended,started,finished,ok\n",
        "# {}\nintended,started,finished,ok\n1,2,3,x\n",
    ):
        (tmp_path / "other.csv").write_text(text)
        with pytest.raises(ValueError, match=r"not written by LoadResult\.save, or is damaged"):
            LoadResult.load(tmp_path / "other.csv")


def test_a_request_that_raises_or_returns_false_failed() -> None:
    def send(i: int) -> bool | None:
        if i == 1:
            raise OSError("the server closed the connection")
        return False if i == 2 else None

    stage = Stage()
    result = open_loop(send, [0.0, 0.5, 1.0, 1.5], pool=stage, clock=stage.clock, sleep=stage.sleep)
    assert result.ok.tolist() == [True, False, False, True]
    assert result.started.tolist() == [0.0, 0.5, 1.0, 1.5]


def test_nobody_waits_for_an_answer() -> None:
    together = threading.Barrier(20)
    result = open_loop(lambda i: together.wait(timeout=30), np.zeros(20))
    assert result.ok.all()


def test_threads_of_its_own_start_no_request_before_its_time() -> None:
    begun: list[float] = []
    result = open_loop(lambda i: begun.append(time.perf_counter()), arrivals(200, 0.5, seed=1))
    assert (result.lateness >= 0).all()
    assert len(begun) == len(result.ok)


def test_a_head_start_is_only_for_threads_of_its_own_and_the_real_clock() -> None:
    due = np.array([0.0])
    ahead = RequestTimes(print, 1, time.perf_counter, due)
    assert ahead.zero - ahead.begin == pytest.approx(HEAD_START)
    assert RequestTimes(print, 1, lambda: 7.0, due).zero == 7.0
    seen: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tinybench.support.traffic.request_times.wait_until", seen.append)
        open_loop(lambda i: None, [0.0, 0.01])
        assert len(seen) == 2
        with ThreadPoolExecutor(1) as pool:
            open_loop(lambda i: None, [0.0, 0.01], pool=pool)
        assert len(seen) == 2
    plain = RequestTimes(print, 1, time.perf_counter)
    assert plain.zero == plain.begin


def test_a_record_waits_for_what_was_submitted_and_no_more() -> None:
    record = RequestTimes(lambda i: None, 3, time.perf_counter)
    with ThreadPoolExecutor(1) as pool:
        record.submit(pool, 0)
        record.wait()
        record.wait()
    assert np.isfinite(record.finished).tolist() == [True, False, False]
    cancelled: Future[None] = Future()
    cancelled.cancel()
    record._finish(1, cancelled)
    assert not record.ok[1]


def test_the_simulated_stall_is_seen_by_many_and_not_by_one() -> None:
    one, many = simulated_stall(2000)
    assert one.percentile(99) == pytest.approx(0.001)
    assert many.percentile(99) == pytest.approx(0.1 + 0.9 * 0.9, abs=0.01)
    assert many.latency.mean() == pytest.approx(0.057, rel=0.05)


def test_one_user_sends_waits_and_thinks() -> None:
    run = one_user(lambda: time.sleep(0.001), 0.1, think=0.004)
    assert 1 <= len(run.latency) <= 20
    assert run.latency.min() >= 0.001

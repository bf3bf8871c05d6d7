"""`tinybench serve` when things go wrong: workers die, too many ask, clients leave, somebody stops it."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest

from autograder import time_limits
from tests.tinybench.servers import Served, double, patient, request, served
from tests.tinybench.test_serving import metrics, received

pytestmark = pytest.mark.slow
SECOND = 400_000  # steps of `patient` that take about that long; nothing depends on how long exactly
REQUESTS = 10_000


def wait_until(true: Callable[[], object], seconds: float = 10) -> None:
    """Wait until something is so; fail where it does not become so."""
    end = time.monotonic() + time_limits.wall(seconds)
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def state(server: Served) -> tuple[float, float, float]:
    """Return how many requests have no answer yet, how many of them wait, and how many workers have died."""
    found = metrics(server)
    names = ("requests_open", "queue_length", "worker_restarts_total")
    opened, waiting, died = (found[f"tinybench_{name}", ""] for name in names)
    return opened, waiting, died


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return patient(tmp_path_factory.mktemp("slow") / "patient.onnx")


@pytest.fixture
def others() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


async def ask_all(server: Served, numbers: list[int], halfway: Callable[[], None]) -> dict[int, list[bytes]]:
    """Ask about each number once, on 16 connections, and return all answers of each."""
    left, answers = iter(numbers), dict[int, list[bytes]]()

    async def user() -> None:
        reader, writer = await asyncio.open_connection(*server.address)
        for number in left:
            if len(answers) == len(numbers) // 2:
                halfway()
            writer.write(request([[number, 0, -number, 1]]))
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            answers.setdefault(number, []).append(head[9:12] + await reader.readexactly(size))
        writer.write_eof()
        assert await reader.read() == b"", "nothing comes after the last answer"
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(user() for _ in range(16)))
    return answers


@pytest.mark.parametrize("max_batch", ["8", pytest.param("1", marks=pytest.mark.audit)])
def test_no_request_is_lost_or_answered_twice_when_workers_die(tmp_path: Path, max_batch: str) -> None:
    trace = tmp_path / "trace.csv"
    options = ["--workers", "2", "--max-batch", max_batch, "--max-wait", "1ms", "--timeout", "5min"]
    with served(double(tmp_path / "double.onnx"), *options, "--trace", str(trace)) as server:
        first = server.workers()
        killed: list[int] = []

        def halfway() -> None:
            if not killed:
                killed.append(first[0].pid)
                first[0].suspend()  # so that it dies of a kill in the middle of a batch
                asyncio.get_running_loop().call_later(0.3, first[0].kill)

        numbers = list(range(1, 1 + (REQUESTS if max_batch == "8" else REQUESTS // 5)))
        answers = asyncio.run(ask_all(server, numbers, halfway))
        right = {n: [b"200" + json.dumps({"outputs": [[2.0 * n, 0.0, -2.0 * n, 2.0]]}).encode()] for n in numbers}
        assert not {n: answers.get(n) for n in numbers if answers.get(n) != right[n]}
        wait_until(lambda: server.ask("GET", "/health")[2]["workers"] == 2)
        assert metrics(server)["tinybench_worker_restarts_total", ""] == 1
        assert killed[0] not in [worker.pid for worker in server.workers()]
    rows = np.genfromtxt(trace, delimiter=",", names=True)
    assert rows["code"].tolist() == [200] * len(numbers)
    assert sorted(rows["request_id"]) == numbers
    assert (rows["batch"].max() > 1) == (max_batch == "8")


def test_a_request_that_kills_two_workers_is_given_up_and_the_others_are_answered(
    slow: Path, others: ThreadPoolExecutor
) -> None:
    with served(slow, "--max-wait", "10min", "--max-batch", "2", "--timeout", "20min") as server:
        poison = others.submit(server.predict, [[1000 * SECOND]])
        wait_until(lambda: state(server) == (1, 1, 0))
        innocent = others.submit(server.predict, [[1]])
        wait_until(lambda: state(server) == (2, 0, 0))
        server.workers()[0].kill()  # they were in one batch; now the poison is tried alone
        wait_until(lambda: state(server) == (2, 1, 1))
        server.workers()[0].kill()
        assert innocent.result() == (200, [[1]])
        assert poison.result() == (500, "two workers died of this request; it is not tried again")
        assert list(others.map(server.predict, [[[2]], [[3]]])) == [(200, [[2]]), (200, [[3]])]


def test_too_many_are_told_when_to_come_again(slow: Path, others: ThreadPoolExecutor) -> None:
    options = ["--max-batch", "1", "--max-queue", "4", "--timeout", "5min"]
    with served(slow, *options) as server:
        assert server.predict([[SECOND]])[0] == 200  # by now it knows how long one takes
        answers = list(others.map(lambda n: server.ask("POST", "/predict", {"inputs": [[SECOND + n]]}), range(16)))
        refused = [(headers, answer["detail"]) for status, headers, answer in answers if status == 503]
        assert 16 - len(refused) == sum(status == 200 for status, _, _ in answers) >= 5
        assert refused
        for headers, detail in refused:
            assert detail == f"too many requests wait already; try again in {headers['retry-after']} s"
            assert 1 <= int(headers["retry-after"]) <= time_limits.wall(60)
        assert server.predict([[3]]) == (200, [[3]])


def test_a_request_that_waited_too_long_is_not_begun(slow: Path, others: ThreadPoolExecutor, tmp_path: Path) -> None:
    """Nor does a worker go on for ever with one that nobody waits for: it is killed, and another takes its place."""
    trace = tmp_path / "trace.csv"
    with served(slow, "--max-batch", "1", "--timeout", "3s", "--trace", str(trace)) as server:
        begun = others.submit(server.predict, [[1000 * SECOND]])
        wait_until(lambda: state(server) == (1, 0, 0))
        waits = others.submit(server.predict, [[7]])
        for late in (begun.result(), waits.result()):
            assert late[0] == 503
            assert late[1].startswith("no answer within 3 s; try again in ")
        wait_until(lambda: metrics(server)["tinybench_worker_restarts_total", ""] == 1)
        wait_until(lambda: server.predict([[8]]) == (200, [[8]]))
    rows = np.genfromtxt(trace, delimiter=",", names=True)
    assert rows["code"][:2].tolist() == [503, 503]
    assert np.isnan(rows["started"][1]), "the second never got to the worker"


def test_a_client_that_leaves_costs_nothing(slow: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    with served(slow, "--max-batch", "1", "--timeout", "5min", "--trace", str(trace)) as server:
        stays = server.raw(request([[2 * SECOND]], "Connection: close"))
        for _ in range(50):  # together they would take forever
            server.raw(request([[1000 * SECOND]], "X-Request-Id: left")).close()
        assert b'{"outputs": [[800000.0]]}' in received(stays)
        assert server.predict([[1]]) == (200, [[1]])
        assert metrics(server)["tinybench_requests_total", "499"] == 50
    rows = np.genfromtxt(trace, delimiter=",", names=True, dtype=None, encoding="utf-8")
    left = rows[rows["request_id"] == "left"]
    assert left["code"].tolist() == [499] * 50
    assert np.isnan(left["started"]).all()


@pytest.mark.parametrize(
    ("number", "max_batch"), [(signal.SIGTERM, "1"), pytest.param(signal.SIGINT, "8", marks=pytest.mark.audit)]
)
def test_it_finishes_what_it_began(
    slow: Path, tmp_path: Path, number: signal.Signals, max_batch: str, others: ThreadPoolExecutor
) -> None:
    trace = tmp_path / "trace.csv"
    options = ["--timeout", "5min", "--max-batch", max_batch, "--trace", str(trace)]
    with served(slow, *options) as server, server.raw() as idle, server.raw() as doctor:
        workers, steps = server.workers(), [8 * SECOND, 2, 1]
        begun = [others.submit(server.predict, [[steps[0]]])]
        wait_until(lambda: state(server) == (1, 0, 0))
        begun += [others.submit(server.predict, [[n]]) for n in steps[1:]]
        wait_until(lambda: state(server)[0] == 3)
        server.process.send_signal(number)
        wait_until(lambda: refuses(server))
        idle.sendall(request([[1]]))
        answer = received(idle)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"the server is stopping" in answer
        assert b"retry-after: " in answer
        doctor.sendall(b"GET /health HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        assert b'"status":"draining"' in (answer := received(doctor))
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert [each.result() for each in begun] == [(200, [[n]]) for n in steps]
        assert server.process.wait(time_limits.wall(30)) == 0
        assert not any(worker.is_running() for worker in workers)
    rows = np.genfromtxt(trace, delimiter=",", names=True)
    assert sorted(rows["code"]) == [200] * 3 + [503]


@pytest.mark.parametrize(
    ("signals", "max_batch"),
    [(1, "8"), (2, "1"), *(pytest.param(*case, marks=pytest.mark.audit) for case in ((1, "1"), (2, "8")))],
)
def test_it_stops_in_time_although_a_worker_does_not(
    slow: Path, others: ThreadPoolExecutor, max_batch: str, signals: int
) -> None:
    """Within the timeout of a request; at the second Ctrl-C at once."""
    with served(slow, "--max-batch", max_batch, "--timeout", "2s" if signals == 1 else "20min") as server:
        workers = server.workers()
        with server.raw(request([[1000 * SECOND]])), server.raw(request([[1000 * SECOND]])):
            wait_until(lambda: state(server)[0] == 2)
            for _ in range(signals):
                server.process.send_signal(signal.SIGINT)
                wait_until(lambda: refuses(server))
            assert server.process.wait(time_limits.wall(30)) == 0
        assert psutil.wait_procs(workers, time_limits.wall(5))[1] == []


def refuses(server: Served) -> bool:
    """Whether nobody listens any more."""
    try:
        server.raw().close()
    except (ConnectionRefusedError, ConnectionResetError):  # reset: it went while this one waited in its queue
        return True
    return False


def test_a_server_whose_workers_cannot_start_again_says_so_and_recovers(tmp_path: Path) -> None:
    model = double(tmp_path / "double.onnx")
    with served(model, "--max-batch", "1", "--timeout", "2s") as server:
        model.rename(tmp_path / "elsewhere.onnx")
        server.workers()[0].kill()
        wait_until(lambda: server.ask("GET", "/health")[0] == 503)
        assert server.ask("GET", "/health")[2]["status"] == "no worker"
        assert server.predict([[1, 2, 3, 4]])[0] == 503
        (tmp_path / "elsewhere.onnx").rename(model)
        wait_until(lambda: server.ask("GET", "/health")[0] == 200)
        assert server.predict([[1, 2, 3, 4]]) == (200, [[2, 4, 6, 8]])


def test_workers_end_with_a_front_that_is_killed(slow: Path) -> None:
    with served(slow, "--workers", "2") as server, server.raw(request([[1000 * SECOND]])):
        wait_until(lambda: state(server) == (1, 0, 0))
        workers = server.workers()  # one works, one waits
        server.process.kill()
        server.process.wait()
        assert psutil.wait_procs(workers, time_limits.wall(20))[1] == []


def test_workers_that_a_signal_to_all_reaches_go_on(tmp_path: Path) -> None:
    with served(double(tmp_path / "double.onnx"), "--workers", "2") as server:
        for worker in server.workers():
            worker.send_signal(signal.SIGINT)
            worker.terminate()
        for _ in range(4):
            assert server.predict([[1, 2, 3, 4]]) == (200, [[2, 4, 6, 8]])
        assert metrics(server)["tinybench_worker_restarts_total", ""] == 0


def test_a_stall_by_order_is_in_the_trace(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    with served(double(tmp_path / "d.onnx"), "--max-batch", "1", "--stall", "1s/3s", "--trace", str(trace)) as server:
        end = time.monotonic() + 6.5
        while time.monotonic() < end:
            assert server.predict([[1, 2, 3, 4]])[0] == 200
            time.sleep(0.01)
    rows = np.genfromtxt(trace, delimiter=",", names=True)
    waits = rows["started"] - rows["received"]
    assert waits[0] < 0.8, "the stall is the end of its time"
    assert (waits > 0.8).sum() == 2, "each stall holds one request of a user who waits for the answer"
    assert waits.max() < 1 + time_limits.wall(0.2)
    assert np.median(waits) < 0.2


def test_a_trace_that_cannot_be_written_costs_the_trace_only(tmp_path: Path) -> None:
    with served(double(tmp_path / "double.onnx"), "--trace", "/dev/full") as server:
        assert server.predict([[1, 2, 3, 4]]) == (200, [[2, 4, 6, 8]])
        wait_until(lambda: "the trace ends here" in server.complained())
        assert server.predict([[1, 2, 3, 4]]) == (200, [[2, 4, 6, 8]])
        server.process.terminate()
        assert server.process.wait(time_limits.wall(30)) == 3

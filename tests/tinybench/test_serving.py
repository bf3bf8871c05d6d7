"""`tinybench serve` as its users meet it: answers, limits, what it says to strangers, and what it counts."""

from __future__ import annotations

import json
import random
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.tinybench.servers import WIDTH, Served, double, request, save_graph, served
from tinybench.shell.cli import WRONG, main
from tinybench.shell.options import duration, size, stalls

pytestmark = pytest.mark.slow
MOST = 64 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    with served(double(folder / "double.onnx"), "--max-body", "64kB", "--trace", str(folder / "trace.csv")) as server:
        yield server


def received(connection: socket.socket) -> bytes:
    """Return what comes until the server closes, and close too."""
    with connection:
        pieces = []
        while piece := connection.recv(2**16):
            pieces.append(piece)
    return b"".join(pieces)


def test_it_says_what_it_serves_and_answers(server: Served) -> None:
    assert server.line == f"serving double.onnx on {server.url} (1 worker of 1 thread, batches of 8 within 2 ms)\n"
    rows = np.random.default_rng(0).normal(size=(256, WIDTH)).astype(np.float32).astype(float)
    assert server.predict(rows.tolist()) == (200, (rows + rows).tolist())
    assert server.predict([[1, 2, 3, 4.5]]) == (200, [[2, 4, 6, 9]])
    about = {"model": "double.onnx", "workers": 1, "input": {"shape": [4], "dtype": "float32"}}
    assert server.ask("GET", "/health")[::2] == (200, {"status": "ok", **about})


@pytest.mark.parametrize("name", ["a", "7, with a comma", "x" * 128])
def test_a_request_keeps_its_name(server: Served, name: str) -> None:
    status, headers, _ = server.ask("POST", "/predict", {"inputs": [[1] * WIDTH]}, X_Request_Id=name)
    assert (status, headers["x-request-id"]) == (200, name)


@pytest.mark.parametrize(
    ("method", "path", "status", "sentence"),
    [
        ("GET", "/", 404, "there is no /; there are POST /predict, GET /health, GET /metrics"),
        ("POST", "/predict/", 404, "there is no /predict/"),
        ("GET", "/docs", 404, "there is no /docs"),
        ("GET", "/predict", 405, "/predict takes POST, not GET"),
        ("POST", "/health", 405, "/health takes GET, not POST"),
        ("BREW", "/metrics", 400, "this is no HTTP request"),
        ("DELETE", "/metrics", 405, "/metrics takes GET, not DELETE"),
    ],
)
def test_what_there_is_not_is_said(server: Served, method: str, path: str, status: int, sentence: str) -> None:
    found, _, answer = server.ask(method, path)
    assert (found, answer["detail"].startswith(sentence)) == (status, True)


@pytest.mark.parametrize(
    ("headers", "body", "status", "sentence"),
    [
        ({}, b"nonsense", 422, "the body is not JSON"),
        ({}, b"", 422, "the body is not JSON"),
        ({}, json.dumps({"inputs": [[1, 2, 3]]}).encode(), 422, "inputs[0] has 3 numbers, the model takes 4"),
        ({}, b" " * (MOST + 1), 413, f"the body is larger than {MOST} bytes"),
        ({"Content_Type": "text/plain"}, b"{}", 422, "the body is text/plain; send application/json"),
        ({"Content_Type": "application/json; charset=utf-8"}, b"{}", 422, "the body has no inputs"),
        ({"Content_Encoding": "gzip"}, b"{}", 422, "the body is compressed"),
        ({"X_Request_Id": "x" * 129}, b"{}", 422, "X-Request-Id must be at most 128 printable ASCII characters"),
        ({"X_Request_Id": "\xe9"}, b"{}", 422, "X-Request-Id must be"),
    ],
)
def test_a_wrong_request_gets_a_sentence(
    server: Served, headers: dict[str, str], body: bytes, status: int, sentence: str
) -> None:
    found, answer = server.predict(body, **headers)
    assert found == status
    assert sentence in answer


def test_a_body_is_limited_while_it_arrives(server: Served) -> None:
    piece = b"2000\r\n" + b" " * 0x2000 + b"\r\n"
    head = b"POST /predict HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
    with server.raw(head + piece * 20) as connection:  # it never ends
        assert connection.recv(2**16).startswith(b"HTTP/1.1 413 ")


def test_a_head_is_limited(server: Served) -> None:
    line = b"GET / HTTP/1.1\r\n"
    for head in (line + b"X: " + b"x" * 2**17, b"GET /" + b"x" * 2**17, line + b"X: y\r\n" * 20_000):
        with suppress(ConnectionError):  # closed before all of it was read, or even sent
            assert received(server.raw(head)).startswith(b"HTTP/1.1 431 ")


def test_a_second_request_on_a_connection_is_answered_after_the_first(server: Served) -> None:
    first, second = request([[1, 2, 3, 4]]), request([[5, 6, 7, 8]], "Connection: close")
    answer = received(server.raw(first + second))
    assert [json.loads(text.split(b"\r\n\r\n")[1]) for text in answer.split(b"HTTP/1.1 200 OK")[1:]] == [
        {"outputs": [[2, 4, 6, 8]]},
        {"outputs": [[10, 12, 14, 16]]},
    ]


def test_random_bytes_neither_kill_it_nor_are_its_fault(server: Served) -> None:
    rng = random.Random(14)
    whole = request([[1, 2, 3, 4]], "Connection: close")
    start = whole.index(b"\r\n\r\n") + 4
    statuses = set()
    for number in range(300):
        data = bytearray(whole)
        only_body = number % 2
        for _ in range(rng.choice([1, 1, 2, 5, 40])):
            data[rng.randrange(start * only_body, len(data))] = rng.choice(b'[]{}",:019.eE-tfn\x00\xff \r\n')
        connection = server.raw(bytes(data))
        if not only_body:  # if its length was spoilt, it would wait for the rest
            connection.shutdown(socket.SHUT_WR)
        answer = received(connection)
        statuses.add(answer[9:12])
    assert statuses <= {b"200", b"400", b"404", b"405", b"408", b"413", b"422", b""}
    assert {b"200", b"422"} <= statuses
    assert server.predict([[1, 2, 3, 4]]) == (200, [[2, 4, 6, 8]])


def metrics(server: Served) -> dict[tuple[str, str], float]:
    """Return the metrics by name and, where it has one, label."""
    _, headers, text = server.ask("GET", "/metrics")
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, "".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_agree_with_what_was_sent(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    with served(double(tmp_path / "double.onnx"), "--trace", str(trace)) as server:
        for number in range(7):
            server.predict([[number] * WIDTH], X_Request_Id=f"right {number}")
        for number in range(3):
            server.predict([[number]], X_Request_Id=f"wrong {number}")
        server.ask("GET", "/nowhere")
        found = metrics(server)
    counted = {key: value for key, value in found.items() if key[0] == "tinybench_requests_total"}
    assert {code: n for (_, code), n in counted.items()} == {"200": 7, "422": 3, "499": 0, "500": 0, "503": 0}
    for name in ("request_seconds_count", "batch_size_count", "batch_size_sum", "model_seconds_count"):
        assert found[f"tinybench_{name}", ""] == 7
    assert found["tinybench_batch_size_bucket", "1.0"] == found["tinybench_batch_size_bucket", "+Inf"] == 7
    assert 0 < found["tinybench_model_seconds_sum", ""] < found["tinybench_request_seconds_sum", ""] < 60
    assert found["tinybench_queue_length", ""] == found["tinybench_worker_restarts_total", ""] == 0
    rows = np.genfromtxt(trace, delimiter=",", names=True, dtype=None, encoding="utf-8")
    assert rows["request_id"].tolist() == [f"right {n}" for n in range(7)] + [f"wrong {n}" for n in range(3)]
    assert rows["code"].tolist() == [200] * 7 + [422] * 3
    assert rows["batch"].tolist() == [1] * 7 + [0] * 3
    assert (np.diff(rows["received"]) > 0).all()
    good = rows[rows["code"] == 200]
    assert ((good["received"] < good["started"]) & (good["started"] < good["finished"])).all()
    assert np.isnan(rows[rows["code"] == 422]["started"]).all()
    assert (good["finished"] - good["received"]).sum() == pytest.approx(
        found["tinybench_request_seconds_sum", ""], abs=1e-5
    )


def test_a_slow_client_gets_no_more_than_its_time(tmp_path: Path) -> None:
    with served(double(tmp_path / "double.onnx"), "--timeout", "1s", "--max-batch", "1") as server:
        whole = request([[1, 2, 3, 4]])
        began = time.monotonic()
        connection = server.raw(whole[:-5])
        assert b"408 Request Timeout" in (answer := received(connection))
        assert b"the body took longer than 1 s to arrive" in answer
        assert time.monotonic() - began >= 1
        for head in (b"", b"POST /pre"):
            assert b"the head of the request took longer than 1 s to arrive" in received(server.raw(head))


def test_a_model_with_a_fixed_batch_is_served_row_by_row(tmp_path: Path) -> None:
    with served(double(tmp_path / "one.onnx", batch=1), "--max-batch", "1") as server:
        assert server.predict([[1, 2, 3, 4], [5, 6, 7, 8]]) == (200, [[2, 4, 6, 8], [10, 12, 14, 16]])
        assert "no batches" in server.line


def test_rows_of_free_length_and_bad_values(tmp_path: Path) -> None:
    """Requests of several shapes share no call; an index that there is not spoils its own request only."""
    from onnx import TensorProto, helper

    table = helper.make_tensor("table", TensorProto.FLOAT, [3], [0.0, 10.0, 20.0])
    nodes = [helper.make_node("Gather", ["table", "x"], ["y"])]
    how = {"kind": "INT64", "out": TensorProto.FLOAT, "constants": [table]}
    with served(save_graph(tmp_path / "words.onnx", nodes, ["L"], **how), "--max-wait", "200ms") as server:
        waiting = [server.raw(request([row], "Connection: close")) for row in ([1, 2], [2, 2, 2], [7, 1], [0, 1])]
        answers = [received(connection) for connection in waiting]
    assert [answer[9:12] for answer in answers] == [b"200", b"200", b"422", b"200"]
    assert b'{"outputs": [[10.0, 20.0]]}' in answers[0]
    assert b"the model cannot answer this: " in answers[2]
    assert b'{"outputs": [[0.0, 10.0]]}' in answers[3]


def test_an_answer_that_json_cannot_carry(tmp_path: Path) -> None:
    from onnx import helper

    with served(save_graph(tmp_path / "log.onnx", [helper.make_node("Log", ["x"], ["y"])], [1])) as server:
        assert server.predict([[1]]) == (200, [[0]])
        assert server.predict([[0]]) == (500, "the model answered with NaN or infinity, which JSON has no word for")


def test_times_and_sizes_are_read_as_people_write_them() -> None:
    assert [duration(text) for text in ("0ms", "2ms", "1.5 s", "3min")] == [0, 0.002, 1.5, 180]
    assert duration("50µs") == pytest.approx(50e-6)
    assert [size(text) for text in ("64kB", "1MB", "100B")] == [2**16, 2**20, 100]
    assert stalls("1s/10s") == (1, 10)


def test_other_hosts(tmp_path: Path) -> None:
    with served(double(tmp_path / "double.onnx"), "--host", "localhost") as server:
        assert server.predict([[1, 2, 3, 4]])[0] == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nowhere.onnx", "nowhere.onnx: no such file"),
        ("zoo:slow", "'zoo:slow' is no .onnx file"),
        ("broken.onnx", "broken.onnx does not load: "),
        ("two.onnx", "two.onnx has 2 inputs (a, b); serve takes models with one input"),
        ("fixed.onnx", "fixed.onnx: fixed batch 1; serve it with --max-batch 1"),
        ("eight.onnx", "the model takes exactly 8 rows a call"),
        ("sums.onnx", "sums.onnx: 2 rows give an output of shape []; serve it with --max-batch 1"),
        ("text.onnx", "takes tensor(string)"),
        ("double.onnx --workers 0", "Invalid value for '--workers'"),
        ("double.onnx --threads 0", "--threads is 0"),
        ("double.onnx --max-batch 0", "Invalid value for '--max-batch'"),
        ("double.onnx --max-wait 2", "'2' is no duration; write 2ms, 1s or 1min"),
        ("double.onnx --timeout 0s", "'0s' is no time at all"),
        ("double.onnx --stall 1s", "write 1s/10s for a stall of 1 s in every 10 s"),
        ("double.onnx --max-body huge", "'huge' is no size; write 64kB or 1MB"),
        ("double.onnx --port 0 --host not.an.address.invalid", "is no address of this machine"),
        ("double.onnx --port 0 --trace nowhere/trace.csv", "cannot write nowhere/trace.csv"),
        ("double.onnx --port {taken}", "another program has it; choose another --port"),
    ],
)
def test_what_cannot_be_served_is_named(
    arguments: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from onnx import helper

    monkeypatch.chdir(tmp_path)
    double(Path("double.onnx"))
    double(Path("fixed.onnx"), batch=1)
    double(Path("eight.onnx"), batch=8)
    save_graph(Path("two.onnx"), [helper.make_node("Add", ["a", "b"], ["y"])], [2], inputs=["a", "b"])
    save_graph(Path("sums.onnx"), [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], [2])
    save_graph(Path("text.onnx"), [helper.make_node("Identity", ["x"], ["y"])], [2], "STRING")
    Path("broken.onnx").write_text("no model")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--port", "0", *arguments.format(taken=taken.getsockname()[1]).split()]) == WRONG
    error = capfd.readouterr().err
    assert message in error
    assert "Traceback" not in error

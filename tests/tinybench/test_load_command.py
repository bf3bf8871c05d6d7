"""`tinybench load` as a user meets it: against servers that answer, that are slow, and that are something else."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinybench.load import LoadResult
from tinybench.shell.cli import OK, WRONG, main
from tinybench.tools.serving.client import STAMPED, address_of, bodies_of
from tinybench.tools.serving.sender import Sender

BRIEF = ["--rate", "400", "--seconds", "2", "--seed", "3"]


@contextmanager
def targets() -> Iterator[str]:
    """Run `load_target` for the time of the block; append a way to behave to its address."""
    command = [sys.executable, "-m", "tests.tinybench.load_target"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        process.kill()


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with targets() as url:
        yield url


def loaded(capsys: pytest.CaptureFixture[str], *arguments: str, code: int | None = None) -> dict[str, Any]:
    """Return what the command prints as JSON."""
    found = main(["load", *arguments, "--format", "json"])
    assert code is None or found == code
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_an_open_loop(target: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "run.csv"
    found = loaded(capsys, f"{target}/slow", *BRIEF, "--bound", "1s", "--save", str(file), "--connections", "400")
    assert found["sent"] == found["answered"] == pytest.approx(800, rel=0.2)
    assert found["rate_sent"] == pytest.approx(400, rel=0.2)
    kept = LoadResult.load(file)
    assert kept.ok.all()
    # each waits 50 ms, and nobody for another, which would take 40 s: as many are on their way as it takes
    assert 0.05 < np.median(kept.latencies) < 2
    told = found["latency"]["p50"]
    assert told["why"] if told["value"] is None else told["value"] == pytest.approx(np.median(kept.latencies), rel=0.01)
    assert found["latency"]["p99.9"]["value"] is None
    assert "too few for p99.9" in found["latency"]["p99.9"]["why"]
    assert kept.metadata["rate"] == 400


@pytest.mark.parametrize("form", ["table", "markdown", "csv"])
def test_other_forms(target: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", f"{target}/slow", *BRIEF, "--format", form]) in (OK, WRONG)  # the latter if it was late
    text = capsys.readouterr().out
    for word in ("requests", "rate asked", "within 50 ms", "latency p99", "lateness p99"):
        assert word in text


def test_a_closed_loop_says_what_it_is(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = loaded(capsys, f"{target}/slow", "--closed", "3", "--think", "1ms", "--seconds", "1", code=OK)
    assert 10 <= found["sent"] <= 60  # 3 users, 50 ms each
    assert any("closed loop" in line for line in found["warnings"])
    assert found["metadata"]["users"] == 3


def test_servers_that_close_after_each_answer_get_new_connections(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert loaded(capsys, f"{target}/once", *BRIEF)["failed"] == {}
    assert loaded(capsys, f"{target}/once", "--closed", "2", "--seconds", "0.5")["failed"] == {}


def test_failures_are_counted_by_kind_and_leave_no_percentile(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = loaded(capsys, f"{target}/drops", *BRIEF)
    assert found["failed"] == {"closed the connection": found["sent"] - found["answered"]}
    assert 0.7 < found["failed"]["closed the connection"] / found["sent"] < 0.95
    assert "failed" in found["latency"]["p99"]["why"]


def test_a_server_that_dies_on_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    with targets() as url:
        found = loaded(capsys, f"{url}/dies", *BRIEF)  # of some 800 requests it answers 400
    assert found["sent"] == found["answered"] + sum(found["failed"].values())
    assert 0 < found["answered"] < found["sent"]
    assert "Connection refused" in found["failed"]
    assert "failed" in found["latency"]["p99"]["why"]


def test_too_few_connections_are_said(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = loaded(capsys, f"{target}/slow", *BRIEF, "--connections", "12", code=WRONG)
    assert found["late"]
    assert found["latency"]["p99"]["value"] is None
    assert any("give more --connections" in line for line in found["warnings"])


WRONG_USES = {
    "slow --rate 0": "--rate is 0; give a number above 0",
    "slow --rate -5": "--rate is -5",
    "slow --rate nan": "--rate is nan",
    "slow --seconds 0": "--seconds is 0",
    "slow --rate 10 --seconds 10": "p99 takes 500 or more: give --seconds 55",
    "slow --closed 2 --rate 5": "--rate: only without --closed",
    "slow --think 1ms": "--think: only with --closed",
    "slow --closed 0": "at least one user",
    "slow --connections 0": "--connections is 0",
    "slow --save nowhere/run.csv": "there is no folder nowhere",
    "slow --rate 1e7": "this generator can send about",
    "slow --data rows.npy": "422 to the first request: inputs: the model takes rows of shape (4,), got (5,)",
    "slow --data missing.npy": "missing.npy: no such file",
    "refuses --rate 600 --seconds 1": "none of",
    "elsewhere": "/health answers 404: that is not `tinybench serve`",
    "draining": "takes no requests now, it answers 503: the server is stopping",
    "garbage": "speaks no HTTP",
    "deaf --timeout 0.2s": "gives no answer in time",
    "page": "does not answer with JSON",
    "free": "give rows with --data",
    "text": "give rows with --data",
}


@pytest.mark.parametrize("use", WRONG_USES)
def test_a_word_for_every_mistake(
    target: str, use: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", np.zeros((3, 5), np.float32))
    way, *options = use.split()
    assert main(["load", f"{target}/{way}", *options]) == WRONG
    shown = capsys.readouterr()
    assert WRONG_USES[use] in shown.err
    assert not shown.out


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("https://localhost", "begins with http://"),
        ("localhost:8000", "begins with http://"),
        ("http://", "begins with http://"),
        ("http://127.0.0.1:99999", "no address"),
        ("http://no..host:80", "there is no host"),
    ],
)
def test_what_is_no_address(url: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", url]) == WRONG
    assert word in capsys.readouterr().err


def test_nobody_there(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and nobody listens
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert main(["load", url]) == WRONG
    assert f"{url} does not answer" in capsys.readouterr().err


def asked(url: str) -> int:
    """Return how many questions `load_target` has had."""
    with urllib.request.urlopen(url) as answer:
        return int(answer.read())


@pytest.mark.parametrize("how", ["--rate=200", "--closed=5"])
def test_stopped_by_the_user(target: str, how: str, tmp_path: Path) -> None:
    file = tmp_path / "run.csv"
    command = [sys.executable, "-m", "tinybench", "load", f"{target}/slow", how, "--seconds=60", f"--save={file}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert re.fullmatch(r"tinybench: \d+ of 60 s, \d+ answers?\n", process.stderr.readline())  # it has begun
        begun = asked(f"{target}/slow/count")
        while asked(f"{target}/slow/count") < begun + 50:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "latency p99" in out
    assert f"until Ctrl-C; the rows are in {file}" in err
    kept = LoadResult.load(file)
    assert kept.ok.sum() > 10
    assert kept.seconds < 30


def test_a_generator_that_cannot_keep_up_stops_early(target: str) -> None:
    due = np.linspace(0, 1, 10)
    clock = iter(np.arange(0.0, 1000.0))  # a second passes between any two looks at it
    with Sender(address_of(target), bodies_of(np.zeros((1, 4))), due, clock=lambda: next(clock)) as sender:
        sender.submit(sender.send, 0)
        with pytest.raises(ValueError, match="late after"):
            sender.submit(sender.send, 1)
        sender.stop()
    assert np.isnan(sender.started[2:]).all()


def test_an_answer_that_never_comes_fails_in_time(target: str) -> None:
    due = np.array([0.0, 0.01])
    with Sender(address_of(f"{target}/deaf"), bodies_of(np.zeros((1, 4))), due, timeout=0.2) as sender:
        first, second = (sender.submit(sender.send, number) for number in range(2))
        assert not first.result(10)
        assert not second.result(10)
    assert sender.outcomes == {"no answer in time": 2}
    assert ((sender.finished - sender.started) >= 0.199).all()


@pytest.mark.skipif(not STAMPED, reason="the kernel must say when it got the answer")
def test_an_answer_has_come_when_the_kernel_has_it_not_when_it_is_read(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, bodies = address_of(f"{target}/quick"), bodies_of(np.zeros((1, 4)))
    with Sender(address, bodies, np.arange(9.0)) as sender:

        def took(number: int, pause: float) -> float:
            future = sender.submit(sender.send, number)
            time.sleep(pause)
            sender.wait_for(future)
            return float(sender.finished[number] - sender.started[number])

        for number in range(3):  # it begins to look at the clock when it has time
            took(number, 0.1)
        assert 0 < took(3, 1.0) < 0.8
        ahead = time.time_ns() + 60 * 10**9
        monkeypatch.setattr("time.time_ns", lambda: ahead)  # somebody sets the clock
        assert took(4, 0.1) == 0

"""`tinybench watch` as one types it: lines, verdicts, files, exit codes, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from autograder import time_limits
from tests.tinybench.servers import Served, double, served
from tests.undisturbed import once_undisturbed
from tinybench.shell.cli import WRONG, main
from tinybench.tools.watching.dashboard import stored_dashboard

NOWHERE = "http://127.0.0.1:9"  # the port of discard, where nobody listens
QUICK = ["--every=0.2s", "--for=1s", "--window=12s"]


@contextmanager
def users(server: Served, body: object = None, pause: float = 0.002) -> Iterator[None]:
    """Let somebody ask the server again and again."""
    ended = threading.Event()

    def ask() -> None:
        while not ended.wait(pause):
            server.predict(body or [[1, 2, 3, 4]])

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that nobody asks of its own accord."""
    with served(double(tmp_path_factory.mktemp("watch") / "double.onnx"), "--max-batch", "1") as running:
        yield running


@once_undisturbed
def test_a_server_that_keeps_its_objective(server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = tmp_path / "watched.svg"
    with users(server):
        # 10 s and 80 %: also on a busy machine, after some twenty requests
        code = main(
            ["watch", f"canary={server.url}", "--objective=80%", "--bound=10s", *QUICK, "--figure", str(figure)]
        )
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert code == 0, said.out
    assert "cannot tell: the first look" in lines[0]
    assert " 0 failed · p50 " in lines[1]
    assert "100 % of the error budget for these 1 s is left · burns 0.0 / 0.0" in lines[-2]
    assert lines[-1].startswith("canary 127.0.0.1:")
    assert "80 % within 10000 ms: met (0 of " in lines[-1]
    assert ElementTree.parse(figure).getroot().tag.endswith("svg")
    assert f"wrote {figure}" in said.err


@once_undisturbed
def test_a_server_that_misses_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(double(tmp_path / "double.onnx"), "--max-batch", "1", "--stall=200ms/201ms") as server, users(server):
        code = main(["watch", server.url, "--bound=0.1ms", "--json", *QUICK])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code == 1
    assert found[-1]["verdict"] == "missed"
    assert found[-1]["objective"] == "99.9 % within 0.1 ms"
    looks = found[:-1]
    assert any(look["burning"] for look in looks)
    assert looks[-1]["left"] < 0
    assert looks[0]["rate"] is None  # JSON knows no NaN


@once_undisturbed
def test_one_that_misses_decides_and_one_that_is_away_is_named(
    server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    with users(server):
        code = main(["watch", server.url, f"canary={NOWHERE}", "--objective=80%", "--bound=10s", *QUICK])
    said = capsys.readouterr().out
    assert code == 2, said
    assert "canary 127.0.0.1:9: 80 % within 10000 ms: cannot tell (its /metrics does not answer" in said
    assert ": met (" in said


@once_undisturbed
def test_nobody_asks(server: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", server.url, *QUICK]) == 2
    assert "cannot tell (no request came: the counter does not move)" in capsys.readouterr().out


def test_prometheus_is_away(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--prometheus", NOWHERE, *QUICK]) == 2
    said = capsys.readouterr().out.splitlines()
    assert "cannot tell: Prometheus at http://127.0.0.1:9 does not answer" in said[0]
    assert said[-1].startswith("Prometheus: 99.9 % within 50 ms: cannot tell (Prometheus at")


def test_what_answers_is_no_prometheus(server: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--prometheus", server.url, *QUICK]) == WRONG
    assert f"what answers at {server.url} is no Prometheus" in capsys.readouterr().err


def test_rules_and_dashboard_without_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, dashboard = tmp_path / "rules.yml", tmp_path / "dashboard.json"
    assert main(["watch", "--rules", str(rules), "--dashboard", str(dashboard)]) == 0
    assert dashboard.read_text(encoding="utf-8") == stored_dashboard()
    assert len(yaml.safe_load(rules.read_text(encoding="utf-8"))["groups"]) == 3
    assert (
        main(["watch", "--objective=99%", "--bound=100ms", "--rules", str(rules), "--dashboard", str(dashboard)]) == 0
    )
    for file in (rules, dashboard):
        assert "99 % within 100 ms" in file.read_text(encoding="utf-8")
    assert f"wrote {rules}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "watch what? Give the URL"),
        (["https://a:1"], "https://a:1 is no address to watch"),
        ([NOWHERE, "canary=" + NOWHERE], "a server is watched once; one stands here twice"),
        ([NOWHERE, "--bound=30ms"], "take 25ms or 50ms"),
        ([NOWHERE, "--objective=0%"], "an objective of 0 is no share between 0 and 1"),
        ([NOWHERE, "--objective=100%"], "'100%' is not from 0 up to 100 %"),
        ([NOWHERE, "--every=1min", "--window=2min"], "a window of 120 s has no short one"),
        ([NOWHERE, "--every=5s", "--for=1s"], "is over before the second look"),
        ([NOWHERE, "--prometheus=http://a"], "--prometheus knows its servers"),
        (["--start-prometheus"], "--start-prometheus: for which servers?"),
        (["--prometheus=a:9090"], "a:9090 is no address of a Prometheus"),
        ([NOWHERE, "--figure=nowhere/a.png"], "there is no folder nowhere"),
        ([NOWHERE, "--for=soon"], "'soon' is no duration"),
    ],
)
def test_what_cannot_be_watched(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["watch", *arguments]) == WRONG
    assert says in " ".join(capsys.readouterr().err.split())


def test_without_prometheus_it_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["watch", NOWHERE, "--start-prometheus"]) == WRONG
    assert "Prometheus is not installed here" in capsys.readouterr().err


def test_in_a_package_without_module_16(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tinybench.production", None)
    assert main(["watch", NOWHERE]) == WRONG
    assert "uses what module 16 builds" in capsys.readouterr().err


def test_a_watch_that_stood_still_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine sleeps between two looks; those left out are told, not made up."""
    from tinybench.shell import watch_command

    now, asked = [0.0], []

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(watch_command.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(watch_command.time, "sleep", sleep)

    def look(at: float, missed: int) -> list[object]:
        asked.append((at, missed))
        now[0] += 35.0 if at == 10 else 0.1
        return []

    watch_command._all_looks(look, 5.0, 60.0, lambda _: None)  # type: ignore[arg-type]
    assert asked == [(0, 0), (5, 0), (10, 0), (45, 6), (50, 0), (55, 0), (60, 0)]
    assert "stood still for 30 s; nobody looked" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGTERM")
@pytest.mark.parametrize("lasting", [False, True])
def test_stopped_it_tells_what_it_saw(tmp_path: Path, lasting: bool) -> None:
    """Without --for a stop is the usual end; with it the watch was broken off."""
    command = [sys.executable, "-m", "tinybench", "watch", NOWHERE, "--every=0.1s", "--window=2s"]
    with subprocess.Popen(
        [*command, *(["--for=10min"] if lasting else [])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        said, problem = process.communicate(timeout=time_limits.wall(60))
    assert "cannot tell: its /metrics does not answer" in first
    assert process.returncode == (130 if lasting else 2), problem
    assert ("99.9 % within 50 ms: cannot tell" in said) is not lasting

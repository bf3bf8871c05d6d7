"""The leaderboard for the time of another program, the student's end of it, and its commands."""

from __future__ import annotations

import random
import socket
import threading
import time
import urllib.request
from pathlib import Path

import psutil
import pytest

from autograder import time_limits
from autograder.cli import main
from autograder.leaderboard import client
from autograder.leaderboard.store import jobs
from autograder.leaderboard.store.store import Store
from autograder.leaderboard.web import local_server
from autograder.leaderboard.web.app import create_app
from autograder.leaderboard.web.local_server import NotRunning, running
from tests.leaderboard.boards import dense, made_up_scores, serving, small_olympics, trained, wait_until

LITTLE = """
title = "Rehearsal"
deadline = 2999-01-01T00:00:00Z
[task]
public_rows = 128
private_rows = 128
batch = 16
[referee]
rounds = 3
[[event]]
id = "latency"
title = "Latency Sprint"
goal = "The fastest."
measure = "latency"
"""


def alive(root: Path, what: str) -> list[int]:
    """Return the processes of a course's leaderboard that do `what`."""
    processes = psutil.process_iter(["cmdline"])
    return [each.pid for each in processes if {str(root), what} <= set(each.info["cmdline"] or ())]


@pytest.mark.needs("sandbox")
def test_pages_and_worker_end_with_the_block(tmp_path: Path) -> None:
    with running(tmp_path) as address:
        assert urllib.request.urlopen(address, timeout=time_limits.wall(30)).status == 200
        wait_until(lambda: alive(tmp_path, "worker"), 30)
    assert not alive(tmp_path, "serve")
    assert not alive(tmp_path, "worker"), "the worker outlives the pages"


def test_an_occupied_port_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        monkeypatch.setattr(local_server, "PORT", other.getsockname()[1])
        with local_server._listening() as mine:
            assert mine.getsockname()[1] not in (0, other.getsockname()[1])


def test_why_it_does_not_come_up_is_said(tmp_path: Path) -> None:
    events = tmp_path / "events.toml"
    events.write_text("title = 3", encoding="utf-8")
    with pytest.raises(NotRunning, match="title is 3; it must be a valid string"), running(tmp_path, events):
        pass


def test_enter_follow_and_read_the_standings(light_store: Store) -> None:
    token = light_store.add_token("Ada", 1)
    steps: list[str] = []

    def measure() -> None:
        while (job := jobs.claim(light_store, "w")) is None:
            pass
        jobs.renew(light_store, job, "timing, process 1 of 6")
        while "timing, process 1 of 6" not in steps:
            time.sleep(0.01)
        jobs.finish(light_store, job, made_up_scores(random.Random(3)), {})

    prefix = "/user/ada/proxy/8017"
    with serving(create_app(light_store, small_olympics(), prefix)) as address:
        server = address + prefix
        entry = client.enter(server, token, "memory", "mine.onnx", dense())
        assert client.page(server, entry) == f"{server}/entries/{entry['id']}"
        worker = threading.Thread(target=measure)
        worker.start()
        entry = client.follow(server, entry, steps.append, pause=0.02)
        worker.join()
        assert entry["state"] == "measured"
        assert "latency" in client.in_words(entry["measured"])
        assert [place["student"] for place in client.standings(server, "memory")] in ([], ["Ada"])
        with pytest.raises(ValueError, match="entry 1 already"):
            client.enter(server, token, "memory", "mine.onnx", dense())
        with pytest.raises(ValueError, match="token"):
            client.enter(server, "forged", "memory", "mine.onnx", dense())
    with pytest.raises(ValueError, match="no leaderboard answers"):
        client.standings(server, "memory")


def test_check_says_what_a_file_is_or_why_it_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.onnx", tmp_path / "bad.onnx"
    good.write_bytes(dense())
    bad.write_bytes(dense()[:200])
    assert main(["leaderboard", "check", str(good)]) == 0
    assert "valid: " in capsys.readouterr().out
    assert main(["leaderboard", "check", str(bad)]) == 1
    assert "not an .onnx file" in capsys.readouterr().err


@pytest.mark.slow
def test_a_quick_rehearsal_measures_as_the_referee_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events, model, baseline = (tmp_path / name for name in ("events.toml", "model.onnx", "baseline.onnx"))
    events.write_text(LITTLE, encoding="utf-8")
    model.write_bytes(trained(16))
    baseline.write_bytes(trained(64))
    options = ["--events", str(events), "--baseline", str(baseline), "--quick", "--unconfined"]
    assert main(["leaderboard", "rehearse", str(model), *options]) == 0
    said = capsys.readouterr().out
    assert "timing, process 3 of 3" in said
    assert [line.split()[0] for line in said.splitlines()[-4:]] == ["latency", "memory", "accuracy", "size"]

"""What an instructor or a student types wrongly is answered with one line that says what to do."""

from __future__ import annotations

import dataclasses
import http.server
import re
import socket
import threading
from pathlib import Path

import pytest

from autograder.cli import main
from autograder.leaderboard.referee.worker import RECIPE, check_baseline, make_referee
from autograder.leaderboard.settings import Baseline
from autograder.leaderboard.store.store import Store
from tests.leaderboard.boards import dense, small_olympics


@pytest.fixture(autouse=True)
def own_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TINYBENCH_DATABASE", raising=False)
    (tmp_path / "model.onnx").write_bytes(dense())
    (tmp_path / "taken.csv").write_text("a file")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("serve --no-worker --prefix proxy/8017", "--prefix 'proxy/8017' is no path; write it like /user"),
        ("serve --no-worker --port 99999", "there is no port 99999"),
        ("serve --no-worker --host 203.0.113.7", "cannot listen on 203.0.113.7"),
        ("serve --no-worker --events {root}/none.toml", "none.toml cannot be read: No such file"),
        ("serve --no-worker --database sqlite:////nowhere/x.db", "cannot be opened: unable to open database file"),
        ("check {root}", "cannot be read: Is a directory"),
        ("check {root}/none.onnx", "none.onnx cannot be read: No such file"),
        ("token Ada Ben Ada", "'Ada' is named twice"),
        ("token Ada {blank}", "one of the names is blank"),
        ("export --out {root}/taken.csv", "taken.csv"),
        ("data {root}/taken.csv/digits.npz", "taken.csv"),
        ("enter {root}/model.onnx --url 127.0.0.1:8017", "'127.0.0.1:8017' is no address .* write http://"),
        (
            "enter {root}/model.onnx --url http://127.0.0.1:1",
            "no leaderboard answers at http://127.0.0.1:1 .*Connection refused",
        ),
        ("enter {root}/model.onnx --token grün", "this is no token"),
    ],
)
def test_mistakes_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    arguments = [word.format(root=tmp_path, blank=" ") for word in words.split()]
    assert main(["--root", str(tmp_path), "leaderboard", *arguments]) == 1
    output = capsys.readouterr()
    assert re.fullmatch(f"autograder: .*{said}.*\n", output.err)
    assert output.out == ""


def test_a_port_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["--root", str(tmp_path), "leaderboard", "serve", "--no-worker", "--port", str(port)]) == 1
    assert f"cannot listen on 127.0.0.1, port {port}" in capsys.readouterr().err


def test_a_server_that_is_no_leaderboard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Other(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.handle_request).start()
        url = f"http://127.0.0.1:{server.server_port}"
        arguments = ["enter", str(tmp_path / "model.onnx"), "--url", url]
        assert main(["--root", str(tmp_path), "leaderboard", *arguments]) == 1
    assert capsys.readouterr().err == f"autograder: what answers at {url} is no leaderboard\n"


def test_the_clock_is_shown_and_trusted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--root", str(tmp_path), "leaderboard", "clock", "--trust"]) == 0
    assert capsys.readouterr().out.count(" UTC") == 2


def test_another_baseline_needs_another_database(light_store: Store) -> None:
    olympics = small_olympics(baseline=Baseline((8,), 1))
    check_baseline(light_store, olympics)
    assert not light_store.setting(RECIPE)
    make_referee(light_store, olympics)
    check_baseline(light_store, olympics)
    changed = dataclasses.replace(olympics, baseline=Baseline((9,), 1))
    with pytest.raises(ValueError, match=r"not the one of this database, .*8.*begin a new database"):
        make_referee(light_store, changed)

"""The leaderboard behind a real jupyter-server-proxy, as on a hub."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from autograder import time_limits
from autograder.leaderboard.store.store import Store
from autograder.leaderboard.web.app import create_app
from tests.leaderboard.boards import answers, dense, free_port, serving, small_olympics, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def jupyter(tmp_path: Path) -> Iterator[str]:
    """A Jupyter server with the proxy; yields its address."""
    port = free_port()
    options = {
        "port": port,
        "token": "",
        "password": "",
        "root_dir": tmp_path,
        "open_browser": False,
        "allow_root": True,
    }
    words = [f"--ServerApp.{name}={value}" for name, value in options.items()]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyter_server", *words], env=os.environ | {"JUPYTER_CONFIG_DIR": str(tmp_path)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: answers(f"{address}/api"))
        yield address
    finally:
        server.terminate()
        server.wait()


def test_a_student_signs_in_and_enters(jupyter: str, light_store: Store) -> None:
    token = light_store.add_token("Ada", 1)
    with serving(create_app(light_store, small_olympics())) as address:
        home = f"/proxy/{address.rpartition(':')[2].strip('/')}/"
        with httpx.Client(
            base_url=jupyter, timeout=time_limits.wall(30), headers={"Sec-Fetch-Site": "same-origin"}
        ) as client:
            assert "TinyBench Olympics" in client.get(home).text
            sent = {
                "sign-in": ({"data": {"token": token}}, "enter"),
                "enter": ({"data": {"event": "latency"}, "files": {"file": ("a.onnx", dense(9, 9))}}, "entries/1"),
                "sign-out": ({}, ""),
            }
            for form, (content, arrives) in sent.items():
                answer = client.post(f"{home}{form}", **content)  # type: ignore[arg-type]
                assert answer.next_request is not None, answer.text
                address = answer.next_request.url
                assert (address.path, client.get(address).status_code) == (f"{home}{arrives}", 200)

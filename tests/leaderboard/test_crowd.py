"""Five hundred entries at once (200 on PostgreSQL), half of them hostile, while server and worker are killed: each ends exactly once."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select

from autograder import time_limits
from autograder.leaderboard.store.store import Store
from autograder.leaderboard.store.tables import MEASURED, REFUSED, entries, history, jobs, results
from tests.attacks.onnx.hostile import FILES, not_a_number, wrong_shape
from tests.leaderboard.boards import dense, free_port, wait_until

ROOT = Path(__file__).parents[2]
CROWDS = {"sqlite": 500, "postgresql": 200}

pytestmark = pytest.mark.slow


def start(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.leaderboard.crowd", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)


def peak_memory(process: subprocess.Popen[bytes]) -> int:
    """Return the most memory a process has held, in MB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024


def upload(client: httpx.Client, token: str, data: bytes) -> int:
    """Upload as a patient client does: again, when the server was gone, or still has the first try in hand."""
    deadline = time.monotonic() + time_limits.wall(120)
    while True:
        status = 429
        with suppress(httpx.TransportError):
            headers = {"Authorization": f"Bearer {token}"}
            status = client.post("/api/events/latency/entries", content=data, headers=headers).status_code
        if status != 429:
            return status
        assert time.monotonic() < deadline
        time.sleep(0.3)


def test_a_crowd_enters(database: str) -> None:
    store, number = Store(database), CROWDS[database.partition(":")[0].partition("+")[0]]
    tokens = [store.add_token(f"student {each}", 1) for each in range(number)]  # one entry of each waits at a time
    hostile_files = [data for data in (build() for build, _ in FILES.values()) if 0 < len(data) < 2**20]
    hostile_files += [not_a_number(), wrong_shape()]
    hostile = [
        # One byte more in the documentation makes it another file, as hostile as before.
        data + b"\x32\x04" + f"{each:04}".encode()
        for each, data in zip(range(number // 2), itertools.cycle(hostile_files), strict=False)
    ]
    good = [dense(2, seed) for seed in range(number // 2)]
    files = [data for pair in zip(good, hostile, strict=True) for data in pair]

    port = free_port()
    address = f"http://127.0.0.1:{port}"
    server, worker = start("serve", database, str(port)), start("work", database)
    try:
        with ThreadPoolExecutor(16) as pool, httpx.Client(base_url=address, timeout=time_limits.wall(60)) as client:
            uploads = [pool.submit(upload, client, *each) for each in zip(tokens, files, strict=True)]
            wait_until(lambda: store.version() > number // 4)
            server.kill()
            server.wait()
            server = start("serve", database, str(port))
            wait_until(lambda: len(store.measured()) > 5)
            worker.kill()
            worker.wait()
            worker = start("work", database)
            statuses = [each.result() for each in uploads]
        # A client whose answer was lost with the server enters again, and is told that the file is there.
        assert set(statuses) <= {201, 409}
        wait_until(lambda: unfinished(store) == 0)
        assert peak_memory(server) < 400
    finally:
        for process in (server, worker):
            process.kill()
            process.wait()

    with store.engine.begin() as connection:
        measured = set(connection.scalars(select(jobs.c.sha256).where(jobs.c.state == MEASURED)))
        assert len(measured) == len(good) == connection.scalar(select(func.count()).select_from(results))
        ends = select(history.c.entry_id, func.count()).where(history.c.what.in_((MEASURED, REFUSED)))
        counts = dict(connection.execute(ends.group_by(history.c.entry_id)).tuples().all())
        assert set(counts.values()) == {1}
        assert len(counts) == connection.scalar(select(func.count()).select_from(entries))
        # What was taken up twice says so.
        taken = list(connection.scalars(select(history.c.entry_id).where(history.c.what == "taken up")))
        again = connection.scalar(select(func.count()).where(history.c.detail.contains("did not finish")))
        assert len(taken) - len(set(taken)) == again
    store.close()


def unfinished(store: Store) -> int:
    with store.engine.begin() as connection:
        return int(connection.scalar(select(func.count()).where(jobs.c.state.not_in((MEASURED, REFUSED)))) or 0)

"""A kernel in the sandbox runs notebooks, and shows them nothing of the machine."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager, start_new_kernel

from autograder import time_limits
from autograder.course.nbgrader_settings import KERNELS
from autograder.course.sandbox_kernel import CONNECTION, SOCKETS

pytestmark = pytest.mark.needs("sandbox")

WORKS = """
import os, pathlib, sys
assert os.getuid() == 65534
sys.path.insert(0, "..")
from tinybench import BenchmarkResult
assert pathlib.Path("numbers.csv").read_text() == "four;two"
pathlib.Path("figure.png").write_text("x")
print("works")
"""
FORBIDDEN = {
    "environment": "import os; assert 'TINYBENCH_CANARY' in os.environ",
    "host files": "open('/etc/passwd')",
    "other notebooks": "import os; assert '01_numbers.ipynb' in os.listdir('.')",
    "checks": "import autograder",
    "data": "open('numbers.csv', 'w')",
    "the library": "open('../tinybench/result.py', 'a')",
    "the connection file": "import ipykernel; open(ipykernel.get_connection_file(), 'w')",
    "network": "import socket; socket.create_connection(('127.0.0.1', {port}), 2)",
    "a full disk": "open('big', 'wb').write(bytes(2**28))",
    "namespaces": "import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0",
}  # fmt: skip


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KernelManager, object]]:
    course = tmp_path_factory.mktemp("course")
    folder, source = course / "course" / "submitted" / "eve" / "01_numbers", course / "modules" / "01_numbers"
    for made in (folder, source):
        made.mkdir(parents=True)
        (made / "01_numbers.ipynb").write_text("{}")
    (course / "nbgrader_config.py").touch()
    (source / "numbers.csv").write_text("four;two")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(KERNELS))
        patch.setenv("TINYBENCH_CANARY", "x")
        manager, client = start_new_kernel(kernel_name="tinybench-sandbox", cwd=str(folder))
    yield manager, client
    client.stop_channels()
    private = Path(manager.ip).parents[1]
    manager.shutdown_kernel(now=True)
    assert not private.exists()


def run(client: object, code: str) -> tuple[str, str]:
    """Run code; return its status and what it printed."""
    printed: list[str] = []

    def keep(message: dict[str, dict[str, str]]) -> None:
        printed.append(message["content"].get("text", ""))

    reply = client.execute_interactive(code, output_hook=keep, timeout=time_limits.wall(60))  # type: ignore[attr-defined]
    return reply["content"]["status"], "".join(printed)


def test_a_notebook_runs(kernel: tuple[KernelManager, object]) -> None:
    manager, client = kernel
    assert manager.transport == "ipc", "kernel messages do not travel over TCP"
    assert run(client, WORKS) == ("ok", "works\n")


@pytest.mark.parametrize("what", FORBIDDEN)
def test_shows_nothing_of_the_machine(kernel: tuple[KernelManager, object], what: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        status, _ = run(kernel[1], FORBIDDEN[what].replace("{port}", str(server.getsockname()[1])))
    assert status == "error"


def test_is_interrupted_by_message_and_killed_in_any_case(kernel: tuple[KernelManager, object]) -> None:
    manager, client = kernel
    # short sleeps, as a long one that begins just when the signal comes does not notice it
    sleep = "import time\nprint('asleep', flush=True)\nwhile True: time.sleep(0.1)"
    # else what is asked soon after the interrupt is aborted with it
    asked = client.execute(sleep, stop_on_error=False)  # type: ignore[attr-defined]
    said: dict[str, Any] = {"msg_type": ""}
    while said["msg_type"] != "stream" or said["parent_header"]["msg_id"] != asked:
        said = client.get_iopub_msg(timeout=time_limits.wall(60))  # type: ignore[attr-defined]
    manager.interrupt_kernel()
    reply: dict[str, Any] = {"msg_type": ""}
    while reply["msg_type"] != "execute_reply":  # on a busy machine the kernel was asked more than once who it is
        reply = client.get_shell_msg(timeout=time_limits.wall(30))  # type: ignore[attr-defined]
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    assert run(client, "print('still here')") == ("ok", "still here\n")
    run(client, "import signal; [signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)]")
    client.execute("while True: pass")  # type: ignore[attr-defined]
    process = manager.provisioner.process  # type: ignore[union-attr]
    manager.restart_kernel(now=True)
    assert process.poll() is not None
    client.wait_for_ready(timeout=time_limits.wall(60))  # type: ignore[attr-defined]
    assert run(client, "print('anew')") == ("ok", "anew\n")


def test_a_restart_follows_no_planted_link(kernel: tuple[KernelManager, object], tmp_path: Path) -> None:
    manager, client = kernel
    target = tmp_path / "planted"
    plant = f"""
import os
for name in os.listdir({SOCKETS!r}):
    os.unlink(os.path.join({SOCKETS!r}, name))
    os.symlink({str(target)!r}, os.path.join({SOCKETS!r}, name))
try: os.unlink({CONNECTION!r})
except OSError: print("kept")
"""
    target.write_text("mine")
    before = target.stat()
    assert run(client, plant) == ("ok", "kept\n")
    manager.restart_kernel(now=True)
    client.wait_for_ready(timeout=time_limits.wall(60))  # type: ignore[attr-defined]
    assert (target.read_text(), target.stat().st_uid) == ("mine", before.st_uid)


def test_what_fills_the_disk_is_ended(kernel: tuple[KernelManager, object]) -> None:
    manager, client = kernel
    run(client, f"open({f'{SOCKETS}/big'!r}, 'wb').write(bytes(2**22))")
    deadline = time.monotonic() + time_limits.wall(30)
    while manager.is_alive() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not manager.is_alive()

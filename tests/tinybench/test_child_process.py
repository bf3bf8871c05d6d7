"""Child processes: lines go to and fro, and none of them outlives its block or this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tinybench.support.basics.child_process import ChildEndedError, ChildProcess

ECHO = "import sys\nfor line in sys.stdin: print(line.strip() * 2, flush=True)"
SLEEP = "import time; print('ready', flush=True); time.sleep(600)"
FAMILY = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {SLEEP!r}])
print(child.pid, flush=True)
time.sleep(600)
"""


def _gone(pid: int, seconds: float = 20.0) -> bool:
    """Whether a process has ended, or ends within some seconds."""
    import psutil

    until = time.monotonic() + seconds
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def test_lines_go_to_and_fro() -> None:
    with ChildProcess([sys.executable, "-c", ECHO]) as child:
        child.send([1, "é"])
        assert child.receive() == '[1, "\\u00e9"]' * 2
    assert child.process.returncode == 0  # its input closed


def test_a_child_that_ended_is_reported_with_its_last_words() -> None:
    program = "import sys; print('no such model', file=sys.stderr); sys.exit(3)"
    with ChildProcess([sys.executable, "-c", program], "worker 4") as child:
        with pytest.raises(ChildEndedError, match="worker 4 ended with exit code 3:\nno such model"):
            child.receive()
        with pytest.raises(ChildEndedError, match="exit code 3"):
            child.send("again")


def test_a_child_that_closed_its_output_is_reported() -> None:
    with (
        ChildProcess([sys.executable, "-c", "import os, time; os.close(1); time.sleep(600)"], patience=0) as child,
        pytest.raises(ChildEndedError, match="closed its output, but still runs, without a word"),
    ):
        child.receive()


def test_a_child_that_says_nothing_in_time_is_killed() -> None:
    with ChildProcess([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        with pytest.raises(ChildEndedError, match="exit code -9" if os.name == "posix" else "exit code"):
            child.receive(seconds=0.1)
        assert child.killed


def test_what_a_child_started_ends_too() -> None:
    with ChildProcess([sys.executable, "-c", FAMILY], patience=0) as child:
        grandchild = int(child.receive())
    assert _gone(child.process.pid)
    assert _gone(grandchild)


def test_a_wrapped_child_may_end_in_its_own_way(tmp_path: Path) -> None:
    program = f"""
import pathlib, signal, sys
def end(*_):
    pathlib.Path({str(tmp_path / "ended")!r}).write_text("in order")
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
signal.pause()
"""
    with ChildProcess([sys.executable, "-c", program], wrapped=True) as child:
        assert child.receive() == "ready"
    assert (tmp_path / "ended").read_text() == "in order"


def test_a_wrapped_child_ends_when_this_process_is_killed() -> None:
    program = """
import sys, time
from tinybench.support.basics.child_process import ChildProcess
child = ChildProcess([sys.executable, "-c", "import os; print(os.getpid(), flush=True); import time; time.sleep(600)"],
                     wrapped=True)
print(child.receive(), flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        pid = int(owner.stdout.readline())
        owner.send_signal(signal.SIGKILL)
    assert _gone(pid)


def test_output_can_be_read_while_the_child_writes() -> None:
    program = "for i in range(3):\n print('line', i, flush=True)\n input()"
    with ChildProcess([sys.executable, "-c", program], output="file") as child:
        for number in range(3):
            while child.written().count("line") <= number:
                time.sleep(0.01)
            child.send(None)
        child.process.wait()
        assert child.written().split() == ["line", "0", "line", "1", "line", "2"]


def test_a_program_that_does_not_exist_leaves_nothing_open() -> None:
    with pytest.raises(FileNotFoundError):
        ChildProcess(["/no/such/program"])


@pytest.mark.skipif(os.name != "posix", reason="process groups")
def test_a_stranger_who_got_the_number_of_an_ended_child_lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEP], stdout=subprocess.PIPE, start_new_session=True) as stranger:
        with ChildProcess([sys.executable, "-c", ""]) as child:
            child.process.wait()
            monkeypatch.setattr(child.process, "pid", stranger.pid)
        assert stranger.poll() is None
        stranger.kill()

"""The grader's interface to the zygote: a process that forks a new sandbox for each submission."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from autograder import time_limits
from autograder.sandbox import root
from autograder.sandbox.bubblewrap import Limits, Mounts, SandboxUnavailable, available, command

HERE = Path(__file__).parent


class Zygote:
    """A zygote process, which forks a sandbox for each submission of an assignment.

    The process loads the `preload` modules once. In each sandbox, the working directory of `mounts` becomes a private
    folder with links to the `data` files, which are given by their paths inside. `limits` apply to each submission
    separately.
    """

    def __init__(
        self, preload: Sequence[str], mounts: Mounts, data: Sequence[str] = (), limits: Limits | None = None
    ) -> None:
        available()
        self.limits = limits or Limits()
        self.control, theirs = socket.socketpair()
        options = {
            "control": theirs.fileno(), "preload": list(preload), "folder": mounts.working_directory,
            "data": list(data),
            # a last resort, as the grader itself ends a submission, after a time that depends on the machine's load
            "wall_seconds": time_limits.cpu(self.limits.wall_seconds) * time_limits.MOST_BUSY,
            "call_seconds": time_limits.cpu(self.limits.call_seconds),
            "memory": self.limits.memory, "tmp_bytes": self.limits.tmp_bytes, "limits": self.limits.resources(),
        }  # fmt: skip
        guest = {
            f"/inside/sandbox/{p.relative_to(HERE)}": p for name in ("guest", "rpc") for p in HERE.glob(f"{name}/*.py")
        }
        mounts = replace(mounts, read_only={**mounts.read_only, **guest})
        argv = [root.PROGRAM, "-sB", "-c", "import sys; sys.path[:0] = ['/inside', '/course']; import json;"
                "from sandbox.guest import zygote; zygote.main(json.loads(sys.argv[1]))",
                json.dumps(options)]  # fmt: skip
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        self.process = subprocess.Popen(
            command(argv, mounts, self.limits, zygote=True),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors, pass_fds=[theirs.fileno()],
            start_new_session=True, env={"PATH": os.environ.get("PATH", "/usr/bin")},
        )  # fmt: skip
        theirs.close()
        self.control.settimeout(time_limits.wall(120))
        if self.control.recv(1) != b"r":
            self.errors.seek(0)
            why = self.errors.read().decode(errors="replace")[-500:]
            self.close()
            raise SandboxUnavailable(f"the sandbox did not start: {why}")

    def fork(self) -> Sandbox:
        """Return a new sandbox for one submission."""
        return Sandbox(self.control)

    def ended(self) -> bool:
        """Return whether the zygote has ended or ends within 0.2 s.

        The wait is necessary, because the zygote's sockets close slightly before its process ends.
        """
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(0.2)
        return self.process.poll() is not None

    def close(self) -> None:
        """Kill the zygote and all processes in it."""
        self.control.close()
        self.errors.close()
        self.process.kill()
        self.process.wait()


class Sandbox:
    """The sandbox of one submission: a socket for messages, and a socket that keeps the sandbox alive."""

    def __init__(self, control: socket.socket) -> None:
        self.life, their_life = socket.socketpair()
        self.rpc, their_rpc = socket.socketpair()
        with their_life, their_rpc:
            socket.send_fds(control, [b"s"], [their_life.fileno(), their_rpc.fileno()])

    def end(self) -> str:
        """End the sandbox, and wait until all its processes are gone.

        If the sandbox had ended already, return the reason. Otherwise, return an empty text.
        """
        self.rpc.close()
        with self.life, suppress(OSError):
            self.life.shutdown(socket.SHUT_WR)
            self.life.settimeout(time_limits.wall(10))
            return self.life.recv(1000).decode(errors="replace")
        return ""

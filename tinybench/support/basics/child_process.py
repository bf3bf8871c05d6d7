"""A child process that exchanges lines of text with this process.

The child ends when its ``with`` block ends, or when this process does.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Literal

__all__ = ["ChildEndedError", "ChildProcess"]

END_WITH_PARENT = Path(__file__).with_name("end_with_parent.py")


class ChildEndedError(RuntimeError):
    """An error for a child process that has ended or closed its output."""


class ChildProcess:
    """A running command with pipes to its standard input and output, in a process group of its own.

    Parameters
    ----------
    command
        The program and its arguments. The program should end when its standard input closes; if not, set `wrapped`.
    name
        The name of the child process in error messages.
    wrapped
        True for a command that does not read its standard input, such as a server. A small script then runs the
        command, and terminates it when this process closes the pipe or is killed.
    output
        The destination of standard output. With ``"lines"``, `receive` returns the lines. With ``"file"``, the output
        goes to the same file as standard error, which `written` reads. With ``"nowhere"``, the output is discarded,
        and the command has no standard input either.
    errors
        The file for standard error. By default, this is a temporary file.
    patience
        The seconds that the command has to end by itself after `close`. Then it is killed.
    cwd, env
        The working directory and the environment of the command. None stands for those of this process.
    handles
        File descriptors that the command inherits.

    Attributes
    ----------
    process
        The `subprocess.Popen` object.
    started
        `time.perf_counter` immediately before the start, in seconds.
    killed
        Whether `kill` was called.
    """

    def __init__(
        self,
        command: Sequence[str],
        name: str = "the process",
        *,
        wrapped: bool = False,
        output: Literal["lines", "file", "nowhere"] = "lines",
        errors: Path | None = None,
        patience: float = 10.0,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        handles: Sequence[int] = (),
    ) -> None:
        self.name, self.patience, self.killed = name, patience, False
        # closed by `close`
        self._errors = errors.open("w+b") if errors else tempfile.TemporaryFile()  # noqa: SIM115
        wrapper = [sys.executable, "-IS", str(END_WITH_PARENT)] if wrapped else []
        self.started = time.perf_counter()
        try:
            self.process: subprocess.Popen[str] = subprocess.Popen(
                [*wrapper, *command],
                stdin=subprocess.DEVNULL if output == "nowhere" else subprocess.PIPE,
                stdout={"lines": subprocess.PIPE, "file": self._errors.fileno(), "nowhere": subprocess.DEVNULL}[output],
                stderr=self._errors,
                cwd=cwd,
                env=env,
                pass_fds=handles,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except BaseException:
            self._errors.close()
            raise

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, message: Any) -> None:
        """Write a message as a line of JSON. If the child no longer reads, raise `ChildEndedError`."""
        assert self.process.stdin
        try:
            print(json.dumps(message), file=self.process.stdin, flush=True)
        except OSError:
            raise self.ended() from None

    def receive(self, seconds: float | None = None) -> str:
        """Return the next line that the child writes, without the newline. If the child ends, raise `ChildEndedError`.

        If no line arrives within `seconds`, the child is killed, and `ChildEndedError` is raised.
        """
        assert self.process.stdout
        with self.killed_after(seconds) if seconds is not None else nullcontext():
            line: str = self.process.stdout.readline()
        if not line:
            raise self.ended()
        return line.rstrip("\n")

    @contextmanager
    def killed_after(self, seconds: float) -> Iterator[None]:
        """Kill the child if the ``with`` block is still running after `seconds`."""
        timer = threading.Timer(max(0.0, seconds), self.kill)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def ended(self) -> ChildEndedError:
        """Return an error that states the child's exit code and the last lines in the file of its standard error."""
        try:
            code = f"ended with exit code {self.process.wait(timeout=5)}"
        except subprocess.TimeoutExpired:
            code = "closed its output, but still runs"
        text = self.written()[-2000:].strip()
        return ChildEndedError(f"{self.name} {code}" + (f":\n{text}" if text else ", without a word"))

    def written(self) -> str:
        """Return the text that the child has written to standard error so far."""
        file = self._errors.fileno()
        size = os.fstat(file).st_size
        if hasattr(os, "pread"):  # the child shares the position in the file, which must not move while it writes
            return os.pread(file, size, 0).decode(errors="replace")
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def kill(self) -> None:
        """Kill the child and every process that it started."""
        self.killed = True
        if sys.platform == "win32":
            self.process.kill()
            return
        from psutil import pid_exists

        if self.process.returncode is not None and pid_exists(self.process.pid):
            return  # the child has ended, with all that it started, and the system has given its number to a stranger
        with suppress(ProcessLookupError, PermissionError):  # nothing of the child is left
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes, wait for the child to end, and kill the processes of the child that still run."""
        with suppress(OSError):  # the buffer may hold a message that the child no longer reads
            if self.process.stdin:
                self.process.stdin.close()
        if not self.killed and self.patience:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(self.patience)
        self.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        self._errors.close()

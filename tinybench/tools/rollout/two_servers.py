"""Two servers as child processes that end with the block or with this process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tinybench.tools.watching.prometheus import LEASH

__all__ = ["serving"]


@contextmanager
def serving(commands: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Run `tinybench serve` once for each list of arguments, on free ports. Yield the URLs when all are ready."""
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    environment = {**os.environ, "PYTHONPATH": path}
    with ExitStack() as stack:
        started = []
        for arguments in commands:
            errors = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace"))
            command = [sys.executable, "-IS", str(LEASH), sys.executable, "-P", "-m", "tinybench", "serve", *arguments]
            process = subprocess.Popen(
                [*command, "--port", "0"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
            stack.callback(_end, process)
            started.append((process, errors, arguments))
        urls = []
        for process, errors, arguments in started:
            assert process.stdout is not None
            line = process.stdout.readline()
            if (found := re.search(r"http://\S+", line)) is None:
                process.wait()
                errors.seek(0)
                said = " ".join(errors.read().split())[-500:]
                raise ValueError(f"the server of {Path(arguments[0]).name} did not start: {said or 'it said nothing'}")
            urls.append(found[0])
        yield urls


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.wait()
    process.stdout.close()

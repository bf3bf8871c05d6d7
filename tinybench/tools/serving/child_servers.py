"""A context manager that runs `tinybench serve` in child processes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tinybench.support.basics.child_process import ChildEndedError, ChildProcess

__all__ = ["serving"]


@contextmanager
def serving(commands: Sequence[Sequence[str]], seconds: float = 60.0) -> Iterator[list[str]]:
    """Run one `tinybench serve` for each list of arguments in `commands`, on free ports, while the block runs.

    Yield the URLs as soon as all servers accept requests. If a server is not ready within `seconds`, raise ValueError
    with the server's output.
    """
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    environment = {**os.environ, "PYTHONPATH": path}
    with ExitStack() as stack:
        servers, urls = [], []
        for arguments in commands:
            command = [sys.executable, "-P", "-m", "tinybench", "serve", *arguments, "--port", "0"]
            name = f"the server of {Path(arguments[0]).name}"
            servers.append(stack.enter_context(ChildProcess(command, name, wrapped=True, patience=60, env=environment)))
        for server in servers:
            try:
                line = server.receive(seconds)
            except ChildEndedError:
                line = ""
            if (found := re.search(r"http://\S+", line)) is None:
                message = " ".join(server.written().split())[-500:]
                raise ValueError(f"{server.name} did not start: {message or 'it wrote nothing'}")
            urls.append(found[0])
        yield urls

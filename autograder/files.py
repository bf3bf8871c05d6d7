"""Writing files, once for all wings."""

from __future__ import annotations

import os
from pathlib import Path

from tinybench.support.basics.whole_files import replacing


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the old or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())  # else it may be there, and empty, after the machine went down
        if hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), 0o644)  # whatever the umask: others read what is released and returned
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

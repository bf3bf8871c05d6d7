"""Atomic file writes for all parts of the autograder."""

from __future__ import annotations

import os
from pathlib import Path

from tinybench.support.basics.whole_files import replacing


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader finds either the old content or the complete new content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())  # otherwise the file might be empty after a crash of the machine
        if hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), 0o644)  # regardless of the umask: other users read released and returned files
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

"""Atomic file writes: a file has either its old content or its complete new content."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield an open file that replaces `path` when the block ends. If the block raises, `path` is unchanged.

    The open file is temporary. Its name is unpredictable and it is opened only once, so that nobody can replace it by a
    link.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    file = temporary.open("xb")
    try:
        with file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise

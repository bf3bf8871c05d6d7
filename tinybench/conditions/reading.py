"""What the kernel tells in small files."""

from __future__ import annotations

from pathlib import Path


def read_text(path: Path) -> str:
    """Return the text of a small file, or nothing where there is none that can be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20).strip()
    except (OSError, ValueError):
        return ""

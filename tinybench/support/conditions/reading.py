"""What the kernel and the installed packages tell in small files."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from pathlib import Path


def read_text(path: Path) -> str:
    """Return the text of a small file, or nothing where there is none that can be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20).strip()
    except (OSError, ValueError):
        return ""


@cache
def installed_version(name: str) -> str:
    """Return the version of a package, or raise PackageNotFoundError; a long file is parsed, and only once."""
    return version(name)

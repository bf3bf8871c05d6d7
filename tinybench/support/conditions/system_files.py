"""Readers of small files of the kernel, and of the metadata of installed packages."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from pathlib import Path


def read_text(path: Path) -> str:
    """Return the stripped text of a small file, or an empty string if the file is missing or unreadable."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20).strip()
    except (OSError, ValueError):
        return ""


@cache
def installed_version(name: str) -> str:
    """Return the version of a package, or raise PackageNotFoundError. Cache it because parsing a long file is slow."""
    return version(name)

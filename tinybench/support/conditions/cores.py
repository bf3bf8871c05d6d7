"""How many cores there are for this process."""

from __future__ import annotations

from typing import Any

import psutil


def usable_cores(process: Any = None) -> int:
    """Return how many cores this process may use: its affinity where the system knows one, else all of them."""
    affinity = getattr(process or psutil.Process(), "cpu_affinity", None)  # macOS has none
    return len(affinity()) if affinity else psutil.cpu_count() or 1

"""The number of cores that this process may use."""

from __future__ import annotations

from typing import Any

import psutil


def usable_cores(process: Any = None) -> int:
    """Return the number of cores in a process's CPU affinity. On systems without CPU affinity, count all cores."""
    affinity = getattr(process or psutil.Process(), "cpu_affinity", None)  # macOS has no CPU affinity
    return len(affinity()) if affinity else psutil.cpu_count() or 1

"""The kernel's high-water mark of this process, and the resident memory on any system."""

from __future__ import annotations

from pathlib import Path

import psutil

from tinybench.support.footprint.freed_memory import free_heap
from tinybench.support.footprint.memory_visibility import exact_memory


def read_status(proc: str | Path = "/proc") -> dict[str, int]:
    """Return the current resident memory (``VmRSS``) and its high-water mark (``VmHWM``), in bytes.

    Both are read from ``self/status`` in `proc`. Raises OSError if there is no such file, or if one of the two values
    is missing in it. This happens on systems other than Linux and in some sandboxes.
    """
    found = {}
    for line in Path(proc, "self", "status").read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(":")
        if name in ("VmRSS", "VmHWM"):
            found[name] = int(rest.split()[0]) * 1024
    if len(found) < 2:
        raise OSError(f"{proc}/self/status shows no VmRSS and VmHWM; this system does not keep a high-water mark")
    return found


def reset_peak(proc: str | Path = "/proc") -> None:
    """Set the high-water mark to the current resident memory, through ``self/clear_refs`` in `proc`.

    This also resets the maximum that `resource.getrusage` reports; see the manual page proc_pid_clear_refs(5). Raises
    OSError if the system does not allow it.
    """
    Path(proc, "self", "clear_refs").write_text("5", encoding="utf-8")


def can_reset(proc: str | Path = "/proc") -> bool:
    """Return whether this process can reset and read its high-water mark."""
    try:
        reset_peak(proc)
        read_status(proc)
    except OSError:
        return False
    return True


def resident_memory(proc: str | Path = "/proc") -> tuple[int, str]:
    """Return the current resident memory in bytes, and the name of the method by which it was found.

    The first of these methods that works is used: a count page by page, Linux's own count, and psutil.
    """
    try:
        return exact_memory("Rss", proc), "Rss of smaps_rollup"
    except OSError:
        pass
    try:
        return read_status(proc)["VmRSS"], "VmRSS"
    except OSError:
        return int(psutil.Process().memory_info().rss), "resident size (psutil)"


def settled_memory(proc: str | Path = "/proc") -> int:
    """Return the resident memory in bytes, after garbage and free heap pages are given back to the system."""
    free_heap()
    return resident_memory(proc)[0]

"""A table for module 15: the utilisation, saturation and errors of this machine's resources, over a short time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psutil

from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.table import Table

UNKNOWN = "not known here"


def resource_table(seconds: float = 1.0, root: Path = Path("/")) -> Table:
    """Return a table of the processor, the memory, the disks and the network, as they were for `seconds`."""
    disks, traffic, swapped = _disk_ms(), psutil.net_io_counters(), psutil.swap_memory().sout
    begin = time.perf_counter()
    busy = psutil.cpu_percent(seconds)
    took = time.perf_counter() - begin
    disks_busy, now = _disk_ms(), psutil.net_io_counters()
    written = psutil.swap_memory().sout - swapped
    moved = sum(now[:2]) - sum(traffic[:2])
    errors, dropped = (sum(now[k : k + 2]) - sum(traffic[k : k + 2]) for k in (4, 6))
    rows = [
        _row("processor", f"{busy:.0f} % busy", _waiting(root, "cpu") or f"load {psutil.getloadavg()[0]:.1f}", UNKNOWN),
        _row(
            "memory",
            f"{psutil.virtual_memory().percent:.0f} % in use",
            f"{written / 1e6:.0f} MB swapped out" + _more(_waiting(root, "memory")),
            UNKNOWN,
        ),
        _row(
            "disks",
            UNKNOWN
            if disks is None or disks_busy is None
            else f"{min(100.0, (disks_busy - disks) / took / 10):.0f} % busy",
            _waiting(root, "io") or UNKNOWN,
            UNKNOWN,
        ),
        _row(
            "network",
            f"{moved / took / 1e6:.1f} MB/s",
            number_of(dropped, "packet") + " dropped",
            number_of(errors, "error"),
        ),
    ]
    return Table(rows, f"Resources of this machine, for {took:.1f} s")


def _row(resource: str, *seen: str) -> dict[str, Any]:
    return dict(zip(("resource", "utilisation", "saturation", "errors"), (resource, *seen), strict=True))


def _more(told: str) -> str:
    return f", {told}" if told else ""


def _waiting(root: Path, resource: str) -> str:
    """Return Linux's pressure: the share of the last 10 s in which something waited for the resource."""
    try:
        some = (root / "proc" / "pressure" / resource).read_text(encoding="utf-8").split()[1]
    except (OSError, IndexError):
        return ""
    return f"work waited {float(some.partition('=')[2]):.0f} % of the last 10 s"


def _disk_ms() -> int | None:
    """Return the milliseconds that all disks were busy, or None if the system does not count them."""
    try:
        counters = psutil.disk_io_counters()
    except (OSError, RuntimeError):
        return None
    return getattr(counters, "busy_time", None)

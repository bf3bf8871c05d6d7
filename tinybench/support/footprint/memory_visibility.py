"""Limits of memory measurements: the error of the kernel's page counts, and the pages that one call touches."""

from __future__ import annotations

import math
import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinybench.result import BenchmarkResult
from tinybench.support.footprint.freed_memory import ARENA_ON, young_heap


def count_error(cores: int = 1) -> int:
    """Return the possible error in bytes of the kernel's memory counts after a call that keeps `cores` cores busy.

    Each core (before Linux 6.2, each thread) counts pages in batches of its own, with one batch for each of three kinds
    of pages; see proc_pid_status(5). The process is assumed to have run on one core more than it keeps busy.
    """
    there = os.cpu_count() or 1
    return 3 * min(cores + 1, max(2, there)) * max(32, 2 * there) * mmap.PAGESIZE


def exact_memory(field: str, proc: str | Path = "/proc") -> int:
    """Return a field of ``self/smaps_rollup`` in bytes, counted page by page. If it is missing, raise OSError."""
    for line in Path(proc, "self", "smaps_rollup").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{proc}/self/smaps_rollup shows no {field}")


def touched_memory(call: Callable[[Any], Any], x: Any, proc: str | Path = "/proc") -> tuple[int | None, int]:
    """Return the bytes of all pages that one call touches, and the number of cores that it keeps busy.

    Touched pages were read or written; they may have been resident before. If the folder `proc` has no
    ``self/smaps_rollup``, return None and 1 without the call.
    """
    try:
        exact_memory("Referenced", proc)
        Path(proc, "self", "clear_refs").write_text("1", encoding="utf-8")
    except OSError:
        return None, 1
    start, used = time.perf_counter(), time.process_time()
    with young_heap():  # a garbage collection would touch all existing objects
        call(x)
    cores = (time.process_time() - used) / max(time.perf_counter() - start, 1e-9)
    return exact_memory("Referenced", proc), max(1, min(math.ceil(cores), os.cpu_count() or 1))


def note_memory_seen(result: BenchmarkResult, first: float, touched: int | None = None, cores: int = 1) -> None:
    """Add notes to the metadata of a memory result about memory that the measurement may have missed.

    The argument `first` is the memory in bytes that the first call added. The new entries of the metadata are
    ``seen``, whether added memory was detected; ``resolution``, the error of the kernel's counts in bytes; and
    ``touched``, the bytes of touched pages. If memory may be hidden, ``caution`` describes it. If no added memory was
    detected, ``at_most`` is an upper bound of the memory that a call needs, or None if unknown.
    """
    error, added = count_error(cores), result.median
    small = f"below {error / 1e3:.0f} kB, the error of the kernel's counts" if added <= error else _megabytes(added)
    hidden = result.metadata.get("arena") == ARENA_ON
    seen = added > error and not hidden
    notes: dict[str, Any] = {"seen": seen, "resolution": error, "touched": touched}
    if hidden:
        notes["caution"] = f"added {small}, but an arena is on, and hides memory"
    elif first > 2 * added + error:
        notes["caution"] = (
            f"the first call added {_megabytes(first)}, later ones {small}: the rest may be kept for reuse"
        )
    elif not seen:
        notes["caution"] = f"added {small}; this is not 0, for an allocator that keeps memory hides it"
    if not seen:
        notes["at_most"] = None if touched is None else touched + max(error, int(added))
        most = "unknown" if touched is None else f"at most {_megabytes(notes['at_most'])}, with its weights"
        notes["caution"] += f"; what a call needs is {most}"
    result.metadata |= notes


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.1f} MB"

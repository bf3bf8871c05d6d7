"""Functions that move bytes within a working set, by NumPy and BLAS: reads, copies, and a triad (y + a x into y).

A working set is the memory that a function reads or writes in every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import psutil

from tinybench.tools.roofline.best_rates import Clock, Probe, call_time

_FEW = 0.1  # largest fraction of a measurement that the overhead of calls may take
HOW = {
    "read": "the largest of many numbers by NumPy, whose instructions may be slower than the first cache",
    "copy": "read and written by NumPy; most processors also read what they overwrite, which is not counted",
    "triad": "y + a x into y by BLAS, two read and one written",
}


def mover(kind: str, numbers: np.ndarray) -> tuple[Callable[[], Any], float]:
    """Return a function that moves bytes within an array of float32, and the number of bytes that a call moves."""
    if kind == "read":
        again = max(1, min(4096, 2**24 // numbers.nbytes))  # passes per call, as starting a call may take longer
        highest = np.empty(again, np.float32)
        view = np.broadcast_to(numbers, (again, len(numbers)))
        return partial(np.maximum.reduce, view, axis=1, out=highest), float(numbers.nbytes * again)
    source, target = np.split(numbers, 2)
    if kind == "copy":
        return partial(np.copyto, target, source), float(numbers.nbytes)
    from scipy.linalg.blas import saxpy

    return partial(saxpy, source, target, a=1e-3), float(source.nbytes + 2 * target.nbytes)


def _together(calls: Sequence[Callable[[], Any]], pool: ThreadPoolExecutor) -> Callable[[], Any]:
    """Return a function that runs all calls in parallel, one per thread. A single call runs in the caller's thread."""
    if len(calls) == 1:
        return calls[0]
    return lambda: [waiting.result() for waiting in [pool.submit(call) for call in calls]]


def find_movers(
    kinds: Iterable[str], working_sets: Sequence[int], pool: ThreadPoolExecutor, threads: int, clock: Clock
) -> list[Probe]:
    """Return a probe for each kind of movement and each size of a thread's working set.

    Probes are left out if they would mostly measure the overhead of calls.
    """
    found = []
    # zeros are written, so that every page is allocated; a triad does not change them
    memory = [np.full(max(working_sets) // 4, 0.0, np.float32) for _ in range(threads)]
    for kind in kinds:
        empty = call_time(_together([mover(kind, memory[0][:16])[0]] * threads, pool), clock)
        for size in working_sets if kind == "read" else working_sets[::2]:
            each = [mover(kind, numbers[: size // 4]) for numbers in memory]
            call = _together([call for call, _ in each], pool)
            if kind == "read" or empty < _FEW * call_time(call, clock):
                notes = {"kind": kind, "working_set": size, "how": HOW[kind], "threads": threads}
                found.append(Probe(call, sum(amount for _, amount in each), notes))
    return found


def working_sets(caches: Mapping[str, int], largest: int) -> list[int]:
    """Return the sizes in bytes of the working sets to measure.

    They are 16 KiB and its doublings up to `largest`, half of each cache, and `largest` itself.
    """
    steps = {2**power for power in range(14, largest.bit_length())} | {size // 2 for size in caches.values()}
    return sorted(size // 64 * 64 for size in steps | {largest} if size <= largest)


def largest_set(caches: Mapping[str, int], seconds: float, threads: int) -> int:
    """Return the size in bytes of the largest working set to measure.

    If memory and time allow, this is four times the largest cache, and at least 256 MiB.
    """
    wanted = max([2**28, *(4 * size for size in caches.values())])
    return int(min(wanted, psutil.virtual_memory().available / 8 / threads, max(2**26, seconds * 2**24) / threads))

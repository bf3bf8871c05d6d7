"""The measured roofs of this machine, which are its maximum rates.

They are the operations/s of matrix multiplications by type, and the bytes/s by size of the working set.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult
from tinybench.support.basics.result_text import format_interval
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import Table
from tinybench.support.choices.ranked_values import interval
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.tools.roofline.best_rates import ROUNDS, Clock, Probe, measure_rates
from tinybench.tools.roofline.byte_movers import HOW, find_movers, largest_set, working_sets
from tinybench.tools.roofline.matrix_products import TYPES, find_products
from tinybench.tools.roofline.specification import Specification, read_caches, read_processor, specifications

__all__ = ["Probe", "Roofs", "measure_rates", "measure_roofs"]


@dataclass(frozen=True)
class Roofs:
    """The measured maximum rates of a machine.

    Attributes
    ----------
    products, bandwidths
        The rate of each matrix multiplication in 10⁹ operations/s, and the rate of each kind of byte movement at each
        size of the working set in GB/s.
    caches
        The size of each cache in bytes, by level. Empty if the system reports no caches.
    specification
        The theoretical peak of the processor, by type. Types with an unknown peak are left out.
    threads, notes
        The number of threads that were used in the measurements, and sentences about what could not be measured.
    """

    products: list[BenchmarkResult]
    bandwidths: list[BenchmarkResult]
    caches: dict[str, int] = field(default_factory=dict)
    specification: dict[str, Specification] = field(default_factory=dict)
    threads: int = 1
    notes: tuple[str, ...] = ()

    __repr__ = short_repr

    @property
    def peaks(self) -> dict[str, BenchmarkResult]:
        """The result of the fastest matrix multiplication for each type.

        Types in which no matrix multiplication really ran are left out.
        """
        best: dict[str, BenchmarkResult] = {}
        for result in self.products:
            ran = result.metadata["ran_in"]
            if ran not in best or result.median > best[ran].median:
                best[ran] = result
        return best

    def peak(self, dtype: str) -> float:
        """Return the maximum operations/s of a type, such as ``"float32"``. ``"int8"`` stands for ``"uint8 × int8"``.

        Raise ValueError for a type in which no matrix multiplication ran.
        """
        dtype = "uint8 × int8" if dtype == "int8" else dtype
        if dtype not in self.peaks:
            raise ValueError(f"no product ran in {dtype} here; measured are {', '.join(self.peaks)}")
        return 1e9 * self.peaks[dtype].median

    @property
    def reads(self) -> list[BenchmarkResult]:
        """The measured read bandwidths, sorted by working set."""
        found = [result for result in self.bandwidths if result.metadata["kind"] == "read"]
        return sorted(found, key=lambda result: int(result.metadata["working_set"]))

    @property
    def fastest_reads(self) -> dict[int, BenchmarkResult]:
        """The fastest read of each working set or a larger one, by size.

        A nearer cache is at least as fast as a farther one. If a small working set is read more slowly, the
        instructions of the read were the limit, and not the cache.
        """
        found: dict[int, BenchmarkResult] = {}
        for result in reversed(self.reads):
            farther = next(reversed(found.values()), result)
            found[result.metadata["working_set"]] = max(farther, result, key=lambda each: each.median)
        return dict(reversed(found.items()))

    def bandwidth(self, working_set: float) -> float:
        """Return the bytes/s at which a working set is read, interpolated between the `fastest_reads`."""
        sizes, rates = np.log([*self.fastest_reads]), [result.median for result in self.fastest_reads.values()]
        return 1e9 * float(np.interp(np.log(max(working_set, 1)), sizes, rates))

    def level(self, working_set: float) -> str:
        """Return the name of the first cache that can hold a working set, or ``"memory"`` if none can.

        If no cache size is known, return the size of the working set as text.
        """
        fitting = [level for level, size in self.caches.items() if working_set <= size]
        return fitting[0] if fitting else "memory" if self.caches else bytes_text(working_set)

    @property
    def levels(self) -> dict[str, BenchmarkResult]:
        """The read bandwidth of each cache, and of the largest working set, by name.

        For a cache, it is the bandwidth of a working set that fills half of the cache, among the `fastest_reads`. The
        largest working set has the name ``"memory"`` if it is at least twice as large as the largest cache. Otherwise
        its name is its size.
        """
        by_size = self.fastest_reads
        wanted = {level: size // 2 // 64 * 64 for level, size in self.caches.items()}
        found = {level: by_size[size] for level, size in wanted.items() if size in by_size}
        last = max(by_size)
        if not self.caches:
            return {bytes_text(size): by_size[size] for size in by_size if size in (2**15, 2**20, last)}
        beyond = last >= 2 * max(self.caches.values())
        return found | {"memory" if beyond else bytes_text(last): by_size[last]}

    def tables(self) -> tuple[Table, Table]:
        """Return a table of the peaks compared with the specification, and a table of the bandwidths."""
        of = f"{self.threads} {'thread' if self.threads == 1 else 'threads'}"
        peaks = [
            {
                "product of": result.metadata["dtype"],
                "by": result.metadata["by"],
                "ran in": result.metadata["ran_in"],
                "10⁹ operations/s": median_with_interval(result),
                "specification": against(result, self.specification.get(result.metadata["ran_in"])),
            }
            for result in self.products
        ]
        bandwidths = [
            {
                "working set": bytes_text(size),
                "lies in": self.level(size),
                **{f"{kind}, GB/s": next(map(median_with_interval, self._moved(kind, size)), "–") for kind in HOW},
            }
            for size in sorted({result.metadata["working_set"] for result in self.bandwidths})
        ]
        return Table(peaks, f"Products of matrices, {of}"), Table(bandwidths, f"Bytes moved, {of}")

    def _moved(self, kind: str, size: int) -> list[BenchmarkResult]:
        return [r for r in self.bandwidths if (r.metadata["kind"], r.metadata["working_set"]) == (kind, size)]

    @property
    def sentences(self) -> list[str]:
        """Sentences on the assumptions of the specification, how bytes were moved, and what could not be measured."""
        known = {kind: each.assumed for kind, each in self.specification.items() if kind in self.peaks}
        ways = dict.fromkeys(result.metadata["kind"] for result in self.bandwidths)
        told = [f"Specification of {kind}: {assumed}." for kind, assumed in known.items()]
        told += [*(f"Bytes of a {kind}: {HOW[kind]}." for kind in ways), *self.notes]
        *_, last = self.caches or [""]
        levels = {level: result.median for level, result in self.levels.items()} if self.reads else {}
        if last in levels and levels[last] < 1.2 * [*levels.values()][-1] and last != [*levels][-1]:
            told.append(
                f"Half of {last} is read hardly faster than {[*levels][-1]}: this machine may have only a part of it, "
                "as a virtual one does, or others use it now."
            )
        told += [
            f"{level} is read no faster than {bytes_text(result.metadata['working_set'])} here, whose rate stands for "
            "it: the instructions of the read are the limit."
            for level, result in (self.levels.items() if self.reads else ())
            if level in self.caches and result.metadata["working_set"] > self.caches[level]
        ]
        return told

    def __str__(self) -> str:
        """Return the tables of peaks and bandwidths, followed by the explanatory sentences."""
        return "\n\n".join([*map(str, self.tables()), *self.sentences])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        told = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)
        return {"text/plain": str(self), "text/html": "".join(table.html() for table in self.tables()) + told}


def bytes_text(size: float) -> str:
    """Return a size in powers of 1024, as is usual for caches: ``"48 KiB"``."""
    for factor, name in (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"):
        if size >= factor:
            return f"{size / factor:.3g} {name}"
    return f"{size:.0f} B"


def median_with_interval(result: BenchmarkResult) -> str:
    """Return the median with its interval, or with the range if there are fewer than 6 values."""
    named = f"{100 * result.confidence:.3g} % CI" if result.count >= 6 else "range"
    return format_interval(result.median, *interval(result), "", named).strip()


def against(result: BenchmarkResult, known: Specification | None) -> str:
    """Return which fraction of the specified peak was reached, as text.

    If the fraction is more than 102 %, the text says that an assumption about the peak is wrong.
    """
    if known is None:
        return "not known"
    share = 1e9 * result.median / known.rate
    wrong = ": an assumption is wrong" if share > 1.02 else ""
    return f"{share:.0%} of {known.rate / 1e9:,.0f}{wrong}"


def measure_roofs(
    dtypes: Iterable[str] = TYPES,
    seconds: float = 6.0,
    threads: int = 1,
    *,
    kinds: Iterable[str] = tuple(HOW),
    largest: int | None = None,
    rounds: int = ROUNDS,
    clock: Clock = time.perf_counter,
    root: str | Path = "/",
    seed: int = 0,
) -> Roofs:
    """Measure the maximum rates at which this machine computes and moves bytes.

    Parameters
    ----------
    dtypes
        Types of matrix multiplications; see `tinybench.tools.roofline.matrix_products.TYPES`.
    seconds
        The approximate total time in seconds, on a machine that is fast enough.
    threads
        The number of threads that compute and move bytes, each within its own working set.
    kinds
        The kinds of byte movement to measure: any of ``"read"``, ``"copy"`` and ``"triad"``.
    largest
        The largest working set in bytes. By default, it is larger than the last cache, as far as memory and time allow.
    rounds
        The number of measurements of each rate; at least 6 for an interval.
    clock, root, seed
        The clock, which returns seconds; the folder that contains ``/proc`` and ``/sys``; and the seed of the random
        orders.
    """
    caches, notes = read_caches(root), []
    largest = largest or largest_set(caches, seconds, threads)
    kinds = [kind for kind in kinds if kind != "triad" or threads == 1]
    with ThreadPoolExecutor(threads) as pool:
        found, left_out = find_products(dtypes, threads, seconds / 100, clock)
        computing = [Probe(call, amount, about) for call, amount, about in found]
        moving = find_movers(kinds, working_sets(caches, largest), pool, threads, clock)
        probes = computing + moving
        rates = measure_rates(probes, 0.6 * seconds, rounds, clock, seed)
    state = machine_notes()
    notes += left_out
    if caches and largest < 2 * max(caches.values()):
        notes.append(
            f"The largest working set is {bytes_text(largest)}, less than twice the last cache "
            f"({bytes_text(max(caches.values()))}): what memory alone gives was not reached."
        )
    results = [
        BenchmarkResult(
            "rate", values, probe.metadata | state, unit="GB/s" if "kind" in probe.metadata else "10⁹ operations/s"
        )
        for probe, values in zip(probes, rates, strict=True)
    ]
    specification = specifications(read_processor(root), threads)
    return Roofs(results[: len(computing)], results[len(computing) :], caches, specification, threads, tuple(notes))

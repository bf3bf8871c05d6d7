"""The theoretical peak of a processor, computed from its instruction sets and clock, and the sizes of its caches."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.conditions.process_conditions import command_output
from tinybench.support.conditions.system_files import read_text

_SIZES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
# operations per cycle of one core: a multiply-add counts as two, and each of two units can begin one in every cycle
_FLOAT = (
    ("avx512f", 64, "AVX-512 with two units for multiply-add (processors with one do half)"),
    ("fma", 32, "AVX2 with two units for multiply-add"),
    ("avx", 16, "AVX, one multiplication and one addition in a cycle"),
    ("sse2", 8, "SSE, one multiplication and one addition in a cycle"),
    ("asimd", 16, "NEON with two units for multiply-add (some cores have four)"),
)
_INTEGER = (
    ("amx_int8", 2048, "AMX: a tile product of 16 × 16 × 64 in 16 cycles"),
    ("avx512_vnni", 256, "AVX-512 VNNI with two units (processors with one do half)"),
    ("avx_vnni", 128, "AVX-VNNI with two units"),
    ("avx512bw", 128, "AVX-512 without VNNI: two instructions multiply and add pairs, a third adds the sums"),
    ("avx2", 64, "AVX2 without VNNI: two instructions multiply and add pairs, a third adds the sums"),
    ("i8mm", 128, "NEON with i8mm, two units"),
    ("asimddp", 64, "NEON with dot products, two units"),
)


@dataclass(frozen=True)
class Specification:
    """The theoretical maximum of operations/s, and the assumptions behind this number."""

    rate: float
    assumed: str


@dataclass(frozen=True)
class Processor:
    """The instruction sets of a processor, its clock in Hz, and the source of the clock."""

    flags: frozenset[str] = frozenset()
    clock: float | None = None
    clock_from: str = ""

    __repr__ = short_repr


def _sysctl(name: str) -> str:
    return command_output("sysctl", "-n", name)


def read_caches(root: str | Path = "/", system: str = sys.platform) -> dict[str, int]:
    """Return the sizes in bytes of the first core's data caches, by level, such as ``"L2"``.

    If the system does not report the sizes, the result is empty. `root` is the folder that contains ``/sys``.
    """
    if system == "darwin":
        named = {"L1": ("hw.perflevel0.l1dcachesize", "hw.l1dcachesize"), "L3": ("hw.l3cachesize",)}
        named["L2"] = ("hw.perflevel0.l2cachesize", "hw.l2cachesize")
        read = {level: next((size for name in names if (size := _sysctl(name))), "0") for level, names in named.items()}
        return {level: int(read[level]) for level in sorted(read) if read[level].isdigit() and int(read[level])}
    found: dict[str, int] = {}
    for folder in sorted(Path(root, "sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (read_text(folder / name) for name in ("level", "type", "size"))
        if level and kind in ("Data", "Unified") and (match := re.fullmatch(r"(\d+)([KMG]?)", size)):
            found[f"L{level}"] = int(match[1]) * _SIZES[match[2]]
    return dict(sorted(found.items()))


def read_processor(root: str | Path = "/") -> Processor:
    """Read the properties of the first core from ``/proc`` and ``/sys`` in the folder `root`."""
    told = read_text(Path(root, "proc/cpuinfo"))
    lines = re.findall(r"^(flags|Features)\s*:(.*)$", told, re.MULTILINE)
    flags = frozenset(lines[0][1].split()) if lines else frozenset()
    highest = read_text(Path(root, "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"))
    if highest.isdigit():
        return Processor(flags, 1e3 * int(highest), "the highest that the system allows")
    if named := re.search(r"@ ([\d.]+)GHz", told):
        return Processor(flags, 1e9 * float(named[1]), "the base clock in its name; it may run faster")
    if now := re.search(r"^cpu MHz\s*:\s*([\d.]+)", told, re.MULTILINE):
        return Processor(flags, 1e6 * float(now[1]), "what it says now; it may run faster")
    return Processor(flags)


def _best(sets: Collection[tuple[str, int, str]], flags: Collection[str]) -> tuple[int, str] | None:
    return next(((rate, words) for flag, rate, words in sets if flag in flags), None)


def specifications(processor: Processor, cores: int) -> dict[str, Specification]:
    """Return the theoretical peak of each type: cores × clock × operations per cycle.

    Types whose peak is not known are left out.
    """
    if processor.clock is None:
        return {}
    gigahertz = (
        f"{cores} {'core' if cores == 1 else 'cores'} × {processor.clock / 1e9:.3g} GHz ({processor.clock_from})"
    )
    found = {}
    if floats := _best(_FLOAT, processor.flags):
        per_cycle, words = floats
        for kind, width in ("float32", 1), ("float64", 2):
            assumed = f"{gigahertz} × {per_cycle // width}: {words}"
            found[kind] = Specification(cores * processor.clock * per_cycle / width, assumed)
    if integers := _best(_INTEGER, processor.flags):
        per_cycle, words = integers
        for kind in ("uint8 × int8", "int8 × int8"):
            found[kind] = Specification(cores * processor.clock * per_cycle, f"{gigahertz} × {per_cycle}: {words}")
    return found

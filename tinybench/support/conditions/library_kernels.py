"""Loaded linear algebra libraries, their kernels, and the processor instructions that a kernel does not use."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tinybench.support.conditions.system_files import read_text

# Instruction sets, the processor's flags for them, and the kernels of OpenBLAS (dynamic.c) and BLIS (bli_arch.c) that
# use them. The widest instruction set comes first. A kernel that is not listed causes no warning.
_X86 = (
    (
        "AVX-512",
        {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd"},
        {"skylakex", "cooperlake", "sapphirerapids", "skx", "zen4", "zen5"},
    ),
    ("AVX2", {"avx2", "fma"}, {"haswell", "zen", "excavator", "zen2", "zen3"}),
    ("AVX", {"avx"}, {"sandybridge", "bulldozer", "piledriver", "steamroller"}),
    (
        "SSE",
        set[str](),
        {"katmai", "coppermine", "northwood", "prescott", "banias", "atom", "core2", "penryn", "dunnington", "nehalem"}
        | {"athlon", "opteron", "opteron_sse3", "barcelona", "nano", "bobcat", "generic"},
    ),
)
_ARM = (
    ("SVE", {"sve"}, {"armv8sve", "neoversev1", "neoversev2", "neoversen2", "a64fx", "armsve"}),
    (
        "NEON",
        set[str](),
        {"armv8", "cortexa53", "cortexa55", "cortexa57", "cortexa72", "cortexa73", "neoversen1", "thunderx"}
        | {"thunderx2t99", "thunderx3t110", "falkor", "tsv110", "emag8180", "generic"},
    ),
)
_NUMPY_FLAGS = {  # NumPy's names of the flags, for systems where no file lists the processor's flags
    "avx": {"AVX", "X86_V3"},
    "fma": {"FMA3", "X86_V3"},
    "avx2": {"AVX2", "X86_V3"},
    **{flag: {"AVX512_SKX", "X86_V4"} for flag in ("avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd")},
    "asimd": {"ASIMD", "NEON"},
    "sve": {"SVE"},
}


class Blas(NamedTuple):
    """A loaded linear algebra library.

    Attributes
    ----------
    package
        The Python package that ships the library, such as ``numpy``, or ``system`` for a library of the system itself.
        Several packages may each ship their own library.
    name
        The name and version of the library, such as ``openblas 0.3.31``.
    kernel
        The processor type for which the selected kernels were written, such as ``SkylakeX``. Empty if the library does
        not report this type.
    threads
        The number of threads that the library may use.
    """

    package: str
    name: str
    kernel: str
    threads: int

    def __str__(self) -> str:
        return f"{self.kernel or 'kernel not reported'} ({self.name} of {self.package})"


def loaded_pools() -> list[dict[str, Any]] | None:
    """Return threadpoolctl's description of each loaded library that uses threads. Without threadpoolctl, return None.

    The call loads no library, so a library that has not been used yet is not listed. The call takes a few milliseconds.
    """
    try:
        from threadpoolctl import threadpool_info  # type: ignore[import-untyped]
    except ImportError:
        return None
    return list(threadpool_info())


def loaded_blas() -> list[Blas] | None:
    """Return the loaded linear algebra libraries, or None if threadpoolctl is not installed."""
    pools = loaded_pools()
    return None if pools is None else read_pools(pools)


def read_pools(pools: Iterable[Mapping[str, Any]]) -> list[Blas]:
    """Return the linear algebra libraries among the thread pools that `threadpoolctl.threadpool_info` lists.

    NumPy's library comes first, whatever the order in which the libraries were loaded.
    """
    found = (
        Blas(
            _package(pool["filepath"]),
            f"{pool['internal_api']} {pool['version']}",
            pool.get("architecture") or "",
            pool["num_threads"],
        )
        for pool in pools
        if pool["user_api"] == "blas"
    )
    first = ("numpy", "system")
    return sorted(found, key=lambda blas: (blas.package not in first, blas))


def _package(file: str) -> str:
    """Return the Python package that contains a shared library, or ``system``."""
    found = re.search(r"[/\\](?:site|dist)-packages[/\\]([a-z0-9]+)", file)
    return found[1] if found else "system"


def conditions_of_blas(libraries: Sequence[Blas] | None) -> dict[str, str]:
    """Return the name, threads and kernel of each library as conditions of a measurement, NumPy's library first."""
    found: dict[str, str] = {}
    for number, blas in enumerate(libraries or ()):
        of = f" of {blas.package}" if number else ""
        found |= {f"BLAS{of}": blas.name, f"BLAS threads{of}": str(blas.threads)}
        found |= {f"BLAS kernel{of}": blas.kernel} if blas.kernel else {}
    return found


def listed_flags(root: Path) -> set[str]:
    """Return the processor flags that Linux lists below `root`, or an empty set on other systems."""
    listed = re.search(r"^(?:flags|features)\s*:(.*)", read_text(root / "proc/cpuinfo"), re.IGNORECASE | re.MULTILINE)
    return set(listed[1].split()) if listed else set()


def numpy_flags() -> set[str]:
    """Return the flags of this processor that NumPy reports, translated to Linux's names."""
    import numpy as np

    known = set(np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", []))
    return {flag for flag, names in _NUMPY_FLAGS.items() if names & known}


def unused_instructions(kernel: str, flags: Collection[str]) -> str:
    """Return the widest instruction set of a processor if the kernel does not use it, else an empty string."""
    levels = _ARM if "asimd" in flags else _X86
    used = next((level for level, (_, _, kernels) in enumerate(levels) if kernel.lower() in kernels), 0)
    best = next(level for level, (_, needed, _) in enumerate(levels) if needed <= set(flags))
    return levels[best][0] if best < used else ""


def slower_kernels(libraries: Sequence[Blas], flags: Collection[str]) -> dict[str, str]:
    """Return the libraries whose kernels leave processor instructions unused, each with the unused instructions."""
    found = {str(blas): unused_instructions(blas.kernel, flags) for blas in libraries}
    return {text: instructions for text, instructions in found.items() if instructions}

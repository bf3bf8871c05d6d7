"""Facts about the machine and the libraries, under which measurements are made."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tinybench.support.conditions.cores import usable_cores
from tinybench.support.conditions.environment_variables import read_settings
from tinybench.support.conditions.int8_probe import integer_products
from tinybench.support.conditions.library_kernels import loaded_pools, read_pools
from tinybench.support.conditions.machine_facts import turbo
from tinybench.support.conditions.system_files import installed_version
from tinybench.support.rounds.machine_state import library_conditions

TELLING_FLAGS = {
    "avx2": "AVX2",
    "avx512f": "AVX-512",
    "avx512_vnni": "AVX-512 VNNI",
    "avx_vnni": "AVX-VNNI",
    "amx_int8": "AMX INT8",
    "amx_bf16": "AMX BF16",
    "asimd": "NEON",
    "asimddp": "NEON dot product",
    "sve": "SVE",
}
_NUMPY_FLAGS = {
    "avx2": {"AVX2", "X86_V3"},
    "avx512f": {"AVX512F", "X86_V4"},
    "avx512_vnni": {"AVX512_CLX", "AVX512_ICL"},
    "asimd": {"ASIMD", "NEON"},
    "asimddp": {"ASIMDDP"},
    "sve": {"SVE"},
}
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "onnx", "onnxruntime", "skl2onnx", "tinybench-ml")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def library_versions(names: Iterable[str] = _LIBRARIES) -> dict[str, str]:
    """Return the installed version of each Python distribution. Distributions that are not installed are left out."""
    found = {}
    for name in names:
        try:
            found[name] = installed_version(name)
        except PackageNotFoundError:
            continue
    return found


def thread_settings(pools: Sequence[Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """Return how many threads linear algebra may use, according to environment variables and to each loaded library.

    `pools` is the result of `loaded_pools`, if the caller has it already.
    """
    settings: dict[str, Any] = {name: os.environ[name] for name in _THREAD_VARIABLES if name in os.environ}
    pools = loaded_pools() if pools is None else pools
    if pools is None:
        return settings
    for own in read_pools(pools)[:1]:
        settings |= {"blas": own.name, "blas_threads": own.threads}
    return settings | {"pools": [f"{pool['internal_api']} {pool['version']}: {pool['num_threads']}" for pool in pools]}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def cpu_elsewhere(cpu_info: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Return what `cpu_info` returns, on systems without ``/proc/cpuinfo``.

    The name comes from the operating system, and the flags from NumPy.
    """
    name = platform.processor() or platform.machine()
    if platform.system() == "Darwin":  # there, platform.processor() only returns "arm"
        asked = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
        )
        name = asked.stdout.strip() or name
    found = set(np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", []))
    flags = " ".join(flag for flag, words in _NUMPY_FLAGS.items() if words & found)
    return cpu_info(f"model name: {name}\nflags: {flags}\n")


def clock_rate() -> dict[str, float] | None:
    """Return the processor's ``current``, ``min`` and ``max`` frequency in MHz (0 where unknown).

    Return None if the system does not report any frequency.
    """
    try:
        rate = psutil.cpu_freq()
    except (AttributeError, OSError, RuntimeError):  # not every system and virtual machine has one
        return None
    return rate._asdict() if rate else None


def integer_kernels() -> dict[str, str] | None:
    """Return how ONNX Runtime multiplies 8-bit integers (see `integer_products`), or None without ONNX Runtime."""
    try:
        return integer_products()
    except ImportError:
        return None


def system_record(root: Path, cpu_info: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Return the record of `tinybench.benchmark.system_info`. `cpu_info` reads the text of ``/proc/cpuinfo``."""
    text = _text(root / "proc" / "cpuinfo")
    cpu = cpu_info(text) if text else cpu_elsewhere(cpu_info)
    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    sources = root / "sys/devices/system/clocksource/clocksource0"
    pools = loaded_pools()
    found = {
        "platform": platform.platform(),
        "cpu": cpu["model"] if cpu["model"] != "unknown" else platform.processor() or platform.machine(),
        "cpu_flags": cpu["flags"],
        "cores": usable_cores(),
        "cores_logical": psutil.cpu_count(),
        "cores_physical": psutil.cpu_count(logical=False),
        "frequency": clock_rate(),
        "governor": _text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or None,
        "turbo": turbo(root),
        "clock_source": _text(sources / "current_clocksource") or None,
        "memory": psutil.virtual_memory().total,
        "python": platform.python_version(),
        "libraries": library_versions(),
        "integer_products": integer_kernels(),
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "threads": thread_settings(pools),
        "settings": read_settings(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_average": list(psutil.getloadavg()),
    }
    return found | {"conditions": {**shared_conditions(found), **library_conditions(pools)}}


def shared_conditions(system: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the conditions that two measurements must share to be compared, by name.

    Each condition is plain text, or None if it is unknown.

    The conditions of numerical libraries come from `library_conditions`.
    """
    threads = system["threads"]
    found = {
        "processor": system["cpu"],
        "instruction sets": ", ".join(system["cpu_flags"]),
        "cores": system["cores"],
        "governor": system["governor"],
        "turbo": None if system["turbo"] is None else "on" if system["turbo"] else "off",
        "clock source": system["clock_source"],
        "timer": time.get_clock_info("perf_counter").implementation,
        "operating system": system["platform"],
        "Python": system["python"],
        "BLAS": threads.get("blas", system["blas"]),
        "BLAS threads": threads.get("blas_threads"),
        **{f"{name} version": number for name, number in system["libraries"].items()},
    }
    return {name: None if value is None else str(value) for name, value in found.items()}

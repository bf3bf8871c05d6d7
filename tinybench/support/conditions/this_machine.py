"""What no file of the kernel tells: this process, its Python, and what macOS and Windows answer when asked."""

from __future__ import annotations

import gc
import os
import platform
import re
import subprocess
import sys
import sysconfig
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import psutil

from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.conditions.cores import usable_cores
from tinybench.support.conditions.environment_variables import LIMITS, read_settings
from tinybench.support.conditions.library_kernels import loaded_pools, numpy_flags, read_pools
from tinybench.timer import clock_resolution

SPINNING = {"OMP_WAIT_POLICY": "active", "KMP_BLOCKTIME": "infinite", "GOMP_SPINCOUNT": "infinite"}
PLANS = {  # of Windows; their names are translated, their numbers are not
    "a1841308-3541-4fab-bc81-f71556f20b4a": "power saver",
    "381b4222-f694-41f0-9685-ff5bb260df2e": "balanced",
    "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c": "high performance",
    "e9a42b02-d5df-448d-aa00-03f14749eb61": "ultimate performance",
}


def command_output(*command: str) -> str:
    """Return what a command of the system prints, nothing if it cannot be asked."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=5, check=False
        ).stdout.strip()
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""


def busy_seconds() -> float:
    """Return how long this process and those it started and has waited for kept a core busy, in s."""
    times = os.times()
    return sum(times[:4])


def spent_seconds() -> tuple[float, float] | None:
    """Return for how long all cores together were busy and idle, in s; None where nobody counts."""
    try:
        times = psutil.cpu_times()
    except (OSError, RuntimeError):
        return None
    return times.user + times.system + getattr(times, "nice", 0.0), times.idle


@dataclass(frozen=True)
class Here:
    """What a look at a machine needs beside its files.

    Attributes
    ----------
    system, release
        As `platform.system` and `platform.release` say.
    cores
        Those that this process may use, by number; none where nobody knows, which means all.
    process
        Facts about this process, see `process_facts`.
    ask
        Runs a command of the system and returns what it prints.
    clock, pause, busy
        Seconds, a wait of so many, and the seconds that this process kept a core busy.
    spent
        Where there is no ``/proc/stat``: the seconds that all cores together were busy, and idle.
    """

    system: str = "Linux"
    release: str = ""
    cores: Sequence[int] = ()
    process: Mapping[str, Any] = field(default_factory=dict)
    ask: Callable[..., str] = command_output
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], Any] = time.sleep
    busy: Callable[[], float] = busy_seconds
    spent: Callable[[], tuple[float, float] | None] = spent_seconds

    __repr__ = short_repr


def here() -> Here:
    """Return this machine and process."""
    affinity = getattr(psutil.Process(), "cpu_affinity", None)  # macOS has none
    cores = affinity() if affinity else range(usable_cores())
    return Here(platform.system(), platform.release(), tuple(cores), process_facts())


def process_facts() -> dict[str, Any]:
    """Return facts about this process: linear algebra, settings, threads, priority, Python's speed, and its clock."""
    settings, pools = read_settings(), loaded_pools()
    counts = [int(pool["num_threads"]) for pool in pools or ()]
    spinning = [f"{name}={os.environ[name]}" for name in SPINNING if os.environ.get(name, "").lower() == SPINNING[name]]
    return {
        "threads": max(counts, default=None),
        "blas": read_pools(pools or ()) or None,
        "flags": numpy_flags(),
        "settings": settings,
        "limits": [name for name in LIMITS if name in settings],
        "spinning": spinning,
        "priority": priority(),
        "python": python_burdens(),
        "clock_step": clock_resolution(time.perf_counter, 100, 10_000),
        "unplugged": unplugged(),
        "superuser": getattr(os, "geteuid", lambda: -1)() == 0,
    }


def priority() -> str | None:
    """Return what makes the system run others first, an empty text for nothing."""
    with suppress(OSError, psutil.Error, ValueError):
        value = psutil.Process().nice()
        if platform.system() == "Windows":
            low = (getattr(psutil, name, None) for name in ("IDLE_PRIORITY_CLASS", "BELOW_NORMAL_PRIORITY_CLASS"))
            return "a low priority class" if value in low else ""
        idle = getattr(os, "SCHED_IDLE", None)  # Linux only
        if idle is not None and os.sched_getscheduler(0) == idle:
            return "SCHED_IDLE"
        return f"nice {int(value)}" if value > 0 else ""
    return None


def unplugged() -> bool | None:
    """Return whether this machine runs on its battery, False without one; None where nobody knows."""
    try:
        battery = psutil.sensors_battery()
    except (AttributeError, OSError, RuntimeError):
        return None
    return battery is not None and battery.power_plugged is False


def python_burdens() -> list[str]:
    """Return what makes this Python slower than users' is."""
    monitoring = getattr(sys, "monitoring", None)
    tools = [name for number in range(6) if (name := monitoring.get_tool(number))] if monitoring else []
    burdens = {
        "a debug build": sysconfig.get_config_var("Py_DEBUG") or hasattr(sys, "gettotalrefcount"),
        "development mode (-X dev)": sys.flags.dev_mode,
        "a trace function (debugger or coverage)": sys.gettrace(),
        "a profiler": sys.getprofile(),
        "tracemalloc": tracemalloc.is_tracing(),
        "PYTHONMALLOC=debug": os.environ.get("PYTHONMALLOC", "").endswith("debug") and not sys.flags.dev_mode,
        "gc.set_debug": gc.get_debug(),
    }
    return [name for name, there in burdens.items() if there] + [f"{name} (sys.monitoring)" for name in tools]


def facts_by_asking(of: Here) -> dict[str, Any]:
    """Return what macOS or Windows says; for other systems nothing."""
    told = {"cpu_max": "max", "wsl": False, "container": ""}
    if of.system == "Darwin":
        return told | _of_macos(of)
    return told | _of_windows(of) if of.system == "Windows" else {}


def _of_macos(of: Here) -> dict[str, Any]:
    def count(name: str) -> int | None:
        return int(text) if re.fullmatch(r"\d{1,9}", text := of.ask("sysctl", "-n", name)) else None

    power, settings, heat = of.ask("pmset", "-g", "batt"), of.ask("pmset", "-g"), of.ask("pmset", "-g", "therm")
    low = re.search(r"^\s*lowpowermode\s+(\d)", settings, re.MULTILINE)
    limit = re.search(r"CPU_Speed_Limit\s*=\s*(\d{1,3})", heat)
    kinds = [count(f"hw.perflevel{level}.logicalcpu") for level in range(count("hw.nperflevels") or 0)]
    translated, virtual = count("sysctl.proc_translated"), count("kern.hv_vmm_present")
    ends = [sum(filter(None, kinds[:level])) for level in range(len(kinds) + 1)]
    return {
        "battery": "'Battery Power'" in power if "Now drawing from" in power else None,
        "plan": None if low is None else "low power mode" if low[1] == "1" else "usual",
        "capped": None if limit is None else int(limit[1]) < 100,
        "kinds": [list(range(a, b)) for a, b in pairwise(ends)][::-1] or None,  # slowest first
        "translated": bool(translated),  # Macs with Intel do not know the word
        "hypervisor": None if virtual is None else "yes" if virtual else "",
    }


def _of_windows(of: Here) -> dict[str, Any]:
    found = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", of.ask("powercfg", "/getactivescheme").lower())
    return {"plan": PLANS.get(found[0], "one of your own") if found else None, "battery": of.process.get("unplugged")}

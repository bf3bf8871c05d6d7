"""Facts that are not in files of the kernel: this process, its Python, and the output of macOS or Windows commands."""

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
PLANS = {  # power plans of Windows by identifier, because Windows translates the names
    "a1841308-3541-4fab-bc81-f71556f20b4a": "power saver",
    "381b4222-f694-41f0-9685-ff5bb260df2e": "balanced",
    "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c": "high performance",
    "e9a42b02-d5df-448d-aa00-03f14749eb61": "ultimate performance",
}


def command_output(*command: str) -> str:
    """Return the output of a system command. If the command is missing or takes over 5 s, return an empty string."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=5, check=False
        ).stdout.strip()
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""


def busy_seconds() -> float:
    """Return the CPU time in seconds of this process and of its child processes that have been waited for."""
    times = os.times()
    return sum(times[:4])


def spent_seconds() -> tuple[float, float] | None:
    """Return the busy and the idle seconds of all cores together, or None if the system does not count them."""
    try:
        times = psutil.cpu_times()
    except (OSError, RuntimeError):
        return None
    return times.user + times.system + getattr(times, "nice", 0.0), times.idle


@dataclass(frozen=True)
class Here:
    """The sources of machine facts other than files of the kernel.

    Attributes
    ----------
    system, release
        The results of `platform.system` and `platform.release`.
    cores
        The numbers of the cores that this process may use. Empty if unknown, which means all cores.
    process
        The facts about this process, see `process_facts`.
    ask
        A function that runs a system command and returns its output.
    clock, pause, busy
        Functions that return the time in seconds, wait for a number of seconds, and return the CPU time of this
        process in seconds.
    spent
        A function that returns the busy and the idle seconds of all cores together, for systems without
        ``/proc/stat``.
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
    """Return the sources of facts about the current machine and process."""
    affinity = getattr(psutil.Process(), "cpu_affinity", None)  # macOS has no CPU affinity
    cores = affinity() if affinity else range(usable_cores())
    return Here(platform.system(), platform.release(), tuple(cores), process_facts())


def process_facts() -> dict[str, Any]:
    """Return facts about this process: BLAS libraries, environment variables, threads, priority, Python, and clock."""
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
    """Return a description of a low process priority, an empty string for the usual one, or None if unknown."""
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
    """Return whether this machine runs on its battery. Without a battery, return False. If unknown, return None."""
    try:
        battery = psutil.sensors_battery()
    except (AttributeError, OSError, RuntimeError):
        return None
    return battery is not None and battery.power_plugged is False


def python_burdens() -> list[str]:
    """Return the names of the conditions that slow this Python down, such as a debug build or a profiler."""
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
    """Return the facts that macOS or Windows reports through commands. For other systems, return an empty dict."""
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
        "translated": bool(translated),  # Macs with Intel processors do not have this setting
        "hypervisor": None if virtual is None else "yes" if virtual else "",
    }


def _of_windows(of: Here) -> dict[str, Any]:
    found = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", of.ask("powercfg", "/getactivescheme").lower())
    return {"plan": PLANS.get(found[0], "one of your own") if found else None, "battery": of.process.get("unplugged")}

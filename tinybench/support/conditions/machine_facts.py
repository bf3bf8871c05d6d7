"""What can be read about a machine: its cores, what limits and disturbs them, and what this process brings along."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tinybench.support.conditions.control_groups import tightest_quota, times_stopped
from tinybench.support.conditions.library_kernels import listed_flags
from tinybench.support.conditions.reading import read_text
from tinybench.support.conditions.this_machine import Here, facts_by_asking, here

CPU = "sys/devices/system/cpu"
SUPPLIES = "sys/class/power_supply"
CONTAINERS = {"docker": "docker", "kubepods": "kubernetes", "libpod": "podman", "lxc": "lxc", "machine.slice": "nspawn"}
# drivers with governors of their own, whose powersave follows the load: docs.kernel.org, admin-guide/pm/intel_pstate
AUTONOMOUS = {"intel_pstate", "amd-pstate-epp"}
WINDOW = 0.5  # s between two looks, where nobody has looked before
SHORTEST = 0.2  # s between two looks, below which ticks of 10 ms tell nothing


def number(text: str) -> float | None:
    """Return a number of the kernel's, None for any other text."""
    return float(text) if re.fullmatch(r"-?\d{1,20}(\.\d{1,9})?", text) else None


def numbers(text: str) -> list[int]:
    """Return the cores of a list such as ``0-3,8``; none for any other text."""
    found: list[int] = []
    for part in text.split(",") if re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", text) else []:
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def fields(text: str) -> dict[str, float]:
    """Return the counts of a file of lines such as ``name 12`` or ``name: 12 kB``."""
    words = (line.replace(":", " ").split() for line in text.splitlines())
    return {row[0]: value for row in words if len(row) > 1 and (value := number(row[1])) is not None}


def waiting(text: str) -> float | None:
    """Return for which share of the last 10 s some task waited, by a file of ``/proc/pressure``."""
    found = re.search(r"^some avg10=(\d{1,3}\.\d+)", text)
    return float(found[1]) / 100 if found else None


def look(root: Path | str = "/", of: Here | None = None) -> dict[str, Any]:
    """Return counts that only grow: two looks tell what went on between them."""
    root, of = Path(root), of or here()
    stat = re.match(r"cpu +\d+( +\d+){7,}$", read_text(root / "proc/stat").partition("\n")[0])
    pages = fields(read_text(root / "proc/vmstat"))
    hot = [number(read_text(path)) for path in (root / CPU).glob("cpu[0-9]*/thermal_throttle/core_throttle_count")]
    return {
        "stat": stat[0] if stat else None,
        "stopped": times_stopped(root),
        "swapped": pages["pswpin"] + pages["pswpout"] if {"pswpin", "pswpout"} <= pages.keys() else None,
        "hot": sum(count or 0 for count in hot) if hot else None,
        "seconds": of.clock(),
        "own": of.busy(),
        "spent": None if of.system == "Linux" else of.spent(),
    }


def read_facts(root: Path | str = "/", before: dict[str, Any] | None = None, of: Here | None = None) -> dict[str, Any]:
    """Return what is known about a machine and this process; None for what is not.

    Parameters
    ----------
    root
        Where Linux's ``proc`` and ``sys`` are found. What is missing, unreadable or garbage is unknown.
    before
        An earlier `look`; without one there are two now, half a second apart.
    of
        What no file of the kernel tells; see `Here`.

    Returns
    -------
    dict
        Among others ``cores`` that this process may use, of all ``cores_online``; ``cpu_max``, the tightest limit of
        its control groups as the text of such a file; ``stat``, the first lines of ``/proc/stat`` at both looks;
        ``load``, the share of all cores that others kept busy meanwhile.
    """
    root, of = Path(root), of or here()
    if before is None:
        before = look(root, of)
        of.pause(WINDOW)
    now = look(root, of)
    online = numbers(read_text(root / CPU / "online"))
    usable = sorted(set(of.cores or online)) or [0]
    found = {
        "system": of.system,
        "cores": len(usable),
        "cores_online": len(online) or len(usable),
        **of.process,
        **_kinds_of_cores(root, usable),
        **_pace(root, usable),
        **_grown(before, now),
        "flags": listed_flags(root) or of.process.get("flags", set()),
        "cpu_max": tightest_quota(root),
        "battery": _on_battery(root),
        "waited": waiting(read_text(root / "proc/pressure/cpu")),
        "memory_waited": waiting(read_text(root / "proc/pressure/memory")),
        "memory_left": _memory_left(root),
        "clock_source": read_text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource") or None,
        "clock_sources": read_text(root / "sys/devices/system/clocksource/clocksource0/available_clocksource").split(),
        "wsl": "microsoft" in (read_text(root / "proc/sys/kernel/osrelease") or of.release).lower(),
        "container": _container(root),
        "hypervisor": _hypervisor(root),
    }
    return found if of.system == "Linux" else found | facts_by_asking(of)


def _grown(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return what happened between two looks."""
    seconds = max(now["seconds"] - before["seconds"], 1e-3)

    def grew(name: str) -> float | None:
        return None if before[name] is None or now[name] is None else max(0.0, now[name] - before[name])

    stat = before["stat"] and now["stat"] and seconds >= SHORTEST and (before["stat"], now["stat"])
    load = _others(*stat, now["own"] - before["own"]) if stat else None
    if before["spent"] and now["spent"] and seconds >= SHORTEST:
        busy, idle = (b - a for a, b in zip(before["spent"], now["spent"], strict=True))
        load = max(0.0, busy - now["own"] + before["own"]) / (busy + idle) if busy + idle > 0 else None
    swapped, periods = grew("swapped"), None
    if before["stopped"] is not None and now["stopped"] is not None:
        of_all, stopped = (max(0, b - a) for a, b in zip(before["stopped"], now["stopped"], strict=True))
        periods = min(1.0, stopped / of_all) if of_all else 0.0
    return {
        "stat": stat or None,
        "load": load,
        "stopped": periods,
        "swapped": None if swapped is None else swapped / seconds,
        "hot": grew("hot"),
    }


def _others(before: str, now: str, own: float) -> float | None:
    """Return which share of all cores was busy with what is not ours, by two looks and our own seconds in between."""
    spent = [int(b) - int(a) for a, b in zip(before.split()[1:9], now.split()[1:9], strict=True)]
    total, idle = sum(spent), spent[3] + spent[4] + spent[7]  # what was stolen, nobody here used
    if total <= 0 or min(spent) < 0:
        return None
    return max(0.0, (total - idle) / total - own / (total / 100))  # a tick is 10 ms, whatever the kernel's own are


def _kinds_of_cores(root: Path, usable: Sequence[int]) -> dict[str, Any]:
    """Return which cores share one, are of several kinds, or lie at several memories."""
    cores = set(usable)
    pairs = _of_cores(root, usable, "topology/thread_siblings_list").values()
    known = [group for text in pairs if (group := numbers(text))]
    firsts = sorted({min(cores & set(group)) for group in known if cores & set(group)})
    parts = {name: numbers(read_text(root / f"sys/devices/cpu_{name}/cpus")) for name in ("atom", "core")}
    if not all(parts.values()):
        capacity = _of_cores(root, usable, "cpu_capacity")
        ranks = sorted({rank for text in capacity.values() if (rank := number(text)) is not None})
        parts = {f"{rank}": [core for core, text in capacity.items() if number(text) == rank] for rank in ranks}
    folders = (root / "sys/devices/system/node").glob("node[0-9]*")
    nodes = {folder.name[4:]: numbers(read_text(folder / "cpulist")) for folder in folders}
    nodes = {name: sorted(cores & set(own)) for name, own in nodes.items() if cores & set(own)}
    kinds = [sorted(cores & set(part)) for part in parts.values() if cores & set(part)]  # the slowest first
    return {
        "siblings": len(cores) - len(firsts) if len(known) == len(cores) else None,
        "one_each": firsts,
        "kinds": kinds or ([sorted(cores)] if known else None),
        "nodes": nodes or None,
    }


def _of_cores(root: Path, usable: Sequence[int], name: str) -> dict[int, str]:
    """Return the text of a file of each core; where the first has none, none is looked for: there may be hundreds."""
    if not (root / CPU / f"cpu{usable[0]}" / name).exists():
        return {}
    return {core: read_text(root / CPU / f"cpu{core}" / name) for core in usable}


def _pace(root: Path, usable: Sequence[int]) -> dict[str, Any]:
    """Return what governs the clock rate."""

    def each(name: str) -> set[str]:
        return set(filter(None, _of_cores(root, usable, f"cpufreq/{name}").values()))

    driver = read_text(root / CPU / f"cpu{usable[0]}/cpufreq/scaling_driver")  # one for all of them
    return {
        "governor": ", ".join(sorted(each("scaling_governor"))) or None,
        "driver": driver or None,
        "preference": ", ".join(sorted(each("energy_performance_preference"))) or None,
        "autonomous": driver in AUTONOMOUS,
        "turbo": turbo(root),
        "turbo_file": "intel_pstate/no_turbo" if (root / CPU / "intel_pstate/no_turbo").exists() else "cpufreq/boost",
        "capped": _capped(root),
    }


def turbo(root: Path) -> bool | None:
    """Return whether the processor may exceed its nominal clock rate, None where Linux does not say."""
    folder = root / CPU
    for file, off in (("intel_pstate/no_turbo", "1"), ("cpufreq/boost", "0")):
        if said := read_text(folder / file):
            return said != off
    return None


def _capped(root: Path) -> bool | None:
    """Return whether the processor is cooled by slowing it down right now, or short of voltage (Raspberry Pi)."""
    found = None
    for device in (root / "sys/class/thermal").glob("cooling_device*"):
        if re.search(r"cpu|processor", read_text(device / "type").lower()):
            found = (number(read_text(device / "cur_state")) or 0) > 0 or bool(found)
    for file in (root / "sys/devices/platform/soc").glob("*firmware/get_throttled"):
        if re.fullmatch(r"(0x)?[0-9a-fA-F]{1,8}", text := read_text(file)):
            found = int(text, 16) & 0b1111 > 0 or bool(found)
    return found


def _on_battery(root: Path) -> bool | None:
    """Return whether this machine runs on its battery; one of a mouse does not count. False without any."""
    folder = root / SUPPLIES
    supplies = [path for path in folder.glob("*") if read_text(path / "scope") != "Device"]
    mains = [read_text(path / "online") for path in supplies if read_text(path / "type") in ("Mains", "USB")]
    if "1" in mains:
        return False
    if any(read_text(path / "status") == "Discharging" for path in supplies):
        return True
    return False if folder.is_dir() else None


def _memory_left(root: Path) -> float | None:
    """Return which share of the memory programs could still have."""
    memory = fields(read_text(root / "proc/meminfo"))
    return memory.get("MemAvailable", 0) / memory["MemTotal"] if memory.get("MemTotal") else None


def _container(root: Path) -> str | None:
    """Return which kind of container this is, an empty text for none."""
    signs: dict[str, Callable[[], bool]] = {
        "docker": (root / ".dockerenv").exists,
        "podman": (root / "run/.containerenv").exists,
    }
    if named := read_text(root / "run/systemd/container"):
        return named
    groups = read_text(root / "proc/self/cgroup")
    for sign, name in CONTAINERS.items():
        if sign in groups:
            return name
    return next((name for name, there in signs.items() if there()), "" if groups else None)


def _hypervisor(root: Path) -> str | None:
    """Return which hypervisor this machine runs on, an empty text for none."""
    if named := read_text(root / "sys/hypervisor/type"):
        return named
    text = read_text(root / "proc/cpuinfo")
    if re.search(r"^flags\s*:.* hypervisor\b", text, re.MULTILINE):
        return read_text(root / "sys/class/dmi/id/sys_vendor") or "yes"
    return "" if text else None
